//! Where data, kernel, process and optimiser meet: options become a fitted model with an honest account.

mod account;
mod file;
mod link;
mod model;
mod objective;
mod periodogram;
mod start;

pub use account::{Account, LooAccount, ParameterAccount, RestartAccount};
pub use link::Link;
pub use model::Model;
pub use objective::Priors;
pub use start::StartFrom;

use crate::data::{Dataset, Scaling};
use crate::error::{Error, ErrorKind, Result};
use crate::gp::Exact;
use crate::kernel::Kernel;
use crate::optim::{Bounds, Lbfgs, Limits, Observer, Optimizer, Outcome, Progress, Restarts, Start, State};
use crate::program::{Inputs, Program};
use crate::threads::Threads;
use objective::Evidence;
use start::Facts;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// From this size on one restart after another uses all threads; below, restarts run beside each other.
const LARGE: usize = 800;
/// The smallest noise variance, on the standardised target.
const NOISE_FLOOR: f64 = 1e-6;

/// Are inputs and target brought to mean nought and deviation one before fitting?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standardize {
    /// Yes, and undone on the way out.
    #[default]
    Yes,
    /// No: the data are taken as they are.
    No,
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
    restarts: usize,
    seed: u64,
    iterations: usize,
    optimizer: Optimizer,
    standardize: Standardize,
    start: StartFrom,
    priors: Priors,
    noise: Option<f64>,
    time: Option<Duration>,
    interrupt: Option<Arc<AtomicBool>>,
    resume: Vec<Option<State>>,
}

/// What is seen of a running fit.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Which restart.
    pub restart: usize,
    /// Where its optimiser stands; the value is the negative log marginal likelihood (with priors).
    pub progress: &'a Progress<'a>,
    /// All that is needed to go on from here.
    pub state: Option<&'a State>,
}

