//! Fits a kernel for each axis of a grid, and fills its holes.

mod fill;
mod weigh;

use super::grid_work::{Work, trials};
use super::objective::Priors;
use super::start::StartFrom;
use crate::data::Grid;
use crate::error::{ErrorKind, Result};
use crate::gp::Variances;
use crate::kernel::{Kernel, Task};
use crate::linalg::ConjugateGradients;
use crate::optim::{Lbfgs, Limits, Optimizer, Progress, Stop};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What is fitted to a grid, and how.
///
/// ```
/// use covary::data::Grid;
/// use covary::fit::GridFit;
/// use covary::Kernel;
/// let axis: Vec<f64> = (0..12).map(f64::from).collect();
/// let mut values: Vec<f64> = (0..144).map(|i| f64::from(i / 12).sin() * f64::from(i % 12).cos()).collect();
/// values[5 * 12 + 5] = f64::NAN;
/// let grid = Grid::new(vec![axis.clone(), axis], vec![values])?;
/// let model = GridFit::new(Kernel::rbf()).starts(1).run(&grid)?;
/// assert!((model.mean[0][5 * 12 + 5] - 5f64.sin() * 5f64.cos()).abs() < 0.05);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GridFit {
    pub(super) kernels: Vec<Kernel>,
    starts: usize,
    floors: Vec<f64>,
    deviations: Deviations,
    iterations: usize,
    pub(super) seed: u64,
    pub(super) priors: Priors,
    pub(super) from: StartFrom,
    pub(super) limits: ConjugateGradients,
    time: Option<Duration>,
    interrupt: Option<Arc<AtomicBool>>,
}

/// Whether standard deviations are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deviations {
    /// Yes, which takes longer than the means.
    #[default]
    All,
    /// Means only.
    None,
}

/// A fit that may count in the result.
struct Member {
    raw: Vec<f64>,
    /// Its values for the hidden cells of the trials.
    filled: Vec<f64>,
    restart: GridRestart,
}

/// One run of the optimiser.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRestart {
    /// Which start it belongs to; the runs of one start allow less and less noise, each going on from the one before.
    pub start: usize,
    /// Noise variance, of channels with deviation 1.
    pub noise: f64,
    /// Its weight in what holes are filled with; of any sign.
    pub weight: f64,
    /// Its share in the deviations and at observed cells, not negative.
    pub share: f64,
    /// The log marginal likelihood it reached, as it is optimised.
    pub log_marginal_likelihood: f64,
    /// Mean squared error, relative to the variance, in holes made for the purpose in observed places;
    /// nothing where no such hole could be made.
    pub trial: Option<f64>,
    /// Iterations.
    pub iterations: usize,
    /// Evaluations.
    pub evaluations: usize,
    /// Steps of conjugate gradients in the last evaluation.
    pub steps: usize,
}

/// A grid's kernels, and every cell filled.
#[derive(Debug, Clone)]
pub struct GridModel {
    /// One kernel an axis, with the learned values, for axes of mean 0 and deviation 1.
    pub kernels: Vec<Kernel>,
    /// Noise variance, of channels with deviation 1.
    pub noise: f64,
    /// Mean of f at every cell, one tensor a channel, in the values' own units.
    pub mean: Vec<Vec<f64>>,
    /// Standard deviation of f at every cell, where asked for.
    pub sd: Option<Vec<Vec<f64>>>,
    /// How the deviations came about.
    pub variances: Option<Variances>,
    /// The log marginal likelihood of the observed values in their own units, of the fit that counts most.
    pub log_marginal_likelihood: f64,
    /// Whether it is exact.
    pub exact: bool,
    /// Every run of every start.
    pub restarts: Vec<GridRestart>,
    /// The place of the one that counts most.
    pub best: usize,
    /// Iterations of all runs.
    pub iterations: usize,
    /// Seconds of everything.
    pub seconds: f64,
}

impl GridFit {
    /// A fit of the same kind of kernel on every axis.
    pub fn new(kernel: Kernel) -> Self {
        Self::each(vec![kernel])
    }

    /// A fit of one kernel an axis; a single one serves all.
    pub fn each(kernels: Vec<Kernel>) -> Self {
        Self {
            kernels,
            starts: 4,
            floors: vec![1.0, 0.2, 0.04, 0.008, 0.001],
            deviations: Deviations::All,
            iterations: 50,
            seed: 0,
            priors: Priors::Weak,
            from: StartFrom::Data,
            limits: ConjugateGradients { tolerance: 1e-4, steps: 300 },
            time: None,
            interrupt: None,
        }
    }

    /// A fit of the network of the paper on every axis.
    pub fn network() -> Self {
        Self::new(Kernel::default_network(Task::Axis))
    }

