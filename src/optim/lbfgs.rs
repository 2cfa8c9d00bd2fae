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
    /// The most a coordinate moves in the first trial of an iteration.
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
            self.confine(&at.theta, &mut direction);
            let slope = dot(&at.gradient, &direction);
            if slope.is_nan() || slope >= 0.0 || (fresh && memory.pairs.is_empty()) {
                continue;
            }
            promise.get_or_insert(-slope);
            let longest = self.bounds.reach(&at.theta, &direction).max(1.0);
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

    /// Shortens a direction to the longest step and to the box.
    fn confine(&self, theta: &[f64], direction: &mut [f64]) {
        let share = self.longest_step.map_or(1.0, |longest| longest / largest(direction));
        if share < 1.0 {
            direction.iter_mut().for_each(|d| *d *= share);
        }
        self.bounds.shorten(theta, direction);
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
