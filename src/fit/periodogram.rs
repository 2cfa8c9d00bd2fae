//! Which periods a series has: the Lomb–Scargle periodogram, for even and uneven times alike, and its peaks.

use std::f64::consts::{PI, TAU};

/// Frequencies tried for each independent one: peaks fall between the grid of a plain transform.
const OVERSAMPLING: f64 = 5.0;
/// The most frequencies tried.
const MOST: usize = 5000;
/// Independent frequencies on either side that tell how much power is usual.
const NEIGHBOURS: f64 = 15.0;
/// A line has this many times the median power around it, which noise has once in ten thousand frequencies.
const LINE: f64 = 14.0;
/// A peak beside a higher one is more than what leaks from that if it has this many times as much.
const LEAK: f64 = 2.0;
/// The highest harmonic that is taken for one: a week is no harmonic of a year, nor a day of a week.
const HARMONICS: f64 = 6.0;

/// What repeats in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Season {
    pub period: f64,
    /// Does it stand out from all around it, or may it only look so?
    pub certain: bool,
}

/// The periods of [`seasons`].
pub(super) fn periods(t: &[f64], y: &[f64]) -> Vec<f64> {
    seasons(t, y).into_iter().map(|s| s.period).collect()
}

/// What repeats, at most four periods: those that are certain first, then those with the most power.
pub(crate) fn seasons(t: &[f64], y: &[f64]) -> Vec<Season> {
    let Some(series) = Series::new(t, y) else { return vec![] };
    let band = series.band();
    let refined = |p: Peak| p.season(series.top(p.f, 1.2 * series.spacing(band), 8));
    strongest(series.peaks(band), series.span).into_iter().map(refined).collect()
}

/// The same of a series too long for one look: its latest rows tell the short periods, rows from all of it the long ones, and
/// how long the short ones are to within its whole length. Both are given as times and values.
pub(crate) fn seasons_of_long(latest: (&[f64], &[f64]), whole: (&[f64], &[f64])) -> Vec<Season> {
    let (Some(latest), Some(whole)) = (Series::new(latest.0, latest.1), Series::new(whole.0, whole.1)) else {
        return vec![];
    };
    // A few repetitions among the latest rows are enough to tell one from another.
    let ((low, _), (_, high)) = (whole.band(), latest.band());
    let between = 5.0 / latest.span;
    if between <= low || between >= high {
        return seasons(latest.t, &latest.y);
    }
    let (slow, fast) = (whole.peaks((low, between)), latest.peaks((between, high)));
    let refined = |p: Peak| match p.f < between {
        true => whole.top(p.f, 1.2 * whole.spacing((low, between)), 8),
        false => {
            let f = latest.top(p.f, 1.2 * latest.spacing((between, high)), 8);
            let steps = (5.0 * whole.span / latest.span).ceil() as i32;
            whole.top(f, 0.5 / latest.span, steps)
        }
    };
    let found = strongest([slow, fast].concat(), latest.span);
    found.into_iter().map(|p| p.season(refined(p))).collect()
}

/// The fundamentals among some peaks, at most four.
fn strongest(found: Vec<Peak>, span: f64) -> Vec<Peak> {
    // A harmonic belongs to its fundamental, if that is there with a fair share of its power.
    let is_harmonic = |peak: &Peak| {
        found.iter().any(|g| {
            let times = (peak.f / g.f).round();
            (2.0..=HARMONICS).contains(&times)
                && (peak.f - times * g.f).abs() < (0.1 * peak.f).min(1.0 / span)
                && g.power > 0.2 * peak.power
        })
    };
    let mut fundamental: Vec<Peak> = found.iter().copied().filter(|p| !is_harmonic(p)).collect();
    // Lines repeat for certain; what is broad may only look so.
    fundamental.sort_by(|a, b| b.line.cmp(&a.line).then(b.power.total_cmp(&a.power)));
    fundamental.truncate(4);
    fundamental
}

