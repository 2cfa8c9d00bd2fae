//! Forecasts of series: those too long to be fitted as a whole, slopes that changed, levels that stepped, years that the calendar knows of.

use crate::kit::rng;
use covary::data::Horizon;
use covary::forecast::Forecaster;
use covary::kernel::Task;
use covary::{Dataset, Fit, Kernel, Model, Points};
use rand::RngExt;
use std::f64::consts::TAU;
use std::io::Write;

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

fn forecast(data: &Dataset, steps: usize) -> Vec<f64> {
    let fit = Fit::new(Kernel::default_network(Task::Series)).restarts(2).iterations(60);
    let fitted = Forecaster::new(fit).horizon(steps).run(data).unwrap();
    fitted.ahead(&Horizon::Steps(steps), &[95.0]).unwrap().mean
}

#[test]
fn a_slope_that_changed_goes_on_where_nothing_repeats() {
    let mut rng = rng(7);
    let level = |t: f64| 50.0 + 2.0 * (t - 30.0).max(0.0);
    let t: Vec<f64> = (0..48).map(f64::from).collect();
    let y = t.iter().map(|&t| level(t) + rng.random_range(-0.7..0.7)).collect();
    let ahead = forecast(&Dataset::new(Points::from_column(&t).unwrap(), y).unwrap(), 12);
    // By 2 a step: kernels with one slope for all of it, or that return to a mean, are far below.
    let grown = ahead[11] - level(47.0);
    assert!((16.0..28.0).contains(&grown), "{ahead:?}");
}

#[test]
fn a_year_goes_on_beside_a_level_that_walks() {
    // Short steps up and down have more power than the year itself.
    let pattern = [0.0, 3.0, -3.0, 6.0, 0.0, 1.5, -6.0, -3.0, 0.0, 3.0, 9.0, -1.5];
    for (seed, n) in [(4, 30), (5, 30), (1, 36)] {
        let (mut rng, mut level) = (rng(seed), 0.0);
        let mut text = String::from("month,value\n");
        for t in 0..n {
            level += rng.random_range(-3.0..3.0);
            text += &format!("{}-{:02},{}\n", 2001 + t / 12, t % 12 + 1, level + pattern[t % 12]);
        }
        let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let ahead = forecast(&Dataset::from_csv(file.path(), "value").unwrap(), 12);
        let about = |v: &[f64]| {
            let mean = v.iter().sum::<f64>() / 12.0;
            v.iter().map(|v| v - mean).collect::<Vec<f64>>()
        };
        let (found, mut truth) = (about(&ahead), about(&pattern));
        truth.rotate_left(n % 12);
        let square: f64 = found.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum();
        // The pattern has a deviation of 4.1; with periods from the periodogram alone 1.9 to 3.3 of it were lost.
        let error = (square / 12.0).sqrt();
        assert!(error < 1.65, "{error}: {ahead:?}");
    }
}

#[test]
fn what_has_stepped_may_step_again() {
    let level = |t: f64| if t < 50.0 { 0.0 } else { 30.0 };
    let x: Vec<f64> = (0..80).map(f64::from).collect();
    let y = x.iter().map(|&t| level(t) + (12.9898 * t).sin()).collect();
    let data = Dataset::new(Points::from_column(&x).unwrap(), y).unwrap();
    let fit = Fit::new("nkn(2 LIN, 2 RBF; Linear2-Product1)".parse().unwrap()).restarts(1).iterations(20);
    let mut model = Forecaster::new(fit).horizon(40).run(&data).unwrap().model;
    let sd = |model: &Model, t: f64| model.predict(&Points::from_column(&[t]).unwrap()).unwrap().variance_y[0].sqrt();
    // One step of 30 in 79: variances of 30² × 39.5/79 after half that time, and no more than 30² beside the fits' own.
    let (near, far) = (sd(&model, 80.0), sd(&model, 118.5));
    assert!(near < 6.0, "{near}");
    assert!((far / (450f64 + near * near).sqrt() - 1.0).abs() < 0.15, "{far}");
    // Samples say the same, and so does the model once it was kept.
    let ahead = Points::from_column(&[118.5]).unwrap();
    let samples = model.sample_y(&ahead, 4_000, 1).unwrap();
    let mean = samples.iter().map(|s| s[0]).sum::<f64>() / 4_000.0;
    let spread = (samples.iter().map(|s| (s[0] - mean).powi(2)).sum::<f64>() / 4_000.0).sqrt();
    assert!((spread / far - 1.0).abs() < 0.15, "{spread} {far}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.covary");
    model.save(&file).unwrap();
    assert_eq!(sd(&Model::open(&file).unwrap(), 118.5), far);
    // What has been seen since has not stepped.
    model.append(&ahead, &[30.0]).unwrap();
    assert!(sd(&model, 119.0) < 0.6 * far, "{}", sd(&model, 119.0));
}
