//! One evaluation of a grid with a hole = objective + every gradient, from the starting values of a workload file.
//! `cargo bench --bench grid -- WORKLOAD.json GREY.npy`: two kernels with values as JSON and a picture of 224 × 224, of
//! which rows 60–119, columns 80–159 are hidden. Without files: the default network on a made-up picture.
#![allow(clippy::unwrap_used)]

use covary::Kernel;
use covary::data::{Grid, Hole};
use covary::gp::GridProcess;
use covary::kernel::Task;
use covary::linalg::ConjugateGradients;
use covary::program::Program;
use serde_json::Value;
use std::time::Instant;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let network = || Kernel::default_network(Task::Axis).bind_to(1).unwrap();
    let (kernels, noise, whole) = match &files[..] {
        [workload, picture] => {
            let file: Value = serde_json::from_str(&std::fs::read_to_string(workload).unwrap()).unwrap();
            let kernels =
                ["kernel1", "kernel2"].map(|k| text(&file[k]).parse::<Kernel>().unwrap().bind_to(1).unwrap());
            let whole = Grid::from_npy(picture).unwrap();
            (kernels, file["noise_variance"].as_f64().unwrap(), whole.channels()[0].clone())
        }
        _ => {
            let wave = |i: usize| ((i / 224) as f64 / 7.0).sin() * ((i % 224) as f64 / 9.0).cos();
            ([network(), network()], 0.1, (0..224 * 224).map(wave).collect())
        }
    };
    let axis: Vec<f64> = (0..224).map(|i| f64::from(i) / 224.0).collect();
    let mut mask = vec![false; 224 * 224];
    Hole { row: 60, column: 80, height: 60, width: 80 }.mark(224, 224, &mut mask).unwrap();
    let axes = vec![axis.clone(), axis];
    let grid = Grid::new(axes.clone(), vec![whole]).unwrap().hiding(&mask).unwrap();
    let y = grid.channels().to_vec();
    let length = y[0].iter().map(|v| v * v).sum::<f64>().sqrt();
    let programs: Vec<Program> = kernels.iter().map(|k| Program::compile(k, 1).unwrap()).collect();
    let theta: Vec<f64> = kernels.iter().flat_map(Kernel::values).collect();
    let mut gradient = vec![0.0; theta.len()];
    // The peers stop when |r|² ≤ 1e-6 |b| in units of the noise.
    println!("peers' tolerance as a relative residual: {:.2e}", (1e-6 * noise.sqrt() / length).sqrt());
    println!("| tolerance | steps | residual | objective | median ms | least ms |\n|---|---|---|---|---|---|");
    for tolerance in [1e-2, 1e-4, 1e-6, 1e-9] {
        let limits = ConjugateGradients { tolerance, steps: 1000 };
        let process = GridProcess::new(&programs, &axes, &grid, y.clone()).unwrap();
        let mut process = process.with_limits(limits).with_imaginary_noise(1e6);
        let mut times = Vec::new();
        let mut value = 0.0;
        for _ in 0..25 {
            let start = Instant::now();
            value = -process.gradient(&theta, noise, &mut gradient).unwrap().0;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let (steps, residual) = (process.account.steps, process.account.residual);
        println!("| {tolerance:.0e} | {steps} | {residual:.1e} | {value:.9} | {:.2} | {:.2} |", times[12], times[0]);
    }
}

fn list(v: &Value) -> String {
    match v {
        Value::Array(all) => all.iter().map(list).collect::<Vec<_>>().join(", "),
        other => format!("{:e}", other.as_f64().unwrap()),
    }
}

/// The text of a kernel given as primitives and layers with values; its PER has half our lengthscale.
fn text(v: &Value) -> String {
    let one = |p: &Value| {
        let get = |name: &str| list(&p[name]);
        match p["type"].as_str().unwrap() {
            "LIN" => format!("LIN(v={})", get("variance")),
            "RQ" => format!("RQ(v={}, l={}, a={})", get("variance"), get("lengthscale"), get("alpha")),
            "PER" => {
                let l = 2.0 * get("lengthscale").parse::<f64>().unwrap();
                format!("PER(v={}, l={l:e}, p={})", get("variance"), get("period"))
            }
            kind => format!("{kind}(v={}, l={})", get("variance"), get("lengthscale")),
        }
    };
    let primitives: Vec<String> = v["primitives"].as_array().unwrap().iter().map(one).collect();
    let mut width = primitives.len();
    let mut layers = Vec::new();
    for layer in v["layers"].as_array().unwrap() {
        if layer["type"] == "Product" {
            width /= 2;
            layers.push(format!("Product{width}"));
        } else {
            width = layer["bias"].as_array().unwrap().len();
            layers.push(format!("Linear{width}(w=[{}], b=[{}])", list(&layer["weights"]), list(&layer["bias"])));
        }
    }
    format!("nkn({}; {})", primitives.join(", "), layers.join("-"))
}
