//! Fits of many rows: sparse models are models like any other, from memory or from a file.

use crate::kit::{random_points, rng};
use covary::data::{Choice, ReadOptions, Stream};
use covary::fit::{Method, Model};
use covary::gp::{InMemory, Jitter, Posterior, SparsePosterior};
use covary::linalg::{Cholesky, Matrix};
use covary::program::{Inputs, Program, Scratch};
use covary::{Dataset, ErrorKind, Fit, Kernel, Points, Threads};
use rand::RngExt;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

fn wave(x: &Points, noise: f64, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    let at = |i: usize| (2.0 * x.column(0)[i]).sin() + 0.5 * x.column(1)[i];
    (0..x.n()).map(|i| 3.0 + at(i) + noise * rng.random_range(-1.7..1.7)).collect()
}

fn data(n: usize, seed: u64) -> Dataset {
    let x = random_points(n, 2, seed);
    let y = wave(&x, 0.1, seed + 100);
    Dataset::new(x, y).unwrap()
}

fn fit() -> Fit {
    Fit::new(Kernel::rbf()).restarts(1).iterations(15)
}

fn sparse(m: usize) -> Fit {
    fit().method(Method::Sparse).inducing(m)
}

fn error(model: &Model, seed: u64) -> f64 {
    let x = random_points(300, 2, seed);
    let (truth, mean) = (wave(&x, 0.0, 0), model.mean(&x).unwrap());
    (truth.iter().zip(mean).map(|(t, m)| (t - m).powi(2)).sum::<f64>() / 300.0).sqrt()
}

#[test]
fn a_sparse_model_predicts_like_an_exact_one() {
    let data = data(400, 1);
    let exact = fit().method(Method::Exact).run(&data).unwrap();
    let model = sparse(60).run(&data).unwrap();
    assert_eq!((model.account().method.as_str(), model.n(), model.account().rows), ("sparse", 400, 400));
    let (few, all) = (error(&model, 9), error(&exact, 9));
    assert!(few < 0.05 && few < 1.5 * all + 0.005, "{few} {all}");
    let (mine, theirs) = (&model.account().loo, &exact.account().loo);
    assert!((mine.rmse / theirs.rmse - 1.0).abs() < 0.1 && mine.coverage_95 > 0.9, "{mine:?} {theirs:?}");
    assert!(model.account().log_marginal_likelihood < exact.account().log_marginal_likelihood + 1.0);
    // Means alone, samples and intervals come from the same process.
    let x = random_points(40, 2, 5);
    let (said, mean) = (model.predict(&x).unwrap(), model.mean(&x).unwrap());
    assert!(said.mean.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-9));
    let samples = model.sample(&x, 400, 3).unwrap();
    for i in 0..40 {
        let average = samples.iter().map(|s| s[i]).sum::<f64>() / 400.0;
        assert!((average - mean[i]).abs() < 6.0 * (said.variance_f[i] / 400.0).sqrt() + 1e-6, "{i}");
    }
}

#[test]
fn a_sparse_model_survives_its_file_to_the_bit() {
    let model = sparse(30).run(&data(200, 2)).unwrap();
    let bytes = model.to_bytes().unwrap();
    let again = Model::from_bytes(&bytes, Path::new("m")).unwrap();
    let x = random_points(50, 2, 7);
    assert_eq!(model.predict(&x).unwrap(), again.predict(&x).unwrap());
    assert_eq!(model.sample_y(&x, 2, 1).unwrap(), again.sample_y(&x, 2, 1).unwrap());
    assert_eq!((again.n(), again.account()), (200, model.account()));
    assert_eq!(again.to_bytes().unwrap(), bytes);
    let mut more = again;
    let refused = more.append(&x, &[0.0; 50]).unwrap_err().to_string();
    assert!(refused.contains("sparse"), "{refused}");
}

#[test]
fn a_sparse_model_with_wrong_content_is_refused() {
    let bytes = sparse(5).run(&data(50, 3)).unwrap().to_bytes().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let body = text.split_once('\n').unwrap().1.trim_end();
    let whole: serde_json::Value = serde_json::from_str(body).unwrap();
    type Damage = fn(&mut serde_json::Value);
    let damage: [(&str, Damage); 5] = [
        ("no rows", |s| s["rows"] = 0.into()),
        ("more points than rows", |s| s["rows"] = 4.into()),
        ("a point too few", |s| drop(s["inducing"].as_array_mut().unwrap().pop())),
        ("a weight too few", |s| drop(s["weights"].as_array_mut().unwrap().pop())),
        ("a factor that is none", |s| s["white"][0] = (-1.0).into()),
    ];
    for (what, change) in damage {
        let mut value = whole.clone();
        change(&mut value["members"][0]["sparse"]);
        let body = value.to_string();
        let file = format!("covary model 3 {:08x} {}\n{body}\n", crc32fast::hash(body.as_bytes()), body.len());
        let error = Model::from_bytes(file.as_bytes(), Path::new("m")).err();
        assert!(error.is_some_and(|e| matches!(e.kind(), ErrorKind::ModelFile { .. })), "{what}");
    }
}

