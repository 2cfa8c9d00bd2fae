//! Transforms of the target: the evidence chooses, fits of a transformed target compete with those of the target as it is, and
//! all that is said comes back in the target's own units, whatever they are.

use crate::kit::rng;
use crate::learning::fit;
use covary::fit::{Link, Warp};
use covary::{Dataset, Fit, Kernel, Model, Points};
use rand::RngExt;

/// Rows of one input whose target is a smooth curve with noise, taken through a function.
fn curve(n: usize, through: impl Fn(f64) -> f64) -> Dataset {
    let mut rng = rng(11);
    let x: Vec<f64> = (0..n).map(|i| 8.0 * i as f64 / n as f64).collect();
    let y = x.iter().map(|x| through(x.sin() + 0.3 * x + 0.1 * (rng.random::<f64>() - 0.5))).collect();
    Dataset::new(Points::from_column(&x).unwrap(), y).unwrap()
}

#[test]
fn the_transform_with_the_highest_evidence_is_taken() {
    let fit = Fit::new(Kernel::rbf()).restarts(1).warp(Warp::Auto);
    assert_eq!(fit.run(&curve(80, |z| z)).unwrap().link(), Link::Identity);
    assert_eq!(fit.run(&curve(80, |z| (2.0 * z).exp())).unwrap().link(), Link::Log);
    // A long tail above, and values of both signs.
    let skewed = curve(80, |z| (1.5 * z).exp() - 4.0);
    let model = fit.run(&skewed).unwrap();
    let Link::YeoJohnson { power, .. } = model.link() else { panic!("{:?}", model.link()) };
    assert!(power < 1.0, "{power}");
    assert!(model.account().notes.iter().any(|n| n.contains("yeo_johnson")), "{:?}", model.account().notes);
    // The density of each left-out target in its own units is that of the transformed one with the slope.
    let linked = skewed.clone().map_target(|y| model.link().apply(y)).unwrap();
    let plain = fit.clone().warp(Warp::None).run(&linked).unwrap();
    let slope = skewed.y().iter().map(|&y| model.link().log_jacobian(y)).sum::<f64>() / 80.0;
    let (a, b) = (model.account().loo.log_density, plain.account().loo.log_density + slope);
    assert!((a - b).abs() < 1e-9, "{a} {b}");
    let candidate = &model.account().candidates[0];
    assert!((candidate.loo_log_density - a).abs() < 1e-9, "{} {a}", candidate.loo_log_density);
    // Predictions come back, from a file too.
    let points = Points::from_column(&[1.0, 3.3, 7.7]).unwrap();
    let direct = plain.predict(&points).unwrap();
    for (i, m) in model.distribution(&points).unwrap().iter().enumerate() {
        let median = model.link().undo(direct.mean[i]);
        assert!((m.quantile(0.5) - median).abs() < 1e-9 * median.abs().max(1.0));
    }
    let again = Model::from_bytes(&model.to_bytes().unwrap(), "m".as_ref()).unwrap();
    assert_eq!(again.predict(&points).unwrap(), model.predict(&points).unwrap());
}

#[test]
fn a_transform_follows_the_units_of_the_target() {
    let fit = Fit::new(Kernel::rbf()).restarts(1).warp(Warp::Auto);
    let data = curve(80, |z| (1.5 * z).exp() - 4.0);
    let other = data.clone().map_target(|y| 3e4 * y - 7e4).unwrap();
    let points = Points::from_column(&[0.5, 4.0, 9.0]).unwrap();
    let (a, b) = (fit.run(&data).unwrap(), fit.run(&other).unwrap());
    let (a, b) = (a.predict(&points).unwrap(), b.predict(&points).unwrap());
    for i in 0..3 {
        assert!((3e4 * a.mean[i] - 7e4 - b.mean[i]).abs() < 1e-6 * b.mean[i].abs(), "{} {}", a.mean[i], b.mean[i]);
        assert!((9e8 * a.variance_y[i] - b.variance_y[i]).abs() < 1e-6 * b.variance_y[i]);
    }
}

/// Rows of two inputs whose target is multiplied by noise: its logarithm is as smooth as it gets.
fn skewed(n: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut rng = rng(9);
    let rows: Vec<Vec<f64>> = (0..n).map(|_| vec![rng.random_range(-2.0..2.0), rng.random_range(0.0..3.0)]).collect();
    let y = rows.iter().map(|r| ((1.5 * r[0]).sin() + r[1] + 0.4 * (rng.random::<f64>() - 0.5)).exp()).collect();
    (rows, y)
}

