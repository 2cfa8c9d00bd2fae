//! What a fit promises whatever the data: units and the order of rows do not matter, equal rows merge exactly, averages
//! are honest, models of older versions open.

use crate::kit::rng;
use covary::fit::{Link, Priors};
use covary::forecast::Forecaster;
use covary::gp::{Exact, Posterior, Repeats};
use covary::kernel::{Param, Role};
use covary::program::{Inputs, Program};
use covary::{Dataset, Fit, Kernel, Model, Points, Threads};
use rand::RngExt;

fn waves(n: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut rng = rng(5);
    let rows: Vec<Vec<f64>> = (0..n).map(|_| vec![rng.random_range(-2.0..2.0), rng.random_range(0.0..5.0)]).collect();
    let y = rows.iter().map(|r| (2.0 * r[0]).sin() + 0.3 * r[1] + 0.1 * rng.random_range(-1.0..1.0)).collect();
    (rows, y)
}

/// A small network, quickly fitted.
pub fn fit() -> Fit {
    let network = Kernel::nkn("LIN, RBF, RQ", "Linear4-Product2-Linear1").unwrap();
    Fit::new(network).restarts(2).iterations(60)
}

#[test]
fn units_and_the_order_of_rows_do_not_matter() {
    let (rows, y) = waves(60);
    let test = [[0.3, 1.0], [-1.5, 4.0], [2.5, 5.5]];
    let data = |rows: &[Vec<f64>], y: &[f64]| Dataset::new(Points::from_rows(rows).unwrap(), y.to_vec()).unwrap();
    let plain = fit().run(&data(&rows, &y)).unwrap().predict(&Points::from_rows(&test).unwrap()).unwrap();

    let (a, b) = (37.5, -1200.0);
    let other: Vec<f64> = y.iter().map(|v| a * v + b).collect();
    let moved: Vec<Vec<f64>> = rows.iter().map(|r| vec![1e3 * r[0] - 7.0, 0.01 * r[1] + 3.0]).collect();
    let moved_test: Vec<Vec<f64>> = test.iter().map(|r| vec![1e3 * r[0] - 7.0, 0.01 * r[1] + 3.0]).collect();
    let scaled = fit().run(&data(&moved, &other)).unwrap().predict(&Points::from_rows(&moved_test).unwrap()).unwrap();
    for i in 0..test.len() {
        assert!((scaled.mean[i] - (a * plain.mean[i] + b)).abs() <= 1e-6 * a, "{scaled:?} {plain:?}");
        assert!((scaled.variance_y[i] / (a * a * plain.variance_y[i]) - 1.0).abs() <= 1e-6);
    }

    let order: Vec<usize> = (0..60).map(|i| (i * 37) % 60).collect();
    let shuffled = fit().run(&data(
        &order.iter().map(|&i| rows[i].clone()).collect::<Vec<_>>(),
        &order.iter().map(|&i| y[i]).collect::<Vec<_>>(),
    ));
    let shuffled = shuffled.unwrap().predict(&Points::from_rows(&test).unwrap()).unwrap();
    for i in 0..test.len() {
        assert!((shuffled.mean[i] - plain.mean[i]).abs() <= 1e-6, "{shuffled:?} {plain:?}");
        assert!((shuffled.variance_y[i] / plain.variance_y[i] - 1.0).abs() <= 1e-6);
    }
}

