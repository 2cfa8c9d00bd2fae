//! covary learns the kernel of a Gaussian process from data, as a Neural Kernel Network.

pub mod data;
mod error;
pub mod file;
pub mod gp;
pub mod kernel;
pub mod linalg;
pub mod plot;
pub mod program;
mod threads;

pub use data::{Dataset, Points, Scaling};
pub use error::{Cause, Error, ErrorKind, Place, Result, Row};
pub use kernel::Kernel;
pub use threads::Threads;
