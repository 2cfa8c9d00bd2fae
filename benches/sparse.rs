//! One evaluation = VFE bound + every gradient (θ, noise, inducing points), beside the bare matrix products of the same
//! size: N·M² flop for Φ and 2·N·M² for G·K_uf, at the speed of the library's own square product.
//! `cargo bench --bench sparse [-- n m …]`; `-- placing DIR` compares placings of inducing points on the UCI tables of DIR;
//! `-- uci DIR TABLE ITERATIONS [INDUCING]` fits the first split of a UCI table of DIR and tells how well it predicts;
//! `-- iterative ROWS …` times the iterative evidence and gradient at 8 columns, beside the exact ones up to 4,000 rows;
//! `-- stream ROWS …` reads that many rows of 8 columns from a file, with 500 inducing points.
#![allow(clippy::unwrap_used)]

use covary::data::{Choice, ReadOptions, Stream, Table};
use covary::fit::Method;
use covary::gp::{
    Effort, Exact, InMemory, Iterative, Placing, Sparse, SparseTimings, Streamed, place_inducing, sample_rows,
};
use covary::kernel::{Role, Task};
use covary::linalg::{Matrix, product};
use covary::program::{Inputs, Program};
use covary::{Dataset, Fit, Kernel, Points, Scaling, Threads};
use rand::{RngExt, SeedableRng};
use std::io::{BufWriter, Write};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = words.iter().position(|w| w == "placing") {
        return placing(&words[at + 1]);
    }
    if let Some(at) = words.iter().position(|w| w == "uci") {
        return uci(&words[at + 1..]);
    }
    if words.iter().any(|w| w == "iterative") {
        return iterative(&words.iter().filter_map(|w| w.parse().ok()).collect::<Vec<_>>());
    }
    if words.iter().any(|w| w == "stream") {
        return stream(&words.iter().filter_map(|w| w.parse().ok()).collect::<Vec<_>>());
    }
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.len() < 2 { vec![8611, 100, 8611, 300, 8611, 1000] } else { sizes };
    println!("| n | d | m | form | assembly | products | m×m | pullback | total ms | floor ms | ratio | peak MB |");
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for pair in sizes.chunks_exact(2) {
        run(pair[0], 4, pair[1]);
    }
}

/// The kernel's parameters before any training.
fn start(kernel: &Kernel) -> Vec<f64> {
    let fan = kernel.fan_in();
    let start = |(i, p): (usize, &covary::kernel::Param)| match (fan[i], p.role()) {
        (Some(n), _) => 1.0 / n as f64,
        // The median distance of standardised columns, times √d: the paper's m, of which it takes ⅙ to ⅔.
        (_, Role::Lengthscale { .. }) => [0.35, 1.35][i % 2],
        _ => p.value_or_default(),
    };
    kernel.params().iter().enumerate().map(start).collect()
}

/// The bound at the starting values, by where the inducing points are.
fn placing(folder: &str) {
    println!("| table | m | random rows | k-means | greedy variance | seconds: k-means | greedy |");
    println!("|---|---|---|---|---|---|---|");
    for (table, target) in [("power_plant", "power"), ("kin8nm", "y")] {
        let data = Dataset::from_csv(format!("{folder}/{table}.csv"), target).unwrap();
        let scaling = Scaling::of(&data).unwrap();
        let (x, y) = (scaling.points(data.x()).unwrap(), scaling.target(data.y()));
        let (n, d) = (x.n(), x.d());
        for text in ["nkn", "RBF"] {
            let kernel = Kernel::parse(text, Task::Table).unwrap().bind_to(d).unwrap();
            let (theta, program) = (start(&kernel), Program::compile(&kernel, d).unwrap());
            let rows = InMemory::new(&x, &y).unwrap();
            for m in [100, 300, 1000] {
                let bound = |z: &Points| {
                    let mut sparse = Sparse::new(&program, &rows, z, Threads::All).unwrap();
                    sparse.bound(&theta, 0.1, z).unwrap()
                };
                let every = x.select(&(0..m).map(|i| i * n / m).collect::<Vec<_>>());
                let begin = Instant::now();
                let means = place_inducing(&x, m, Placing::KMeans, 0).unwrap();
                let middle = Instant::now();
                let greedy = place_inducing(&x, m, Placing::GreedyVariance(&program, &theta), 0).unwrap();
                let end = Instant::now();
                println!(
                    "| {table}, {text} | {m} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} |",
                    bound(&every),
                    bound(&means),
                    bound(&greedy),
                    (middle - begin).as_secs_f64(),
                    (end - middle).as_secs_f64()
                );
            }
        }
    }
}

