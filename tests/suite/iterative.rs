//! The iterative process tends to the exact one, and its models are models like any other.

use crate::kit::{random_points, rng, with_random_values};
use covary::fit::{Method, Model};
use covary::gp::{Effort, Exact, Iterative, IterativePosterior, Posterior};
use covary::kernel::Task;
use covary::program::{Inputs, Program};
use covary::{Dataset, Fit, Kernel, Points, Threads};
use rand::RngExt;
use std::path::Path;

fn targets(x: &Points, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..x.n()).map(|i| (2.0 * x.column(0)[i]).sin() + 0.3 * rng.random_range(-1.0..1.0)).collect()
}

struct Case {
    program: Program,
    theta: Vec<f64>,
    x: Points,
    y: Vec<f64>,
}

fn case(kernel: &Kernel, n: usize) -> Case {
    let kernel = kernel.bind_to(2).unwrap();
    let x = random_points(n, 2, 1);
    let y = targets(&x, 2);
    Case { program: Program::compile(&kernel, 2).unwrap(), theta: kernel.values(), x, y }
}

const NOISE: f64 = 0.05;

/// Value, gradient, slope in the noise: of the exact process, and with some effort.
fn both(case: &Case, effort: Effort) -> [(f64, Vec<f64>); 2] {
    let inputs = Inputs::without_lags(case.x.clone());
    let mut exact = Exact::new(&case.program, &inputs, &case.y, Threads::All).unwrap();
    let mut iterative = Iterative::new(&case.program, &case.x, &case.y, effort, Threads::All).unwrap();
    let mut gradients = [vec![0.0; case.theta.len()], vec![0.0; case.theta.len()]];
    let (value, slope) = exact.gradient(&case.theta, NOISE, &mut gradients[0]).unwrap();
    let (estimate, estimated) = iterative.gradient(&case.theta, NOISE, &mut gradients[1]).unwrap();
    gradients[0].push(slope);
    gradients[1].push(estimated);
    let [a, b] = gradients;
    [(value, a), (estimate, b)]
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let (gap, all) = a.iter().zip(b).fold((0.0, 0.0), |(g, s), (a, b)| (g + (a - b).powi(2), s + a * a));
    (gap / all).sqrt()
}

fn networks() -> [Kernel; 3] {
    let white = "RBF(l=0.7) + WN(v=0.1)".parse().unwrap();
    [Kernel::rbf(), with_random_values(&Kernel::default_network(Task::Table), 2, 5), white]
}

#[test]
fn with_all_the_effort_it_is_exact() {
    for kernel in networks() {
        let case = case(&kernel, 150);
        let effort = Effort { tolerance: 1e-12, rank: 150, probes: 3, ..Effort::default() };
        let [(value, gradient), (estimate, estimated)] = both(&case, effort);
        // Of a pivot's own white noise the preconditioner does not know: then it is not the matrix itself.
        let tolerance = if kernel.tells_rows_apart() { 0.02 } else { 1e-5 };
        assert!((value - estimate).abs() < tolerance * (1.0 + value.abs()), "{kernel}: {value} {estimate}");
        assert!(distance(&gradient, &estimated) < tolerance, "{kernel}: {gradient:?} {estimated:?}");
    }
}

#[test]
fn estimates_are_close_over_several_blocks_and_repeat() {
    for kernel in networks() {
        let case = case(&kernel, 1100);
        let effort = Effort { tolerance: 1e-3, rank: 150, probes: 16, ..Effort::default() };
        let [(value, gradient), (estimate, estimated)] = both(&case, effort);
        assert!((value - estimate).abs() < 0.02 * value.abs(), "{kernel}: {value} {estimate}");
        assert!(distance(&gradient, &estimated) < 0.02, "{kernel}: {}", distance(&gradient, &estimated));
        assert_eq!(both(&case, effort)[1], (estimate, estimated));
    }
}

