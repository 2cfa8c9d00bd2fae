//! Shifts of a series' level, for good or for a while: found by what they would explain under a plain kernel, and taken
//! out only where that raises the evidence by far more than they cost. Without that, every kernel that holds a level
//! forecasts half-way back after a step, and one wild value makes the noise of all.

use super::past::Past;
use crate::data::Dataset;
use crate::fit::{Fit, Levels, Link, Model, ShiftTest, Step};
use crate::kernel::Kernel;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// What explains a series without steps: a level that drifts with a trend and a season, and the same but smoother.
const KERNELS: [&str; 2] = ["LIN + MAT12 + PER", "LIN + MAT32 + PER * RBF(l=4)"];
const ITERATIONS: usize = 30;
/// Iterations more before a shift is believed.
const FURTHER: usize = 70;
/// What a shift must raise the log evidence by beyond its cost.
const MARGIN: f64 = 3.0;
/// Shorter series do not tell; of longer ones, the latest rows are looked at, for those decide where forecasts begin.
const FEWEST: usize = 24;
const LATEST: usize = 600;
/// The most shifts; the fewest rows between two that last; the most rows of one that does not.
const MOST: usize = 3;
const APART: usize = 4;
const WIDEST: usize = 12;
/// The series is looked at if medians before and after some row, or a value and its neighbours, differ by so many usual
/// changes between neighbours, and a shift is tried if it is so many of its standard errors.
const GLANCE: f64 = 3.0;
const CLEAR: f64 = 4.0;

/// The steps of a series, in units of its target (which may be linked); rows in order of time.
pub(super) fn shifts(data: &Dataset, fit: &Fit) -> Levels {
    let mut levels = Levels::default();
    let data = &data.select(&(data.n().saturating_sub(LATEST)..data.n()).collect::<Vec<_>>());
    if data.n() < FEWEST || !may_shift(data.y()) {
        return levels;
    }
    let Some(mut before) = best(data, &levels, fit) else { return levels };
    let (n, x) = (data.n(), data.x().column(0));
    // Rows at equal times were merged, and are no series.
    if before.0.n() != n {
        return levels;
    }
    let mut taken: Vec<ShiftTest> = vec![];
    while taken.len() < MOST {
        // A time among n and a size; what comes back has two times.
        let cost = |t: &ShiftTest| (if t.to == n { 2.0 } else { 3.0 }) * (n as f64).ln();
        let worth = |t: &ShiftTest| 0.5 * t.score * t.score - cost(t);
        let fits = |t: &ShiftTest| fits(t, &taken, n) && t.score.abs() >= CLEAR;
        let tests = before.0.shift_tests(WIDEST);
        let Some(found) = tests.into_iter().filter(fits).max_by(|a, b| worth(a).total_cmp(&worth(b))) else { break };
        let with = |levels: Levels, size: f64| match found.to {
            to if to == n => levels.with_step(x[found.from], size),
            to => levels.with_step(x[found.from], size).with_step(x[to], -size),
        };
        let Some(after) = best(data, &with(levels.clone(), found.size), fit) else { break };
        if after.1 - before.1 < cost(&found) + MARGIN {
            break;
        }
        // The gain must be the step's, not that of a fit which happened to end in a better place: both go on, and the one
        // without it also from where the one with it has ended.
        let Some(rival) = further(data, &levels, &[&before.0, &after.0], fit) else { break };
        let Some(after) = further(data, &with(levels.clone(), found.size), &[&after.0], fit) else { break };
        if after.1 - before.1.max(rival.1) < cost(&found) + MARGIN {
            break;
        }
        // Its size once more, under a kernel that need not explain it.
        let same = |t: &ShiftTest| (t.from, t.to) == (found.from, found.to);
        let rest = after.0.shift_tests(WIDEST).into_iter().find(same).map_or(0.0, |t| t.size);
        levels = with(levels, found.size + rest);
        taken.push(found);
        let Some(next) = best(data, &levels, fit) else { break };
        before = next;
    }
    levels.searched(x[0], x[n - 1])
}

