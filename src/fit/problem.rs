//! Data made ready for a fit: columns bound, standardised, in an order of its own, equal rows merged. The same data in
//! other units or another order of rows make the same problem, and so the same fit.

use super::link::Link;
use super::member::Parts;
use super::mixture::Part;
use super::{Fit, Standardize, Units, ends};
use crate::data::{Dataset, Places, Points, Scaling, Split, Stream};
use crate::error::Result;
use crate::gp::{Exact, Repeats};
use crate::kernel::Kernel;
use crate::program::{Inputs, Program};
use crate::threads::Threads;
use std::sync::OnceLock;

/// Standardised numbers are rounded to multiples of this: a change of units moves their last bits, which hundreds of
/// steps of an optimiser would carry into the first ones. Far below what a fit can tell.
pub(super) const GRAIN: f64 = 1.0 / (1u64 << 32) as f64;
/// The smallest noise variance, on the standardised target.
pub(super) const NOISE_FLOOR: f64 = 1e-6;

/// What is fitted.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub scaling: Scaling,
    /// What was done to the target before it was standardised.
    pub link: Link,
    pub x: Inputs,
    pub y: Vec<f64>,
    /// Known noise variances, row by row.
    pub known: Option<Vec<f64>>,
    /// The common noise variance, where it is known.
    pub fixed_noise: Option<f64>,
    /// What rows stand for, where equal ones were merged.
    pub repeats: Option<Repeats>,
    pub encoding: crate::data::Encoding,
    pub target: String,
    /// Names of the inputs.
    pub columns: Vec<String>,
    /// Rows of the data.
    pub rows: usize,
    pub notes: Vec<String>,
    /// Blocks of the outermost rows, once they are asked for.
    pub ends: OnceLock<Vec<Vec<usize>>>,
}

impl Problem {
    /// The rows of a fit; equal ones are merged unless a kernel tells them apart.
    pub fn new(data: &Dataset, fit: &Fit, merge: bool) -> Result<Self> {
        let order = order(data);
        let data = &data.select(&order);
        let mut notes: Vec<String> = data.notes().to_vec();
        let (scaling, x, y) = match fit.standardize {
            Standardize::Yes => {
                let own = Scaling::of(data)?;
                let scaling = match &fit.units {
                    Units::Own => own,
                    Units::Inputs(other) => own.with_inputs_of(other),
                    Units::All(other) => other.clone(),
                };
                notes.extend(scaling.notes(data));
                let (x, y) = (scaling.points(data.x())?, scaling.target(data.y()));
                (scaling, rounded(&x)?, y.iter().map(|&v| to_grain(v, GRAIN)).collect())
            }
            Standardize::No => (Scaling::identity(data.d()), data.x().clone(), data.y().to_vec()),
        };
        let known: Option<Vec<f64>> = data.noise().map(|v| v.iter().map(|&v| scaling.noise(v)).collect());
        let fixed_noise = fit.noise.map(|sd| scaling.noise(sd * sd).max(NOISE_FLOOR));
        let merged = if merge && known.is_none() { Repeats::merge(&x, &y) } else { None };
        let (x, y, repeats) = match merged {
            Some(merged) => {
                notes.push(format!(
                    "{} rows have the inputs of another: merged exactly, which leaves {}",
                    y.len() - merged.rows.len(),
                    merged.rows.len()
                ));
                (x.select(&merged.rows), merged.y, Some(merged.repeats))
            }
            None => (x, y, None),
        };
        Ok(Self {
            scaling,
            link: fit.link,
            x: Inputs::new(x),
            y,
            known,
            fixed_noise,
            repeats,
            encoding: data.encoding().clone(),
            target: data.target().to_string(),
            columns: data.inputs().to_vec(),
            rows: data.n(),
            notes,
            ends: OnceLock::new(),
        })
    }

    /// Some rows of a stream, standardised with all of them.
    pub fn of_stream(
        stream: &Stream,
        scaling: &Scaling,
        (x, y): (Points, Vec<f64>),
        noise: Option<f64>,
    ) -> Result<Self> {
        Ok(Self {
            fixed_noise: noise.map(|sd| scaling.noise(sd * sd).max(NOISE_FLOOR)),
            scaling: scaling.clone(),
            link: Link::Identity,
            x: Inputs::new(x),
            rows: y.len(),
            y,
            known: None,
            repeats: None,
            encoding: stream.encoding().clone(),
            target: stream.target_name().unwrap_or("y").to_string(),
            columns: stream.encoding().names(),
            notes: stream.notes().to_vec(),
            ends: OnceLock::new(),
        })
    }

