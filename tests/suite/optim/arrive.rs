//! Minimisers arrive at minima, economically.

use std::ops::ControlFlow;

use covary::optim::*;

use super::{assert_near, lbfgs, rosenbrock, standard_start, strict};

#[test]
fn rosenbrock_is_solved_in_few_evaluations() {
    for (n, most) in [(2, 60), (20, 180)] {
        let mut calls = 0;
        let mut counted = |x: &[f64], g: &mut [f64]| {
            calls += 1;
            rosenbrock(x, g)
        };
        let found = lbfgs(&mut counted, standard_start(n));
        assert_eq!(found.stop, Stop::Gradient);
        // The smallest curvature at the minimum is 0.4 for n = 2, so that |g| ≤ 1e-8 leaves 3e-8 in x.
        assert_near(&found.theta, &vec![1.0; n], 1e-6);
        assert_eq!(found.evaluations, calls);
        assert!(found.evaluations <= most, "{} evaluations", found.evaluations);
    }
}

#[test]
fn an_ill_conditioned_quadratic_is_solved() {
    // Curvatures from 1 to 1e4 in a hundred dimensions, minimum at (1, …, 1).
    let curvature = |i: usize| 10f64.powf(4.0 * i as f64 / 99.0);
    let mut quadratic = |x: &[f64], g: &mut [f64]| {
        (0..x.len()).map(|i| (g[i] = curvature(i) * (x[i] - 1.0), 0.5 * g[i] * (x[i] - 1.0)).1).sum()
    };
    let limits = Limits { iterations: 3000, ..Limits::default() };
    let found = strict(1e-8).minimize(&mut quadratic, vec![0.0; 100], &limits, &mut ()).unwrap();
    assert!(found.stop.converged(), "{}", found.stop);
    assert_near(&found.theta, &[1.0; 100], 1e-7);
    // Nearly one evaluation an iteration.
    assert!(found.evaluations as f64 <= 1.1 * found.iterations as f64 + 3.0);
}

#[test]
fn rounding_of_the_value_does_not_stop_the_gradient() {
    // At 1e8 the value is flat to the last bit for |x| < 1e-4. Other errors may be larger, and at worst the value rises
    // towards the minimum. The gradient is exact.
    for error in [0.0, 1e-3] {
        let mut plateau = |x: &[f64], g: &mut [f64]| {
            let curvature = |i: usize| 1.0 + 10.0 * i as f64;
            let value: f64 = (0..x.len()).map(|i| (g[i] = curvature(i) * x[i], 0.5 * g[i] * x[i]).1).sum();
            1e8 + if value < error { 2.0 * error - value } else { value }
        };
        let mut last = f64::NAN;
        let mut watch = |p: &Progress<'_>| {
            last = p.gradient_norm;
            ControlFlow::Continue(())
        };
        // Relative to |f|: 1e-16 is 1e-8 in the gradient.
        let start = [3.0, -2.0, 1.0, 0.5];
        let found = strict(1e-16).minimize(&mut plateau, start, &Limits::default(), &mut watch).unwrap();
        assert_eq!(found.stop, Stop::Gradient);
        assert!(last <= 1e-8, "{last}");
        // The best value may belong to an earlier point; of equal ones the last is returned.
        assert!(error > 0.0 || found.gradient_norm == last, "{found:?}");
    }
}

#[test]
fn noise_in_the_value_ends_in_a_reason() {
    // Noise as of rounding, but a thousand times larger than the search expects.
    let mut noisy = |x: &[f64], g: &mut [f64]| {
        g.copy_from_slice(x);
        1.0 + 0.5 * x.iter().map(|v| v * v).sum::<f64>() + 1e-7 * (1e9 * x[0]).sin()
    };
    let found = strict(0.0).minimize(&mut noisy, [1.0, 2.0], &Limits::default(), &mut ()).unwrap();
    assert!(matches!(found.stop, Stop::Rounding | Stop::LineSearch | Stop::Gradient), "{}", found.stop);
    assert!(found.value <= 1.0 + 1e-6 && found.evaluations < 300, "{found:?}");
}

#[test]
fn both_methods_find_the_same_minimum() {
    // A smooth bowl with no closed-form minimum: Σ exp(xᵢ) + exp(−2xᵢ) + (Σ xᵢ)²
    let mut bowl = |x: &[f64], g: &mut [f64]| {
        let sum: f64 = x.iter().sum();
        let mut value = sum * sum;
        for i in 0..x.len() {
            let (up, down) = (x[i].exp(), (-2.0 * x[i]).exp());
            value += up + down;
            g[i] = up - 2.0 * down + 2.0 * sum;
        }
        value
    };
    let start = vec![1.0, -0.5, 2.0, 0.0];
    let one = lbfgs(&mut bowl, start.clone());
    let limits = Limits { iterations: 5000, ..Limits::default() };
    for decay in
        [Decay::Constant, Decay::Cosine { over: 3000, floor: 1e-3 }, Decay::Plateau { patience: 50, factor: 0.5 }]
    {
        let adam: Optimizer = Adam { rate: 0.05, decay, gradient: 1e-8, ..Adam::default() }.into();
        let two = adam.minimize(&mut bowl, start.clone(), &limits, &mut ()).unwrap();
        assert_eq!(two.stop, Stop::Gradient, "{decay:?}");
        // Both have |g| ≤ 1e-8 max(1, f), and curvature is above 1.
        assert_near(&one.theta, &two.theta, 1e-6);
    }
}

