//! covary learns the kernel of a Gaussian process from data, as a Neural Kernel Network.

pub mod data;
mod error;

pub use data::{Dataset, Points, Scaling};
pub use error::{Cause, Error, ErrorKind, Place, Result, Row};
