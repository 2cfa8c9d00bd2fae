//! The instruction sets that factor, inverse and products are written for, and which of them a size is left to.

use std::sync::OnceLock;

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// AVX2 with fused multiply-add: panels of 12 rows.
    Avx2,
    /// AVX-512 F: panels of 24 rows.
    Avx512,
}

/// From this many rows on, AVX-512. On a machine that does as many operations a cycle either way (Zen 4) its larger blocks on
/// the diagonal cost factor and inverse 2 to 5 % up to some 500 rows, and bring products up to 10 % from about 200 on. Where
/// it does twice as many it should pay from fewer rows on; that is not measured.
const LEAST_512: usize = 200;

impl Level {
    /// What this machine has, narrowest first.
    pub fn supported() -> &'static [Level] {
        static SUPPORTED: OnceLock<&[Level]> = OnceLock::new();
        SUPPORTED.get_or_init(|| {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            match (avx2, is_x86_feature_detected!("avx512f")) {
                (true, true) => &[Level::Avx2, Level::Avx512],
                (true, false) => &[Level::Avx2],
                _ => &[],
            }
        })
    }

    /// The one for matrices of n rows, by size alone; none on machines for which the matrix library does it all.
    pub fn of(n: usize) -> Option<Level> {
        let supported = Self::supported();
        if n < LEAST_512 { supported.first().copied() } else { supported.last().copied() }
    }

    /// Rows of a sliver.
    pub fn lanes(self) -> usize {
        match self {
            Level::Avx2 => 4,
            Level::Avx512 => 8,
        }
    }

    /// Rows of a panel.
    pub fn panel(self) -> usize {
        3 * self.lanes()
    }
}

/// Does something with the steps of a level.
macro_rules! at {
    ($level:expr, $steps:ident => $body:expr) => {
        match $level {
            Level::Avx2 => {
                type $steps = crate::linalg::x86::Avx2;
                $body
            }
            Level::Avx512 => {
                type $steps = crate::linalg::x86::Avx512;
                $body
            }
        }
    };
}
pub(super) use at;

#[cfg(test)]
mod tests {
    use super::super::halves::Halves;
    use super::super::slabs::{Packed, Sum};
    use super::super::{Matrix, blocked, sandwich, tiles::Tiles};
    use super::*;

    /// Around slivers (4, 8), panels (12, 24), chunks (48) and tiles (192), and sizes at which several of these are not full.
    const SIZES: [usize; 22] =
        [0, 1, 2, 7, 8, 9, 12, 13, 23, 24, 25, 47, 48, 49, 96, 130, 144, 191, 192, 193, 250, 385];

