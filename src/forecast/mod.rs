//! Forecasts of series: the target's transform chosen by evidence, intervals at several levels, rolling-origin tests
//! against simple methods, and many series at once. Stands above `fit`; knows nothing of files or terminals.

mod backtest;
mod baseline;
mod found;
mod many;
mod picture;

pub use backtest::{Backtest, Score, backtest};
pub use baseline::{Baseline, season};
pub use found::{Finding, findings};
pub use many::{Outcome, Plan, Series, Status, forecast_all};

use crate::data::{Dataset, Horizon, Points, TimeAxis};
use crate::error::{Error, ErrorKind, Result};
use crate::fit::{Fit, Link, Model, Step};
use crate::optim::State;
use crate::plot::Band;
use serde::Serialize;
use std::ops::ControlFlow;

/// What is done to the target before it is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transform {
    /// Nothing.
    None,
    /// Its logarithm is fitted; it must be positive.
    Log,
    /// The logarithm where the target is positive, its spread grows with its level, and the evidence, in the target's
    /// own units, is higher with it.
    #[default]
    Auto,
}

/// How series are forecast: a fit, a transform, levels of intervals.
///
/// ```
/// use covary::data::Horizon;
/// use covary::{Dataset, Fit, Kernel, forecast::Forecaster};
///
/// let data = Dataset::from_csv("examples/data/airline.csv", "passengers")?;
/// let forecaster = Forecaster::new(Fit::new("LIN + PER + RBF".parse()?).restarts(1).iterations(20));
/// let ahead = forecaster.run(&data)?.ahead(&Horizon::Steps(12), &[80.0, 95.0])?;
/// assert_eq!(ahead.times[11], "1961-12");
/// assert!(ahead.bands[1].lower[0] < ahead.mean[0]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Forecaster {
    fit: Fit,
    transform: Transform,
    resume: Vec<(Link, Vec<Option<State>>)>,
}

/// A series that was fitted.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The model; its link is the transform.
    pub model: Model,
    /// Log marginal likelihood in the target's own units, so that transforms can be compared.
    pub evidence: f64,
    data: Dataset,
    axis: TimeAxis,
    /// What was chosen and why, in sentences.
    pub notes: Vec<String>,
}

/// A forecast.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// The times, in the form of the data.
    pub times: Vec<String>,
    /// The same as numbers of the time axis.
    #[serde(skip)]
    pub numbers: Vec<f64>,
    /// The mean of each value (of the log-normal distribution, where the logarithm was fitted).
    pub mean: Vec<f64>,
    /// The standard deviation of each value, noise included.
    pub sd: Vec<f64>,
    /// Central intervals.
    #[serde(skip)]
    pub bands: Vec<Band>,
}

impl Forecaster {
    /// Forecasts by this fit, the transform chosen by evidence.
    pub fn new(fit: Fit) -> Self {
        Self { fit, transform: Transform::Auto, resume: vec![] }
    }

    /// What is done to the target first.
    #[must_use]
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// Goes on from the states of an earlier run on the same series: those that the restarts under this link had.
    #[must_use]
    pub fn resume(mut self, link: Link, states: Vec<Option<State>>) -> Self {
        self.resume.push((link, states));
        self
    }

    /// Fits a series: a dataset with one input.
    ///
    /// # Errors
    /// When there are several inputs, the logarithm of a value that is not positive is asked for, or the fit fails.
    pub fn run(&self, data: &Dataset) -> Result<Fitted> {
        self.run_observed(data, |_, _| ControlFlow::Continue(()))
    }

