//! What is known of a series at some time: the rows kernels are learned from, those a forecast goes on from, and the periods
//! that all of them tell.

use super::rows::{SEEN, kept, one_of_each};
use crate::data::Dataset;
use crate::error::Result;
use crate::fit::{Fit, Model, periods_of_long};

/// The beginning of a series, or all of it.
#[derive(Debug)]
pub(super) struct Past {
    pub learned: Dataset,
    /// The rows a forecast goes on from, where they are more than those learned from.
    seen: Option<Dataset>,
    periods: Option<Vec<f64>>,
}

impl Past {
    /// The first rows of a series in order of time, of which at most so many are learned from.
    pub fn new(series: &Dataset, at: usize, most: usize) -> Self {
        let rows = kept(at, most);
        let all_learned = rows.len() == at;
        Self {
            seen: (most < SEEN && !all_learned).then(|| series.select(&kept(at, SEEN))),
            periods: (!all_learned).then(|| periods(series, at)),
            learned: series.select(&rows),
        }
    }

    /// A fit that knows the periods of all rows.
    pub fn known_to(&self, fit: Fit) -> Fit {
        match &self.periods {
            Some(periods) => fit.with_periods(periods.clone()),
            None => fit,
        }
    }

    /// A model that was learned from this past, once it has seen what a forecast goes on from.
    ///
    /// # Errors
    /// When the covariance of those rows cannot be factorised.
    pub fn shown_to(&self, model: &Model) -> Result<Model> {
        self.seen.as_ref().map_or_else(|| Ok(model.clone()), |seen| model.shown(seen))
    }
}

/// Periods of the first rows, more than are learned from.
fn periods(series: &Dataset, at: usize) -> Vec<f64> {
    let part = |rows: &[usize]| {
        let of = |values: &[f64]| rows.iter().map(|&r| values[r]).collect::<Vec<f64>>();
        (of(series.x().column(0)), of(series.y()))
    };
    let latest = part(&(at.saturating_sub(SEEN)..at).collect::<Vec<_>>());
    let whole = part(&one_of_each(0, at, SEEN));
    periods_of_long((&latest.0, &latest.1), (&whole.0, &whole.1))
}
