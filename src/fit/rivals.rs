//! The asked kernel and the plain ones that compete with a network over a table. These cost little, and where a network
//! has too many ways to go on beyond the data, lines, parabolas and sums of one curve a column go on sensibly.

use super::candidate::{Candidate, Found};
use super::problem::Problem;
use super::{Fit, LARGE, Step};
use crate::error::Result;
use crate::kernel::{Kernel, Kind};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::Instant;

/// Beyond this many columns there is no sum of one curve a column: it would cost more than a network.
const MOST_CURVES: usize = 20;
/// The most iterations of a rival below [`LARGE`]: the slowest ones predict no better after more.
const RIVAL_STEPS: usize = 60;

/// The most iterations of the asked kernel on a transformed target, where it goes on from another fit.
const STEPS_AGAIN: usize = 100;

/// The share of rows that are copies of others from which on rivals say what such rows share, and their share of all with the inputs
/// of others.
const COPIES: f64 = 0.01;
const ALIKE: f64 = 0.9;
/// The lengthscale that tells places apart, in standard deviations of each input.
const PLACE: f64 = 1e-4;
/// Where the variance of what copied rows share starts, as noise does: from larger ones fits end with no such term, and a curve
/// that follows every row.
const SHARED: f64 = 0.1;

/// So many starts of the asked kernel have a term for copied rows.
const STARTS_WITH_PLACE: usize = 2;

/// A start whose log evidence is lower by this much than that of another start of the same kernel is stuck, and left out.
const STUCK: f64 = 20.0;

impl Fit {
    /// Where each restart of the asked kernel ended, but for those that are stuck.
    pub(super) fn search_asked(
        &self,
        problem: &Problem,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Found> {
        let mut found = self.search_one(&self.kernel, self.restarts, problem, clock, observer)?;
        let highest = found.candidates.iter().map(|c| c.evidence).fold(f64::NEG_INFINITY, f64::max);
        found.candidates.retain(|c| c.evidence >= highest - STUCK);
        Ok(found)
    }

    /// Adds where the rivals of the asked kernel ended. The problems are of the same rows, the first of the target as it was asked
    /// for; on the others the asked kernel goes on from where it did best, as one more rival.
    pub(super) fn add_rivals(&self, problems: &[Problem], clock: Instant, found: &mut Found) {
        let (n, d) = (problems[0].n(), problems[0].d());
        let copied = copied(&problems[0]);
        let default = if self.kernel.is_network() { rivals(n, d, copied) } else { vec![] };
        let list = self.rivals.as_ref().unwrap_or(&default);
        let (small, alone) = (n < LARGE, Fit { resume: vec![], ..self.clone() });
        let plain = if small { alone.clone().at_most(RIVAL_STEPS) } else { alone.clone() };
        let best = found.candidates.first();
        let again = Fit { first_noise: best.map(|b| b.noise), ..alone.clone().at_most(STEPS_AGAIN) };
        // What takes longest comes first.
        let placed =
            (self.kernel.is_network() && self.rivals.is_none() && copied).then(|| self.kernel.clone() + place());
        let first = best.into_iter().flat_map(|b| (1..problems.len()).map(move |p| (&b.kernel, p)));
        let rest = (0..problems.len()).flat_map(|p| list.iter().map(move |k| (k, p)));
        let first = placed.iter().map(|k| (&alone, k, 0)).chain(first.map(|(k, p)| (&again, k, p)));
        let all: Vec<(&Fit, &Kernel, usize)> = first.chain(rest.map(|(k, p)| (&plain, k, p))).collect();
        let one = |&(fit, kernel, p): &(&Fit, &Kernel, usize)| -> Result<Vec<Candidate>> {
            let starts = if placed.as_ref() == Some(kernel) { STARTS_WITH_PLACE } else { 1 };
            let ended = fit.search_one(kernel, starts, &problems[p], clock, &|_: Step| ControlFlow::Continue(()))?;
            // By the name of what was asked for, not with the values it went on from.
            let name = best.filter(|b| kernel == &b.kernel).map_or_else(|| kernel.to_string(), |b| b.name.clone());
            let of = |c: Candidate| Candidate { name: name.clone(), problem: p, ..c };
            Ok(ended.candidates.into_iter().map(of).collect())
        };
        // Small ones side by side, each on a thread of its own.
        let others: Vec<Result<Vec<Candidate>>> = match small {
            true => all.par_iter().with_max_len(1).map(one).collect(),
            false => all.iter().map(one).collect(),
        };
        // A rival that fails is no reason to fail.
        found.candidates.extend(others.into_iter().flatten().flatten());
    }
}

/// Are there enough copies of rows, target and all, and hardly any rows with the same inputs that differ? Where they do differ, they
/// tell what noise there is.
fn copied(problem: &Problem) -> bool {
    problem.repeats.as_ref().is_some_and(|r| {
        let (copies, repeated) = (r.copies() as f64, (r.rows() - r.n()) as f64);
        copies >= COPIES * r.rows() as f64 && copies >= ALIKE * repeated
    })
}

/// What rows with the same inputs have in common and no others have. Without it, the copies of rows that many tables have
/// (all alike, so there seems to be no noise) make a smooth kernel follow every row.
fn place() -> Kernel {
    Kernel::place(PLACE, SHARED)
}

/// The rivals for a table of this many rows and columns, some of the rows `copied`; fewer where a fit takes long.
fn rivals(n: usize, d: usize, copied: bool) -> Vec<Kernel> {
    let (lin, rbf) = (Kernel::lin, Kernel::rbf);
    let mut all = vec![];
    if n < LARGE {
        // What takes longest comes first, so that no thread waits for it in the end.
        if (2..=MOST_CURVES).contains(&d) {
            let columns: Vec<Vec<usize>> = (0..d).map(|c| vec![c]).collect();
            all.push(lin() + Kernel::additive(&columns));
        }
        all.push(Kernel::sum([lin(), lin() * lin(), rbf()]));
        all.push(lin() + rbf());
        all.push(lin() + Kernel::primitive(Kind::Mat32));
    }
    all.extend([lin() + Kernel::matern52(), rbf(), Kernel::matern52()]);
    if copied { all.into_iter().map(|k| k + place()).collect() } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_differ_and_fit_the_columns() {
        for (n, d) in [(2, 1), (50, 1), (50, 2), (50, 20), (50, 21), (5000, 3)] {
            let all = rivals(n, d, false);
            assert!(all.iter().all(|k| k.bind_to(d).is_ok()), "{n} {d}");
            assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])), "{n} {d}");
        }
        assert_eq!(rivals(50, 2, false)[0], "LIN + RBF[0] + RBF[1]".parse().unwrap());
        assert_eq!(rivals(50, 2, false)[1], "LIN + LIN * LIN + RBF".parse().unwrap());
        assert_eq!(rivals(5000, 2, false).len(), 3);
    }
}
