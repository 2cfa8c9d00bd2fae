//! Averages over a table: who counts how much at a point, and rows that are there more than once.

use crate::kit::rng;
use crate::learning::fit;
use covary::{Dataset, Fit, Kernel, Model, Points};
use rand::RngExt;

/// Within the data members count by their weights; far beyond, those count most whose prior does not grow.
#[test]
fn members_that_run_away_count_less_beyond_the_data() {
    let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 10.0).collect();
    let y = x.iter().map(|x| (2.0 * x).sin() + 0.2 * x * x).collect();
    let data = Dataset::new(Points::from_column(&x).unwrap(), y).unwrap();
    let polynomial: Kernel = "LIN * LIN * LIN + RBF".parse().unwrap();
    let fit = Fit::new(polynomial).restarts(1).iterations(40).rivals(vec![Kernel::matern52()]);
    let model = fit.run(&data).unwrap();
    assert_eq!(model.members().len(), 2, "{:?}", model.account().candidates);
    let share = |x: f64| {
        let told = model.distribution(&Points::from_column(&[x]).unwrap()).unwrap();
        let all: f64 = told[0].parts.iter().map(|p| p.weight).sum();
        assert!((all - 1.0).abs() < 1e-12);
        let calm = model.members().iter().position(|m| m.kernel().to_string().starts_with("MAT52")).unwrap();
        told[0].parts[calm].weight
    };
    let own = model.members().iter().find(|m| m.kernel().to_string().starts_with("MAT52")).unwrap().weight();
    assert!((share(2.0) - own).abs() < 0.1, "{own} {}", share(2.0));
    assert!(share(8.0) > own && share(100.0) > share(8.0) && share(100.0) > 0.99, "{own} {}", share(100.0));
    // Where a polynomial overflows, the others still answer.
    let beyond = Points::from_column(&[1e90, 1e120]).unwrap();
    let (whole, quick) = (model.predict(&beyond).unwrap().mean, model.mean(&beyond).unwrap());
    assert!(whole.iter().chain(&quick).all(|m| m.is_finite()), "{whole:?} {quick:?}");
    // The quick way to the mean is the same mean.
    let far = Points::from_column(&[1.0, 5.0, 30.0]).unwrap();
    let (whole, quick) = (model.predict(&far).unwrap().mean, model.mean(&far).unwrap());
    assert!(whole.iter().zip(&quick).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0)), "{whole:?} {quick:?}");
    // So it is after a file.
    let again = Model::from_bytes(&model.to_bytes().unwrap(), std::path::Path::new("m")).unwrap();
    assert_eq!(again.mean(&far).unwrap(), quick);
}

/// Two members, rough ones, so that every row tells something.
fn two() -> (Points, Model) {
    let mut rng = rng(11);
    let rows: Vec<[f64; 2]> = (0..36).map(|_| [rng.random_range(-2.0..2.0), rng.random_range(0.0..5.0)]).collect();
    let y = rows.iter().map(|r| (2.0 * r[0]).sin() + 0.3 * r[1] + 0.1 * rng.random_range(-1.0..1.0)).collect();
    let data = Dataset::new(Points::from_rows(&rows).unwrap(), y).unwrap();
    let rivals = vec!["MAT32".parse().unwrap()];
    let model = Fit::new("MAT12".parse().unwrap()).restarts(1).iterations(30).rivals(rivals).run(&data).unwrap();
    assert_eq!(model.members().len(), 2, "{:?}", model.account().candidates);
    (data.x().clone(), model)
}