#[test]
fn the_first_step_of_adam_is_its_rate() {
    // m̂ = g and v̂ = g², so that each coordinate moves by rate · sign(g).
    let mut slope = |_: &[f64], g: &mut [f64]| {
        g.copy_from_slice(&[1e-3, -40.0]);
        0.0
    };
    let mut seen = vec![];
    let mut watch = |p: &Progress<'_>| {
        seen.push(p.theta.to_vec());
        ControlFlow::Continue(())
    };
    let adam: Optimizer = Adam { rate: 0.25, epsilon: 1e-30, ..Adam::default() }.into();
    let limits = Limits { iterations: 1, ..Limits::default() };
    adam.minimize(&mut slope, [1.0, 1.0], &limits, &mut watch).unwrap();
    assert_near(&seen[1], &[0.75, 1.25], 1e-14);
}

#[test]
fn a_box_holds_and_its_walls_are_found() {
    // (x − 2)² + (y + 5)² + (z − 0.5)² + xz in the box: the minimum has x and y at walls.
    let mut bowl = |x: &[f64], g: &mut [f64]| {
        assert!(x.iter().all(|v| (-1.0..=1.0).contains(v)), "outside: {x:?}");
        g.copy_from_slice(&[2.0 * (x[0] - 2.0) + x[2], 2.0 * (x[1] + 5.0), 2.0 * (x[2] - 0.5) + x[0]]);
        (x[0] - 2.0).powi(2) + (x[1] + 5.0).powi(2) + (x[2] - 0.5).powi(2) + x[0] * x[2]
    };
    let bounds = [Bounds::All(-1.0, 1.0), Bounds::Each(vec![(-1.0, 1.0); 3])];
    for bounds in bounds {
        let strict = Lbfgs { gradient: 1e-9, decrease: 0.0, bounds: bounds.clone(), ..Lbfgs::default() };
        let adam = Adam { rate: 0.05, gradient: 1e-8, bounds, ..Adam::default() };
        for method in [strict.into(), Optimizer::from(adam)] {
            let found = method.minimize(&mut bowl, [9.0, 0.0, -0.9], &Limits::default(), &mut ()).unwrap();
            assert_eq!(found.stop, Stop::Gradient);
            assert_near(&found.theta, &[1.0, -1.0, 0.0], 1e-6);
        }
    }
}

#[test]
fn a_box_around_rosenbrock_agrees_with_its_edge() {
    // With x ≤ 0.5 the minimum is at x = 0.5, y = 0.25.
    let boxed = Lbfgs { bounds: Bounds::Each(vec![(-2.0, 0.5), (-2.0, 2.0)]), ..Lbfgs::default() };
    let found = Optimizer::from(boxed).minimize(&mut rosenbrock, [-1.2, 1.0], &Limits::default(), &mut ()).unwrap();
    assert!(found.stop.converged() && found.evaluations < 80, "{found:?}");
    assert_near(&found.theta, &[0.5, 0.25], 1e-5);
}

#[test]
fn the_longest_step_is_kept() {
    let mut seen = vec![];
    let mut watch = |p: &Progress<'_>| {
        seen.push(p.theta.to_vec());
        ControlFlow::Continue(())
    };
    // Far away and nearly flat: without a limit the second step is hundreds long.
    let mut flat = |x: &[f64], g: &mut [f64]| {
        let root = (1.0 + (x[0] - 500.0).powi(2)).sqrt();
        g[0] = (x[0] - 500.0) / root;
        root
    };
    let short: Optimizer = Lbfgs { longest_step: Some(0.5), ..Lbfgs::default() }.into();
    let limits = Limits { iterations: 5, ..Limits::default() };
    let found = short.minimize(&mut flat, [0.0], &limits, &mut watch).unwrap();
    // Straight on: five steps as long as they may be, at one evaluation each.
    assert_eq!(found.evaluations, 6);
    assert_near(&seen.concat(), &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5], 1e-12);
}

#[test]
fn little_decrease_ends_a_run() {
    // Quartic bowls flatten out: the gradient alone would take far longer.
    let mut quartic = |x: &[f64], g: &mut [f64]| {
        g[0] = 4.0 * x[0].powi(3);
        2.0 + x[0].powi(4)
    };
    let method: Optimizer = Lbfgs { gradient: 0.0, decrease: 1e-4, ..Lbfgs::default() }.into();
    let found = method.minimize(&mut quartic, [1.3], &Limits::default(), &mut ()).unwrap();
    assert_eq!(found.stop, Stop::Decrease);
    assert!(found.value - 2.0 < 1e-3);
}

#[test]
fn no_parameters_is_a_minimum() {
    let found = lbfgs(&mut |_: &[f64], _: &mut [f64]| 7.0, vec![]);
    assert_eq!((found.stop, found.value, found.evaluations), (Stop::Gradient, 7.0, 1));
}
