//! The minimisers arrive, keep their limits, survive what is not finite, and go on where they stopped.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use covary::ErrorKind;
use covary::optim::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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

#[test]
fn rosenbrock_is_solved_in_few_evaluations() {
    for (n, most) in [(2, 60), (20, 150)] {
        let mut calls = 0;
        let mut counted = |x: &[f64], g: &mut [f64]| {
            calls += 1;
            rosenbrock(x, g)
        };
        let found = lbfgs(&mut counted, standard_start(n));
        println!(
            "rosenbrock {n}: {} evaluations, {} iterations, {:e}",
            found.evaluations, found.iterations, found.value
        );
        assert_eq!(found.stop, Stop::Gradient);
        // Curvature along the valley is about 0.4, so |g| ≤ 1e-8 leaves less than 1e-6 in x for n = 20.
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
    let found = lbfgs(&mut quadratic, vec![0.0; 100]);
    println!("quadratic: {} evaluations, {} iterations", found.evaluations, found.iterations);
    assert!(found.stop.converged(), "{}", found.stop);
    assert_near(&found.theta, &[1.0; 100], 1e-7);
    // Nearly one evaluation an iteration.
    assert!(found.evaluations as f64 <= 1.15 * found.iterations as f64 + 3.0);
}

#[test]
fn a_wall_of_nan_is_kept_clear_of() {
    // x − 0.01 ln(1 − |x|²) and NaN from the wall on: the minimum sits close to it.
    let mut barrier = |x: &[f64], g: &mut [f64]| {
        let room = 1.0 - x.iter().map(|v| v * v).sum::<f64>();
        for (g, v) in g.iter_mut().zip(x) {
            *g = 0.02 * v / room;
        }
        g[0] += 1.0;
        if room > 0.0 { x[0] - 0.01 * room.ln() } else { f64::NAN }
    };
    let found = lbfgs(&mut barrier, [0.5, 0.7, -0.1]);
    assert!(found.stop.converged(), "{}", found.stop);
    // 1 + 0.02 x / (1 − x²) = 0
    assert_near(&found.theta, &[0.01 - (0.01f64 * 0.01 + 1.0).sqrt(), 0.0, 0.0], 1e-7);
}

#[test]
fn an_infinite_first_step_is_shortened() {
    // The gradient at the start is so large that no step longer than 1e-6 stays finite.
    let mut narrow = |x: &[f64], g: &mut [f64]| {
        let z = x[0] * 1e6;
        g[0] = 2e6 * (z - 0.5);
        if z.abs() > 1.0 { f64::INFINITY } else { (z - 0.5).powi(2) }
    };
    let found = lbfgs(&mut narrow, [0.0]);
    assert_near(&found.theta, &[5e-7], 1e-12);
    assert!(found.evaluations < 20, "{} evaluations", found.evaluations);
}

#[test]
fn rounding_of_the_value_does_not_stop_the_gradient() {
    // Values near 1e8 carry errors of 1e-8, as if |x| < 1e-4 were a plateau; the gradient is exact.
    let mut plateau = |x: &[f64], g: &mut [f64]| {
        let curvature = |i: usize| 1.0 + 10.0 * i as f64;
        let value: f64 = (0..x.len()).map(|i| (g[i] = curvature(i) * x[i], 0.5 * g[i] * x[i]).1).sum();
        1e8 + value
    };
    let start = [3.0, -2.0, 1.0, 0.5];
    // Relative to |f|: 1e-16 is 1e-8 in the gradient.
    let found = strict(1e-16).minimize(&mut plateau, start, &Limits::default(), &mut ()).unwrap();
    assert!(found.stop.converged(), "{}", found.stop);
    let state = found.state.unwrap();
    let mut at = None;
    let mut last = |p: &Progress<'_>| {
        at = Some(p.gradient_norm);
        ControlFlow::Continue(())
    };
    // The last point seen has the small gradient; the best value may belong to an earlier one.
    assert!(state.iterations() > 0);
    strict(1e-16).minimize(&mut plateau, start, &Limits::default(), &mut last).unwrap();
    assert!(at.unwrap() <= 1e-8, "{at:?}");
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
fn a_gradient_of_nan_counts_as_not_here() {
    // The value is finite everywhere and lowest where the gradient is not.
    let mut half = |x: &[f64], g: &mut [f64]| {
        g[0] = if x[0] > 2.0 { f64::NAN } else { 2.0 * (x[0] - 3.0) };
        g[1] = 2.0 * x[1];
        (x[0] - 3.0).powi(2) + x[1] * x[1]
    };
    for method in [strict(1e-8), Adam { rate: 0.1, ..Adam::default() }.into()] {
        let found = method.minimize(&mut half, [0.0, 1.0], &Limits::default(), &mut ()).unwrap();
        assert!(found.theta[0] <= 2.0 && found.theta[0] > 1.9, "{found:?}");
        assert!(found.gradient_norm.is_finite());
    }
}

#[test]
fn a_start_that_is_nowhere_finite_says_so() {
    let mut nowhere = |_: &[f64], _: &mut [f64]| f64::NAN;
    for method in [Optimizer::default(), Adam::default().into()] {
        let found = method.minimize(&mut nowhere, [1.0, 2.0], &Limits::default(), &mut ()).unwrap();
        assert_eq!(found.stop, Stop::NonFiniteStart);
        assert!(!found.stop.converged() && found.stop.to_string().contains("not finite"));
        assert_eq!((found.theta.as_slice(), found.evaluations, found.state), ([1.0, 2.0].as_slice(), 1, None));
    }
}

#[test]
fn everything_but_the_start_may_be_non_finite() {
    let mut island = |x: &[f64], g: &mut [f64]| {
        g[0] = 1.0;
        if x[0] == 0.0 { 5.0 } else { f64::NEG_INFINITY }
    };
    for method in [Optimizer::default(), Adam::default().into()] {
        let found = method.minimize(&mut island, [0.0], &Limits::default(), &mut ()).unwrap();
        assert!(matches!(found.stop, Stop::LineSearch | Stop::NonFinite), "{}", found.stop);
        assert_eq!((found.theta[0], found.value), (0.0, 5.0));
    }
}

/// Waves, quartics, walls, jumps; in one case of four the gradient is wrong.
fn random_objective(seed: u64) -> (impl FnMut(&[f64], &mut [f64]) -> f64, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = rng.random_range(1..12);
    let mut draw = |scale: f64| (0..n).map(|_| scale * (2.0 * rng.random::<f64>() - 1.0)).collect::<Vec<f64>>();
    let (start, linear, wave, quartic) = (draw(2.0), draw(3.0), draw(5.0), draw(1.0));
    let wall = 2.0 + 2.0 * draw(1.0)[0].abs();
    let scale = 10f64.powf(6.0 * draw(1.0)[0]);
    let objective = move |x: &[f64], g: &mut [f64]| {
        let mut value = 0.0;
        for i in 0..x.len() {
            value += linear[i] * x[i] + (wave[i] * x[i]).sin() + quartic[i].abs() * x[i].powi(4);
            g[i] = scale * (linear[i] + wave[i] * (wave[i] * x[i]).cos() + 4.0 * quartic[i].abs() * x[i].powi(3));
            match seed % 4 {
                0 => g[i] = (7.0 * g[i]).sin(),
                1 if x[i] > wall => value = f64::NAN,
                2 if x[i] < -wall => g[i] = f64::INFINITY,
                3 => value += (3.0 * x[i]).floor(),
                _ => {}
            }
        }
        scale * value
    };
    (objective, start)
}

#[test]
fn no_run_ends_worse_than_it_started() {
    let limits = Limits { iterations: 60, ..Limits::default() };
    let mut lower = 0;
    for seed in 0..200 {
        let boxed = Lbfgs { bounds: Bounds::All(-2.0, 1.5), ..Lbfgs::default() };
        for method in [Optimizer::default(), boxed.into(), Adam { rate: 0.1, ..Adam::default() }.into()] {
            let (mut objective, mut start) = random_objective(seed);
            start.iter_mut().for_each(|v| *v = v.min(1.5));
            let at_start = objective(&start, &mut vec![0.0; start.len()]);
            let found = method.minimize(&mut objective, start, &limits, &mut ()).unwrap();
            assert!(found.value <= at_start, "seed {seed}: {} above {at_start}", found.value);
            let again = objective(&found.theta, &mut vec![0.0; found.theta.len()]);
            assert_eq!(again, found.value, "seed {seed}: theta and value belong together");
            lower += usize::from(found.value < at_start);
        }
    }
    assert!(lower > 500, "only {lower} of 600 runs went down at all");
}

/// Keeps the state after one iteration, as a checkpoint file would.
struct Keep {
    at: usize,
    stored: String,
}

impl Observer for Keep {
    fn observe(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if progress.iteration == self.at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn checkpoint(&mut self, state: &State) {
        if state.iterations() == self.at {
            self.stored = serde_json::to_string(state).unwrap();
        }
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

#[test]
fn a_resumed_run_is_equal_in_every_bit() {
    for method in methods() {
        let limits = Limits { iterations: 60, ..Limits::default() };
        let whole = method.minimize(&mut walled, standard_start(6), &limits, &mut ()).unwrap();
        for at in [0, 1, 7, 23] {
            let mut keep = Keep { at, stored: String::new() };
            let part = method.minimize(&mut walled, standard_start(6), &limits, &mut keep).unwrap();
            assert_eq!((part.stop, part.iterations), (Stop::Interrupted, at));
            let state: State = serde_json::from_str(&keep.stored).unwrap();
            let rest = method.minimize(&mut walled, state, &limits, &mut ()).unwrap();
            assert_eq!(rest.state, whole.state);
            assert_eq!((rest.theta, rest.value.to_bits()), (whole.theta.clone(), whole.value.to_bits()));
            assert_eq!((rest.evaluations, rest.stop), (whole.evaluations, whole.stop));
        }
    }
}

#[test]
fn a_run_stopped_within_an_iteration_resumes_equal_too() {
    for method in methods() {
        let limits = Limits { iterations: 40, ..Limits::default() };
        let whole = method.minimize(&mut walled, standard_start(6), &limits, &mut ()).unwrap();
        for evaluations in 1..30 {
            let short = Limits { evaluations, ..limits.clone() };
            let part = method.minimize(&mut walled, standard_start(6), &short, &mut ()).unwrap();
            let rest = method.minimize(&mut walled, part.state.unwrap(), &limits, &mut ()).unwrap();
            assert_eq!(rest.state, whole.state);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let limits = Limits { iterations: 5, ..Limits::default() };
    let state = Optimizer::default().minimize(&mut rosenbrock, standard_start(4), &limits, &mut ()).unwrap().state;
    let state = state.unwrap();
    let resume = |method: Optimizer, state: State| method.minimize(&mut rosenbrock, state, &limits, &mut ());
    let error = resume(Adam::default().into(), state.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Option { option: "optimizer", .. }));
    let boxed = Lbfgs { bounds: Bounds::All(5.0, 6.0), ..Lbfgs::default() };
    assert!(matches!(resume(boxed.into(), state.clone()).unwrap_err().kind(), ErrorKind::Option { .. }));
    let mut damaged = serde_json::to_value(&state).unwrap();
    damaged["at"]["gradient"].as_array_mut().unwrap().pop();
    let error = resume(Optimizer::default(), serde_json::from_value(damaged).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Size { expected: 4, found: 3, .. }));
}

#[test]
fn options_that_make_no_sense_are_errors() {
    let methods: [Optimizer; 6] = [
        Lbfgs { gradient: -1.0, ..Lbfgs::default() }.into(),
        Lbfgs { window: 0, ..Lbfgs::default() }.into(),
        Lbfgs { bounds: Bounds::Each(vec![(0.0, 1.0)]), ..Lbfgs::default() }.into(),
        Lbfgs { bounds: Bounds::All(1.0, 0.0), ..Lbfgs::default() }.into(),
        Adam { rate: f64::NAN, ..Adam::default() }.into(),
        Adam { beta1: 1.0, ..Adam::default() }.into(),
    ];
    for method in methods {
        let run = method.minimize(&mut rosenbrock, [0.0, 0.0], &Limits::default(), &mut ());
        assert!(run.is_err(), "{method:?}");
    }
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
        let adam: Optimizer = Adam { rate: 0.05, decay, gradient: 1e-7, ..Adam::default() }.into();
        let two = adam.minimize(&mut bowl, start.clone(), &limits, &mut ()).unwrap();
        assert_eq!(two.stop, Stop::Gradient, "{decay:?}");
        assert_near(&one.theta, &two.theta, 1e-7);
    }
}

#[test]
fn adam_leaves_a_wall_with_a_smaller_rate() {
    let mut calls = 0;
    let mut wall = |x: &[f64], g: &mut [f64]| {
        calls += 1;
        g[0] = 2.0 * (x[0] - 1.0);
        if x[0] > 1.01 { f64::INFINITY } else { (x[0] - 1.0).powi(2) }
    };
    let adam: Optimizer = Adam { rate: 0.5, ..Adam::default() }.into();
    let found = adam.minimize(&mut wall, [-3.0], &Limits::default(), &mut ()).unwrap();
    assert!((found.theta[0] - 1.0).abs() < 1e-3, "{found:?}");
    assert_eq!(found.evaluations, calls);
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
        let adam = Adam { rate: 0.05, bounds, ..Adam::default() };
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
    short.minimize(&mut flat, [0.0], &limits, &mut watch).unwrap();
    assert_eq!(seen.len(), 6);
    // The first trial is at most 0.5; the search may lengthen it, tenfold at a time.
    assert!(seen[1][0] >= 0.5, "{seen:?}");
}

#[test]
fn the_limit_of_evaluations_is_exact() {
    for method in methods() {
        for evaluations in 0..40 {
            let mut calls = 0;
            let mut counted = |x: &[f64], g: &mut [f64]| {
                calls += 1;
                walled(x, g)
            };
            let limits = Limits { evaluations, ..Limits::default() };
            let found = method.minimize(&mut counted, standard_start(6), &limits, &mut ()).unwrap();
            assert_eq!((found.stop, found.evaluations), (Stop::Evaluations, evaluations));
            assert_eq!(calls, evaluations);
        }
    }
}

#[test]
fn an_observer_stops_the_run_within_one_iteration() {
    for method in methods() {
        let mut seen = vec![];
        let mut watch = |p: &Progress<'_>| {
            seen.push(p.iteration);
            if p.iteration == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = method.minimize(&mut walled, standard_start(6), &Limits::default(), &mut watch).unwrap();
        assert_eq!((found.stop, found.iterations), (Stop::Interrupted, 3));
        assert_eq!(seen, [0, 1, 2, 3]);
    }
}

#[test]
fn the_interrupt_flag_stops_at_the_next_evaluation() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut calls = 0;
    let mut objective = |x: &[f64], g: &mut [f64]| {
        calls += 1;
        flag.store(calls == 5, Ordering::Relaxed);
        rosenbrock(x, g)
    };
    let limits = Limits { interrupt: Some(flag.clone()), ..Limits::default() };
    let found = Optimizer::default().minimize(&mut objective, standard_start(4), &limits, &mut ()).unwrap();
    assert_eq!((found.stop, found.evaluations), (Stop::Interrupted, 5));
}

#[test]
fn the_limit_of_time_ends_a_slow_run() {
    let mut slow = |x: &[f64], g: &mut [f64]| {
        std::thread::sleep(Duration::from_millis(10));
        rosenbrock(x, g)
    };
    let limits = Limits { time: Some(Duration::from_millis(55)), ..Limits::default() };
    let found = Optimizer::default().minimize(&mut slow, standard_start(20), &limits, &mut ()).unwrap();
    assert_eq!(found.stop, Stop::Time);
    // Sleeps last at least as long as asked.
    assert!(found.evaluations <= 6 && found.seconds >= 0.055, "{found:?}");
}

#[test]
fn the_observer_sees_the_run_as_it_is() {
    let best = RefCell::new(f64::INFINITY);
    let mut watch = |p: &Progress<'_>| {
        let mut g = vec![0.0; p.theta.len()];
        assert_eq!(rosenbrock(p.theta, &mut g), p.value);
        assert_eq!(p.gradient_norm, g.iter().fold(0.0, |m, v| v.abs().max(m)));
        assert!(p.best <= p.value && p.best <= *best.borrow());
        assert!(p.evaluations > p.iteration);
        best.replace(p.best);
        ControlFlow::Continue(())
    };
    let found = strict(1e-8).minimize(&mut rosenbrock, standard_start(4), &Limits::default(), &mut watch).unwrap();
    assert_eq!(found.value, *best.borrow());
}

#[test]
fn little_decrease_ends_a_run() {
    // Quartic bowls flatten out: the gradient alone would take far longer.
    let mut quartic = |x: &[f64], g: &mut [f64]| {
        g[0] = 4.0 * x[0].powi(3);
        2.0 + x[0].powi(4)
    };
    let method: Optimizer = Lbfgs { gradient: 0.0, decrease: 1e-4, ..Lbfgs::default() }.into();
    let found = method.minimize(&mut quartic, [1.0], &Limits::default(), &mut ()).unwrap();
    assert_eq!(found.stop, Stop::Decrease);
    assert!(found.value - 2.0 < 1e-3);
}

#[test]
fn no_parameters_is_a_minimum() {
    let found = lbfgs(&mut |_: &[f64], _: &mut [f64]| 7.0, vec![]);
    assert_eq!((found.stop, found.value, found.evaluations), (Stop::Gradient, 7.0, 1));
}

/// A landscape of many valleys; start 3 is nowhere finite.
fn valleys(i: usize) -> impl FnMut(&[f64], &mut [f64]) -> f64 {
    move |x: &[f64], g: &mut [f64]| {
        let mut value = 0.0;
        for (g, x) in g.iter_mut().zip(x) {
            value += 0.1 * x * x + (3.0 * x).cos();
            *g = 0.2 * x - 3.0 * (3.0 * x).sin();
        }
        if i == 3 { f64::NAN } else { value }
    }
}

fn starts() -> Vec<Start> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    (0..10).map(|_| (0..3).map(|_| 10.0 * rng.random::<f64>() - 5.0).collect::<Vec<f64>>().into()).collect()
}

