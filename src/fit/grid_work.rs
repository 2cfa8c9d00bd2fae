//! A grid made ready for a fit: axes and channels standardised, kernels compiled, raw numbers of the optimiser turned
//! into values and back, and holes of our own to try a fit on.

use super::grid::GridFit;
use super::grid_start;
use super::objective::{Priors, weak_prior};
use super::problem::NOISE_FLOOR;
use super::start::Facts;
use crate::data::{Grid, Points};
use crate::error::{Error, Result};
use crate::gp::GridProcess;
use crate::kernel::{Kernel, Role, Transform};
use crate::linalg::ConjugateGradients;
use crate::optim::Bounds;
use crate::program::Program;
use rayon::prelude::*;

/// The most trial holes.
const TRIALS: usize = 6;
/// The most places where one may be.
const PLACES: f64 = 243.0;
/// A trial's error hardly changes with what is left at this residual.
const TRIAL: ConjugateGradients = ConjugateGradients { tolerance: 1e-3, steps: 300 };

pub(super) struct Work<'a> {
    fit: &'a GridFit,
    kernels: Vec<Kernel>,
    programs: Vec<Program>,
    roles: Vec<Role>,
    /// Standardised places of every axis, and the width of each.
    axes: Vec<Vec<f64>>,
    widths: Vec<f64>,
    /// Centre and width of every channel.
    pub scales: Vec<(f64, f64)>,
    y: Vec<Vec<f64>>,
}

fn standardised(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|v| v / n).sum::<f64>();
    let width = values.iter().map(|v| (v - mean) * ((v - mean) / n)).sum::<f64>().sqrt();
    (mean, if width.is_finite() && width > 1e-300 { width } else { 1.0 })
}

impl<'a> Work<'a> {
    pub fn new(fit: &'a GridFit, grid: &Grid) -> Result<Self> {
        let d = grid.axes().len();
        let kernels: Vec<Kernel> = match &fit.kernels[..] {
            [one] => vec![one.clone(); d],
            many if many.len() == d => many.to_vec(),
            many => return Err(Error::kernel(format!("{} kernels for a grid of {d} axes", many.len()))),
        };
        let kernels = kernels.iter().map(|k| k.bind_to(1)).collect::<Result<Vec<_>>>()?;
        let programs = kernels.iter().map(|k| Program::compile(k, 1)).collect::<Result<Vec<_>>>()?;
        let roles = kernels.iter().flat_map(|k| k.params().iter().map(|p| p.role()).collect::<Vec<_>>()).collect();
        let (axes, widths) = grid
            .axes()
            .iter()
            .map(|axis| {
                let (centre, width) = standardised(axis);
                // Even steps stay even: places are multiples of the step, and not differences of rounded numbers.
                let n = axis.len();
                let step = (axis[n - 1] - axis[0]) / (n - 1) as f64;
                let even = axis.iter().enumerate().all(|(i, v)| (v - axis[0] - step * i as f64).abs() <= 1e-9 * step);
                let grain = 1.0 / (1u64 << 40) as f64;
                let step = (step / width / grain).round() * grain;
                let first = ((axis[0] - centre) / width / grain).round() * grain;
                let place = |(i, v): (usize, &f64)| if even { first + step * i as f64 } else { (v - centre) / width };
                (axis.iter().enumerate().map(place).collect(), width)
            })
            .unzip();
        let seen = |channel: &[f64]| -> Vec<f64> {
            channel.iter().zip(grid.observed()).filter(|(_, seen)| **seen).map(|(v, _)| *v).collect()
        };
        let scales: Vec<(f64, f64)> = grid.channels().iter().map(|c| standardised(&seen(c))).collect();
        let y = grid.channels().iter().zip(&scales).map(|(c, (m, w))| c.iter().map(|v| (v - m) / w).collect());
        let y = y.collect();
        Ok(Self { fit, kernels, programs, roles, axes, widths, scales, y })
    }

