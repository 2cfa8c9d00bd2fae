//! The sparse bound: it is what its formula says, never above the evidence, and the same however the rows are cut.

use crate::golden::{kernel, numbers, points, shared};
use crate::kit::{gram, random_kernel, random_points, rng, with_random_values};
use covary::data::{Choice, ReadOptions, Stream};
use covary::gp::{
    Exact, Form, InMemory, Jitter, Placing, Posterior, Rows, Sparse, SparsePosterior, Streamed, check_inducing,
    place_inducing, sample_rows,
};
use covary::kernel::Task;
use covary::linalg::{Cholesky, Matrix, dot};
use covary::program::{Inputs, Program, Scratch};
use covary::{Kernel, Points, Scaling, Threads};
use rand::RngExt;
use serde_json::Value;
use std::io::Write;

pub fn targets(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..n).map(|_| rng.random_range(-1.5..1.5)).collect()
}

struct Case {
    program: Program,
    theta: Vec<f64>,
    x: Points,
    y: Vec<f64>,
    z: Points,
}

fn case(kernel: &Kernel, d: usize, n: usize, m: usize) -> Case {
    let kernel = kernel.bind_to(d).unwrap();
    let program = Program::compile(&kernel, d).unwrap();
    Case { program, theta: kernel.values(), x: random_points(n, d, 1), y: targets(n, 2), z: random_points(m, d, 3) }
}

pub fn network(d: usize) -> Kernel {
    with_random_values(&Kernel::default_network(Task::Table), d, 5)
}

struct Evaluated {
    value: f64,
    noise: f64,
    theta: Vec<f64>,
    z: Vec<f64>,
}

fn evaluate(
    case: &Case,
    rows: &dyn Rows,
    noise: f64,
    threads: Threads,
    change: impl Fn(Sparse) -> Sparse,
) -> Evaluated {
    let mut sparse = change(Sparse::new(&case.program, rows, &case.z, threads).unwrap());
    let (mut theta, mut z) = (vec![0.0; case.theta.len()], vec![0.0; case.z.values().len()]);
    let (value, noise) = sparse.gradient(&case.theta, noise, &case.z, &mut theta, Some(&mut z)).unwrap();
    Evaluated { value, noise, theta, z }
}

fn cross(program: &Program, theta: &[f64], a: &Points, b: &Points) -> Matrix {
    let mut k = Matrix::zeros(a.n(), b.n());
    let stride = k.stride();
    let (a, b) = (Inputs::without_lags(a.clone()), Inputs::without_lags(b.clone()));
    program.cross(theta, &a, &b, k.values_mut(), stride, &mut Scratch::default(), Threads::One).unwrap();
    k
}

/// log N(y; 0, Q + σ²I) − tr(K − Q)/2σ², with N×N matrices, and the prediction at some points.
fn dense(case: &Case, noise: f64, jitter: f64, at: &Points) -> (f64, Vec<f64>, Vec<f64>) {
    let (p, theta, n) = (&case.program, case.theta.as_slice(), case.x.n());
    let mut kuu = gram(p, theta, &Inputs::without_lags(case.z.clone()), Threads::One);
    (0..case.z.n()).for_each(|i| kuu[(i, i)] += jitter);
    let uu = Cholesky::factor(Matrix::zeros(case.z.n(), case.z.n()), |a| a.clone_from(&kuu), Threads::One).unwrap();
    let half = |x: &Points| {
        let mut a = cross(p, theta, &case.z, x);
        uu.half_solve_matrix(&mut a, Threads::One);
        a
    };
    let (a, s) = (half(&case.x), half(at));
    let mut diag = vec![0.0; n];
    p.diag(theta, &Inputs::without_lags(case.x.clone()), &mut diag, &mut Scratch::default()).unwrap();
    let rest: f64 = (0..n).map(|i| diag[i] - dot(a.column(i), a.column(i))).sum();
    let q = Matrix::from_fn(n, n, |i, j| dot(a.column(i), a.column(j)) + if i == j { noise } else { 0.0 });
    let factor = Cholesky::factor(Matrix::zeros(n, n), |m| m.clone_from(&q), Threads::One).unwrap();
    let alpha = factor.solve(&case.y);
    let ln_2pi = (2.0 * std::f64::consts::PI).ln();
    let value = -0.5 * (dot(&case.y, &alpha) + factor.log_det() + n as f64 * ln_2pi) - rest / (2.0 * noise);
    let mut prior = vec![0.0; at.n()];
    p.diag(theta, &Inputs::without_lags(at.clone()), &mut prior, &mut Scratch::default()).unwrap();
    let (mut mean, mut variance) = (vec![], vec![]);
    for (j, prior) in prior.iter().enumerate() {
        let cross: Vec<f64> = (0..n).map(|i| dot(a.column(i), s.column(j))).collect();
        mean.push(dot(&cross, &alpha));
        variance.push(prior - dot(&cross, &factor.solve(&cross)));
    }
    (value, mean, variance)
}

