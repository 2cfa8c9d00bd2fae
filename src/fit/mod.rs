//! Where data, kernel, process and optimiser meet: options become a fitted model with an honest account.

mod account;
mod candidate;
mod contest;
mod cycles;
mod ends;
mod file;
mod grid;
mod grid_start;
mod grid_work;
mod iterative;
mod levels;
mod link;
mod member;
mod method;
mod mixture;
mod model;
mod objective;
mod options;
mod periodogram;
mod problem;
mod reach;
mod rivals;
mod sparse;
mod sparse_start;
mod start;
mod stream;
mod warp;
mod weigh;

pub use account::{Account, CandidateAccount, LooAccount, ParameterAccount, RestartAccount};
pub(crate) use cycles::with_cycles;
pub use grid::{Deviations, GridFit, GridModel, GridRestart};
pub use levels::Levels;
pub(crate) use levels::ShiftTest;
pub use link::Link;
pub use member::Member;
pub use method::{Method, Plan};
pub use mixture::{Mixture, Part};
pub use model::Model;
pub use objective::Priors;
pub(crate) use periodogram::{Season, seasons, seasons_of_long};
pub use start::StartFrom;
pub use warp::Warp;

use crate::data::{Dataset, Scaling};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Kernel;
use crate::optim::{Bounds, Lbfgs, Limits, Observer, Optimizer, Outcome, Progress, Restarts, Start, State, Stop};
use crate::program::Program;
use crate::threads::Threads;
use candidate::{Candidate, Found};
use objective::Evidence;
use problem::{GRAIN, Problem, to_grain};
use start::Facts;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// From this size on one restart after another uses all threads; below, restarts run beside each other.
const LARGE: usize = 800;
/// From that size on starts are compared on this many rows, after this many iterations, and so many go on.
const SCREENING_ROWS: usize = 400;
const SCREENING_STEPS: usize = 60;
const CARRIED: usize = 2;

/// The most iterations of a start, unless another number is asked for.
const ITERATIONS: usize = 200;

/// Are inputs and target brought to mean nought and deviation one before fitting?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standardize {
    /// Yes, and undone on the way out.
    #[default]
    Yes,
    /// No: the data are taken as they are.
    No,
}

/// Where the units of standardised data come from.
#[derive(Debug, Clone)]
enum Units {
    /// The data themselves.
    Own,
    /// Those of the inputs from elsewhere, that of the target from the data.
    Inputs(Scaling),
    /// All from elsewhere.
    All(Scaling),
}

/// What is to be fitted, and how. Every option has a default that needs no thought.
///
/// ```
/// use covary::{Dataset, Fit, Kernel, Points};
/// let x = Points::from_column(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// let data = Dataset::new(x, vec![0.1, 0.8, 0.9, 0.2, -0.7, -1.0])?;
/// let model = Fit::new(Kernel::rbf()).restarts(2).seed(7).run(&data)?;
/// let ahead = model.predict(&Points::from_column(&[2.5])?)?;
/// assert!((ahead.mean[0] - 0.6).abs() < 0.3);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fit {
    kernel: Kernel,
    rivals: Option<Vec<Kernel>>,
    members: usize,
    restarts: usize,
    seed: u64,
    iterations: Option<usize>,
    optimizer: Optimizer,
    standardize: Standardize,
    units: Units,
    /// Periods along the only input, the first ones first to be tried, where they are known from more than the rows that are fitted.
    periods: Option<Vec<f64>>,
    warp: Warp,
    /// What was done to the target on the way here.
    link: Link,
    start: StartFrom,
    priors: Priors,
    noise: Option<f64>,
    /// The noise variance of the first start, on the standardised target.
    first_noise: Option<f64>,
    time: Option<Duration>,
    /// When the time is over, where the clock runs already.
    deadline: Option<Instant>,
    interrupt: Option<Arc<AtomicBool>>,
    resume: Vec<Option<State>>,
    method: Method,
    inducing: Option<usize>,
    memory: Option<usize>,
}

/// What is seen of a running fit.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Which restart.
    pub restart: usize,
    /// Where its optimiser stands; the value is the negative log marginal likelihood (with priors), infinite while a
    /// sparse fit is looking for where to begin.
    pub progress: &'a Progress<'a>,
    /// All that is needed to go on from here.
    pub state: Option<&'a State>,
}

impl Fit {
    /// A fit of this kernel with default options.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            rivals: None,
            members: 11,
            restarts: 4,
            seed: 0,
            iterations: None,
            optimizer: Lbfgs { history: 60, longest_step: Some(1.0), ..Lbfgs::default() }.into(),
            standardize: Standardize::Yes,
            units: Units::Own,
            periods: None,
            warp: Warp::Beside,
            link: Link::Identity,
            start: StartFrom::Data,
            priors: Priors::Weak,
            noise: None,
            first_noise: None,
            time: None,
            deadline: None,
            interrupt: None,
            resume: vec![],
            method: Method::Auto,
            inducing: None,
            memory: None,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Fits the kernel's parameters and the noise to the data.
    ///
    /// # Errors
    /// Data or options that cannot be fitted, or no start that reaches a finite evidence.
    pub fn run(&self, data: &Dataset) -> Result<Model> {
        self.run_observed(data, |_| ControlFlow::Continue(()))
    }

