//! A panel as text for a terminal: lines and dots in braille, bands in shades, ticks at the left and below. Every chart
//! is exactly as wide and as high as asked.

use super::axis::usable;
use super::figure::{Figure, Image, Layer, Mark, Panel, pairs, triples};
use super::layout::spaced;
use super::screen::{Screen, text_cells, to_ascii};
use super::style::Ink;

/// Which characters a chart may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Braille dots, shades and box lines.
    #[default]
    Unicode,
    /// Nothing beyond ASCII, for terminals and files that have no more.
    Ascii,
}

/// Whether a chart has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// Text without escape sequences.
    #[default]
    Plain,
    /// ANSI escape sequences for the eight colours that every terminal has.
    Ansi,
}

/// The size and the abilities of the terminal to draw for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    width: usize,
    height: usize,
    glyphs: Glyphs,
    colour: Colour,
}

impl Terminal {
    /// A chart of so many columns and rows (at least 1, at most 1000), in Unicode and without colours.
    pub fn new(width: usize, height: usize) -> Self {
        let (width, height) = (width.clamp(1, 1000), height.clamp(1, 1000));
        Self { width, height, glyphs: Glyphs::Unicode, colour: Colour::Plain }
    }

    /// Which characters to use.
    #[must_use]
    pub fn glyphs(mut self, glyphs: Glyphs) -> Self {
        self.glyphs = glyphs;
        self
    }

    /// Whether to colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }
}

impl Figure {
    /// The first panel as text, with the figure's title; every line ends in a line feed.
    pub fn to_text(&self, terminal: &Terminal) -> String {
        let empty = Panel::new(Default::default(), Default::default());
        let panel = self.panels.first().unwrap_or(&empty);
        let title = if self.title.is_empty() { &panel.title } else { &self.title };
        let mut chart = Chart::new(panel, title, terminal);
        chart.draw(panel, title);
        chart.screen.print(terminal.glyphs == Glyphs::Ascii, terminal.colour == Colour::Ansi)
    }
}

/// A chart being drawn. `plot` is the plot area in cells: left, top, columns, rows.
struct Chart {
    screen: Screen,
    ascii: bool,
    height: usize,
    plot: (usize, usize, usize, usize),
    x: (f64, f64),
    y: (f64, f64),
    y_marks: Vec<(f64, String)>,
    note: String,
}

impl Chart {
    fn new(panel: &Panel, title: &str, terminal: &Terminal) -> Self {
        let Terminal { width, height, .. } = *terminal;
        let ascii = terminal.glyphs == Glyphs::Ascii;
        let (x, y) = panel.ranges();
        // What surrounds the plot goes first where there is little room.
        let below = if height >= 6 { 2 } else { 0 };
        let mut top = 0;
        top += usize::from(height >= 8 && !title.is_empty());
        top += usize::from(height >= 7);
        let rows = height - below - top;
        let ticks = panel.y.ticks(y, |marks| spaced(marks, y, rows as f64, |_| 1.0, 1.0));
        let widest = ticks.marks.iter().map(|m| text_cells(&m.1)).max().unwrap_or(0);
        let left = if widest + 12 <= width { widest + 2 } else { 0 };
        Self {
            screen: Screen::new(width, height),
            ascii,
            height,
            plot: (left, top, width - left, rows),
            x,
            y,
            y_marks: if left > 0 { ticks.marks } else { Vec::new() },
            note: ticks.note,
        }
    }

    fn draw(&mut self, panel: &Panel, title: &str) {
        let below = |layer: &&Layer| matches!(layer.mark, Mark::Band { .. } | Mark::Image(_));
        panel.layers.iter().filter(below).for_each(|layer| self.mark(layer));
        panel.layers.iter().filter(|layer| !below(layer)).for_each(|layer| self.mark(layer));
        // Rules last, so that their texts find the places that are still free.
        for layer in &panel.layers {
            if let Mark::VerticalRule { x, text } = &layer.mark {
                self.rule(*x, text);
            }
        }
        self.axes(panel);
        self.head(panel, title);
    }

    fn text(&mut self, column: usize, row: usize, text: &str) {
        let text = if self.ascii { to_ascii(text) } else { text.to_string() };
        self.screen.write(column, row, &text, Ink::Black);
    }

    /// The dot, counted within the plot, that a value falls on; it may lie outside.
    fn dot_at(&self, x: f64, y: f64) -> (f64, f64) {
        let (_, _, columns, rows) = self.plot;
        let across = (x - self.x.0) / (self.x.1 - self.x.0) * (2 * columns - 1) as f64;
        let down = (self.y.1 - y) / (self.y.1 - self.y.0) * (4 * rows).saturating_sub(1) as f64;
        (across, down)
    }