#[test]
fn restarts_do_not_depend_on_threads_and_keep_their_order() {
    for screening in [vec![], vec![Screening { iterations: 3, keep: 0.4 }, Screening { iterations: 5, keep: 0.2 }]] {
        let restarts = Restarts { screening, ..Restarts::default() };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| restarts.run(starts(), valleys, |_| ()).unwrap())
        };
        let (one, four) = (run(1), run(4));
        assert_eq!(one.len(), 10);
        for (i, (a, b)) in one.iter().zip(&four).enumerate() {
            assert_eq!((&a.theta, a.stop, a.evaluations), (&b.theta, b.stop, b.evaluations));
            assert_eq!(a.stop == Stop::NonFiniteStart, i == 3);
            if restarts.screening.is_empty() && i != 3 {
                let start = starts().remove(i);
                let alone = restarts.optimizer.minimize(&mut valleys(i), start, &Limits::default(), &mut ());
                assert_eq!(alone.unwrap().theta, a.theta);
            }
        }
        let lowest = one.iter().map(|o| o.value).fold(f64::INFINITY, f64::min);
        assert_eq!(one[best(&one).unwrap()].value, lowest);
    }
}

#[test]
fn screening_lets_the_best_go_on() {
    let restarts = Restarts { screening: vec![Screening { iterations: 2, keep: 0.3 }], ..Restarts::default() };
    let found = restarts.run(starts(), valleys, |_| ()).unwrap();
    let short = Restarts { limits: Limits { iterations: 2, ..Limits::default() }, ..Restarts::default() };
    let mut early: Vec<(f64, usize)> =
        short.run(starts(), valleys, |_| ()).unwrap().iter().enumerate().map(|(i, o)| (o.value, i)).collect();
    early.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, i)) in early.into_iter().enumerate() {
        let (stop, iterations) = (found[i].stop, found[i].iterations);
        match i {
            3 => assert_eq!(stop, Stop::NonFiniteStart),
            _ if place < 3 => assert!(stop.converged() && iterations > 2),
            _ => assert_eq!((stop, iterations), (Stop::Screened, 2)),
        }
    }
}

