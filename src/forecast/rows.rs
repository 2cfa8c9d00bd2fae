//! Which rows are used for what: from where the past is forecast, and, of a long series, which rows kernels are learned from
//! and which ones forecasts go on from. What a fit costs grows with the cube of its rows, what it learns does not.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Up to so many rows kernels that compete are learned from all of a series; beyond, from this many. One alone learns from
/// all that are seen.
const WHOLE: usize = 500;
const LEARNED: usize = 300;
/// The most rows that a forecast goes on from.
pub(super) const SEEN: usize = 2000;
/// The most values of the past that are forecast from one origin.
const TOLD: usize = 400;
/// Of the rows that are kept, how many are the latest: they tell what repeats fast and where the series stands; the others
/// tell what takes long.
const LATEST: f64 = 0.6;

/// The most rows of a series of `n` that kernels are learned from, up to whatever time.
pub(super) fn most_learned(n: usize, compete: bool) -> usize {
    match compete {
        true if n <= WHOLE => WHOLE,
        true => LEARNED,
        false => SEEN,
    }
}

/// At most so many of the first `n` rows: the latest, and of equally many before, each time one at a place by chance, for
/// equal steps would miss what repeats with them.
pub(super) fn kept(n: usize, most: usize) -> Vec<usize> {
    let latest = if n <= most { n } else { (LATEST * most as f64) as usize };
    let mut rows = one_of_each(0, n - latest, most - latest);
    rows.extend(n - latest..n);
    rows
}

/// Which rows of a series of `n` were used, in a sentence, where not all were.
pub(super) fn note(n: usize, compete: bool) -> Option<String> {
    let (learned, seen) = (n.min(most_learned(n, compete)), n.min(SEEN));
    let which = "the latest, and some of those before";
    match (learned < n, seen < n) {
        (false, _) => None,
        (true, false) => Some(format!("kernels were learned from {learned} of {n} rows: {which}")),
        (true, true) if learned == seen => Some(format!("{seen} of {n} rows were used: {which}")),
        (true, true) => {
            Some(format!("kernels were learned from {learned} of {n} rows, and forecasts go on from {seen}: {which}"))
        }
    }
}

/// A time from which the past is forecast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// Rows seen.
    pub at: usize,
    /// Rows forecast.
    pub ahead: Vec<usize>,
}

/// One horizon back from the end, half of one, and one and a half, as far as two fifths of the rows and at least 8 are
/// left to learn from.
pub(super) fn origins(n: usize, horizon: Option<usize>) -> Vec<Origin> {
    if n < 12 {
        return vec![];
    }
    let steps = horizon.unwrap_or(n / 5).min(n / 3).max(2);
    let one = |back: usize| {
        let at = n - back;
        let ahead = || one_of_each(at, at + steps.min(n - at), TOLD);
        (back > 0 && at >= 8 && 5 * at >= 2 * n).then(|| Origin { at, ahead: ahead() })
    };
    [steps, steps / 2, 3 * steps / 2].into_iter().filter_map(one).collect()
}

/// The rows from one to another, or, if there are more than so many, one of each of equally many pieces.
pub(super) fn one_of_each(from: usize, to: usize, most: usize) -> Vec<usize> {
    let n = to - from;
    if n <= most {
        return (from..to).collect();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
    (0..most).map(|i| from + rng.random_range(i * n / most..(i + 1) * n / most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_lie_within_the_series() {
        for n in [0, 1, 5, 12, 13, 20, 144, 2999, 5000] {
            for horizon in [None, Some(0), Some(1), Some(24), Some(10_000)] {
                for o in origins(n, horizon) {
                    assert!(o.at >= 8 && !o.ahead.is_empty() && o.ahead.len() <= TOLD, "{n} {horizon:?} {o:?}");
                    assert!(o.ahead.iter().all(|r| (o.at..n).contains(r)), "{n} {horizon:?} {o:?}");
                }
            }
        }
        assert_eq!(origins(144, Some(24)).len(), 3);
    }

    #[test]
    fn rows_are_kept_in_order_and_none_twice() {
        for (n, most) in [(0, 10), (9, 10), (10, 10), (11, 10), (1000, 10), (100_000, 400), (401, 400)] {
            let rows = kept(n, most);
            assert_eq!(rows.len(), n.min(most), "{n} {most}");
            assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows.last().is_none_or(|l| *l == n - 1), "{n} {most}");
        }
        let rows = kept(10_000, 100);
        assert!(rows[40] == 9940 && rows[0] < 249 && rows[39] > 9690, "{rows:?}");
    }
}
