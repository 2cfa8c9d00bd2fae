//! What a model *is*: `check_model` holds the exact process to differences, to appending, to n refits; fits to their
//! account; files to their round trip.

use crate::kit::{random_kernel, random_points, rng, with_random_values};
use covary::gp::{Exact, Posterior};
use covary::linalg::{Cholesky, Matrix, symmetric_eigen};
use covary::program::{Inputs, Program};
use covary::{Dataset, ErrorKind, Fit, Kernel, Model, Points, Threads};
use rand::RngExt;

/// y of n rows: a smooth function of the first column and noise.
fn targets(x: &Points, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    x.column(0).iter().map(|v| (1.5 * v).sin() + 0.3 * rng.random_range(-1.0..1.0)).collect()
}

/// Everything the exact process must be.
fn check_model(kernel: &Kernel, d: usize, seed: u64) {
    let what = kernel.to_string();
    let (n, noise) = (17, 0.2);
    let x = random_points(n, d, seed);
    let y = targets(&x, seed);
    let program = Program::compile(kernel, d).unwrap();
    let theta = kernel.values();
    let inputs = Inputs::new(x.clone());
    let mut exact = Exact::new(&program, &inputs, &y, Threads::One).unwrap();
    let mut gradient = vec![0.0; theta.len()];
    let (value, noise_slope, loo) = exact.gradient_and_loo(&theta, noise, &mut gradient).unwrap();

    // The definition, by eigenvalues: nothing in common with the factorisation.
    let mut k = crate::kit::gram(&program, &theta, &inputs, Threads::One);
    (0..n).for_each(|i| k[(i, i)] += noise);
    let eigen = symmetric_eigen(&k, Threads::One).unwrap();
    let mut slow = -0.5 * n as f64 * (2.0 * std::f64::consts::PI).ln();
    for (j, lambda) in eigen.values.iter().enumerate() {
        let along: f64 = eigen.vectors.column(j).iter().zip(&y).map(|(q, y)| q * y).sum();
        slow -= 0.5 * (lambda.ln() + along * along / lambda);
    }
    assert!((value - slow).abs() <= 1e-8 * slow.abs().max(1.0), "{what}: {value} {slow}");

    // Differences.
    let mut at = |theta: &[f64], noise: f64| exact.evidence(theta, noise).unwrap();
    let size = gradient.iter().fold(value.abs().max(1.0), |m, g| m.max(g.abs()));
    for p in 0..theta.len() {
        let h = 1e-6 * theta[p].abs().max(0.1);
        let mut moved = theta.clone();
        moved[p] = theta[p] + h;
        let plus = at(&moved, noise);
        moved[p] = theta[p] - h;
        let difference = (plus - at(&moved, noise)) / (2.0 * h);
        let tolerance = 1e-6 * (gradient[p].abs() + difference.abs()) + 3e-8 * size;
        assert!((gradient[p] - difference).abs() <= tolerance, "{what}: {p}: {} {difference}", gradient[p]);
    }
    let difference = (at(&theta, noise + 1e-6) - at(&theta, noise - 1e-6)) / 2e-6;
    assert!((noise_slope - difference).abs() <= 1e-6 * size, "{what}: noise {noise_slope} {difference}");

    // Leave-one-out equals n refits.
    for i in 0..n {
        let others: Vec<usize> = (0..n).filter(|&k| k != i).collect();
        let rest = others.iter().map(|&k| y[k]).collect();
        let seen = Posterior::new(program.clone(), theta.clone(), noise, x.select(&others), rest, None).unwrap();
        let p = seen.predict(&x.select(&[i])).unwrap();
        // White noise is part of a new observation, too, through the diagonal of the kernel.
        assert!((p.mean[0] - loo.mean[i]).abs() <= 1e-7 * loo.mean[i].abs().max(1.0), "{what}: loo {i}");
        assert!((p.variance_y[0] - loo.variance[i]).abs() <= 1e-7 * loo.variance[i].max(1.0), "{what}: loo {i}");
    }

    // Appending equals refitting.
    let first: Vec<usize> = (0..12).collect();
    let late: Vec<usize> = (12..n).collect();
    let early = Posterior::new(program.clone(), theta.clone(), noise, x.select(&first), y[..12].to_vec(), None);
    let mut grown = early.unwrap();
    grown.append(&x.select(&late), &y[12..]).unwrap();
    let whole = Posterior::new(program, theta, noise, x, y, None).unwrap();
    let test = random_points(7, d, seed + 1);
    let (a, b) = (grown.predict(&test).unwrap(), whole.predict(&test).unwrap());
    for i in 0..7 {
        assert!((a.mean[i] - b.mean[i]).abs() <= 1e-8 * b.mean[i].abs().max(1.0), "{what}: append");
        assert!((a.variance_f[i] - b.variance_f[i]).abs() <= 1e-8 * b.variance_f[i].max(1.0), "{what}: append");
    }

    // Blocks, means alone and the joint distribution agree.
    let (mean, covariance) = whole.joint(&test).unwrap();
    let alone = whole.mean(&test).unwrap();
    for i in 0..7 {
        assert!((mean[i] - b.mean[i]).abs() <= 1e-10 * b.mean[i].abs().max(1.0));
        assert!((alone[i] - b.mean[i]).abs() <= 1e-10 * b.mean[i].abs().max(1.0));
        let v = covariance[(i, i)];
        assert!((v - b.variance_f[i]).abs() <= 1e-8 * v.abs().max(1.0), "{what}: joint {v} {}", b.variance_f[i]);
    }
}