/// Rows have the covariance Q + σ²I; one of them is left out, and what the inducing points cannot tell is added.
#[test]
fn sparse_leave_one_out_is_its_dense_formula() {
    let (n, m, noise) = (30, 7, 0.2);
    let (x, z) = (random_points(n, 2, 1), random_points(m, 2, 2));
    let y = wave(&x, 0.1, 4);
    let kernel = Kernel::rbf().bind_to(2).unwrap();
    let (program, theta) = (Program::compile(&kernel, 2).unwrap(), kernel.values());
    let (inputs, inducing) = (Inputs::without_lags(x.clone()), Inputs::without_lags(z.clone()));
    let scratch = &mut Scratch::default();
    let mut a = Matrix::zeros(m, n);
    let stride = a.stride();
    program.cross(&theta, &inducing, &inputs, a.values_mut(), stride, scratch, Threads::One).unwrap();
    let fill = |k: &mut Matrix| {
        let stride = k.stride();
        program.gram(&theta, &inducing, k.values_mut(), stride, &mut Scratch::default(), Threads::One).unwrap();
        (0..m).for_each(|i| k[(i, i)] += 1e-8);
    };
    let l = Cholesky::factor_once(Matrix::zeros(m, m), fill, Threads::One).unwrap();
    l.half_solve_matrix(&mut a, Threads::One);
    let q = |i: usize, j: usize| (0..m).map(|k| a[(k, i)] * a[(k, j)]).sum::<f64>();
    let posterior = {
        let rows = InMemory::new(&x, &y).unwrap().in_chunks_of(11);
        let posterior =
            SparsePosterior::new(program.clone(), theta.clone(), noise, &rows, &z, Jitter::default()).unwrap();
        let mut found = vec![];
        posterior.leave_one_out(&rows, &mut |y, mean, variance| found.push((y, mean, variance))).unwrap();
        found
    };
    for (i, &(target, mean, variance)) in posterior.iter().enumerate() {
        let others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
        let fill = |k: &mut Matrix| {
            for (b, &j) in others.iter().enumerate() {
                for (a, &i) in others.iter().enumerate().skip(b) {
                    k[(a, b)] = q(i, j) + if i == j { noise } else { 0.0 };
                }
            }
        };
        let factor = Cholesky::factor_once(Matrix::zeros(n - 1, n - 1), fill, Threads::One).unwrap();
        let cross: Vec<f64> = others.iter().map(|&j| q(i, j)).collect();
        let alpha = factor.solve(&others.iter().map(|&j| y[j]).collect::<Vec<_>>());
        let beta = factor.solve(&cross);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // k(x, x) = 1
        let dense = (dot(&cross, &alpha), 1.0 - dot(&cross, &beta) + noise);
        assert!(target == y[i] && (mean - dense.0).abs() < 1e-6 && (variance - dense.1).abs() < 1e-6, "{i}");
    }
}

#[test]
fn what_cannot_be_fitted_sparsely_is_said_and_what_can_be_adjusted_is_noted() {
    let data = data(40, 4);
    let refused = sparse(41).run(&data).unwrap_err().to_string();
    assert!(refused.contains("41 points, 40 rows"), "{refused}");
    assert!(sparse(0).run(&data).is_err());
    let noisy = data.clone().with_noise(vec![0.1; 40]).unwrap();
    assert!(sparse(5).run(&noisy).unwrap_err().to_string().contains("known noise"));
    // Sixty rows, of which ten differ.
    let x = random_points(10, 2, 5).select(&(0..60).map(|i| i % 10).collect::<Vec<_>>());
    let few = Dataset::new(x.clone(), wave(&x, 0.1, 6)).unwrap();
    let refused = sparse(20).run(&few).unwrap_err().to_string();
    assert!(refused.contains("different rows"), "{refused}");
    let model = fit().method(Method::Sparse).run(&few).unwrap();
    assert!(model.account().notes.iter().any(|n| n.contains("10 inducing points")), "{:?}", model.account().notes);
}

