//! One search along a ray: Armijo and weak Wolfe conditions, or their approximate form where differences of the value
//! drown in rounding (Hager and Zhang, 2005). The full step is tried first and mostly taken, at one evaluation.

use super::meter::Meter;
use super::{Bounds, Point, Stop, dot};

/// Share of the decrease promised by the slope that a step must bring.
const ARMIJO: f64 = 1e-4;
/// Share of the slope that may be left after a step.
const CURVATURE: f64 = 0.9;
/// Differences of the value below this share of it count as rounding.
pub(super) const NOISE: f64 = 1e-10;
/// The most evaluations in one search.
const TRIALS: usize = 30;
/// The most evaluations beyond a wall of non-finite values, once there is a point to fall back on.
const BEYOND_WALL: usize = 4;

/// θ(s) = θ + s·d, for 0 < s ≤ longest, with φ(s) = f(θ(s)).
pub(super) struct Ray<'a> {
    pub from: &'a Point,
    pub direction: &'a [f64],
    /// φ′(0) < 0
    pub slope: f64,
    pub longest: f64,
    pub bounds: &'a Bounds,
}

#[derive(Clone, Copy)]
struct Trial {
    step: f64,
    value: f64,
    slope: f64,
}

impl Ray<'_> {
    fn at(&self, step: f64) -> Vec<f64> {
        let mut theta: Vec<f64> = self.from.theta.iter().zip(self.direction).map(|(x, d)| x + step * d).collect();
        self.bounds.project(&mut theta);
        theta
    }

    /// φ(s) ≤ φ(0) + c₁ s φ′(0); or, within rounding of the best value, φ′(s) ≤ 0.8 |φ′(0)|, which says the same of a
    /// parabola without looking at its values.
    fn falls_enough(&self, trial: &Trial, best: f64) -> bool {
        trial.value <= self.from.value + ARMIJO * trial.step * self.slope
            || (trial.value <= best + NOISE * best.abs() && trial.slope <= -0.8 * self.slope)
    }

    /// A point that meets the conditions; failing that, the best of those that fell enough; `None` when nothing along
    /// the ray is lower than its start.
    pub fn search(&self, meter: &mut Meter<'_>) -> Result<Option<Point>, Stop> {
        let best = meter.best().value;
        // A step between `low` (fell, still steep) and `high` (rose, or beyond a wall) meets the conditions.
        let mut low = Trial { step: 0.0, value: self.from.value, slope: self.slope };
        let mut high: Option<Trial> = None;
        let mut fallback: Option<Point> = None;
        let mut walls = 0;
        let mut step = self.longest.min(1.0);
        for _ in 0..TRIALS {
            let theta = self.at(step);
            if theta == self.from.theta {
                break;
            }
            let Some(point) = meter.evaluate(theta)? else {
                walls += 1;
                high = Some(Trial { step, value: f64::INFINITY, slope: f64::NAN });
                if fallback.is_some() && walls >= BEYOND_WALL {
                    break;
                }
                // Before anything finite is found, shrink faster each time: 1/2, 1/8, 1/64, …
                let share = if fallback.is_some() { 0.5 } else { 0.5_f64.powi(walls as i32) };
                step = low.step + share * (step - low.step);
                continue;
            };
            let trial = Trial { step, value: point.value, slope: dot(&point.gradient, self.direction) };
            if !self.falls_enough(&trial, best) {
                high = Some(trial);
                step = between(&low, &trial);
            } else if trial.slope >= CURVATURE * self.slope || step >= 0.999 * self.longest {
                return Ok(Some(point));
            } else {
                let before = std::mem::replace(&mut low, trial);
                fallback = Some(point);
                step = match &high {
                    Some(high) => between(&low, high),
                    None => beyond(&before, &low).min(self.longest),
                };
            }
            if high.is_some_and(|high| high.step - low.step <= 1e-14 * high.step) {
                break;
            }
        }
        Ok(fallback.filter(|point| point.value < self.from.value))
    }
}

/// A step inside the bracket: the minimum of the cubic through both ends; by the slopes alone where the values differ
/// by rounding; the middle when `high` lies beyond a wall.
fn between(low: &Trial, high: &Trial) -> f64 {
    let width = high.step - low.step;
    let share = if (high.value - low.value).abs() <= NOISE * low.value.abs() {
        low.slope / (low.slope - high.slope)
    } else {
        // Nocedal and Wright, eq. 3.59, on a bracket of width 1.
        let (a, b) = (low.slope * width, high.slope * width);
        let c = a + b - 3.0 * (high.value - low.value);
        let root = (c * c - a * b).sqrt();
        1.0 - (b + root - c) / (b - a + 2.0 * root)
    };
    let share = if share.is_finite() { share.clamp(0.05, 0.9) } else { 0.5 };
    low.step + share * width
}

/// A longer step: where the slopes would meet zero, but two to ten times as far.
fn beyond(before: &Trial, at: &Trial) -> f64 {
    let zero = at.step - at.slope * (at.step - before.step) / (at.slope - before.slope);
    // Where the slope grows steeper, zero lies behind.
    if zero.is_finite() && zero > at.step { zero.clamp(2.0 * at.step, 10.0 * at.step) } else { 4.0 * at.step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_finds_the_minimum_of_a_cubic() {
        // s³ − 3s has its minimum at 1.
        let cubic = |s: f64| Trial { step: s, value: s.powi(3) - 3.0 * s, slope: 3.0 * s * s - 3.0 };
        assert!((between(&cubic(0.25), &cubic(1.5)) - 1.0).abs() < 1e-14);
        assert!((between(&cubic(0.0), &cubic(3.0)) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn interpolation_reads_slopes_where_values_are_rounding() {
        let flat = |s: f64| Trial { step: s, value: 1e8, slope: s - 0.3 };
        assert!((between(&flat(0.0), &flat(1.0)) - 0.3).abs() < 1e-14);
    }

    #[test]
    fn extrapolation_goes_forward() {
        let at = |step, slope| Trial { step, value: 0.0, slope };
        assert_eq!(beyond(&at(0.0, -1.0), &at(1.0, -0.75)), 4.0);
        assert_eq!(beyond(&at(0.0, -1.0), &at(1.0, -2.0)), 4.0);
        assert_eq!(beyond(&at(0.0, -1.0), &at(1.0, -0.999)), 10.0);
        assert_eq!(beyond(&at(0.0, -1.0), &at(1.0, -0.1)), 2.0);
    }
}
