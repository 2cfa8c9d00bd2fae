//! Simple methods that a forecast has to beat: the same season again, a straight line through the ends, exponential
//! smoothing. Each gives a mean and a spread that grows with the distance; no claim is made for more.

use super::Forecast;
use crate::data::{Dataset, TimeAxis};
use crate::normal;
use crate::plot::Band;

/// A simple method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The value one season ago; the last value where there is no season.
    SeasonalNaive,
    /// The line through the first and the last value.
    Drift,
    /// Exponential smoothing of level, trend and season, additive, its three constants from a grid.
    Smoothing,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Baseline; 3] = [Self::SeasonalNaive, Self::Drift, Self::Smoothing];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SeasonalNaive => "seasonal-naive",
            Self::Drift => "drift",
            Self::Smoothing => "smoothing",
        }
    }

    /// The values at future times, the errors one step ahead on the data, and after how many steps the error's variance
    /// doubles.
    fn values(self, times: &[f64], y: &[f64], future: &[f64], step: f64, season: usize) -> (Vec<f64>, f64) {
        let (first, last) = (times[0], times[times.len() - 1]);
        let steps = |t: f64| ((t - last) / step).round().max(1.0) as usize;
        match self {
            Self::SeasonalNaive => {
                let back = |t: f64, until: f64| {
                    let cycle = season as f64 * step;
                    let at = t - ((t - until) / cycle).ceil().max(1.0) * cycle;
                    let i = times.partition_point(|&s| s < at - 0.5 * step);
                    if season > 1 && i < times.len() && times[i] <= until && (times[i] - at).abs() <= 0.5 * step {
                        y[i]
                    } else {
                        y[times.partition_point(|&s| s <= until) - 1]
                    }
                };
                let errors = (1..y.len()).map(|i| {
                    let until = if times[i] - season as f64 * step >= first {
                        times[i] - season as f64 * step
                    } else {
                        times[i - 1]
                    };
                    y[i] - back(times[i], until)
                });
                (future.iter().map(|&t| back(t, last)).collect(), spread(errors))
            }
            Self::Drift => {
                let slope = if last > first { (y[y.len() - 1] - y[0]) / (last - first) } else { 0.0 };
                let errors = (1..y.len()).map(|i| y[i] - y[i - 1] - slope * (times[i] - times[i - 1]));
                (future.iter().map(|&t| y[y.len() - 1] + slope * (t - last)).collect(), spread(errors))
            }
            Self::Smoothing => {
                let mut best: Option<(f64, Smoothed)> = None;
                let grid = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9];
                for alpha in grid {
                    for beta in [0.0, 0.01, 0.05, 0.1, 0.3] {
                        for gamma in if season > 1 { &[0.05, 0.2, 0.5][..] } else { &[0.0][..] } {
                            let found = Smoothed::run(y, season, alpha, beta, *gamma);
                            if best.as_ref().is_none_or(|b| found.error < b.0) {
                                best = Some((found.error, found));
                            }
                        }
                    }
                }
                let Some((error, smoothed)) = best else { return (vec![y[y.len() - 1]; future.len()], 0.0) };
                (future.iter().map(|&t| smoothed.ahead(steps(t))).collect(), error.sqrt())
            }
        }
    }

    /// The forecast at future times. The spread is the error one step (or season) ahead, and grows with the root of the
    /// distance.
    pub fn forecast(self, data: &Dataset, axis: &TimeAxis, ahead: &[(f64, String)], levels: &[f64]) -> Forecast {
        let (times, y) = (data.x().column(0), data.y());
        let season = season(data, axis);
        let future: Vec<f64> = ahead.iter().map(|t| t.0).collect();
        let (mean, error) = self.values(times, y, &future, axis.step(), season);
        let unit = if self == Self::SeasonalNaive { season } else { 1 } as f64 * axis.step();
        let last = times[times.len() - 1];
        let sd: Vec<f64> = future.iter().map(|t| error * ((t - last) / unit).max(1.0).sqrt()).collect();
        let band = |&level: &f64| {
            let z = normal::reach(level / 100.0);
            let end = |z: f64| mean.iter().zip(&sd).map(|(m, s)| m + z * s).collect();
            Band { level, lower: end(-z), upper: end(z) }
        };
        let bands = levels.iter().map(band).collect();
        Forecast { times: ahead.iter().map(|t| t.1.clone()).collect(), numbers: future, mean, sd, bands }
    }
}

