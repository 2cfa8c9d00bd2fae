//! A grid of terminal cells to draw on: braille dots (two by four in a cell), shades, and texts above them. It knows no
//! axes; `terminal` does.

use super::style::{Ink, cells, clean};

/// One cell: dots and shades of the plot, and a text character that covers both.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    dots: u8,
    ink: Ink,
    line: bool,
    shade: u8,
    shade_ink: Ink,
    text: Option<(char, Ink)>,
    /// The right half of a wide character: nothing is printed for it.
    hidden: bool,
}

/// The grid, row by row.
pub(crate) struct Screen {
    columns: usize,
    cells: Vec<Cell>,
}

/// Bits of a braille character by column and row of the dot.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Unicode, then ASCII, for one, two and three bands on top of each other.
const BANDS: [[char; 3]; 2] = [['░', '▒', '▓'], ['.', ':', '%']];

impl Screen {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, cells: vec![Cell::default(); columns * rows] }
    }

    fn cell(&mut self, column: usize, row: usize) -> Option<&mut Cell> {
        if column < self.columns { self.cells.get_mut(row * self.columns + column) } else { None }
    }

    /// Sets a dot, counted from the top left in halves of a column and quarters of a row.
    pub(crate) fn dot(&mut self, x: usize, y: usize, ink: Ink, line: bool) {
        if let Some(cell) = self.cell(x / 2, y / 4) {
            cell.dots |= DOTS[x % 2][y % 4];
            (cell.ink, cell.line) = (ink, line);
        }
    }

    /// Makes a cell one shade darker.
    pub(crate) fn shade(&mut self, column: usize, row: usize, ink: Ink) {
        if let Some(cell) = self.cell(column, row) {
            cell.shade = (cell.shade + 1).min(3);
            cell.shade_ink = ink;
        }
    }

    /// Puts a character into a cell, unless dots are there.
    pub(crate) fn put(&mut self, column: usize, row: usize, c: char, ink: Ink) {
        if let Some(cell) = self.cell(column, row).filter(|cell| cell.dots == 0) {
            cell.text = Some((c, ink));
        }
    }

    /// Whether a stretch of a row is inside and has neither dots nor text.
    pub(crate) fn is_free(&self, column: usize, row: usize, length: usize) -> bool {
        column + length <= self.columns
            && (column..column + length).all(|c| {
                self.cells.get(row * self.columns + c).is_some_and(|cell| cell.dots == 0 && cell.text.is_none())
            })
    }

    /// Writes a text from a column on; what does not fit is cut.
    pub(crate) fn write(&mut self, column: usize, row: usize, text: &str, ink: Ink) {
        let mut at = column;
        for c in clean(text, 1000).chars() {
            let wide = cells(c);
            if wide == 0 {
                continue;
            }
            if at + wide > self.columns {
                break;
            }
            if let Some(cell) = self.cell(at, row) {
                cell.text = Some((c, ink));
            }
            if let Some(cell) = self.cell(at + 1, row).filter(|_| wide == 2) {
                cell.hidden = true;
            }
            at += wide;
        }
    }

    /// The rows as text, each ending in a line feed.
    pub(crate) fn print(&self, ascii: bool, colour: bool) -> String {
        let mut out = String::with_capacity(self.cells.len() * 3);
        for row in self.cells.chunks(self.columns.max(1)) {
            let mut current = Ink::Black;
            for cell in row.iter().filter(|cell| !cell.hidden) {
                let (c, ink) = shown(cell, ascii);
                if colour && ink != current {
                    out.push_str(if ink == Ink::Black { "\x1b[0m" } else { "\x1b[" });
                    if ink != Ink::Black {
                        out.push_str(ink.ansi());
                        out.push('m');
                    }
                    current = ink;
                }
                out.push(c);
            }
            if current != Ink::Black {
                out.push_str("\x1b[0m");
            }
            out.push('\n');
        }
        out
    }
}

fn shown(cell: &Cell, ascii: bool) -> (char, Ink) {
    if let Some((c, ink)) = cell.text {
        return (c, ink);
    }
    if cell.dots != 0 {
        let braille = char::from_u32(0x2800 + u32::from(cell.dots)).unwrap_or('*');
        return (
            if !ascii {
                braille
            } else if cell.line {
                '*'
            } else {
                'o'
            },
            cell.ink,
        );
    }
    match cell.shade {
        0 => (' ', Ink::Black),
        level => (BANDS[usize::from(ascii)][usize::from(level - 1).min(2)], cell.shade_ink),
    }
}

/// How many cells a text takes.
pub(crate) fn text_cells(text: &str) -> usize {
    clean(text, 1000).chars().map(cells).sum()
}

/// A text in ASCII alone: signs of the plot by their nearest likeness, other characters as a question mark.
pub(crate) fn to_ascii(text: &str) -> String {
    let mut out = String::new();
    let mut raised = false;
    for c in text.chars() {
        let digit = match c {
            '⁻' => Some('-'),
            '¹' => Some('1'),
            '²' => Some('2'),
            '³' => Some('3'),
            '⁰' | '⁴'..='⁹' => char::from_digit(u32::from(c) - 0x2070, 10),
            _ => None,
        };
        if digit.is_some() && !raised {
            out.push('^');
        }
        raised = digit.is_some();
        out.push(match c {
            '−' | '–' | '—' => '-',
            '×' => 'x',
            '…' => '~',
            '‘' | '’' => '\'',
            c if c.is_ascii() => c,
            _ => digit.unwrap_or('?'),
        });
    }
    out
}
