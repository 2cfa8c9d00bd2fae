//! What the calendar says may repeat: days, weeks and years. A period that is known beforehand takes less to be believed than
//! one found among thousands of others, and is known to all digits.

use super::periodogram::{Season, without};
use std::f64::consts::TAU;

/// The most harmonics of a cycle.
const HARMONICS: usize = 6;
/// By how much a cycle must raise the log likelihood, beyond what its parameters cost by BIC.
const CLEAR: f64 = 3.0;
/// Repetitions that can show one.
const REPEATED: f64 = 1.9;
/// The most periods of a series.
const MOST: usize = 4;

/// What was found to repeat, with what repeats by the calendar: cycles that show stand before all others, the clearest first,
/// and what was found near one of them, or is a harmonic of one, is that one. Times are in order.
pub(crate) fn with_cycles(found: Vec<Season>, cycles: &[f64], t: &[f64], y: &[f64]) -> Vec<Season> {
    let Some(changes) = Changes::new(t, y) else { return found };
    let shows = |&cycle: &f64| Some((cycle, changes.gain(cycle)?)).filter(|c| c.1 > CLEAR);
    let mut clear: Vec<(f64, f64)> = cycles.iter().filter_map(shows).collect();
    clear.sort_by(|a, b| b.1.total_cmp(&a.1));
    let is_one = |s: &Season| {
        clear.iter().any(|(cycle, _)| {
            let times = (cycle / s.period).round();
            (1.0..=HARMONICS as f64).contains(&times) && (1.0 / s.period - times / cycle).abs() < 0.75 / changes.span
        })
    };
    let others = found.into_iter().filter(|s| !is_one(s));
    let mut all: Vec<Season> = clear.iter().map(|c| Season { period: c.0, certain: true }).chain(others).collect();
    all.truncate(MOST);
    all
}

/// Changes from one value to the next, less a drift that grows evenly: what repeats in them repeats in the values, and a
/// level that walks does not hide it.
struct Changes {
    /// Half-way between the values.
    t: Vec<f64>,
    y: Vec<f64>,
    span: f64,
    step: f64,
}

impl Changes {
    /// None where there are too few to say anything.
    fn new(t: &[f64], y: &[f64]) -> Option<Self> {
        let (n, span) = (t.len(), t.last()? - t.first()?);
        if n < 12 || span <= 0.0 || !span.is_finite() {
            return None;
        }
        let times: Vec<f64> = t.windows(2).map(|w| 0.5 * (w[0] + w[1]) - t[0]).collect();
        let drift = [vec![1.0; n - 1], times.iter().map(|t| t / span).collect()];
        let y = without(y.windows(2).map(|w| w[1] - w[0]).collect(), drift).0;
        Some(Self { t: times, y, span, step: span / (n - 1) as f64 })
    }

    /// How much a cycle, of as many harmonics as speak for it most, raises the log likelihood of the changes, less what BIC
    /// takes for its parameters; none where it is too long to show.
    fn gain(&self, cycle: f64) -> Option<f64> {
        let wave = |h: usize, of: fn(f64) -> f64| self.t.iter().map(|t| of(TAU * h as f64 * t / cycle)).collect();
        let squares = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
        let (n, before) = (self.y.len() as f64, squares(&self.y));
        let up_to = |most: usize| {
            let waves = (1..=most).flat_map(|h| [wave(h, f64::sin), wave(h, f64::cos)]);
            let (rest, count) = without(self.y.clone(), waves);
            0.5 * n * (before / squares(&rest).max(1e-12 * before)).ln() - 0.5 * count as f64 * n.ln()
        };
        let shown = (1..=HARMONICS).filter(|&h| cycle > 1.99 * h as f64 * self.step);
        let gain = shown.map(up_to).filter(|g| g.is_finite()).max_by(f64::total_cmp);
        gain.filter(|_| self.span >= REPEATED * cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::seasons;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    /// Months with a level that walks and a season of this size; what is found without and with the calendar.
    fn months(n: usize, size: f64, seed: u64) -> (Vec<Season>, Vec<Season>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut level = 0.0;
        let t: Vec<f64> = (0..n).map(|t| t as f64).collect();
        let value = |t: &f64| {
            level += rng.sample::<f64, _>(StandardNormal);
            level + size * [0.0, 1.0, -1.0, 2.0, 0.0, 0.5, -2.0, -1.0, 0.0, 1.0, 3.0, -0.5][*t as usize % 12]
        };
        let y: Vec<f64> = t.iter().map(value).collect();
        let found = seasons(&t, &y);
        (found.clone(), with_cycles(found, &[12.0], &t, &y))
    }

    #[test]
    fn a_year_is_seen_beside_a_walk_of_the_level() {
        for seed in 0..10 {
            let (plain, known) = months(48, 1.5, seed);
            assert_eq!(known[0], Season { period: 12.0, certain: true }, "{plain:?}");
            let harmonic = |s: &&Season| (12.0 / s.period - (12.0 / s.period).round()).abs() < 0.1 && s.period < 12.5;
            assert!(!known[1..].iter().any(|s| harmonic(&s)), "{known:?}");
        }
    }

    #[test]
    fn what_does_not_repeat_has_no_year() {
        let wrong = (0..100).filter(|&seed| months(60, 0.0, seed).1.iter().any(|s| s.certain && s.period == 12.0));
        assert!(wrong.count() <= 2);
        // Nothing changes, too few values, no calendar.
        let t: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(with_cycles(vec![], &[12.0], &t, &[1.0; 40]).is_empty());
        assert!(with_cycles(vec![], &[12.0], &t[..5], &t[..5]).is_empty());
        let found = vec![Season { period: 11.8, certain: false }];
        assert_eq!(with_cycles(found.clone(), &[], &t, &t), found);
    }

    #[test]
    fn a_cycle_is_taken_to_all_its_digits_once_it_shows() {
        let t: Vec<f64> = (0..140).map(f64::from).collect();
        let y: Vec<f64> = t.iter().map(|t| (TAU * t / 7.0).sin() + 0.1 * (1.7 * t).cos()).collect();
        let found = vec![Season { period: 7.03, certain: true }, Season { period: 31.0, certain: false }];
        let all = with_cycles(found, &[7.0, 365.2425], &t, &y);
        assert_eq!(all, [Season { period: 7.0, certain: true }, Season { period: 31.0, certain: false }]);
    }
}
