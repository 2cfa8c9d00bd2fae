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

/// A start whose log evidence is lower by this much than that of another start of the same kernel is stuck, and left out.
const STUCK: f64 = 20.0;

/// What competes with the asked kernel: a kernel, and which of the problems it is fitted to.
type Rival<'a> = (&'a Kernel, usize);

impl Fit {
    /// Where each restart of the asked kernel and of its rivals ended. The asked kernel is fitted to the first of the problems;
    /// on the others, which are of the same rows with other targets, it is a rival like the rest, from a single start.
    pub(super) fn search(
        &self,
        problems: &[Problem],
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Found> {
        let (n, d) = (problems[0].n(), problems[0].d());
        let mut found = self.search_one(&self.kernel, self.restarts, &problems[0], clock, observer)?;
        let highest = found.candidates.iter().map(|c| c.evidence).fold(f64::NEG_INFINITY, f64::max);
        found.candidates.retain(|c| c.evidence >= highest - STUCK);
        let default = if self.kernel.is_network() { rivals(n, d) } else { vec![] };
        let list = self.rivals.as_ref().unwrap_or(&default);
        // What takes longest comes first.
        let again = (1..problems.len()).map(|p| (&self.kernel, p));
        let all: Vec<Rival> =
            again.chain((0..problems.len()).flat_map(|p| list.iter().map(move |k| (k, p)))).collect();
        let small = n < LARGE;
        let alone = Fit { resume: vec![], ..self.clone() };
        let one = |&(kernel, p): &Rival| -> Result<Vec<Candidate>> {
            let plain = small && kernel != &self.kernel;
            let fit = if plain { alone.clone().at_most(RIVAL_STEPS) } else { alone.clone() };
            let ended = fit.search_one(kernel, 1, &problems[p], clock, &|_: Step| ControlFlow::Continue(()))?;
            Ok(ended.candidates.into_iter().map(|c| Candidate { problem: p, ..c }).collect())
        };
        // Small ones side by side, each on a thread of its own.
        let others: Vec<Result<Vec<Candidate>>> = match small {
            true => all.par_iter().with_max_len(1).map(one).collect(),
            false => all.iter().map(one).collect(),
        };
        // A rival that fails is no reason to fail.
        found.candidates.extend(others.into_iter().flatten().flatten());
        Ok(found)
    }
}

/// The rivals for a table of this many rows and columns; fewer where a fit takes long.
fn rivals(n: usize, d: usize) -> Vec<Kernel> {
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
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_differ_and_fit_the_columns() {
        for (n, d) in [(2, 1), (50, 1), (50, 2), (50, 20), (50, 21), (5000, 3)] {
            let all = rivals(n, d);
            assert!(all.iter().all(|k| k.bind_to(d).is_ok()), "{n} {d}");
            assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])), "{n} {d}");
        }
        assert_eq!(rivals(50, 2)[0], "LIN + RBF[0] + RBF[1]".parse().unwrap());
        assert_eq!(rivals(50, 2)[1], "LIN + LIN * LIN + RBF".parse().unwrap());
        assert_eq!(rivals(5000, 2).len(), 3);
    }
}
