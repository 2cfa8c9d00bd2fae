//! Predictions: mean and variance of f and of y in blocks of test points, joint samples, appended observations.

use super::exact::indefinite;
use crate::data::Points;
use crate::error::{ErrorKind, Result};
use crate::linalg::{Cholesky, Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Test points handled at a time: their cross matrix is what predictions need memory for, on every thread.
const BLOCK: usize = 512;
const SMALLEST_BLOCK: usize = 64;
const BLOCK_PAIRS: usize = 1 << 21;

/// What rounding leaves of a covariance, as a share of the prior's variance.
const ROUNDING: f64 = 1e-10;

/// Predictions at some points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prediction {
    /// Mean of f, which is also that of y.
    pub mean: Vec<f64>,
    /// Variance of f.
    pub variance_f: Vec<f64>,
    /// Variance of y: noise added.
    pub variance_y: Vec<f64>,
}

/// A process that has seen its data: the factor and the weights that predictions need.
#[derive(Debug, Clone)]
pub struct Posterior {
    program: Program,
    theta: Vec<f64>,
    noise: f64,
    x: Inputs,
    y: Vec<f64>,
    factor: Cholesky,
    alpha: Vec<f64>,
}

impl Posterior {
    /// Conditions on data; `known_noise` is added to the common noise row by row.
    ///
    /// # Errors
    /// When the matrix cannot be factorised or sizes do not fit.
    pub fn new(
        program: Program,
        theta: Vec<f64>,
        noise: f64,
        x: Points,
        y: Vec<f64>,
        known_noise: Option<&[f64]>,
    ) -> Result<Self> {
        let n = x.n();
        if n != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: n, found: y.len() }.into());
        }
        let x = Inputs::new(x);
        let (mut failed, scratch) = (None, &mut Scratch::default());
        let fill = |k: &mut Matrix| {
            let stride = k.stride();
            failed = program.gram(&theta, &x, k.values_mut(), stride, scratch, Threads::All).err();
            for i in 0..n {
                k[(i, i)] += noise + known_noise.map_or(0.0, |v| v[i]);
            }
        };
        let factor = Cholesky::factor(Matrix::zeros(n, n), fill, Threads::All);
        if let Some(error) = failed {
            return Err(error);
        }
        let factor = factor.map_err(|f| indefinite(f, x.points()))?;
        let alpha = factor.solve(&y);
        Ok(Self { program, theta, noise, x, y, factor, alpha })
    }

    /// Number of observations.
    pub fn n(&self) -> usize {
        self.y.len()
    }

    /// The common noise variance.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The jitter the factorisation needed.
    pub fn jitter(&self) -> f64 {
        self.factor.jitter()
    }

    /// α = K⁻¹y: the weight of each observation in the mean.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// k(X, x*) for some test points.
    fn cross(&self, block: &Inputs, k: &mut Matrix, scratch: &mut Scratch, threads: Threads) -> Result<()> {
        k.reshape(self.n(), block.n());
        let stride = k.stride();
        self.program.cross(&self.theta, &self.x, block, k.values_mut(), stride, scratch, threads)
    }

    /// The variance of f at each point before anything was observed.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn prior(&self, points: &Points) -> Result<Vec<f64>> {
        super::process::prior(&self.program, &self.theta, points)
    }

    /// Means only: no triangular solve.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        let parts = self.blocks(points, |block, k, scratch, threads| {
            self.cross(block, k, scratch, threads)?;
            Ok((0..block.n()).map(|j| dot(k.column(j), &self.alpha)).collect::<Vec<f64>>())
        })?;
        Ok(parts.concat())
    }

    /// Means and variances. Memory is bounded whatever the number of points.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        let parts = self.blocks(points, |block, k, scratch, threads| {
            self.cross(block, k, scratch, threads)?;
            let mut part = Prediction::default();
            part.mean.extend((0..block.n()).map(|j| dot(k.column(j), &self.alpha)));
            // v = k** − |L⁻¹k*|²
            let mut prior = vec![0.0; block.n()];
            self.program.diag(&self.theta, block, &mut prior, scratch)?;
            self.factor.half_solve_matrix(k, threads);
            for (j, prior) in prior.iter().enumerate() {
                // Rounding must not make a variance negative.
                let v = (prior - dot(k.column(j), k.column(j))).max(0.0);
                part.variance_f.push(v);
                part.variance_y.push(v + self.noise);
            }
            Ok(part)
        })?;
        let mut out = Prediction::default();
        for part in parts {
            out.mean.extend(part.mean);
            out.variance_f.extend(part.variance_f);
            out.variance_y.extend(part.variance_y);
        }
        Ok(out)
    }

    /// Does something for every block of test points: beside each other where there are blocks for every thread, else
    /// one after another on all threads.
    fn blocks<T: Send>(
        &self,
        points: &Points,
        f: impl Fn(&Inputs, &mut Matrix, &mut Scratch, Threads) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        if points.d() != self.program.d() {
            let (expected, found) = (self.program.d(), points.d());
            return Err(ErrorKind::Size { what: "input columns", expected, found }.into());
        }
        let size = (BLOCK_PAIRS / self.n().max(1)).clamp(SMALLEST_BLOCK, BLOCK);
        let starts: Vec<usize> = (0..points.n()).step_by(size).collect();
        let block = |start: usize| Inputs::without_lags(points.slice(start..points.n().min(start + size)));
        if starts.len() < 2 * rayon::current_num_threads() {
            let (k, scratch) = (&mut Matrix::zeros(0, 0), &mut Scratch::default());
            return starts.into_iter().map(|start| f(&block(start), k, scratch, Threads::All)).collect();
        }
        let state = || (Matrix::zeros(0, 0), Scratch::default());
        let work = |(k, scratch): &mut (Matrix, Scratch), start| f(&block(start), k, scratch, Threads::One);
        starts.into_par_iter().map_init(state, work).collect()
    }

    /// Mean and full covariance of f at some points: memory grows with their square.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn joint(&self, points: &Points) -> Result<(Vec<f64>, Matrix)> {
        if points.d() != self.program.d() {
            let (expected, found) = (self.program.d(), points.d());
            return Err(ErrorKind::Size { what: "input columns", expected, found }.into());
        }
        let (inputs, scratch) = (Inputs::new(points.clone()), &mut Scratch::default());
        let m = points.n();
        let mut k = Matrix::zeros(0, 0);
        self.cross(&inputs, &mut k, scratch, Threads::All)?;
        let mean = (0..m).map(|j| dot(k.column(j), &self.alpha)).collect();
        let mut covariance = Matrix::zeros(m, m);
        let stride = covariance.stride();
        self.program.gram(&self.theta, &inputs, covariance.values_mut(), stride, scratch, Threads::All)?;
        self.factor.half_solve_matrix(&mut k, Threads::All);
        for j in 0..m {
            for i in j..m {
                covariance[(i, j)] -= dot(k.column(i), k.column(j));
            }
        }
        covariance.mirror();
        Ok((mean, covariance))
    }

    /// Joint samples of f at some points.
    ///
    /// # Errors
    /// When the width of the points does not fit, or the covariance cannot be factorised under the jitter policy.
    pub fn sample(&self, points: &Points, count: usize, rng: &mut impl Rng) -> Result<Vec<Vec<f64>>> {
        let (mean, covariance) = self.joint(points)?;
        let m = points.n();
        // Where the data leave nothing open, rounding of the prior's size is all there is.
        let mut prior = vec![0.0; m];
        self.program.diag(&self.theta, &Inputs::new(points.clone()), &mut prior, &mut Scratch::default())?;
        let fill = |a: &mut Matrix| {
            a.clone_from(&covariance);
            (0..m).for_each(|i| a[(i, i)] = a[(i, i)].max(0.0) + ROUNDING * prior[i]);
        };
        let factor = Cholesky::factor(Matrix::zeros(m, m), fill, Threads::All);
        let factor = factor.map_err(|f| indefinite(f, points))?;
        let mut draw = || {
            let z: Vec<f64> = (0..m).map(|_| StandardNormal.sample(rng)).collect();
            factor.multiply(&z).iter().zip(&mean).map(|(s, m)| s + m).collect()
        };
        Ok((0..count).map(|_| draw()).collect())
    }

    /// Shifts of the level over rows in this order, from one row up to before another, at most `widest` later or to the
    /// end: (from, to, size, score). The size s is by generalised least squares, aᵀK⁻¹y / aᵀK⁻¹a of the indicator a of
    /// those rows; the score is that in its standard errors, aᵀK⁻¹y / √(aᵀK⁻¹a).
    pub(crate) fn shifts(&self, order: &[usize], widest: usize) -> Vec<(usize, usize, f64, f64)> {
        let n = self.n();
        let mut steps = Matrix::zeros(n, n);
        for (from, _) in order.iter().enumerate() {
            order[from..].iter().for_each(|&row| steps[(row, from)] = 1.0);
        }
        self.factor.half_solve_matrix(&mut steps, Threads::All);
        let mut y = self.y.clone();
        self.factor.half_solve(&mut y);
        let column = |c: usize| &steps.column(c)[..n];
        let with: Vec<f64> = (0..n).map(|c| dot(column(c), &y)).collect();
        let own: Vec<f64> = (0..n).map(|c| dot(column(c), column(c))).collect();
        let one = |from: usize, to: usize| {
            // What lasts to the end is a step; what does not is the difference of two.
            let (with, own) = match to {
                to if to == n => (with[from], own[from]),
                to => (with[from] - with[to], own[from] + own[to] - 2.0 * dot(column(from), column(to))),
            };
            (from, to, with / own, with / own.sqrt())
        };
        let ends = |from: usize| (from + 1..n.min(from + widest + 1)).chain([n]).map(move |to| (from, to));
        (0..n).flat_map(ends).map(|(from, to)| one(from, to)).collect()
    }

    /// Takes in more observations, in O(n²) each, with no refit of the parameters.
    ///
    /// # Errors
    /// When sizes do not fit or the larger matrix is not positive definite; nothing has changed then.
    pub fn append(&mut self, x: &Points, y: &[f64]) -> Result<()> {
        if x.d() != self.program.d() || x.n() != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: x.n(), found: y.len() }.into());
        }
        let (inputs, scratch) = (Inputs::new(x.clone()), &mut Scratch::default());
        let m = x.n();
        let mut below = Matrix::zeros(m, self.n());
        let stride = below.stride();
        self.program.cross(&self.theta, &inputs, &self.x, below.values_mut(), stride, scratch, Threads::All)?;
        let mut corner = Matrix::zeros(m, m);
        let stride = corner.stride();
        self.program.gram(&self.theta, &inputs, corner.values_mut(), stride, scratch, Threads::All)?;
        for i in 0..m {
            corner[(i, i)] += self.noise;
        }
        self.factor.append(&below, &corner).map_err(|f| indefinite(f, x))?;
        let columns: Vec<Vec<f64>> = (0..x.d()).map(|c| [self.x.points().column(c), x.column(c)].concat()).collect();
        self.x = Inputs::new(Points::from_columns(&columns)?);
        self.y.extend_from_slice(y);
        self.alpha = self.factor.solve(&self.y);
        Ok(())
    }
}
