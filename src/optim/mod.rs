//! Minimisers of a closure over `&[f64]`: L-BFGS, Adam, and restarts of either in parallel. Knows nothing of kernels
//! or data, and never takes a derivative itself: the objective gives its own gradient. A value or gradient that is
//! not finite means "not here"; the methods back away from it and never return a worse point than they started from.
//!
//! ```
//! use covary::optim::{Limits, Optimizer};
//!
//! // (x − 3)² + 10 (y + 1)²
//! let mut bowl = |theta: &[f64], gradient: &mut [f64]| {
//!     let (x, y) = (theta[0] - 3.0, theta[1] + 1.0);
//!     gradient.copy_from_slice(&[2.0 * x, 20.0 * y]);
//!     x * x + 10.0 * y * y
//! };
//! let found = Optimizer::default().minimize(&mut bowl, [0.0, 0.0], &Limits::default(), &mut ())?;
//! assert!(found.stop.converged());
//! assert!((found.theta[0] - 3.0).abs() < 1e-6);
//! # Ok::<(), covary::Error>(())
//! ```

mod adam;
mod bounds;
mod lbfgs;
mod line_search;
mod meter;
mod outcome;
mod restarts;
mod state;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

pub use adam::{Adam, Decay};
pub use bounds::Bounds;
pub use lbfgs::Lbfgs;
pub use outcome::{Outcome, Stop};
pub use restarts::{Restarts, Screening, best, rank};
pub use state::{Start, State};

use meter::Meter;
use state::{Memory, Point};

/// What is minimised. Any closure `FnMut(&[f64], &mut [f64]) -> f64` is one.
///
/// The same theta must give the same value and gradient each time; a run that is resumed relies on it.
pub trait Objective {
    /// Fills the gradient, which comes in as zeros, and returns the value. A value or an entry of the gradient that is
    /// not finite (either infinity too) means "not here".
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64;
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Objective for F {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self(theta, gradient)
    }
}

/// When to stop short of convergence. A resumed run counts iterations and evaluations from its first start.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most iterations.
    pub iterations: usize,
    /// The most evaluations of the objective; never exceeded.
    pub evaluations: usize,
    /// The time after which no evaluation begins. The one thing that can make equal runs differ.
    pub time: Option<Duration>,
    /// When set to true from anywhere, no further evaluation begins.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Default for Limits {
    /// A thousand iterations.
    fn default() -> Self {
        Self { iterations: 1000, evaluations: usize::MAX, time: None, interrupt: None }
    }
}

/// What an observer sees after each iteration.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Iterations done; 0 when only the start has been evaluated.
    pub iteration: usize,
    /// Evaluations done.
    pub evaluations: usize,
    /// The value at `theta`.
    pub value: f64,
    /// The lowest value seen.
    pub best: f64,
    /// The largest entry of the gradient at `theta`, leaving out those that only a bound holds back.
    pub gradient_norm: f64,
    /// Where the method stands.
    pub theta: &'a [f64],
    /// Time since this run began.
    pub elapsed: Duration,
}

/// Sees each iteration and may stop the work. Any closure `FnMut(&Progress) -> ControlFlow<()>` is one; `()` watches
/// nothing.
pub trait Observer {
    /// Called at a fresh start and after each iteration; `Break` ends the run with [`Stop::Interrupted`].
    fn observe(&mut self, progress: &Progress<'_>) -> ControlFlow<()>;

    /// Called before each `observe` with all that is needed to go on from here. How often to store it is up to the
    /// observer; nothing is copied unless it does.
    fn checkpoint(&mut self, _state: &State) {}
}

impl Observer for () {
    fn observe(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Progress<'_>) -> ControlFlow<()>> Observer for F {
    fn observe(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self(progress)
    }
}

/// A method with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    /// Limited-memory BFGS: the choice for smooth objectives.
    Lbfgs(Lbfgs),
    /// Adam: many small steps, no line search.
    Adam(Adam),
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::Lbfgs(Lbfgs::default())
    }
}

impl From<Lbfgs> for Optimizer {
    fn from(method: Lbfgs) -> Self {
        Self::Lbfgs(method)
    }
}

impl From<Adam> for Optimizer {
    fn from(method: Adam) -> Self {
        Self::Adam(method)
    }
}

