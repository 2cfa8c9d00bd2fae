//! A process that has seen its data, however it was computed: models ask it for predictions and never look inside.

use super::iterative_posterior::IterativePosterior;
use super::predict::{Posterior, Prediction};
use super::sparse_posterior::SparsePosterior;
use crate::data::Points;
use crate::error::{Error, Result};
use crate::program::{Inputs, Program, Scratch};
use rand::Rng;

/// A process that has seen its data.
#[derive(Debug, Clone)]
pub enum Process {
    /// By the whole covariance of the rows.
    Exact(Box<Posterior>),
    /// By inducing points.
    Sparse(Box<SparsePosterior>),
    /// By the weights of all rows, with variances by inducing points; the whole covariance is not kept.
    Iterative(Box<IterativePosterior>),
}

impl Process {
    /// Number of observations.
    pub fn n(&self) -> usize {
        match self {
            Self::Exact(p) => p.n(),
            Self::Sparse(p) => p.n(),
            Self::Iterative(p) => p.n(),
        }
    }

    /// The variance of f at each point before anything was observed.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn prior(&self, points: &Points) -> Result<Vec<f64>> {
        match self {
            Self::Exact(p) => p.prior(points),
            Self::Sparse(p) => p.prior(points),
            Self::Iterative(p) => p.spread().prior(points),
        }
    }

    /// Means only.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        match self {
            Self::Exact(p) => p.mean(points),
            Self::Sparse(p) => p.mean(points),
            Self::Iterative(p) => p.mean(points),
        }
    }

    /// Means and variances, in bounded memory.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        match self {
            Self::Exact(p) => p.predict(points),
            Self::Sparse(p) => p.predict(points),
            Self::Iterative(p) => p.predict(points),
        }
    }

    /// Joint samples of f.
    ///
    /// # Errors
    /// When the width of the points does not fit, or their covariance cannot be factorised.
    pub fn sample(&self, points: &Points, count: usize, rng: &mut impl Rng) -> Result<Vec<Vec<f64>>> {
        match self {
            Self::Exact(p) => p.sample(points, count, rng),
            Self::Sparse(p) => p.sample(points, count, rng),
            Self::Iterative(p) => p.sample(points, count, rng),
        }
    }

    /// Takes in more observations without refitting.
    ///
    /// # Errors
    /// As [`Posterior::append`]; and where the rows themselves are not kept.
    pub fn append(&mut self, x: &Points, y: &[f64]) -> Result<()> {
        match self {
            Self::Exact(p) => p.append(x, y),
            Self::Sparse(_) | Self::Iterative(_) => {
                let error =
                    Error::option("append", "only an exact model takes in more rows, not a sparse or iterative one");
                Err(error.with_hint("fit it again with all rows"))
            }
        }
    }
}

/// The diagonal of the prior covariance.
pub(super) fn prior(program: &Program, theta: &[f64], points: &Points) -> Result<Vec<f64>> {
    let mut variances = vec![0.0; points.n()];
    program.diag(theta, &Inputs::without_lags(points.clone()), &mut variances, &mut Scratch::default())?;
    Ok(variances)
}