    fn wave(rows: usize, columns: usize, shift: f64) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| (1.3 * i as f64 + 0.7 * (j * j) as f64 + shift).sin())
    }

    fn product(a: &Matrix, b: &Matrix) -> Matrix {
        let mut c = Matrix::zeros(a.rows(), b.columns());
        for (j, k) in (0..b.columns()).flat_map(|j| (0..b.rows()).map(move |k| (j, k))) {
            c.column_mut(j).iter_mut().zip(a.column(k)).for_each(|(c, a)| *c += a * b[(k, j)]);
        }
        c
    }

    fn transpose(a: &Matrix) -> Matrix {
        Matrix::from_fn(a.columns(), a.rows(), |i, j| a[(j, i)])
    }

    /// Symmetric, with a large diagonal: entries of the factor and of the inverse are of the order of one.
    fn positive(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| (-0.1 * (i as f64 - j as f64).abs()).exp() + if i == j { 0.5 } else { 0.0 })
    }

    /// The lower triangle alone: who reads above the diagonal is found out.
    fn lower(a: &Matrix) -> Matrix {
        Matrix::from_fn(a.rows(), a.columns(), |i, j| if i < j { f64::NAN } else { a[(i, j)] })
    }

    /// Memory with something in it: nobody may count on noughts.
    fn used() -> Matrix {
        Matrix::from_fn(40, 50, |_, _| f64::NAN)
    }

    fn close(a: &Matrix, b: &Matrix, whole: bool, what: &str) {
        assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()), "{what}");
        for j in 0..a.columns() {
            for i in (if whole { 0 } else { j })..a.rows() {
                let (a, b) = (a[(i, j)], b[(i, j)]);
                assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{what}, ({i}, {j}): {a} {b}");
            }
        }
    }

    /// What is computed by one thread, once several have given the same bits.
    fn both(what: &str, f: impl Fn(bool) -> Vec<Matrix>) -> Vec<Matrix> {
        let (one, all) = (f(false), f(true));
        for (one, all) in one.iter().zip(&all) {
            for j in 0..one.columns() {
                let bits =
                    |a: &Matrix| a.column(j)[j.min(a.rows())..].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert!(bits(one) == bits(all), "{what}: bits depend on threads");
            }
        }
        one
    }

    #[test]
    fn factor_and_inverse_are_what_their_formulas_say_at_every_level() {
        for (n, &level) in SIZES.iter().flat_map(|&n| Level::supported().iter().map(move |l| (n, l))) {
            let what = format!("{n} rows by {level:?}");
            let (a, b) = (positive(n), wave(n, 1, 0.5));
            let y = if n == 0 { &[] } else { b.column(0) };
            let results = both(&what, |parallel| {
                let mut tiles = Tiles::new(level, n, used());
                let mut l = lower(&a);
                blocked::factor(&mut l, &mut tiles, parallel).unwrap();
                let mut inverse = l.clone();
                let (half, whole) = blocked::inverse(&mut inverse, &mut tiles, y, parallel);
                let vector = |v: &[f64]| Matrix::from_fn(n, 1, |i, _| v[i]);
                // A factor that was not packed on the way.
                let (mut again, mut tiles) = (l.clone(), Tiles::new(level, n, used()));
                blocked::pack_factor(&again, &mut tiles, parallel);
                let mut w = Matrix::from_fn(n, n, |_, _| f64::NAN);
                blocked::inverse_factor(&again, &mut tiles, &mut w, parallel);
                blocked::inverse(&mut again, &mut tiles, &[], parallel);
                vec![l, inverse, again, vector(&half), vector(&whole), w]
            });
            let [l, inverse, again, half, whole, w] = results.try_into().unwrap();
            let l = Matrix::from_fn(n, n, |i, j| if i < j { 0.0 } else { l[(i, j)] });
            close(&product(&l, &transpose(&l)), &a, true, &format!("L Lᵀ of {what}"));
            let unit = Matrix::from_fn(n, n, |i, j| f64::from(i == j));
            close(&product(&w, &l), &unit, true, &format!("L⁻¹ L of {what}"));
            assert!((0..n).all(|j| (0..j).all(|i| w[(i, j)] == 0.0)), "L⁻¹ of {what} is a triangle");
            for inverse in [inverse, again] {
                let full = Matrix::from_fn(n, n, |i, j| inverse[(i.max(j), i.min(j))]);
                close(&product(&a, &full), &unit, true, &format!("A A⁻¹ of {what}"));
            }
            if n > 0 {
                close(&product(&l, &half), &b, true, &format!("L⁻¹b of {what}"));
                close(&product(&a, &whole), &b, true, &format!("A⁻¹b of {what}"));
            }
            for pivot in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|&p| p < n) {
                let mut bad = lower(&a);
                bad[(pivot, pivot)] = -1.0;
                let failed = blocked::factor(&mut bad, &mut Tiles::new(level, n, used()), false);
                assert_eq!(failed, Err(pivot), "{what}");
            }
        }
    }

    /// Rows of points that lie close together, so that pivots are small: whoever computes a pivot from other numbers than those
    /// that are left in the factor has residuals a hundred times larger, and fails where there is a factor.
    #[test]
    fn near_singular_matrices_have_residuals_of_rounding_at_every_level() {
        for (n, &level) in [24, 130, 250].into_iter().flat_map(|n| Level::supported().iter().map(move |l| (n, l))) {
            for seed in 0..20 {
                let x: Vec<f64> = (0..n).map(|i| (i as f64 * (1.7 + f64::from(seed))).sin()).collect();
                let near = |i: usize, j: usize| (-0.5 * (x[i] - x[j]).powi(2)).exp();
                let a = Matrix::from_fn(n, n, |i, j| near(i, j) + if i == j { 1e-13 } else { 0.0 });
                let mut l = lower(&a);
                let done = blocked::factor(&mut l, &mut Tiles::new(level, n, used()), false);
                assert_eq!(done, Ok(()), "{n} rows by {level:?}, {seed}");
                for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                    let entry: f64 = (0..=j).map(|k| l[(i, k)] * l[(j, k)]).sum();
                    // Sums of up to n products of the order of one, in two orders.
                    let gap = (entry - a[(i, j)]).abs();
                    assert!(gap < 5e-15, "L Lᵀ of {n} rows by {level:?}, {seed}, ({i}, {j}): {gap:e}");
                }
            }
        }
    }

    #[test]
    fn products_are_what_their_formulas_say_at_every_level() {
        for n in SIZES {
            let w = wave(n, n, 0.3);
            let w = Matrix::from_fn(n, n, |i, j| if i < j { 0.0 } else { w[(i, j)] / n as f64 });
            let (s, x) = (positive(n), [0, 3, 47, 193].map(|rows| wave(rows, n, rows as f64)));
            let white = product(&product(&w, &s), &transpose(&w));
            let back = product(&product(&transpose(&w), &s), &w);
            let square = product(&w, &w);
            let [one, two] = [&w, &square].map(|v| product(&transpose(v), v));
            let less = Matrix::from_fn(n, n, |i, j| one[(i, j)] - two[(i, j)]);
            let mut gram = Matrix::zeros(n, n);
            for x in &x {
                let term = product(&transpose(x), x);
                (0..n).for_each(|j| gram.column_mut(j).iter_mut().zip(term.column(j)).for_each(|(g, t)| *g += t));
            }
            let right = wave(n, n + 3, 0.9);
            for &level in Level::supported() {
                let what = format!("{n} rows by {level:?}");
                let whitened = both(&what, |parallel| {
                    let mut a = lower(&s);
                    sandwich::whiten(level, &w, &mut a, &mut used(), parallel);
                    let (mut first, mut second) = (lower(&s), w.clone());
                    sandwich::unwhiten(level, &w, &mut first, Some(&mut second), &mut used(), parallel);
                    vec![a, first, second]
                });
                for (a, b) in whitened.iter().zip([&white, &back, &less]) {
                    close(a, b, false, &format!("sandwich of {what}"));
                }
                let sum = both(&what, |parallel| {
                    let mut sum = Sum::new(level, n, used(), used());
                    let mut b = vec![0.0; n];
                    x.iter().for_each(|x| sum.add(x, &vec![1.0; x.rows()], &mut b, parallel));
                    vec![sum.matrix(used(), parallel)]
                });
                close(&sum[0], &gram, false, &format!("sum of {what}"));
                let products = both(&what, |parallel| {
                    let mut packed = Packed::new(level, &right, used(), parallel);
                    let mut c = [used(), used(), used(), used()];
                    c.iter_mut().zip(&x).for_each(|(c, x)| packed.multiply(c, x, parallel));
                    c.into()
                });
                let halves = both(&what, |parallel| {
                    if n < 3 * level.lanes() {
                        return vec![];
                    }
                    let mut halves = Halves::new(level, &right, used(), parallel);
                    let mut c = [used(), used(), used(), used()];
                    c.iter_mut().zip(&x).for_each(|(c, x)| halves.multiply(c, x, parallel));
                    c.into()
                });
                for (c, x) in products.iter().zip(&x).chain(halves.iter().zip(&x)) {
                    close(c, &product(x, &right), true, &format!("{} rows times {what}", x.rows()));
                }
            }
        }
    }
}