impl Fit {
    /// A fit of this kernel with default options.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            restarts: 4,
            seed: 0,
            iterations: 300,
            optimizer: Lbfgs { history: 20, longest_step: Some(2.0), ..Lbfgs::default() }.into(),
            standardize: Standardize::Yes,
            start: StartFrom::Data,
            priors: Priors::Weak,
            noise: None,
            time: None,
            interrupt: None,
            resume: vec![],
        }
    }

    /// How many starts; the best is kept.
    #[must_use]
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.restarts = restarts;
        self
    }

    /// The seed of everything random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The most iterations of each start.
    #[must_use]
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    /// The optimiser.
    #[must_use]
    pub fn optimizer(mut self, optimizer: impl Into<Optimizer>) -> Self {
        self.optimizer = optimizer.into();
        self
    }

    /// Whether data are standardised.
    #[must_use]
    pub fn standardize(mut self, standardize: Standardize) -> Self {
        self.standardize = standardize;
        self
    }

    /// Where starting values come from.
    #[must_use]
    pub fn start(mut self, start: StartFrom) -> Self {
        self.start = start;
        self
    }

    /// The priors on parameters.
    #[must_use]
    pub fn priors(mut self, priors: Priors) -> Self {
        self.priors = priors;
        self
    }

    /// A known noise standard deviation in the target's units, instead of a learned one.
    #[must_use]
    pub fn noise(mut self, sd: f64) -> Self {
        self.noise = Some(sd);
        self
    }

    /// The time after which the best so far is taken.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// A flag that stops the work from outside; the best so far is taken.
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Goes on from the states of an earlier fit of the same kernel and data, one for each restart.
    #[must_use]
    pub fn resume(mut self, states: Vec<State>) -> Self {
        self.resume = states.into_iter().map(Some).collect();
        self
    }

    /// The same, where some restarts had not begun yet: those start afresh.
    #[must_use]
    pub fn resume_some(mut self, states: Vec<Option<State>>) -> Self {
        self.resume = states;
        self
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
        let scaling = match self.standardize {
            Standardize::Yes => Scaling::of(data)?,
            Standardize::No => Scaling::identity(data.d()),
        };
        let mut notes: Vec<String> = data.notes().to_vec();
        if self.standardize == Standardize::Yes {
            notes.extend(scaling.notes(data));
        }
        let kernel = self.kernel.bind(data.inputs())?;
        let (x, y) = (scaling.points(data.x())?, scaling.target(data.y()));
        let known: Option<Vec<f64>> = data.noise().map(|v| v.iter().map(|&v| scaling.noise(v)).collect());
        let fixed_noise = self.noise.map(|sd| scaling.noise(sd * sd));
        let program = Program::compile(&kernel, data.d())?;
        let facts = Facts::of(&x, &y, &kernel, self.start);
        let inputs = Inputs::new(x);

        let large = data.n() >= LARGE;
        let evidence = |threads| Evidence {
            program: &program,
            kernel: &kernel,
            x: &inputs,
            y: &y,
            known: known.as_deref(),
            fixed_noise,
            floor: NOISE_FLOOR,
            priors: self.priors,
            threads,
        };
        let starts: Vec<Start> = (0..self.restarts)
            .map(|i| match self.resume.get(i).and_then(Option::as_ref) {
                Some(state) => Start::from(state.clone()),
                None => Start::from(evidence(Threads::One).raw(facts.start(&kernel, i, self.seed))),
            })
            .collect();
        let limits = Limits {
            iterations: self.iterations,
            time: self.time.map(|t| t.saturating_sub(clock.elapsed())),
            interrupt: self.interrupt.clone(),
            ..Limits::default()
        };
        let optimizer = self.bounded(evidence(Threads::One).bounds());
        let watch = |restart| Watch { restart, observer: &observer, state: None };
        let outcomes: Vec<Outcome> = if large {
            let threads = Threads::All;
            let mut outcomes = Vec::new();
            for (i, start) in starts.into_iter().enumerate() {
                let left = self.time.map(|t| t.saturating_sub(clock.elapsed()));
                let limits = Limits { time: left, ..limits.clone() };
                outcomes.push(optimizer.minimize(
                    &mut evidence(threads).objective()?,
                    start,
                    &limits,
                    &mut watch(i),
                )?);
            }
            outcomes
        } else {
            let plan = Restarts { optimizer, limits, screening: vec![] };
            // Sizes were checked with the first objective; the others are the same.
            evidence(Threads::One).objective()?;
            let objective = |_| evidence(Threads::One).objective().expect("the first one was made");
            plan.run(starts, objective, watch)?
        };
        let best = crate::optim::best(&outcomes)?;
        let (theta, noise) = evidence(Threads::All).values(&outcomes[best].theta);
        let fitted = kernel.with_values(&theta)?;
        let mut exact = Exact::new(&program, &inputs, &y, Threads::All)?;
        if let Some(known) = &known {
            exact = exact.with_known_noise(known)?;
        }
        let mut gradient = vec![0.0; theta.len()];
        let (value, _, loo) = exact.gradient_and_loo(&theta, noise, &mut gradient)?;
        let jitter = exact.jitter;
        drop(exact);
        if jitter > 0.0 {
            notes.push(format!("a jitter of {jitter:.1e} was added to the diagonal to factorise the covariance"));
        }
        let account = Account::new(account::Facts {
            data,
            scaling: &scaling,
            kernel: &fitted,
            value,
            noise,
            outcomes: &outcomes,
            best,
            loo: &loo,
            y: &y,
            jitter,
            seconds: clock.elapsed().as_secs_f64(),
            seed: self.seed,
            notes,
        });
        let (x, y) = (inputs.points().clone(), y);
        Model::new(fitted, noise, scaling, x, y, known, data, account)
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
        if data.n() < 2 {
            return Err(Error::new(ErrorKind::TooFewRows { found: data.n(), needed: 2 }));
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
        if let Some(column) = (0..data.d()).find(|&c| data.x().column(c).iter().any(|v| !v.is_finite())) {
            let row = data.x().column(column).iter().position(|v| !v.is_finite()).unwrap_or(0);
            let found = data.x().column(column)[row];
            return Err(ErrorKind::NotFinite { row, column: data.inputs()[column].clone(), found }.into());
        }
        Ok(())
    }

    /// Bytes that fitting n rows of d columns takes, and what decides it.
    pub fn memory(&self, n: usize, d: usize) -> usize {
        let beside = if n >= LARGE { 1 } else { self.restarts.min(rayon::current_num_threads()) };
        Exact::memory(n) * beside + 8 * n * (d + 4)
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
