//! Lags: for one evenly spaced column, what is stationary is computed once a lag, and the pairs read tables.

use super::area::Area;
use super::tile::{self, Adjoint, Asking, How, Output, Scratch};
use super::{Both, Parts};
use crate::data::Points;
use crate::threads::Threads;
use std::sync::atomic::{AtomicU64, Ordering};

/// The lags of a set of points, with a number of their own.
#[derive(Debug, Clone)]
pub(super) struct Lags {
    pub id: u64,
    pub points: Points,
}

impl Lags {
    /// The lags of a single column that ascends in equal steps.
    pub fn of(points: &Points) -> Option<Self> {
        regular(points).map(|points| Self { id: next_id(), points })
    }
}

/// A number that nobody else has.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The distances from the first point, if a single column ascends in equal steps (to a few units of rounding).
fn regular(x: &Points) -> Option<Points> {
    let n = x.n();
    if x.d() != 1 || n < 16 {
        return None;
    }
    let column = x.column(0);
    let step = (column[n - 1] - column[0]) / (n - 1) as f64;
    let largest = column.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let tolerance = 8.0 * f64::EPSILON * largest;
    let even = |(i, &v): (usize, &f64)| (v - (column[0] + step * i as f64)).abs() <= tolerance;
    if step <= 0.0 || tolerance > 1e-9 * step || !column.iter().enumerate().all(even) {
        return None;
    }
    Points::from_column(&(0..n).map(|i| step * i as f64).collect::<Vec<_>>()).ok()
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
    tables.values.clear();
    tables.values.resize(code.outputs.len() * stride, 0.0);
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