/// Whether a shift is far enough from both ends and from others. One that has only just begun may be either kind.
fn fits(test: &ShiftTest, taken: &[ShiftTest], n: usize) -> bool {
    let lasts = |t: &ShiftTest| t.to == n;
    let apart = |a: usize, b: usize| a.abs_diff(b) >= APART;
    let clear = |t: &ShiftTest| match (lasts(test), lasts(t)) {
        (true, true) => apart(test.from, t.from),
        (false, false) => test.to <= t.from || t.to <= test.from,
        (true, false) => test.from <= t.from || t.to <= test.from,
        (false, true) => t.from <= test.from || test.to <= t.from,
    };
    let within =
        if lasts(test) { apart(test.from, 0) && apart(test.from, n) } else { test.from > 0 && test.to + 1 < n };
    within && taken.iter().all(clear)
}

/// The better of the plain kernels, with its log marginal likelihood in the units of the data; none where someone
/// said to stop.
fn best(data: &Dataset, levels: &Levels, fit: &Fit) -> Option<(Model, f64)> {
    let rest = levels.taken_out(data.clone()).ok()?;
    let past = Past::new(&rest, rest.n(), rest.n());
    let kernels: Vec<Kernel> = KERNELS.iter().filter_map(|text| text.parse().ok()).collect();
    let starts = kernels.into_iter().map(|kernel| past.known_to(fit.aside(kernel, ITERATIONS))).collect();
    best_of(starts, &rest).filter(|_| !fit.is_interrupted())
}

/// The same, going on from other fits.
fn further(data: &Dataset, levels: &Levels, from: &[&Model], fit: &Fit) -> Option<(Model, f64)> {
    let rest = levels.taken_out(data.clone()).ok()?;
    let start = |model: &&Model| fit.aside(model.kernel().clone(), FURTHER).going_on_from(model, FURTHER);
    best_of(from.iter().map(start).collect(), &rest).filter(|_| !fit.is_interrupted())
}

