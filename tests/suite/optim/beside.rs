//! L-BFGS beside another implementation of it: the same minima from the same starts.

use super::{assert_near, rosenbrock, standard_start, strict};
use basin::{CostFunction, Executor, FirstOrderState, Gradient};
use covary::gp::Exact;
use covary::optim::Limits;
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use std::convert::Infallible;

/// A function with its gradient, as the other one wants it.
struct Problem<F>(F);

impl<F: Fn(&[f64], &mut [f64]) -> f64> CostFunction for Problem<F> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Infallible;
    fn cost(&self, x: &Vec<f64>) -> Result<f64, Infallible> {
        Ok((self.0)(x, &mut vec![0.0; x.len()]))
    }
}

impl<F: Fn(&[f64], &mut [f64]) -> f64> Gradient for Problem<F> {
    type Gradient = Vec<f64>;
    fn gradient(&self, x: &Vec<f64>) -> Result<Vec<f64>, Infallible> {
        let mut gradient = vec![0.0; x.len()];
        (self.0)(x, &mut gradient);
        Ok(gradient)
    }
}

/// Both from the same start to a gradient of 1e-7; they must end at the same place.
fn same_minimum(f: impl Fn(&[f64], &mut [f64]) -> f64 + Copy, start: Vec<f64>, near: f64) {
    let solver = basin::Lbfgs::new().unbounded().with_absolute_gradient_tolerance(Some(1e-7));
    let theirs = Executor::new(Problem(f), solver, FirstOrderState::new(start.clone())).max_iter(2000).run().unwrap();
    let ours = strict(1e-7).minimize(&mut |x: &[f64], g: &mut [f64]| f(x, g), start, &Limits::default(), &mut ());
    let ours = ours.unwrap();
    assert!(ours.stop.converged(), "{}", ours.stop);
    assert!((ours.value - theirs.cost()).abs() < 1e-9 * (1.0 + ours.value.abs()), "{} {}", ours.value, theirs.cost());
    assert_near(&ours.theta, theirs.param(), near);
}

#[test]
fn another_implementation_finds_the_same_minimum_of_rosenbrock() {
    for n in [2, 4, 10] {
        same_minimum(rosenbrock, standard_start(n), 1e-6);
    }
}

#[test]
fn another_implementation_finds_the_same_maximum_of_an_evidence() {
    // A wave and a slope with a little noise that is no noise at all; logarithms of variance, lengthscale and noise.
    let x: Vec<f64> = (0..40).map(|i| i as f64 / 8.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.1 * (37.0 * x).cos()).collect();
    let kernel = Kernel::rbf().bind_to(1).unwrap();
    let program = Program::compile(&kernel, 1).unwrap();
    let inputs = Inputs::new(Points::from_column(&x).unwrap());
    let minus_evidence = |raw: &[f64], gradient: &mut [f64]| {
        let values: Vec<f64> = raw.iter().map(|v| v.exp()).collect();
        let (theta, noise) = values.split_at(values.len() - 1);
        let mut exact = Exact::new(&program, &inputs, &y, Threads::One).unwrap();
        let mut slopes = vec![0.0; theta.len()];
        let (value, in_noise) = exact.gradient(theta, noise[0], &mut slopes).unwrap();
        slopes.push(in_noise);
        gradient.iter_mut().zip(slopes.iter().zip(&values)).for_each(|(g, (s, v))| *g = -s * v);
        -value
    };
    same_minimum(minus_evidence, vec![0.0; kernel.values().len() + 1], 1e-5);
}