/// Times and what is left of the values once a trend is taken out.
struct Series<'a> {
    t: &'a [f64],
    y: Vec<f64>,
    span: f64,
    /// The sum of squares of what is left.
    total: f64,
}

impl<'a> Series<'a> {
    /// None where there are too few values or nothing is left of them.
    fn new(t: &'a [f64], y: &[f64]) -> Option<Self> {
        let (first, last) = t.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
        let span = last - first;
        if t.len() < 12 || span <= 0.0 {
            return None;
        }
        let before: f64 = y.iter().map(|v| v * v).sum();
        let y = detrended(t, y);
        let total: f64 = y.iter().map(|v| v * v).sum();
        // Nothing but rounding is left of a straight line.
        (total > 1e-24 * before && total > 1e-300).then_some(Self { t, y, span, total })
    }

    /// From one and a half repetitions in the data to two points a repetition, by the typical step.
    fn band(&self) -> (f64, f64) {
        let mut sorted = self.t.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut gaps: Vec<f64> = sorted.windows(2).map(|w| w[1] - w[0]).filter(|g| *g > 0.0).collect();
        gaps.sort_by(f64::total_cmp);
        let step = gaps.get(gaps.len() / 2).copied().unwrap_or(self.span / self.t.len() as f64);
        (1.5 / self.span, 0.5 / step)
    }

    /// How many frequencies of a band are tried.
    fn count(&self, (lowest, highest): (f64, f64)) -> usize {
        (((highest - lowest) * self.span * OVERSAMPLING) as usize).clamp(16, MOST)
    }

    /// How far they are apart.
    fn spacing(&self, band: (f64, f64)) -> f64 {
        (band.1 - band.0) / (self.count(band) - 1) as f64
    }

    /// The peaks of a band that say something, the highest first.
    fn peaks(&self, band: (f64, f64)) -> Vec<Peak> {
        let ((lowest, highest), count) = (band, self.count(band));
        let power: Vec<(f64, f64)> = (0..count)
            .map(|i| {
                let f = lowest + (highest - lowest) * i as f64 / (count - 1) as f64;
                (f, self.power_at(f) / self.total)
            })
            .collect();
        let independent = (count - 1) as f64 / ((highest - lowest) * self.span);
        let floor = background(&power, independent, self.span);
        let mut peaks: Vec<Peak> = (1..count - 1)
            .filter(|&i| power[i].1 > power[i - 1].1 && power[i].1 >= power[i + 1].1)
            .map(|i| Peak { f: power[i].0, power: power[i].1, line: power[i].1 > LINE * floor[i] })
            .collect();
        peaks.sort_by(|a, b| b.power.total_cmp(&a.power));
        let Some(&Peak { power: strongest, .. }) = peaks.first() else { return vec![] };
        let mut found: Vec<Peak> = Vec::new();
        let (mut broad, mut lines) = (0, 0);
        for peak in peaks {
            // A peak says something if it is not the noise floor (of 2/n on average) and not a neighbour of a larger one.
            // A walk of the level has the most power of all, at low frequencies; a line above it counts however weak.
            // What has an end leaks: (π δ)⁻² of its power at δ independent frequencies from it.
            let apart = found.iter().all(|g| {
                let distance = (peak.f - g.f).abs() * self.span;
                distance > 1.5 && peak.power > LEAK * g.power / (PI * distance).powi(2)
            });
            let (strong, count) = match peak.line {
                true => (true, &mut lines),
                false => (peak.power > 0.02 * strongest, &mut broad),
            };
            if peak.power > 8.0 / self.t.len() as f64 && strong && apart && *count < 6 {
                *count += 1;
                found.push(peak);
            }
        }
        found
    }

