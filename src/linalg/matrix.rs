//! A dense matrix stored by columns.

use faer::{MatMut, MatRef};

/// A dense matrix stored by columns, each starting on a multiple of eight entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    stride: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// A matrix of noughts.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        let stride = stride(rows);
        Self { rows, columns, stride, values: vec![0.0; stride * columns] }
    }

    /// A matrix whose entries are given by a function of row and column.
    pub fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> f64) -> Self {
        let mut m = Self::zeros(rows, columns);
        for j in 0..columns {
            for i in 0..rows {
                m.values[j * m.stride + i] = f(i, j);
            }
        }
        m
    }

    /// Makes it this size; entries are whatever they were, or noughts.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns, self.stride) = (rows, columns, stride(rows));
        let len = self.stride * columns;
        if len > self.values.capacity() {
            // Memory that is new is nought without being written, and nothing old need be copied.
            self.values = Vec::new();
            self.values = vec![0.0; len];
        } else {
            self.values.resize(len, 0.0);
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Entries from one column to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All entries, columns `stride` apart.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The same, to be written.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// One column.
    pub fn column(&self, j: usize) -> &[f64] {
        &self.values[j * self.stride..j * self.stride + self.rows]
    }

    /// One column.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.values[j * self.stride..j * self.stride + self.rows]
    }

    /// Copies the lower triangle to the upper one.
    pub fn mirror(&mut self) {
        // In square blocks, so that both sides stay in cache.
        const SIDE: usize = 32;
        let n = self.rows.min(self.columns);
        for left in (0..n).step_by(SIDE) {
            for top in (left..n).step_by(SIDE) {
                for j in left..n.min(left + SIDE) {
                    for i in top.max(j + 1)..n.min(top + SIDE) {
                        self.values[i * self.stride + j] = self.values[j * self.stride + i];
                    }
                }
            }
        }
    }

    /// Σ of the entries of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.rows.min(self.columns)).map(|i| self[(i, i)]).sum()
    }

    pub(super) fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice_with_stride(&self.values, self.rows, self.columns, self.stride)
    }

    pub(super) fn view_mut(&mut self) -> MatMut<'_, f64> {
        MatMut::from_column_major_slice_with_stride_mut(&mut self.values, self.rows, self.columns, self.stride)
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        &self.values[j * self.stride + i]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        &mut self.values[j * self.stride + i]
    }
}

/// Whole cache lines, and no multiple of 512 entries, at which columns would fight for the same cache sets.
fn stride(rows: usize) -> usize {
    let lines = rows.next_multiple_of(8);
    if lines > 0 && lines.is_multiple_of(512) { lines + 8 } else { lines }
}

/// Σ log v of positive numbers, from the logarithms of a few products of them: as exact as the sum of single logarithms, and
/// several times as fast.
pub fn sum_of_logs(values: impl Iterator<Item = f64>) -> f64 {
    const SIGNIFICAND: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    // v = 2ᵉ s with 1 ≤ s < 2: a thousand of these s multiplied are below 2¹⁰⁰⁰.
    let (mut sum, mut exponents, mut product, mut count) = (0.0, 0_i64, 1.0, 0);
    for v in values {
        if !(v.is_normal() && v > 0.0) {
            sum += v.ln();
            continue;
        }
        exponents += ((v.to_bits() >> 52) & 0x7ff) as i64 - 1023;
        product *= f64::from_bits((v.to_bits() & SIGNIFICAND) | ONE);
        count += 1;
        if count == 1000 {
            sum += f64::ln(product);
            (product, count) = (1.0, 0);
        }
    }
    sum + product.ln() + exponents as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_products_are_sums_of_logarithms() {
        let values: Vec<f64> =
            (0..5000).map(|i| (f64::from(i) * 0.37).sin().abs() * 10f64.powi(i % 500 - 250) + 1e-300).collect();
        let plain: f64 = values.iter().map(|v| v.ln()).sum();
        let size: f64 = values.iter().map(|v| v.ln().abs()).sum();
        assert!((sum_of_logs(values.into_iter()) - plain).abs() < 1e-15 * size);
        assert_eq!(sum_of_logs([].into_iter()), 0.0);
        // What is no positive normal number is as the logarithm has it.
        let tiny = 5e-324;
        assert!((sum_of_logs([tiny, 3.0].into_iter()) - tiny.ln() - 3f64.ln()).abs() < 1e-12);
        assert_eq!(sum_of_logs([2.0, 0.0].into_iter()), f64::NEG_INFINITY);
        assert!(sum_of_logs([-2.0, -3.0].into_iter()).is_nan() && sum_of_logs([f64::NAN].into_iter()).is_nan());
    }
}