    /// The same, seen at every iteration of every restart, and stopped where the observer breaks.
    ///
    /// # Errors
    /// As [`Fit::run`].
    pub fn run_observed(&self, data: &Dataset, observer: impl Fn(Step) -> ControlFlow<()> + Sync) -> Result<Model> {
        let clock = Instant::now();
        self.check(data)?;
        let plan = self.plan(data)?;
        if matches!(self.warp, Warp::Auto | Warp::By(_)) {
            let (link, note) = self.warp.link(self, data)?;
            let linked = data.clone().map_target(|y| link.apply(y))?.with_notes(note);
            return Fit { warp: Warp::None, link, ..self.clone() }.run_observed(&linked, observer);
        }
        match plan.method {
            Method::Sparse => return self.run_sparse(data, &plan, clock, &observer),
            Method::Iterative => return self.run_iterative(data, &plan, clock, &observer),
            _ => {}
        }
        let mut problem = self.problem(data)?;
        problem.notes.extend(plan.note());
        let mut found = self.search_asked(&problem, clock, &observer)?;
        let mut problems = vec![problem];
        let beside = self.problem_beside(data, &found, clock);
        let note = beside.map(|(linked, note)| {
            problems.push(linked);
            note
        });
        self.add_rivals(&problems, clock, &mut found);
        if found.candidates.iter().any(|c| c.problem > 0) {
            problems[0].notes.extend(note);
        }
        let weights = weigh::Tests::of(&problems, &found.candidates).weights(self.members);
        self.model(&problems, &found, &weights, clock)
    }

