//! Products that come again and again, with memory that is kept between them: Σ AᵀA over chunks of rows, and chunks times a
//! matrix that stays the same. By slabs or by halves where the machine has the instructions, else by the library.

use super::Matrix;
use super::product;
#[cfg(target_arch = "x86_64")]
use super::{
    halves::Halves,
    level::Level,
    slabs::{Packed, Sum},
};
use crate::threads::Threads;

/// Below this many rows or columns a second thread costs more than it brings.
#[cfg(target_arch = "x86_64")]
const LEAST: usize = 128;

/// From this many rows and columns on, products with a matrix that stays are made by halves where panels are of 24 rows: the
/// right side is read twice as often, which panels of 12 rows wait for.
#[cfg(target_arch = "x86_64")]
const HALVED: usize = 500;

#[cfg(target_arch = "x86_64")]
fn parallel(threads: Threads, a: &Matrix) -> bool {
    threads == Threads::All && a.rows().min(a.columns()) >= LEAST && rayon::current_num_threads() > 1
}

/// Σ AᵀA, its lower triangle.
#[derive(Debug, Default)]
pub struct Gram {
    sum: Adding,
    /// Memory for the next sum.
    #[cfg(target_arch = "x86_64")]
    spare: [Matrix; 2],
}

#[derive(Debug)]
enum Adding {
    Library(Matrix),
    #[cfg(target_arch = "x86_64")]
    Slabs(Sum),
}

impl Default for Adding {
    fn default() -> Self {
        Self::Library(Matrix::default())
    }
}

impl Gram {
    /// Begins anew, for matrices of m columns.
    pub fn begin(&mut self, m: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(m) {
            if let Adding::Slabs(sum) = std::mem::take(&mut self.sum) {
                self.spare = sum.into_memory();
            }
            let [memory, room] = std::mem::take(&mut self.spare);
            self.sum = Adding::Slabs(Sum::new(level, m, memory, room));
            return;
        }
        self.sum = Adding::Library(Matrix::zeros(m, m));
    }

    /// Adds AᵀA, and Aᵀy to b.
    pub fn add(&mut self, a: &Matrix, y: &[f64], b: &mut [f64], threads: Threads) {
        match &mut self.sum {
            Adding::Library(sum) => {
                product::add_gram(sum, a, threads);
                let terms = product::transposed_times(a, y, threads);
                b.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            #[cfg(target_arch = "x86_64")]
            Adding::Slabs(sum) => sum.add(a, y, b, parallel(threads, a)),
        }
    }

    /// The sum, in the memory of a matrix; the next one begins anew.
    pub fn finish(&mut self, memory: Matrix, threads: Threads) -> Matrix {
        let _ = (&memory, threads);
        match std::mem::take(&mut self.sum) {
            Adding::Library(sum) => sum,
            #[cfg(target_arch = "x86_64")]
            Adding::Slabs(mut sum) => {
                let out = sum.matrix(memory, threads == Threads::All && rayon::current_num_threads() > 1);
                self.spare = sum.into_memory();
                out
            }
        }
    }
}

/// What the errors of a product may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errors {
    /// The norms of both sides.
    ByNorm,
    /// Those of a row and a column, entry by entry.
    ByEntry,
}

/// A matrix that others are multiplied by.
#[derive(Debug)]
pub struct Right(Kept);

#[derive(Debug)]
enum Kept {
    Library(Matrix),
    #[cfg(target_arch = "x86_64")]
    Slabs(Packed, Matrix),
    #[cfg(target_arch = "x86_64")]
    Halves(Halves, Matrix),
}

impl Right {
    /// Makes a matrix ready, with another buffer to work in.
    pub fn new(b: Matrix, spare: Matrix, errors: Errors, threads: Threads) -> Self {
        let _ = (&spare, errors, threads);
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(b.columns()) {
            let parallel = parallel(threads, &b);
            let large = level == Level::Avx512 && b.rows().min(b.columns()) >= HALVED;
            let halved = large && errors == Errors::ByNorm;
            return Self(match halved {
                true => Kept::Halves(Halves::new(level, &b, spare, parallel), b),
                false => Kept::Slabs(Packed::new(level, &b, spare, parallel), b),
            });
        }
        Self(Kept::Library(b))
    }

    /// The buffers, given back.
    pub fn into_buffers(self) -> (Matrix, Matrix) {
        match self.0 {
            Kept::Library(b) => (b, Matrix::default()),
            #[cfg(target_arch = "x86_64")]
            Kept::Slabs(packed, b) => (b, packed.into_memory()),
            #[cfg(target_arch = "x86_64")]
            Kept::Halves(packed, b) => (b, packed.into_memory()),
        }
    }

