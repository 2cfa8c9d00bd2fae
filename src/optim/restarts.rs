//! Many starts of one optimiser, side by side. Results come in the order of the starts and do not depend on the number
//! of threads; how promising a start is may be judged early, by screening.

use std::time::Instant;

use rayon::prelude::*;

use super::{Limits, Objective, Observer, Optimizer, Outcome, Start, Stop};
use crate::error::{Error, ErrorKind, Result};

/// One round of screening: so many iterations for everybody, then only the best go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Screening {
    /// Iterations, counted from the start.
    pub iterations: usize,
    /// The share of all starts that goes on; at least one does.
    pub keep: f64,
}

/// Many starts of one optimiser.
#[derive(Debug, Clone, Default)]
pub struct Restarts {
    /// The method.
    pub optimizer: Optimizer,
    /// Iterations and evaluations of each start; time and the interrupt flag are shared by all.
    pub limits: Limits,
    /// Rounds of screening, in order; none by default.
    pub screening: Vec<Screening>,
}

impl Restarts {
    /// Runs every start in parallel and gives their outcomes in the order of the starts.
    ///
    /// Start i minimises `objective(i)` under `observer(i)`. Both are made anew when a start goes on after a round of
    /// screening, so that no more of them live at once than there are runs under way. A set of starts resumed from
    /// stored states keeps and drops the same ones as the unbroken run.
    ///
    /// # Errors
    /// When an option makes no sense or a start does not fit it. A start that fails is an outcome with its reason.
    pub fn run<O: Objective, W: Observer>(
        &self,
        starts: Vec<Start>,
        objective: impl Fn(usize) -> O + Sync,
        observer: impl Fn(usize) -> W + Sync,
    ) -> Result<Vec<Outcome>> {
        if let Some(round) = self.screening.iter().find(|round| !(0.0..=1.0).contains(&round.keep)) {
            return Err(Error::option("keep", format!("not a share between 0 and 1: {}", round.keep)));
        }
        let clock = Instant::now();
        let run = |(i, start): (usize, Start), iterations: usize| {
            let time = self.limits.time.map(|time| time.saturating_sub(clock.elapsed()));
            let limits = Limits { iterations: iterations.min(self.limits.iterations), time, ..self.limits.clone() };
            self.optimizer.minimize(&mut objective(i), start, &limits, &mut observer(i))
        };
        let all = |starts: Vec<(usize, Start)>, iterations: usize| -> Result<Vec<(usize, Outcome)>> {
            // One start is one piece of work, however few there are.
            let run = |(i, start)| Ok((i, run((i, start), iterations)?));
            starts.into_par_iter().with_max_len(1).map(run).collect()
        };

        let n = starts.len();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; n];
        let mut going: Vec<(usize, Start)> = starts.into_iter().enumerate().collect();
        let rounds = self.screening.iter().map(|round| (round.iterations, round.keep));
        for (iterations, keep) in rounds.chain([(usize::MAX, 1.0)]) {
            for (i, outcome) in all(std::mem::take(&mut going), iterations)? {
                let earlier = outcomes[i].as_ref().map_or(0.0, |outcome| outcome.seconds);
                outcomes[i] = Some(Outcome { seconds: outcome.seconds + earlier, ..outcome });
            }
            // A round cut short says nothing about who is better.
            if outcomes.iter().flatten().any(|outcome| matches!(outcome.stop, Stop::Time | Stop::Interrupted)) {
                break;
            }
            let ranked = rank(outcomes.iter().flatten());
            let kept = ((keep * n as f64).ceil() as usize).max(1);
            for (place, i) in ranked.into_iter().enumerate() {
                let Some(outcome) = outcomes[i].as_mut().filter(|outcome| outcome.stop == Stop::Iterations) else {
                    continue;
                };
                if place >= kept {
                    outcome.stop = Stop::Screened;
                } else if let Some(state) = outcome.state.clone() {
                    going.push((i, state.into()));
                }
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }
}

/// Places in order of value, lowest first; equal ones in order of start, those without a value last.
pub fn rank<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<usize> {
    let key = |outcome: &Outcome| if outcome.value.is_finite() { outcome.value } else { f64::INFINITY };
    let keys: Vec<f64> = outcomes.into_iter().map(key).collect();
    let mut places: Vec<usize> = (0..keys.len()).collect();
    places.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    places
}

/// Which outcome is the best: the first of those with the lowest value.
///
/// # Errors
/// When none of them has a finite value.
pub fn best(outcomes: &[Outcome]) -> Result<usize> {
    let first = rank(outcomes.iter()).into_iter().next().filter(|&i| outcomes[i].value.is_finite());
    first.ok_or_else(|| {
        let last = outcomes.last().map_or_else(|| "there was no start".into(), |outcome| outcome.stop.to_string());
        let error = Error::new(ErrorKind::NoRestartSucceeded { tried: outcomes.len(), last });
        match outcomes.last().map(|outcome| &outcome.stop) {
            Some(Stop::Time) => error.with_hint("allow more time"),
            Some(Stop::Interrupted) => error,
            _ => error.with_hint("give other starting values"),
        }
    })
}