fn spread(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = errors.fold((0.0, 0), |(s, n), e| (s + e * e, n + 1));
    (sum / f64::from(n.max(1))).sqrt()
}

/// Level, trend and season after the last value.
struct Smoothed {
    level: f64,
    trend: f64,
    season: Vec<f64>,
    n: usize,
    error: f64,
}

impl Smoothed {
    /// l ← α(y − s) + (1 − α)(l + b);  b ← β Δl + (1 − β) b;  s ← γ(y − l) + (1 − γ) s
    fn run(y: &[f64], m: usize, alpha: f64, beta: f64, gamma: f64) -> Self {
        let whole = m > 1 && y.len() >= 2 * m;
        let m = if whole { m } else { 1 };
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let mut level = if whole { mean(&y[..m]) } else { y[0] };
        let mut trend = if whole { (mean(&y[m..2 * m]) - level) / m as f64 } else { 0.0 };
        let mut season: Vec<f64> = if whole { (0..m).map(|i| y[i] - level).collect() } else { vec![0.0] };
        if whole {
            // The mean of the first season is its level in the middle.
            level -= trend * 0.5 * (m + 1) as f64;
            season.iter_mut().enumerate().for_each(|(i, s)| *s -= trend * (i as f64 - 0.5 * (m as f64 - 1.0)));
        }
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, &v) in y.iter().enumerate().skip(usize::from(!whole)) {
            let s = season[i % m];
            let expected = level + trend + s;
            if i >= m {
                (sum, count) = (sum + (v - expected).powi(2), count + 1.0);
            }
            let before = level;
            level = alpha * (v - s) + (1.0 - alpha) * (level + trend);
            trend = beta * (level - before) + (1.0 - beta) * trend;
            if whole {
                season[i % m] = gamma * (v - level) + (1.0 - gamma) * s;
            }
        }
        Self { level, trend, season, n: y.len(), error: if count > 0.0 { sum / count } else { 0.0 } }
    }

    fn ahead(&self, steps: usize) -> f64 {
        let s = self.season[(self.n + steps - 1) % self.season.len()];
        self.level + self.trend * steps as f64 + s
    }
}

/// Steps of one season: of the year for months and quarters, of the week for days, of the day for hours; otherwise the
/// lag at which the differences are most alike, or 1. Never more than half the series.
pub fn season(data: &Dataset, axis: &TimeAxis) -> usize {
    // Of more steps than ten minutes make a day, a simple method knows too little.
    let whole = |steps: &f64| (steps - steps.round()).abs() < 0.01 && *steps < 144.5;
    let mut cycles = axis.cycles().into_iter().map(|cycle| cycle / axis.step());
    let usual = cycles.find(whole).map_or(0, |steps| steps.round() as usize);
    let n = data.n();
    if usual > 1 && 2 * usual <= n {
        return usual;
    }
    let d: Vec<f64> = data.y().windows(2).map(|w| w[1] - w[0]).collect();
    let mean = d.iter().sum::<f64>() / d.len().max(1) as f64;
    let power: f64 = d.iter().map(|v| (v - mean).powi(2)).sum();
    let alike = |lag: usize| d.iter().zip(&d[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / power;
    let longest = (n / 3).min(400);
    let best = (2..longest).max_by(|&a, &b| alike(a).total_cmp(&alike(b)));
    best.filter(|&lag| alike(lag) > 0.3).unwrap_or(1)
}
