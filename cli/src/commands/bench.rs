//! `covary bench evidence`: one evaluation of the evidence with every gradient, beside the bare linear algebra that it
//! cannot do without.

use crate::args::{Bench, BenchEvidence, BenchWhat, Common, MethodArg};
use crate::failure::Failure;
use crate::input::{check_memory_of_bench, peak_memory};
use crate::output::{Talk, bytes, print, print_json};
use covary::gp::{Exact, InMemory, Placing, Sparse, place_inducing};
use covary::kernel::Task;
use covary::linalg::{Matrix, library, product};
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use serde_json::json;
use std::time::{Duration, Instant};

/// For so long evaluations run before any is measured.
const WARM: Duration = Duration::from_millis(20);

/// Inducing points where none are asked for.
const INDUCING: usize = 1000;
/// Rows of a chunk.
const CHUNK: usize = 2048;

pub fn run(args: &Bench, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let BenchWhat::Evidence(args) = &args.what;
    evidence(args, common, talk)
}

/// What is measured: kernel values over random rows.
struct Work {
    program: Program,
    theta: Vec<f64>,
    x: Points,
    y: Vec<f64>,
}

/// Seconds of every evaluation, of its parts by name, and of the floor.
struct Measured {
    totals: Vec<f64>,
    parts: Vec<[f64; 4]>,
    names: [&'static str; 4],
    floors: Vec<f64>,
    floor: &'static str,
    peak: usize,
}

fn evidence(args: &BenchEvidence, common: &Common, talk: &Talk) -> Result<(), Failure> {
    if args.method == MethodArg::Iterative {
        return Err(Failure::usage("method", "the iterative method is not measured: exact or sparse"));
    }
    if args.n < 2 || args.d == 0 || args.repeat == 0 {
        return Err(Failure::usage("n", "at least two rows, one column and one repetition"));
    }
    let sparse = args.method == MethodArg::Sparse;
    if args.inducing.is_some() && !sparse {
        return Err(Failure::usage("inducing", "only the sparse method has inducing points: `--method sparse`"));
    }
    let (n, d, m) = (args.n, args.d, args.inducing.unwrap_or(INDUCING.min(args.n)));
    let memory = |n: usize| match sparse {
        true => Sparse::memory(n, m, CHUNK).saturating_add(n.saturating_mul(8 * (d + 1))),
        false => n.saturating_mul(n).saturating_mul(5 * 8).saturating_add(8 << 20),
    };
    check_memory_of_bench(n, memory)?;
    let task = if d == 1 { Task::Series } else { Task::Table };
    let kernel = Kernel::parse(&args.kernel, task)?.bind_to(d)?;
    // Weights as a fit starts with: the values of a network then stay of the order of one.
    let of = |(v, fan): (&f64, Option<usize>)| fan.map_or(*v, |n| 1.0 / n as f64);
    let theta: Vec<f64> = kernel.values().iter().zip(kernel.fan_in()).map(of).collect();
    let mut state = common.seed;
    let work = Work {
        program: Program::compile(&kernel, d)?,
        theta,
        x: Points::from_values(n, d, (0..n * d).map(|_| 3.4 * uniform(&mut state) - 1.7).collect())?,
        y: (0..n).map(|i| (i as f64 * 0.7).sin()).collect(),
    };
    // As in a fit of one start: one way into the pool of threads for all evaluations.
    let measure = || if sparse { work.sparse(m, args.repeat) } else { work.exact(args.repeat) };
    let measured = Threads::All.enter(measure)?;
    let part = |k: usize| median(measured.parts.iter().map(|p| p[k]).collect());
    let parts: Vec<(&str, f64)> = measured.names.iter().enumerate().map(|(k, name)| (*name, part(k))).collect();
    let (total, floor, peak) = (median(measured.totals), median(measured.floors), measured.peak);
    if talk.json {
        let seconds: serde_json::Map<String, serde_json::Value> =
            parts.iter().map(|(name, s)| (name.to_string(), json!(s))).collect();
        let mut value = json!({
            "seconds_per_evaluation": total,
            "seconds": seconds,
            "factorisation_floor_seconds": floor,
            "peak_memory_bytes": peak,
            "method": if sparse { "sparse" } else { "exact" },
            "n": n, "d": d, "kernel": kernel.to_string(), "parameters": work.theta.len(),
            "repeat": args.repeat, "threads": rayon::current_num_threads(), "seed": common.seed,
        });
        if sparse {
            value["inducing"] = json!(m);
        }
        return print_json(&value);
    }
    let told: Vec<String> = parts.iter().map(|(name, s)| format!("{name} {:.2} ms", 1e3 * s)).collect();
    let gradients = work.theta.len() + 1 + if sparse { m * d } else { 0 };
    print(&format!(
        "one evaluation (value and {gradients} gradients, {n} rows, {d} columns): {:.2} ms\n  {}\n\
         {}: {:.2} ms, so {:.2} times that\npeak memory: {}\n",
        1e3 * total,
        told.join(", "),
        measured.floor,
        1e3 * floor,
        total / floor,
        bytes(peak)
    ))
}

impl Work {
    fn exact(&self, repeat: usize) -> Result<Measured, Failure> {
        let (n, x) = (self.y.len(), Inputs::new(self.x.clone()));
        let mut exact = Exact::new(&self.program, &x, &self.y, Threads::All)?;
        let mut gradient = vec![0.0; self.theta.len()];
        let spd = |i: usize, j: usize| if i == j { 2.0 } else { 1.0 / (1.0 + (i as f64 - j as f64).abs()) };
        let (mut totals, mut floors, mut parts) = (vec![], vec![], vec![]);
        // Caches, clock and threads as in the midst of a fit, also where an evaluation takes less than a millisecond.
        let begin = Instant::now();
        exact.gradient(&self.theta, 0.1, &mut gradient)?;
        while begin.elapsed() < WARM {
            exact.gradient(&self.theta, 0.1, &mut gradient)?;
        }
        // The floor uses as much memory again; the peak that is told is that of the evaluations.
        let peak = peak_memory();
        // By the matrix library, whoever factorises in the evaluation; in turn with it, for the machine's speed changes.
        let (mut a, mut spare) = (Matrix::zeros(n, n), Matrix::zeros(n, n));
        let matrix = Matrix::from_fn(n, n, spd);
        for _ in 0..=repeat {
            let begin = Instant::now();
            exact.gradient(&self.theta, 0.1, &mut gradient)?;
            totals.push(begin.elapsed().as_secs_f64());
            let t = exact.timings;
            parts.push([t.assembly, t.factorisation, t.inverse, t.pullback]);
            a.clone_from(&matrix);
            let begin = Instant::now();
            library::factor(&mut a, Threads::All)
                .map_err(|_| Failure::refused("bench", "the bare factorisation failed", "report this"))?;
            library::inverse(&mut a, &mut spare, &[], Threads::All);
            floors.push(begin.elapsed().as_secs_f64());
        }
        // The first floor meets memory that is new.
        totals.remove(0);
        parts.remove(0);
        floors.remove(0);
        let names = ["assembly", "factorisation", "inverse", "pullback"];
        Ok(Measured { totals, parts, names, floors, floor: "bare Cholesky and inverse by the matrix library", peak })
    }