    /// The top of the peak near f: the frequency with the most power within `width` of it, in so many steps to either side.
    fn top(&self, f: f64, width: f64, steps: i32) -> f64 {
        let at = |k: i32| f + width * f64::from(k) / f64::from(steps);
        let power = (-steps..=steps).map(|k| (k, self.power_at(at(k))));
        at(power.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |best| best.0))
    }

    /// Power of one frequency: the part of Σy² that a sinusoid of any phase explains.
    fn power_at(&self, f: f64) -> f64 {
        let (mut ys, mut yc, mut ss, mut cc, mut sc) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (&t, &y) in self.t.iter().zip(&self.y) {
            let (s, c) = (TAU * f * t).sin_cos();
            ys += y * s;
            yc += y * c;
            ss += s * s;
            cc += c * c;
            sc += s * c;
        }
        // Turned by the angle that makes sine and cosine orthogonal on these times.
        let (s, c) = (0.5 * f64::atan2(2.0 * sc, cc - ss)).sin_cos();
        let (cross, along, across) = (2.0 * s * c * sc, c * yc + s * ys, c * ys - s * yc);
        let (cc, ss) = (c * c * cc + s * s * ss + cross, c * c * ss + s * s * cc - cross);
        along * along / cc.max(1e-12) + across * across / ss.max(1e-12)
    }
}

/// A frequency with more power than those beside it.
#[derive(Debug, Clone, Copy)]
struct Peak {
    f: f64,
    power: f64,
    /// Does it stand out from all around it?
    line: bool,
}

impl Peak {
    /// The season of a peak whose top is at f.
    fn season(self, f: f64) -> Season {
        Season { period: 1.0 / f, certain: self.line }
    }
}

