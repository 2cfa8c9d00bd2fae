//! covary learns the kernel of a Gaussian process from data, as a Neural Kernel Network.

pub mod data;
mod error;
pub mod optim;

pub use data::Points;
pub use error::{Cause, Error, ErrorKind, Result};
