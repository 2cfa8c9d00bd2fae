//! The honest account of a fit: what was done, how well it converged, what was adjusted. Field names are a contract:
//! they are the JSON of the command line.

use crate::data::{Dataset, Scaling};
use crate::gp::LeaveOneOut;
use crate::kernel::{Kernel, Role};
use crate::optim::Outcome;
use serde::{Deserialize, Serialize};

/// What was done and how it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// How evidence was computed.
    pub method: String,
    /// Rows used.
    pub rows: usize,
    /// Names of the input columns.
    pub columns: Vec<String>,
    /// The kernel with its fitted values, on standardised data, as text.
    pub kernel: String,
    /// Log marginal likelihood of the standardised target.
    pub log_marginal_likelihood: f64,
    /// Standard deviation of the noise, in the target's units.
    pub noise_sd: f64,
    /// Every fitted parameter.
    pub parameters: Vec<ParameterAccount>,
    /// Iterations of the best restart.
    pub iterations: usize,
    /// Evaluations of all restarts.
    pub evaluations: usize,
    /// Wall time.
    pub seconds: f64,
    /// Did the best restart converge?
    pub converged: bool,
    /// Why it ended.
    pub reason: String,
    /// What had to be added to the diagonal of the covariance.
    pub jitter: f64,
    /// Each restart.
    pub restarts: Vec<RestartAccount>,
    /// Leave-one-out predictions.
    pub loo: LooAccount,
    /// The seed.
    pub seed: u64,
    /// What was adjusted, dropped or noticed.
    pub notes: Vec<String>,
}

/// One fitted parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParameterAccount {
    /// Its role in words.
    pub role: String,
    /// The input column it belongs to.
    pub column: Option<String>,
    /// Its value on standardised data.
    pub value: f64,
    /// Its value in the data's own units, where it has any.
    pub in_units: f64,
}

/// How one restart ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartAccount {
    /// The objective: negative log marginal likelihood with priors; none if it never was finite.
    pub objective: Option<f64>,
    /// Iterations.
    pub iterations: usize,
    /// Evaluations.
    pub evaluations: usize,
    /// Did it converge?
    pub converged: bool,
    /// Why it ended.
    pub reason: String,
}

/// Leave-one-out predictions, in the target's units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LooAccount {
    /// Root mean squared error.
    pub rmse: f64,
    /// Mean log density.
    pub log_density: f64,
    /// Share of targets within their 95 % intervals.
    pub coverage_95: f64,
}

/// What an account is made from.
pub(super) struct Facts<'a> {
    pub data: &'a Dataset,
    pub scaling: &'a Scaling,
    pub kernel: &'a Kernel,
    pub value: f64,
    pub noise: f64,
    pub outcomes: &'a [Outcome],
    pub best: usize,
    pub loo: &'a LeaveOneOut,
    pub y: &'a [f64],
    pub jitter: f64,
    pub seconds: f64,
    pub seed: u64,
    pub notes: Vec<String>,
}

impl Account {
    pub(super) fn new(f: Facts) -> Self {
        let best = &f.outcomes[f.best];
        let parameter = |p: &crate::kernel::Param| {
            let value = p.value_or_default();
            ParameterAccount {
                role: p.role().name().to_string(),
                column: p.role().column().and_then(|c| f.data.inputs().get(c).cloned()),
                value,
                in_units: in_units(p.role(), value, f.scaling),
            }
        };
        let restart = |o: &Outcome| RestartAccount {
            objective: o.value.is_finite().then_some(o.value),
            iterations: o.iterations,
            evaluations: o.evaluations,
            converged: o.stop.converged(),
            reason: o.stop.to_string(),
        };
        Self {
            method: "exact".to_string(),
            rows: f.data.n(),
            columns: f.data.inputs().to_vec(),
            kernel: f.kernel.to_string(),
            log_marginal_likelihood: f.value,
            noise_sd: f.scaling.sd(f.noise.sqrt()),
            parameters: f.kernel.params().iter().map(parameter).collect(),
            iterations: best.iterations,
            evaluations: f.outcomes.iter().map(|o| o.evaluations).sum(),
            seconds: f.seconds,
            converged: best.stop.converged(),
            reason: best.stop.to_string(),
            jitter: f.jitter,
            restarts: f.outcomes.iter().map(restart).collect(),
            loo: LooAccount {
                rmse: f.scaling.sd(f.loo.rmse),
                log_density: f.loo.log_density - f.scaling.target_width().ln(),
                coverage_95: f.loo.coverage(f.y, 1.959_963_984_540_054),
            },
            seed: f.seed,
            notes: f.notes,
        }
    }

    /// The difference between the worst and the best restart that reached a value.
    pub fn spread(&self) -> f64 {
        let values = self.restarts.iter().filter_map(|r| r.objective);
        let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if hi >= lo { hi - lo } else { 0.0 }
    }
}

/// A parameter in the data's own units.
pub(super) fn in_units(role: Role, value: f64, scaling: &Scaling) -> f64 {
    let width = |column: Option<usize>| column.map_or(1.0, |c| scaling.width(c));
    match role {
        Role::Lengthscale { column } | Role::Period { column } => value * width(column),
        Role::Frequency { column } => value / width(column),
        Role::Location { column } => column.map_or(value, |c| value * scaling.width(c) + scaling.centre(c)),
        Role::Slope { column } => value * scaling.target_variance() / width(column).powi(2),
        Role::Variance | Role::Noise => value * scaling.target_variance(),
        Role::Shape | Role::Smoothness | Role::Offset | Role::Weight | Role::Bias => value,
    }
}
