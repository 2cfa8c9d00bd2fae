//! Where a run stands between two iterations: all that is needed to go on, and nothing that depends on time.

use serde::{Deserialize, Serialize};

use super::{adam, lbfgs};

/// A point at which the objective and its gradient are finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub theta: Vec<f64>,
    pub value: f64,
    pub gradient: Vec<f64>,
}

/// What a method remembers from one iteration to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Memory {
    Lbfgs(lbfgs::Memory),
    Adam(adam::Memory),
}

/// A run between two iterations, to be stored and resumed.
///
/// Written with serde; a format that keeps every bit of an `f64` gives a continuation equal in every bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) at: Point,
    pub(super) best: Point,
    pub(super) iterations: usize,
    pub(super) evaluations: usize,
    pub(super) memory: Memory,
}

impl State {
    pub(super) fn new(at: Point, memory: Memory, evaluations: usize) -> Self {
        Self { best: at.clone(), at, iterations: 0, evaluations, memory }
    }

    /// A point found before the first iteration, in so many stages of preparation. A run that begins here begins afresh.
    pub fn prepared(theta: Vec<f64>, stages: usize) -> Self {
        // Any finite value will do: nothing was evaluated, but it has to go through a file.
        let at = Point { theta, value: f64::MAX, gradient: vec![] };
        let memory = Memory::Lbfgs(lbfgs::Memory::default());
        Self { best: at.clone(), at, iterations: stages, evaluations: 0, memory }
    }

    /// How many stages of preparation led here, where no iteration has been done yet.
    pub fn stages(&self) -> Option<usize> {
        self.at.gradient.is_empty().then_some(self.iterations)
    }

    /// Iterations done.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Evaluations done.
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// The best point seen.
    pub fn theta(&self) -> &[f64] {
        &self.best.theta
    }

    /// The value there.
    pub fn value(&self) -> f64 {
        self.best.value
    }
}

/// Where a run begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// At a point not yet evaluated.
    Fresh(Vec<f64>),
    /// Where an earlier run was left.
    Resumed(State),
}

impl From<Vec<f64>> for Start {
    fn from(theta: Vec<f64>) -> Self {
        Self::Fresh(theta)
    }
}

impl From<&[f64]> for Start {
    fn from(theta: &[f64]) -> Self {
        Self::Fresh(theta.to_vec())
    }
}

impl<const N: usize> From<[f64; N]> for Start {
    fn from(theta: [f64; N]) -> Self {
        Self::Fresh(theta.to_vec())
    }
}

impl From<State> for Start {
    fn from(state: State) -> Self {
        if state.stages().is_some() { Self::Fresh(state.best.theta) } else { Self::Resumed(state) }
    }
}
