//! Starting values by role: lengthscales from distances, periods from the periodogram, noise from local differences,
//! weights at random. The first start follows the data alone; later ones spread around it.

use super::periodogram::periods;
use crate::data::Points;
use crate::kernel::{Kernel, Param, Role, Unit, weight_range};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::collections::HashMap;

/// Where starting values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartFrom {
    /// The data: distances, periodogram, local differences.
    #[default]
    Data,
    /// Fixed multiples of the median distance, as in the paper.
    Paper,
}

/// What the data say about where to start (standardised data).
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Median distance in each column, times √d.
    distance: Vec<f64>,
    /// Periods along each column, the strongest first.
    periods: Vec<Vec<f64>>,
    /// Middle and width of each column.
    middle: Vec<(f64, f64)>,
    noise: f64,
    from: StartFrom,
}

/// At most this many points tell the median distance.
const SAMPLE: usize = 1000;

impl Facts {
    /// What rows say; of periods along a single column, what was found elsewhere, if it was.
    pub fn of(x: &Points, y: &[f64], kernel: &Kernel, from: StartFrom, known: Option<Vec<f64>>) -> Self {
        let d = x.d();
        let step = x.n().div_ceil(SAMPLE).max(1);
        let distance = (0..d).map(|c| {
            let mut column: Vec<f64> = x.column(c).iter().step_by(step).copied().collect();
            column.sort_by(f64::total_cmp);
            let m = median_distance(&column) * (d as f64).sqrt();
            if m > 1e-6 { m } else { 1.0 }
        });
        let middle = (0..d).map(|c| {
            let (lo, hi) = x.column(c).iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
            (0.5 * (lo + hi), (hi - lo).max(1e-6))
        });
        // Where all are given, looking for them would be lost time.
        let is_open = |p: &Param| matches!(p.role(), Role::Period { .. }) && p.value().is_none();
        let wants_period = kernel.params().iter().any(is_open);
        let along = |c: usize| match &known {
            _ if !wants_period || from != StartFrom::Data => vec![],
            Some(known) => known.clone(),
            None => periods(x.column(c), y),
        };
        let periods = (0..d).map(along).collect();
        let noise = if from == StartFrom::Data { local_noise(x, y) } else { 0.1 };
        Self { distance: distance.collect(), periods, middle: middle.collect(), noise, from }
    }

    /// One axis of a grid, whose periods and noise were found from all of its lines.
    pub fn of_axis(x: &Points, periods: Vec<f64>, noise: f64, from: StartFrom) -> Self {
        let plain = Self::of(x, &[], &Kernel::rbf(), from, None);
        Self { periods: vec![periods], noise: if from == StartFrom::Data { noise } else { 0.1 }, ..plain }
    }

    fn column_distance(&self, column: Option<usize>) -> f64 {
        match column {
            Some(c) => self.distance[c],
            None => self.distance.iter().sum::<f64>() / self.distance.len().max(1) as f64,
        }
    }

    /// Values of the kernel's parameters and of the noise for one of the starts.
    pub fn start(&self, kernel: &Kernel, index: usize, seed: u64) -> (Vec<f64>, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut values: HashMap<usize, f64> = HashMap::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        let single = self.distance.len() == 1;
        for unit in kernel.units() {
            match unit.unit() {
                Unit::Primitive(p) => {
                    let name = p.kind().row().name;
                    let place = seen.entry(name.clone().into_owned()).or_default();
                    for param in p.params() {
                        let v = self.of_role(param, &name, *place, index, single, &mut rng);
                        values.entry(param.id()).or_insert(v);
                    }
                    *place += 1;
                }
                Unit::Linear { of, weights, bias } => {
                    let (lo, hi) = weight_range(of.len());
                    for w in weights {
                        values.insert(w.id(), rng.random_range(lo..hi));
                    }
                    if let Some(b) = bias {
                        values.insert(b.id(), 0.01);
                    }
                }
                _ => {}
            }
        }
        let of =
            |p: &Param| p.value().unwrap_or_else(|| values.get(&p.id()).copied().unwrap_or(p.value_or_default()));
        let noise = match index {
            0 => self.noise,
            _ => (self.noise * (0.8 * normal(&mut rng)).exp()).clamp(1e-4, 1.0),
        };
        (kernel.params().iter().map(of).collect(), noise)
    }