#[test]
fn auto_says_why_it_is_sparse_and_weighs_all_rows() {
    let data = data(2501, 6);
    let many = fit().iterations(2).run(&data).unwrap();
    assert_eq!((many.account().method.as_str(), many.n()), ("sparse", 2501));
    let notes = &many.account().notes;
    assert!(notes.iter().any(|n| n.contains("2501 rows, and beyond")), "{notes:?}");
    assert!(notes.iter().any(|n| n.contains("weights of all 2501 rows")), "{notes:?}");
    assert_eq!(fit().run(&self::data(60, 6)).unwrap().account().method, "exact");
    // Means are those of the whole covariance under the kernel that was found; variances are nearly.
    let (member, x) = (&many.members()[0], random_points(80, 2, 8));
    let (scaling, kernel) = (member.scaling(), member.kernel().bind_to(2).unwrap());
    let noise = (many.account().noise_sd / scaling.target_width()).powi(2);
    let (rows, y) = (scaling.points(data.x()).unwrap(), scaling.target(data.y()));
    let program = Program::compile(&kernel, 2).unwrap();
    let whole = Posterior::new(program, kernel.values(), noise, rows, y, None).unwrap();
    let (said, theirs) = (many.predict(&x).unwrap(), whole.predict(&scaling.points(&x).unwrap()).unwrap());
    for i in 0..80 {
        let mean = scaling.mean(theirs.mean[i]);
        assert!((said.mean[i] - mean).abs() < 1e-7 * scaling.target_width(), "{} {mean}", said.mean[i]);
        let (mine, whole) = (said.variance_f[i], scaling.variance(theirs.variance_f[i]));
        assert!((mine / whole - 1.0).abs() < 0.02, "{mine} {whole}");
    }
    let again = Model::from_bytes(&many.to_bytes().unwrap(), Path::new("m")).unwrap();
    assert_eq!(again.predict(&x).unwrap(), said);
}

fn table(data: &Dataset) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "a,b,y").unwrap();
    for i in 0..data.n() {
        writeln!(file, "{},{},{}", data.x().column(0)[i], data.x().column(1)[i], data.y()[i]).unwrap();
    }
    file.flush().unwrap();
    file
}

#[test]
fn a_file_is_fitted_as_rows_in_memory_are() {
    let data = data(500, 8);
    let file = table(&data);
    let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 64).unwrap();
    let model = sparse(40).run_stream(&stream).unwrap();
    assert_eq!((model.account().method.as_str(), model.account().rows, model.target()), ("sparse", 500, "y"));
    let whole = sparse(40).run(&data).unwrap();
    let (a, b) = (error(&model, 9), error(&whole, 9));
    assert!(a < 0.05 && b < 0.05, "{a} {b}");
    assert!(fit().method(Method::Exact).run_stream(&stream).is_err());
    assert!(fit().run_stream(&stream).unwrap().account().notes.iter().any(|n| n.contains("their file")));
}

#[test]
fn a_file_that_changes_or_ends_while_it_is_fitted_is_an_error() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 2] = [
        ("a row more", |path| {
            let mut more = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            writeln!(more, "1,2,3").unwrap();
        }),
        ("an earlier end", |path| {
            let length = std::fs::metadata(path).unwrap().len();
            std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length / 2).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let file = table(&data(300, 10));
        let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 64).unwrap();
        let found = sparse(20).run_stream_observed(&stream, |step| {
            if step.progress.iteration == 2 {
                harm(file.path());
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(found.unwrap_err().kind(), ErrorKind::FileChanged { .. }), "{what}");
    }
}

#[test]
fn a_resumed_sparse_fit_ends_where_an_unbroken_one_does() {
    let data = data(150, 11);
    let whole = sparse(15).iterations(8).run(&data).unwrap();
    let state = std::sync::Mutex::new(None);
    let keep = |step: covary::fit::Step| {
        *state.lock().unwrap() = step.state.cloned();
        ControlFlow::Continue(())
    };
    sparse(15).iterations(4).run_observed(&data, keep).unwrap();
    let state = state.into_inner().unwrap().unwrap();
    let rest = sparse(15).iterations(8).resume(vec![state]).run(&data).unwrap();
    let x = random_points(20, 2, 1);
    assert_eq!(whole.predict(&x).unwrap(), rest.predict(&x).unwrap());
}

#[test]
fn one_start_is_the_same_on_all_threads_and_beside_others() {
    // From outside the pool a single start has all threads, one standing by; inside it keeps to its own.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let network =
        || Fit::new(Kernel::default_network(covary::kernel::Task::Table)).restarts(1).iterations(5).rivals(vec![]);
    for n in [40, 150, 400] {
        let (data, x) = (data(n, 3), random_points(20, 2, 4));
        let (outside, inside) = (network().run(&data).unwrap(), pool.install(|| network().run(&data).unwrap()));
        assert_eq!(outside.predict(&x).unwrap(), inside.predict(&x).unwrap(), "{n}");
    }
}

#[test]
fn what_comes_before_the_first_iteration_is_not_done_again() {
    let (data, states) = (data(700, 12), std::sync::Mutex::new(vec![]));
    let keep = |step: covary::fit::Step| {
        states.lock().unwrap().extend(step.state.filter(|s| s.stages().is_some()).cloned());
        ControlFlow::Continue(())
    };
    let fit = || sparse(310).iterations(3);
    let whole = fit().run_observed(&data, keep).unwrap();
    let (states, x) = (states.into_inner().unwrap(), random_points(20, 2, 1));
    assert_eq!(states.iter().map(|s| s.stages()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    for state in states {
        // As it comes from a file.
        let text = serde_json::to_string(&state).unwrap();
        let rest = fit().resume(vec![serde_json::from_str(&text).unwrap()]).run(&data).unwrap();
        assert_eq!(whole.predict(&x).unwrap(), rest.predict(&x).unwrap());
    }
}
