//! Limited-memory BFGS (Nocedal 1980), in a box if one is given. Steps come from the last few pairs of steps and
//! changes of the gradient; their length from `line_search`.

use serde::{Deserialize, Serialize};

use super::line_search::{NOISE, Ray};
use super::meter::Meter;
use super::{Bounds, Point, Stop, dot, largest, length};
use crate::error::{Error, Result};

/// L-BFGS and its options. Tolerances are relative to max(1, |f|); 0 turns one off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// Pairs remembered.
    pub history: usize,
    /// Converged when no entry of the gradient is larger.
    pub gradient: f64,
    /// Converged when the value falls by less over `window` iterations.
    pub decrease: f64,
    /// Iterations over which the decrease is measured.
    pub window: usize,
    /// The most a coordinate moves in one iteration.
    pub longest_step: Option<f64>,
    /// The box to stay in.
    pub bounds: Bounds,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { history: 10, gradient: 1e-6, decrease: 1e-9, window: 5, longest_step: None, bounds: Bounds::Free }
    }
}

/// A step s and the change y of the gradient over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
}

/// The pairs, oldest first, and the values of the last iterations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    pairs: Vec<Pair>,
    recent: Vec<f64>,
}

impl Memory {
    pub fn sizes(&self) -> Vec<usize> {
        self.pairs.iter().flat_map(|pair| [pair.s.len(), pair.y.len()]).collect()
    }
}

impl Lbfgs {
    pub(super) fn check(&self) -> Result<()> {
        let tolerance = |name, v: f64| {
            if v >= 0.0 { Ok(()) } else { Err(Error::option(name, format!("not a tolerance: {v}"))) }
        };
        tolerance("gradient", self.gradient)?;
        tolerance("decrease", self.decrease)?;
        if self.window == 0 {
            return Err(Error::option("window", "at least one iteration is needed"));
        }
        match self.longest_step {
            Some(v) if v.is_nan() || v <= 0.0 => Err(Error::option("longest_step", format!("not positive: {v}"))),
            _ => Ok(()),
        }
    }

    pub(super) fn converged(&self, at: &Point, memory: &Memory) -> Option<Stop> {
        let scale = at.value.abs().max(1.0);
        if self.bounds.gradient_norm(at) <= self.gradient * scale {
            return Some(Stop::Gradient);
        }
        let before = memory.recent.first().filter(|_| memory.recent.len() >= self.window)?;
        (self.decrease > 0.0 && before - at.value <= self.decrease * scale).then_some(Stop::Decrease)
    }

    pub(super) fn step(&self, at: &mut Point, memory: &mut Memory, meter: &mut Meter<'_>) -> Result<(), Stop> {
        let held = self.bounds.held(at);
        let mut promise = None;
        // With the pairs first; if that leads nowhere, once more by steepest descent.
        for fresh in [false, true] {
            let pairs: &[Pair] = if fresh { &[] } else { &memory.pairs };
            let mut direction = descent(pairs, &at.gradient, &held);
            let share = self.reach(&direction);
            if share < 1.0 {
                direction.iter_mut().for_each(|d| *d *= share);
            }
            self.bounds.shorten(&at.theta, &mut direction);
            let slope = dot(&at.gradient, &direction);
            if slope.is_nan() || slope >= 0.0 || (fresh && memory.pairs.is_empty()) {
                continue;
            }
            promise.get_or_insert(-slope);
            // Both are 1 or more by now, but for rounding.
            let longest = self.bounds.reach(&at.theta, &direction).min(self.reach(&direction)).max(1.0);
            let ray = Ray { from: at, direction: &direction, slope, longest, bounds: &self.bounds };
            if let Some(next) = ray.search(meter)? {
                if fresh {
                    memory.pairs.clear();
                }
                self.remember(memory, at, &next);
                *at = next;
                return Ok(());
            }
        }
        let rounding = NOISE * at.value.abs().max(1.0);
        Err(if promise.is_some_and(|promise| promise <= rounding) { Stop::Rounding } else { Stop::LineSearch })
    }

    /// How many times the direction fits into the longest step.
    fn reach(&self, direction: &[f64]) -> f64 {
        self.longest_step.map_or(f64::INFINITY, |longest| longest / largest(direction))
    }

    fn remember(&self, memory: &mut Memory, at: &Point, next: &Point) {
        memory.recent.push(at.value);
        keep_last(&mut memory.recent, self.window);
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
        let (s, y) = (minus(&next.theta, &at.theta), minus(&next.gradient, &at.gradient));
        // Without clear curvature the pair would spoil positive definiteness.
        if dot(&s, &y) > 1e-10 * length(&s) * length(&y) {
            memory.pairs.push(Pair { s, y });
        }
        keep_last(&mut memory.pairs, self.history);
    }
}

