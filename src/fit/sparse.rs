//! A sparse fit: an exact fit of some rows gives starting values, a bound by few inducing points takes them further, and
//! the bound of all rows is maximised from there, over the kernel's parameters and the noise. Inducing points stay where
//! they were placed (moved along, thousands of coordinates hold up a hundred parameters), and half-way they are placed
//! anew, under the kernel found so far. Rows are in memory, or stay in their file.

use super::account::{self, Account, Scores};
use super::candidate::{Candidate, Found};
use super::contest::Winner;
use super::member::Member;
use super::method::Plan;
use super::mixture::Mixture;
use super::objective::Evidence;
use super::problem::Problem;
use super::sparse_start::{KERNEL_CHOSEN, POOL, tell};
use super::{Fit, Model, Step, Watch};
use crate::data::{Dataset, Points};
use crate::error::{Error, ErrorKind, Result};
use crate::gp::{Exact, InMemory, IterativePosterior, Jitter, LeaveOneOut, Placing, Process, Rows, Sparse};
use crate::gp::{SparsePosterior, place_inducing, sample};
use crate::kernel::Kernel;
use crate::memory;
use crate::optim::{Bounds, Limits, Outcome, Start, State, Stop};
use crate::program::Program;
use crate::threads::Threads;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The most iterations over all rows, unless another number is asked for.
pub(super) const ITERATIONS: usize = 100;
/// The share of them after which inducing points are placed anew.
const FIRST: f64 = 0.5;
/// Beyond this many rows parameters are found from some of them, and the bound of all takes fewer iterations, so that the
/// work grows with the rows and not with a hundred times as many.
pub(super) const MANY: usize = 50_000;
const FEWEST_ITERATIONS: usize = 3;

/// Where a sparse fit takes its rows from.
pub(super) struct Source<'a> {
    pub rows: &'a dyn Rows,
    /// Number of rows; where some may be dropped on reading, the most there can be.
    pub n: usize,
    /// All of them, where their weights in the mean are wanted.
    pub weighed: Option<(&'a Points, &'a [f64])>,
    /// Some of them, which are fitted exactly to begin with; also names, scaling and notes.
    pub some: Problem,
}

