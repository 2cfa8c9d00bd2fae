//! An approximation of K + σ²I that is cheap to invert: the first rows R of the pivoted Cholesky factor, and on the
//! diagonal all that they leave, P = RᵀR + D. Blocks of vectors have the numbers of one row of the data together: k × n.

use super::exact::indefinite;
use super::inducing::pivoted;
use crate::error::Result;
use crate::linalg::{Cholesky, Matrix, dot, product};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(super) struct Preconditioner {
    /// S = L⁻¹R with L Lᵀ = I + RD⁻¹Rᵀ, every column divided by its D, so that P⁻¹ = D⁻¹ − SᵀS.
    pub s: Matrix,
    /// D⁻¹
    pub inverse: Vec<f64>,
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
        let mut d = vec![0.0; n];
        program.diag(theta, x, &mut d, &mut Scratch::default())?;
        d.iter_mut().enumerate().for_each(|(i, d)| *d = noise + (*d - dot(s.column(i), s.column(i))).max(0.0));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sign = || if rng.random_range(0..2) == 0 { 1.0 } else { -1.0 };
        // z = Rᵀg + D^½h
        let mut z = Matrix::zeros(probes, n);
        (0..n).for_each(|i| z.column_mut(i).iter_mut().for_each(|v| *v = d[i].sqrt() * sign()));
        let mut g = Matrix::zeros(probes, rank);
        (0..rank).for_each(|i| g.column_mut(i).iter_mut().for_each(|v| *v = sign()));
        product::add_times(&mut z, 0, &g, 0, &s, threads);
        let scaled = Matrix::from_fn(n, rank, |i, j| s[(j, i)] / d[i].sqrt());
        let fill = |c: &mut Matrix| {
            (0..rank).for_each(|j| c.column_mut(j).fill(0.0));
            product::add_gram(c, &scaled, threads);
            (0..rank).for_each(|j| c[(j, j)] += 1.0);
        };
        let l = Cholesky::factor_once(Matrix::zeros(rank, rank), fill, threads);
        let l = l.map_err(|f| indefinite(f, x.points()))?;
        l.half_solve_matrix(&mut s, threads);
        (0..n).for_each(|i| s.column_mut(i).iter_mut().for_each(|v| *v /= d[i]));
        let log_det = l.log_det() + d.iter().map(|d| d.ln()).sum::<f64>();
        Ok((Self { s, inverse: d.iter().map(|d| 1.0 / d).collect(), log_det }, z))
    }

    /// P⁻¹V = V D⁻¹ − (V Sᵀ) S
    pub fn solve(&self, v: &Matrix, out: &mut Matrix, threads: Threads) {
        let mut t = Matrix::zeros(v.rows(), self.s.rows());
        product::add_times_transposed(&mut t, 0, v, 0, &self.s, threads);
        let mut back = Matrix::zeros(v.rows(), v.columns());
        product::add_times(&mut back, 0, &t, 0, &self.s, threads);
        for (i, inverse) in self.inverse.iter().enumerate() {
            let pairs = v.column(i).iter().zip(back.column(i));
            out.column_mut(i).iter_mut().zip(pairs).for_each(|(o, (v, b))| *o = v * inverse - b);
        }
    }

    /// tr P⁻¹
    pub fn trace(&self) -> f64 {
        let squares: f64 = (0..self.s.columns()).map(|i| dot(self.s.column(i), self.s.column(i))).sum();
        self.inverse.iter().sum::<f64>() - squares
    }
}
