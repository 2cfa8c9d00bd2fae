//! Pictures: the one plot style of the project. A [`Figure`] is a value made of panels and layers; it becomes SVG
//! always, PNG with the feature `png`, and text for a terminal. Nothing here knows data, kernels or models: callers
//! bring numbers and names.

mod axis;
mod calendar;
mod figure;
mod forecast;
mod layout;
mod marks;
mod page;
#[cfg(feature = "png")]
mod png;
mod screen;
mod shade;
mod style;
mod svg;
mod terminal;

pub use axis::Axis;
pub use figure::{Figure, Layer, Panel, Shades};
pub use forecast::{Band, ForecastPlot};
pub use page::Page;
pub use style::Ink;
pub use terminal::{Colour, Glyphs, Terminal};
