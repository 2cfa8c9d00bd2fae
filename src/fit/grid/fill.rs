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
        let total: f64 = members.iter().map(|m| m.restart.share).sum();
        // What is left is the prior's: mean 0 and variance 1.
        let left = (1.0 - total).max(0.0);
        // By shares: mean and mean square; by weights: what holes are filled with.
        let mut mean = vec![vec![0.0; cells]; grid.channels().len()];
        let mut filled = mean.clone();
        let mut square = vec![vec![left; cells]; grid.channels().len()];
        let mut variances = None;
        let by = |m: &&Member| m.restart.share;
        let first = members.iter().enumerate().max_by(|a, b| by(&a.1).total_cmp(&by(&b.1)).then(b.0.cmp(&a.0)));
        let best = first.map_or(0, |(i, _)| i);
        let mut evidence = (f64::NAN, false);
        let counts = |m: &Member| m.restart.share > 0.0 || m.restart.weight != 0.0;
        for (i, member) in members.iter().enumerate().filter(|(_, m)| counts(m)) {
            let (theta, noise) = work.values(&member.raw);
            let limits = ConjugateGradients { tolerance: 1e-7, steps: 2000 };
            let mut process = work.process(grid)?.with_limits(limits);
            let (weight, share) = (member.restart.weight, member.restart.share);
            let said = match self.deviations {
                Deviations::All if share > 0.0 => {
                    let posterior = process.posterior(&theta, noise, self.seed)?;
                    for square in &mut square {
                        square.iter_mut().zip(&posterior.variance).for_each(|(s, v)| *s += share * v);
                    }
                    if i == best {
                        evidence = (posterior.evidence.unwrap_or(f64::NAN), posterior.evidence.is_some());
                        variances = Some(posterior.variances);
                    }
                    posterior.mean
                }
                _ => process.mean(&theta, noise)?,
            };
            if i == best && !evidence.1 {
                evidence.0 = process.evidence(&theta, noise)?;
            }
            for (c, said) in said.iter().enumerate() {
                for (i, v) in said.iter().enumerate() {
                    mean[c][i] += share * v;
                    square[c][i] += share * v * v;
                    filled[c][i] += weight * v;
                }
            }
        }
        // Holes are filled by weights. Deviations are those of the mixture by shares, about what is filled in.
        for ((mean, square), filled) in mean.iter_mut().zip(&mut square).zip(&filled) {
            let missing = grid.missing();
            let mut inside = vec![false; cells];
            missing.iter().for_each(|&i| inside[i] = true);
            for i in 0..cells {
                let said = if inside[i] { filled[i] } else { mean[i] };
                square[i] += said * said - 2.0 * said * mean[i];
                mean[i] = said;
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
                    square[c].iter().map(|s| width * s.max(0.0).sqrt()).collect()
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