#[test]
fn interrupted_restarts_resume_to_the_same_result() {
    let rounds = vec![Screening { iterations: 3, keep: 0.5 }, Screening { iterations: 5, keep: 0.2 }];
    let restarts = Restarts { screening: rounds, ..Restarts::default() };
    let whole = restarts.run(starts(), valleys, |_| ()).unwrap();
    for at in [1, 3, 4, 6] {
        // As if Ctrl-C came when each start had done this many iterations.
        let watch = |_| {
            move |p: &Progress<'_>| {
                if p.iteration == at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        };
        let part = restarts.run(starts(), valleys, watch).unwrap();
        let again: Vec<Start> =
            part.into_iter().zip(starts()).map(|(o, start)| o.state.map_or(start, Start::from)).collect();
        let rest = restarts.run(again, valleys, |_| ()).unwrap();
        for (a, b) in whole.iter().zip(&rest) {
            assert_eq!((&a.theta, a.stop, a.iterations), (&b.theta, b.stop, b.iterations));
        }
    }
}

#[test]
fn restarts_share_flag_and_time() {
    let interrupt = Some(Arc::new(AtomicBool::new(true)));
    for limits in
        [Limits { interrupt, ..Limits::default() }, Limits { time: Some(Duration::ZERO), ..Limits::default() }]
    {
        let restarts = Restarts { limits, ..Restarts::default() };
        let found = restarts.run(starts(), valleys, |_| ()).unwrap();
        assert!(found.iter().all(|o| matches!(o.stop, Stop::Interrupted | Stop::Time) && o.evaluations == 0));
    }
}

#[test]
fn restarts_that_all_fail_are_an_error_with_a_reason() {
    let found = Restarts::default().run(starts(), |_| valleys(3), |_| ()).unwrap();
    let error = best(&found).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoRestartSucceeded { tried: 10, .. }));
    assert!(error.to_string().contains("not finite at the start"), "{error}");
    assert!(best(&[]).is_err());
}