/// One estimate of evidence and gradient without the matrix.
fn iterative(sizes: &[usize]) {
    println!("| rows | seconds | steps | residual | peak MB | exact s | error of the value | of the gradient |");
    println!("|---|---|---|---|---|---|---|---|");
    for &n in sizes {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let x = Points::from_values(n, 8, (0..8 * n).map(|_| rng.random_range(-1.7..1.7)).collect()).unwrap();
        let target = |i: usize| (2.0 * x.column(0)[i]).sin() + 0.3 * x.column(1)[i] * x.column(2)[i];
        let y: Vec<f64> = (0..n).map(|i| target(i) + 0.3 * rng.random_range(-1.0..1.0)).collect();
        let kernel = Kernel::default_network(Task::Table).bind_to(8).unwrap();
        let (theta, program) = (start(&kernel), Program::compile(&kernel, 8).unwrap());
        let mut ours = Iterative::new(&program, &x, &y, Effort::default(), Threads::All).unwrap();
        let mut gradient = vec![0.0; theta.len()];
        let begin = Instant::now();
        let (value, slope) = ours.gradient(&theta, 0.1, &mut gradient).unwrap();
        let (seconds, peak) = (begin.elapsed().as_secs_f64(), peak().unwrap_or(0));
        let beside = if n <= 4000 {
            let inputs = Inputs::new(x.clone());
            let mut exact = Exact::new(&program, &inputs, &y, Threads::All).unwrap();
            let mut truth = vec![0.0; theta.len()];
            let begin = Instant::now();
            let (evidence, in_noise) = exact.gradient(&theta, 0.1, &mut truth).unwrap();
            let took = begin.elapsed().as_secs_f64();
            let pairs = || truth.iter().zip(&gradient).chain([(&in_noise, &slope)]);
            let gap = pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let all = pairs().map(|(a, _)| a * a).sum::<f64>().sqrt();
            format!("{took:.1} | {:.1e} | {:.1e}", (value / evidence - 1.0).abs(), gap / all)
        } else {
            "| |".into()
        };
        println!("| {n} | {seconds:.1} | {} | {:.1e} | {peak} | {beside} |", ours.steps, ours.residual);
    }
}