/// Of fits beside each other, the one of the highest evidence.
fn best_of(fits: Vec<Fit>, rest: &Dataset) -> Option<(Model, f64)> {
    let fitted = |plain: &Fit| {
        let model = plain.run_each(rest, &|_: Step| ControlFlow::Continue(())).ok()?.into_iter().next()?;
        let evidence = model.evidence_under(Link::Identity, rest.y());
        evidence.is_finite().then_some((model, evidence))
    };
    let all: Vec<(Model, f64)> = fits.par_iter().with_max_len(1).filter_map(fitted).collect();
    all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A cheap look: do medians of some values before and after any row, or a value and those around it, differ by more than
/// neighbours do?
fn may_shift(y: &[f64]) -> bool {
    let width = (y.len() / 6).clamp(APART, 12);
    let median = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    let mut changes: Vec<f64> = y.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let usual = median(&mut changes);
    // Where most values equal the one before, a change is no news.
    if usual <= 0.0 {
        return false;
    }
    let alone = |w: &[f64]| (w[2] - median(&mut vec![w[0], w[1], w[3], w[4], w[2]])).abs() > 2.0 * GLANCE * usual;
    y.windows(5).any(alone)
        || (width..=y.len() - width).any(|at| {
            let (before, after) = (median(&mut y[at - width..at].to_vec()), median(&mut y[at..at + width].to_vec()));
            (after - before).abs() > GLANCE * usual
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Points;
    use rand::{RngExt, SeedableRng};

    fn series(f: impl Fn(f64) -> f64) -> Dataset {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let x: Vec<f64> = (0..108).map(f64::from).collect();
        let y = x.iter().map(|&t| f(t) + (0..6).map(|_| rng.random::<f64>() - 0.5).sum::<f64>()).collect();
        Dataset::new(Points::from_column(&x).unwrap(), y).unwrap()
    }

    fn plain() -> Fit {
        Fit::new(Kernel::rbf())
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let season = |t: f64| 5.0 * (t * std::f64::consts::TAU / 12.0).sin();
        let up = shifts(&series(|t| season(t) + if t < 95.0 { 0.0 } else { 30.0 }), &plain());
        let [(at, by)] = up.steps() else { panic!("{up:?}") };
        assert!(*at == 95.0 && (by - 30.0).abs() < 2.0, "{up:?}");
        let two = |t: f64| {
            if t < 40.0 {
                0.0
            } else if t < 90.0 {
                10.0
            } else {
                -5.0
            }
        };
        let both = shifts(&series(two), &plain());
        let [(a, up), (b, down)] = both.steps() else { panic!("{both:?}") };
        assert!(*a == 40.0 && *b == 90.0 && (up - 10.0).abs() < 2.0 && (down + 15.0).abs() < 2.0, "{both:?}");
    }

    #[test]
    fn a_search_that_is_interrupted_finds_nothing() {
        let jump = series(|t| if t < 60.0 { 0.0 } else { 30.0 });
        assert!(!shifts(&jump, &plain()).is_empty());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        assert!(shifts(&jump, &plain().interrupt(stop)).is_empty());
    }

    #[test]
    fn what_comes_back_is_found_too() {
        let season = |t: f64| 5.0 * (t * std::f64::consts::TAU / 12.0).sin();
        for (from, to) in [(70.0, 71.0), (105.0, 106.0), (60.0, 66.0)] {
            let dip = |t: f64| if (from..to).contains(&t) { -25.0 } else { 0.0 };
            let found = shifts(&series(|t| season(t) + dip(t)), &plain());
            let [(a, down), (b, up)] = found.steps() else { panic!("{found:?}") };
            assert!(*a == from && *b == to && (down + 25.0).abs() < 3.0 && *up == -*down, "{found:?}");
        }
    }

    #[test]
    fn what_rises_and_falls_by_itself_has_no_steps() {
        let season = |t: f64| 5.0 * (t * std::f64::consts::TAU / 12.0).sin();
        assert!(shifts(&series(|t| season(t) + 0.5 * t), &plain()).is_empty());
        assert!(shifts(&series(|t| 20.0 * (0.05 * t).sin()), &plain()).is_empty());
        // A walk of many steps.
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(6);
        let walk: Vec<f64> = (0..108)
            .scan(0.0, |level, _| {
                *level += (0..6).map(|_| rng.random::<f64>() - 0.5).sum::<f64>() * 3.0;
                Some(*level)
            })
            .collect();
        assert!(shifts(&series(|t| walk[t as usize]), &plain()).is_empty());
    }

    #[test]
    fn a_fit_that_ends_in_a_better_place_is_no_step() {
        // A trend that bends, a season and noise that lasts. After thirty iterations a fit without seven of its values is
        // ahead of one with them by 20; after more of them, both from the same place, by 8.
        let uniform = |i: f64| (i * 12.9898).sin() * 43758.5453;
        let noise =
            |t: f64| (1..=6).map(|k| uniform(40_028.0 + 6.0 * t + f64::from(k)).rem_euclid(1.0)).sum::<f64>() - 3.0;
        let x: Vec<f64> = (0..180).map(f64::from).collect();
        let lasting = x.iter().scan(0.0, |level, &t| {
            *level = 0.9 * *level + 0.5 * noise(t);
            Some(*level)
        });
        let turn = std::f64::consts::TAU;
        let season = |t: f64| 5.0 * (turn * t / 12.0).sin() + 3.0 * (turn * t / 6.0).cos();
        let y = x.iter().zip(lasting).map(|(&t, level)| 0.1 * t + 0.0005 * t * t + season(t) + level).collect();
        let data = Dataset::new(Points::from_column(&x).unwrap(), y).unwrap();
        assert!(shifts(&data, &plain()).is_empty());
    }
}