fn close(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1e-3), "{what}: {ours} against {theirs}");
}

#[test]
fn the_bound_and_its_predictions_are_the_dense_formulas() {
    let smooth: Kernel = "RBF(v=2, l=3) + LIN(v=0.5)".parse().unwrap();
    for (kernel, d) in [(network(3), 3), (smooth, 2)] {
        for (n, m, noise) in [(40, 9, 0.1), (70, 20, 0.02), (33, 1, 1.5)] {
            let case = case(&kernel, d, n, m);
            let rows = InMemory::new(&case.x, &case.y).unwrap();
            let at = random_points(7, d, 9);
            let (value, mean, variance) = dense(&case, noise, 1e-6, &at);
            let mut sparse =
                Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap().with_jitter(Jitter::Absolute(1e-6));
            close(sparse.bound(&case.theta, noise, &case.z).unwrap(), value, 1e-9, "bound");
            assert_eq!(sparse.jitter_used, 1e-6);
            let (program, theta) = (case.program.clone(), case.theta.clone());
            let jitter = Jitter::Absolute(1e-6);
            let posterior = SparsePosterior::new(program, theta, noise, &rows, &case.z, jitter).unwrap();
            close(posterior.bound(), value, 1e-9, "bound");
            let prediction = posterior.predict(&at).unwrap();
            let (joint_mean, joint) = posterior.joint(&at).unwrap();
            for i in 0..at.n() {
                close(prediction.mean[i], mean[i], 1e-7, "mean");
                // k** less k*ᵀ…k* is small where the data is dense: it is held to the prior's size.
                assert!((prediction.variance_f[i] - variance[i]).abs() < 1e-7, "variance {i}");
                assert_eq!(prediction.variance_y[i], prediction.variance_f[i] + noise);
                close(joint_mean[i], mean[i], 1e-7, "joint mean");
                assert!((joint[(i, i)] - variance[i]).abs() < 1e-7, "joint variance {i}");
            }
        }
    }
}