    /// C ← A B
    pub fn multiply(&mut self, c: &mut Matrix, a: &Matrix, threads: Threads) {
        match &mut self.0 {
            Kept::Library(b) => product::multiply(c, a, b, threads),
            #[cfg(target_arch = "x86_64")]
            Kept::Slabs(b, _) => b.multiply(c, a, parallel(threads, a)),
            #[cfg(target_arch = "x86_64")]
            Kept::Halves(b, _) => b.multiply(c, a, parallel(threads, a)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dot;
    use super::*;

    fn wave(rows: usize, columns: usize, shift: f64) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| (1.3 * i as f64 + 0.7 * (j * j) as f64 + shift).sin())
    }

    fn close(a: &Matrix, lower: bool, what: &str, entry: impl Fn(usize, usize) -> f64) {
        for j in 0..a.columns() {
            for i in (if lower { j } else { 0 })..a.rows() {
                let (a, b) = (a[(i, j)], entry(i, j));
                assert!((a - b).abs() < 1e-11, "{what}, ({i}, {j}): {a} {b}");
            }
        }
    }

    #[test]
    fn sums_and_products_are_what_their_formulas_say_and_the_same_bits_on_any_threads() {
        for m in [0, 1, 2, 5, 12, 13, 96, 130, 193, 250] {
            let chunks = [0, 1, 3, 47, 192, 193, 401].map(|rows| wave(rows, m, rows as f64));
            let y: Vec<f64> = (0..401).map(|i| (0.3 * f64::from(i)).cos()).collect();
            let sum = |threads| {
                let (mut gram, mut b) = (Gram::default(), vec![]);
                // Twice, so that the second meets memory with something in it.
                for _ in 0..2 {
                    gram.begin(m);
                    b = vec![0.0; m];
                    chunks.iter().for_each(|a| gram.add(a, &y[..a.rows()], &mut b, threads));
                }
                (gram.finish(wave(3, 900, 0.0), threads), b)
            };
            let ((one, b), (all, on_all)) = (sum(Threads::One), sum(Threads::All));
            for (j, (b, on_all)) in b.iter().zip(&on_all).enumerate() {
                let sum: f64 = chunks.iter().map(|a| dot(a.column(j), &y[..a.rows()])).sum();
                assert!((b - sum).abs() < 1e-11 && b.to_bits() == on_all.to_bits(), "Aᵀy of {m}, {j}: {b} {sum}");
            }
            let term = |a: &Matrix, i, j| (0..a.rows()).map(|r| a[(r, i)] * a[(r, j)]).sum::<f64>();
            close(&one, true, &format!("gram of {m}"), |i, j| chunks.iter().map(|a| term(a, i, j)).sum());
            assert!((0..m).all(|j| (j..m).all(|i| one[(i, j)].to_bits() == all[(i, j)].to_bits())), "bits at {m}");

            let b = wave(m, m + 3, 0.5);
            let [mut alone, mut beside] = [Threads::One, Threads::All]
                .map(|threads| Right::new(b.clone(), wave(2, 700, 0.0), Errors::ByNorm, threads));
            for a in &chunks {
                let (mut c, mut d) = (wave(3, 900, 0.0), Matrix::default());
                alone.multiply(&mut c, a, Threads::One);
                beside.multiply(&mut d, a, Threads::All);
                let entry = |i, j| (0..m).map(|k| a[(i, k)] * b[(k, j)]).sum::<f64>();
                let size = (c.rows(), c.columns());
                assert_eq!(size, (a.rows(), m + 3));
                if m > 0 {
                    close(&c, false, &format!("product of {} by {m}", a.rows()), entry);
                }
                assert!((0..size.1).all(|j| (0..size.0).all(|i| c[(i, j)].to_bits() == d[(i, j)].to_bits())));
            }
        }
    }

    /// Large enough for halves where there are the instructions; no number is a multiple of anything. The last is summed up in
    /// two steps.
    #[test]
    fn large_products_are_right_to_rounding() {
        for (rows, m) in [(1, 517), (23, 517), (25, 517), (61, 517), (27, 1031)] {
            let (mut a, b) = (wave(rows, m, 0.1), wave(m, m + 8, 0.2));
            // Every third row is small.
            (0..m).for_each(|j| a.column_mut(j).iter_mut().step_by(3).for_each(|v| *v *= 1e-8));
            let norm = |v: &[f64]| dot(v, v).sqrt();
            let row = |i: usize| (0..m).map(|k| a[(i, k)]).collect::<Vec<f64>>();
            let largest = (0..rows).map(|i| norm(&row(i))).fold(0.0, f64::max);
            for errors in [Errors::ByNorm, Errors::ByEntry] {
                let mut c = Matrix::default();
                let mut right = Right::new(b.clone(), Matrix::default(), errors, Threads::All);
                right.multiply(&mut c, &a, Threads::All);
                for i in 0..rows {
                    let row = row(i);
                    let size = if errors == Errors::ByNorm { largest } else { norm(&row) };
                    for j in 0..m + 8 {
                        let gap = c[(i, j)] - dot(&row, b.column(j));
                        let most = 16.0 * f64::EPSILON * size * norm(b.column(j));
                        assert!(gap.abs() <= most, "{rows} rows, {m}, {errors:?}, ({i}, {j}): {gap:e}");
                    }
                }
            }
        }
    }
}
