//! The exact process without its n×n matrix: products with K are computed block by block and forgotten. Conjugate
//! gradients give K⁻¹y, Lanczos' method the logarithm of the determinant, and random vectors the gradient. All of it
//! tends to the exact answer as the tolerance shrinks and rank and number of vectors grow; the same seed gives the same
//! numbers.

use super::exact::LN_2PI;
use super::preconditioner::Preconditioner;
use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::linalg::{ConjugateGradients, Matrix, SolvedMany, conjugate_gradients_many, product};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;

/// Rows and columns of a block of K.
const BLOCK: usize = 1024;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Residuals relative to their right-hand sides.
    pub tolerance: f64,
    /// The most steps of conjugate gradients.
    pub steps: usize,
    /// Rank of the preconditioner.
    pub rank: usize,
    /// Random vectors.
    pub probes: usize,
    /// Their seed.
    pub seed: u64,
}

impl Default for Effort {
    /// What gave the gradient to 2 % where it could be compared (`docs/performance.md`).
    fn default() -> Self {
        Self { tolerance: 1e-2, steps: 400, rank: 500, probes: 8, seed: 0 }
    }
}

/// An exact process over fixed data that never holds its matrix.
#[derive(Debug)]
pub struct Iterative<'a> {
    program: &'a Program,
    y: &'a [f64],
    /// All rows, and the same in blocks.
    x: Inputs,
    blocks: Vec<Inputs>,
    effort: Effort,
    threads: Threads,
    scratch: Scratch,
    /// Steps that the last solution took.
    pub steps: usize,
    /// The largest residual of the last solution, relative to its right-hand side.
    pub residual: f64,
}