/// Evidence, its slopes and leave-one-out predictions of merged rows are those of all rows.
#[test]
fn equal_rows_merge_exactly() {
    let (mut rows, mut y) = waves(20);
    for i in [3, 3, 7, 12] {
        rows.push(rows[i].clone());
        y.push(y[i] + 0.3 * (i as f64).cos() + 0.1 * y.len() as f64);
    }
    let x = Points::from_rows(&rows).unwrap();
    let merged = Repeats::merge(&x, &y).expect("four rows repeat");
    assert_eq!((merged.rows.len(), merged.repeats.rows()), (20, 24));
    let kernel: Kernel = "RBF + LIN".parse::<Kernel>().unwrap().bind_to(2).unwrap();
    let (program, theta, noise) = (Program::compile(&kernel, 2).unwrap(), kernel.values(), 0.07);
    let (all, few) = (Inputs::new(x.clone()), Inputs::new(x.select(&merged.rows)));
    let mut whole = Exact::new(&program, &all, &y, Threads::One).unwrap();
    let part = Exact::new(&program, &few, &merged.y, Threads::One).unwrap();
    let mut part = part.with_repeats(&merged.repeats).unwrap();
    let (mut g, mut h) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    let (value, slope, loo) = whole.gradient_and_loo(&theta, noise, &mut g).unwrap();
    let (merged_value, merged_slope, merged_loo) = part.gradient_and_loo(&theta, noise, &mut h).unwrap();
    assert!((value - merged_value).abs() < 1e-9 * value.abs(), "{value} {merged_value}");
    assert!((slope - merged_slope).abs() < 1e-8 * slope.abs(), "{slope} {merged_slope}");
    for (a, b) in g.iter().zip(&h) {
        assert!((a - b).abs() < 1e-8 * a.abs().max(1.0), "{g:?} {h:?}");
    }
    assert!(
        (loo.log_density - merged_loo.log_density).abs() < 1e-9,
        "{} {}",
        loo.log_density,
        merged_loo.log_density
    );
    assert!((loo.rmse - merged_loo.rmse).abs() < 1e-9);
    let (again, other) = part.leave_one_out(&theta, noise).unwrap();
    assert!((again - value).abs() < 1e-9 * value.abs() && (other.rmse - loo.rmse).abs() < 1e-9);

    // A whole fit sees the same likelihood, and says what it did.
    let data = Dataset::new(x, y).unwrap();
    let model = Fit::new(Kernel::rbf()).restarts(1).iterations(30).run(&data).unwrap();
    assert!(model.account().notes.iter().any(|n| n.contains("4 rows have the inputs of another")));
    assert_eq!(model.n(), 20);
    // White noise tells equal rows apart: nothing is merged then.
    let apart = Fit::new("RBF + WN".parse().unwrap()).restarts(1).iterations(5).run(&data).unwrap();
    assert_eq!(apart.n(), 24);
}

#[test]
fn an_average_is_a_mixture_of_its_members() {
    let (rows, y) = waves(40);
    let data = Dataset::new(Points::from_rows(&rows).unwrap(), y).unwrap();
    let one = |kernel: Kernel| Fit::new(kernel).restarts(1).iterations(30).run(&data).unwrap();
    let (a, b) = (one(Kernel::rbf()), one(Kernel::matern52()));
    let at = Points::from_rows(&[[0.1, 2.0], [3.0, 6.0]]).unwrap();
    let (pa, pb) = (a.predict(&at).unwrap(), b.predict(&at).unwrap());
    let both = Model::average(vec![(a, 3.0), (b, 1.0)]).unwrap();
    let p = both.predict(&at).unwrap();
    for i in 0..2 {
        let mean = 0.75 * pa.mean[i] + 0.25 * pb.mean[i];
        let second = 0.75 * (pa.variance_y[i] + pa.mean[i].powi(2)) + 0.25 * (pb.variance_y[i] + pb.mean[i].powi(2));
        assert!((p.mean[i] - mean).abs() < 1e-12);
        assert!((p.variance_y[i] - (second - mean * mean)).abs() < 1e-10);
    }
    assert_eq!(both.mean(&at).unwrap().len(), 2);
    let bytes = both.to_bytes().unwrap();
    let back = Model::from_bytes(&bytes, "mixture".as_ref()).unwrap();
    assert_eq!(back.predict(&at).unwrap(), p);
    assert_eq!(back.to_bytes().unwrap(), bytes);
    let samples = both.sample_y(&at, 400, 1).unwrap();
    let middle = samples.iter().map(|s| s[0]).sum::<f64>() / 400.0;
    assert!((middle - p.mean[0]).abs() < 5.0 * (p.variance_y[0] / 400.0).sqrt());
}

/// Restarts that end far below the best one are not averaged with it.
#[test]
fn starts_that_are_stuck_are_left_out() {
    let x: Vec<f64> = (0..60).map(|i| f64::from(i) * 0.1).collect();
    let y: Vec<f64> = x.iter().map(|x| (2.0 * x).sin()).collect();
    let data = Dataset::new(Points::from_column(&x).unwrap(), y).unwrap();
    // Few steps, so that starts end far from each other.
    let model = Fit::new(Kernel::rbf()).restarts(6).iterations(3).run(&data).unwrap();
    let account = model.account();
    let values: Vec<f64> = account.restarts.iter().filter_map(|r| r.objective).collect();
    let spread = |v: &[f64]| v.iter().copied().fold(f64::MIN, f64::max) - v.iter().copied().fold(f64::MAX, f64::min);
    let kept: Vec<f64> = account.candidates.iter().map(|c| c.log_marginal_likelihood).collect();
    assert!(values.len() == 6 && spread(&values) > 20.0, "{values:?}");
    assert!(!kept.is_empty() && kept.len() < 6 && spread(&kept) <= 20.0, "{kept:?}");
}

