//! What is not finite is backed away from, and no run ends worse than it started.

use std::cell::Cell;
use std::ops::ControlFlow;

use covary::optim::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{assert_near, lbfgs, strict};

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

#[test]
fn adam_goes_back_from_a_wall_with_a_smaller_rate() {
    // The first run past the minimum at 1 meets the wall at 1.3.
    let met = Cell::new(false);
    let mut wall = |x: &[f64], g: &mut [f64]| {
        g[0] = 2.0 * (x[0] - 1.0);
        met.set(x[0] > 1.3);
        if x[0] > 1.3 { f64::INFINITY } else { (x[0] - 1.0).powi(2) }
    };
    let mut returns = 0;
    let mut watch = |p: &Progress<'_>| {
        if met.get() {
            returns += 1;
            assert_eq!(p.value, p.best);
        }
        ControlFlow::Continue(())
    };
    let adam: Optimizer = Adam { rate: 0.3, ..Adam::default() }.into();
    let found = adam.minimize(&mut wall, [-3.0], &Limits::default(), &mut watch).unwrap();
    assert!(returns > 0, "the wall was never met");
    assert!((found.theta[0] - 1.0).abs() < 1e-3, "{found:?}");
}
