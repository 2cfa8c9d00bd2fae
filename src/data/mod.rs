//! Rows become numbers: points, targets, names, scaling. Knows nothing of kernels; the first step of the walk.

mod points;

pub use points::Points;