impl Optimizer {
    /// Minimises, from a point or from the [`State`] of an earlier run. A resumed run makes the same steps, to the
    /// bit, as one that was never stopped. A point outside the bounds is first moved to the nearest one inside.
    ///
    /// A start where the objective is not finite is no error but an outcome: see [`Stop::NonFiniteStart`].
    ///
    /// # Errors
    /// When an option makes no sense, or the bounds or the state do not fit the point or the method.
    pub fn minimize(
        &self,
        objective: &mut dyn Objective,
        start: impl Into<Start>,
        limits: &Limits,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        self.check()?;
        let clock = Instant::now();
        let mut meter = Meter::new(objective, limits, clock);
        let mut state = match start.into() {
            Start::Resumed(state) => {
                self.check_state(&state)?;
                meter.resume(&state);
                state
            }
            Start::Fresh(mut theta) => {
                self.bounds().check(theta.len())?;
                self.bounds().project(&mut theta);
                let at = match meter.evaluate(theta.clone()) {
                    Ok(Some(at)) => at,
                    Ok(None) => return Ok(Outcome::without_result(theta, &meter, Stop::NonFiniteStart)),
                    Err(stop) => return Ok(Outcome::without_result(theta, &meter, stop)),
                };
                let state = State::new(at, self.memory(), meter.evaluations());
                if self.report(&state, clock, observer).is_break() {
                    return Ok(Outcome::new(&meter, state, Stop::Interrupted, self.bounds()));
                }
                state
            }
        };
        let stop = loop {
            if let Some(stop) = self.converged(&state) {
                break stop;
            }
            if state.iterations >= limits.iterations {
                break Stop::Iterations;
            }
            if let Err(stop) = self.step(&mut state, &mut meter) {
                break stop;
            }
            state.iterations += 1;
            meter.record(&mut state);
            if self.report(&state, clock, observer).is_break() {
                break Stop::Interrupted;
            }
        };
        Ok(Outcome::new(&meter, state, stop, self.bounds()))
    }

    fn bounds(&self) -> &Bounds {
        match self {
            Self::Lbfgs(method) => &method.bounds,
            Self::Adam(method) => &method.bounds,
        }
    }

    fn memory(&self) -> Memory {
        match self {
            Self::Lbfgs(_) => Memory::Lbfgs(lbfgs::Memory::default()),
            Self::Adam(_) => Memory::Adam(adam::Memory::default()),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Lbfgs(method) => method.check(),
            Self::Adam(method) => method.check(),
        }
    }

    /// A state may come from a file, so nothing about it is taken on trust.
    fn check_state(&self, state: &State) -> Result<()> {
        let n = state.at.theta.len();
        self.bounds().check(n)?;
        let memory = match (self, &state.memory) {
            (Self::Lbfgs(_), Memory::Lbfgs(memory)) => memory.sizes(),
            (Self::Adam(_), Memory::Adam(memory)) => memory.sizes(),
            _ => return Err(Error::option("optimizer", "the state to resume comes from another method")),
        };
        let points = [state.at.gradient.len(), state.best.theta.len(), state.best.gradient.len()];
        if let Some(found) = points.into_iter().chain(memory).find(|&found| found != n) {
            return Err(ErrorKind::Size { what: "state of the optimiser", expected: n, found }.into());
        }
        let mut inside = state.at.theta.clone();
        self.bounds().project(&mut inside);
        if inside != state.at.theta {
            return Err(Error::option("bounds", "the state to resume lies outside"));
        }
        Ok(())
    }

    fn converged(&self, state: &State) -> Option<Stop> {
        match (self, &state.memory) {
            (Self::Lbfgs(method), Memory::Lbfgs(memory)) => method.converged(&state.at, memory),
            (Self::Adam(method), _) => method.converged(&state.at),
            _ => unreachable!("check_state compared method and memory"),
        }
    }

    /// One iteration. The state changes only when it succeeds, so that a run can be resumed however it was stopped.
    fn step(&self, state: &mut State, meter: &mut Meter<'_>) -> Result<(), Stop> {
        match (self, &mut state.memory) {
            (Self::Lbfgs(method), Memory::Lbfgs(memory)) => method.step(&mut state.at, memory, meter),
            (Self::Adam(method), Memory::Adam(memory)) => method.step(&mut state.at, memory, state.iterations, meter),
            _ => unreachable!("check_state compared method and memory"),
        }
    }

    fn report(&self, state: &State, clock: Instant, observer: &mut dyn Observer) -> ControlFlow<()> {
        observer.checkpoint(state);
        observer.observe(&Progress {
            iteration: state.iterations,
            evaluations: state.evaluations,
            value: state.at.value,
            best: state.best.value,
            gradient_norm: self.bounds().gradient_norm(&state.at),
            theta: &state.at.theta,
            elapsed: clock.elapsed(),
        })
    }
}

/// Σ aᵢ bᵢ, in order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// |a|₂, without overflow on the way.
fn length(a: &[f64]) -> f64 {
    let largest = largest(a);
    if largest == 0.0 { 0.0 } else { largest * a.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt() }
}

/// max |aᵢ|
fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
}