/// A whole fit of the first random split of a table: `naval-` leaves out the other target.
fn uci(words: &[String]) {
    let (folder, table, iterations) = (&words[0], &words[1], words[2].parse().unwrap());
    let name = table.trim_end_matches('-');
    let path = format!("{folder}/{name}.csv");
    let read = Table::open(&path, &ReadOptions::default()).unwrap();
    let names: Vec<String> = read.columns().iter().map(|c| c.name().to_string()).collect();
    let target = names.last().unwrap().clone();
    let exclude = if table.ends_with('-') { vec![names[names.len() - 2].clone()] } else { vec![] };
    let data = Dataset::from_table(&read, &Choice { exclude, ..Choice::new(&target) }).unwrap();
    let splits = std::fs::read_to_string(format!("{folder}/splits/{name}.csv")).unwrap();
    let first = splits.lines().nth(1).unwrap().split_once(',').unwrap().1.trim_matches('"').to_string();
    let test: Vec<usize> = first.split([' ', ';', ',']).filter_map(|w| w.parse().ok()).collect();
    let train: Vec<usize> = (0..data.n()).filter(|i| !test.contains(i)).collect();
    let (train, test) = (data.select(&train), data.select(&test));
    let kernel = Kernel::parse(words.get(4).map_or("nkn", String::as_str), Task::Table).unwrap();
    let mut fit = Fit::new(kernel).iterations(iterations);
    if let Some(m) = words.get(3).and_then(|w| w.parse().ok()) {
        fit = fit.method(Method::Sparse).inducing(m);
    }
    let model = fit
        .run_observed(&train, |step| {
            if step.progress.iteration % 10 == 0 {
                eprintln!("{} {:.1} {:.0?}", step.progress.iteration, step.progress.value, step.progress.elapsed);
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let said = model.distribution(test.x()).unwrap();
    let (mut square, mut density) = (0.0, 0.0);
    for (said, y) in said.iter().zip(test.y()) {
        square += (y - said.moments().0).powi(2);
        density += said.log_density(*y);
    }
    let (n, a) = (test.n() as f64, model.account());
    println!(
        "{table}: rows {} + {}, rmse {:.5}, log density {:.4}, loo {:.5} {:.4}, bound {:.1}, noise sd {:.4}, {} iterations, {:.1} s, {} MB",
        train.n(),
        test.n(),
        (square / n).sqrt(),
        density / n,
        a.loo.rmse,
        a.loo.log_density,
        a.log_marginal_likelihood,
        a.noise_sd,
        a.iterations,
        a.seconds,
        peak().unwrap_or(0)
    );
    a.notes.iter().for_each(|note| println!("  {note}"));
}

/// One bound and gradient with rows from a file: what a pass costs, and what memory it takes.
fn stream(sizes: &[usize]) {
    println!("| rows | reading | assembly | products | m×m | pullback | total s | µs a row | peak MB |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for &n in sizes {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
        let mut out = BufWriter::new(&file);
        writeln!(out, "a,b,c,d,e,f,g,h,y").unwrap();
        for _ in 0..n {
            let x: [f64; 8] = std::array::from_fn(|_| rng.random_range(-1.7..1.7));
            let y = (2.0 * x[0]).sin() + 0.3 * x[1] * x[2];
            let cells: Vec<String> = x.iter().chain([&y]).map(|v| format!("{v:.6}")).collect();
            writeln!(out, "{}", cells.join(",")).unwrap();
        }
        out.flush().unwrap();
        let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 8192).unwrap();
        let scaling = Scaling::of_stream(&stream).unwrap();
        let rows = Streamed::new(&stream, &scaling).unwrap();
        let z = place_inducing(&sample_rows(&rows, 10_000, 0).unwrap(), 500, Placing::KMeans, 0).unwrap();
        let kernel = Kernel::default_network(Task::Table).bind_to(8).unwrap();
        let (theta, program) = (start(&kernel), Program::compile(&kernel, 8).unwrap());
        let mut sparse = Sparse::new(&program, &rows, &z, Threads::All).unwrap();
        let (mut in_theta, mut in_z) = (vec![0.0; theta.len()], vec![0.0; 500 * 8]);
        let begin = Instant::now();
        sparse.gradient(&theta, 0.1, &z, &mut in_theta, Some(&mut in_z)).unwrap();
        let (total, t) = (begin.elapsed().as_secs_f64(), sparse.timings);
        println!(
            "| {n} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {total:.2} | {:.1} | {} |",
            t.reading,
            t.assembly,
            t.products,
            t.factorisation,
            t.pullback,
            1e6 * total / n as f64,
            peak().map_or_else(|| "?".into(), |mb| mb.to_string()),
        );
    }
}

fn run(n: usize, d: usize, m: usize) {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let x = Points::from_values(n, d, (0..d * n).map(|_| rng.random_range(-1.7..1.7)).collect()).unwrap();
    let y: Vec<f64> = (0..n).map(|i| (x.column(0)[i] * 2.0).sin() + 0.3 * x.column(1)[i]).collect();
    let kernel = Kernel::default_network(Task::Table).bind_to(d).unwrap();
    let theta = start(&kernel);
    let program = Program::compile(&kernel, d).unwrap();
    let z = place_inducing(&x, m, Placing::KMeans, 0).unwrap();
    let rows = InMemory::new(&x, &y).unwrap();
    let mut sparse = Sparse::new(&program, &rows, &z, Threads::All).unwrap();
    let (mut in_theta, mut in_z) = (vec![0.0; theta.len()], vec![0.0; m * d]);
    // One product of the size of a chunk tells the speed of the floor.
    let (a, g) =
        (Matrix::from_fn(2048, m, |i, j| ((i * j) % 7) as f64), Matrix::from_fn(m, m, |i, j| (i + j) as f64));
    let mut out = Matrix::default();
    let (mut totals, mut floors, mut parts) = (vec![], vec![], vec![]);
    for _ in 0..7 {
        let start = Instant::now();
        sparse.gradient(&theta, 0.1, &z, &mut in_theta, Some(&mut in_z)).unwrap();
        totals.push(start.elapsed().as_secs_f64());
        parts.push(sparse.timings);
        let start = Instant::now();
        product::multiply(&mut out, &a, &g, Threads::All);
        product::multiply(&mut out, &a, &g, Threads::All);
        floors.push(1.5 * start.elapsed().as_secs_f64() / 2.0 * n as f64 / 2048.0);
    }
    let median = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        1e3 * v[v.len() / 2]
    };
    let part = |f: &dyn Fn(&SparseTimings) -> f64| median(&mut parts.iter().map(f).collect());
    let (total, floor) = (median(&mut totals), median(&mut floors));
    println!(
        "| {n} | {d} | {m} | {:?} | {:.1} | {:.1} | {:.1} | {:.1} | {total:.1} | {floor:.1} | {:.2} | {} |",
        sparse.form,
        part(&|t| t.assembly),
        part(&|t| t.products),
        part(&|t| t.factorisation),
        part(&|t| t.pullback),
        total / floor,
        peak().map_or_else(|| "?".into(), |mb| mb.to_string()),
    );
}

/// The most memory this process has had, in MB, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
