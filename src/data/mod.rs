//! Rows become numbers: points, targets, names, scaling. Knows nothing of kernels; the first step of the walk.

mod dataset;
mod points;
mod scaling;

pub use dataset::Dataset;
pub use points::Points;
pub use scaling::Scaling;