#[test]
fn gradients_are_central_differences() {
    let smooth: Kernel = "RBF(v=2, l=3) + LIN(v=0.5) + PER(v=0.4, p=2, l=1.5)".parse().unwrap();
    let mut forms = vec![];
    // Relative jitter follows θ and Z: its slope is part of the gradient.
    for (kernel, d, noise, jitter) in [
        (network(2), 2, 0.1, Jitter::Relative(1e-8)),
        (network(3), 3, 0.3, Jitter::Relative(1e-3)),
        (smooth, 2, 0.05, Jitter::Relative(1e-6)),
        (Kernel::rbf(), 1, 0.001, Jitter::Absolute(1e-6)),
    ] {
        let mut case = case(&kernel, d, 45, 8);
        let noise_at = noise;
        let (x, y) = (case.x.clone(), case.y.clone());
        let rows = InMemory::new(&x, &y).unwrap().in_chunks_of(13);
        let exact = evaluate(&case, &rows, noise_at, Threads::One, |s| s.with_jitter(jitter));
        let value = |theta: &[f64], noise: f64, z: &Points| {
            let mut s = Sparse::new(&case.program, &rows, z, Threads::One).unwrap().with_jitter(jitter);
            let value = s.bound(theta, noise, z).unwrap();
            (value, s.form)
        };
        forms.push(value(&case.theta, noise_at, &case.z).1);
        let check = |ours: f64, f: &dyn Fn(f64) -> f64, h: f64, what: String| {
            // Five points: the error is of fourth order in h.
            let difference = (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
            let tolerance = 1e-6 * (ours.abs() + difference.abs()) + 3e-11 * exact.value.abs() / h;
            assert!((ours - difference).abs() <= tolerance, "{kernel}: {what}: {ours} against {difference}");
        };
        check(exact.noise, &|h| value(&case.theta, noise_at + h, &case.z).0, 1e-4 * noise_at, "noise".into());
        for p in 0..case.theta.len() {
            let moved = |h: f64| {
                let mut theta = case.theta.clone();
                theta[p] += h;
                value(&theta, noise_at, &case.z).0
            };
            check(exact.theta[p], &moved, 1e-4 * case.theta[p].abs().max(0.1), format!("parameter {p}"));
        }
        for k in 0..case.z.values().len() {
            let moved = |h: f64| {
                let mut values = case.z.values().to_vec();
                values[k] += h;
                value(&case.theta, noise_at, &Points::from_values(case.z.n(), d, values).unwrap()).0
            };
            check(exact.z[k], &moved, 1e-4, format!("inducing entry {k}"));
        }
        // Without the gradient of Z the rest is the same.
        let mut theta = vec![0.0; case.theta.len()];
        let mut s = Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap().with_jitter(jitter);
        let (value, slope) = s.gradient(&case.theta, noise_at, &case.z, &mut theta, None).unwrap();
        assert_eq!((value, slope), (exact.value, exact.noise));
        let size = exact.theta.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        theta.iter().zip(&exact.theta).for_each(|(a, b)| assert!((a - b).abs() <= 1e-10 * size));
        case.y.clear();
    }
    assert!(forms.contains(&Form::Plain) && forms.contains(&Form::White), "both forms are tested: {forms:?}");
}

#[test]
fn the_golden_bound_agrees() {
    let Some(path) = shared("golden/vfe_nkn6_d3_n60_m10.json") else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (text, names) = kernel(&golden["kernel"]);
    let (x, y, z) = (points(&golden["X"]), numbers(&golden["y"]), points(&golden["Z"]));
    let kernel = text.parse::<Kernel>().unwrap().bind_to(x.d()).unwrap();
    let (theta, noise) = (kernel.values(), golden["noise_variance"].as_f64().unwrap());
    let program = Program::compile(&kernel, x.d()).unwrap();
    let jitter = Jitter::Absolute(golden["jitter"].as_f64().unwrap());
    let case = Case { program, theta, x, y, z };
    let rows = InMemory::new(&case.x, &case.y).unwrap();
    let ours = evaluate(&case, &rows, noise, Threads::All, |s| s.with_jitter(jitter));
    close(-ours.value, golden["value"].as_f64().unwrap(), 1e-9, "value");
    close(-ours.noise, golden["gradient"]["noise_variance"].as_f64().unwrap(), 1e-6, "noise");
    for ((name, k, factor), ours) in names.iter().zip(&ours.theta) {
        close(-ours * factor, numbers(&golden["gradient"][name])[*k], 1e-6, name);
    }
    let theirs = numbers(&golden["gradient"]["Z"]);
    let (m, d) = (case.z.n(), case.z.d());
    for i in 0..m {
        for c in 0..d {
            close(-ours.z[c * m + i], theirs[i * d + c], 1e-6, "Z");
        }
    }
    let posterior = SparsePosterior::new(case.program, case.theta, noise, &rows, &case.z, jitter).unwrap();
    let at = points(&golden["predict"]["X"]);
    let prediction = posterior.predict(&at).unwrap();
    let mean_only = posterior.mean(&at).unwrap();
    for (field, ours) in [
        ("mean", &prediction.mean),
        ("mean", &mean_only),
        ("latent_variance", &prediction.variance_f),
        ("observation_variance", &prediction.variance_y),
    ] {
        ours.iter().zip(numbers(&golden["predict"][field])).for_each(|(a, b)| close(*a, b, 1e-8, field));
    }
}

/// The benchmark's third workload: the first 8611 rows of power_plant, 1000 of them as inducing points.
#[test]
fn the_power_plant_workload_has_its_value() {
    let Some(path) = shared("peers/workloads/w3_power.json") else { return };
    let Some(data) = shared("data/uci/power_plant.csv") else { return };
    let spec: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let kernel = kernel(&spec).0.parse::<Kernel>().unwrap().bind_to(4).unwrap();
    let text = std::fs::read_to_string(data).unwrap();
    let cells: Vec<Vec<f64>> =
        text.lines().skip(1).take(8611).map(|l| l.split(',').map(|c| c.parse().unwrap()).collect()).collect();
    let x = Points::from_rows(&cells.iter().map(|r| &r[..4]).collect::<Vec<_>>()).unwrap();
    let data = covary::Dataset::new(x, cells.iter().map(|r| r[4]).collect()).unwrap();
    let scaling = Scaling::of(&data).unwrap();
    let (x, y) = (scaling.points(data.x()).unwrap(), scaling.target(data.y()));
    let z = x.select(&(0..1000).map(|i| i * 8611 / 1000).collect::<Vec<_>>());
    let (program, theta) = (Program::compile(&kernel, 4).unwrap(), kernel.values());
    let case = Case { program, theta, x, y, z };
    let rows = InMemory::new(&case.x, &case.y).unwrap();
    let mut sparse =
        Sparse::new(&case.program, &rows, &case.z, Threads::All).unwrap().with_jitter(Jitter::Absolute(1e-6));
    let noise = spec["noise_variance"].as_f64().unwrap();
    let bound = sparse.bound(&case.theta, noise, &case.z).unwrap();
    println!("{bound} {:?} {:?}", sparse.form, sparse.timings);
    close(-bound, spec["value"].as_f64().unwrap(), 1e-9, "value");
}

#[test]
fn sparse_never_exceeds_exact() {
    for seed in 0..60 {
        let kernel = random_kernel(seed);
        let d = 1 + (seed % 3) as usize;
        let case = case(&kernel, d, 30, 4 + (seed % 9) as usize);
        let noise = [0.01, 0.1, 1.0][(seed % 3) as usize];
        let x = Inputs::without_lags(case.x.clone());
        let evidence =
            Exact::new(&case.program, &x, &case.y, Threads::One).unwrap().evidence(&case.theta, noise).unwrap();
        let rows = InMemory::new(&case.x, &case.y).unwrap();
        let mut sparse = Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap();
        let bound = sparse.bound(&case.theta, noise, &case.z).unwrap();
        assert!(bound <= evidence + 1e-6 * (1.0 + evidence.abs()), "{kernel}: {bound} above {evidence}");
    }
}

#[test]
fn sparse_with_all_points_is_exact() {
    let kernels = ["RBF(v=1.3, l=0.6)", "MAT32(v=2, l=1) + LIN(v=0.5)", "RQ(v=1, l=0.7, a=0.4) * MAT12(v=1, l=3)"];
    for text in kernels {
        let kernel: Kernel = text.parse().unwrap();
        let mut case = case(&kernel, 2, 40, 1);
        case.z = case.x.clone();
        let x = Inputs::without_lags(case.x.clone());
        let mut exact = Exact::new(&case.program, &x, &case.y, Threads::One).unwrap();
        let mut gradient = vec![0.0; case.theta.len()];
        let (evidence, slope) = exact.gradient(&case.theta, 0.2, &mut gradient).unwrap();
        let rows = InMemory::new(&case.x, &case.y).unwrap();
        let ours = evaluate(&case, &rows, 0.2, Threads::One, |s| s.with_jitter(Jitter::Absolute(1e-13)));
        close(ours.value, evidence, 1e-9, text);
        close(ours.noise, slope, 1e-6, text);
        ours.theta.iter().zip(&gradient).for_each(|(a, b)| close(*a, *b, 1e-6, text));
        let theta = case.theta.clone();
        let at = random_points(5, 2, 8);
        let full =
            Posterior::new(case.program.clone(), theta.clone(), 0.2, case.x.clone(), case.y.clone(), None).unwrap();
        let full = full.predict(&at).unwrap();
        let posterior =
            SparsePosterior::new(case.program.clone(), theta, 0.2, &rows, &case.z, Jitter::Absolute(1e-13)).unwrap();
        let sparse = posterior.predict(&at).unwrap();
        sparse.mean.iter().zip(&full.mean).for_each(|(a, b)| close(*a, *b, 1e-7, text));
        sparse.variance_f.iter().zip(&full.variance_f).for_each(|(a, b)| close(*a, *b, 1e-6, text));
    }
}

fn same_to_rounding(a: &Evaluated, b: &Evaluated, what: &str) {
    close(a.value, b.value, 1e-10, what);
    close(a.noise, b.noise, 1e-8, what);
    let value = a.value;
    for (a, b) in [(&a.theta, &b.theta), (&a.z, &b.z)] {
        // Of hundreds of inducing points under a smooth kernel, none matters: their gradient is rounding.
        let size = b.iter().fold(1e-3 * value.abs(), |m, v| m.max(v.abs()));
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= 1e-8 * size, "{what}: {a} {b}"));
    }
}

