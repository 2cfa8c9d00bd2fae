//! The honest account of a fit: what was done, how well it converged, what was adjusted. Field names are a contract:
//! they are the JSON of the command line.

use super::candidate::{Candidate, Found};
use super::link::Link;
use super::mixture::Mixture;
use super::problem::Problem;
use crate::data::Scaling;
use crate::kernel::Role;
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
    /// Log marginal likelihood of the standardised target, as the heaviest member has it: transformed, if that is.
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
    /// Every kernel and start that was in the running, the one with the largest weight first.
    #[serde(default)]
    pub candidates: Vec<CandidateAccount>,
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

/// One kernel and start that was in the running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateAccount {
    /// The kernel, in words: what it is called, not its values.
    pub kernel: String,
    /// What was done to the target first.
    #[serde(default)]
    pub transform: Link,
    /// Its share in the predictions; 0 if it was not taken.
    pub weight: f64,
    /// Log marginal likelihood of the standardised target under that transform; not to be compared with that under another.
    pub log_marginal_likelihood: f64,
    /// Mean leave-one-out log density, in the target's units.
    pub loo_log_density: f64,
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
    /// Mean continuous ranked probability score.
    #[serde(default)]
    pub crps: f64,
    /// Mean score of the 95 % intervals: their width, and 40 times the distance of a value outside.
    #[serde(default)]
    pub interval_score_95: f64,
}

/// What an account is made from.
pub(super) struct Facts<'a> {
    /// The target as it was asked for, and transformed.
    pub problems: &'a [Problem],
    /// What each kernel is called, its candidates and their weights; outcomes of all starts of the asked kernel.
    pub found: &'a Found,
    pub weights: &'a [f64],
    pub method: &'a str,
    pub loo: LooAccount,
    pub seconds: f64,
    pub seed: u64,
}

impl Account {
    pub(super) fn new(f: Facts) -> Self {
        let mut order: Vec<usize> = (0..f.weights.len()).collect();
        order.sort_by(|&a, &b| f.weights[b].total_cmp(&f.weights[a]));
        let best = &f.found.candidates[order[0]];
        let problem = &f.problems[best.problem];
        let scaling = &problem.scaling;
        let parameter = |p: &crate::kernel::Param| {
            let value = p.value_or_default();
            ParameterAccount {
                role: p.role().name().to_string(),
                column: p.role().column().and_then(|c| problem.columns.get(c).cloned()),
                value,
                in_units: in_units(p.role(), value, scaling),
            }
        };
        let restart = |o: &Outcome| RestartAccount {
            objective: o.value.is_finite().then_some(o.value),
            iterations: o.iterations,
            evaluations: o.evaluations,
            converged: o.stop.converged(),
            reason: o.stop.to_string(),
        };
        let units: Vec<f64> = f.problems.iter().map(Problem::log_units).collect();
        let candidate = |&i: &usize| {
            let c = &f.found.candidates[i];
            CandidateAccount {
                kernel: c.name.clone(),
                transform: f.problems[c.problem].link,
                weight: f.weights[i],
                log_marginal_likelihood: c.evidence,
                loo_log_density: c.loo.log_density + units[c.problem],
            }
        };
        let mut notes = f.problems[0].notes.clone();
        // What inducing points are given always is no news.
        if best.jitter > if f.method == "exact" { 0.0 } else { 1e-6 } {
            let jitter = best.jitter;
            notes.push(format!("a jitter of {jitter:.1e} was added to the diagonal to factorise the covariance"));
        }
        Self {
            method: f.method.to_string(),
            rows: problem.rows,
            columns: problem.columns.clone(),
            kernel: best.kernel.to_string(),
            log_marginal_likelihood: best.evidence,
            // A transformed target has it where it is nought as standardised.
            noise_sd: scaling.sd(best.noise.sqrt()) * (-problem.link.log_jacobian(problem.own(0.0))).exp(),
            parameters: best.kernel.params().iter().map(parameter).collect(),
            iterations: best.outcome.iterations,
            evaluations: f.found.outcomes.iter().map(|o| o.evaluations).sum(),
            seconds: f.seconds,
            converged: best.outcome.stop.converged(),
            reason: best.outcome.stop.to_string(),
            jitter: best.jitter,
            restarts: f.found.outcomes.iter().map(restart).collect(),
            loo: f.loo,
            candidates: order.iter().map(candidate).collect(),
            seed: f.seed,
            notes,
        }
    }

    /// The difference between the worst and the best restart that reached a value.
    pub fn spread(&self) -> f64 {
        let values = self.restarts.iter().filter_map(|r| r.objective);
        let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if hi >= lo { hi - lo } else { 0.0 }
    }
}

impl LooAccount {
    /// Scores of the weighted predictions of all chosen candidates.
    pub(super) fn new(problems: &[Problem], found: &Found, weights: &[f64]) -> Self {
        let mut scores = Scores::default();
        let part = |i: usize| {
            move |(c, &w): (&Candidate, &f64)| problems[c.problem].part(w, c.loo.mean[i], c.loo.variance[i], c.noise)
        };
        for (i, &z) in problems[0].targets().iter().enumerate() {
            let taken = found.candidates.iter().zip(weights).filter(|(_, w)| **w > 0.0);
            scores.add(problems[0].own(z), &Mixture { parts: taken.map(part(i)).collect() });
        }
        scores.account()
    }
}

/// Scores of targets in their own units, added up.
#[derive(Debug, Default)]
pub(super) struct Scores {
    n: f64,
    sums: [f64; 5],
}

impl Scores {
    /// Adds a target and what was said of it.
    pub fn add(&mut self, y: f64, said: &Mixture) {
        let level = said.cdf(y);
        let inside = f64::from((0.025..=0.975).contains(&level));
        let error = y - said.moments().0;
        let scores = [error * error, said.log_density(y), inside, said.crps(y), said.interval_score(y, 0.95)];
        self.n += 1.0;
        self.sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
    }

    /// The means, in the target's units.
    pub fn account(&self) -> LooAccount {
        let [square, log_density, coverage_95, crps, interval_score_95] = self.sums.map(|sum| sum / self.n.max(1.0));
        LooAccount { rmse: square.sqrt(), log_density, coverage_95, crps, interval_score_95 }
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
