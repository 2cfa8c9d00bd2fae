//! Lags: for one column that is evenly spaced but for some gaps, what is stationary is computed once a lag, and the pairs read
//! tables.

use super::area::Area;
use super::tile::{self, Adjoint, Asking, How, Output, Scratch};
use super::{Both, Parts};
use crate::data::{Places, Points};
use crate::threads::Threads;
use std::sync::atomic::{AtomicU64, Ordering};

/// Fewer points are not worth it.
const FEWEST: usize = 16;
/// Runs of points without a gap have this many in the mean, or more: every run begins vectors of its own.
const SHORTEST_RUN: usize = 16;
/// At most so many places for a point.
const EMPTIEST: usize = 8;
/// Where the rounding of coordinates is more than this, in steps, there is no saying.
const ROUNDED: f64 = 1e-9;

/// The lags of a set of points, with a number of their own.
#[derive(Debug, Clone)]
pub(super) struct Lags {
    pub id: u64,
    /// From nought to the longest, a step apart.
    pub points: Points,
    pub places: Places,
}

impl Lags {
    /// The lags of a single column that ascends in equal steps, some left out (to a few units of rounding).
    pub fn of(points: &Points) -> Option<Self> {
        if points.d() != 1 || points.n() < FEWEST {
            return None;
        }
        let (n, x) = (points.n(), points.column(0));
        let places = Places::of(x).filter(|p| p.last() < EMPTIEST * n && p.runs() * SHORTEST_RUN <= n)?;
        let rounding = 8.0 * f64::EPSILON * x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if !(rounding <= ROUNDED * places.step() && places.off(x) <= rounding) {
            return None;
        }
        let lags: Vec<f64> = (0..=places.last()).map(|i| places.step() * i as f64).collect();
        Some(Self { id: next_id(), points: Points::from_column(&lags).ok()?, places })
    }
}

/// A number that nobody else has.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Fills the tables: the lag program's outputs at every lag. They may be there already: a pullback follows values.
pub(super) fn values(parts: &Parts, how: How, theta: &[f64], (program, lags): (u64, &Lags), scratch: &mut Scratch) {
    let Some(code) = &parts.lags else { return };
    if scratch.tables_of == (program, lags.id) && scratch.tables_at == theta {
        return;
    }
    scratch.tables_of = (program, lags.id);
    scratch.tables_at.clear();
    scratch.tables_at.extend_from_slice(theta);
    let (n, lags) = (lags.points.n(), &lags.points);
    // Whole cache lines, so that every lag that begins a vector of one table does so of all.
    let stride = (n + super::features::PADDING).next_multiple_of(8);
    let mut tables = std::mem::take(&mut scratch.tables);
    tables.n = n;
    tables.stride = stride;
    tables.values.clear_to(code.outputs.len() * stride);
    std::mem::swap(&mut scratch.rows, &mut scratch.lags);
    scratch.rows.compute(&code.maps, code.features, lags, theta);
    let output = Output::tables(&mut tables.values, stride);
    let area = Area::all(n, 1);
    // Every lag is the distance from the origin, which is the first point itself.
    tile::values(code, how, theta, area, Both::Same, &output, scratch, Threads::One);
    std::mem::swap(&mut scratch.rows, &mut scratch.lags);
    scratch.tables = tables;
}

/// From the adjoints of the tables, left by the pullback of the pairs, to the gradient. The values by lag must have gone
/// before.
pub(super) fn pullback(
    parts: &Parts,
    how: How,
    theta: &[f64],
    lags: &Points,
    gradient: &mut [f64],
    scratch: &mut Scratch,
) {
    let Some(code) = &parts.lags else { return };
    let (tables, adjoint) = (std::mem::take(&mut scratch.tables), std::mem::take(&mut scratch.table_adjoint));
    std::mem::swap(&mut scratch.rows, &mut scratch.lags);
    let job = Adjoint::Tables(&adjoint, tables.stride);
    let area = Area::all(lags.n(), 1);
    tile::pullback(code, how, theta, area, Both::Same, job, gradient, Asking::both(false), scratch, Threads::One);
    super::features::backward(&code.maps, lags, theta, &scratch.rows, &scratch.row_adjoint, gradient, None);
    std::mem::swap(&mut scratch.rows, &mut scratch.lags);
    (scratch.tables, scratch.table_adjoint) = (tables, adjoint);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(x: &[f64]) -> bool {
        Lags::of(&Points::from_column(x).unwrap()).is_some()
    }

    #[test]
    fn even_columns_share_their_lags_also_with_gaps() {
        let even = |i: usize| 3.0 + i as f64 * 0.125;
        let column = |f: &dyn Fn(usize) -> f64| (0..64).map(f).collect::<Vec<f64>>();
        assert!(shared(&column(&even)));
        assert!(shared(&column(&|i| even(i + 5 * (i / 16)))));
        assert!(!shared(&column(&even)[..15]));
        assert!(!shared(&column(&|i| even(i) + if i == 40 { 1e-12 } else { 0.0 })));
        // Two days of every seven, one of many years, and steps lost in the rounding of large numbers.
        assert!(!shared(&column(&|i| even(i + 2 * (i / 5)))));
        assert!(!shared(&column(&|i| even(i + 1000 * (i / 40)))));
        assert!(!shared(&column(&|i| 1e9 + even(i))));
    }
}
