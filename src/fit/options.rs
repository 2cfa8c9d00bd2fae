//! The options of a fit, one after another. Every one has a default that needs no thought.

use super::{Fit, ITERATIONS, Model, Priors, Standardize, StartFrom, Units, Warp};
use crate::data::{Dataset, Scaling};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::optim::{Optimizer, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

impl Fit {
    /// The same fit of another kernel.
    #[must_use]
    pub fn kernel_of(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// The same fit with no more iterations than these.
    #[must_use]
    pub fn at_most(mut self, iterations: usize) -> Self {
        self.iterations = Some(self.iterations.unwrap_or(ITERATIONS).min(iterations));
        self
    }

    /// The same fit with inputs measured in the units of all these rows, whichever of them it is given: what one fit
    /// finds has the same meaning in another.
    ///
    /// # Errors
    /// When a column spans more than a double can hold.
    pub(crate) fn measured_by(mut self, all: &Dataset) -> Result<Self> {
        self.units = Units::Inputs(Scaling::of(all)?);
        Ok(self)
    }

    /// The same fit of a single column with these periods, in the units of the data, instead of those that the rows it is
    /// given tell.
    #[must_use]
    pub(crate) fn with_periods(mut self, periods: Vec<f64>) -> Self {
        self.periods = Some(periods);
        self
    }

    /// The same fit, starting where an earlier one of the same kernel ended, with at most this many iterations.
    /// Inputs are measured in its units, so that lengths and periods keep their meaning.
    #[must_use]
    pub fn going_on_from(mut self, model: &Model, iterations: usize) -> Self {
        self.kernel = model.kernel().clone();
        self.units = Units::Inputs(model.scaling().clone());
        self.first_noise = Some(model.members[0].noise);
        self.at_most(iterations)
    }

    /// The same fit with its clock running: all that is fitted from now on shares one limit of time.
    #[must_use]
    pub(crate) fn on_the_clock(mut self) -> Self {
        self.deadline = self.deadline.or_else(|| Instant::now().checked_add(self.time?));
        self
    }

    /// The same fit with a share of the time that is left, where the clock runs.
    #[must_use]
    pub(crate) fn with_share_of_time(self, share: f64) -> Self {
        let now = Instant::now();
        let deadline = self.deadline.map(|end| now + end.saturating_duration_since(now).mul_f64(share));
        Fit { deadline, ..self }
    }

    /// A plain fit on the way to this one: a single start, with this one's seed and interrupt. It has no limit of time:
    /// what is decided by it must be decided the same way when the work is resumed.
    pub(crate) fn aside(&self, kernel: Kernel, iterations: usize) -> Fit {
        let plain = Fit::new(kernel).rivals(vec![]).restarts(1).iterations(iterations).seed(self.seed);
        Fit { interrupt: self.interrupt.clone(), ..plain }
    }

    /// The time that is left, of a fit that began at `clock` unless its clock ran before.
    pub(super) fn time_left(&self, clock: Instant) -> Option<Duration> {
        match self.deadline {
            Some(end) => Some(end.saturating_duration_since(Instant::now())),
            None => self.time.map(|t| t.saturating_sub(clock.elapsed())),
        }
    }

    /// Whether the clock runs and the time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| end <= Instant::now())
    }

    /// Whether someone said to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// How many starts there are.
    pub fn starts(&self) -> usize {
        self.restarts
    }

    /// Whether no other kernel competes.
    pub fn is_alone(&self) -> bool {
        self.rivals.as_ref().is_some_and(Vec::is_empty)
    }

    /// Plain kernels that compete with the asked one: fitted beside it and weighed with it. By default RBF, MAT52
    /// and LIN + MAT52 compete with a network, below 800 rows also LIN + RBF, LIN + MAT32, LIN + LIN * LIN + RBF and, up to
    /// 20 columns, LIN and one RBF a column; nothing competes with an expression. Below 800 rows rivals take at most
    /// 60 iterations.
    #[must_use]
    pub fn rivals(mut self, rivals: Vec<Kernel>) -> Self {
        self.rivals = Some(rivals);
        self
    }

    /// The most fits that are averaged; 1 takes the best alone.
    #[must_use]
    pub fn members(mut self, members: usize) -> Self {
        self.members = members;
        self
    }

    /// How many starts of the kernel; good ones are averaged.
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
        self.iterations = Some(iterations);
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

    /// What is done to the target before it is fitted; by default nothing, but fits of a transformed target may compete with a
    /// network ([`Warp::Beside`]). Predictions come back in the target's own units.
    ///
    /// ```
    /// use covary::fit::{Link, Warp};
    /// use covary::{Dataset, Fit, Kernel, Points};
    ///
    /// let x: Vec<f64> = (0..30).map(|i| f64::from(i) * 0.2).collect();
    /// let y: Vec<f64> = x.iter().map(|x| (2.0 * x.sin() + 0.1 * (37.0 * x).cos()).exp()).collect();
    /// let data = Dataset::new(Points::from_column(&x)?, y)?;
    /// let model = Fit::new(Kernel::rbf()).warp(Warp::Auto).run(&data)?;
    /// assert_eq!(model.link(), Link::Log);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[must_use]
    pub fn warp(mut self, warp: Warp) -> Self {
        self.warp = warp;
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
}
