//! `covary bench evidence`: one evaluation of the evidence with every gradient, beside the bare factor and inverse.

use crate::args::{Bench, BenchEvidence, BenchWhat, Common, MethodArg};
use crate::failure::Failure;
use crate::input::{check_memory_of_bench, peak_memory};
use crate::output::{Talk, bytes, print, print_json};
use covary::gp::{Exact, Timings};
use covary::kernel::Task;
use covary::linalg::{Cholesky, Matrix};
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use serde_json::json;
use std::time::Instant;

pub fn run(args: &Bench, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let BenchWhat::Evidence(args) = &args.what;
    evidence(args, common, talk)
}

fn evidence(args: &BenchEvidence, common: &Common, talk: &Talk) -> Result<(), Failure> {
    if !matches!(args.method, MethodArg::Auto | MethodArg::Exact) || args.inducing.is_some() {
        return Err(Failure::usage("method", "only the exact method is measured by this version"));
    }
    if args.n < 2 || args.d == 0 || args.repeat == 0 {
        return Err(Failure::usage("n", "at least two rows, one column and one repetition"));
    }
    let (n, d) = (args.n, args.d);
    check_memory_of_bench(n)?;
    let task = if d == 1 { Task::Series } else { Task::Table };
    let kernel = Kernel::parse(&args.kernel, task)?.bind_to(d)?;
    // Weights as a fit starts with: the values of a network then stay of the order of one.
    let of = |(v, fan): (&f64, Option<usize>)| fan.map_or(*v, |n| 1.0 / n as f64);
    let theta: Vec<f64> = kernel.values().iter().zip(kernel.fan_in()).map(of).collect();
    let program = Program::compile(&kernel, d)?;
    let mut state = common.seed;
    let x = Inputs::new(Points::from_values(n, d, (0..n * d).map(|_| 3.4 * uniform(&mut state) - 1.7).collect())?);
    let y: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
    let mut exact = Exact::new(&program, &x, &y, Threads::All)?;
    let mut gradient = vec![0.0; theta.len()];
    let spd = |i: usize, j: usize| if i == j { 2.0 } else { 1.0 / (1.0 + (i as f64 - j as f64).abs()) };
    let (mut totals, mut floors, mut parts) = (vec![], vec![], vec![]);
    exact.gradient(&theta, 0.1, &mut gradient)?;
    for _ in 0..args.repeat {
        let begin = Instant::now();
        exact.gradient(&theta, 0.1, &mut gradient)?;
        totals.push(begin.elapsed().as_secs_f64());
        parts.push(exact.timings);
    }
    drop(exact);
    // The floor uses as much memory again; the peak that is told is that of the evaluations.
    let peak = peak_memory();
    let (mut a, mut spare) = (Matrix::zeros(n, n), Matrix::zeros(n, n));
    let matrix = Matrix::from_fn(n, n, spd);
    for _ in 0..=args.repeat {
        let mut begin = Instant::now();
        let fill = |m: &mut Matrix| {
            m.clone_from(&matrix);
            begin = Instant::now();
        };
        let factor = Cholesky::factor(a, fill, Threads::All);
        let factor = factor.map_err(|_| Failure::refused("bench", "the bare factorisation failed", "report this"))?;
        let inverse = factor.into_inverse(spare, Threads::All);
        floors.push(begin.elapsed().as_secs_f64());
        (a, spare) = (inverse.inverse, inverse.spare);
    }
    floors.remove(0);
    let part = |f: fn(&Timings) -> f64| median(parts.iter().map(f).collect());
    let (total, floor) = (median(totals), median(floors));
    let (assembly, factorisation) = (part(|t| t.assembly), part(|t| t.factorisation));
    let (inverse, pullback) = (part(|t| t.inverse), part(|t| t.pullback));
    if talk.json {
        return print_json(&json!({
            "seconds_per_evaluation": total,
            "seconds": {
                "assembly": assembly, "factorisation": factorisation, "inverse": inverse, "pullback": pullback
            },
            "factorisation_floor_seconds": floor,
            "peak_memory_bytes": peak,
            "method": "exact", "n": n, "d": d, "kernel": kernel.to_string(), "parameters": theta.len(),
            "repeat": args.repeat, "threads": rayon::current_num_threads(), "seed": common.seed,
        }));
    }
    print(&format!(
        "one evaluation (value and {} gradients, {n} rows, {d} columns): {:.2} ms\n  \
         assembly {:.2} ms, factorisation {:.2} ms, inverse {:.2} ms, pullback {:.2} ms\n\
         bare Cholesky and inverse: {:.2} ms, so {:.2} times that\npeak memory: {}\n",
        theta.len() + 1,
        1e3 * total,
        1e3 * assembly,
        1e3 * factorisation,
        1e3 * inverse,
        1e3 * pullback,
        1e3 * floor,
        total / floor,
        bytes(peak)
    ))
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// SplitMix64: numbers in [0, 1), the same on every machine.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
