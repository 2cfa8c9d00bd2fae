//! Cholesky factorisation with the jitter policy, and what follows from the factor: solves, log-determinant, the
//! inverse in place, more rows.

use super::{Matrix, dot, par};
use crate::threads::Threads;
use faer::Accum;
use faer::Spec;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{self, LltError, LltRegularization};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::{triangular_inverse, triangular_solve};
use rayon::prelude::*;

/// The smallest jitter tried, relative to the mean of the diagonal.
pub const JITTER_FIRST: f64 = 1e-10;
/// The largest jitter tried.
pub const JITTER_LAST: f64 = 1e-4;

/// Below this size a second thread costs more than it brings.
const LEAST_FACTOR: usize = 700;
const LEAST_INVERSE: usize = 300;
const LEAST_SOLVE: usize = 500;

/// The factor L of a positive definite matrix A = L Lᵀ, with what had to be added to its diagonal.
#[derive(Debug, Clone, Default)]
pub struct Cholesky {
    l: Matrix,
    jitter: f64,
}

/// The lower triangle of A⁻¹, and the other buffer, for the next factorisation.
#[derive(Debug, Clone, Default)]
pub struct Inverse {
    /// Lower triangle of A⁻¹.
    pub inverse: Matrix,
    /// A matrix of the same size with nothing of interest in it.
    pub spare: Matrix,
}

/// Why there is no factor: the pivot at which even the largest jitter failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// The row of the failing pivot.
    pub pivot: usize,
    /// The largest jitter that was tried, as an absolute number.
    pub jitter: f64,
    /// Is an entry of the matrix not finite?
    pub non_finite: bool,
}

impl Cholesky {
    /// Factors the matrix that `fill` writes to the lower triangle of `a`. Tried as it is first; on failure it is
    /// filled again and a jitter is added to the diagonal, from 1e-10 of its mean by factors of ten up to 1e-4.
    ///
    /// # Errors
    /// When the largest jitter fails or a number is not finite. The buffer is lost in that case.
    pub fn factor(mut a: Matrix, mut fill: impl FnMut(&mut Matrix), threads: Threads) -> Result<Cholesky, Failure> {
        let n = a.rows();
        let mut jitter = 0.0;
        let mut relative = JITTER_FIRST;
        loop {
            fill(&mut a);
            let mean = if n == 0 { 0.0 } else { a.trace() / n as f64 };
            if !mean.is_finite() {
                return Err(Failure { pivot: 0, jitter, non_finite: true });
            }
            for i in 0..n {
                a[(i, i)] += jitter;
            }
            match factor_in_place(&mut a, threads) {
                Ok(()) => return Ok(Cholesky { l: a, jitter }),
                Err(pivot) if relative > JITTER_LAST * 1.0001 => {
                    return Err(Failure { pivot, jitter, non_finite: false });
                }
                // A number that is not finite fails at any jitter.
                Err(pivot) => {
                    fill(&mut a);
                    let finite = (0..n).all(|j| a.column(j)[j..].iter().all(|v| v.is_finite()));
                    if !finite {
                        return Err(Failure { pivot, jitter, non_finite: true });
                    }
                    jitter = relative * mean;
                    relative *= 10.0;
                }
            }
        }
    }

    /// Factors the matrix that `fill` writes to the lower triangle of `a` as it is, for callers with a jitter of their own.
    ///
    /// # Errors
    /// When it is not positive definite or a number is not finite. The buffer is lost in that case.
    pub fn factor_once(
        mut a: Matrix,
        mut fill: impl FnMut(&mut Matrix),
        threads: Threads,
    ) -> Result<Cholesky, Failure> {
        fill(&mut a);
        let finite = a.trace().is_finite();
        match factor_in_place(&mut a, threads) {
            Ok(()) if finite => Ok(Cholesky { l: a, jitter: 0.0 }),
            Ok(()) => Err(Failure { pivot: 0, jitter: 0.0, non_finite: true }),
            Err(pivot) => {
                fill(&mut a);
                let finite = (0..a.rows()).all(|j| a.column(j)[j..].iter().all(|v| v.is_finite()));
                Err(Failure { pivot, jitter: 0.0, non_finite: !finite })
            }
        }
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.l.rows()
    }

    /// What was added to the diagonal.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// The factor: its lower triangle.
    pub fn l(&self) -> &Matrix {
        &self.l
    }

    /// The buffer, given back.
    pub fn into_buffer(self) -> Matrix {
        self.l
    }

