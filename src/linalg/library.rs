//! Factor and inverse by the matrix library alone: for machines without the instructions of the blocked ones, and for
//! benchmarks to stand beside.

use super::{Matrix, dot, leave_wide_registers, par};
use crate::threads::Threads;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{self, LltError, LltRegularization};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, Spec};
use rayon::prelude::*;

/// Below this size a second thread costs more than it brings.
const LEAST_FACTOR: usize = 700;
const LEAST_INVERSE: usize = 300;
const LEAST_SOLVE: usize = 500;

/// Overwrites the lower triangle with its Cholesky factor.
///
/// # Errors
/// Where it is not positive definite: the failing pivot.
pub fn factor(a: &mut Matrix, threads: Threads) -> Result<(), usize> {
    let n = a.rows();
    let par = par(threads, n, LEAST_FACTOR);
    let mut memory = MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, par, Spec::default()));
    let stack = MemStack::new(&mut memory);
    let done = factor::cholesky_in_place(a.view_mut(), LltRegularization::default(), par, stack, Spec::default());
    leave_wide_registers();
    match done {
        Ok(_) => Ok(()),
        Err(LltError::NonPositivePivot { index }) => Err(index),
    }
}

/// W = L⁻¹; its upper triangle is nought.
pub fn inverse_factor(l: &Matrix, w: &mut Matrix, threads: Threads) {
    w.values_mut().fill(0.0);
    invert_lower_triangular(w.view_mut(), l.view(), par(threads, l.rows(), LEAST_INVERSE));
    leave_wide_registers();
}

/// Overwrites a factor L with the lower triangle of A⁻¹, with room to work in; L⁻¹b and A⁻¹b too, where there is a b.
pub fn inverse(l: &mut Matrix, room: &mut Matrix, b: &[f64], threads: Threads) -> (Vec<f64>, Vec<f64>) {
    let n = l.rows();
    room.reshape(n, n);
    let par = par(threads, n, LEAST_INVERSE);
    invert_lower_triangular(room.view_mut(), l.view(), par);
    leave_wide_registers();
    let solved = if b.is_empty() { Default::default() } else { solve_by(room, b, threads) };
    // A⁻¹ = L⁻ᵀ L⁻¹
    matmul(
        l.view_mut(),
        BlockStructure::TriangularLower,
        Accum::Replace,
        room.view().transpose(),
        BlockStructure::TriangularUpper,
        room.view(),
        BlockStructure::TriangularLower,
        1.0,
        par,
    );
    leave_wide_registers();
    solved
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
