//! Forecasts of series: the target's transform chosen by evidence, intervals at several levels, rolling-origin tests
//! against simple methods, and many series at once. Stands above `fit`; knows nothing of files or terminals.

mod backtest;
mod baseline;
mod choose;
mod found;
mod many;
mod past;
mod picture;
mod rivals;
mod rolling;
mod rows;
mod shares;
mod shifts;

pub use backtest::{Backtest, Score, backtest};
pub use baseline::{Baseline, season};
pub use found::{Finding, findings};
pub use many::{Outcome, Plan, Series, Status, forecast_all};
pub use rolling::Rolling;

use choose::{Chosen, Question};
use shifts::shifts;

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
    /// Where the target is positive and its spread grows with its level, fits of the logarithm compete with fits of
    /// the target itself, and good ones are averaged.
    #[default]
    Auto,
}

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// All rivals, judged from several origins.
    #[default]
    Full,
    /// A few rivals and one origin, for many series at once.
    Quick,
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
    horizon: Option<usize>,
    effort: Effort,
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
    /// How forecasts of the past came out, where the series is long enough.
    pub rolling: Option<Rolling>,
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
        Self { fit, transform: Transform::Auto, horizon: None, effort: Effort::Full, resume: vec![] }
    }

    /// What is done to the target first.
    #[must_use]
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// How many steps will be forecast: kernels are judged by forecasts of the past this far ahead.
    #[must_use]
    pub fn horizon(mut self, steps: usize) -> Self {
        self.horizon = Some(steps);
        self
    }

    /// How much is tried.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Goes on from the states of an earlier run on the same series: those that the restarts under this link had.
    #[must_use]
    pub fn resume(mut self, link: Link, states: Vec<Option<State>>) -> Self {
        self.resume.push((link, states));
        self
    }

    /// Bytes that a forecast of a series of n rows takes, beyond the series itself: the work on the rows that kernels are
    /// learned from, and the models of those that a forecast goes on from.
    pub fn memory(&self, n: usize) -> usize {
        let compete = self.competes();
        let (learned, seen) = (n.min(rows::most_learned(n, compete)), n.min(rows::SEEN));
        let members = if compete { shares::MOST_IN_ALL } else { self.fit.starts() };
        self.fit.memory(learned, 1) + 8 * members * seen * seen + 64 * n
    }

    /// Whether other kernels compete with the asked one.
    fn competes(&self) -> bool {
        self.fit.kernel().is_network() && !self.fit.is_alone()
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
        let links: &[Link] = match self.transform {
            Transform::None => &[Link::Identity],
            Transform::Log => &[Link::Log],
            Transform::Auto if lowest.is_some() || !spread_grows(data.y()) => &[Link::Identity],
            Transform::Auto => &[Link::Identity, Link::Log],
        };
        let (horizon, effort, resume) = (self.horizon, self.effort, &self.resume[..]);
        let in_order = data.select(&by_time(data));
        let mut levels = Vec::new();
        for &link in links.iter().filter(|_| self.competes()) {
            levels.push((link, shifts(&link.of(&in_order)?, &self.fit)));
        }
        // One of many series may wait for others, which is not its fault: there every fit has a clock of its own.
        let measured = self.fit.clone().measured_by(&in_order)?;
        let fit = match effort {
            Effort::Full => &measured.on_the_clock(),
            Effort::Quick => &measured,
        };
        let levels = &levels[..];
        let chosen =
            Question { fit, data: &in_order, links, compete: self.competes(), horizon, effort, resume, levels }
                .answer(&watch)?;
        let axis = data.axis(0).cloned().unwrap_or_else(|| TimeAxis::plain(data.x().column(0)));
        let Chosen { model, evidence, rolling, hurried } = chosen;
        let mut notes = notes(&model, links, &axis);
        notes.extend(rows::note(data.n(), self.competes()));
        if hurried {
            notes.push("the limit of time was reached: less was tried than usual".into());
        }
        Ok(Fitted { model, evidence, data: data.clone(), axis, rolling, notes })
    }
}

/// Rows in the order of their times.
fn by_time(data: &Dataset) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..data.n()).collect();
    rows.sort_by(|&a, &b| data.x().column(0)[a].total_cmp(&data.x().column(0)[b]));
    rows
}

/// What was taken out of the level, in sentences.
fn shift_notes(model: &Model, axis: &TimeAxis) -> Vec<String> {
    let when = |at: f64| axis.to_text(at).unwrap_or_else(|_| at.to_string());
    let mut notes: Vec<String> = Vec::new();
    for member in model.members() {
        let steps = member.levels().steps();
        for (i, &(at, by)) in steps.iter().enumerate() {
            let size = match member.link() {
                Link::Identity => format!("by {by:+.4}"),
                _ => format!("by a factor of {:.3}", by.exp()),
            };
            let back = steps[i + 1..].iter().find(|s| s.1 == -by).map(|s| when(s.0));
            let lasts = !steps[..i].iter().any(|s| s.1 == -by);
            let note = match back {
                Some(back) => format!("values from {} until {back} are out of line {size}: left aside", when(at)),
                None if lasts => format!("the level steps {size} at {}: forecasts go on from there", when(at)),
                None => continue,
            };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// What was averaged, in sentences.
fn notes(model: &Model, links: &[Link], axis: &TimeAxis) -> Vec<String> {
    let mut notes = Vec::new();
    let members = model.members();
    notes.extend(shift_notes(model, axis));
    let shares: Vec<String> = model
        .account()
        .candidates
        .iter()
        .filter(|c| c.weight > 0.0)
        .map(|c| {
            let log = if c.transform == Link::Log { " of the logarithm" } else { "" };
            format!("{:.0} % {}{log}", 100.0 * c.weight, c.kernel)
        })
        .collect();
    if members.len() > 1 {
        notes.push(format!(
            "average of {} fits, weighed by evidence and forecasts of the past: {}",
            members.len(),
            shares.join(", ")
        ));
    }
    if links.len() > 1 {
        let log: f64 = members.iter().filter(|m| m.link() == Link::Log).map(|m| m.weight()).sum();
        notes.push(match log {
            l if l > 0.999 => "the logarithm of the target was fitted".to_string(),
            l if l < 0.001 => "the target was fitted as it is: the logarithm did worse".to_string(),
            l => format!("fits of the logarithm of the target have {:.0} % of the weight", 100.0 * l),
        });
    }
    notes
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
        let points = Points::from_column(&numbers)?;
        let values = self.model.distribution(&points)?;
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