impl Fit {
    /// A sparse fit of rows in memory.
    pub(super) fn run_sparse(
        &self,
        data: &Dataset,
        plan: &Plan,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Model> {
        // Equal rows need not be merged here.
        let problem = Problem::new(data, self, false)?;
        let all = (problem.x.points(), &problem.y[..]);
        let rows = InMemory::new(all.0, all.1)?;
        let weighed = plan.weighs_rows.then_some(all);
        let source = Source { rows: &rows, n: problem.n(), weighed, some: self.some_of(&problem)? };
        self.train(source, plan, clock, observer)
    }

    /// Starting values, the maximum of the bound, the process, and the account of it all.
    pub(super) fn train(
        &self,
        mut source: Source,
        plan: &Plan,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Model> {
        source.some.notes.extend(plan.note());
        let (fit, start) = match self.resume.first().and_then(Option::as_ref) {
            Some(state) if state.stages().is_some() => {
                let noise = usize::from(source.some.fixed_noise.is_none());
                let fits = |params| params + noise == state.theta().len();
                let fit = self.resumed(&source.some.columns, fits, |_| false)?;
                let start = fit.start_sparse(&mut source, state.clone(), plan, clock, observer)?;
                (fit, Start::from(start))
            }
            Some(state) => {
                let (length, tail) = (state.theta().len(), plan.inducing * source.some.d());
                let noise = usize::from(source.some.fixed_noise.is_none());
                let d = source.some.d();
                let rest = |params: usize| length.checked_sub(params + noise).filter(|r| *r > 0 && r % d == 0);
                let fits = |params| rest(params) == Some(tail);
                let may = |params| rest(params).is_some_and(|r| r <= tail);
                let fit = self.resumed(&source.some.columns, fits, may)?;
                (fit, Start::from(state.clone()))
            }
            None => {
                let Winner { fit, raw, note } = self.contest(&source.some, clock)?;
                source.some.notes.extend(note);
                let state = State::prepared(raw, KERNEL_CHOSEN);
                tell(observer, &state, clock);
                (fit.clone(), Start::from(fit.start_sparse(&mut source, state, plan, clock, observer)?))
            }
        };
        let kernel = &fit.kernel.bind(&source.some.columns)?;
        let program = Program::compile(kernel, source.some.d())?;
        let share = (MANY as f64 / source.n.max(1) as f64).min(1.0);
        let usual = ((ITERATIONS as f64 * share) as usize).max(FEWEST_ITERATIONS);
        let iterations = self.iterations.unwrap_or(usual);
        // Points that were placed under the kernel of a large part are where they should be.
        let first = if source.n > MANY { iterations } else { (FIRST * iterations as f64).ceil() as usize };
        let mut outcome = fit.maximise(&source, kernel, &program, start, first, clock, observer)?;
        let stopped = matches!(outcome.stop, Stop::Interrupted | Stop::Time);
        if first < iterations && !stopped && outcome.value.is_finite() {
            outcome = fit.placed_anew(&source, kernel, &program, outcome, iterations - first, clock)?;
        }
        fit.account(&source, kernel, program, outcome, clock)
    }

    /// Goes on from where a fit ended, with as many inducing points placed under the kernel it found. Nobody is told of
    /// these iterations, so that whoever resumes a state goes on with the ones before.
    fn placed_anew(
        &self,
        source: &Source,
        kernel: &Kernel,
        program: &Program,
        before: Outcome,
        iterations: usize,
        clock: Instant,
    ) -> Result<Outcome> {
        let (head, (theta, _)) = self.found(&source.some, kernel, program, &before)?;
        let m = (before.theta.len() - head) / program.d();
        let pool = sample(source.rows, POOL.max(m), self.seed)?.0;
        let Ok(z) = place_inducing(&pool, m, Placing::GreedyVariance(program, &theta), self.seed) else {
            return Ok(before);
        };
        let start = Start::from([&before.theta[..head], z.values()].concat());
        let nobody = &|_: Step| ControlFlow::Continue(());
        let after = self.maximise(source, kernel, program, start, iterations, clock, nobody)?;
        let (mut best, other) = if after.value < before.value { (after, before) } else { (before, after) };
        // Who was stopped from outside says so, whichever is the better one.
        if matches!(other.stop, Stop::Interrupted | Stop::Time) {
            best.stop = other.stop;
        }
        best.iterations += other.iterations;
        best.evaluations += other.evaluations;
        Ok(best)
    }

    /// Maximises the bound from raw numbers: parameters, noise, inducing points (column by column). The points do not move;
    /// they are there so that a state of the optimiser is all that is needed to go on.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn maximise(
        &self,
        source: &Source,
        kernel: &Kernel,
        program: &Program,
        start: Start,
        iterations: usize,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Outcome> {
        let evidence =
            Evidence { problem: &source.some, kernel, program, priors: self.priors, threads: Threads::All };
        let (roles, d) = (evidence.roles(), program.d());
        let head = roles.len() + usize::from(source.some.fixed_noise.is_none());
        let length = match &start {
            Start::Fresh(raw) => raw.len(),
            Start::Resumed(state) => state.theta().len(),
        };
        let m = length.saturating_sub(head) / d;
        if length != head + m * d || m == 0 {
            return Err(ErrorKind::Size { what: "state of the optimiser", expected: head + d, found: length }.into());
        }
        let mut list = match evidence.bounds() {
            Bounds::Each(list) => list,
            _ => vec![(-25.0, 25.0); head],
        };
        list.resize(length, (-1e6, 1e6));
        let optimizer = self.bounded(Bounds::Each(list));
        let limits = Limits {
            iterations,
            time: self.time_left(clock),
            interrupt: self.interrupt.clone(),
            ..Limits::default()
        };
        let nowhere = Points::from_values(m, d, vec![0.0; m * d])?;
        let mut sparse = Sparse::new(program, source.rows, &nowhere, Threads::All)?;
        let mut gradient = vec![0.0; roles.len()];
        // A file that cannot be read any more ends the work; values out of range are only "not here".
        let failed: RefCell<Option<Error>> = RefCell::new(None);
        let mut objective = |raw: &[f64], out: &mut [f64]| {
            if failed.borrow().is_some() {
                return f64::INFINITY;
            }
            let (theta, noise) = evidence.values(&raw[..head]);
            let found = Points::from_values(m, d, raw[head..].to_vec())
                .and_then(|z| sparse.gradient(&theta, noise, &z, &mut gradient, None));
            match found {
                Ok((value, slope)) => {
                    out[head..].fill(0.0);
                    let (raw, out) = (&raw[..head], &mut out[..head]);
                    evidence.finish(&roles, raw, (value, noise, slope), &gradient, out)
                }
                Err(error) => {
                    if !matches!(error.kind(), ErrorKind::NotPositiveDefinite { .. }) {
                        *failed.borrow_mut() = Some(error);
                    }
                    f64::INFINITY
                }
            }
        };
        let watch = &mut Watch { restart: 0, observer, state: None };
        let outcome = optimizer.minimize(&mut objective, start, &limits, watch)?;
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(outcome),
        }
    }

    fn account(
        &self,
        source: &Source,
        kernel: &Kernel,
        program: Program,
        outcome: Outcome,
        clock: Instant,
    ) -> Result<Model> {
        let (some, d) = (&source.some, program.d());
        let (head, (theta, noise)) = self.found(some, kernel, &program, &outcome)?;
        let kernel = kernel.with_values(&theta)?;
        let tail = &outcome.theta[head..];
        let z = Points::from_values(tail.len() / d, d, tail.to_vec())?;
        // What is stored is the kernel's text, so that a model from a file is the same to the bit.
        let posterior = SparsePosterior::new(program, kernel.values(), noise, source.rows, &z, Jitter::default())?;
        let mut problem = Problem { rows: posterior.n(), ..some.clone() };
        if posterior.n() < source.n {
            problem.notes.push(format!("{} rows with missing cells dropped", source.n - posterior.n()));
        }
        let weighed = source.weighed.map(|all| self.weigh_rows(&kernel, noise, all, clock));
        let from = "variances and leave-one-out scores from the inducing points";
        problem.notes.extend(match &weighed {
            Some(Ok((x, _))) => Some(format!("means come from the weights of all {} rows, {from}", x.n())),
            Some(Err(why)) => Some(format!("means come from the inducing points alone: {why}")),
            None => None,
        });
        let scores = score(&problem, &posterior, source.rows)?;
        let ended = Ended { kernel, noise, outcome, evidence: posterior.bound(), jitter: posterior.jitter() };
        let (x, process) = match weighed {
            Some(Ok((x, alpha))) => {
                let (theta, x) = (ended.kernel.values(), x.clone());
                let program = Program::compile(&ended.kernel, d)?;
                let process = IterativePosterior::from_weights(program, theta, &x, alpha, posterior)?;
                (x, Process::Iterative(Box::new(process)))
            }
            _ => (Points::from_values(0, d, vec![])?, Process::Sparse(Box::new(posterior))),
        };
        Ok(self.single("sparse", &problem, ended, &scores, x, process, clock))
    }

    /// The weights of all rows in the mean, under the kernel that the bound has found: means by them are a little better than
    /// those by inducing points. Or why there are none.
    fn weigh_rows<'x>(
        &self,
        kernel: &Kernel,
        noise: f64,
        (x, y): (&'x Points, &[f64]),
        clock: Instant,
    ) -> std::result::Result<(&'x Points, Vec<f64>), &'static str> {
        if self.is_interrupted() {
            return Err("the work was interrupted");
        }
        if self.time_left(clock) == Some(Duration::ZERO) {
            return Err("the time was over");
        }
        // It was there before the fit, but that may be minutes ago.
        if self.memory.or_else(memory::available).is_some_and(|free| free < Exact::memory(x.n())) {
            return Err("there is not enough memory any more");
        }
        let weights = Program::compile(kernel, x.d())
            .and_then(|program| IterativePosterior::weights_by_factor(&program, &kernel.values(), noise, x, y));
        Ok((x, weights.map_err(|_| "the covariance of the rows is singular but for rounding")?))
    }

    /// How many raw numbers belong to kernel and noise, and their values at the end.
    pub(super) fn found(
        &self,
        some: &Problem,
        kernel: &Kernel,
        program: &Program,
        outcome: &Outcome,
    ) -> Result<(usize, (Vec<f64>, f64))> {
        crate::optim::best(std::slice::from_ref(outcome))?;
        let evidence = Evidence { problem: some, kernel, program, priors: self.priors, threads: Threads::All };
        let head = evidence.raw((kernel.values(), 1.0)).len();
        Ok((head, evidence.values(&outcome.theta[..head])))
    }

    /// The model of one process, with its account.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn single(
        &self,
        method: &str,
        problem: &Problem,
        ended: Ended,
        scores: &Scores,
        x: Points,
        process: Process,
        clock: Instant,
    ) -> Model {
        let (scaling, loo) = (&problem.scaling, scores.account());
        let own = LeaveOneOut {
            log_density: loo.log_density - problem.log_units(),
            rmse: loo.rmse / scaling.target_width(),
            ..LeaveOneOut::default()
        };
        let Ended { kernel, noise, outcome, evidence, jitter } = ended;
        let (name, found) = (self.kernel.to_string(), vec![outcome.clone()]);
        let candidate = Candidate {
            name,
            problem: 0,
            kernel: kernel.clone(),
            noise,
            outcome,
            evidence,
            loo: own,
            ends: vec![],
            jitter,
        };
        let account = Account::new(account::Facts {
            problems: std::slice::from_ref(problem),
            found: &Found { outcomes: found, candidates: vec![candidate] },
            weights: &[1.0],
            method,
            loo,
            seconds: clock.elapsed().as_secs_f64(),
            seed: self.seed,
        });
        let members = vec![Member { link: problem.link, ..Member::of(1.0, kernel, noise, scaling.clone(), process) }];
        let (encoding, target) = (problem.encoding.clone(), problem.target.clone());
        Model { encoding, target, x, members, widening: 1.0, account }
    }
}

/// Where a fit of one process ended.
pub(super) struct Ended {
    pub kernel: Kernel,
    pub noise: f64,
    pub outcome: Outcome,
    pub evidence: f64,
    pub jitter: f64,
}

/// Leave-one-out scores of a sparse process.
pub(super) fn score(problem: &Problem, posterior: &SparsePosterior, rows: &dyn Rows) -> Result<Scores> {
    let mut scores = Scores::default();
    posterior.leave_one_out(rows, &mut |y, mean, variance| {
        scores.add(problem.own(y), &Mixture { parts: vec![problem.part(1.0, mean, variance, posterior.noise())] });
    })?;
    Ok(scores)
}
