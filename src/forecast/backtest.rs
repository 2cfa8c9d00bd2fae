//! Rolling origin: the past is forecast from a shorter past, beside simple methods, and the table is printed whoever
//! wins.

use super::{Baseline, Forecast, Forecaster, season};
use crate::data::{Dataset, TimeAxis};
use crate::error::{Error, Result};
use serde::Serialize;

/// How one method did, over all origins and distances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// The method.
    pub method: String,
    /// Mean absolute error.
    pub mae: f64,
    /// Root mean squared error.
    pub rmse: f64,
    /// Mean absolute error, divided by that of the seasonal-naive method one season ahead on the first training part.
    pub mase: f64,
    /// Share of values within the 80 % interval.
    pub coverage_80: f64,
    /// Share of values within the 95 % interval.
    pub coverage_95: f64,
    /// Number of values.
    pub n: usize,
}

/// A rolling-origin test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backtest {
    /// The last time seen at each origin.
    pub origins: Vec<String>,
    /// Steps ahead at each origin.
    pub steps: usize,
    /// Steps of a season, as the simple methods take it.
    pub season: usize,
    /// Each method; ours is called `covary`.
    pub scores: Vec<Score>,
}

/// Forecasts the last `origins`·`steps` values in pieces of `steps`, each from all that came before.
///
/// # Errors
/// When the series is too short, or a fit fails.
pub fn backtest(forecaster: &Forecaster, data: &Dataset, steps: usize, origins: usize) -> Result<Backtest> {
    let (n, tested) = (data.n(), steps.saturating_mul(origins));
    if origins == 0 || steps == 0 || tested + 8 > n {
        let message = format!("{origins} origins of {steps} steps leave fewer than 8 of {n} rows to learn from");
        return Err(Error::option("backtest", message).with_hint("fewer origins, or a shorter horizon"));
    }
    let forecaster = &forecaster.clone().horizon(steps);
    let axis = data.axis(0).cloned().unwrap_or_else(|| TimeAxis::plain(data.x().column(0)));
    let levels = [80.0, 95.0];
    let mut results: Vec<(String, Vec<Forecast>)> = vec![("covary".into(), vec![])];
    results.extend(Baseline::ALL.map(|b| (b.name().to_string(), vec![])));
    let (mut ends, mut truth, mut scale) = (vec![], vec![], 1.0);
    for origin in 0..origins {
        let end = n - (origins - origin) * steps;
        let past = data.select(&(0..end).collect::<Vec<_>>());
        let times = &data.x().column(0)[end..end + steps];
        let ahead: Vec<(f64, String)> = times.iter().map(|&t| Ok((t, axis.to_text(t)?))).collect::<Result<_>>()?;
        let texts = ahead.iter().map(|t| t.1.clone()).collect();
        results[0].1.push(forecaster.run(&past)?.at(times.to_vec(), texts, &levels)?);
        for (result, baseline) in results[1..].iter_mut().zip(Baseline::ALL) {
            result.1.push(baseline.forecast(&past, &axis, &ahead, &levels));
        }
        if origin == 0 {
            let m = season(&past, &axis);
            let (sum, count) =
                (m..end).fold((0.0, 0.0), |(s, c), i| (s + (data.y()[i] - data.y()[i - m]).abs(), c + 1.0));
            scale = if sum > 0.0 { sum / count } else { 1.0 };
        }
        ends.push(axis.to_text(data.x().column(0)[end - 1])?);
        truth.extend_from_slice(&data.y()[end..end + steps]);
    }
    let score = |(method, forecasts): (String, Vec<Forecast>)| {
        let join = |f: &dyn Fn(&Forecast) -> &[f64]| -> Vec<f64> {
            forecasts.iter().flat_map(|x| f(x).iter().copied()).collect()
        };
        let mean = join(&|f| &f.mean);
        let inside = |b: usize| {
            let (low, high) = (join(&|f| &f.bands[b].lower), join(&|f| &f.bands[b].upper));
            let count = truth.iter().zip(low.iter().zip(&high)).filter(|(y, (l, h))| *l <= y && y <= h).count();
            count as f64 / truth.len() as f64
        };
        let errors: Vec<f64> = truth.iter().zip(&mean).map(|(y, m)| y - m).collect();
        let mae = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len() as f64;
        let rmse = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
        let (coverage_80, coverage_95, n) = (inside(0), inside(1), truth.len());
        Score { method, mae, rmse, mase: mae / scale, coverage_80, coverage_95, n }
    };
    let season = season(data, &axis);
    Ok(Backtest { origins: ends, steps, season, scores: results.into_iter().map(score).collect() })
}
