//! What the calendar says may repeat: days, weeks and years. A period that is known beforehand takes less to be believed than
//! one found among thousands of others, and is known to all digits.

use super::periodogram::{Basis, Season};
use std::f64::consts::TAU;

/// The most harmonics of a cycle.
const HARMONICS: usize = 6;
/// By how much a cycle must raise the log likelihood, beyond what its parameters cost; and by how much another period must do so
/// more than it, to be believed in its place.
const CLEAR: f64 = 3.0;
/// Repetitions that can show one.
const REPEATED: f64 = 1.9;
/// The most periods of a series.
const MOST: usize = 4;

/// What was found to repeat, with what repeats by the calendar: a cycle that shows takes the place of what was found near it
/// or is a harmonic of it, or else comes after what is certain. Times are in order.
pub(crate) fn with_cycles(found: Vec<Season>, cycles: &[f64], t: &[f64], y: &[f64]) -> Vec<Season> {
    let Some(changes) = Changes::new(t, y) else { return found };
    let mut clear: Vec<(f64, f64)> = cycles.iter().filter_map(|&c| Some((c, changes.gain(c)?))).collect();
    let near = |s: &Season, cycle: f64| {
        let times = (cycle / s.period).round();
        (1.0..=HARMONICS as f64).contains(&times) && (1.0 / s.period - times / cycle).abs() < 0.75 / changes.span
    };
    // What leaks from a tide of half a day is no day.
    let beaten = |(cycle, gain): &(f64, f64)| {
        let better = |s: &Season| near(s, *cycle) && changes.gain(s.period).is_some_and(|g| g > gain + CLEAR);
        found.iter().any(better)
    };
    clear.retain(|c| c.1 > CLEAR && !beaten(c));
    clear.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut all: Vec<Season> = Vec::new();
    for season in &found {
        let place = clear.iter().position(|c| near(season, c.0));
        let season = place.map_or(*season, |at| Season { period: clear.remove(at).0, certain: true });
        // Another harmonic of one that is there already says nothing new.
        let known = |s: &Season| cycles.contains(&s.period) && near(&season, s.period);
        if !all.iter().any(known) {
            all.push(season);
        }
    }
    all.extend(clear.iter().map(|c| Season { period: c.0, certain: true }));
    // In the order they have, what is certain first.
    all.sort_by_key(|s| !s.certain);
    all.truncate(MOST);
    all
}

/// Changes from one value to the next, less a drift that grows evenly: what repeats in them repeats in the values, and a
/// level that walks does not hide it.
struct Changes {
    /// Half-way between the values.
    t: Vec<f64>,
    y: Vec<f64>,
    /// The drift, which is none of a cycle's merit: by gaps, too, for those of a week without weekends repeat.
    drift: Basis,
    span: f64,
    step: f64,
}

impl Changes {
    /// None where there are too few to say anything, or nothing but rounding is left of them.
    fn new(t: &[f64], y: &[f64]) -> Option<Self> {
        let (n, span) = (t.len(), t.last()? - t.first()?);
        if n < 12 || span <= 0.0 || !span.is_finite() {
            return None;
        }
        let step = span / (n - 1) as f64;
        let times: Vec<f64> = t.windows(2).map(|w| 0.5 * (w[0] + w[1]) - t[0]).collect();
        let gaps: Vec<f64> = t.windows(2).map(|w| (w[1] - w[0]) / step).collect();
        let later = |values: &[f64]| values.iter().zip(&times).map(|(v, t)| v * t / span).collect::<Vec<f64>>();
        let ones = vec![1.0; n - 1];
        let (mut drift, mut rest) = (Basis::default(), y.windows(2).map(|w| w[1] - w[0]).collect::<Vec<f64>>());
        for column in [later(&ones), later(&gaps), ones, gaps] {
            drift.take(column, &mut rest);
        }
        (squares(&rest) > 1e-24 * squares(y)).then_some(Self { t: times, y: rest, drift, span, step })
    }

