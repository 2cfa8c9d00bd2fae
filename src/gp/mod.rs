//! Evidence and posterior of a Gaussian process; one file for each way of computing them. Asks the program for values
//! and pullbacks, `linalg` for factors; never looks at what a kernel is made of.

mod exact;
mod loo;
mod predict;

pub use exact::{Exact, Timings};
pub use loo::LeaveOneOut;
pub use predict::{Posterior, Prediction};