    /// How many starts. Those that fill trial holes best together are averaged.
    #[must_use]
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = starts;
        self
    }

    /// The least noise variances (of channels with deviation 1), one run each. A kernel of few parts that is let follow
    /// every detail fills a hole badly, so the first runs see the coarse structure only. After two floors the two starts that
    /// fill trial holes best go on, until less noise fills them worse.
    #[must_use]
    pub fn noise_floors(mut self, floors: Vec<f64>) -> Self {
        self.floors = floors;
        self
    }

    /// Whether standard deviations are computed.
    #[must_use]
    pub fn deviations(mut self, deviations: Deviations) -> Self {
        self.deviations = deviations;
        self
    }

    /// The most iterations of each run.
    #[must_use]
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    /// The seed of everything random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The priors on parameters.
    #[must_use]
    pub fn priors(mut self, priors: Priors) -> Self {
        self.priors = priors;
        self
    }

    /// Where starting values come from.
    #[must_use]
    pub fn start(mut self, from: StartFrom) -> Self {
        self.from = from;
        self
    }

    /// Takes the best so far after this time.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// When set to true from anywhere, the best so far is taken.
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Fits and fills.
    ///
    /// # Errors
    /// When kernels do not fit the axes, or no start has a finite objective.
    pub fn run(&self, grid: &Grid) -> Result<GridModel> {
        self.watched(grid, |_, _| ControlFlow::Continue(()))
    }

    /// The same; `watch` sees the number of the start and its progress, and may end the work.
    ///
    /// # Errors
    /// As [`GridFit::run`].
    pub fn watched(
        &self,
        grid: &Grid,
        mut watch: impl FnMut(usize, &Progress<'_>) -> ControlFlow<()>,
    ) -> Result<GridModel> {
        let clock = Instant::now();
        let work = Work::new(self, grid)?;
        let facts = work.facts(grid)?;
        let trials = trials(grid);
        let truth = work.truth(&trials, grid);
        let mut members: Vec<Member> = Vec::new();
        let mut going: Vec<(usize, Vec<f64>, f64)> =
            (0..self.starts.max(1)).map(|i| (i, work.start(&facts, i), f64::INFINITY)).collect();
        'floors: for (stage, &floor) in self.floors.iter().enumerate() {
            let mut next: Vec<(usize, Vec<f64>, f64)> = Vec::new();
            for (index, raw, before) in going {
                let time = self.time.map(|t| t.saturating_sub(clock.elapsed()));
                if !members.is_empty() && time.is_some_and(|t| t.is_zero()) {
                    break 'floors;
                }
                let limits = Limits {
                    iterations: self.iterations,
                    time,
                    interrupt: self.interrupt.clone(),
                    ..Limits::default()
                };
                let bounds = work.bounds(floor);
                let optimizer: Optimizer =
                    Lbfgs { history: 20, longest_step: Some(1.0), bounds, ..Lbfgs::default() }.into();
                let mut process = work.process(grid)?.going_on();
                let mut objective = |raw: &[f64], out: &mut [f64]| work.objective(&mut process, raw, out);
                let mut observer = |p: &Progress<'_>| watch(index, p);
                let outcome = optimizer.minimize(&mut objective, raw, &limits, &mut observer)?;
                if !outcome.value.is_finite() {
                    continue;
                }
                let (theta, noise) = work.values(&outcome.theta);
                let filled = work.filled(&trials, grid, &theta, noise)?;
                let trial = weigh::share_left(&truth, &filled);
                let restart = GridRestart {
                    start: index,
                    noise,
                    log_marginal_likelihood: -outcome.value,
                    trial,
                    weight: 0.0,
                    share: 0.0,
                    iterations: outcome.iterations,
                    evaluations: outcome.evaluations,
                    steps: process.account.steps,
                };
                members.push(Member { raw: outcome.theta.clone(), filled, restart });
                if matches!(outcome.stop, Stop::Interrupted | Stop::Time) {
                    break 'floors;
                }
                // Without a trial the evidence judges. A run that ended away from its floor would end there again.
                let judged = trial.unwrap_or(outcome.value);
                let settled = noise > 1.5 * floor && outcome.stop.converged();
                if !(settled || trial.is_some() && judged > 1.1 * before) {
                    next.push((index, outcome.theta, judged.min(before)));
                }
            }
            // The first two floors show who understands the pattern; less noise is dear, and for the best two alone.
            if stage > 0 {
                next.sort_by(|a, b| a.2.total_cmp(&b.2));
                next.truncate(2);
            }
            going = next;
        }
        if members.is_empty() {
            let last = "the objective is not finite at the start".to_string();
            return Err(ErrorKind::NoRestartSucceeded { tried: self.starts.max(1), last }.into());
        }
        weigh::weigh(&mut members, &truth, &work.sizes(&trials, grid));
        self.fill(&work, grid, members, clock)
    }
}
