//! The one place where the objective is called: counts, watches the limits, and keeps the best point seen.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Limits, Objective, Point, State, Stop};

/// An objective with its limits, a counter and a memory for the best point.
pub(super) struct Meter<'a> {
    objective: &'a mut dyn Objective,
    limits: &'a Limits,
    clock: Instant,
    evaluations: usize,
    last: f64,
    best: Option<Point>,
}

impl<'a> Meter<'a> {
    pub fn new(objective: &'a mut dyn Objective, limits: &'a Limits, clock: Instant) -> Self {
        Self { objective, limits, clock, evaluations: 0, last: f64::NAN, best: None }
    }

    /// Goes on counting where an earlier run stood.
    pub fn resume(&mut self, state: &State) {
        self.evaluations = state.evaluations;
        self.best = Some(state.best.clone());
    }

    /// The point at theta, or `None` where the objective is not finite; `Err` when a limit forbids the evaluation.
    pub fn evaluate(&mut self, theta: Vec<f64>) -> Result<Option<Point>, Stop> {
        if self.limits.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stop::Interrupted);
        }
        if self.evaluations >= self.limits.evaluations {
            return Err(Stop::Evaluations);
        }
        if self.limits.time.is_some_and(|time| self.clock.elapsed() >= time) {
            return Err(Stop::Time);
        }
        self.evaluations += 1;
        let mut gradient = vec![0.0; theta.len()];
        let value = self.objective.evaluate(&theta, &mut gradient);
        self.last = value;
        if !value.is_finite() || gradient.iter().any(|g| !g.is_finite()) {
            return Ok(None);
        }
        let point = Point { theta, value, gradient };
        if self.best.as_ref().is_none_or(|best| value < best.value) {
            self.best = Some(point.clone());
        }
        Ok(Some(point))
    }

    /// Brings counter and best point of a state up to date after an iteration.
    pub fn record(&self, state: &mut State) {
        state.evaluations = self.evaluations;
        if let Some(best) = self.best.as_ref().filter(|best| best.value < state.best.value) {
            state.best.clone_from(best);
        }
    }

    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// What the objective returned last, finite or not.
    pub fn last(&self) -> f64 {
        self.last
    }

    /// The best point seen, in trial steps too. There is one as soon as a state exists.
    pub fn best(&self) -> &Point {
        self.best.as_ref().expect("a state begins with a finite point, and the meter has seen it")
    }
}
