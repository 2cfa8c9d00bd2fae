//! What comes before the bound of all rows is climbed: raw numbers of an exact fit of some rows, improved by a bound by few
//! inducing points (and, of many rows, by one of a part), and inducing points placed under that kernel. Every stage is told,
//! so that work that is interrupted goes on with the next one.

use super::method::{Plan, START};
use super::objective::Evidence;
use super::problem::Problem;
use super::sparse::{ITERATIONS, MANY, Source};
use super::{Fit, Step};
use crate::data::Points;
use crate::error::Result;
use crate::gp::{InMemory, Placing, check_inducing, count_distinct, place_inducing, sample};
use crate::kernel::Kernel;
use crate::optim::{Progress, Start, State};
use crate::program::Program;
use crate::threads::Threads;
use std::ops::ControlFlow;
use std::time::Instant;

/// Rows among which inducing points are chosen.
pub(super) const POOL: usize = 10_000;
/// Inducing points and iterations of the bound before: an evaluation takes a fifth of the time of one by a thousand.
const FEW: usize = 300;
const FEW_ITERATIONS: usize = 40;
/// Rows of such a part.
const PART: usize = 20_000;

/// What has been done before the bound of all rows is climbed: each is kept, so that it is not done again.
pub(super) const KERNEL_CHOSEN: usize = 1;
const FEW_CLIMBED: usize = 2;
const PART_CLIMBED: usize = 3;

impl Fit {
    /// Some rows of a problem, at random.
    pub(super) fn some_of(&self, problem: &Problem) -> Result<Problem> {
        problem.sample(START, self.seed)
    }

    /// Raw numbers to start from: those of an exact fit of some rows, improved by a bound of more rows and few inducing
    /// points, and inducing points placed under that kernel.
    pub(super) fn start_sparse(
        &self,
        source: &mut Source,
        state: State,
        plan: &Plan,
        clock: Instant,
        observer: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<f64>> {
        let (done, mut raw) = (state.stages().unwrap_or(0), state.theta().to_vec());
        let kernel = &self.kernel.bind(&source.some.columns)?;
        let program = &Program::compile(kernel, source.some.d())?;
        let (x, y) = sample(source.rows, POOL.max(plan.inducing), self.seed)?;
        let mut m = plan.inducing;
        if self.inducing.is_none() {
            m = m.min(count_distinct(&x));
        }
        let priors = self.priors;
        let placed = |raw: &[f64], some: &Problem, m: usize| {
            let evidence = Evidence { problem: some, kernel, program, priors, threads: Threads::All };
            let (theta, _) = evidence.values(raw);
            place_inducing(&x, m, Placing::GreedyVariance(program, &theta), self.seed)
        };
        if done < FEW_CLIMBED && m > FEW && count_distinct(&x) >= FEW {
            let z = placed(&raw, &source.some, FEW)?;
            let rows = InMemory::new(&x, &y)?;
            let part = Source { rows: &rows, n: x.n(), weighed: None, some: source.some.clone() };
            raw = self.climbed(&part, kernel, program, raw, &z, FEW_ITERATIONS, clock)?;
            tell(observer, &State::prepared(raw.clone(), FEW_CLIMBED), clock);
        }
        if done < PART_CLIMBED && source.n > MANY {
            let z = placed(&raw, &source.some, m)?;
            let (x, y) = sample(source.rows, PART.max(2 * m), self.seed)?;
            let rows = InMemory::new(&x, &y)?;
            let part = Source { rows: &rows, n: x.n(), weighed: None, some: source.some.clone() };
            let iterations = self.iterations.unwrap_or(ITERATIONS).min(ITERATIONS);
            raw = self.climbed(&part, kernel, program, raw, &z, iterations, clock)?;
            tell(observer, &State::prepared(raw.clone(), PART_CLIMBED), clock);
            source.some.notes.push(format!("parameters found from {} rows before the bound of all", x.n()));
        }
        let z = placed(&raw, &source.some, m)?;
        check_inducing(&z, source.n)?;
        raw.extend(z.values());
        source.some.notes.push(format!(
            "{m} inducing points; started from an exact fit of {} of {} rows",
            source.some.n(),
            source.n
        ));
        Ok(raw)
    }

    /// Raw numbers of kernel and noise after some iterations on a part of the rows, seen by nobody.
    #[allow(clippy::too_many_arguments)]
    fn climbed(
        &self,
        part: &Source,
        kernel: &Kernel,
        program: &Program,
        mut raw: Vec<f64>,
        z: &Points,
        iterations: usize,
        clock: Instant,
    ) -> Result<Vec<f64>> {
        let start = Start::from([&raw[..], z.values()].concat());
        let nobody = &|_: Step| ControlFlow::Continue(());
        let outcome = self.maximise(part, kernel, program, start, iterations, clock, nobody)?;
        if outcome.value.is_finite() {
            let head = raw.len();
            raw.copy_from_slice(&outcome.theta[..head]);
        }
        Ok(raw)
    }
}

/// Tells how far the preparation has come: nothing is known of the bound of all rows yet.
pub(super) fn tell(observer: &impl Fn(Step) -> ControlFlow<()>, state: &State, clock: Instant) {
    let (value, theta) = (f64::INFINITY, state.theta());
    let progress = &Progress {
        iteration: 0,
        evaluations: 0,
        value,
        best: value,
        gradient_norm: value,
        theta,
        elapsed: clock.elapsed(),
    };
    // Whoever wants to stop will be asked again at the first iteration.
    let _ = observer(Step { restart: 0, progress, state: Some(state) });
}