fn same_bits(a: &Evaluated, b: &Evaluated, what: &str) {
    assert_eq!(a.value.to_bits(), b.value.to_bits(), "{what}: value");
    assert_eq!(a.noise.to_bits(), b.noise.to_bits(), "{what}: noise");
    assert!(a.theta == b.theta && a.z == b.z, "{what}: gradient");
}

#[test]
fn how_rows_are_cut_kept_and_shared_out_changes_nothing() {
    let smooth: Kernel = "RBF(v=2, l=3) + LIN(v=0.5)".parse().unwrap();
    for kernel in [network(2), smooth] {
        let case = case(&kernel, 2, 900, 150);
        let rows = InMemory::new(&case.x, &case.y).unwrap().in_chunks_of(300);
        let whole = evaluate(&case, &rows, 0.1, Threads::One, |s| s);
        // The bits stay whatever is kept from pass to pass and whoever computes it.
        for bytes in [0, 8 * 300 * 150, usize::MAX] {
            let kept = evaluate(&case, &rows, 0.1, Threads::One, |s| s.with_cache(bytes));
            same_bits(&kept, &whole, &format!("{bytes} bytes kept"));
        }
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let shared = pool.install(|| evaluate(&case, &rows, 0.1, Threads::All, |s| s));
            same_bits(&shared, &whole, &format!("{threads} threads"));
        }
        for size in [1, 7, 64, 899, 5000] {
            let rows = InMemory::new(&case.x, &case.y).unwrap().in_chunks_of(size);
            same_to_rounding(&evaluate(&case, &rows, 0.1, Threads::One, |s| s), &whole, &format!("chunks of {size}"));
        }
    }
}