    /// The process over the observed cells of a grid, which may be fewer than those of the fit.
    pub fn process(&self, grid: &Grid) -> Result<GridProcess<'_>> {
        Ok(GridProcess::new(&self.programs, &self.axes, grid, self.y.clone())?.with_limits(self.fit.limits))
    }

    pub fn facts(&self, grid: &Grid) -> Result<Vec<Facts>> {
        let noise = grid_start::noise(grid, &self.y);
        let axis = |(a, x): (usize, &Vec<f64>)| {
            let periods = grid_start::periods(grid, &self.y, a).iter().map(|p| p / self.widths[a]).collect();
            Ok(Facts::of_axis(&Points::from_column(x)?, periods, noise, self.fit.from))
        };
        self.axes.iter().enumerate().map(axis).collect()
    }

    /// Raw numbers of a start.
    pub fn start(&self, facts: &[Facts], index: usize) -> Vec<f64> {
        let mut theta = Vec::new();
        let mut noise = 0.1;
        for (a, (facts, kernel)) in facts.iter().zip(&self.kernels).enumerate() {
            let (values, its) = facts.start(kernel, index, self.fit.seed.wrapping_add(1000 * a as u64));
            theta.extend(values);
            noise = its;
        }
        let mut raw: Vec<f64> = self.roles.iter().zip(&theta).map(|(r, &v)| r.transform().raw(v)).collect();
        raw.push(Transform::Log.raw(noise));
        raw
    }

    /// Parameter values and noise variance of raw numbers.
    pub fn values(&self, raw: &[f64]) -> (Vec<f64>, f64) {
        let theta: Vec<f64> = self.roles.iter().zip(raw).map(|(r, &v)| r.transform().value(v)).collect();
        let noise = NOISE_FLOOR + Transform::Log.value(raw[theta.len()]);
        (theta, noise)
    }

    /// The axes' kernels with these values.
    pub fn with_values(&self, theta: &[f64]) -> Result<Vec<Kernel>> {
        let mut rest = theta;
        let mut kernels = Vec::new();
        for kernel in &self.kernels {
            let (own, others) = rest.split_at(kernel.params().len());
            kernels.push(kernel.with_values(own)?);
            rest = others;
        }
        Ok(kernels)
    }

    /// The box of raw numbers; the noise stays above a floor.
    pub fn bounds(&self, floor: f64) -> Bounds {
        let of = |role: &Role| match role.transform() {
            Transform::Identity => (-1e6, 1e6),
            _ => (-25.0, 25.0),
        };
        let noise = (Transform::Log.raw(floor), 25.0);
        Bounds::Each(self.roles.iter().map(of).chain([noise]).collect())
    }

    /// The function to minimise: −log evidence and −log prior of raw numbers.
    pub fn objective(&self, process: &mut GridProcess<'_>, raw: &[f64], out: &mut [f64]) -> f64 {
        let (theta, noise) = self.values(raw);
        let mut gradient = vec![0.0; theta.len()];
        let Ok((value, noise_slope)) = process.gradient(&theta, noise, &mut gradient) else {
            return f64::INFINITY;
        };
        for ((out, role), (raw, g)) in out.iter_mut().zip(&self.roles).zip(raw.iter().zip(&gradient)) {
            *out = -g * role.transform().slope(*raw);
        }
        out[theta.len()] = -noise_slope * (noise - NOISE_FLOOR);
        let mut prior = 0.0;
        if self.fit.priors == Priors::Weak {
            for ((role, &raw), out) in self.roles.iter().chain([&Role::Noise]).zip(raw).zip(out.iter_mut()) {
                let (value, slope) = weak_prior(*role, raw);
                prior += value;
                *out += slope;
            }
        }
        -value + prior
    }

    /// Values at the hidden cells of every trial, channel after channel: those of the grid.
    pub fn truth(&self, trials: &[Grid], grid: &Grid) -> Vec<f64> {
        let hidden = |part: &Grid| hidden_cells(grid, part);
        trials.iter().flat_map(|t| self.y.iter().flat_map(|y| pick(y, &hidden(t))).collect::<Vec<_>>()).collect()
    }

    /// How many values belong to each trial.
    pub fn sizes(&self, trials: &[Grid], grid: &Grid) -> Vec<usize> {
        trials.iter().map(|part| self.y.len() * hidden_cells(grid, part).len()).collect()
    }

    /// The same values, as parameters fill them. Trials run beside each other.
    pub fn filled(&self, trials: &[Grid], grid: &Grid, theta: &[f64], noise: f64) -> Result<Vec<f64>> {
        let one = |part: &Grid| {
            let mean = self.process(part)?.with_limits(TRIAL).on_one_thread().mean(theta, noise)?;
            let hidden = hidden_cells(grid, part);
            Ok(mean.iter().flat_map(|mean| pick(mean, &hidden)).collect())
        };
        Ok(trials.par_iter().map(one).collect::<Result<Vec<Vec<f64>>>>()?.concat())
    }
}

