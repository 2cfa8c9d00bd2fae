//! Predictions of the sparse process. All it keeps is of size M: the rows themselves are no longer needed.

use super::bound::{Basis, Form, Jitter, Room, Solution, Statistics};
use super::exact::indefinite;
use super::inducing::check_number;
use super::predict::Prediction;
use super::rows::Rows;
use super::sparse::{Cache, SparseTimings, Timed, accumulate};
use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::linalg::{Cholesky, Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

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
    n: usize,
}

/// What a file keeps of a sparse process, beside its kernel and noise: the rest follows, to the bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Rows it has seen.
    pub rows: usize,
    /// Inducing points, column by column.
    pub inducing: Vec<f64>,
    /// The weight of each in the mean.
    pub weights: Vec<f64>,
    /// The lower triangle of the factor of B, column by column.
    pub white: Vec<f64>,
    /// The bound of the evidence.
    pub bound: f64,
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
        let Solution { value: bound, weights, mut white, .. } = solution;
        white.take_spare();
        Ok(Self { program, theta, noise, basis, white, weights, bound, n: statistics.n })
    }

    /// What a file needs to keep.
    pub fn summary(&self) -> Summary {
        let l = self.white.l();
        Summary {
            rows: self.n,
            inducing: self.inducing().values().to_vec(),
            weights: self.weights.clone(),
            white: (0..l.columns()).flat_map(|j| l.column(j)[j..].iter().copied()).collect(),
            bound: self.bound,
        }
    }

    /// The process of a summary, which may come from a file: nothing about it is taken on trust.
    ///
    /// # Errors
    /// When sizes do not fit, or the numbers cannot be those of a process.
    pub fn from_summary(program: Program, theta: Vec<f64>, noise: f64, summary: Summary) -> Result<Self> {
        let m = summary.weights.len();
        check_number(m, summary.rows)?;
        let size = |what, expected, found| match expected == found {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Size { what, expected, found })),
        };
        size("entries of the factor", m * (m + 1) / 2, summary.white.len())?;
        if !(noise > 0.0 && noise.is_finite() && summary.bound.is_finite()) {
            return Err(Error::option("noise", format!("a sparse model needs a positive variance: {noise}")));
        }
        let z = Points::from_values(m, program.d(), summary.inducing)?;
        let (scratch, at) = (&mut Scratch::default(), (theta.as_slice(), &z));
        let basis = Basis::new(&program, at, Jitter::default(), scratch, &mut Room::default(), Threads::All)?;
        let mut l = Matrix::zeros(m, m);
        let mut next = summary.white.into_iter();
        for j in 0..m {
            l.column_mut(j)[j..].iter_mut().zip(&mut next).for_each(|(to, v)| *to = v);
        }
        let white = Cholesky::from_factor(l).ok_or_else(|| Error::option("white", "it is not a factor"))?;
        let (weights, bound, n) = (summary.weights, summary.bound, summary.rows);
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            return Err(Error::option("weights", format!("weight {at} is not finite")));
        }
        Ok(Self { program, theta, noise, basis, white, weights, bound, n })
    }

    /// Rows it has seen.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of input columns.
    pub fn d(&self) -> usize {
        self.program.d()
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
        let mut mean = Vec::with_capacity(points.n());
        self.blocks(points, |block, k, _| {
            mean.extend((0..block.n()).map(|j| dot(k.column(j), &self.weights)));
            Ok(())
        })?;
        Ok(mean)
    }

    /// Of each test point: the mean, k** − |L⁻¹k*|², which inducing points cannot tell, and |L_B⁻¹L⁻¹k*|², which rows
    /// have not told. The variance of f is the sum of both.
    fn moments(&self, points: &Points, mut take: impl FnMut(f64, f64, f64)) -> Result<()> {
        self.blocks(points, |block, k, scratch| {
            let mean: Vec<f64> = (0..block.n()).map(|j| dot(k.column(j), &self.weights)).collect();
            let mut rest = vec![0.0; block.n()];
            self.program.diag(&self.theta, block, &mut rest, scratch)?;
            self.basis.factor.half_solve_matrix(k, Threads::All);
            rest.iter_mut().enumerate().for_each(|(j, v)| *v -= dot(k.column(j), k.column(j)));
            self.white.half_solve_matrix(k, Threads::All);
            for (j, (mean, rest)) in mean.into_iter().zip(rest).enumerate() {
                take(mean, rest, dot(k.column(j), k.column(j)));
            }
            Ok(())
        })
    }

    /// Means and variances. Memory is bounded whatever the number of points.
    ///
    /// # Errors
    /// When the width of the points does not fit.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        let mut out = Prediction::default();
        self.moments(points, |mean, rest, untold| {
            // Rounding must not make a variance negative.
            let v = (rest + untold).max(0.0);
            out.mean.push(mean);
            out.variance_f.push(v);
            out.variance_y.push(v + self.noise);
        })?;
        Ok(out)
    }

    /// Leave-one-out predictions of the rows it was made from, in one more pass, with kernel, noise and inducing points
    /// held: each row's target, mean and variance of the target, in the order of the rows.
    ///
    /// With Q = K_fu K_uu⁻¹ K_uf the rows have the covariance Q + σ²I, of which [(Q + σ²I)⁻¹]ᵢᵢ = (1 − cᵢ/σ²)/σ², where
    /// cᵢ = |L_B⁻¹L⁻¹kᵢ|²; so yᵢ − μ₋ᵢ = (yᵢ − μᵢ)/(1 − cᵢ/σ²) and s²₋ᵢ = σ²/(1 − cᵢ/σ²) + kᵢᵢ − qᵢᵢ.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn leave_one_out(&self, rows: &dyn Rows, take: &mut dyn FnMut(f64, f64, f64)) -> Result<()> {
        rows.each(&mut |x, y| {
            let mut row = 0;
            self.moments(x, |mean, rest, untold| {
                // A row cannot tell more than all there is; rounding may say so.
                let left = (1.0 - untold / self.noise).max(1e-9);
                take(y[row], y[row] - (y[row] - mean) / left, self.noise / left + rest.max(0.0));
                row += 1;
            })
        })
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
