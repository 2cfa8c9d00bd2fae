//! What a run found and why it ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::meter::Meter;
use super::{Bounds, State};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stop {
    /// Converged: the gradient is within its tolerance.
    Gradient,
    /// Converged: the value has all but stopped falling.
    Decrease,
    /// Converged: what is left to gain is below the rounding of the value.
    Rounding,
    /// The limit of iterations.
    Iterations,
    /// The limit of evaluations.
    Evaluations,
    /// The limit of time.
    Time,
    /// The observer or the interrupt flag.
    Interrupted,
    /// No lower point along the direction of search, nor along steepest descent.
    LineSearch,
    /// The objective is not finite at the start.
    NonFiniteStart,
    /// However short the steps, they met values that are not finite.
    NonFinite,
    /// Other starts looked better after the first iterations.
    Screened,
}

impl Stop {
    /// Whether the run ended at what looks like a minimum.
    pub fn converged(self) -> bool {
        matches!(self, Self::Gradient | Self::Decrease | Self::Rounding)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gradient => "converged: the gradient is within its tolerance",
            Self::Decrease => "converged: the objective has stopped falling",
            Self::Rounding => "converged: what is left to gain is below rounding",
            Self::Iterations => "stopped at the limit of iterations",
            Self::Evaluations => "stopped at the limit of evaluations",
            Self::Time => "stopped at the limit of time",
            Self::Interrupted => "interrupted",
            Self::LineSearch => "stopped: no lower point along the direction of search",
            Self::NonFiniteStart => "failed: the objective is not finite at the start",
            Self::NonFinite => "stopped: every step led to an objective that is not finite",
            Self::Screened => "dropped: other starts were better after the first iterations",
        })
    }
}

/// What a run found.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The best point seen, trial steps included; never worse than the start.
    pub theta: Vec<f64>,
    /// The value there; not finite only if there was no finite start.
    pub value: f64,
    /// The largest entry of the gradient there, leaving out those that only a bound holds back.
    pub gradient_norm: f64,
    /// Iterations done, those before a resume included.
    pub iterations: usize,
    /// Evaluations done, those before a resume included.
    pub evaluations: usize,
    /// Why the run ended.
    pub stop: Stop,
    /// Time taken by this run.
    pub seconds: f64,
    /// The state after the last whole iteration, from which to go on; none if there was no finite start.
    pub state: Option<State>,
}

impl Outcome {
    pub(super) fn new(meter: &Meter<'_>, state: State, stop: Stop, bounds: &Bounds) -> Self {
        // Where rounding makes values equal, the later point has the smaller gradient.
        let best = if state.at.value <= meter.best().value { &state.at } else { meter.best() };
        Self {
            theta: best.theta.clone(),
            value: best.value,
            gradient_norm: bounds.gradient_norm(best),
            iterations: state.iterations,
            evaluations: meter.evaluations(),
            stop,
            seconds: meter.elapsed().as_secs_f64(),
            state: Some(state),
        }
    }

    /// The outcome of a run that ended before it had a finite value.
    pub(super) fn without_result(theta: Vec<f64>, meter: &Meter<'_>, stop: Stop) -> Self {
        Self {
            theta,
            value: meter.last(),
            gradient_norm: f64::NAN,
            iterations: 0,
            evaluations: meter.evaluations(),
            stop,
            seconds: meter.elapsed().as_secs_f64(),
            state: None,
        }
    }
}