/// A plain kernel wins where the network has nothing to add, and the account says so.
#[test]
fn the_account_names_who_competed() {
    let (rows, y) = waves(40);
    let data = Dataset::new(Points::from_rows(&rows).unwrap(), y).unwrap();
    let model = fit().run(&data).unwrap();
    let account = model.account();
    let names: Vec<&str> = account.candidates.iter().map(|c| c.kernel.as_str()).collect();
    assert!(names.contains(&"RBF") && names.contains(&"MAT52"), "{names:?}");
    assert!((account.candidates.iter().map(|c| c.weight).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(account.loo.crps > 0.0 && account.loo.interval_score_95 > 0.0);
    let alone = fit().rivals(vec![]).members(1).priors(Priors::Off).run(&data).unwrap();
    assert_eq!(alone.members().len(), 1);
    assert_eq!(alone.link(), Link::Identity);
}

/// What is said of a block of rows is what a process says that has not seen them.
#[test]
fn blocks_are_predicted_from_the_other_rows() {
    let (rows, y) = waves(30);
    let kernel: Kernel = "RBF + LIN".parse::<Kernel>().unwrap().bind_to(2).unwrap();
    let (theta, noise) = (kernel.values(), 0.07);
    let program = Program::compile(&kernel, 2).unwrap();
    let x = Inputs::new(Points::from_rows(&rows).unwrap());
    let mut exact = Exact::new(&program, &x, &y, Threads::One).unwrap();
    let blocks = [vec![17], vec![4, 0, 29, 11, 12]];
    let (value, loo, told) = exact.leave_out(&theta, noise, &blocks).unwrap();
    assert!((value - exact.evidence(&theta, noise).unwrap()).abs() < 1e-9 * value.abs());
    for (block, told) in blocks.iter().zip(told) {
        let told = told.expect("nothing is spoilt here");
        let others: Vec<usize> = (0..30).filter(|i| !block.contains(i)).collect();
        let seen = x.points().select(&others);
        let targets = others.iter().map(|&i| y[i]).collect();
        let direct = Posterior::new(program.clone(), theta.clone(), noise, seen, targets, None).unwrap();
        let direct = direct.predict(&x.points().select(block)).unwrap();
        for i in 0..block.len() {
            assert!((told.mean[i] - direct.mean[i]).abs() < 1e-9, "{told:?} {direct:?}");
            assert!((told.variance[i] / direct.variance_y[i] - 1.0).abs() < 1e-8, "{told:?} {direct:?}");
        }
        if let [row] = block[..] {
            assert!((told.mean[0] - loo.mean[row]).abs() < 1e-10);
        }
    }
}

/// Written before steps of the level were known.
#[test]
fn a_model_of_the_third_version_still_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/files/model-3.covary");
    let model = Model::open(path).unwrap();
    assert_eq!((model.n(), model.members().len()), (16, 2));
    let p = model.predict(&Points::from_column(&[17.0, 22.0, 8.5]).unwrap()).unwrap();
    for (mean, was) in p.mean.iter().zip([0.8892800149709166, -1.7426131391581194, -0.7967356485308339]) {
        assert!((mean - was).abs() < 1e-9, "{mean} {was}");
    }
}

/// Written before members counted less where they are less sure.
#[test]
fn a_model_of_the_sixth_version_still_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/files/model-6.covary");
    let model = Model::open(path).unwrap();
    assert_eq!((model.n(), model.members().len()), (18, 4));
    let p = model.predict(&Points::from_column(&[19.0, 26.0, 8.5]).unwrap()).unwrap();
    for (mean, was) in p.mean.iter().zip([-0.0856475305100799, 2.5225655018988027, -0.4217259671440355]) {
        assert!((mean - was).abs() < 1e-9, "{mean} {was}");
    }
    // Written again, it is what it was.
    let again = Model::from_bytes(&model.to_bytes().unwrap(), path.as_ref()).unwrap();
    assert_eq!(again.predict(&Points::from_column(&[26.0]).unwrap()).unwrap().mean[0], p.mean[1]);
}

