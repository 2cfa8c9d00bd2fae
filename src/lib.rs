//! covary learns the kernel of a Gaussian process from data, as a Neural Kernel Network.

pub mod data;
mod error;
pub mod file;
pub mod fit;
pub mod gp;
pub mod kernel;
pub mod linalg;
pub mod optim;
pub mod plot;
pub mod program;
mod threads;

pub use data::{Dataset, Points, Scaling};
pub use error::{Cause, Error, ErrorKind, Place, Result, Row};
pub use fit::{Fit, Model};
pub use gp::Prediction;
pub use kernel::Kernel;
pub use threads::Threads;
