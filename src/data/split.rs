//! Splits of rows into training and test: random, the tail of a series, and the two ends along the first principal
//! component, which ask a model to extrapolate. Same seed, same split, on every machine.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::Points;
use super::published_order::published_order;
use crate::error::{Error, Result};

/// Rows to learn from and rows to test on, both in ascending order; each row is in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows to test on.
    pub test: Vec<usize>,
}

impl Split {
    /// A random share of n rows, rounded to whole rows, is the test set.
    ///
    /// # Errors
    /// When the share is not between 0 and 1, or leaves no row for training.
    ///
    /// ```
    /// use covary::data::Split;
    ///
    /// let split = Split::random(100, 0.1, 7)?;
    /// assert_eq!((split.train.len(), split.test.len()), (90, 10));
    /// assert_eq!(split, Split::random(100, 0.1, 7)?);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn random(n: usize, share: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::option("share", format!("must be between 0 and 1: {share}")));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rows: Vec<usize> = (0..n).collect();
        // Fisher–Yates, from the front: the first rows after k swaps are a random choice of k.
        let test = (share * n as f64).round() as usize;
        for i in 0..test {
            let j = rng.random_range(i as u64..n as u64) as usize;
            rows.swap(i, j);
        }
        Self::with_test(n, rows[..test].to_vec())
    }

    /// The last rows are the test set.
    ///
    /// # Errors
    /// When no row is left for training.
    pub fn tail(n: usize, test: usize) -> Result<Self> {
        Self::with_test(n, (n.saturating_sub(test)..n).collect())
    }

    /// Rows sorted by their projection on the first principal component of the raw inputs: the first ⌊n/15⌋ and the
    /// last ⌈n/15⌉ are the test set.
    ///
    /// In a designed experiment many rows have the same projection, and which of them test is up to the sort. Here it is
    /// the sort with which the published splits were made, the farthest row last.
    ///
    /// # Errors
    /// When no row is left for training.
    pub fn pca(x: &Points) -> Result<Self> {
        let along = first_component(x);
        let n = x.n() as f64;
        let mean: Vec<f64> = (0..x.d()).map(|c| x.column(c).iter().map(|v| v / n).sum()).collect();
        let of = |i: usize| along.iter().enumerate().map(|(c, w)| w * (x.column(c)[i] - mean[c])).sum::<f64>();
        let mut projection: Vec<f64> = (0..x.n()).map(of).collect();
        let farthest = projection.iter().copied().fold(0.0_f64, |m, p| if p.abs() > m.abs() { p } else { m });
        // Equal up to rounding is equal; divided by the farthest with its sign, that one is positive.
        let grain = if farthest == 0.0 { 1.0 } else { farthest * 1e-12 };
        projection.iter_mut().for_each(|p| *p = (*p / grain).round());
        let order = published_order(&projection);
        let (low, high) = (x.n() / 15, x.n().div_ceil(15));
        let test = order[..low].iter().chain(&order[x.n() - high..]).copied().collect();
        Self::with_test(x.n(), test)
    }

    /// These rows are the test set, all other rows of n train.
    ///
    /// # Errors
    /// When a test row does not exist or no row is left for training.
    pub fn with_test(n: usize, mut test: Vec<usize>) -> Result<Self> {
        test.sort_unstable();
        test.dedup();
        if test.last().is_some_and(|&row| row >= n) {
            return Err(Error::option("split", format!("a test row beyond the {n} rows of the data")));
        }
        if test.len() >= n {
            return Err(Error::option("split", format!("no row is left for training: {} of {n} test", test.len())));
        }
        let train = (0..n).filter(|i| test.binary_search(i).is_err()).collect();
        Ok(Self { train, test })
    }
}

/// The unit vector along which the raw columns vary most, its largest entry positive. Power iteration on the
/// covariance C = Σ(x − x̄)(x − x̄)ᵀ, squared first (C ← C²/‖C‖) until the gap between the leading eigenvalues is wide.
fn first_component(x: &Points) -> Vec<f64> {
    let (n, d) = (x.n(), x.d());
    // Divided by the largest deviation, so that no scale overflows.
    let mut centred: Vec<Vec<f64>> = Vec::with_capacity(d);
    for c in 0..d {
        let mean = x.column(c).iter().map(|v| v / n as f64).sum::<f64>();
        centred.push(x.column(c).iter().map(|v| v - mean).collect());
    }
    let largest = centred.iter().flatten().fold(0.0_f64, |m, v| m.max(v.abs()));
    let mut c = vec![0.0; d * d];
    if !(largest > 0.0 && largest.is_finite()) {
        return vec![0.0; d];
    }
    for i in 0..d {
        for j in 0..d {
            c[i * d + j] = centred[i].iter().zip(&centred[j]).map(|(a, b)| (a / largest) * (b / largest)).sum();
        }
    }
    // Twenty squarings raise the ratio of the leading eigenvalues to the power 2²⁰; more would only square rounding.
    for _ in 0..20 {
        let size = c.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let scaled: Vec<f64> = c.iter().map(|v| v / size).collect();
        for i in 0..d {
            for j in 0..d {
                c[i * d + j] = (0..d).map(|k| scaled[i * d + k] * scaled[k * d + j]).sum();
            }
        }
    }
    // C^(2²⁰) is λ·v·vᵀ now: its longest row is v.
    let length = |i: usize| c[i * d..(i + 1) * d].iter().map(|v| v * v).sum::<f64>();
    let row = (0..d).max_by(|&a, &b| length(a).total_cmp(&length(b))).unwrap_or(0);
    let v = &c[row * d..(row + 1) * d];
    let top = v.iter().copied().fold(0.0_f64, |m, w| if w.abs() > m.abs() { w } else { m });
    let norm = length(row).sqrt() * top.signum();
    v.iter().map(|w| w / norm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_part() {
        for split in [Split::random(37, 0.3, 1).unwrap(), Split::tail(37, 5).unwrap()] {
            let mut all = [split.train, split.test].concat();
            all.sort_unstable();
            assert_eq!(all, (0..37).collect::<Vec<_>>());
        }
    }

    #[test]
    fn impossible_splits_are_errors() {
        assert!(Split::random(10, 1.5, 0).is_err());
        assert!(Split::random(10, f64::NAN, 0).is_err());
        assert!(Split::tail(3, 3).is_err());
        assert!(Split::with_test(3, vec![7]).is_err());
        assert!(Split::random(0, 0.1, 0).is_err());
    }

    #[test]
    fn the_first_component_is_the_longest_direction() {
        // Points along (3, 4)/5 with a little noise across.
        let rows: Vec<[f64; 2]> = (0..50)
            .map(|i| {
                let (t, e) = (i as f64, (i as f64 * 1.7).sin());
                [3.0 * t - 4.0 * e + 1e6, 4.0 * t + 3.0 * e]
            })
            .collect();
        let v = first_component(&Points::from_rows(&rows).unwrap());
        assert!((v[0] - 0.6).abs() < 1e-3 && (v[1] - 0.8).abs() < 1e-3, "{v:?}");
        assert_eq!(Split::pca(&Points::from_rows(&rows).unwrap()).unwrap().test, [0, 1, 2, 46, 47, 48, 49]);
    }
}
