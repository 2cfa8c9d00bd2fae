//! An approximation of K + σ²I that is cheap to invert: the first rows R of the pivoted Cholesky factor, P = RᵀR + σ²I.
//! Blocks of vectors have the numbers of one row of the data together: k × n.

use super::exact::indefinite;
use super::inducing::pivoted;
use crate::error::Result;
use crate::linalg::{Cholesky, Matrix, dot, product};
use crate::program::{Inputs, Program};
use crate::threads::Threads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(super) struct Preconditioner {
    /// S = L⁻¹R with L Lᵀ = σ²I + RRᵀ, so that P⁻¹ = (I − SᵀS)/σ².
    pub s: Matrix,
    pub noise: f64,
    /// log |P|
    pub log_det: f64,
}

impl Preconditioner {
    /// The preconditioner, and random vectors of covariance P: every number ±1 before it is multiplied by a root of P.
    pub fn new(
        program: &Program,
        (theta, noise): (&[f64], f64),
        x: &Inputs,
        rank: usize,
        (probes, seed): (usize, u64),
        threads: Threads,
    ) -> Result<(Self, Matrix)> {
        let (n, rank) = (x.n(), rank.clamp(1, x.n()));
        let (mut s, _) = pivoted(program, theta, x, rank)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sign = || if rng.random_range(0..2) == 0 { 1.0 } else { -1.0 };
        // z = Rᵀg + σh
        let mut z = Matrix::zeros(probes, n);
        let sd = noise.sqrt();
        (0..n).for_each(|i| z.column_mut(i).iter_mut().for_each(|v| *v = sd * sign()));
        let mut g = Matrix::zeros(probes, rank);
        (0..rank).for_each(|i| g.column_mut(i).iter_mut().for_each(|v| *v = sign()));
        product::add_times(&mut z, 0, &g, 0, &s, threads);
        let transposed = Matrix::from_fn(n, rank, |i, j| s[(j, i)]);
        let fill = |c: &mut Matrix| {
            (0..rank).for_each(|j| c.column_mut(j).fill(0.0));
            product::add_gram(c, &transposed, threads);
            (0..rank).for_each(|j| c[(j, j)] += noise);
        };
        let l = Cholesky::factor_once(Matrix::zeros(rank, rank), fill, threads);
        let l = l.map_err(|f| indefinite(f, x.points()))?;
        l.half_solve_matrix(&mut s, threads);
        let log_det = l.log_det() + (n - rank) as f64 * noise.ln();
        Ok((Self { s, noise, log_det }, z))
    }

    /// P⁻¹V = (V − (V Sᵀ) S)/σ²
    pub fn solve(&self, v: &Matrix, out: &mut Matrix, threads: Threads) {
        let mut t = Matrix::zeros(v.rows(), self.s.rows());
        product::add_times_transposed(&mut t, 0, v, 0, &self.s, threads);
        let mut back = Matrix::zeros(v.rows(), v.columns());
        product::add_times(&mut back, 0, &t, 0, &self.s, threads);
        for i in 0..v.columns() {
            let pairs = v.column(i).iter().zip(back.column(i));
            out.column_mut(i).iter_mut().zip(pairs).for_each(|(o, (v, b))| *o = (v - b) / self.noise);
        }
    }

    /// tr P⁻¹
    pub fn trace(&self) -> f64 {
        let squares: f64 = (0..self.s.columns()).map(|i| dot(self.s.column(i), self.s.column(i))).sum();
        (self.s.columns() as f64 - squares) / self.noise
    }
}
