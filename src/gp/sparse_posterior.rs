//! Predictions of the sparse process. All it keeps is of size M: the rows themselves are no longer needed.

use super::bound::{Basis, Form, Jitter, Solution, Statistics};
use super::exact::indefinite;
use super::inducing::check_number;
use super::predict::Prediction;
use super::rows::Rows;
use super::sparse::{Cache, SparseTimings, Timed, accumulate};
use crate::data::Points;
use crate::error::{ErrorKind, Result};
use crate::linalg::{Cholesky, Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Test points handled at a time: their cross matrix is what predictions need memory for.
const BLOCK: usize = 1024;

/// A sparse process that has seen its rows.
#[derive(Debug, Clone)]
pub struct SparsePosterior {
    program: Program,
    theta: Vec<f64>,
    noise: f64,
    basis: Basis,
    /// The factor of B = I + σ⁻² L⁻¹ΦL⁻ᵀ.
    white: Cholesky,
    weights: Vec<f64>,
    bound: f64,
}

impl SparsePosterior {
    /// Conditions on rows, in one pass over them.
    ///
    /// # Errors
    /// As [`super::Sparse::new`] and [`super::Sparse::bound`].
    pub fn new(
        program: Program,
        theta: Vec<f64>,
        noise: f64,
        rows: &dyn Rows,
        z: &Points,
        jitter: Jitter,
    ) -> Result<Self> {
        if rows.d() != program.d() {
            return Err(ErrorKind::Size { what: "input columns", expected: program.d(), found: rows.d() }.into());
        }
        check_number(z.n(), rows.n())?;
        let (mut statistics, mut scratch) = (Statistics::default(), Scratch::default());
        let (timings, cache) = (&mut SparseTimings::default(), &mut Cache::new(0));
        let seen = &mut Timed { timings, cache };
        let at = (theta.as_slice(), noise, z);
        let basis = accumulate(&program, rows, at, jitter, &mut statistics, &mut scratch, seen, Threads::All)?;
        let solution = Solution::new(&basis, &mut statistics, noise, Threads::All)?;
        let Solution { value: bound, weights, white, .. } = solution;
        Ok(Self { program, theta, noise, basis, white, weights, bound })
    }

    /// The inducing points.
    pub fn inducing(&self) -> &Points {
        self.basis.z.points()
    }

    /// The noise variance.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The bound of the evidence.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// What was added to the diagonal of K_uu.
    pub fn jitter(&self) -> f64 {
        self.basis.jitter
    }

    /// In which basis the statistics were added up.
    pub fn form(&self) -> Form {
        self.basis.form
    }

    /// The weight of each inducing point in the mean.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// k(Z, x*) for a block of test points.
    fn cross(&self, block: &Inputs, k: &mut Matrix, scratch: &mut Scratch) -> Result<()> {
        k.reshape(self.basis.m(), block.n());
        let stride = k.stride();
        self.program.cross(&self.theta, &self.basis.z, block, k.values_mut(), stride, scratch, Threads::All)
    }

    fn fits(&self, points: &Points) -> Result<()> {
        let (expected, found) = (self.program.d(), points.d());
        if expected == found {
            return Ok(());
        }
        Err(ErrorKind::Size { what: "input columns", expected, found }.into())
    }

    fn blocks(
        &self,
        points: &Points,
        mut f: impl FnMut(&Inputs, &mut Matrix, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        self.fits(points)?;
        let (scratch, k) = (&mut Scratch::default(), &mut Matrix::default());
        for start in (0..points.n()).step_by(BLOCK) {
            let block = Inputs::without_lags(points.slice(start..points.n().min(start + BLOCK)));
            self.cross(&block, k, scratch)?;
            f(&block, k, scratch)?;
        }
        Ok(())
    }

    /// Means only: no triangular solve.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        let mut mean = Vec::with_capacity(points.n());
        self.blocks(points, |block, k, _| {
            mean.extend((0..block.n()).map(|j| dot(k.column(j), &self.weights)));
            Ok(())
        })?;
        Ok(mean)
    }

    /// Means and variances. Memory is bounded whatever the number of points.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        let mut out = Prediction::default();
        self.blocks(points, |block, k, scratch| {
            out.mean.extend((0..block.n()).map(|j| dot(k.column(j), &self.weights)));
            let mut v = vec![0.0; block.n()];
            self.program.diag(&self.theta, block, &mut v, scratch)?;
            // v = k** − |L⁻¹k*|² + |L_B⁻¹L⁻¹k*|²
            self.basis.factor.half_solve_matrix(k, Threads::All);
            v.iter_mut().enumerate().for_each(|(j, v)| *v -= dot(k.column(j), k.column(j)));
            self.white.half_solve_matrix(k, Threads::All);
            for (j, v) in v.iter().enumerate() {
                // Rounding must not make a variance negative.
                let v = (v + dot(k.column(j), k.column(j))).max(0.0);
                out.variance_f.push(v);
                out.variance_y.push(v + self.noise);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Mean and full covariance of f at some points: memory grows with their square.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn joint(&self, points: &Points) -> Result<(Vec<f64>, Matrix)> {
        self.fits(points)?;
        let (inputs, scratch, n) = (Inputs::without_lags(points.clone()), &mut Scratch::default(), points.n());
        let mut v = Matrix::default();
        self.cross(&inputs, &mut v, scratch)?;
        let mean = (0..n).map(|j| dot(v.column(j), &self.weights)).collect();
        let mut covariance = Matrix::zeros(n, n);
        let stride = covariance.stride();
        self.program.gram(&self.theta, &inputs, covariance.values_mut(), stride, scratch, Threads::All)?;
        self.basis.factor.half_solve_matrix(&mut v, Threads::All);
        let mut u = v.clone();
        self.white.half_solve_matrix(&mut u, Threads::All);
        for j in 0..n {
            for i in j..n {
                covariance[(i, j)] += dot(u.column(i), u.column(j)) - dot(v.column(i), v.column(j));
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
        let n = points.n();
        let factor = Cholesky::factor(Matrix::zeros(n, n), |a| a.clone_from(&covariance), Threads::All);
        let factor = factor.map_err(|f| indefinite(f, points))?;
        let mut draw = || {
            let z: Vec<f64> = (0..n).map(|_| StandardNormal.sample(rng)).collect();
            factor.multiply(&z).iter().zip(&mean).map(|(s, m)| s + m).collect()
        };
        Ok((0..count).map(|_| draw()).collect())
    }
}
