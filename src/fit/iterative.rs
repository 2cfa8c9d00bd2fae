//! An iterative fit: an exact fit of some rows gives starting values, from which a few steps climb the estimated
//! evidence of all rows.

use super::contest::Winner;
use super::method::Plan;
use super::objective::Evidence;
use super::problem::Problem;
use super::sparse::{Ended, score};
use super::{Fit, Model, Step, Watch};
use crate::data::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::gp::{Effort, InMemory, Iterative, IterativePosterior, Process};
use crate::optim::{Limits, Start};
use crate::program::Program;
use crate::threads::Threads;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

/// The most iterations, unless another number is asked for: each takes many products with a matrix that is never held.
const ITERATIONS: usize = 20;
/// Residuals of the weights that predictions come from.
const FINAL: f64 = 1e-4;

impl Fit {
    pub(super) fn run_iterative(
        &self,
        data: &Dataset,
        plan: &Plan,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Model> {
        let mut problem = Problem::new(data, self, false)?;
        problem.notes.extend(plan.note());
        let (fit, start) = match self.resume.first().and_then(Option::as_ref) {
            Some(state) => {
                let noise = usize::from(problem.fixed_noise.is_none());
                let fits = |params| params + noise == state.theta().len();
                let fit = self.resumed(&problem.columns, fits, |_| false)?;
                (fit, Start::from(state.clone()))
            }
            None => {
                let some = self.some_of(&problem)?;
                problem.notes.push(format!("started from an exact fit of {} of {} rows", some.n(), problem.n()));
                let Winner { fit, raw, note } = self.contest(&some, clock)?;
                problem.notes.extend(note);
                (fit, Start::from(raw))
            }
        };
        let kernel = &fit.kernel.bind(&problem.columns)?;
        let program = Program::compile(kernel, problem.d())?;
        let evidence =
            Evidence { problem: &problem, kernel, program: &program, priors: self.priors, threads: Threads::All };
        let (roles, effort) = (evidence.roles(), Effort { seed: self.seed, ..Effort::default() });
        let (x, y) = (problem.x.points(), &problem.y);
        let mut iterative = Iterative::new(&program, x, y, effort, Threads::All)?;
        let mut gradient = vec![0.0; roles.len()];
        let failed: RefCell<Option<Error>> = RefCell::new(None);
        let mut objective = |raw: &[f64], out: &mut [f64]| {
            let (theta, noise) = evidence.values(raw);
            match iterative.gradient(&theta, noise, &mut gradient) {
                Ok((value, slope)) => evidence.finish(&roles, raw, (value, noise, slope), &gradient, out),
                Err(error) => {
                    if !matches!(error.kind(), ErrorKind::NotPositiveDefinite { .. }) {
                        *failed.borrow_mut() = Some(error);
                    }
                    f64::INFINITY
                }
            }
        };
        let limits = Limits {
            iterations: self.iterations.unwrap_or(ITERATIONS),
            time: self.time_left(clock),
            interrupt: self.interrupt.clone(),
            ..Limits::default()
        };
        let watch = &mut Watch { restart: 0, observer, state: None };
        let outcome = self.bounded(evidence.bounds()).minimize(&mut objective, start, &limits, watch)?;
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        let (_, (theta, noise)) = self.found(&problem, kernel, &program, &outcome)?;
        let kernel = kernel.with_values(&theta)?;
        let (value, _) = iterative.gradient(&kernel.values(), noise, &mut gradient)?;
        if iterative.residual > effort.tolerance {
            let (steps, residual) = (iterative.steps, iterative.residual);
            problem
                .notes
                .push(format!("conjugate gradients ended after {steps} steps at a residual of {residual:.1e}"));
        }
        let last = Effort { tolerance: FINAL, ..effort };
        let (x, y) = (problem.x.points(), &problem.y);
        let posterior = IterativePosterior::new(program, kernel.values(), noise, x, y, last)?;
        problem.notes.push(format!(
            "variances and leave-one-out scores come from {} inducing points among the rows",
            posterior.spread().inducing().n()
        ));
        let scores = score(&problem, posterior.spread(), &InMemory::new(x, y)?)?;
        let (ended, x) = (Ended { kernel, noise, outcome, evidence: value, jitter: 0.0 }, x.clone());
        Ok(fit.single("iterative", &problem, ended, &scores, x, Process::Iterative(Box::new(posterior)), clock))
    }
}