impl<'a> Iterative<'a> {
    /// A process over these inputs and targets (standardised by whoever calls).
    ///
    /// # Errors
    /// When sizes do not fit or the effort makes no sense.
    pub fn new(program: &'a Program, x: &Points, y: &'a [f64], effort: Effort, threads: Threads) -> Result<Self> {
        if x.n() != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: x.n(), found: y.len() }.into());
        }
        if y.is_empty() {
            return Err(ErrorKind::TooFewRows { found: 0, needed: 1 }.into());
        }
        if !(effort.tolerance > 0.0 && effort.steps > 0 && effort.probes > 0) {
            let message = "tolerance, steps and number of random vectors must be positive";
            return Err(Error::option("effort", message));
        }
        let block = |start: usize| Inputs::without_lags(x.slice(start..x.n().min(start + BLOCK)));
        let blocks = (0..x.n()).step_by(BLOCK).map(block).collect();
        let (x, scratch) = (Inputs::without_lags(x.clone()), Scratch::default());
        Ok(Self { program, y, x, blocks, effort, threads, scratch, steps: 0, residual: 0.0 })
    }

    /// Bytes that an evaluation of n rows needs beyond the data.
    pub fn memory(n: usize, effort: Effort) -> usize {
        let vectors = 8 * (effort.probes + 1) + 2 * (1 + 2 * effort.probes + effort.rank) + effort.rank;
        8 * (n * vectors + 3 * BLOCK * BLOCK) + (16 << 20)
    }

    /// V ← (K + σ²I) V, block by block; each block serves both of its sides.
    fn apply(&mut self, theta: &[f64], noise: f64, diagonal: &[f64], v: &Matrix, out: &mut Matrix) -> Result<()> {
        let Self { program, blocks, threads, scratch, .. } = self;
        for i in 0..v.columns() {
            out.column_mut(i).iter_mut().zip(v.column(i)).for_each(|(o, v)| *o = noise * v);
        }
        let mut k = Matrix::default();
        for (c, columns) in blocks.iter().enumerate() {
            for (r, rows) in blocks.iter().enumerate().skip(c) {
                k.reshape(rows.n(), columns.n());
                let stride = k.stride();
                program.cross(theta, rows, columns, k.values_mut(), stride, scratch, *threads)?;
                if r == c {
                    // Across two sets no row is the same as another; here each is the same as itself.
                    (0..rows.n()).for_each(|i| k[(i, i)] = diagonal[c * BLOCK + i]);
                } else {
                    product::add_times_transposed(out, r * BLOCK, v, c * BLOCK, &k, *threads);
                }
                product::add_times(out, c * BLOCK, v, r * BLOCK, &k, *threads);
            }
        }
        Ok(())
    }

    fn solve(&mut self, theta: &[f64], noise: f64, b: &Matrix, p: &Preconditioner) -> Result<SolvedMany> {
        let (threads, effort) = (self.threads, self.effort);
        let mut diagonal = vec![0.0; self.y.len()];
        self.program.diag(theta, &self.x, &mut diagonal, &mut self.scratch)?;
        let limits = ConjugateGradients { tolerance: effort.tolerance, steps: effort.steps };
        let apply = |v: &Matrix, out: &mut Matrix| self.apply(theta, noise, &diagonal, v, out);
        let solved = conjugate_gradients_many(apply, |r, z| p.solve(r, z, threads), b, limits)?;
        (self.steps, self.residual) = (solved.steps, solved.residual);
        Ok(solved)
    }

    fn check(noise: f64) -> Result<()> {
        if noise > 0.0 && noise.is_finite() {
            return Ok(());
        }
        Err(Error::option("noise", format!("an iterative solution needs a positive variance: {noise}")))
    }

    /// α = (K + σ²I)⁻¹y
    ///
    /// # Errors
    /// When the noise is not positive or sizes do not fit.
    pub fn alpha(&mut self, theta: &[f64], noise: f64) -> Result<Vec<f64>> {
        Self::check(noise)?;
        let (rank, threads) = (self.effort.rank, self.threads);
        let (p, _) = Preconditioner::new(self.program, (theta, noise), &self.x, rank, (1, 0), threads)?;
        let b = Matrix::from_fn(1, self.y.len(), |_, i| self.y[i]);
        let solved = self.solve(theta, noise, &b, &p)?;
        Ok((0..self.y.len()).map(|i| solved.x[(0, i)]).collect())
    }

    /// An estimate of the evidence and of its gradient in θ (overwritten) and in the noise variance (returned last).
    ///
    /// With z of covariance P, u = K⁻¹z and w = P⁻¹z (noise within K), E (u − w)wᵀ = K⁻¹ − P⁻¹, so
    ///
    /// log|K| ≈ log|P| + mean of zᵀP^{-½} log(P^{-½}KP^{-½}) P^{-½}z;   ∂/∂K = ½(ααᵀ − P⁻¹ − mean of (u − w)wᵀ)
    ///
    /// # Errors
    /// When the noise is not positive or sizes do not fit.
    pub fn gradient(&mut self, theta: &[f64], noise: f64, gradient: &mut [f64]) -> Result<(f64, f64)> {
        Self::check(noise)?;
        let (n, effort, threads) = (self.y.len(), self.effort, self.threads);
        let t = effort.probes;
        let (p, z) =
            Preconditioner::new(self.program, (theta, noise), &self.x, effort.rank, (t, effort.seed), threads)?;
        let b = Matrix::from_fn(t + 1, n, |v, i| if v == 0 { self.y[i] } else { z[(v - 1, i)] });
        let solved = self.solve(theta, noise, &b, &p)?;
        let quadratic: f64 = (0..n).map(|i| self.y[i] * solved.x[(0, i)]).sum();
        let beyond = (1..=t).map(|v| solved.log_quadrature(v)).sum::<f64>() / t as f64;
        let value = -0.5 * (quadratic + p.log_det + beyond + n as f64 * LN_2PI);

        // Every pair's adjoint is a product of what is known of its two rows.
        let mut w = Matrix::zeros(t, n);
        p.solve(&z, &mut w, threads);
        let (rank, share) = (p.s.rows(), 1.0 / (2 * t) as f64);
        let size = 1 + rank + 2 * t;
        let (mut left, mut right) = (Matrix::zeros(size, n), Matrix::zeros(size, n));
        let mut in_noise = -p.trace();
        for i in 0..n {
            let (u, w, s) = (solved.x.column(i), w.column(i), p.s.column(i));
            let (a, b) = (left.column_mut(i), right.column_mut(i));
            (a[0], b[0]) = (u[0], u[0]);
            (0..rank).for_each(|k| (a[1 + k], b[1 + k]) = (s[k], s[k]));
            for k in 0..t {
                let (first, second) = (1 + rank + k, 1 + rank + t + k);
                let gap = u[k + 1] - w[k];
                (a[first], b[first]) = (gap, -share * w[k]);
                (a[second], b[second]) = (w[k], -share * gap);
                in_noise -= gap * w[k] / t as f64;
            }
            in_noise += u[0] * u[0];
        }
        gradient.fill(0.0);
        let Self { program, blocks, scratch, .. } = self;
        let mut k = Matrix::default();
        for (c, columns) in blocks.iter().enumerate() {
            for (r, rows) in blocks.iter().enumerate().skip(c) {
                let of = |block: usize, rows: &Inputs| (block * BLOCK, rows.n());
                product::columns_times(&mut k, (&left, of(r, rows)), (&right, of(c, columns)), threads);
                let (k, own) = (&k, &p.inverse[c * BLOCK..]);
                let adjoint = |j: usize, i: usize, out: &mut [f64]| {
                    out.copy_from_slice(&k.column(j)[i..i + out.len()]);
                    // A pair stands for two entries, a row with itself for one.
                    if r == c && i == j {
                        out[0] = 0.5 * (out[0] - own[j]);
                    }
                };
                match r == c {
                    true => program.pullback_gram(theta, rows, adjoint, gradient, None, scratch, threads)?,
                    false => program.pullback_cross(
                        theta,
                        (rows, columns),
                        adjoint,
                        gradient,
                        (None, None),
                        scratch,
                        threads,
                    )?,
                }
            }
        }
        Ok((value, 0.5 * in_noise))
    }
}
