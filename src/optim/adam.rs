//! Adam (Kingma and Ba, 2015), for the whole objective rather than for samples of it. After a value that is not finite
//! it goes back to the best point, forgets its moments and halves its rate.

use serde::{Deserialize, Serialize};

use super::meter::Meter;
use super::{Bounds, Point, Stop};
use crate::error::{Error, Result};

/// How the rate changes as the iterations go by.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum Decay {
    /// Not at all.
    #[default]
    Constant,
    /// Down to a share `floor` of itself along half a cosine over this many iterations.
    Cosine {
        /// Iterations to reach the floor.
        over: usize,
        /// Share of the rate left at the end.
        floor: f64,
    },
    /// Times `factor` each time this many iterations bring no better value.
    Plateau {
        /// Iterations to wait.
        patience: usize,
        /// What the rate is multiplied by.
        factor: f64,
    },
}

/// Adam and its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    /// The length of a step, about.
    pub rate: f64,
    /// How much of the mean gradient is kept at each step.
    pub beta1: f64,
    /// How much of the mean square is kept at each step.
    pub beta2: f64,
    /// Keeps the division by the root mean square finite.
    pub epsilon: f64,
    /// How the rate changes.
    pub decay: Decay,
    /// Converged when no entry of the gradient is larger, relative to max(1, |f|); 0 turns it off.
    pub gradient: f64,
    /// The box to stay in.
    pub bounds: Bounds,
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            rate: 1e-2,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            decay: Decay::Constant,
            gradient: 1e-6,
            bounds: Bounds::Free,
        }
    }
}

/// The rate may be halved this often before the run gives up.
const HALVINGS: u32 = 40;

/// The moments, their age since the last reset, and what became of the rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    m: Vec<f64>,
    v: Vec<f64>,
    age: u64,
    halvings: u32,
    decays: u32,
    idle: usize,
}

impl Memory {
    pub fn sizes(&self) -> Vec<usize> {
        if self.age == 0 { vec![] } else { vec![self.m.len(), self.v.len()] }
    }
}

impl Adam {
    pub(super) fn check(&self) -> Result<()> {
        let share = 0.0..1.0;
        let (decay, floor) = match self.decay {
            Decay::Constant => (0.5, 0.0),
            Decay::Cosine { floor, .. } => (0.5, floor),
            Decay::Plateau { factor, .. } => (factor, 0.0),
        };
        let wrong = [
            ("rate", self.rate, self.rate > 0.0 && self.rate.is_finite()),
            ("beta1", self.beta1, share.contains(&self.beta1)),
            ("beta2", self.beta2, share.contains(&self.beta2)),
            ("epsilon", self.epsilon, self.epsilon > 0.0),
            ("gradient", self.gradient, self.gradient >= 0.0),
            ("factor", decay, decay > 0.0 && decay < 1.0),
            ("floor", floor, (0.0..=1.0).contains(&floor)),
        ];
        match wrong.into_iter().find(|(.., right)| !right) {
            Some((option, value, _)) => Err(Error::option(option, format!("out of range: {value}"))),
            None => Ok(()),
        }
    }

    pub(super) fn converged(&self, at: &Point) -> Option<Stop> {
        (self.bounds.gradient_norm(at) <= self.gradient * at.value.abs().max(1.0)).then_some(Stop::Gradient)
    }

    pub(super) fn step(
        &self,
        at: &mut Point,
        memory: &mut Memory,
        iteration: usize,
        meter: &mut Meter<'_>,
    ) -> Result<(), Stop> {
        // A copy, so that the state stays whole if a limit forbids the evaluation.
        let mut next = memory.clone();
        next.age += 1;
        next.m.resize(at.theta.len(), 0.0);
        next.v.resize(at.theta.len(), 0.0);
        let rate = self.rate_at(iteration, memory);
        let age = next.age as f64;
        let (unbias1, unbias2) = (1.0 - self.beta1.powf(age), 1.0 - self.beta2.powf(age));
        let mut theta = at.theta.clone();
        for (i, &g) in at.gradient.iter().enumerate() {
            // m ← β₁m + (1−β₁)g;   v ← β₂v + (1−β₂)g²;   θ ← θ − rate · m̂ / (√v̂ + ε)
            next.m[i] = self.beta1 * next.m[i] + (1.0 - self.beta1) * g;
            next.v[i] = (self.beta2 * next.v[i] + (1.0 - self.beta2) * g * g).min(f64::MAX);
            theta[i] -= rate * (next.m[i] / unbias1) / ((next.v[i] / unbias2).sqrt() + self.epsilon);
        }
        self.bounds.project(&mut theta);
        let best = meter.best().value;
        match meter.evaluate(theta)? {
            Some(point) => {
                next.idle = if point.value < best { 0 } else { next.idle + 1 };
                if let Decay::Plateau { patience, .. } = self.decay
                    && next.idle > patience
                {
                    next.idle = 0;
                    next.decays += 1;
                }
                *at = point;
            }
            None if memory.halvings >= HALVINGS => return Err(Stop::NonFinite),
            None => {
                at.clone_from(meter.best());
                next = Memory { halvings: memory.halvings + 1, decays: memory.decays, ..Memory::default() };
            }
        }
        *memory = next;
        Ok(())
    }

    fn rate_at(&self, iteration: usize, memory: &Memory) -> f64 {
        let decayed = match self.decay {
            Decay::Constant => 1.0,
            Decay::Cosine { over, floor } => {
                let share = (iteration as f64 / over.max(1) as f64).min(1.0);
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * share).cos())
            }
            Decay::Plateau { factor, .. } => factor.powi(memory.decays as i32),
        };
        self.rate * decayed * 0.5_f64.powi(memory.halvings as i32)
    }
}
