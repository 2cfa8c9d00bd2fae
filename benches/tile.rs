//! Nanoseconds a pair for values and pullback of some kernels, on one thread: `cargo bench --bench tile`.
#![allow(clippy::unwrap_used)]

use covary::kernel::Task;
use covary::program::{Inputs, Program, Scratch};
use covary::{Kernel, Points, Threads};
use rand::{RngExt, SeedableRng};
use std::time::Instant;

fn main() {
    let n = 1000;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let x = |d: usize, rng: &mut rand_chacha::ChaCha8Rng| {
        Inputs::new(Points::from_values(n, d, (0..d * n).map(|_| rng.random_range(-1.7..1.7)).collect()).unwrap())
    };
    println!("| kernel | d | values ns | pullback ns |");
    println!("|---|---|---|---|");
    let network = Kernel::default_network(Task::Table);
    let series = Kernel::default_network(Task::Series);
    for (name, kernel, d) in [
        ("RBF", "RBF".parse().unwrap(), 1),
        ("RBF", "RBF".parse().unwrap(), 8),
        ("RBF + RBF + RBF + RBF", "RBF + RBF + RBF + RBF".parse().unwrap(), 8),
        ("RQ", "RQ".parse().unwrap(), 8),
        ("LIN", "LIN".parse().unwrap(), 8),
        ("LIN + LIN", "LIN + LIN".parse().unwrap(), 8),
        ("PER", "PER".parse().unwrap(), 1),
        ("MAT52", "MAT52".parse().unwrap(), 8),
        ("layers over 6 LIN", Kernel::nkn("6 LIN", "Linear8-Product4-Linear4-Product2-Linear1").unwrap(), 2),
        ("regression network", network, 8),
        ("series network", series, 1),
    ] {
        if std::env::args().nth(1).is_some_and(|only| !only.starts_with('-') && !name.contains(&only)) {
            continue;
        }
        let kernel: Kernel = kernel;
        let kernel = kernel.bind_to(d).unwrap();
        let program = Program::compile(&kernel, d).unwrap();
        let (x, theta) = (x(d, &mut rng), kernel.values());
        let mut k = vec![0.0; n * n];
        let mut gradient = vec![0.0; theta.len()];
        let scratch = &mut Scratch::default();
        let pairs = (n * (n + 1) / 2) as f64;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..15 {
            let start = Instant::now();
            program.gram(&theta, &x, &mut k, n, scratch, Threads::One).unwrap();
            best[0] = best[0].min(start.elapsed().as_secs_f64() * 1e9 / pairs);
            let start = Instant::now();
            let adjoint =
                |j: usize, i: usize, out: &mut [f64]| out.copy_from_slice(&k[j * n + i..j * n + i + out.len()]);
            program.pullback_gram(&theta, &x, adjoint, &mut gradient, None, scratch, Threads::One).unwrap();
            best[1] = best[1].min(start.elapsed().as_secs_f64() * 1e9 / pairs);
        }
        println!("| {name} | {d} | {:.2} | {:.2} |", best[0], best[1]);
    }
}