    /// Every restart of the kernel as a model of its own, the best objective first, without rivals and of the target as
    /// it is; for comparing and combining them.
    ///
    /// # Errors
    /// As [`Fit::run`].
    pub fn run_each(
        &self,
        data: &Dataset,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Model>> {
        let clock = Instant::now();
        let problems = [self.problem(data)?];
        let found = self.search_one(&self.kernel, self.restarts, &problems[0], clock, observer)?;
        let one = |i: usize| {
            let mut weights = vec![0.0; found.candidates.len()];
            weights[i] = 1.0;
            self.model(&problems, &found, &weights, clock)
        };
        (0..found.candidates.len()).map(one).collect()
    }

    fn problem(&self, data: &Dataset) -> Result<Problem> {
        self.check(data)?;
        Problem::new(data, self, Problem::may_merge(&self.kernel))
    }

    fn model(&self, problems: &[Problem], found: &Found, weights: &[f64], clock: Instant) -> Result<Model> {
        let taken = found.candidates.iter().zip(weights.iter().copied()).filter(|(_, w)| *w > 0.0);
        let mut chosen: Vec<(&Candidate, f64)> = taken.collect();
        chosen.sort_by(|a, b| b.1.total_cmp(&a.1));
        let seconds = clock.elapsed().as_secs_f64();
        let loo = LooAccount::new(problems, found, weights);
        let method = Method::Exact.name();
        let account =
            Account::new(account::Facts { problems, found, weights, method, loo, seconds, seed: self.seed });
        Model::of(problems, &chosen, account)
    }

    /// Where each restart ended, the best objective first.
    fn search_one(
        &self,
        asked: &Kernel,
        restarts: usize,
        problem: &Problem,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Found> {
        let kernel = &asked.bind(&problem.columns)?;
        let program = Program::compile(kernel, problem.d())?;
        let width = problem.scaling.width(0);
        // In other units they are the same numbers, as the data are.
        let known = self.periods.as_ref().map(|all| all.iter().map(|p| to_grain(p / width, GRAIN)).collect());
        let facts = Facts::of(problem.x.points(), &problem.y, kernel, self.start, known);
        let evidence = |threads| Evidence { problem, kernel, program: &program, priors: self.priors, threads };
        let starts: Vec<Start> = (0..restarts)
            .map(|i| match self.resume.get(i).and_then(Option::as_ref).filter(|_| asked == &self.kernel) {
                Some(state) => Start::from(state.clone()),
                None => {
                    let (theta, noise) = facts.start(kernel, i, self.seed);
                    let noise = self.first_noise.filter(|_| i == 0).unwrap_or(noise);
                    Start::from(evidence(Threads::One).raw((theta, noise)))
                }
            })
            .collect();
        let limits = Limits {
            iterations: self.iterations.unwrap_or(ITERATIONS),
            time: self.time_left(clock),
            interrupt: self.interrupt.clone(),
            ..Limits::default()
        };
        let optimizer = self.bounded(evidence(Threads::One).bounds());
        let watch = |restart| Watch { restart, observer, state: None };
        let mut outcomes: Vec<Option<Outcome>> = vec![None; starts.len()];
        let mut going: Vec<(usize, Start)> = starts.into_iter().enumerate().collect();
        if problem.n() >= LARGE {
            if going.len() > CARRIED && self.resume.is_empty() {
                // All starts on some of the rows; the best go on with all of them.
                let some = problem.sample(SCREENING_ROWS, self.seed)?;
                let part = Evidence { problem: &some, ..evidence(Threads::One) };
                let plan = Restarts {
                    optimizer: optimizer.clone(),
                    limits: Limits { iterations: SCREENING_STEPS.min(limits.iterations), ..limits.clone() },
                    screening: vec![],
                };
                part.objective()?;
                let objective = |_| part.objective().expect("the first one was made");
                let screened = plan.run(going.into_iter().map(|s| s.1).collect(), objective, |_| ())?;
                going = crate::optim::rank(&screened)
                    .into_iter()
                    .take(CARRIED)
                    .map(|i| (i, Start::from(screened[i].theta.clone())))
                    .collect();
                going.sort_by_key(|start| start.0);
                let dropped = |outcome| Outcome { stop: Stop::Screened, value: f64::INFINITY, ..outcome };
                outcomes = screened.into_iter().map(|outcome| Some(dropped(outcome))).collect();
            }
            for (i, start) in going {
                let limits = Limits { time: self.time_left(clock), ..limits.clone() };
                let mut objective = evidence(Threads::All).objective()?;
                outcomes[i] = Some(optimizer.minimize(&mut objective, start, &limits, &mut watch(i))?);
            }
        } else {
            let plan = Restarts { optimizer, limits, screening: vec![] };
            // Starts go side by side, each on a thread of its own; a single one may have them all.
            let threads = if going.len() == 1 { Threads::outside_the_pool() } else { Threads::One };
            // Sizes were checked with the first objective; the others are the same.
            evidence(threads).objective()?;
            let objective = |_| evidence(threads).objective().expect("the first one was made");
            let starts = going.into_iter().map(|s| s.1).collect();
            let ended = threads.enter(|| plan.run(starts, objective, watch))?;
            outcomes = ended.into_iter().map(Some).collect();
        }
        let outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        crate::optim::best(&outcomes)?;
        let mut found = Found { outcomes, candidates: vec![] };
        for i in crate::optim::rank(&found.outcomes) {
            if found.outcomes[i].value.is_finite() {
                let outcome = found.outcomes[i].clone();
                found.candidates.push(Candidate::new(&asked.to_string(), &evidence(Threads::All), outcome)?);
            }
        }
        Ok(found)
    }

    /// The optimiser, kept within bounds unless it has some of its own.
    fn bounded(&self, bounds: Bounds) -> Optimizer {
        let mut optimizer = self.optimizer.clone();
        let own = match &mut optimizer {
            Optimizer::Lbfgs(m) => &mut m.bounds,
            Optimizer::Adam(m) => &mut m.bounds,
        };
        if *own == Bounds::Free {
            *own = bounds;
        }
        optimizer
    }

    fn check(&self, data: &Dataset) -> Result<()> {
        self.check_options(data.n())?;
        if let Some(column) = (0..data.d()).find(|&c| data.x().column(c).iter().any(|v| !v.is_finite())) {
            let row = data.x().column(column).iter().position(|v| !v.is_finite()).unwrap_or(0);
            let found = data.x().column(column)[row];
            return Err(ErrorKind::NotFinite { row, column: data.inputs()[column].clone(), found }.into());
        }
        Ok(())
    }

    fn check_options(&self, n: usize) -> Result<()> {
        if n < 2 {
            return Err(Error::new(ErrorKind::TooFewRows { found: n, needed: 2 }));
        }
        if self.restarts == 0 {
            return Err(Error::option("restarts", "at least one start is needed"));
        }
        if let Some(sd) = self.noise
            && !(sd.is_finite() && sd >= 0.0)
        {
            return Err(Error::option(
                "noise",
                format!("a standard deviation must be finite and not negative: {sd}"),
            ));
        }
        Ok(())
    }
}

/// Hands one restart's progress to the observer of the whole.
struct Watch<'a, F> {
    restart: usize,
    observer: &'a F,
    state: Option<State>,
}

impl<F: Fn(Step) -> ControlFlow<()>> Observer for Watch<'_, F> {
    fn observe(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        (self.observer)(Step { restart: self.restart, progress, state: self.state.as_ref() })
    }

    fn checkpoint(&mut self, state: &State) {
        self.state = Some(state.clone());
    }
}
