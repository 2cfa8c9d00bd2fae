//! Many series in one long table: each is fitted on its own, one bad one never stops the rest, and every one gets a
//! status. The order and the numbers are the same whatever the number of threads.

use super::{Baseline, Forecast, Forecaster};
use crate::data::{Choice, Dataset, Horizon, Table, TimeAxis};
use crate::error::{Error, Result};
use crate::fit::Link;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// One series of a long table.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is called in the column that tells series apart.
    pub id: String,
    /// Its rows of the table.
    pub rows: Vec<usize>,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Fitted and forecast.
    Ok,
    /// Not fitted; the forecast comes from a simple method.
    Fallback,
    /// No forecast.
    Failed,
}

/// What became of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub id: String,
    /// How it went.
    pub status: Status,
    /// Rows used.
    pub rows: usize,
    /// The method of the forecast: `nkn` and the like are `covary`; else the simple method.
    pub method: String,
    /// Whether its logarithm was fitted.
    pub transform: Link,
    /// Log marginal likelihood in the target's own units.
    pub log_marginal_likelihood: Option<f64>,
    /// Did the fit converge?
    pub converged: bool,
    /// What went wrong, or what was noticed.
    pub message: String,
    /// Wall time.
    pub seconds: f64,
    /// The forecast; empty where it failed.
    #[serde(skip)]
    pub forecast: Forecast,
}

/// What is to be done with every series.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// How each is fitted.
    pub forecaster: &'a Forecaster,
    /// Which columns are time and target.
    pub choice: &'a Choice,
    /// How far ahead.
    pub horizon: &'a Horizon,
    /// Per cents of the intervals.
    pub levels: &'a [f64],
}

/// After so many series freed memory is given back.
const TIDY: usize = 16;

/// Forecasts every series of a table and hands on what became of each, with its place in `series`, as it is done; from
/// one thread, which need keep no more than it wants. Once `stop` is set no further one is begun, and those not begun are failures.
pub fn forecast_all(
    plan: &Plan,
    table: &Table,
    series: &[Series],
    mut done: impl FnMut(usize, Outcome) + Send,
    stop: &AtomicBool,
) {
    let one = |s: &Series| {
        let clock = Instant::now();
        let mut outcome = Outcome {
            id: s.id.clone(),
            status: Status::Failed,
            rows: s.rows.len(),
            method: String::new(),
            transform: Link::Identity,
            log_marginal_likelihood: None,
            converged: false,
            message: String::new(),
            seconds: 0.0,
            forecast: Forecast::default(),
        };
        if stop.load(Ordering::Relaxed) {
            outcome.message = "interrupted".into();
        } else if let Err(error) = fill(&mut outcome, plan, table, s) {
            outcome.message = error.to_string();
        }
        outcome.seconds = clock.elapsed().as_secs_f64();
        outcome
    };
    // What is kept belongs to a thread of its own: scattered among the working memory of the fits, a few small pieces
    // of each series would keep most of that memory from being used again.
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<(usize, Outcome)>();
        let keeper = scope.spawn(move || {
            for (count, (at, outcome)) in receive.into_iter().enumerate() {
                done(at, outcome);
                if count % TIDY == 0 {
                    crate::memory::give_back();
                }
            }
        });
        // The keeper listens until the last sender is gone; if it panicked, no more is begun and its panic goes on below.
        let work =
            |sender: &mut mpsc::Sender<_>, (at, s): (usize, &Series)| sender.send((at, one(s))).map_err(|_| ());
        let _ = series.par_iter().enumerate().with_max_len(1).try_for_each_with(send, work);
        keeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn fill(outcome: &mut Outcome, plan: &Plan, table: &Table, series: &Series) -> Result<()> {
    let Plan { forecaster, choice, horizon, levels } = *plan;
    let data = Dataset::from_table(&table.select(&series.rows), choice)?;
    outcome.rows = data.n();
    let ahead = data.ahead_to(horizon)?;
    let forecaster = forecaster.clone().horizon(ahead.len());
    let fitted = forecaster.run(&data).and_then(|fitted| Ok((fitted.ahead(horizon, levels)?, fitted)));
    match fitted.and_then(checked) {
        Ok((forecast, fitted)) => {
            let account = fitted.model.account();
            outcome.method = "covary".into();
            outcome.transform = fitted.model.link();
            outcome.log_marginal_likelihood = Some(fitted.evidence);
            outcome.converged = account.converged;
            let slow = (!account.converged).then(|| account.reason.clone());
            let said = slow.into_iter().chain(super::shift_notes(&fitted.model, fitted.axis()));
            outcome.message = said.collect::<Vec<_>>().join("; ");
            (outcome.status, outcome.forecast) = (Status::Ok, forecast);
        }
        Err(error) => {
            let axis = data.axis(0).cloned().unwrap_or_else(|| TimeAxis::plain(data.x().column(0)));
            let method = if super::season(&data, &axis) > 1 { Baseline::SeasonalNaive } else { Baseline::Drift };
            outcome.method = method.name().into();
            outcome.message = error.to_string();
            (outcome.status, outcome.forecast) = (Status::Fallback, method.forecast(&data, &axis, &ahead, levels));
        }
    }
    Ok(())
}

/// A forecast with a number that is not finite is none.
fn checked<T>((forecast, fitted): (Forecast, T)) -> Result<(Forecast, T)> {
    match forecast.mean.iter().chain(&forecast.sd).all(|v| v.is_finite()) {
        true => Ok((forecast, fitted)),
        false => Err(Error::option("forecast", "it is not finite")),
    }
}