#[test]
fn what_was_evaluated_before_changes_nothing() {
    // Memory is kept from one evaluation to the next: also that of one that failed, or was of the other form.
    let rough: Kernel = "MAT12(v=2, l=0.5)".parse().unwrap();
    let mut forms = Vec::new();
    for kernel in [network(2), rough] {
        let case = case(&kernel, 2, 400, 61);
        let rows = InMemory::new(&case.x, &case.y).unwrap().in_chunks_of(150);
        let fresh = evaluate(&case, &rows, 0.1, Threads::One, |s| s);
        let mut sparse = Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap();
        let again = |sparse: &mut Sparse, theta: &[f64], noise| {
            let mut out = Evaluated { value: 0.0, noise: 0.0, theta: vec![f64::NAN; theta.len()], z: vec![0.0; 122] };
            let done = sparse.gradient(theta, noise, &case.z, &mut out.theta, Some(&mut out.z));
            done.map(|(value, noise)| Evaluated { value, noise, ..out })
        };
        let other: Vec<f64> = case.theta.iter().map(|v| 1.7 * v + 0.1).collect();
        again(&mut sparse, &other, 1e-6).unwrap();
        forms.push(sparse.form);
        same_bits(&again(&mut sparse, &case.theta, 0.1).unwrap(), &fresh, "after another");
        forms.push(sparse.form);
        assert!(again(&mut sparse, &vec![f64::NAN; other.len()], 0.1).is_err());
        same_bits(&again(&mut sparse, &case.theta, 0.1).unwrap(), &fresh, "after one that failed");
        let bound = sparse.bound(&case.theta, 0.1, &case.z).unwrap();
        assert_eq!(bound.to_bits(), fresh.value.to_bits());
        same_bits(&again(&mut sparse, &case.theta, 0.1).unwrap(), &fresh, "after a bound alone");
    }
    assert!(forms.contains(&Form::Plain) && forms.contains(&Form::White), "both forms are tested: {forms:?}");
}

