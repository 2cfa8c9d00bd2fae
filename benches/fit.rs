//! The fixed cost of a fit, in microseconds: what is spent before and beside the evaluations. `cargo bench --bench fit`.
#![allow(clippy::unwrap_used)]

use covary::gp::Exact;
use covary::kernel::Task;
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use std::hint::black_box;
use std::time::Instant;

fn median(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..301)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let n = 30;
    let x = Points::from_column(&(0..n).map(|i| 0.1 * f64::from(i)).collect::<Vec<_>>()).unwrap();
    let y: Vec<f64> = x.column(0).iter().map(|v| v.sin()).collect();
    println!("| kernel | compile | first evaluation | later ones (n = {n}) |");
    println!("|---|---|---|---|");
    for (name, kernel) in [("RBF", Kernel::rbf()), ("series network", Kernel::default_network(Task::Series))] {
        let kernel = kernel.bind_to(1).unwrap();
        let compile = median(|| drop(black_box(Program::compile(&kernel, 1).unwrap())));
        let program = Program::compile(&kernel, 1).unwrap();
        let (inputs, theta) = (Inputs::new(x.clone()), kernel.values());
        let mut gradient = vec![0.0; theta.len()];
        let first = median(|| {
            let mut exact = Exact::new(&program, &inputs, &y, Threads::One).unwrap();
            exact.gradient(&theta, 0.1, &mut gradient).unwrap();
        });
        let mut exact = Exact::new(&program, &inputs, &y, Threads::One).unwrap();
        let later = median(|| {
            exact.gradient(&theta, 0.1, &mut gradient).unwrap();
        });
        println!("| {name} | {compile:.0} | {first:.0} | {later:.0} |");
    }
}
