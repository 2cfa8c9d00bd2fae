//! The minimisers arrive, keep their limits, survive what is not finite, and go on where they stopped.

#![allow(clippy::unwrap_used)]

mod arrive;
mod beside;
mod limits;
mod non_finite;
mod restarts;
mod resume;

use covary::optim::*;

/// Σ 100 (xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)²
fn rosenbrock(x: &[f64], g: &mut [f64]) -> f64 {
    g.fill(0.0);
    let mut value = 0.0;
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
        value += 100.0 * a * a + b * b;
        g[i] -= 400.0 * a * x[i] + 2.0 * b;
        g[i + 1] += 200.0 * a;
    }
    value
}

fn standard_start(n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 }).collect()
}

/// Converges on the gradient alone.
fn strict(gradient: f64) -> Optimizer {
    Lbfgs { gradient, decrease: 0.0, ..Lbfgs::default() }.into()
}

fn lbfgs(objective: &mut dyn Objective, start: impl Into<Start>) -> Outcome {
    strict(1e-8).minimize(objective, start, &Limits::default(), &mut ()).unwrap()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance, "{found:?} is not {expected:?} within {tolerance}");
    }
}

fn methods() -> [Optimizer; 3] {
    let plateau = Decay::Plateau { patience: 5, factor: 0.7 };
    [
        strict(1e-10),
        Lbfgs { bounds: Bounds::All(-3.0, 0.9), ..Lbfgs::default() }.into(),
        Adam { rate: 0.2, decay: plateau, ..Adam::default() }.into(),
    ]
}

/// Rosenbrock with a wall near the path, so that the Adam run goes back to its best point now and then.
fn walled(x: &[f64], g: &mut [f64]) -> f64 {
    if x[1] > 1.15 { f64::NAN } else { rosenbrock(x, g) }
}