#[test]
fn many_inducing_points_give_the_same_bits_on_any_threads() {
    // Above the sizes at which factorisations take a second thread.
    let case = case(&network(2), 2, 1100, 720);
    let rows = InMemory::new(&case.x, &case.y).unwrap();
    let of = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| evaluate(&case, &rows, 0.1, Threads::All, |s| s))
    };
    same_bits(&of(1), &of(2), "threads");
}

/// As many points as are multiplied by halves where there are the instructions, along a direction in which everything moves.
#[test]
fn gradients_of_many_inducing_points_are_central_differences() {
    let mut forms = vec![];
    for (kernel, d, jitter) in
        [("MAT32(l=0.5) + LIN", 3, Jitter::Relative(1e-6)), ("RBF(l=2)", 2, Jitter::Relative(1e-8))]
    {
        let case = case(&kernel.parse().unwrap(), d, 700, 517);
        let rows = InMemory::new(&case.x, &case.y).unwrap();
        let noise = 0.1;
        let at = evaluate(&case, &rows, noise, Threads::All, |s| s.with_jitter(jitter));
        let along: Vec<f64> = targets(case.theta.len() + case.z.values().len(), 9);
        let (in_theta, in_z) = along.split_at(case.theta.len());
        let mut value = |h: f64| {
            let theta: Vec<f64> = case.theta.iter().zip(in_theta).map(|(t, d)| t + h * d).collect();
            let z = case.z.values().iter().zip(in_z).map(|(z, d)| z + h * d).collect();
            let z = Points::from_values(case.z.n(), d, z).unwrap();
            let mut sparse = Sparse::new(&case.program, &rows, &z, Threads::All).unwrap().with_jitter(jitter);
            let value = sparse.bound(&theta, noise * (1.0 + h), &z).unwrap();
            forms.push(sparse.form);
            value
        };
        let h = 1e-4;
        let difference = (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h);
        let ours = dot(&at.theta, in_theta) + dot(&at.z, in_z) + at.noise * noise;
        close(ours, difference, 1e-6, kernel);
    }
    assert!(forms.contains(&Form::Plain) && forms.contains(&Form::White), "both forms are tested: {forms:?}");
}

fn write_csv(x: &Points, y: &[f64]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "a,b,y").unwrap();
    for (i, y) in y.iter().enumerate() {
        writeln!(file, "{},{},{y}", x.column(0)[i], x.column(1)[i]).unwrap();
    }
    file.flush().unwrap();
    file
}