    /// One parameter of the `place`-th primitive of its name.
    fn of_role(&self, p: &Param, name: &str, place: usize, index: usize, single: bool, rng: &mut impl Rng) -> f64 {
        let spread = |rng: &mut _, by: f64| if index == 0 { 1.0 } else { (by * normal(rng)).exp() };
        match p.role() {
            Role::Lengthscale { column } if name == "BEFORE" || name == "AFTER" => {
                0.05 * self.middle[column.unwrap_or(0)].1 * spread(rng, 0.5)
            }
            Role::Lengthscale { column } => {
                let factor = match (single, name) {
                    (true, "RQ") => [2.0, 1.0][place % 2],
                    (true, _) => [0.25, 1.0, 0.5, 2.0][place % 4],
                    (false, "RQ") => 1.0 / 3.0,
                    (false, _) => [1.0 / 6.0, 2.0 / 3.0, 1.0 / 3.0, 4.0 / 3.0][place % 4],
                };
                // Beyond the first start also longer ones: many columns hardly matter.
                let factor = if index > 0 && !single { 3.0 * factor } else { factor };
                factor * self.column_distance(column) * spread(rng, 0.7)
            }
            Role::Period { column } => {
                let m = self.column_distance(column);
                let found = column.and_then(|c| self.periods.get(c)).or(self.periods.first());
                match found.map_or(0, Vec::len) {
                    0 => [1.0, 0.25][place % 2] * m * spread(rng, 0.7),
                    // Two units take the two strongest; other starts take others, or the same with another smoothness.
                    count => found.map_or(m, |p| p[(place + if index % 3 == 2 { index / 3 } else { 0 }) % count]),
                }
            }
            Role::Smoothness => match self.from {
                StartFrom::Paper => 2.0 * [1.0, 0.25][place % 2] * self.column_distance(None),
                StartFrom::Data => [1.5, 0.8][place % 2] * spread(rng, 0.5),
            },
            Role::Frequency { column } => {
                let m = self.column_distance(column);
                normal(rng) * [0.5, 1.0, 2.0, 4.0][place % 4] / m
            }
            Role::Location { column } => {
                let (middle, width) = self.middle[column.unwrap_or(0)];
                if index == 0 { middle } else { middle + width * rng.random_range(-0.4..0.4) }
            }
            Role::Shape => match (single, self.from) {
                (true, StartFrom::Paper) => [0.2, 0.1][place % 2],
                (false, StartFrom::Paper) => [0.1, 1.0][place % 2],
                _ => [0.3, 1.0][place % 2] * spread(rng, 0.7),
            },
            Role::Variance | Role::Slope { .. } => spread(rng, 0.3),
            other => other.default_value(),
        }
    }
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The median of |a − b| over all pairs.
fn median_distance(column: &[f64]) -> f64 {
    let mut all: Vec<f64> = Vec::with_capacity(column.len() * column.len() / 2);
    for (i, a) in column.iter().enumerate() {
        all.extend(column[..i].iter().map(|b| (a - b).abs()));
    }
    if all.is_empty() {
        return 0.0;
    }
    let middle = all.len() / 2;
    *all.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Noise variance from second differences of neighbours in one column; a tenth of the target's where there are more.
fn local_noise(x: &Points, y: &[f64]) -> f64 {
    if x.d() != 1 || y.len() < 8 {
        return 0.1;
    }
    let mut order: Vec<usize> = (0..y.len()).collect();
    order.sort_by(|&a, &b| x.column(0)[a].total_cmp(&x.column(0)[b]));
    // y − (left + right)/2 of a smooth curve is noise of variance 3/2 σ².
    let second = |w: &[usize]| y[w[1]] - 0.5 * (y[w[0]] + y[w[2]]);
    let mut squares: Vec<f64> = order.windows(3).map(|w| second(w).powi(2)).collect();
    let middle = squares.len() / 2;
    // The median of χ²₁ is 0.455.
    let median = *squares.select_nth_unstable_by(middle, f64::total_cmp).1 / 0.455;
    (median / 1.5).clamp(1e-4, 0.5)
}