/// By default the target as it is and a power of it are fitted and weighed together, and other units or the mirror image of the
/// target give the same answer.
#[test]
fn a_transform_competes_where_the_evidence_favours_it() {
    let (rows, y) = skewed(130);
    let data = |rows: &[Vec<f64>], y: Vec<f64>| Dataset::new(Points::from_rows(rows).unwrap(), y).unwrap();
    let (train, test) = (data(&rows[..90], y[..90].to_vec()), Points::from_rows(&rows[90..]).unwrap());
    let both = fit().run(&train).unwrap();
    let links: Vec<Link> = both.account().candidates.iter().map(|c| c.transform).collect();
    assert!(
        links.contains(&Link::Identity) && links.iter().any(|l| matches!(l, Link::YeoJohnson { .. })),
        "{links:?}"
    );
    assert!(both.account().notes.iter().any(|n| n.contains("compete")), "{:?}", both.account().notes);
    let density = |m: &Model| -> f64 {
        m.distribution(&test).unwrap().iter().zip(&y[90..]).map(|(said, &y)| said.log_density(y)).sum::<f64>() / 40.0
    };
    let plain = fit().warp(Warp::None).run(&train).unwrap();
    assert!(plain.members().iter().all(|m| m.link() == Link::Identity));
    let (with, without) = (density(&both), density(&plain));
    assert!(with > without + 0.1, "{with} {without}");
    // What is said of rows left out is what the account says: in the target's own units.
    let told = both.account().loo.log_density;
    assert!((told - with).abs() < 0.4, "{told} {with}");

    let p = both.predict(&test).unwrap();
    let quick = both.mean(&test).unwrap();
    for (a, b) in p.mean.iter().zip(&quick) {
        assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{a} {b}");
    }
    for (scale, shift) in [(3e3, -40.0), (-0.02, 7.0)] {
        let other = fit().run(&data(&rows[..90], y[..90].iter().map(|v| scale * v + shift).collect())).unwrap();
        let q = other.predict(&test).unwrap();
        for i in 0..40 {
            let moved = scale * p.mean[i] + shift;
            assert!(
                (q.mean[i] - moved).abs() <= 1e-6 * scale.abs() * p.variance_y[i].sqrt(),
                "{i}: {} {moved}",
                q.mean[i]
            );
            assert!((q.variance_y[i] / (scale * scale * p.variance_y[i]) - 1.0).abs() <= 1e-6);
        }
    }
    let again = Model::from_bytes(&both.to_bytes().unwrap(), "m".as_ref()).unwrap();
    assert_eq!(again.predict(&test).unwrap(), p);
}

/// A transform of many rows is chosen by some of them, which are the same whatever the order of the file.
#[test]
fn a_transform_does_not_depend_on_the_order_of_rows() {
    let (rows, y) = skewed(430);
    let run = |step: usize| {
        let order: Vec<usize> = (0..430).map(|i| (i * step) % 430).collect();
        let x = Points::from_rows(&order.iter().map(|&i| rows[i].clone()).collect::<Vec<_>>()).unwrap();
        let data = Dataset::new(x, order.iter().map(|&i| y[i]).collect()).unwrap();
        let small = Kernel::nkn("LIN, RBF", "Linear2-Product1").unwrap();
        Fit::new(small).rivals(vec![Kernel::rbf()]).restarts(1).iterations(8).run(&data).unwrap()
    };
    let (a, b) = (run(1), run(37));
    assert!(a.account().candidates.iter().any(|c| c.transform != Link::Identity));
    let test = Points::from_rows(&[[0.3, 1.0], [-1.5, 2.0]]).unwrap();
    let (a, b) = (a.predict(&test).unwrap(), b.predict(&test).unwrap());
    for i in 0..2 {
        assert!((a.mean[i] - b.mean[i]).abs() <= 1e-6 * a.mean[i].abs(), "{} {}", a.mean[i], b.mean[i]);
    }
}

/// An expression that was asked for, known noise, very few rows and targets of few values are left as they are; so is the choice
/// where the time is over.
#[test]
fn a_transform_does_not_compete_unasked_elsewhere() {
    let (rows, y) = skewed(60);
    let data = |n: usize| Dataset::new(Points::from_rows(&rows[..n]).unwrap(), y[..n].to_vec()).unwrap();
    let known = data(60).with_noise(vec![0.01; 60]).unwrap();
    let coarse = data(60).map_target(|y| y.log2().round()).unwrap();
    let model = fit().run(&coarse).unwrap();
    assert!(model.account().candidates.iter().all(|c| c.transform == Link::Identity), "{:?}", model.account());
    let stopped = fit().run_observed(&data(60), |_| std::ops::ControlFlow::Break(())).unwrap();
    assert!(stopped.account().candidates.iter().all(|c| c.transform == Link::Identity), "{:?}", stopped.account());
    let expression = Fit::new(Kernel::rbf()).restarts(1);
    for model in
        [expression.run(&data(60)), fit().run(&known), fit().run(&data(20)), fit().rivals(vec![]).run(&data(60))]
    {
        let model = model.unwrap();
        assert!(model.account().candidates.iter().all(|c| c.transform == Link::Identity), "{:?}", model.account());
    }
}

#[test]
fn transforms_that_cannot_be_are_refused() {
    let fit = Fit::new(Kernel::rbf()).restarts(1);
    let negative = curve(40, |z| z - 2.0);
    let error = fit.clone().warp(Warp::By(Link::Log)).run(&negative).unwrap_err();
    assert!(error.to_string().contains("transform"), "{error}");
    let noisy = curve(40, f64::exp).with_noise(vec![0.01; 40]).unwrap();
    assert!(fit.clone().warp(Warp::By(Link::Log)).run(&noisy).is_err());
    assert_eq!(fit.warp(Warp::Auto).run(&noisy).unwrap().link(), Link::Identity);
}