    /// How much a cycle, of as many harmonics as speak for it most, raises the log likelihood of the changes, less what its
    /// parameters cost (BIC, and more where values are few); none where it is too long or too short to show.
    fn gain(&self, cycle: f64) -> Option<f64> {
        if self.span < REPEATED * cycle {
            return None;
        }
        let (mut basis, mut rest, mut count) = (self.drift.clone(), self.y.clone(), 0.0);
        let (n, before) = (self.y.len() as f64, squares(&self.y));
        let mut best: Option<f64> = None;
        for h in (1..=HARMONICS).filter(|&h| cycle > 1.99 * h as f64 * self.step) {
            for of in [f64::sin, f64::cos] {
                let wave = self.t.iter().map(|t| of(TAU * h as f64 * t / cycle)).collect();
                count += f64::from(u8::from(basis.take(wave, &mut rest)));
            }
            let left = n - count - 2.0;
            if left < 1.0 {
                break;
            }
            let gain = 0.5 * n * (before / squares(&rest).max(1e-12 * before)).ln() - 0.5 * count * n.ln() * n / left;
            best = Some(best.map_or(gain, |b| b.max(gain)));
        }
        best.filter(|g| g.is_finite())
    }
}

fn squares(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum()
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
        // Three years of quarters, of noise: the hardest.
        let quarters = |seed: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let t: Vec<f64> = (0..12).map(|i| 3.0 * f64::from(i)).collect();
            let y: Vec<f64> = t.iter().map(|_| rng.sample::<f64, _>(StandardNormal)).collect();
            !with_cycles(vec![], &[12.0], &t, &y).is_empty()
        };
        assert!((0..200).filter(|&seed| quarters(seed)).count() <= 8);
        // Nothing changes, nothing but rounding changes, too few values, no calendar.
        let t: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(with_cycles(vec![], &[12.0], &t, &[1.0; 40]).is_empty());
        let line: Vec<f64> = t.iter().map(|t| 100.0 + 0.001 * t).collect();
        assert!(with_cycles(vec![], &[12.0], &t, &line).is_empty());
        let wave: Vec<f64> = t.iter().map(|t| (TAU * t / 4.0).sin()).collect();
        assert!(with_cycles(vec![], &[4.0], &t[..11], &wave[..11]).is_empty());
        assert_eq!(with_cycles(vec![], &[4.0], &t[..13], &wave[..13]), [Season { period: 4.0, certain: true }]);
        let found = vec![Season { period: 11.8, certain: false }];
        assert_eq!(with_cycles(found.clone(), &[], &t, &wave), found);
    }

    #[test]
    fn a_trend_without_weekends_is_no_week() {
        for seed in 0..20 {
            let (mut rng, mut level) = (ChaCha8Rng::seed_from_u64(seed), 0.0);
            let t: Vec<f64> = (0..250).map(|i| f64::from(7 * (i / 5) + i % 5)).collect();
            let value = |t: &f64| {
                level += rng.sample::<f64, _>(StandardNormal);
                level + t
            };
            let y: Vec<f64> = t.iter().map(value).collect();
            assert!(with_cycles(vec![], &[7.0], &t, &y).is_empty());
        }
    }

    #[test]
    fn a_tide_is_no_day_and_a_quarter_no_year() {
        let tide: Vec<f64> = (0..192).map(f64::from).collect();
        let y: Vec<f64> = tide.iter().map(|t| (TAU * t / 12.42).sin() + 0.05 * (1.3 * t * t).sin()).collect();
        let found = vec![Season { period: 12.42, certain: true }];
        assert_eq!(with_cycles(found.clone(), &[24.0, 168.0], &tide, &y), found);
        let months: Vec<f64> = (0..48).map(f64::from).collect();
        let y: Vec<f64> =
            months.iter().map(|t| if t % 3.0 == 2.0 { 1.0 } else { 0.0 } + 0.1 * (1.3 * t * t).sin()).collect();
        let found = vec![Season { period: 3.0, certain: true }];
        assert_eq!(with_cycles(found.clone(), &[12.0], &months, &y), found);
    }

    #[test]
    fn a_cycle_is_taken_to_all_its_digits_once_it_shows() {
        let t: Vec<f64> = (0..140).map(f64::from).collect();
        let y: Vec<f64> = t.iter().map(|t| (TAU * t / 7.0).sin() + 0.1 * (1.7 * t).cos()).collect();
        let found = vec![Season { period: 7.03, certain: true }, Season { period: 31.0, certain: false }];
        let all = with_cycles(found, &[7.0, 365.2425], &t, &y);
        assert_eq!(all, [Season { period: 7.0, certain: true }, Season { period: 31.0, certain: false }]);
        // What is certain without the calendar keeps its place.
        let long = vec![Season { period: 40.0, certain: true }, Season { period: 3.5, certain: false }];
        let all = with_cycles(long, &[7.0], &t, &y);
        assert_eq!(all, [Season { period: 40.0, certain: true }, Season { period: 7.0, certain: true }]);
    }
}
