//! One way of explaining the data: a kernel with the values a restart arrived at, and what speaks for it.

use super::objective::Evidence;
use crate::error::Result;
use crate::gp::LeaveOneOut;
use crate::kernel::Kernel;
use crate::optim::Outcome;

/// Where one restart ended.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What its kernel is called.
    pub name: String,
    /// Which of the problems it was fitted to: the target as it is, or transformed.
    pub problem: usize,
    /// With its fitted values.
    pub kernel: Kernel,
    pub noise: f64,
    pub outcome: Outcome,
    /// The log marginal likelihood, without priors.
    pub evidence: f64,
    pub loo: LeaveOneOut,
    /// Predictions of the rows at each end of the data from all others.
    pub ends: Vec<Option<LeaveOneOut>>,
    pub jitter: f64,
}

/// What all restarts found.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// How each start ended, in the order of starts.
    pub outcomes: Vec<Outcome>,
    /// Those with a finite value, the best objective of each kernel first.
    pub candidates: Vec<Candidate>,
}

impl Candidate {
    pub fn new(name: &str, evidence: &Evidence, outcome: Outcome) -> Result<Self> {
        let (theta, noise) = evidence.values(&outcome.theta);
        let mut exact = evidence.problem.exact(evidence.program, evidence.threads)?;
        let (value, loo, ends) = exact.leave_out(&theta, noise, evidence.problem.ends())?;
        let kernel = evidence.kernel.with_values(&theta)?;
        Ok(Self {
            name: name.to_string(),
            problem: 0,
            kernel,
            noise,
            outcome,
            evidence: value,
            loo,
            ends,
            jitter: exact.jitter,
        })
    }
}
