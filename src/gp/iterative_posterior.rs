//! Predictions without the whole covariance, by whatever means the weights of all rows were found: means by these weights,
//! variances by inducing points (a stated approximation, which errs on the large side as the sparse process does).

use super::bound::Jitter;
use super::exact::indefinite;
use super::inducing::{Placing, place_inducing};
use super::iterative::{Effort, Iterative};
use super::predict::Prediction;
use super::rows::InMemory;
use super::sparse_posterior::SparsePosterior;
use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::linalg::{Cholesky, Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::Rng;

/// Pairs of a block of test points with all rows.
const BLOCK_PAIRS: usize = 1 << 21;
/// Inducing points that variances come from, and the rows among which they are chosen.
const RANK: usize = 500;
const POOL: usize = 10_000;

/// A process solved iteratively.
#[derive(Debug, Clone)]
pub struct IterativePosterior {
    program: Program,
    theta: Vec<f64>,
    x: Inputs,
    alpha: Vec<f64>,
    spread: SparsePosterior,
}

impl IterativePosterior {
    /// Conditions on data.
    ///
    /// # Errors
    /// As [`Iterative::alpha`] and [`SparsePosterior::new`].
    pub fn new(program: Program, theta: Vec<f64>, noise: f64, x: &Points, y: &[f64], effort: Effort) -> Result<Self> {
        let alpha = Iterative::new(&program, x, y, effort, Threads::All)?.alpha(&theta, noise)?;
        let step = x.n().div_ceil(POOL);
        let pool = x.select(&(0..x.n()).step_by(step).collect::<Vec<_>>());
        let m = super::count_distinct(&pool).min(RANK);
        let z = place_inducing(&pool, m, Placing::GreedyVariance(&program, &theta), effort.seed)?;
        let rows = InMemory::new(x, y)?;
        let spread = SparsePosterior::new(program.clone(), theta.clone(), noise, &rows, &z, Jitter::default())?;
        Ok(Self { program, theta, x: Inputs::without_lags(x.clone()), alpha, spread })
    }

    /// α by one factor of the whole covariance, which is let go: n² numbers, n³/3 multiplications.
    ///
    /// # Errors
    /// When the covariance is not positive definite as it is, or sizes do not fit.
    pub fn weights_by_factor(
        program: &Program,
        theta: &[f64],
        noise: f64,
        x: &Points,
        y: &[f64],
    ) -> Result<Vec<f64>> {
        let (n, inputs) = (x.n(), Inputs::new(x.clone()));
        if n != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: n, found: y.len() }.into());
        }
        let (mut failed, scratch) = (None, &mut Scratch::default());
        let fill = |k: &mut Matrix| {
            let stride = k.stride();
            failed = program.gram(theta, &inputs, k.values_mut(), stride, scratch, Threads::All).err();
            (0..n).for_each(|i| k[(i, i)] += noise);
        };
        let factor = Cholesky::factor_once(Matrix::zeros(n, n), fill, Threads::All);
        match failed {
            Some(error) => Err(error),
            None => Ok(factor.map_err(|f| indefinite(f, x))?.solve(y)),
        }
    }

    /// The process of weights that were computed before, which may come from a file.
    ///
    /// # Errors
    /// When sizes do not fit or a weight is not finite.
    pub fn from_weights(
        program: Program,
        theta: Vec<f64>,
        x: &Points,
        alpha: Vec<f64>,
        spread: SparsePosterior,
    ) -> Result<Self> {
        if alpha.len() != x.n() || x.d() != spread.d() {
            return Err(ErrorKind::Size { what: "weights", expected: x.n(), found: alpha.len() }.into());
        }
        if alpha.iter().any(|a| !a.is_finite()) {
            return Err(Error::option("weights", "one of them is not finite"));
        }
        Ok(Self { program, theta, x: Inputs::without_lags(x.clone()), alpha, spread })
    }

    /// Number of observations.
    pub fn n(&self) -> usize {
        self.alpha.len()
    }

    /// α: the weight of each observation in the mean.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// The process that variances come from.
    pub fn spread(&self) -> &SparsePosterior {
        &self.spread
    }

    /// Means only.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        let size = (BLOCK_PAIRS / self.n().max(1)).clamp(16, 512);
        let (mut mean, mut k, scratch) = (Vec::with_capacity(points.n()), Matrix::default(), &mut Scratch::default());
        for start in (0..points.n()).step_by(size) {
            let block = Inputs::without_lags(points.slice(start..points.n().min(start + size)));
            k.reshape(self.n(), block.n());
            let stride = k.stride();
            self.program.cross(&self.theta, &self.x, &block, k.values_mut(), stride, scratch, Threads::All)?;
            mean.extend((0..block.n()).map(|j| dot(k.column(j), &self.alpha)));
        }
        Ok(mean)
    }

    /// Means and variances, in bounded memory.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        Ok(Prediction { mean: self.mean(points)?, ..self.spread.predict(points)? })
    }

    /// Joint samples of f: those of the sparse process, moved to the means.
    ///
    /// # Errors
    /// As [`SparsePosterior::sample`].
    pub fn sample(&self, points: &Points, count: usize, rng: &mut impl Rng) -> Result<Vec<Vec<f64>>> {
        let (mean, theirs) = (self.mean(points)?, self.spread.mean(points)?);
        let mut samples = self.spread.sample(points, count, rng)?;
        for sample in &mut samples {
            sample.iter_mut().zip(mean.iter().zip(&theirs)).for_each(|(s, (m, t))| *s += m - t);
        }
        Ok(samples)
    }
}