/// Shares go by weights over deviations, each relative to what is typical of the member: by a slow formula, of few rows, of which
/// all are looked at.
#[test]
fn who_is_less_sure_counts_less() {
    let (x, model) = two();
    let told = |points: &Points| model.distribution(points).unwrap();
    let sd =
        |points: &Points, m: usize| -> Vec<f64> { told(points).iter().map(|t| t.parts[m].variance.sqrt()).collect() };
    let typical = |m: usize| (sd(&x, m).iter().map(|s| s.ln()).sum::<f64>() / 36.0).exp();
    let at = Points::from_rows(&[[0.1, 2.0], [2.5, 6.0], [9.0, -20.0]]).unwrap();
    let (sure, typical): (Vec<_>, Vec<_>) = (0..2).map(|m| (sd(&at, m), typical(m))).unzip();
    for (i, said) in told(&at).iter().enumerate() {
        let own: Vec<f64> = (0..2).map(|m| model.members()[m].weight() * typical[m] / sure[m][i]).collect();
        let share = own[0] / (own[0] + own[1]);
        // Variances are differences of larger numbers, from rows in another order.
        assert!((said.parts[0].weight - share).abs() < 1e-7, "{i}: {} {share}", said.parts[0].weight);
    }
    // They do differ from the weights somewhere.
    let far = told(&at)[2].parts[0].weight;
    assert!((far - model.members()[0].weight()).abs() > 1e-3, "{far} {}", model.members()[0].weight());
}

/// Where rows are appended is no longer far away, and a file of the model says the same.
#[test]
fn what_is_appended_is_within_reach() {
    let (_, mut model) = two();
    let at = Points::from_rows(&[[9.0, -20.0]]).unwrap();
    let share = |m: &Model| m.distribution(&at).unwrap()[0].parts[0].weight;
    let before = share(&model);
    let more: Vec<[f64; 2]> = (0..10).map(|i| [9.0 + 0.01 * f64::from(i), -20.0]).collect();
    model.append(&Points::from_rows(&more).unwrap(), &[1.0; 10]).unwrap();
    assert!((share(&model) - before).abs() > 1e-3, "{before} {}", share(&model));
    let again = Model::from_bytes(&model.to_bytes().unwrap(), "m".as_ref()).unwrap();
    assert_eq!(share(&again), share(&model));
}

/// Copies of noisy rows agree to the last digit, as if there were no noise.
#[test]
fn copied_rows_do_not_make_the_curve_follow_every_row() {
    let mut rng = rng(3);
    let mut rows: Vec<[f64; 2]> =
        (0..90).map(|_| [rng.random_range(-2.0..2.0), rng.random_range(-2.0..2.0)]).collect();
    let truth = |r: &[f64; 2]| (1.5 * r[0]).sin() + 0.5 * r[1];
    let mut y: Vec<f64> = rows.iter().map(|r| truth(r) + 0.8 * rng.random_range(-1.0..1.0)).collect();
    let once = Dataset::new(Points::from_rows(&rows).unwrap(), y.clone()).unwrap();
    for i in 0..18 {
        rows.push(rows[5 * i]);
        y.push(y[5 * i]);
    }
    let copied = Dataset::new(Points::from_rows(&rows).unwrap(), y).unwrap();
    let at: Vec<[f64; 2]> = (0..200).map(|_| [rng.random_range(-2.0..2.0), rng.random_range(-2.0..2.0)]).collect();
    let points = Points::from_rows(&at).unwrap();
    let error = |fit: Fit, data: &Dataset| {
        let mean = fit.run(data).unwrap().mean(&points).unwrap();
        (mean.iter().zip(&at).map(|(m, r)| (m - truth(r)).powi(2)).sum::<f64>() / 200.0).sqrt()
    };
    let names = |data: &Dataset| -> Vec<String> {
        fit().run(data).unwrap().account().candidates.iter().map(|c| c.kernel.clone()).collect()
    };
    assert!(names(&copied).iter().all(|k| k.starts_with("nkn") || k.contains("l=0.0001!")), "{:?}", names(&copied));
    // Rows that share their inputs alone tell what noise there is.
    let differ: Vec<f64> = copied.y().iter().enumerate().map(|(i, y)| if i < 90 { *y } else { y + 0.3 }).collect();
    let apart = Dataset::new(copied.x().clone(), differ).unwrap();
    assert!(names(&apart).iter().all(|k| !k.contains("l=0.0001!")), "{:?}", names(&apart));
    let (clean, ours) = (error(fit(), &once), error(fit(), &copied));
    let plain = error(Fit::new(Kernel::rbf()).restarts(2), &copied);
    assert!(
        ours < 1.25 * clean && plain > 1.5 * clean,
        "once {clean}, copied {ours}, without a term for copies {plain}"
    );
}