#[test]
fn the_exact_process_is_what_it_says() {
    for (i, kernel) in crate::kit::every_primitive(2).enumerate() {
        check_model(&kernel, 2, i as u64);
    }
    // Values in the thousands make differences of the evidence meaningless: those kernels are left to `check_kernel`.
    let corner = [2.0; 3];
    let moderate = |seed: &u64| {
        crate::kit::slow(&random_kernel(*seed), &corner[..1 + (*seed % 3) as usize], &corner, true).0 < 200.0
    };
    let seeds: Vec<u64> = (0..80).filter(moderate).collect();
    assert!(seeds.len() > 40);
    for seed in seeds {
        check_model(&random_kernel(seed), 1 + (seed % 3) as usize, seed);
    }
    let network = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1").unwrap();
    check_model(&with_random_values(&network, 1, 3), 1, 3);
}

#[test]
fn samples_have_the_posterior_moments() {
    let kernel = with_random_values(&Kernel::rbf(), 1, 1);
    let x = random_points(10, 1, 5);
    let y = targets(&x, 5);
    let program = Program::compile(&kernel, 1).unwrap();
    let posterior = Posterior::new(program, kernel.values(), 0.1, x, y, None).unwrap();
    let test = Points::from_column(&[-1.0, 0.3, 2.5]).unwrap();
    let p = posterior.predict(&test).unwrap();
    let samples = posterior.sample(&test, 20_000, &mut rng(8)).unwrap();
    for i in 0..3 {
        let mean = samples.iter().map(|s| s[i]).sum::<f64>() / 20_000.0;
        let variance = samples.iter().map(|s| (s[i] - mean).powi(2)).sum::<f64>() / 20_000.0;
        // Five standard errors.
        assert!((mean - p.mean[i]).abs() < 5.0 * (p.variance_f[i] / 20_000.0).sqrt());
        assert!((variance / p.variance_f[i] - 1.0).abs() < 5.0 * (2.0f64 / 20_000.0).sqrt());
    }
}

