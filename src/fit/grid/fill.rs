//! Fills every cell of a grid by the fits that count, averaged by their weights.

use super::super::grid_work::Work;
use super::{Deviations, GridFit, GridModel, Member};
use crate::data::Grid;
use crate::error::Result;
use crate::linalg::ConjugateGradients;
use std::time::Instant;

impl GridFit {
    /// Every cell, as the members that count see it together.
    pub(super) fn fill(&self, work: &Work, grid: &Grid, members: Vec<Member>, clock: Instant) -> Result<GridModel> {
        let cells = grid.observed().len();
        let total: f64 = members.iter().map(|m| m.restart.weight).sum();
        // What is left is the prior's: mean 0 and variance 1.
        let left = (1.0 - total).max(0.0);
        let mut mean = vec![vec![0.0; cells]; grid.channels().len()];
        let mut square = vec![vec![left; cells]; grid.channels().len()];
        let mut variances = None;
        let by = |m: &&Member| m.restart.weight;
        let first = members.iter().enumerate().max_by(|a, b| by(&a.1).total_cmp(&by(&b.1)).then(b.0.cmp(&a.0)));
        let best = first.map_or(0, |(i, _)| i);
        let mut evidence = (f64::NAN, false);
        for (i, member) in members.iter().enumerate().filter(|(_, m)| m.restart.weight > 0.0) {
            let (theta, noise) = work.values(&member.raw);
            let limits = ConjugateGradients { tolerance: 1e-7, steps: 2000 };
            let mut process = work.process(grid)?.with_limits(limits);
            let weight = member.restart.weight;
            let said = match self.deviations {
                Deviations::None => process.mean(&theta, noise)?,
                Deviations::All => {
                    let posterior = process.posterior(&theta, noise, self.seed)?;
                    for square in &mut square {
                        square.iter_mut().zip(&posterior.variance).for_each(|(s, v)| *s += weight * v);
                    }
                    if i == best {
                        evidence = (posterior.evidence.unwrap_or(f64::NAN), posterior.evidence.is_some());
                        variances = Some(posterior.variances);
                    }
                    posterior.mean
                }
            };
            if i == best && !evidence.1 {
                evidence.0 = process.evidence(&theta, noise)?;
            }
            for ((mean, square), said) in mean.iter_mut().zip(&mut square).zip(&said) {
                for ((m, s), v) in mean.iter_mut().zip(square).zip(said) {
                    *m += weight * v;
                    *s += weight * v * v;
                }
            }
        }
        // Dividing a channel by its width multiplies densities by it.
        let each = (cells - grid.missing().len()) as f64;
        let jacobian: f64 = work.scales.iter().map(|(_, width)| each * width.ln()).sum();
        let sd = match self.deviations {
            Deviations::None => None,
            Deviations::All => {
                let of = |c: usize| {
                    let width = work.scales[c].1;
                    mean[c].iter().zip(&square[c]).map(|(m, s)| width * (s - m * m).max(0.0).sqrt()).collect()
                };
                Some((0..mean.len()).map(of).collect())
            }
        };
        let (theta, noise) = work.values(&members[best].raw);
        Ok(GridModel {
            kernels: work.with_values(&theta)?,
            noise,
            mean: mean.iter().zip(&work.scales).map(|(m, (c, w))| m.iter().map(|m| c + w * m).collect()).collect(),
            sd,
            variances,
            log_marginal_likelihood: evidence.0 - jacobian,
            exact: evidence.1,
            iterations: members.iter().map(|m| m.restart.iterations).sum(),
            restarts: members.into_iter().map(|m| m.restart).collect(),
            best,
            seconds: clock.elapsed().as_secs_f64(),
        })
    }
}
