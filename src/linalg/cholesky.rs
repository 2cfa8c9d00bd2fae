//! Cholesky factorisation with the jitter policy, and what follows from the factor: solves, log-determinant, the
//! inverse in place, more rows.

use super::times::solve_lower;
use super::workspace::Workspace;
use super::{Matrix, add_scaled, dot, par, sum_of_logs};
use crate::threads::Threads;

/// The smallest jitter tried, relative to the mean of the diagonal.
pub const JITTER_FIRST: f64 = 1e-10;
/// The largest jitter tried.
pub const JITTER_LAST: f64 = 1e-4;

/// The factor L of a positive definite matrix A = L Lᵀ, with what had to be added to its diagonal.
#[derive(Debug, Clone, Default)]
pub struct Cholesky {
    l: Matrix,
    jitter: f64,
    /// Room to work in, and what the factorisation left there for the inverse.
    workspace: Workspace,
}

/// The lower triangle of A⁻¹, and the other buffer, for the next factorisation.
#[derive(Debug, Clone, Default)]
pub struct Inverse {
    /// Lower triangle of A⁻¹.
    pub inverse: Matrix,
    /// A buffer with nothing of interest in it.
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
    pub fn factor(a: Matrix, fill: impl FnMut(&mut Matrix), threads: Threads) -> Result<Cholesky, Failure> {
        let factor = Self::factor_with(a, Matrix::default(), fill, threads)?;
        Ok(Cholesky { workspace: Workspace::default(), ..factor })
    }

    /// The same with another buffer to work in. What is left there makes the inverse cheaper; both come back with it, or
    /// by [`Cholesky::into_buffers`].
    ///
    /// # Errors
    /// As [`Cholesky::factor`]. Both buffers are lost in that case.
    pub fn factor_with(
        mut a: Matrix,
        spare: Matrix,
        mut fill: impl FnMut(&mut Matrix),
        threads: Threads,
    ) -> Result<Cholesky, Failure> {
        let n = a.rows();
        let mut workspace = Workspace::new(spare);
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
            match workspace.factor(&mut a, threads) {
                Ok(()) => return Ok(Cholesky { l: a, jitter, workspace }),
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
    pub fn factor_once(a: Matrix, fill: impl FnMut(&mut Matrix), threads: Threads) -> Result<Cholesky, Failure> {
        let factor = Self::factor_once_with(a, Matrix::default(), fill, threads)?;
        Ok(Cholesky { workspace: Workspace::default(), ..factor })
    }

    /// The same with another buffer to work in, as [`Cholesky::factor_with`].
    ///
    /// # Errors
    /// As [`Cholesky::factor_once`]. Both buffers are lost in that case.
    pub fn factor_once_with(
        mut a: Matrix,
        spare: Matrix,
        mut fill: impl FnMut(&mut Matrix),
        threads: Threads,
    ) -> Result<Cholesky, Failure> {
        fill(&mut a);
        let (finite, mut workspace) = (a.trace().is_finite(), Workspace::new(spare));
        match workspace.factor(&mut a, threads) {
            Ok(()) if finite => Ok(Cholesky { l: a, jitter: 0.0, workspace }),
            Ok(()) => Err(Failure { pivot: 0, jitter: 0.0, non_finite: true }),
            Err(pivot) => {
                fill(&mut a);
                let finite = (0..a.rows()).all(|j| a.column(j)[j..].iter().all(|v| v.is_finite()));
                Err(Failure { pivot, jitter: 0.0, non_finite: !finite })
            }
        }
    }

    /// Entries of the second buffer that factor and inverse of n rows work in.
    pub fn room(n: usize) -> usize {
        Workspace::room(n)
    }

    /// A factor that was computed before; none if its lower triangle cannot be one.
    pub fn from_factor(l: Matrix) -> Option<Cholesky> {
        let n = l.rows();
        let column = |j: usize| l.column(j)[j] > 0.0 && l.column(j)[j..].iter().all(|v| v.is_finite());
        (l.columns() == n && (0..n).all(column)).then_some(Self { l, ..Self::default() })
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

    /// The buffer to work in, given back.
    pub fn take_spare(&mut self) -> Matrix {
        std::mem::take(&mut self.workspace).into_memory()
    }

    /// The buffers, given back.
    pub fn into_buffers(self) -> (Matrix, Matrix) {
        (self.l, self.workspace.into_memory())
    }

    /// log |A|
    pub fn log_det(&self) -> f64 {
        2.0 * sum_of_logs((0..self.n()).map(|i| self.l[(i, i)]))
    }

    /// b ← L⁻¹ b
    pub fn half_solve(&self, b: &mut [f64]) {
        let n = self.n();
        for j in 0..n {
            let column = self.l.column(j);
            b[j] /= column[j];
            let pivot = b[j];
            add_scaled(&mut b[j + 1..n], -pivot, &column[j + 1..]);
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
        solve_lower(self.l.view(), b.view_mut(), par);
    }

    /// L z, which gives samples from standard normal numbers.
    pub fn multiply(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n()];
        for (j, &z) in z.iter().enumerate().take(self.n()) {
            add_scaled(&mut out[j..], z, &self.l.column(j)[j..]);
        }
        out
    }

    /// W = L⁻¹ in the memory of a matrix; its upper triangle is nought. Cheaper where the factorisation had a buffer to work in.
    pub fn inverse_factor(&mut self, mut w: Matrix, threads: Threads) -> Matrix {
        w.reshape(self.n(), self.n());
        self.workspace.inverse_factor(&self.l, &mut w, threads);
        w
    }

    /// A⁻¹ in the place of the factor, with another buffer to work in, where the factorisation did not have one.
    pub fn into_inverse(self, spare: Matrix, threads: Threads) -> Inverse {
        self.into_inverse_and_solution(&[], spare, threads).0
    }

    /// The same, with L⁻¹ b and A⁻¹ b. Where the inverse is wanted anyway, they are products with L⁻¹, which threads can
    /// share; substitution is one long chain.
    pub fn into_inverse_and_solution(
        self,
        b: &[f64],
        spare: Matrix,
        threads: Threads,
    ) -> (Inverse, Vec<f64>, Vec<f64>) {
        let mut inverse = self.l;
        let mut workspace = self.workspace.or(spare);
        let (half, whole) = workspace.inverse(&mut inverse, b, threads);
        (Inverse { inverse, spare: workspace.into_memory() }, half, whole)
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
        Workspace::default().factor(&mut rest, Threads::All).map_err(failed)?;
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
