//! A figure as a value: panels with axes, and layers of marks upon them. It says what is shown; `svg` and `terminal`
//! say how, and every picture of the project is made of these.

use std::path::Path;

use super::axis::{Axis, extent, usable};
use super::style::Ink;
use crate::error::{Error, Result};
use crate::file::write_atomically;

/// A picture of one or more panels.
///
/// ```
/// use covary::plot::{Axis, Figure, Ink, Layer, Panel};
///
/// let x: Vec<f64> = (0..50).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| (x / 8.0).sin()).collect();
/// let panel = Panel::new(Axis::new("day"), Axis::new("level")).with(Layer::line(&x, &y).ink(Ink::Blue).name("sine"));
/// let svg = Figure::new(800, 400).title("A wave").panel(panel).to_svg();
/// assert!(svg.starts_with("<svg"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) title: String,
    pub(crate) columns: usize,
    pub(crate) panels: Vec<Panel>,
}

impl Figure {
    /// The largest width and height, in pixels.
    pub const LIMIT: u32 = 20_000;

    /// An empty figure of this size in pixels; sizes outside 50 to [`Figure::LIMIT`] are brought to the nearer end.
    pub fn new(width: u32, height: u32) -> Self {
        let (width, height) = (width.clamp(50, Self::LIMIT), height.clamp(50, Self::LIMIT));
        Self { width, height, title: String::new(), columns: 1, panels: Vec::new() }
    }

    /// A title above all panels.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds a panel; panels fill the figure row by row.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// How many panels stand side by side; one by default.
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// Writes the figure to a file, as SVG or PNG by its extension, whole or not at all. A PNG has two pixels for each
    /// of the figure's, to be sharp on paper.
    ///
    /// # Errors
    ///
    /// Another extension, PNG without the feature `png`, or a file that cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let bytes = match extension.as_str() {
            "svg" => self.to_svg().into_bytes(),
            "png" => self.png_bytes()?,
            _ => {
                let message = format!("a picture is written as .svg or .png, not as: {}", path.display());
                return Err(Error::option("plot", message));
            }
        };
        write_atomically(path, &bytes)
    }

    #[cfg(feature = "png")]
    fn png_bytes(&self) -> Result<Vec<u8>> {
        self.to_png(2.0)
    }

    #[cfg(not(feature = "png"))]
    fn png_bytes(&self) -> Result<Vec<u8>> {
        Err(Error::option("plot", "this build of the library writes no PNG")
            .with_hint("write .svg, or build with the feature `png`"))
    }
}

/// Axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
    pub(crate) equal_scales: bool,
}

impl Panel {
    /// An empty panel.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { title: String::new(), x, y, layers: Vec::new(), equal_scales: false }
    }

    /// A title for this panel alone.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds a layer above those already there. Bands and images lie below everything else.
    #[must_use]
    pub fn with(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// One unit is as long to the right as upwards: pixels of an image stay square.
    #[must_use]
    pub fn equal_scales(mut self) -> Self {
        self.equal_scales = true;
        self
    }

    /// The ranges of x and y that hold all marks, with a little room around them.
    pub(crate) fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let any = |test: fn(&Mark) -> bool| self.layers.iter().any(|layer| test(&layer.mark));
        let image = any(|m| matches!(m, Mark::Image(_)));
        let bars = any(|m| matches!(m, Mark::Bars { .. }));
        let x = extent(self.layers.iter().flat_map(|layer| layer.mark.xs()));
        let y = extent(self.layers.iter().flat_map(|layer| layer.mark.ys()));
        let side = if image { 0.0 } else { 0.015 };
        let floor = |at_zero: bool| if image || (bars && at_zero) { 0.0 } else { 0.05 };
        let pad = (floor(y.is_some_and(|y| y.0 == 0.0)), floor(y.is_some_and(|y| y.1 == 0.0)));
        (self.x.domain(x, (side, side)), self.y.domain(y, pad))
    }
}

/// Marks of one kind in one ink, with a name for the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub(crate) mark: Mark,
    pub(crate) ink: Ink,
    pub(crate) name: String,
    pub(crate) size: f64,
    pub(crate) opacity: f64,
    pub(crate) dashed: bool,
}

/// What a layer draws. Values that are not finite (or beyond ±1e150) are left out: a line has a gap there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mark {
    Points { x: Vec<f64>, y: Vec<f64> },
    Line { x: Vec<f64>, y: Vec<f64> },
    Band { x: Vec<f64>, lower: Vec<f64>, upper: Vec<f64> },
    Bars { x: Vec<f64>, y: Vec<f64>, width: f64 },
    VerticalRule { x: f64, text: String },
    HorizontalRule { y: f64 },
    Image(Image),
}

/// A grid of values shown as shades, row by row from the top.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Image {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub range: Option<(f64, f64)>,
    pub shades: Shades,
}

/// How the values of an image become colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shades {
    /// Black to white, as in a photograph.
    #[default]
    Grey,
    /// Dark blue over green to yellow, each step lighter than the last: also readable in grey.
    Heat,
    /// Blue over white to vermilion, for values on both sides of zero.
    Signed,
}

impl Layer {
    fn of(mark: Mark) -> Self {
        Self { mark, ink: Ink::Black, name: String::new(), size: 1.0, opacity: 1.0, dashed: false }
    }

