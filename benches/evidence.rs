//! One evaluation = log marginal likelihood + every gradient, beside the bare Cholesky + inverse of the same size: the
//! matrix library's (the floor), and ours.
//! `cargo bench --bench evidence [-- n …]`, with the airline and kin8nm tables too where `../shared/data` has them; `covary bench evidence` prints the same as JSON.
#![allow(clippy::unwrap_used)]

use covary::gp::Exact;
use covary::kernel::Task;
use covary::linalg::{Cholesky, Matrix, library};
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use rand::{RngExt, SeedableRng};
use std::time::Instant;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![144, 500, 1000, 2000, 4000] } else { sizes };
    println!(
        "| n | kernel | assembly | factor | inverse | pullback | total ms | floor ms | ratio | ours ms | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let (series, table) = (Kernel::default_network(Task::Series), Kernel::default_network(Task::Table));
    let (airline, kin8nm) = (read("series/airline.csv"), read("uci/kin8nm.csv"));
    for n in sizes {
        if n <= 1000 {
            let grid =
                Points::from_column(&(0..n).map(|i| i as f64 * 3.44 / n as f64 - 1.72).collect::<Vec<_>>()).unwrap();
            run("series, lags shared", &series, &Inputs::new(grid.clone()), &wave(n));
            run("series", &series, &Inputs::without_lags(grid), &wave(n));
        }
        if n == 144
            && let Some(columns) = &airline
        {
            let months: Vec<f64> = (0..columns[1].len()).map(|i| i as f64).collect();
            let x = Points::from_column(&standardised(&months)).unwrap();
            run("airline, lags shared", &series, &Inputs::new(x), &standardised(&columns[1]));
        }
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let x = Points::from_values(n, 8, (0..8 * n).map(|_| rng.random_range(-1.7..1.7)).collect()).unwrap();
        run("regression d=8", &table, &Inputs::new(x), &wave(n));
        if let Some(columns) = kin8nm.as_ref().filter(|c| c[0].len() >= n) {
            let values: Vec<f64> = columns[..8].iter().flat_map(|c| standardised(&c[..n])).collect();
            let x = Points::from_values(n, 8, values).unwrap();
            run("kin8nm", &table, &Inputs::new(x), &standardised(&columns[8][..n]));
        }
    }
}

/// The columns of a table of the shared data, dates as noughts; a line on standard error where it is not there.
fn read(name: &str) -> Option<Vec<Vec<f64>>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("{}: not there, its rows are left out", path.display());
        return None;
    };
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap_or(0.0)).collect())
        .collect();
    let width = rows.first()?.len();
    Some((0..width).map(|c| rows.iter().map(|row| row[c]).collect()).collect())
}

fn standardised(column: &[f64]) -> Vec<f64> {
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    let width = (column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    column.iter().map(|v| (v - mean) / width).collect()
}

fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.7).sin()).collect()
}

fn run(name: &str, kernel: &Kernel, x: &Inputs, y: &[f64]) {
    let (n, d) = (y.len(), x.points().d());
    let kernel = kernel.bind_to(d).unwrap();
    let fan = kernel.fan_in();
    let theta: Vec<f64> = kernel.values().iter().zip(fan).map(|(v, f)| f.map_or(*v, |n| 1.0 / n as f64)).collect();
    let program = Program::compile(&kernel, d).unwrap();
    let mut exact = Exact::new(&program, x, y, Threads::All).unwrap();
    let mut gradient = vec![0.0; theta.len()];
    let (mut totals, mut floors, mut ours, mut parts) = (vec![], vec![], vec![], vec![]);
    let spd = Matrix::from_fn(n, n, |i, j| if i == j { 2.0 } else { 1.0 / (1.0 + (i as f64 - j as f64).abs()) });
    let (mut a, mut spare, mut theirs) = (Matrix::zeros(n, n), Matrix::zeros(n, n), Matrix::zeros(n, n));
    let repeats = (3_000_000_000_usize / (n * n * n)).clamp(7, 400);
    Threads::All.enter(|| {
        for _ in 0..repeats {
            let start = Instant::now();
            exact.gradient(&theta, 0.1, &mut gradient).unwrap();
            totals.push(start.elapsed().as_secs_f64());
            parts.push(exact.timings);
            a.clone_from(&spd);
            let start = Instant::now();
            library::factor(&mut a, Threads::All).unwrap();
            library::inverse(&mut a, &mut theirs, &[], Threads::All);
            floors.push(start.elapsed().as_secs_f64());
            let mut begin = Instant::now();
            let fill = |m: &mut Matrix| {
                m.clone_from(&spd);
                begin = Instant::now();
            };
            let factor = Cholesky::factor_with(a, spare, fill, Threads::All);
            let inverse = factor.unwrap().into_inverse(Matrix::default(), Threads::All);
            ours.push(begin.elapsed().as_secs_f64());
            (a, spare) = (inverse.inverse, inverse.spare);
        }
    });
    let median = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        1e3 * v[v.len() / 2]
    };
    let part = |f: &dyn Fn(&covary::gp::Timings) -> f64| median(&mut parts.iter().map(f).collect());
    let (total, floor, ours) = (median(&mut totals), median(&mut floors), median(&mut ours));
    println!(
        "| {n} | {name} | {:.3} | {:.3} | {:.3} | {:.3} | {total:.3} | {floor:.3} | {:.2} | {ours:.3} | {:.2} |",
        part(&|t| t.assembly),
        part(&|t| t.factorisation),
        part(&|t| t.inverse),
        part(&|t| t.pullback),
        total / floor,
        total / ours
    );
}