#[test]
fn weights_tend_to_the_exact_ones_as_the_tolerance_shrinks() {
    for kernel in networks() {
        let case = case(&kernel, 300);
        let (theta, x, y) = (case.theta.clone(), case.x.clone(), case.y.clone());
        let exact = Posterior::new(case.program.clone(), theta, NOISE, x, y, None).unwrap();
        let error = |tolerance: f64| {
            let effort = Effort { tolerance, rank: 5, steps: 2000, ..Effort::default() };
            let mut iterative = Iterative::new(&case.program, &case.x, &case.y, effort, Threads::All).unwrap();
            let alpha = iterative.alpha(&case.theta, NOISE).unwrap();
            assert!(iterative.residual <= tolerance, "{kernel}: {}", iterative.residual);
            distance(exact.alpha(), &alpha)
        };
        let (rough, fine, finest) = (error(1e-1), error(1e-5), error(1e-10));
        assert!(rough > fine && fine > finest && finest < 1e-8, "{kernel}: {rough} {fine} {finest}");
    }
}

#[test]
fn its_predictions_are_those_of_the_exact_process() {
    let case = case(&Kernel::rbf(), 400);
    let (theta, x, y) = (case.theta.clone(), &case.x, &case.y);
    let exact = Posterior::new(case.program.clone(), theta.clone(), NOISE, x.clone(), y.clone(), None).unwrap();
    let effort = Effort { tolerance: 1e-10, ..Effort::default() };
    let ours = IterativePosterior::new(case.program.clone(), theta, NOISE, x, y, effort).unwrap();
    let at = random_points(30, 2, 9);
    let (a, b) = (exact.predict(&at).unwrap(), ours.predict(&at).unwrap());
    for i in 0..30 {
        assert!((a.mean[i] - b.mean[i]).abs() < 1e-6, "{} {}", a.mean[i], b.mean[i]);
        assert!((a.variance_f[i] - b.variance_f[i]).abs() < 1e-3 * NOISE, "{} {}", a.variance_f[i], b.variance_f[i]);
    }
}

#[test]
fn an_iterative_model_predicts_and_survives_its_file() {
    let x = random_points(500, 2, 4);
    let data = Dataset::new(x.clone(), targets(&x, 5)).unwrap();
    let fit = Fit::new(Kernel::rbf()).restarts(1).iterations(3).method(Method::Iterative);
    let model = fit.run(&data).unwrap();
    assert_eq!((model.account().method.as_str(), model.n()), ("iterative", 500));
    let again = Model::from_bytes(&model.to_bytes().unwrap(), Path::new("m")).unwrap();
    let at = random_points(20, 2, 6);
    assert_eq!(model.predict(&at).unwrap(), again.predict(&at).unwrap());
    assert_eq!(model.sample(&at, 2, 0).unwrap(), again.sample(&at, 2, 0).unwrap());
    let exact = Fit::new(Kernel::rbf()).restarts(1).method(Method::Exact).run(&data).unwrap();
    let (a, b) = (model.mean(&at).unwrap(), exact.mean(&at).unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 0.1), "{a:?} {b:?}");
    let (a, b) = (model.account().log_marginal_likelihood, exact.account().log_marginal_likelihood);
    assert!((a - b).abs() < 5.0, "{a} {b}");
}

#[test]
fn efforts_that_make_no_sense_are_refused() {
    let case = case(&Kernel::rbf(), 20);
    let bad = Effort { probes: 0, ..Effort::default() };
    assert!(Iterative::new(&case.program, &case.x, &case.y, bad, Threads::One).is_err());
    let mut fine = Iterative::new(&case.program, &case.x, &case.y, Effort::default(), Threads::One).unwrap();
    assert!(fine.alpha(&case.theta, 0.0).is_err() && fine.alpha(&case.theta, f64::NAN).is_err());
    assert!(Iterative::new(&case.program, &case.x, &case.y[1..], Effort::default(), Threads::One).is_err());
}
