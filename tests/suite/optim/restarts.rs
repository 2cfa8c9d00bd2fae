//! Restarts give the same whatever the threads, drop the right starts, and say why others failed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use covary::ErrorKind;
use covary::optim::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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
fn restarts_end_at_one_deadline() {
    let slow = |i: usize| {
        let mut valleys = valleys(i);
        move |x: &[f64], g: &mut [f64]| {
            std::thread::sleep(Duration::from_millis(10));
            valleys(x, g)
        }
    };
    let limits = Limits { time: Some(Duration::from_millis(55)), ..Limits::default() };
    let restarts = Restarts { limits, ..Restarts::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let found = pool.install(|| restarts.run(starts(), slow, |_| ()).unwrap());
    // Sleeps last at least as long as asked.
    assert!(found.iter().map(|o| o.evaluations).sum::<usize>() <= 6);
    assert!(found.iter().any(|o| o.stop == Stop::Time));
}

#[test]
fn nobody_is_dropped_or_goes_on_after_a_round_cut_short() {
    let restarts = Restarts { screening: vec![Screening { iterations: 3, keep: 0.3 }], ..Restarts::default() };
    // Whoever stops start 0 wants to stop it all.
    let watch = |i: usize| {
        move |p: &Progress<'_>| {
            if i == 0 && p.iteration == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let found = restarts.run(starts(), valleys, watch).unwrap();
    assert_eq!(found[0].stop, Stop::Interrupted);
    assert!(found.iter().all(|o| o.stop != Stop::Screened && o.iterations <= 3));
}

#[test]
fn restarts_that_all_fail_are_an_error_with_a_reason() {
    let found = Restarts::default().run(starts(), |_| valleys(3), |_| ()).unwrap();
    let error = best(&found).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoRestartSucceeded { tried: 10, .. }));
    assert!(error.to_string().contains("not finite at the start"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("starting values")), "{error:?}");
    assert!(best(&[]).is_err());
    let late = Restarts { limits: Limits { time: Some(Duration::ZERO), ..Limits::default() }, ..Restarts::default() };
    let error = best(&late.run(starts(), |_| valleys(3), |_| ()).unwrap()).unwrap_err();
    assert_eq!(error.hint(), Some("allow more time"), "{error:?}");
}
