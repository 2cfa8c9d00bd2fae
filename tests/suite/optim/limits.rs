//! Limits are kept, observers are heard, senseless options are refused.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use covary::optim::*;

use super::{methods, rosenbrock, standard_start, strict, walled};

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
