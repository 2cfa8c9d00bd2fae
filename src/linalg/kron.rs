//! Kronecker products that are never formed: one matrix an axis, applied to a tensor axis by axis. A tensor is a plain
//! slice with the last axis running fastest.

use super::times::matmul;
use super::{Matrix, par};
use crate::threads::Threads;
use faer::{Accum, MatMut, MatRef};

/// Below this many multiplications a second thread costs more than it brings.
const LEAST_WORK: usize = 1 << 21;

/// Which way a matrix is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// M x
    Plain,
    /// Mᵀ x
    Transposed,
}

/// Room for the tensors between two axes.
#[derive(Debug, Clone, Default)]
pub struct KronScratch {
    from: Vec<f64>,
    to: Vec<f64>,
}

/// out ← (M₁ ⊗ … ⊗ M_D) x, or with every matrix transposed. Axes that shrink the tensor most come first.
///
/// # Panics
/// When the tensor has not as many entries as the matrices ask for.
pub fn kron_apply(
    factors: &[&Matrix],
    side: Side,
    x: &[f64],
    out: &mut Vec<f64>,
    scratch: &mut KronScratch,
    threads: Threads,
) {
    let (into, from): (Vec<usize>, Vec<usize>) = factors.iter().map(|m| sizes(m, side)).unzip();
    assert_eq!(x.len(), from.iter().product::<usize>(), "entries of the tensor");
    let mut order: Vec<usize> = (0..factors.len()).collect();
    order.sort_by(|&a, &b| (into[a] * from[b]).cmp(&(into[b] * from[a])));
    let mut shape = from;
    scratch.from.clear();
    scratch.from.extend_from_slice(x);
    for &axis in &order {
        let left: usize = shape[..axis].iter().product();
        let right: usize = shape[axis + 1..].iter().product();
        let (n, m) = (shape[axis], into[axis]);
        scratch.to.resize(left * m * right, 0.0);
        let view = match side {
            Side::Plain => factors[axis].view(),
            Side::Transposed => factors[axis].view().transpose(),
        };
        let par = par(threads, left * n * m * right, LEAST_WORK);
        if right == 1 {
            // One column for each of the leading cells.
            let x = MatRef::from_column_major_slice(&scratch.from, n, left);
            let y = MatMut::from_column_major_slice_mut(&mut scratch.to, m, left);
            matmul(y, Accum::Replace, view, x, 1.0, par);
        } else {
            for block in 0..left {
                let x = &scratch.from[block * n * right..(block + 1) * n * right];
                let y = &mut scratch.to[block * m * right..(block + 1) * m * right];
                let x = MatRef::from_column_major_slice(x, right, n);
                let y = MatMut::from_column_major_slice_mut(y, right, m);
                matmul(y, Accum::Replace, x, view.transpose(), 1.0, par);
            }
        }
        shape[axis] = m;
        std::mem::swap(&mut scratch.from, &mut scratch.to);
    }
    std::mem::swap(out, &mut scratch.from);
    out.truncate(shape.iter().product());
}

/// Entries out and in.
fn sizes(m: &Matrix, side: Side) -> (usize, usize) {
    match side {
        Side::Plain => (m.rows(), m.columns()),
        Side::Transposed => (m.columns(), m.rows()),
    }
}

/// The tensor as a matrix with one column for each place along an axis; its rows are the other places in order, each
/// times its weight.
pub fn unfold(shape: &[usize], axis: usize, x: &[f64], weights: &[f64], out: &mut Matrix) {
    let left: usize = shape[..axis].iter().product();
    let right: usize = shape[axis + 1..].iter().product();
    let n = shape[axis];
    out.reshape(left * right, n);
    for i in 0..n {
        let column = out.column_mut(i);
        for l in 0..left {
            let (start, rows) = ((l * n + i) * right, l * right..(l + 1) * right);
            for ((to, x), w) in column[rows.clone()].iter_mut().zip(&x[start..start + right]).zip(&weights[rows]) {
                *to = x * w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn random(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<f64> = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect();
        Matrix::from_fn(rows, columns, |i, j| values[i * columns + j])
    }

    #[test]
    fn axis_by_axis_is_the_dense_product() {
        let factors = [random(3, 5, 1), random(4, 2, 2), random(6, 7, 3)];
        let all: Vec<&Matrix> = factors.iter().collect();
        for d in 1..=3 {
            for side in [Side::Plain, Side::Transposed] {
                let part = &all[..d];
                let (rows, columns): (Vec<usize>, Vec<usize>) = part.iter().map(|m| sizes(m, side)).unzip();
                let n: usize = columns.iter().product();
                let x: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
                let mut out = vec![9.0; 400];
                kron_apply(part, side, &x, &mut out, &mut KronScratch::default(), Threads::All);
                assert_eq!(out.len(), rows.iter().product::<usize>());
                for (i, &found) in out.iter().enumerate() {
                    let mut expected = 0.0;
                    for (j, x) in x.iter().enumerate() {
                        let (mut i, mut j, mut entry) = (i, j, 1.0);
                        for axis in (0..d).rev() {
                            let (r, c) = (i % rows[axis], j % columns[axis]);
                            entry *= match side {
                                Side::Plain => part[axis][(r, c)],
                                Side::Transposed => part[axis][(c, r)],
                            };
                            (i, j) = (i / rows[axis], j / columns[axis]);
                        }
                        expected += entry * x;
                    }
                    assert!((found - expected).abs() < 1e-12, "{d} axes, {side:?}, {i}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn unfolding_keeps_every_entry_in_its_place() {
        let shape = [2, 3, 4];
        let x: Vec<f64> = (0..24).map(f64::from).collect();
        let mut out = Matrix::default();
        unfold(&shape, 1, &x, &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0], &mut out);
        assert_eq!((out.rows(), out.columns()), (8, 3));
        // Place (1, 2, 3) is entry 1·12 + 2·4 + 3, and row 1·4 + 3 of column 2.
        assert_eq!(out[(7, 2)], 46.0);
        assert_eq!(out[(1, 1)], 5.0);
    }
}
