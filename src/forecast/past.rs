//! What is known of a series at some time: the rows kernels are learned from, those a forecast goes on from, and what repeats
//! in all of them.

use super::rows::{SEEN, kept, one_of_each};
use crate::data::{Dataset, TimeAxis};
use crate::error::Result;
use crate::fit::{Fit, Model, Season, seasons, seasons_of_long, with_cycles};

/// The beginning of a series, or all of it.
#[derive(Debug)]
pub(super) struct Past {
    pub learned: Dataset,
    /// The rows a forecast goes on from, where they are more than those learned from.
    seen: Option<Dataset>,
    /// What repeats, what is certain first.
    pub seasons: Vec<Season>,
}

impl Past {
    /// The first rows of a series in order of time, of which at most so many are learned from.
    pub fn new(series: &Dataset, at: usize, most: usize) -> Self {
        let rows = kept(at, most);
        Self {
            seen: (most < SEEN && rows.len() < at).then(|| series.select(&kept(at, SEEN))),
            seasons: seasons_of(series, at),
            learned: series.select(&rows),
        }
    }

    /// Does the same repeat for certain as in another past? Then what was learned from that is where to go on from.
    pub fn repeats_as(&self, other: &Self) -> bool {
        let certain = |past: &Self| past.seasons.iter().filter(|s| s.certain).map(|s| s.period).collect::<Vec<_>>();
        let (own, others) = (certain(self), certain(other));
        own.len() == others.len() && own.iter().all(|p| others.iter().any(|o| (p / o - 1.0).abs() < 0.05))
    }

    /// A fit that knows the periods of all rows.
    pub fn known_to(&self, fit: Fit) -> Fit {
        fit.with_periods(self.seasons.iter().map(|s| s.period).collect())
    }

    /// A model that was learned from this past, once it has seen what a forecast goes on from.
    ///
    /// # Errors
    /// When the covariance of those rows cannot be factorised.
    pub fn shown_to(&self, model: &Model) -> Result<Model> {
        self.seen.as_ref().map_or_else(|| Ok(model.clone()), |seen| model.shown(seen))
    }
}

/// What repeats in the first rows, by themselves and by the calendar.
fn seasons_of(series: &Dataset, at: usize) -> Vec<Season> {
    let part = |rows: &[usize]| {
        let of = |values: &[f64]| rows.iter().map(|&r| values[r]).collect::<Vec<f64>>();
        (of(series.x().column(0)), of(series.y()))
    };
    let found = if at <= SEEN {
        seasons(&series.x().column(0)[..at], &series.y()[..at])
    } else {
        let (latest, whole) = (part(&(at - SEEN..at).collect::<Vec<_>>()), part(&one_of_each(0, at, SEEN)));
        seasons_of_long((&latest.0, &latest.1), (&whole.0, &whole.1))
    };
    let cycles = series.axis(0).map_or(vec![], TimeAxis::cycles);
    // Of a long series the latest rows tell.
    let latest = at.saturating_sub(10 * SEEN)..at;
    with_cycles(found, &cycles, &series.x().column(0)[latest.clone()], &series.y()[latest])
}