#[test]
fn equal_bits_of_evidence_for_one_or_more_threads() {
    // Large enough for the factorisation to use a second thread.
    let n = 900;
    let x = random_points(n, 3, 1);
    let y = targets(&x, 1);
    let kernel = with_random_values(&Kernel::paper_regression(), 3, 1);
    let program = Program::compile(&kernel, 3).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let inputs = Inputs::new(x.clone());
            let mut exact = Exact::new(&program, &inputs, &y, Threads::All).unwrap();
            let mut gradient = vec![0.0; program.parameters()];
            let value = exact.gradient(&kernel.values(), 0.1, &mut gradient).unwrap();
            let posterior =
                Posterior::new(program.clone(), kernel.values(), 0.1, x.clone(), y.clone(), None).unwrap();
            (value, gradient, posterior.predict(&random_points(700, 3, 2)).unwrap())
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn the_jitter_policy_helps_and_says_so() {
    // A matrix of rank one, as duplicate rows give it.
    let factor =
        Cholesky::factor(Matrix::zeros(5, 5), |a| a.clone_from(&Matrix::from_fn(5, 5, |_, _| 1.0)), Threads::One);
    let jitter = factor.unwrap().jitter();
    assert!((1e-11..1e-9).contains(&jitter), "{jitter}");
    let bad = Matrix::from_fn(3, 3, |i, j| if i == j { 1.0 } else { 2.0 });
    assert!(Cholesky::factor(Matrix::zeros(3, 3), |a| a.clone_from(&bad), Threads::One).is_err());
    let nan = Matrix::from_fn(3, 3, |i, j| if i == 2 && j == 0 { f64::NAN } else { f64::from(u8::from(i == j)) });
    let failure = Cholesky::factor(Matrix::zeros(3, 3), |a| a.clone_from(&nan), Threads::One).unwrap_err();
    assert!(failure.non_finite);
}

fn small_fit(x: Points, y: Vec<f64>) -> covary::Result<Model> {
    Fit::new("RBF + LIN".parse()?).restarts(2).iterations(60).run(&Dataset::new(x, y)?)
}

#[test]
fn a_fit_gives_an_account_and_the_same_twice() {
    let x = random_points(40, 2, 3);
    let y = targets(&x, 3);
    let model = small_fit(x.clone(), y.clone()).unwrap();
    let again = small_fit(x.clone(), y.clone()).unwrap();
    assert_eq!(model.kernel(), again.kernel());
    let account = model.account();
    assert_eq!((account.rows, account.restarts.len(), account.columns.len()), (40, 2, 2));
    assert!(account.loo.rmse < 0.4, "{:?}", account.loo);
    // The fit is better than where it started, by its own account.
    let start =
        Fit::new("RBF + LIN".parse().unwrap()).restarts(2).iterations(0).run(&Dataset::new(x, y).unwrap()).unwrap();
    assert!(account.log_marginal_likelihood > start.account().log_marginal_likelihood);
    assert!(!start.account().converged);
}

#[test]
fn answers_follow_the_units() {
    let x = random_points(30, 2, 4);
    let y = targets(&x, 4);
    let test = random_points(5, 2, 5);
    let scale = |p: &Points, a: f64, b: f64| {
        Points::from_values(p.n(), p.d(), p.values().iter().map(|v| a * v + b).collect()).unwrap()
    };
    let plain = small_fit(x.clone(), y.clone()).unwrap().predict(&test).unwrap();
    for (a, b, c, d) in
        [(3.0, 7.0, 0.1, -5.0), (1e12, 0.0, 1e12, 0.0), (1e-12, 0.0, 1e-12, 0.0), (-2.0, 1.0, 1.0, 1e3)]
    {
        let moved: Vec<f64> = y.iter().map(|v| a * v + b).collect();
        let p = small_fit(scale(&x, c, d), moved).unwrap().predict(&scale(&test, c, d)).unwrap();
        for i in 0..5 {
            let (mean, variance) = (a * plain.mean[i] + b, a * a * plain.variance_y[i]);
            assert!((p.mean[i] - mean).abs() <= 1e-5 * a.abs(), "{a} {b} {c} {d}: {} {mean}", p.mean[i]);
            assert!((p.variance_y[i] / variance - 1.0).abs() <= 1e-4, "{a} {b} {c} {d}");
        }
    }
}

#[test]
fn bad_data_is_refused_or_adjusted_and_said() {
    let column = |v: &[f64]| Points::from_column(v).unwrap();
    assert!(Points::from_column(&[0.0, f64::NAN]).is_err());
    assert!(Points::from_column(&[0.0, f64::INFINITY]).is_err());
    assert!(Dataset::new(column(&[0.0, 1.0]), vec![1.0, f64::NAN]).is_err());
    assert!(Dataset::new(column(&[0.0, 1.0]), vec![1.0]).is_err());
    assert!(Points::from_rows(&[vec![1.0], vec![1.0, 2.0]]).is_err());
    let few = small_fit(column(&[1.0]), vec![2.0]).unwrap_err();
    assert!(matches!(few.kind(), ErrorKind::TooFewRows { .. }), "{few}");
    assert!(small_fit(column(&[]), vec![]).is_err());
    // Constant column, constant target, duplicate rows: answers, with notes.
    let constant = Points::from_columns(&[vec![0.0, 1.0, 2.0, 3.0], vec![5.0; 4]]).unwrap();
    let model = small_fit(constant.clone(), vec![0.0, 1.0, 0.5, 0.2]).unwrap();
    assert!(model.account().notes.iter().any(|n| n.contains("x1")), "{:?}", model.account().notes);
    let flat = small_fit(column(&[0.0, 1.0, 2.0, 3.0]), vec![4.0; 4]).unwrap();
    assert!((flat.mean(&column(&[1.5])).unwrap()[0] - 4.0).abs() < 0.1);
    assert!(!flat.account().notes.is_empty());
    let twice = small_fit(column(&[0.0, 0.0, 1.0, 1.0, 2.0]), vec![0.1, 0.1, 1.0, 1.0, 0.3]).unwrap();
    assert!(twice.mean(&column(&[0.5])).unwrap()[0].is_finite());
    // Widths and columns that do not fit.
    assert!(model.predict(&column(&[1.0])).is_err());
    let names =
        Fit::new("RBF[speed]".parse().unwrap()).run(&Dataset::new(constant, vec![0.0, 1.0, 2.0, 1.0]).unwrap());
    assert_eq!(names.unwrap_err().to_string(), "no column `speed`");
    let data = Dataset::new(column(&[0.0, 1.0, 2.0]), vec![0.0, 1.0, 0.0]).unwrap();
    assert!(Fit::new(Kernel::rbf()).restarts(0).run(&data).is_err());
    assert!(Fit::new(Kernel::rbf()).noise(f64::NAN).run(&data).is_err());
}

/// Its variances would overflow or vanish, and no file could hold the model.
#[test]
fn a_target_out_of_range_is_refused_before_it_is_fitted() {
    for size in [1e200, 1e-200] {
        let x = random_points(20, 1, 3);
        let y = targets(&x, 3).iter().map(|v| v * size).collect();
        let error = small_fit(x, y).unwrap_err();
        assert!(error.to_string().contains("square") && error.hint().is_some(), "{error}");
    }
}

#[test]
fn a_model_file_comes_back_to_the_bit_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.covary");
    let x = random_points(25, 2, 6);
    let y = targets(&x, 6);
    let model = small_fit(x, y).unwrap();
    model.save(&path).unwrap();
    let back = Model::open(&path).unwrap();
    let test = random_points(50, 2, 7);
    assert_eq!(model.predict(&test).unwrap(), back.predict(&test).unwrap());
    assert_eq!(model.account(), back.account());
    assert_eq!(model.to_bytes().unwrap(), back.to_bytes().unwrap());
    let bytes = model.to_bytes().unwrap();
    let refused = |bytes: &[u8]| match Model::from_bytes(bytes, &path) {
        Err(e) => matches!(e.kind(), ErrorKind::ModelFile { .. }),
        Ok(_) => false,
    };
    for cut in [0, 5, 20, 60, bytes.len() / 2, bytes.len() - 1] {
        assert!(refused(&bytes[..cut]), "truncated at {cut}");
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 97) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        assert!(refused(&flipped), "flipped at {at}");
    }
    let newer = [b"covary model 99 00000000 2\n{}\n".as_slice()].concat();
    assert!(Model::from_bytes(&newer, &path).unwrap_err().to_string().contains("newer"));
    assert!(refused(b"PK\x03\x04 a zip file\n and more"));
    assert!(refused(&[bytes.as_slice(), b"tail"].concat()));
}
