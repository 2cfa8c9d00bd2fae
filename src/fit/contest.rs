//! Which kernel goes on to all rows of a large table. Fitting each to all of them would take too long, so they are fitted
//! to some, and the one that better predicts rows it is not shown, single ones and those at the ends, goes on.

use super::candidate::Candidate;
use super::problem::Problem;
use super::{Fit, Step, weigh};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Task};
use std::ops::ControlFlow;
use std::time::Instant;

/// The most iterations of the exact fit of some rows.
const ITERATIONS: usize = 100;

/// The winner, ready to go on alone.
pub(super) struct Winner {
    pub fit: Fit,
    /// Raw numbers it starts from.
    pub raw: Vec<f64>,
    /// What there is to say of it.
    pub note: Option<String>,
}

impl Fit {
    /// The asked kernel, and those that compete with it: the ones named, else for the default network of a table the
    /// same with waves.
    fn contenders(&self) -> Vec<Kernel> {
        let table = Kernel::default_network(Task::Table);
        let others = match &self.rivals {
            Some(named) => named.clone(),
            None if self.kernel.to_string() == table.to_string() => vec![Kernel::network_with_waves()],
            None => vec![],
        };
        [vec![self.kernel.clone()], others].concat()
    }

    /// The same fit of one kernel alone.
    fn alone(&self, kernel: &Kernel) -> Fit {
        Fit { kernel: kernel.clone(), rivals: Some(vec![]), ..self.clone() }
    }

    /// The contender that a state of an optimiser belongs to, by its number of parameters: the only one that `fits`, else
    /// the only one that `may`.
    ///
    /// # Errors
    /// When there is none, or it could be of several.
    pub(super) fn resumed(
        &self,
        columns: &[String],
        fits: impl Fn(usize) -> bool,
        may: impl Fn(usize) -> bool,
    ) -> Result<Fit> {
        let all = self.contenders();
        let counts = all.iter().map(|k| Ok(k.bind(columns)?.params().len())).collect::<Result<Vec<usize>>>()?;
        let only = |test: &dyn Fn(usize) -> bool| {
            let mut found = (0..all.len()).filter(|&i| test(counts[i]));
            found.next().filter(|_| found.next().is_none())
        };
        let at = only(&fits).or_else(|| only(&may));
        at.map(|i| self.alone(&all[i])).ok_or_else(|| {
            let error = Error::option("resume", "the state does not tell which kernel it belongs to");
            error.with_hint("start afresh, or name the kernel and let it compete with none")
        })
    }

    /// Fits all contenders to some rows, exactly.
    pub(super) fn contest(&self, some: &Problem, clock: Instant) -> Result<Winner> {
        let nobody = &|_: Step| ControlFlow::Continue(());
        let (mut kernels, mut best): (Vec<Kernel>, Vec<Candidate>) = (vec![], vec![]);
        for kernel in self.contenders() {
            let fit = Fit { iterations: Some(ITERATIONS), resume: vec![], ..self.alone(&kernel) };
            let found = fit.search_one(&kernel, self.restarts, some, clock, nobody);
            match found.map(|found| found.candidates.into_iter().next()) {
                Ok(first) => first.into_iter().for_each(|c| {
                    kernels.push(kernel.clone());
                    best.push(c);
                }),
                // A rival that fails is no reason to fail.
                Err(error) if kernels.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        let won = weigh::Tests::of(std::slice::from_ref(some), &best).best();
        let density = |c: &Candidate| format!("{} {:.3}", c.name, c.loo.log_density);
        let note = (best.len() > 1).then(|| {
            let others = (0..best.len()).filter(|&i| i != won).map(|i| density(&best[i])).collect::<Vec<_>>();
            let (rows, winner) = (some.n(), density(&best[won]));
            format!("kernel chosen by densities at {rows} rows, each left out: {winner} before {}", others.join(", "))
        });
        let raw = best[won].outcome.theta.clone();
        Ok(Winner { fit: self.alone(&kernels[won]), raw, note })
    }
}