    /// The same, seen at every iteration of the fit under each link.
    ///
    /// # Errors
    /// As [`Forecaster::run`].
    pub fn run_observed(
        &self,
        data: &Dataset,
        watch: impl Fn(Link, Step) -> ControlFlow<()> + Sync,
    ) -> Result<Fitted> {
        if data.d() != 1 {
            let kind = ErrorKind::Size { what: "input columns of a series", expected: 1, found: data.d() };
            return Err(Error::new(kind).with_hint("choose the column of times as the only input"));
        }
        let lowest = data.y().iter().position(|&y| y <= 0.0);
        if let (Transform::Log, Some(row)) = (self.transform, lowest) {
            let message = format!("row {}: the logarithm needs a positive target: {}", row + 1, data.y()[row]);
            return Err(Error::option("transform", message).with_hint("`--transform none` fits the target as it is"));
        }
        let one = |link: Link| -> Result<Fitted> {
            let linked =
                if link == Link::Identity { data.clone() } else { data.clone().map_target(|y| link.apply(y))? };
            let states = self.resume.iter().find(|r| r.0 == link).map_or(vec![], |r| r.1.clone());
            let fit = self.fit.clone().resume_some(states);
            let model = fit.run_observed(&linked, |step| watch(link, step))?.with_link(link);
            // ln p(y) = ln p(z) + Σ ln |dz/dy|, and z was standardised by its width on the way.
            let width = model.scaling().target_width().ln() * data.n() as f64;
            let jacobian: f64 = data.y().iter().map(|&y| link.log_jacobian(y)).sum();
            let evidence = model.account().log_marginal_likelihood - width + jacobian;
            let axis = data.axis(0).cloned().unwrap_or_else(|| TimeAxis::plain(data.x().column(0)));
            Ok(Fitted { model, evidence, data: data.clone(), axis, notes: vec![] })
        };
        match self.transform {
            Transform::None => one(Link::Identity),
            Transform::Log => one(Link::Log),
            Transform::Auto if lowest.is_some() || !spread_grows(data.y()) => one(Link::Identity),
            Transform::Auto => {
                let (plain, log) = (one(Link::Identity)?, one(Link::Log)?);
                let (p, l) = (plain.evidence, log.evidence);
                let note = |what: &str| format!("{what}: log evidence {l:.1} with the logarithm, {p:.1} without");
                let (mut chosen, note) = match l > p {
                    true => (log, note("the logarithm of the target was fitted")),
                    false => (plain, note("the target was fitted as it is")),
                };
                chosen.notes.push(note);
                Ok(chosen)
            }
        }
    }
}

impl Fitted {
    /// The series.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// Its time axis.
    pub fn axis(&self) -> &TimeAxis {
        &self.axis
    }

    /// The forecast up to a horizon, with central intervals of these per cents.
    ///
    /// # Errors
    /// When the horizon cannot be reached, or a level is not between 0 and 100.
    pub fn ahead(&self, horizon: &Horizon, levels: &[f64]) -> Result<Forecast> {
        let ahead = self.data.ahead_to(horizon)?;
        let numbers: Vec<f64> = ahead.iter().map(|t| t.0).collect();
        self.at(numbers, ahead.into_iter().map(|t| t.1).collect(), levels)
    }

    /// The forecast at these times, given as numbers of the axis and as texts.
    ///
    /// # Errors
    /// When a level is not between 0 and 100.
    pub fn at(&self, numbers: Vec<f64>, times: Vec<String>, levels: &[f64]) -> Result<Forecast> {
        check_levels(levels)?;
        let values = self.model.distribution(&Points::from_column(&numbers)?)?;
        let (mean, sd) = values.iter().map(|m| m.moments()).map(|(m, v)| (m, v.sqrt())).unzip();
        let band = |&level: &f64| {
            let end = |p: f64| values.iter().map(|m| m.quantile(p)).collect();
            Band { level, lower: end(0.5 - level / 200.0), upper: end(0.5 + level / 200.0) }
        };
        Ok(Forecast { times, numbers, mean, sd, bands: levels.iter().map(band).collect() })
    }
}

/// Whether changes from one value to the next are larger where the values are: the correlation of mean and of mean
/// absolute change over pieces of the series is above 0.2, or there are too few values to tell.
fn spread_grows(y: &[f64]) -> bool {
    if y.len() < 24 {
        return true;
    }
    let size = (y.len() / 12).max(6);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let pieces = y.chunks(size).filter(|p| p.len() > size / 2);
    let (levels, changes): (Vec<f64>, Vec<f64>) = pieces
        .map(|p| (mean(p), p.windows(2).map(|w| (w[1] - w[0]).abs()).sum::<f64>() / (p.len() - 1) as f64))
        .unzip();
    let (a, b) = (mean(&levels), mean(&changes));
    let about = |u: &[f64], a: f64, v: &[f64], b: f64| u.iter().zip(v).map(|(u, v)| (u - a) * (v - b)).sum::<f64>();
    let (both, one, two) =
        (about(&levels, a, &changes, b), about(&levels, a, &levels, a), about(&changes, b, &changes, b));
    both > 0.2 * (one * two).sqrt()
}

fn check_levels(levels: &[f64]) -> Result<()> {
    match levels.iter().find(|l| !(**l > 0.0 && **l < 100.0)) {
        Some(level) => Err(Error::option("interval", format!("a level lies between 0 and 100: {level}"))),
        None => Ok(()),
    }
}
