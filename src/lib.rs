//! covary learns the kernel of a Gaussian process from data, as a Neural Kernel Network: a small network whose every
//! unit is a valid kernel, trained by gradients of the marginal likelihood.
//!
//! ```
//! use covary::{Dataset, Fit, Kernel};
//!
//! let data = Dataset::from_csv("examples/data/airline.csv", "passengers")?;
//! let kernel = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1")?;
//! let model = Fit::new(kernel).seed(7).run(&data)?;
//! let ahead = model.predict(&data.ahead(24))?;
//! assert_eq!(ahead.mean.len(), 24);
//! # Ok::<(), covary::Error>(())
//! ```
//!
//! [`Dataset`] holds rows as numbers, [`Kernel`] is a value that is written, read and stored, [`Fit`] turns both into a
//! [`Model`], and a [`Model`] gives a [`Prediction`] and an account of how it came about.

pub mod data;
mod error;
pub mod file;
pub mod fit;
pub mod forecast;
pub mod gp;
pub mod kernel;
pub mod linalg;
pub mod memory;
pub mod normal;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