    /// Dots. Where one list is longer than the other its rest is not drawn; so in all layers.
    pub fn points(x: &[f64], y: &[f64]) -> Self {
        Self::of(Mark::Points { x: x.to_vec(), y: y.to_vec() })
    }

    /// Straight lines from each point to the next, with a gap at values that are not finite.
    pub fn line(x: &[f64], y: &[f64]) -> Self {
        Self::of(Mark::Line { x: x.to_vec(), y: y.to_vec() })
    }

    /// The area between two lines. Bands of one ink that lie inside each other are given from the outer to the inner.
    pub fn band(x: &[f64], lower: &[f64], upper: &[f64]) -> Self {
        let mark = Mark::Band { x: x.to_vec(), lower: lower.to_vec(), upper: upper.to_vec() };
        Self { opacity: 0.2, ..Self::of(mark) }
    }

    /// Bars from zero, of a width in units of x, centred on x.
    pub fn bars(x: &[f64], y: &[f64], width: f64) -> Self {
        let width = if usable(width) { width.abs() } else { 1.0 };
        Self { opacity: 0.75, ..Self::of(Mark::Bars { x: x.to_vec(), y: y.to_vec(), width }) }
    }

    /// A line from bottom to top with a text at its head (which may be empty).
    pub fn vertical_rule(x: f64, text: impl Into<String>) -> Self {
        Self { dashed: true, ink: Ink::Grey, ..Self::of(Mark::VerticalRule { x, text: text.into() }) }
    }

    /// A line from left to right.
    pub fn horizontal_rule(y: f64) -> Self {
        Self { dashed: true, ink: Ink::Grey, ..Self::of(Mark::HorizontalRule { y }) }
    }

    /// A grid of values, row by row from the top. It spans 0 to `columns` and 0 to `rows`; see [`Layer::spanning`].
    /// Values that are not finite, or missing at the end of the list, are left blank.
    pub fn image(rows: usize, columns: usize, values: &[f64]) -> Self {
        let (x, y) = ((0.0, columns as f64), (0.0, rows as f64));
        let image = Image { rows, columns, values: values.to_vec(), x, y, range: None, shades: Shades::Grey };
        Self::of(Mark::Image(image))
    }

    /// Where an image lies: from left to right and from bottom to top. Nothing for other layers.
    #[must_use]
    pub fn spanning(mut self, x: (f64, f64), y: (f64, f64)) -> Self {
        if let Mark::Image(image) = &mut self.mark {
            (image.x, image.y) = (x, y);
        }
        self
    }

    /// How an image's values become colours, and which of them are the first and the last; without a range, the
    /// smallest and the largest. Nothing for other layers.
    #[must_use]
    pub fn shades(mut self, shades: Shades, range: Option<(f64, f64)>) -> Self {
        if let Mark::Image(image) = &mut self.mark {
            (image.shades, image.range) = (shades, range);
        }
        self
    }

    /// The colour; black by default.
    #[must_use]
    pub fn ink(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }

    /// The name in the legend; without one the layer is not in it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Size of dots or width of lines, as a multiple of the usual.
    #[must_use]
    pub fn size(mut self, size: f64) -> Self {
        self.size = if size.is_finite() { size.clamp(0.05, 20.0) } else { 1.0 };
        self
    }

    /// From 0, invisible, to 1.
    #[must_use]
    pub fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = if opacity.is_finite() { opacity.clamp(0.0, 1.0) } else { 1.0 };
        self
    }

    /// A dashed line.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}

impl Mark {
    fn xs(&self) -> Vec<f64> {
        match self {
            Mark::Points { x, y } | Mark::Line { x, y } => pairs(x, y).map(|p| p.0).collect(),
            Mark::Band { x, lower, upper } => triples(x, lower, upper).map(|p| p.0).collect(),
            Mark::Bars { x, y, width } => pairs(x, y).flat_map(|(x, _)| [x - 0.6 * width, x + 0.6 * width]).collect(),
            Mark::VerticalRule { x, .. } => vec![*x],
            Mark::HorizontalRule { .. } => Vec::new(),
            Mark::Image(image) => vec![image.x.0, image.x.1],
        }
    }

    fn ys(&self) -> Vec<f64> {
        match self {
            Mark::Points { x, y } | Mark::Line { x, y } => pairs(x, y).map(|p| p.1).collect(),
            Mark::Band { x, lower, upper } => triples(x, lower, upper).flat_map(|p| [p.1, p.2]).collect(),
            Mark::Bars { x, y, .. } => pairs(x, y).map(|p| p.1).chain([0.0]).collect(),
            Mark::VerticalRule { .. } => Vec::new(),
            Mark::HorizontalRule { y } => vec![*y],
            Mark::Image(image) => vec![image.y.0, image.y.1],
        }
    }
}

/// The pairs that can be drawn.
pub(crate) fn pairs<'a>(x: &'a [f64], y: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    x.iter().copied().zip(y.iter().copied()).filter(|(x, y)| usable(*x) && usable(*y))
}

/// The pieces of a band that can be drawn: x, lower, upper.
pub(crate) fn triples<'a>(
    x: &'a [f64],
    lower: &'a [f64],
    upper: &'a [f64],
) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let all = x.iter().zip(lower).zip(upper).map(|((x, l), u)| (*x, *l, *u));
    all.filter(|(x, l, u)| usable(*x) && usable(*l) && usable(*u))
}