#[test]
fn rows_from_a_file_give_what_rows_in_memory_give() {
    let mut case = case(&network(2), 2, 230, 12);
    let file = write_csv(&case.x, &case.y);
    let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 50).unwrap();
    let scaling = Scaling::of_stream(&stream).unwrap();
    let data = covary::Dataset::new(case.x.clone(), case.y.clone()).unwrap();
    let whole = Scaling::of(&data).unwrap();
    for c in 0..2 {
        close(scaling.centre(c), whole.centre(c), 1e-12, "centre");
        close(scaling.width(c), whole.width(c), 1e-12, "width");
    }
    close(scaling.target_width(), whole.target_width(), 1e-12, "target width");
    let streamed = Streamed::new(&stream, &scaling).unwrap();
    case.z = place_inducing(&sample_rows(&streamed, 100, 3).unwrap(), 12, Placing::KMeans, 0).unwrap();
    let from_file = evaluate(&case, &streamed, 0.1, Threads::All, |s| s.with_cache(8 * 100 * 12));
    (case.x, case.y) = (whole.points(&case.x).unwrap(), whole.target(&case.y));
    let rows = InMemory::new(&case.x, &case.y).unwrap();
    same_to_rounding(&from_file, &evaluate(&case, &rows, 0.1, Threads::All, |s| s), "file");
    // A file that changes between the passes is an error, not another answer.
    let mut sparse = Sparse::new(&case.program, &streamed, &case.z, Threads::One).unwrap();
    assert!(sparse.bound(&case.theta, 0.1, &case.z).is_ok());
    std::fs::OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"1,2,3\n").unwrap();
    let error = sparse.bound(&case.theta, 0.1, &case.z).unwrap_err();
    assert!(error.to_string().contains("changed while it was read"), "{error}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let case = case(&network(2), 2, 20, 5);
    let rows = InMemory::new(&case.x, &case.y).unwrap();
    let said = |z: &Points| Sparse::new(&case.program, &rows, z, Threads::One).unwrap_err();
    let error = said(&random_points(21, 2, 0));
    assert_eq!(error.to_string(), "inducing: more inducing points than rows: 21 points, 20 rows");
    assert!(error.hint().unwrap().contains("at most 20"));
    let twice = case.z.select(&[0, 1, 2, 1]);
    assert_eq!(check_inducing(&twice, 20).unwrap_err().to_string(), "inducing: points 1 and 3 are the same");
    assert!(said(&random_points(4, 3, 0)).to_string().contains("columns of the inducing points"));
    assert!(said(&Points::from_values(0, 2, vec![]).unwrap()).to_string().contains("at least one"));
    assert!(InMemory::new(&case.x, &case.y[..5]).unwrap_err().to_string().contains("targets"));
    let (nothing, no_y) = (Points::from_values(0, 2, vec![]).unwrap(), vec![]);
    let empty = InMemory::new(&nothing, &no_y).unwrap();
    assert!(
        Sparse::new(&case.program, &empty, &case.z, Threads::One).unwrap_err().to_string().contains("too few rows")
    );
    let mut sparse = Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap();
    for noise in [0.0, -1.0, f64::NAN] {
        assert!(sparse.bound(&case.theta, noise, &case.z).unwrap_err().to_string().contains("positive variance"));
    }
    assert!(sparse.bound(&case.theta, 0.1, &case.z.select(&[0, 1])).is_err());
    assert!(sparse.bound(&case.theta[1..], 0.1, &case.z).is_err());
    // Points that meet while they are trained are no error: the jitter tells them apart.
    let met = case.z.select(&[0, 1, 2, 3, 3]);
    assert!(sparse.bound(&case.theta, 0.1, &met).unwrap().is_finite());
    assert!(sparse.jitter_used > 0.0);
    let mut none =
        Sparse::new(&case.program, &rows, &case.z, Threads::One).unwrap().with_jitter(Jitter::Absolute(-1.0));
    assert!(none.bound(&case.theta, 0.1, &case.z).unwrap_err().to_string().starts_with("jitter"));
}
