//! The one look of every picture: inks, sizes of type, and how wide a text is. Nothing is drawn here.

/// A colour of the palette. The hues are those of Okabe and Ito, which people with any kind of colour blindness tell
/// apart; their lightness differs too, so that they stay apart in grey print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    /// Near black: what was observed.
    #[default]
    Black,
    /// Blue: what the model says.
    Blue,
    /// Vermilion: what came later, or what to look at.
    Vermilion,
    /// Bluish green.
    Green,
    /// Orange.
    Orange,
    /// Reddish purple.
    Purple,
    /// Sky blue.
    Sky,
    /// Grey: what stands in the background.
    Grey,
}

impl Ink {
    /// Inks for a number of lines in one panel, in the order in which to use them.
    pub const SERIES: [Ink; 7] =
        [Ink::Blue, Ink::Vermilion, Ink::Green, Ink::Purple, Ink::Orange, Ink::Sky, Ink::Black];

    /// The colour as SVG writes it.
    pub(crate) fn hex(self) -> &'static str {
        match self {
            Ink::Black => "#222",
            Ink::Blue => "#0072b2",
            Ink::Vermilion => "#d55e00",
            Ink::Green => "#009e73",
            Ink::Orange => "#e69f00",
            Ink::Purple => "#cc79a7",
            Ink::Sky => "#56b4e9",
            Ink::Grey => "#888",
        }
    }

    /// The nearest of the eight colours every terminal has; the user's own colour for black, which may be white.
    pub(crate) fn ansi(self) -> &'static str {
        match self {
            Ink::Black => "39",
            Ink::Blue => "34",
            Ink::Vermilion => "31",
            Ink::Green => "32",
            Ink::Orange => "33",
            Ink::Purple => "35",
            Ink::Sky => "36",
            Ink::Grey => "90",
        }
    }
}

/// Fonts in order of preference. The first is the one the PNG writer carries with it.
pub(crate) const FONTS: &str = "'Noto Sans','Helvetica Neue',Arial,'DejaVu Sans',sans-serif";
/// Size of labels, in pixels.
pub(crate) const TEXT: f64 = 13.0;
/// Size of the title, in pixels.
pub(crate) const TITLE: f64 = 17.0;
/// Colour of labels.
pub(crate) const TEXT_COLOUR: &str = "#444";
/// Colour of axes and tick marks.
pub(crate) const AXIS_COLOUR: &str = "#777";

/// How wide `text` will be at most, in pixels, at a font size. No font is asked: the figures are those of DejaVu Sans,
/// the widest of [`FONTS`], so that labels which do not touch here touch nowhere.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'I' | ' ' => 0.34,
        'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '0'..='9' | 'a'..='z' => 0.64,
        'A'..='Z' => 0.78,
        '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' | '⁻' => 0.5,
        c if cells(c) == 2 => 1.1,
        _ => 0.84,
    }
}

/// How many cells of a terminal a character takes: none for marks that combine, two for East Asian wide ones.
pub(crate) fn cells(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// `text` without characters that steer a terminal or break XML, cut to `limit` characters.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
    };
    let mut out: String = text.chars().take(limit).map(|c| if steers(c) { ' ' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// `text`, shortened with an ellipsis until it is at most `room` pixels wide.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    let text = clean(text, 500);
    if text_width(&text, size) <= room {
        return text;
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let shorter: String = kept.iter().collect::<String>().trim_end().to_string() + "…";
        if text_width(&shorter, size) <= room {
            return shorter;
        }
    }
    String::new()
}
