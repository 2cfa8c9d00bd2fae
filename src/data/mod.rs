//! Rows become numbers: points, times, targets, names, scaling. Knows nothing of kernels; the first step of the walk.

mod dataset;
mod points;
mod scaling;
mod time;

pub use dataset::Dataset;
pub use points::Points;
pub use scaling::Scaling;
pub use time::{Detected, Digits, Form, Horizon, TimeAxis, Unit, Zone, names_a_time};