/// Written before members counted by where they are asked: predictions are what they were then.
#[test]
fn a_model_of_the_second_version_still_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/files/model-2.covary");
    let model = Model::open(path).unwrap();
    assert_eq!((model.n(), model.members().len()), (24, 4));
    let p = model.predict(&Points::from_column(&[25.0, 30.0, 12.5]).unwrap()).unwrap();
    for (mean, was) in p.mean.iter().zip([1.2867779932768613, 0.8549999166495909, -0.5703285616918976]) {
        assert!((mean - was).abs() < 1e-9, "{mean} {was}");
    }
}

#[test]
fn a_model_of_the_first_version_still_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/files/model-1.covary");
    let model = Model::open(path).unwrap();
    assert_eq!((model.n(), model.members().len()), (30, 1));
    let p = model.predict(&Points::from_column(&[0.0]).unwrap()).unwrap();
    assert!(p.mean[0].is_finite() && p.variance_y[0] > 0.0);
}

/// A step of the level is found, said, part of predictions before and after it, of the file and of what is appended.
#[test]
fn a_step_of_the_level_is_taken_out_and_put_back() {
    let mut rng = rng(3);
    let x: Vec<f64> = (0..96).map(f64::from).collect();
    let truth = |t: f64| 50.0 + 5.0 * (t * std::f64::consts::TAU / 12.0).sin() + if t < 84.0 { 0.0 } else { 30.0 };
    let y: Vec<f64> = x.iter().map(|&t| truth(t) + rng.random::<f64>() - 0.5).collect();
    let data = Dataset::new(Points::from_column(&x).unwrap(), y).unwrap();
    let fit = Fit::new("nkn".parse::<Kernel>().unwrap()).restarts(1).iterations(30);
    let fitted = Forecaster::new(fit).horizon(12).run(&data).unwrap();
    assert!(fitted.notes.iter().any(|n| n.contains("level") && n.contains("84")), "{:?}", fitted.notes);
    let at = [20.5, 83.0, 84.0, 100.0, 107.0];
    let points = Points::from_column(&at).unwrap();
    let p = fitted.model.predict(&points).unwrap();
    for (t, mean) in at.into_iter().zip(&p.mean) {
        assert!((mean - truth(t)).abs() < 3.0, "{t}: {mean}, not {}", truth(t));
    }
    for (quick, mean) in fitted.model.mean(&points).unwrap().iter().zip(&p.mean) {
        assert!((quick - mean).abs() < 1e-9, "{quick} {mean}");
    }
    let mut again = Model::from_bytes(&fitted.model.to_bytes().unwrap(), "m".as_ref()).unwrap();
    assert_eq!(again.predict(&points).unwrap(), p);
    let samples = again.sample(&points, 200, 1).unwrap();
    let mean = samples.iter().map(|s| s[0]).sum::<f64>() / 200.0;
    assert!((mean - truth(20.5)).abs() < 3.0, "{mean}");
    // A new value before the step is one of the old level.
    again.append(&Points::from_column(&[20.5]).unwrap(), &[truth(20.5)]).unwrap();
    let mean = again.predict(&points).unwrap().mean[0];
    assert!((mean - truth(20.5)).abs() < 1.0, "{mean}");
}

#[test]
fn a_fit_that_goes_on_keeps_the_length_of_a_period() {
    let series = |n: i32| {
        let t: Vec<f64> = (0..n).map(f64::from).collect();
        let y = t.iter().map(|t| (t * std::f64::consts::TAU / 12.0).sin() + 0.1 * (t * 0.7).cos()).collect();
        Dataset::new(Points::from_column(&t).unwrap(), y).unwrap()
    };
    let period = |model: &Model| {
        let is_period = |p: &&Param| matches!(p.role(), Role::Period { .. });
        let params = model.kernel().params();
        params.iter().find(is_period).unwrap().value().unwrap() * model.scaling().width(0)
    };
    let fit = Fit::new("PER".parse().unwrap()).restarts(1);
    let short = fit.run(&series(60)).unwrap();
    assert!((period(&short) - 12.0).abs() < 0.2, "{}", period(&short));
    // Nothing is fitted: the longer series is measured as the shorter one was.
    let long = fit.going_on_from(&short, 0).run(&series(100)).unwrap();
    assert!((period(&long) - period(&short)).abs() < 1e-9, "{}", period(&long));
}
