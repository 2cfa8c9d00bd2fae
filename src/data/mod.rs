//! Rows become numbers: tables, times, points, targets, names, scaling. Knows nothing of kernels; the first step of
//! the walk.

mod choice;
#[cfg(feature = "columnar")]
mod columnar;
mod csv;
mod dataset;
mod encoding;
mod grid;
mod npy;
mod once;
#[cfg(feature = "png")]
mod picture;
mod places;
mod points;
mod published_order;
mod scaling;
mod source;
mod split;
mod stream;
mod table;
mod texts;
mod time;

pub use choice::{Choice, Missing};
pub use dataset::Dataset;
pub use encoding::{Encoded, Encoding};
pub use grid::{Grid, Hole};
pub use once::Once;
#[cfg(feature = "png")]
pub use picture::Picture;
pub(crate) use places::Places;
pub use points::Points;
pub use scaling::Scaling;
pub use split::Split;
pub use stream::{Pass, Piece, Stream};
pub use table::{Cells, Column, ReadOptions, Table};
pub use texts::Texts;
pub use time::{Detected, Digits, Form, Horizon, TimeAxis, Unit, Zone, names_a_time};
