//! Series that are too long to be fitted as a whole.

use crate::kit::rng;
use covary::forecast::Forecaster;
use covary::kernel::Task;
use covary::{Dataset, Fit, Kernel, Points};
use rand::RngExt;
use std::f64::consts::TAU;

/// Hours with a day and a week, and what they are without noise.
fn hours(n: usize) -> (Dataset, impl Fn(f64) -> f64) {
    let mut rng = rng(4);
    let truth = |t: f64| {
        let evening = 30.0 * (-((t % 24.0 - 19.0) / 3.0).powi(2)).exp();
        evening + 10.0 * (TAU * t / 24.0).sin() - if t % 168.0 < 48.0 { 12.0 } else { 0.0 }
    };
    let t: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let y = t.iter().map(|&t| truth(t) + 6.0 * (rng.random::<f64>() + rng.random::<f64>() - 1.0)).collect();
    (Dataset::new(Points::from_column(&t).unwrap(), y).unwrap(), truth)
}

#[test]
fn a_long_series_is_learned_from_some_of_its_rows_and_goes_on_from_more() {
    let (data, truth) = hours(6000);
    let fit = Fit::new(Kernel::default_network(Task::Series)).restarts(3).iterations(100);
    let fitted = Forecaster::new(fit).horizon(168).run(&data).unwrap();
    assert_eq!(fitted.model.n(), 2000);
    let said = "kernels were learned from 300 of 6000 rows, and forecasts go on from 2000";
    assert!(fitted.notes.iter().any(|n| n.starts_with(said)), "{:?}", fitted.notes);
    let times: Vec<f64> = (6000..6168).map(f64::from).collect();
    let ahead = fitted.at(times.clone(), vec![String::new(); times.len()], &[95.0]).unwrap();
    let square: f64 = times.iter().zip(&ahead.mean).map(|(&t, m)| (m - truth(t)).powi(2)).sum();
    // The noise has a deviation of 2.4, what repeats one of 13.
    let error = (square / times.len() as f64).sqrt();
    assert!(error < 1.5, "{error}");
    let kept = fitted.rolling.unwrap();
    assert!(kept.origins == 3 && kept.coverage_95 > 0.85, "{kept:?}");
}

#[test]
fn a_kernel_of_ones_own_learns_from_all_rows_that_are_seen() {
    let (data, _) = hours(2500);
    let fit = Fit::new("PER + RBF".parse().unwrap()).restarts(1).iterations(3);
    let fitted = Forecaster::new(fit).horizon(24).run(&data).unwrap();
    assert_eq!(fitted.model.n(), 2000);
    assert!(fitted.notes.iter().any(|n| n.starts_with("2000 of 2500 rows were used")), "{:?}", fitted.notes);
}