    fn sparse(&self, m: usize, repeat: usize) -> Result<Measured, Failure> {
        let (n, d) = (self.x.n(), self.x.d());
        let rows = InMemory::new(&self.x, &self.y)?.in_chunks_of(CHUNK);
        let z = place_inducing(&self.x, m, Placing::KMeans, 0)?;
        let mut sparse = Sparse::new(&self.program, &rows, &z, Threads::All)?;
        let (mut in_theta, mut in_z) = (vec![0.0; self.theta.len()], vec![0.0; m * d]);
        let (mut totals, mut floors, mut parts) = (vec![], vec![], vec![]);
        sparse.gradient(&self.theta, 0.1, &z, &mut in_theta, Some(&mut in_z))?;
        // N·M² flop for Φ and 2·N·M² for G·K_uf, at the speed of a plain product of the size of a chunk.
        let chunk = CHUNK.min(n);
        let a = Matrix::from_fn(chunk, m, |i, j| ((i * j) % 7) as f64);
        let g = Matrix::from_fn(m, m, |i, j| ((i + j) % 11) as f64);
        let mut out = Matrix::default();
        for _ in 0..repeat {
            let begin = Instant::now();
            sparse.gradient(&self.theta, 0.1, &z, &mut in_theta, Some(&mut in_z))?;
            totals.push(begin.elapsed().as_secs_f64());
            let t = sparse.timings;
            parts.push([t.assembly, t.products, t.factorisation, t.pullback]);
            product::multiply(&mut out, &a, &g, Threads::All);
            let begin = Instant::now();
            product::multiply(&mut out, &a, &g, Threads::All);
            floors.push(1.5 * begin.elapsed().as_secs_f64() * n as f64 / chunk as f64);
        }
        let names = ["assembly", "products", "factorisation", "pullback"];
        Ok(Measured { totals, parts, names, floors, floor: "bare matrix products", peak: peak_memory() })
    }
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