    /// A process of these rows, as far as it needs no work.
    pub fn parts(&self, kernel: Kernel, noise: f64, weight: f64) -> Parts {
        Parts {
            weight,
            kernel,
            noise,
            link: self.link,
            scaling: self.scaling.clone(),
            y: self.y.clone(),
            known: self.known.clone(),
            repeats: self.repeats.clone(),
        }
    }

    /// Rows after merging.
    pub fn n(&self) -> usize {
        self.y.len()
    }

    /// Blocks of rows at the ends of the data.
    pub fn ends(&self) -> &[Vec<usize>] {
        self.ends.get_or_init(|| ends::ends(self.x.points()))
    }

    /// Columns.
    pub fn d(&self) -> usize {
        self.columns.len()
    }

    /// The process of a compiled kernel over these rows.
    pub fn exact<'a>(&'a self, program: &'a Program, threads: Threads) -> Result<Exact<'a>> {
        let mut exact = Exact::new(program, &self.x, &self.y, threads)?;
        if let Some(known) = &self.known {
            exact = exact.with_known_noise(known)?;
        }
        if let Some(repeats) = &self.repeats {
            exact = exact.with_repeats(repeats)?;
        }
        Ok(exact)
    }

    /// Every target, in the order of the leave-one-out predictions.
    pub fn targets(&self) -> &[f64] {
        self.repeats.as_ref().map_or(&self.y, |r| r.targets())
    }

    /// A target in its own units.
    pub fn own(&self, z: f64) -> f64 {
        self.link.undo(self.scaling.mean(z))
    }

    /// What is said of a target in its own units: a weight, and mean, variance and noise variance as the fit has them.
    pub fn part(&self, weight: f64, mean: f64, variance: f64, noise: f64) -> Part {
        let [variance, noise] = [variance, noise].map(|v| self.scaling.variance(v));
        let (link, mean) = (self.link, self.scaling.mean(mean));
        Part { weight, link, mean, variance, mean_over: link.mean_over(variance, noise) }
    }

    /// What the log density of a target gains on the way from standardised numbers to its own units.
    pub fn log_unit(&self, z: f64) -> f64 {
        self.link.log_jacobian(self.own(z)) - self.scaling.target_width().ln()
    }

    /// The mean of that over all targets.
    pub fn log_units(&self) -> f64 {
        let all = self.targets();
        all.iter().map(|&z| self.log_unit(z)).sum::<f64>() / all.len().max(1) as f64
    }

    /// The same problem on a random choice of its rows; repeats count as one.
    pub fn sample(&self, most: usize, seed: u64) -> Result<Self> {
        let rows = match self.n() {
            n if n > most => Split::random(n, most as f64 / n as f64, seed)?.test,
            n => (0..n).collect(),
        };
        Ok(self.subset(&rows))
    }

    fn subset(&self, rows: &[usize]) -> Self {
        let pick = |v: &[f64]| rows.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        Self {
            x: Inputs::new(self.x.points().select(rows)),
            y: pick(&self.y),
            known: self.known.as_deref().map(pick),
            repeats: None,
            ends: OnceLock::new(),
            ..self.clone()
        }
    }

    /// Whether rows of this kernel may be merged.
    pub fn may_merge(kernel: &Kernel) -> bool {
        !kernel.tells_rows_apart()
    }
}

pub(super) fn to_grain(v: f64, grain: f64) -> f64 {
    (v / grain).round() * grain
}

/// Inputs on the grain. A single column in equal steps, some left out, stays one: its first value and its step are rounded,
/// and every sum of them is exact.
fn rounded(x: &Points) -> Result<Points> {
    let column = x.column(0);
    let even = |places: &Places| places.off(column) <= 1e-7 * places.step();
    if let Some(places) = Places::of(column).filter(|p| x.d() == 1 && even(p)) {
        let (first, step) = (to_grain(column[0], GRAIN), to_grain(places.step(), GRAIN / 4096.0));
        return Points::from_column(&places.values(first, step).collect::<Vec<_>>());
    }
    Points::from_values(x.n(), x.d(), x.values().iter().map(|&v| to_grain(v, GRAIN)).collect())
}

/// Rows by their inputs, then their targets, then their noise: the order in the file does not matter.
pub(super) fn order(data: &Dataset) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..data.n()).collect();
    let noise = |i: usize| data.noise().map_or(0.0, |v| v[i]);
    rows.sort_by(|&a, &b| {
        let columns = (0..data.d()).map(|c| data.x().column(c)[a].total_cmp(&data.x().column(c)[b]));
        let inputs = columns.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then);
        inputs.then(data.y()[a].total_cmp(&data.y()[b])).then(noise(a).total_cmp(&noise(b)))
    });
    rows
}