/// The usual power about each frequency: the median of those within half of it, and no more than some. `independent` is the
/// number of frequencies tried for each independent one.
fn background(power: &[(f64, f64)], independent: f64, span: f64) -> Vec<f64> {
    let about = |i: usize| {
        let half = (independent * NEIGHBOURS.min(0.5 * power[i].0 * span)).max(4.0) as usize;
        let window = &power[i.saturating_sub(half)..(i + half + 1).min(power.len())];
        let mut window: Vec<f64> = window.iter().map(|p| p.1).collect();
        let middle = window.len() / 2;
        *window.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    (0..power.len()).map(about).collect()
}

/// Residuals of a straight line and a parabola, so that a trend is not taken for a long period.
fn detrended(t: &[f64], y: &[f64]) -> Vec<f64> {
    let n = t.len() as f64;
    let mean = t.iter().sum::<f64>() / n;
    let spread = (t.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt().max(1e-300);
    let (mut basis, mut rest) = (Basis::default(), y.to_vec());
    for power in 0..3 {
        basis.take(t.iter().map(|v| ((v - mean) / spread).powi(power)).collect(), &mut rest);
    }
    rest
}

/// Columns that are orthonormal (Gram–Schmidt).
#[derive(Debug, Clone, Default)]
pub(super) struct Basis(Vec<Vec<f64>>);

impl Basis {
    /// Adds a column and takes what it explains out of some values; false where it says nothing that the others do not.
    pub fn take(&mut self, mut column: Vec<f64>, from: &mut [f64]) -> bool {
        let along = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let less = |from: &mut [f64], a: &[f64], part: f64| from.iter_mut().zip(a).for_each(|(b, a)| *b -= part * a);
        let before = along(&column, &column).sqrt();
        for a in &self.0 {
            let part = along(a, &column);
            less(&mut column, a, part);
        }
        let length = along(&column, &column).sqrt();
        if length <= 1e-9 * before.max(1e-300) {
            return false;
        }
        column.iter_mut().for_each(|v| *v /= length);
        let part = along(&column, from);
        less(from, &column, part);
        self.0.push(column);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    #[test]
    fn finds_the_periods_that_are_there() {
        let t: Vec<f64> = (0..300).map(|i| f64::from(i) + 0.3 * (f64::from(i) * 1.7).sin()).collect();
        let y: Vec<f64> = t
            .iter()
            .map(|t| 0.02 * t + (TAU * t / 12.0).sin() + 0.4 * (TAU * t / 6.0).cos() + 0.7 * (TAU * t / 31.0).cos())
            .collect();
        let found = periods(&t, &y);
        assert!((found[0] - 12.0).abs() < 0.05, "{found:?}");
        assert!((found[1] - 31.0).abs() < 0.5, "{found:?}");
        assert!(found.iter().all(|p| (p - 6.0).abs() > 0.5), "the harmonic is not a period: {found:?}");
        assert!(periods(&t, &vec![1.0; 300]).is_empty());
    }

    #[test]
    fn a_week_is_no_harmonic_of_a_year_and_is_seen_above_a_walk() {
        let (mut rng, n) = (ChaCha8Rng::seed_from_u64(1), 1100);
        let mut normal = || rng.sample::<f64, _>(StandardNormal);
        let t: Vec<f64> = (0..n).map(f64::from).collect();
        let day = |t: f64| [0.0, 5.0, 3.0, 2.0, 10.0, 40.0, 25.0][t as usize % 7];
        let year = |t: f64| 30.0 * (TAU * t / 365.25).sin() + 10.0 * (2.0 * TAU * t / 365.25).cos();
        let both: Vec<f64> = t.iter().map(|&t| day(t) + year(t) + 6.0 * normal()).collect();
        let found = periods(&t, &both);
        assert!((found[0] - 7.0).abs() < 0.01 && (found[1] - 365.25).abs() < 15.0, "{found:?}");
        let mut level = 0.0;
        let walk = t.iter().map(|&t| {
            level += 3.0 * normal();
            level + 0.2 * day(t)
        });
        let found = periods(&t, &walk.collect::<Vec<_>>());
        assert!((found[0] - 7.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn a_day_is_no_harmonic_of_a_week() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let t: Vec<f64> = (0..8 * 168).map(f64::from).collect();
        let hour = |t: f64| {
            30.0 * (-((t % 24.0 - 19.0) / 3.0).powi(2)).exp() + 20.0 * (-((t % 24.0 - 8.0) / 2.0).powi(2)).exp()
        };
        let weekend = |t: f64| if t % 168.0 < 48.0 { -15.0 } else { 0.0 };
        let y: Vec<f64> =
            t.iter().map(|&t| hour(t) + weekend(t) + 5.0 * rng.sample::<f64, _>(StandardNormal)).collect();
        let found = periods(&t, &y);
        for period in [24.0, 168.0] {
            assert!(found[..2].iter().any(|p| (p / period - 1.0).abs() < 0.01), "{period}: {found:?}");
        }
    }

    #[test]
    fn a_long_series_has_its_day_week_and_year() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let n = 20_000;
        let value = |t: f64, rng: &mut ChaCha8Rng| {
            let day = 20.0 * (TAU * t / 24.0).sin() + 8.0 * (2.0 * TAU * t / 24.0).cos();
            let week = if t % 168.0 < 48.0 { -15.0 } else { 0.0 };
            day + week + 25.0 * (TAU * t / 8766.0).cos() + 5.0 * rng.sample::<f64, _>(StandardNormal)
        };
        let y: Vec<f64> = (0..n).map(|t| value(f64::from(t), &mut rng)).collect();
        let part = |rows: Vec<usize>| -> (Vec<f64>, Vec<f64>) { rows.iter().map(|&r| (r as f64, y[r])).unzip() };
        let (latest, whole) =
            (part((18_000..20_000).collect()), part((0..2000).map(|i| 10 * i + i * i % 10).collect()));
        let found = seasons_of_long((&latest.0, &latest.1), (&whole.0, &whole.1));
        // To within what a tenth of a repetition makes of it over the whole length. Two years and a bit of a third are no
        // proof: a level that walks may look like that.
        for (period, certain) in [(24.0, true), (168.0, true), (8766.0, false)] {
            let close = 0.2 * period * period / f64::from(n);
            let close = |s: &Season| s.certain == certain && (s.period - period).abs() < close;
            assert!(found[..3].iter().any(close), "{period}: {found:?}");
        }
    }

    #[test]
    fn too_short_is_no_period() {
        let (t, y) = ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, -1.0, 0.0]);
        assert!(periods(&t, &y).is_empty());
    }
}
