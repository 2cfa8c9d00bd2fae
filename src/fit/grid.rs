//! Fits a kernel for each axis of a grid, and fills its holes.

use super::grid_work::Work;
use super::objective::Priors;
use super::start::StartFrom;
use crate::data::Grid;
use crate::error::{ErrorKind, Result};
use crate::gp::Variances;
use crate::kernel::{Kernel, Task};
use crate::linalg::ConjugateGradients;
use crate::optim::{Lbfgs, Limits, Optimizer, Outcome, Progress, Stop};
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
    iterations: usize,
    pub(super) seed: u64,
    pub(super) priors: Priors,
    pub(super) from: StartFrom,
    pub(super) limits: ConjugateGradients,
    time: Option<Duration>,
    interrupt: Option<Arc<AtomicBool>>,
}

/// One start of the optimiser.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRestart {
    /// The log marginal likelihood it reached, as it is optimised.
    pub log_marginal_likelihood: f64,
    /// Mean squared error, relative to the variance, in holes made for the purpose in observed places.
    pub trial: f64,
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
    /// Standard deviation of f at every cell.
    pub sd: Vec<Vec<f64>>,
    /// How the deviations came about.
    pub variances: Variances,
    /// The log marginal likelihood of the observed values in their own units; exact where the holes could be
    /// factorised.
    pub log_marginal_likelihood: f64,
    /// Whether it is exact.
    pub exact: bool,
    /// Every start, and which was taken.
    pub restarts: Vec<GridRestart>,
    /// The place of the one that was taken.
    pub best: usize,
    /// Iterations of all starts.
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
            iterations: 150,
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

    /// How many starts; the one that fills trial holes best is taken.
    #[must_use]
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = starts;
        self
    }

    /// The most iterations of each start.
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
        let mut outcomes: Vec<(Outcome, GridRestart)> = Vec::new();
        for index in 0..self.starts.max(1) {
            let time = self.time.map(|t| t.saturating_sub(clock.elapsed()));
            if index > 0 && time.is_some_and(|t| t.is_zero()) {
                break;
            }
            let limits =
                Limits { iterations: self.iterations, time, interrupt: self.interrupt.clone(), ..Limits::default() };
            let optimizer: Optimizer =
                Lbfgs { history: 20, longest_step: Some(1.0), bounds: work.bounds(), ..Lbfgs::default() }.into();
            let mut process = work.process(grid)?;
            let mut steps = 0;
            let outcome = {
                let mut objective = |raw: &[f64], out: &mut [f64]| {
                    let value = work.objective(&mut process, raw, out);
                    steps = process.account.steps;
                    value
                };
                let mut observer = |p: &Progress<'_>| watch(index, p);
                optimizer.minimize(&mut objective, work.start(&facts, index), &limits, &mut observer)?
            };
            if !outcome.value.is_finite() {
                continue;
            }
            let (theta, noise) = work.values(&outcome.theta);
            let restart = GridRestart {
                log_marginal_likelihood: -outcome.value,
                trial: work.trial(grid, &theta, noise)?,
                iterations: outcome.iterations,
                evaluations: outcome.evaluations,
                steps,
            };
            let stopped = outcome.stop == Stop::Interrupted;
            outcomes.push((outcome, restart));
            if stopped {
                break;
            }
        }
        let best = (0..outcomes.len()).min_by(|&a, &b| outcomes[a].1.trial.total_cmp(&outcomes[b].1.trial));
        let Some(best) = best else {
            let last = "the objective is not finite at the start".to_string();
            return Err(ErrorKind::NoRestartSucceeded { tried: self.starts.max(1), last }.into());
        };
        let (theta, noise) = work.values(&outcomes[best].0.theta);
        let mut process = work.process(grid)?.with_limits(ConjugateGradients { tolerance: 1e-8, steps: 3000 });
        let posterior = process.posterior(&theta, noise, self.seed)?;
        let value = match posterior.evidence {
            Some(value) => value,
            None => process.evidence(&theta, noise)?,
        };
        // Dividing a channel by its width multiplies densities by it.
        let each = (process.observed() / grid.channels().len()) as f64;
        let jacobian: f64 = work.scales.iter().map(|(_, width)| each * width.ln()).sum();
        let mean = posterior.mean.iter().zip(&work.scales).map(|(m, (c, w))| m.iter().map(|m| c + w * m).collect());
        let sd = work.scales.iter().map(|(_, w)| posterior.variance.iter().map(|v| w * v.sqrt()).collect());
        let mut at = 0;
        let mut kernels = Vec::new();
        for kernel in &work.kernels {
            let n = kernel.params().len();
            kernels.push(kernel.with_values(&theta[at..at + n])?);
            at += n;
        }
        Ok(GridModel {
            kernels,
            noise,
            mean: mean.collect(),
            sd: sd.collect(),
            variances: posterior.variances,
            log_marginal_likelihood: value - jacobian,
            exact: posterior.evidence.is_some(),
            iterations: outcomes.iter().map(|o| o.1.iterations).sum(),
            restarts: outcomes.into_iter().map(|o| o.1).collect(),
            best,
            seconds: clock.elapsed().as_secs_f64(),
        })
    }
}