/// −H g by the two-loop recursion, within the coordinates that no wall holds. Without pairs, −g cut to length 1.
fn descent(pairs: &[Pair], gradient: &[f64], held: &[bool]) -> Vec<f64> {
    let free_dot = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).zip(held).filter(|(_, held)| !**held).map(|((a, b), _)| a * b).sum()
    };
    let mut q: Vec<f64> = gradient.iter().zip(held).map(|(g, held)| if *held { 0.0 } else { -g }).collect();
    // sᵀy within the free coordinates may have lost its sign; such pairs sit out.
    let curved: Vec<(&Pair, f64)> =
        pairs.iter().map(|p| (p, free_dot(&p.s, &p.y))).filter(|(_, sy)| *sy > f64::MIN_POSITIVE).collect();
    let Some(&(newest, sy)) = curved.last() else {
        let scale = 1.0 / length(&q).max(1.0);
        q.iter_mut().for_each(|q| *q *= scale);
        return q;
    };
    let mut alphas = Vec::with_capacity(curved.len());
    for &(Pair { s, y }, sy) in curved.iter().rev() {
        let alpha = free_dot(s, &q) / sy;
        add(&mut q, -alpha, y);
        alphas.push(alpha);
    }
    let gamma = sy / free_dot(&newest.y, &newest.y);
    q.iter_mut().for_each(|q| *q *= gamma);
    for (&(Pair { s, y }, sy), alpha) in curved.iter().zip(alphas.into_iter().rev()) {
        let beta = free_dot(y, &q) / sy;
        add(&mut q, alpha - beta, s);
    }
    q.iter_mut().zip(held).filter(|(_, held)| **held).for_each(|(q, _)| *q = 0.0);
    q
}

/// a ← a + c b
fn add(a: &mut [f64], c: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += c * b);
}

fn keep_last<T>(of: &mut Vec<T>, n: usize) {
    of.drain(..of.len().saturating_sub(n));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::optim::Limits;

    /// H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ, from H = γ I, with full matrices.
    fn dense(pairs: &[Pair], gradient: &[f64]) -> Vec<f64> {
        let n = gradient.len();
        let newest = pairs.last().unwrap();
        let gamma = dot(&newest.s, &newest.y) / dot(&newest.y, &newest.y);
        let unit = |i, j| if i == j { 1.0 } else { 0.0 };
        let mut h: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| gamma * unit(i, j)).collect()).collect();
        for Pair { s, y } in pairs {
            let rho = 1.0 / dot(s, y);
            let left = |i: usize, k: usize| unit(i, k) - rho * s[i] * y[k];
            let entry = |i: usize, j: usize| {
                let sandwich = (0..n).flat_map(|k| (0..n).map(move |l| (k, l)));
                sandwich.map(|(k, l)| left(i, k) * h[k][l] * left(j, l)).sum::<f64>() + rho * s[i] * s[j]
            };
            h = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        }
        h.iter().map(|row| -dot(row, gradient)).collect()
    }

    fn pairs() -> Vec<Pair> {
        vec![
            Pair { s: vec![1.0, 0.5, -0.2], y: vec![2.0, 0.1, 0.3] },
            Pair { s: vec![-0.3, 0.4, 0.9], y: vec![0.2, 1.0, 0.7] },
            Pair { s: vec![0.1, -0.6, 0.2], y: vec![0.5, -2.0, 0.1] },
        ]
    }

    #[test]
    fn two_loops_equal_full_matrices() {
        let gradient = [0.7, -1.1, 0.4];
        let fast = descent(&pairs(), &gradient, &[false; 3]);
        for (a, b) in fast.iter().zip(dense(&pairs(), &gradient)) {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
    }

    #[test]
    fn held_coordinates_are_as_if_absent() {
        let without: Vec<Pair> =
            pairs().iter().map(|p| Pair { s: vec![p.s[0], p.s[2]], y: vec![p.y[0], p.y[2]] }).collect();
        let fast = descent(&pairs(), &[0.7, -1.1, 0.4], &[false, true, false]);
        let slow = descent(&without, &[0.7, 0.4], &[false; 2]);
        assert_eq!(fast, [slow[0], 0.0, slow[1]]);
    }

    #[test]
    fn a_pair_without_curvature_is_left_out() {
        let point = |x: f64, g: f64| Point { theta: vec![x], value: 0.0, gradient: vec![g] };
        let (method, mut memory) = (Lbfgs::default(), Memory::default());
        method.remember(&mut memory, &point(0.0, -1.0), &point(1.0, -2.0));
        assert!(memory.pairs.is_empty());
        method.remember(&mut memory, &point(0.0, -1.0), &point(1.0, -0.5));
        assert_eq!(memory.pairs.len(), 1);
    }

    #[test]
    fn pairs_that_lead_nowhere_are_forgotten() {
        // Finite on the line y = 0 only, which the pair bends away from and steepest descent does not.
        let mut line = |x: &[f64], g: &mut [f64]| {
            g[0] = 2.0 * (x[0] - 3.0);
            if x[1] == 0.0 { (x[0] - 3.0).powi(2) } else { f64::NAN }
        };
        let limits = Limits::default();
        let mut meter = Meter::new(&mut line, &limits, Instant::now());
        let mut at = meter.evaluate(vec![0.0, 0.0]).unwrap().unwrap();
        let mut memory = Memory { pairs: vec![Pair { s: vec![1.0, 1.0], y: vec![1.0, 0.0] }], recent: vec![] };
        Lbfgs::default().step(&mut at, &mut memory, &mut meter).unwrap();
        assert!(at.value < 9.0);
        assert_eq!(memory.pairs.len(), 1);
        assert_eq!(memory.pairs[0].s[1], 0.0);
    }
}