    /// log |A|
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.n()).map(|i| self.l[(i, i)].ln()).sum::<f64>()
    }

    /// b ← L⁻¹ b
    pub fn half_solve(&self, b: &mut [f64]) {
        let n = self.n();
        for j in 0..n {
            let column = self.l.column(j);
            b[j] /= column[j];
            let pivot = b[j];
            for (b, l) in b[j + 1..n].iter_mut().zip(&column[j + 1..]) {
                *b -= pivot * l;
            }
        }
    }

    /// b ← L⁻ᵀ b
    pub fn half_solve_transposed(&self, b: &mut [f64]) {
        for j in (0..self.n()).rev() {
            let column = self.l.column(j);
            b[j] = (b[j] - dot(&column[j + 1..], &b[j + 1..self.n()])) / column[j];
        }
    }

    /// A⁻¹ b
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        self.half_solve(&mut x);
        self.half_solve_transposed(&mut x);
        x
    }

    /// B ← L⁻¹ B
    pub fn half_solve_matrix(&self, b: &mut Matrix, threads: Threads) {
        let par = par(threads, self.n().min(b.columns()), 64);
        triangular_solve::solve_lower_triangular_in_place(self.l.view(), b.view_mut(), par);
    }

    /// L z, which gives samples from standard normal numbers.
    pub fn multiply(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n()];
        for (j, &z) in z.iter().enumerate().take(self.n()) {
            for (o, l) in out[j..].iter_mut().zip(&self.l.column(j)[j..]) {
                *o += z * l;
            }
        }
        out
    }

    /// A⁻¹ in the place of the factor, with one other buffer.
    pub fn into_inverse(self, spare: Matrix, threads: Threads) -> Inverse {
        self.into_inverse_and_solution(&[], spare, threads).0
    }

    /// The same, with L⁻¹ b and A⁻¹ b. Where the inverse is wanted anyway, they are products with L⁻¹, which threads can
    /// share; substitution is one long chain.
    pub fn into_inverse_and_solution(
        self,
        b: &[f64],
        mut spare: Matrix,
        threads: Threads,
    ) -> (Inverse, Vec<f64>, Vec<f64>) {
        let (n, mut out) = (self.n(), self.l);
        spare.reshape(n, n);
        let par = par(threads, n, LEAST_INVERSE);
        triangular_inverse::invert_lower_triangular(spare.view_mut(), out.view(), par);
        let (half, whole) = if b.is_empty() { Default::default() } else { solve_by(&spare, b, threads) };
        // A⁻¹ = L⁻ᵀ L⁻¹
        matmul(
            out.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Replace,
            spare.view().transpose(),
            BlockStructure::TriangularUpper,
            spare.view(),
            BlockStructure::TriangularLower,
            1.0,
            par,
        );
        (Inverse { inverse: out, spare }, half, whole)
    }

    /// The factor of the matrix with more rows: `below` holds A₂₁ (new rows by old), `corner` the lower triangle of A₂₂.
    ///
    /// # Errors
    /// When the larger matrix is not positive definite; the factor is unchanged then.
    pub fn append(&mut self, below: &Matrix, corner: &Matrix) -> Result<(), Failure> {
        let (n, m) = (self.n(), corner.rows());
        // L₂₁ᵀ = L⁻¹ A₂₁ᵀ;   L₂₂ L₂₂ᵀ = A₂₂ − L₂₁ L₂₁ᵀ
        let mut side = Matrix::from_fn(n, m, |i, j| below[(j, i)]);
        self.half_solve_matrix(&mut side, Threads::All);
        let mut rest = Matrix::from_fn(m, m, |i, j| {
            if i < j {
                0.0
            } else {
                corner[(i, j)] + if i == j { self.jitter } else { 0.0 } - dot(side.column(i), side.column(j))
            }
        });
        let failed = |pivot| Failure { pivot: n + pivot, jitter: self.jitter, non_finite: false };
        factor_in_place(&mut rest, Threads::All).map_err(failed)?;
        let mut l = Matrix::zeros(n + m, n + m);
        for j in 0..n {
            l.column_mut(j)[..n].copy_from_slice(self.l.column(j));
            for i in 0..m {
                l[(n + i, j)] = side[(j, i)];
            }
        }
        for j in 0..m {
            l.column_mut(n + j)[n..].copy_from_slice(rest.column(j));
        }
        self.l = l;
        Ok(())
    }
}

/// W b and Wᵀ W b for a lower triangular W. Cut by size alone, so that any number of threads gives the same bits.
fn solve_by(w: &Matrix, b: &[f64], threads: Threads) -> (Vec<f64>, Vec<f64>) {
    const ROWS: usize = 128;
    let mut half = vec![0.0; w.rows()];
    let rows = |(block, out): (usize, &mut [f64])| {
        let first = block * ROWS;
        for (j, b) in b.iter().enumerate().take(first + out.len()) {
            let skip = j.saturating_sub(first);
            for (o, w) in out[skip..].iter_mut().zip(&w.column(j)[first + skip..]) {
                *o += w * b;
            }
        }
    };
    let column = |half: &[f64], j: usize| dot(&w.column(j)[j..], &half[j..]);
    if threads == Threads::All && w.rows() >= LEAST_SOLVE {
        half.par_chunks_mut(ROWS).enumerate().with_max_len(1).for_each(rows);
        let whole = (0..w.rows()).into_par_iter().with_min_len(32).map(|j| column(&half, j)).collect();
        return (half, whole);
    }
    half.chunks_mut(ROWS).enumerate().for_each(rows);
    let whole = (0..w.rows()).map(|j| column(&half, j)).collect();
    (half, whole)
}

/// Overwrites the lower triangle with the factor, or tells the failing pivot.
fn factor_in_place(a: &mut Matrix, threads: Threads) -> Result<(), usize> {
    let n = a.rows();
    let par = par(threads, n, LEAST_FACTOR);
    let mut memory = MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, par, Spec::default()));
    let stack = MemStack::new(&mut memory);
    match factor::cholesky_in_place(a.view_mut(), LltRegularization::default(), par, stack, Spec::default()) {
        Ok(_) if (0..n).all(|i| a[(i, i)].is_finite()) => Ok(()),
        Ok(_) => Err(0),
        Err(LltError::NonPositivePivot { index }) => Err(index),
    }
}