fn pick(values: &[f64], cells: &[usize]) -> Vec<f64> {
    cells.iter().map(|&i| values[i]).collect()
}

/// The cells that are observed in the grid and not in the part.
fn hidden_cells(grid: &Grid, part: &Grid) -> Vec<usize> {
    (0..grid.observed().len()).filter(|&i| grid.observed()[i] && !part.observed()[i]).collect()
}

/// The grid with more holes like its own, in places where the truth is known: its hole moved elsewhere, or, where it
/// reaches over most of the grid, its pattern of missing cells moved round.
pub(super) fn trials(grid: &Grid) -> Vec<Grid> {
    let masks = match trial_holes(grid) {
        boxes if boxes.is_empty() => moved_patterns(grid),
        boxes => boxes,
    };
    masks.iter().filter_map(|mask| grid.hiding(mask).ok()).collect()
}

/// The pattern of missing cells, moved round by thirds of the axes.
fn moved_patterns(grid: &Grid) -> Vec<Vec<bool>> {
    let shape = grid.shape();
    let right = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let from = |i: usize, third: usize| -> usize {
        (0..shape.len()).map(|a| (i / right(a) % shape[a] + third * shape[a] / 3 + a) % shape[a] * right(a)).sum()
    };
    let mask = |third: usize| -> Vec<bool> {
        (0..grid.observed().len()).map(|i| !grid.observed()[from(i, third)]).collect()
    };
    if grid.missing().is_empty() { vec![] } else { vec![mask(1), mask(2)] }
}

/// Boxes of the size of the grid's own hole where all cells are observed; none if it reaches over most of an axis.
fn trial_holes(grid: &Grid) -> Vec<Vec<bool>> {
    let shape = grid.shape();
    let right = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let missing = grid.missing();
    let size: Vec<usize> = (0..shape.len())
        .map(|a| {
            let places = missing.iter().map(|&i| i / right(a) % shape[a]);
            let (low, high) = places.fold((usize::MAX, 0), |(lo, hi), p| (lo.min(p), hi.max(p)));
            (high + 1).saturating_sub(low)
        })
        .collect();
    if missing.is_empty() || (0..shape.len()).any(|a| 2 * size[a] > shape[a]) {
        return vec![];
    }
    // Places along each axis, in every combination.
    let each = PLACES.powf(1.0 / shape.len() as f64).floor().max(2.0) as usize;
    let count = each.saturating_pow(shape.len() as u32).min(PLACES as usize);
    let mut found: Vec<(Vec<f64>, Vec<bool>)> = Vec::new();
    for k in 0..count {
        let corner: Vec<usize> =
            (0..shape.len()).map(|a| k / each.pow(a as u32) % each * (shape[a] - size[a]) / (each - 1)).collect();
        let inside = |i: usize| {
            (0..shape.len()).all(|a| (corner[a]..corner[a] + size[a]).contains(&(i / right(a) % shape[a])))
        };
        let hidden: Vec<bool> = (0..grid.observed().len()).map(inside).collect();
        if hidden.iter().zip(grid.observed()).all(|(hide, seen)| !hide || *seen) {
            found.push(((0..shape.len()).map(|a| corner[a] as f64 / size[a] as f64).collect(), hidden));
        }
    }
    // First the one that is most like a hole: seen from all sides. Then whoever is farthest from those before.
    let margin = |corner: &[f64]| {
        let ends = (0..shape.len()).map(|a| (shape[a] - size[a]) as f64 / size[a] as f64);
        corner.iter().zip(ends).map(|(c, end)| c.min(end - c)).fold(f64::INFINITY, f64::min)
    };
    let gap = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max).min(1.0);
    let mut chosen: Vec<(Vec<f64>, Vec<bool>)> = Vec::new();
    while chosen.len() < TRIALS {
        let worth = |corner: &[f64]| {
            let near = chosen.iter().map(|c| gap(&c.0, corner)).fold(f64::INFINITY, f64::min);
            (near, margin(corner))
        };
        let better = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
        let next = (0..found.len()).max_by(|&a, &b| better(worth(&found[a].0), worth(&found[b].0)).then(b.cmp(&a)));
        // Half of a hole of its own, at least.
        match next.filter(|&i| worth(&found[i].0).0 >= 0.5) {
            Some(next) => chosen.push(found.swap_remove(next)),
            None => break,
        }
    }
    chosen.into_iter().map(|c| c.1).collect()
}