    fn dot(&mut self, (x, y): (f64, f64), ink: Ink, line: bool) {
        let (left, top, columns, rows) = self.plot;
        let (x, y) = (x.round(), y.round());
        if x >= 0.0 && y >= 0.0 && x < (2 * columns) as f64 && y < (4 * rows) as f64 {
            self.screen.dot(x as usize + 2 * left, y as usize + 4 * top, ink, line);
        }
    }

    fn mark(&mut self, layer: &Layer) {
        let ink = layer.ink;
        match &layer.mark {
            Mark::Points { x, y } => {
                for (x, y) in pairs(x, y) {
                    self.dot(self.dot_at(x, y), ink, false);
                }
            }
            Mark::Line { x, y } => {
                let mut before = None;
                for (x, y) in x.iter().zip(y) {
                    let here = (usable(*x) && usable(*y)).then(|| self.dot_at(*x, *y));
                    if let (Some(from), Some(to)) = (before.or(here), here) {
                        self.segment(from, to, ink);
                    }
                    before = here;
                }
            }
            Mark::Bars { x, y, width } => {
                for (x, y) in pairs(x, y) {
                    let (from, to) = (self.dot_at(x - width / 2.0, y), self.dot_at(x + width / 2.0, 0.0));
                    let last = (2 * self.plot.2) as f64;
                    for across in from.0.round().max(0.0) as usize..=to.0.round().clamp(0.0, last) as usize {
                        self.segment((across as f64, from.1), (across as f64, to.1), ink);
                    }
                }
            }
            Mark::HorizontalRule { y } if usable(*y) => {
                let (_, down) = self.dot_at(self.x.0, *y);
                for across in (0..2 * self.plot.2).step_by(3) {
                    self.dot((across as f64, down), ink, true);
                }
            }
            Mark::Band { x, lower, upper } => self.band(&triples(x, lower, upper).collect::<Vec<_>>(), ink),
            Mark::Image(image) => self.image(image),
            Mark::HorizontalRule { .. } | Mark::VerticalRule { .. } => {}
        }
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().clamp(1.0, 10_000.0) as usize;
        for i in 0..=steps {
            let t = i as f64 / steps as f64;
            self.dot((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)), ink, true);
        }
    }

    /// Shades every cell whose middle lies in the band.
    fn band(&mut self, band: &[(f64, f64, f64)], ink: Ink) {
        let (left, top, columns, rows) = self.plot;
        let mut edges: Vec<Option<(f64, f64)>> = vec![None; columns];
        let mut cover = |a: (f64, f64, f64), b: (f64, f64, f64)| {
            let (from, to) = (a.0.min(b.0), a.0.max(b.0));
            let first = (from - 0.5).ceil().max(0.0);
            let last = (to - 0.5).floor().min(columns as f64 - 1.0);
            let mut column = first;
            while column <= last {
                let t = if b.0 == a.0 { 0.0 } else { (column + 0.5 - a.0) / (b.0 - a.0) };
                if let Some(edge) = edges.get_mut(column as usize) {
                    *edge = Some((a.1 + t * (b.1 - a.1), a.2 + t * (b.2 - a.2)));
                }
                column += 1.0;
            }
        };
        let place = |chart: &Self, t: &(f64, f64, f64)| {
            let ((across, low), (_, high)) = (chart.dot_at(t.0, t.1), chart.dot_at(t.0, t.2));
            (across / 2.0, high / 4.0, low / 4.0)
        };
        let placed: Vec<(f64, f64, f64)> = band.iter().map(|t| place(self, t)).collect();
        placed.windows(2).for_each(|w| cover(w[0], w[1]));
        if let [one] = placed[..] {
            let middle = one.0.floor() + 0.5;
            cover((middle, one.1, one.2), (middle, one.1, one.2));
        }
        for (column, edge) in edges.into_iter().enumerate() {
            let Some((high, low)) = edge else { continue };
            for row in 0..rows {
                let middle = row as f64 + 0.5;
                if middle >= high && middle <= low {
                    self.screen.shade(left + column, top + row, ink);
                }
            }
        }
    }

    fn image(&mut self, image: &Image) {
        let (left, top, columns, rows) = self.plot;
        let scale: &[char] = if self.ascii { &[' ', '.', ':', '+', '#'] } else { &[' ', '░', '▒', '▓', '█'] };
        let (found_rows, found_columns, values) = image.reduced(rows, columns);
        let (low, high) = image.shade_range();
        if found_rows == 0 || found_columns == 0 {
            return;
        }
        for row in 0..rows {
            for column in 0..columns {
                let (i, j) = (row * found_rows / rows, column * found_columns / columns);
                let value = values.get(i * found_columns + j).copied().unwrap_or(f64::NAN);
                let share = if high > low { (value - low) / (high - low) } else { 0.5 };
                if usable(value) {
                    let c = scale[((share.clamp(0.0, 1.0) * 5.0) as usize).min(4)];
                    self.screen.put(left + column, top + row, c, Ink::Black);
                }
            }
        }
    }

    fn rule(&mut self, x: f64, text: &str) {
        let (left, top, columns, rows) = self.plot;
        let (across, _) = self.dot_at(x, self.y.0);
        if !usable(x) || across < 0.0 || across >= (2 * columns) as f64 {
            return;
        }
        let column = left + across as usize / 2;
        for row in top..top + rows {
            self.screen.put(column, row, if self.ascii { '|' } else { '┊' }, Ink::Grey);
        }
        let length = text_cells(text);
        let before = column.checked_sub(length + 1).filter(|c| *c >= left);
        let places = [top, top + rows.saturating_sub(1)].map(|row| [(Some(column + 2), row), (before, row)]);
        for (from, row) in places.into_iter().flatten() {
            if let Some(from) = from.filter(|c| length > 0 && self.screen.is_free(*c, row, length)) {
                return self.text(from, row, text);
            }
        }
    }

    fn axes(&mut self, panel: &Panel) {
        let (left, top, columns, rows) = self.plot;
        let (corner, flat, tick_below, tick_left, up) =
            if self.ascii { ('+', '-', '+', '+', '|') } else { ('└', '─', '┬', '┤', '│') };
        if left > 0 {
            for row in top..top + rows {
                self.screen.put(left - 1, row, up, Ink::Black);
            }
            for (y, text) in std::mem::take(&mut self.y_marks) {
                let (_, down) = self.dot_at(self.x.0, y);
                let row = top + ((down / 4.0).floor().max(0.0) as usize).min(rows.saturating_sub(1));
                self.screen.put(left - 1, row, tick_left, Ink::Black);
                self.text((left - 2).saturating_sub(text_cells(&text)), row, &text);
            }
        }
        let axis = top + rows;
        if axis + 1 >= self.height {
            return;
        }
        for column in left..left + columns {
            self.screen.put(column, axis, flat, Ink::Black);
        }
        if left > 0 {
            self.screen.put(left - 1, axis, corner, Ink::Black);
        }
        let x = self.x;
        let ticks = panel.x.ticks(x, |marks| spaced(marks, x, columns as f64, |t| text_cells(t) as f64, 3.0));
        // The note says what the numbers mean: it has its place before they have theirs.
        let end = left + columns;
        let until = if ticks.note.is_empty() { end } else { end.saturating_sub(text_cells(&ticks.note) + 2) };
        let mut free = 0;
        for (at, text) in ticks.marks {
            let column = left + self.dot_at(at, self.y.0).0.max(0.0) as usize / 2;
            self.screen.put(column, axis, tick_below, Ink::Black);
            let length = text_cells(&text);
            let from = column.saturating_sub(length / 2).min(end.saturating_sub(length));
            if from >= free && from + length <= until {
                self.text(from, axis + 1, &text);
                free = from + length + 1;
            }
        }
        let label = if ticks.note.is_empty() { &panel.x.label } else { &ticks.note };
        let from = end.saturating_sub(text_cells(label));
        if from > free {
            self.text(from, axis + 1, label);
        }
    }

    /// The title, and below it the label of y and the legend.
    fn head(&mut self, panel: &Panel, title: &str) {
        let (_, top, _, _) = self.plot;
        let width = self.plot.0 + self.plot.2;
        if top == 2 {
            self.text(0, 0, title);
        }
        let Some(row) = top.checked_sub(1) else { return };
        let label = match (panel.y.label.as_str(), self.note.as_str()) {
            (label, "") => label.to_string(),
            ("", note) => note.to_string(),
            (label, note) => format!("{label} ({note})"),
        };
        self.text(0, row, &label);
        let mut left = if label.is_empty() { 0 } else { text_cells(&label) + 3 };
        let mut bands = 0;
        for layer in panel.layers.iter().filter(|layer| !layer.name.is_empty()) {
            let sample = match (&layer.mark, self.ascii) {
                (Mark::Points { .. }, false) => "⠐⠂",
                (Mark::Points { .. }, true) => "o",
                (Mark::Line { .. } | Mark::HorizontalRule { .. }, false) => "⠒⠒",
                (Mark::Line { .. } | Mark::HorizontalRule { .. }, true) => "*",
                (Mark::Band { .. }, _) => {
                    bands += 1;
                    let of = if self.ascii { ["..", "::", "%%"] } else { ["░░", "▒▒", "▓▓"] };
                    of[(bands - 1).min(2)]
                }
                (Mark::VerticalRule { .. }, false) => "┊",
                (Mark::VerticalRule { .. }, true) => "|",
                (Mark::Bars { .. } | Mark::Image(_), false) => "⣿⣿",
                (Mark::Bars { .. } | Mark::Image(_), true) => "##",
            };
            let length = text_cells(sample) + 1 + text_cells(&layer.name);
            if left + length > width {
                break;
            }
            self.screen.write(left, row, sample, layer.ink);
            self.text(left + text_cells(sample) + 1, row, &layer.name);
            left += length + 3;
        }
    }
}
