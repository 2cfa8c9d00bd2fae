//! Grids: the fast ways through the factors are the slow, dense process on the same cells.

use crate::golden::{kernel, numbers, shared};
use crate::kit::rng;
use covary::data::{Grid, Hole};
use covary::gp::{Exact, GridProcess, Posterior, Variances};
use covary::linalg::ConjugateGradients;
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use rand::RngExt;
use serde_json::Value;

const TIGHT: ConjugateGradients = ConjugateGradients { tolerance: 1e-13, steps: 10_000 };

struct Case {
    grid: Grid,
    programs: Vec<Program>,
    theta: Vec<f64>,
    noise: f64,
}

impl Case {
    /// A grid of this shape with uneven axes; `missing` says which cells are.
    fn new(shape: &[usize], kernels: &[&str], channels: usize, missing: impl Fn(usize) -> bool) -> Self {
        let mut rng = rng(5);
        let axes: Vec<Vec<f64>> = shape
            .iter()
            .map(|&n| (0..n).map(|i| i as f64 * 0.3 - 1.0 + rng.random_range(0.0..0.1)).collect())
            .collect();
        let cells: usize = shape.iter().product();
        let values = (0..channels).map(|_| (0..cells).map(|_| rng.random_range(-1.5..1.5)).collect()).collect();
        let grid = Grid::with_observed(axes, values, (0..cells).map(|i| !missing(i)).collect()).unwrap();
        let kernels: Vec<Kernel> = kernels.iter().map(|k| k.parse::<Kernel>().unwrap().bind_to(1).unwrap()).collect();
        let theta = kernels.iter().flat_map(Kernel::values).collect();
        let programs = kernels.iter().map(|k| Program::compile(k, 1).unwrap()).collect();
        Self { grid, programs, theta, noise: 0.07 }
    }

    fn process(&self) -> GridProcess<'_> {
        let y = self.grid.channels().to_vec();
        GridProcess::new(&self.programs, self.grid.axes(), &self.grid, y).unwrap().with_limits(TIGHT)
    }

    /// The coordinates of every cell.
    fn points(&self) -> Points {
        let (shape, axes) = (self.grid.shape(), self.grid.axes());
        let cells: usize = shape.iter().product();
        let row = |mut i: usize| {
            let mut row = vec![0.0; shape.len()];
            for a in (0..shape.len()).rev() {
                row[a] = axes[a][i % shape[a]];
                i /= shape[a];
            }
            row
        };
        Points::from_rows(&(0..cells).map(row).collect::<Vec<_>>()).unwrap()
    }

    /// The same process without any structure: the product of the axes' kernels over points.
    fn dense(&self, kernels: &[&str]) -> (Kernel, Vec<usize>) {
        let product = kernels.iter().enumerate().map(|(a, k)| k.parse::<Kernel>().unwrap().on(&[a]));
        let kernel = Kernel::product(product).bind_to(kernels.len()).unwrap();
        let seen = (0..self.grid.observed().len()).filter(|&i| self.grid.observed()[i]).collect();
        (kernel, seen)
    }
}

const TWO: [&str; 2] = ["RBF(l=0.7, v=1.3) + LIN(v=0.2)", "PER(p=1.1, l=0.9, v=0.8) * RBF(l=2, v=1) + C(v=0.1)"];
const THREE: [&str; 3] = ["RBF(l=0.7, v=1.3)", "RQ(l=0.8, a=0.5, v=0.9)", "MAT32(l=0.6, v=1.1)"];

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} {b}");
}

#[test]
fn a_complete_grid_is_the_exact_process() {
    for (shape, kernels) in [(vec![9, 7], &TWO[..]), (vec![4, 5, 6], &THREE[..])] {
        let case = Case::new(&shape, kernels, 1, |_| false);
        let (kernel, _) = case.dense(kernels);
        let (program, x) = (Program::compile(&kernel, shape.len()).unwrap(), Inputs::new(case.points()));
        let y = &case.grid.channels()[0];
        let mut exact = Exact::new(&program, &x, y, Threads::One).unwrap();
        let theta = kernel.values();
        assert_eq!(theta, case.theta);
        let (mut ours, mut theirs) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
        let mut process = case.process();
        let (value, slope) = process.gradient(&case.theta, case.noise, &mut ours).unwrap();
        let (expected, expected_slope) = exact.gradient(&theta, case.noise, &mut theirs).unwrap();
        close(value, expected, 1e-10, "evidence");
        close(process.evidence(&case.theta, case.noise).unwrap(), expected, 1e-10, "evidence alone");
        close(slope, expected_slope, 1e-9, "noise");
        ours.iter().zip(&theirs).for_each(|(a, b)| close(*a, *b, 1e-9, "gradient"));
        let posterior = Posterior::new(program.clone(), theta, case.noise, case.points(), y.clone(), None).unwrap();
        let prediction = posterior.predict(&case.points()).unwrap();
        let found = process.posterior(&case.theta, case.noise, 0).unwrap();
        assert_eq!(found.variances, Variances::Exact);
        close(found.evidence.unwrap(), expected, 1e-10, "exact evidence");
        found.mean[0].iter().zip(&prediction.mean).for_each(|(a, b)| close(*a, *b, 1e-9, "mean"));
        found.variance.iter().zip(&prediction.variance_f).for_each(|(a, b)| close(*a, *b, 1e-9, "variance"));
    }
}

#[test]
fn with_holes_means_variances_and_evidence_are_those_of_the_observed_cells() {
    let block = |i: usize| (3..6).contains(&(i / 8)) && (2..7).contains(&(i % 8)) || i == 70;
    let scattered = |i: usize| i % 5 == 2 || i % 7 == 3;
    let two = Case::new(&[10, 8], &TWO, 2, block);
    let three = Case::new(&[4, 5, 6], &THREE, 1, scattered);
    for (case, kernels) in [(two, &TWO[..]), (three, &THREE[..])] {
        let (kernel, seen) = case.dense(kernels);
        let program = Program::compile(&kernel, kernels.len()).unwrap();
        let x = case.points();
        let mut process = case.process();
        let found = process.posterior(&case.theta, case.noise, 3).unwrap();
        assert_eq!(found.variances, Variances::ExactInHoles(64));
        let sampled = process.posterior_within(&case.theta, case.noise, 3, 0).unwrap();
        assert_eq!(sampled.variances, Variances::Sampled(128));
        let mut evidence = 0.0;
        for (c, channel) in case.grid.channels().iter().enumerate() {
            let y: Vec<f64> = seen.iter().map(|&i| channel[i]).collect();
            let at = Inputs::new(x.select(&seen));
            let mut exact = Exact::new(&program, &at, &y, Threads::One).unwrap();
            evidence += exact.evidence(&kernel.values(), case.noise).unwrap();
            let dense =
                Posterior::new(program.clone(), kernel.values(), case.noise, x.select(&seen), y, None).unwrap();
            let prediction = dense.predict(&x).unwrap();
            found.mean[c].iter().zip(&prediction.mean).for_each(|(a, b)| close(*a, *b, 1e-8, "mean"));
            for i in 0..x.n() {
                let (v, expected, rough) = (found.variance[i], prediction.variance_f[i], sampled.variance[i]);
                if case.grid.observed()[i] {
                    // Only what the holes add is estimated, from 64 samples.
                    assert!((v - expected).abs() <= 0.35 * expected, "cell {i}: {v} {expected}");
                } else {
                    close(v, expected, 1e-8, "variance in a hole");
                }
                // The standard error of a variance from 128 samples is 0.125 of it; 120 cells need some room.
                assert!((rough - expected).abs() <= 0.55 * expected, "sampled, cell {i}: {rough} {expected}");
            }
        }
        close(found.evidence.unwrap(), evidence, 1e-9, "evidence");
    }
}

#[test]
fn the_mean_tends_to_the_dense_one_as_the_tolerance_shrinks() {
    let case = Case::new(&[12, 9], &TWO, 1, |i| (4..9).contains(&(i / 9)) && (2..7).contains(&(i % 9)));
    let exact = case.process().mean(&case.theta, case.noise).unwrap();
    let error = |tolerance: f64| {
        let mut process = case.process().with_limits(ConjugateGradients { tolerance, steps: 1000 });
        let mean = process.mean(&case.theta, case.noise).unwrap();
        let largest = mean[0].iter().zip(&exact[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        (largest, process.account.residual)
    };
    let (rough, fine) = (error(0.3), error(1e-7));
    assert!(rough.0 > 1e-4 && fine.0 < 1e-5, "{rough:?} {fine:?}");
    assert!(rough.1 > 1e-3 && fine.1 < 1e-5, "the residual tells: {rough:?} {fine:?}");
}

#[test]
fn gradients_with_holes_are_those_of_the_objective() {
    let block = |i: usize| (3..6).contains(&(i / 8)) && (2..7).contains(&(i % 8));
    let network = "nkn(LIN, RBF, RQ, PER; Linear4-Product2-Linear1)";
    for (case, channels) in [
        (Case::new(&[10, 8], &TWO, 2, block), 2),
        (Case::new(&[4, 5, 6], &THREE, 1, |i| i % 5 == 2), 1),
        (Case::new(&[10, 8], &[network, network], 1, block), 1),
    ] {
        let mut process = case.process();
        assert_eq!(process.observed(), channels * case.grid.observed().iter().filter(|s| **s).count());
        let mut gradient = vec![0.0; case.theta.len()];
        let (_, slope) = process.gradient(&case.theta, case.noise, &mut gradient).unwrap();
        let mut at = |theta: &[f64], noise: f64| process.evidence(theta, noise).unwrap();
        for i in 0..gradient.len() {
            let h = 1e-6 * case.theta[i].abs().max(0.1);
            let moved = |by: f64| {
                let mut theta = case.theta.clone();
                theta[i] += by;
                theta
            };
            let difference = (at(&moved(h), case.noise) - at(&moved(-h), case.noise)) / (2.0 * h);
            // Differences of a value of about 100 carry 1e-8 of rounding at this step.
            close(gradient[i], difference, 1e-5, &format!("parameter {i}"));
        }
        let difference = (at(&case.theta, case.noise + 1e-6) - at(&case.theta, case.noise - 1e-6)) / 2e-6;
        close(slope, difference, 1e-5, "noise");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let case = Case::new(&[60, 70], &TWO, 1, |i| (20..40).contains(&(i / 70)) && (20..50).contains(&(i % 70)));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut gradient = vec![0.0; case.theta.len()];
            let value = case.process().gradient(&case.theta, case.noise, &mut gradient).unwrap();
            (value, gradient)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn the_golden_block_agrees() {
    let Some(path) = shared("golden/kron_12x10_block.json") else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let sides: Vec<_> = ["kernel1", "kernel2"].iter().map(|k| kernel(&golden[k])).collect();
    let kernels: Vec<Kernel> =
        sides.iter().map(|(text, _)| text.parse::<Kernel>().unwrap().bind_to(1).unwrap()).collect();
    let programs: Vec<Program> = kernels.iter().map(|k| Program::compile(k, 1).unwrap()).collect();
    let theta: Vec<f64> = kernels.iter().flat_map(Kernel::values).collect();
    let (axes, y) = (vec![numbers(&golden["x1"]), numbers(&golden["x2"])], numbers(&golden["y"]));
    let observed = numbers(&golden["missing"]).iter().map(|m| *m == 0.0).collect();
    let noise = golden["noise_variance"].as_f64().unwrap();
    let grid = Grid::with_observed(axes.clone(), vec![y.clone()], observed).unwrap();
    let fresh = || GridProcess::new(&programs, &axes, &grid, vec![y.clone()]).unwrap().with_limits(TIGHT);
    let mut process = fresh().with_imaginary_noise(golden["imaginary_noise"].as_f64().unwrap());
    let mut gradient = vec![0.0; theta.len()];
    let (value, slope) = process.gradient(&theta, noise, &mut gradient).unwrap();
    let expected = golden["value"].as_f64().unwrap();
    assert!((value + expected).abs() <= 1e-10 * expected.abs(), "{value} {expected}");
    let names = sides.iter().zip(["k1.", "k2."]).flat_map(|((_, names), side)| names.iter().map(move |n| (side, n)));
    let mut checked = 0;
    for ((side, (name, k, factor)), ours) in names.zip(&gradient) {
        let theirs = numbers(&golden["gradient"][&format!("{side}{name}")]);
        let size = theirs.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let ours = -ours * factor;
        assert!((ours - theirs[*k]).abs() <= 1e-8 * size.max(1e-3), "{side}{name}[{k}]: {ours} {}", theirs[*k]);
        checked += 1;
    }
    assert_eq!(checked, theta.len());
    let theirs = golden["gradient"]["noise_variance"].as_f64().unwrap();
    assert!((slope + theirs).abs() <= 1e-9 * theirs.abs(), "noise {slope} {theirs}");
    // Without imaginary observations: what the observed cells say.
    let found = fresh().posterior(&theta, noise, 0).unwrap();
    let cells: Vec<usize> = golden["predict"]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| match &numbers(c)[..] {
            [i] => *i as usize,
            [i, j] => *i as usize * 10 + *j as usize,
            other => panic!("{other:?}"),
        })
        .collect();
    let (mean, variance) = (
        numbers(&golden["predict"]["observed_only_mean"]),
        numbers(&golden["predict"]["observed_only_latent_variance"]),
    );
    for ((&cell, mean), variance) in cells.iter().zip(mean).zip(variance) {
        close(found.mean[0][cell], mean, 1e-8, "mean");
        if !grid.observed()[cell] {
            close(found.variance[cell], variance, 1e-8, "variance");
        }
    }
}

#[test]
fn what_is_no_grid_is_refused_with_a_reason() {
    let axis = |n: usize| (0..n).map(|i| i as f64).collect::<Vec<f64>>();
    let says = |grid: covary::Result<Grid>, words: &str| {
        let error = grid.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let three = || vec![axis(3), axis(3)];
    says(Grid::with_observed(three(), vec![vec![0.0; 9]], vec![false; 9]), "no cell is observed");
    let mut empty_row = vec![true; 9];
    empty_row[3..6].fill(false);
    says(Grid::with_observed(three(), vec![vec![0.0; 9]], empty_row.clone()), "axis 1, place 2 of 3");
    says(Grid::picture(3, 3, vec![vec![0.0; 9]], empty_row), "row, place 2");
    let empty_column = (0..9).map(|i| i % 3 != 2).collect();
    says(Grid::with_observed(three(), vec![vec![0.0; 9]], empty_column), "axis 2, place 3 of 3");
    says(Grid::with_observed(three(), vec![vec![0.0; 9]], vec![true; 8]), "mask: expected 9, found 8");
    says(Grid::new(three(), vec![vec![0.0; 8]]), "expected 9, found 8");
    says(Grid::new(vec![axis(3)], vec![vec![0.0; 3]]), "two axes");
    says(Grid::new(vec![axis(3), vec![0.0, 0.0, 1.0]], vec![vec![0.0; 9]]), "does not ascend");
    says(Grid::new(vec![axis(3), vec![0.0, f64::NAN, 1.0]], vec![vec![0.0; 9]]), "not a finite number");
    let mut infinite = vec![0.0; 9];
    infinite[4] = f64::INFINITY;
    says(Grid::new(three(), vec![infinite]), "cell 5: not a finite number");
    let mut mask = vec![false; 9];
    for (text, words) in [
        ("0,0,4,1", "lies outside"),
        ("2,2,1,2", "lies outside"),
        ("18446744073709551615,0,2,2", "lies outside"),
        ("0,0,0,2", "empty"),
        ("0,0,1", "ROW,COL,HEIGHT,WIDTH"),
        ("a,0,1,1", "ROW,COL,HEIGHT,WIDTH"),
    ] {
        let error = text.parse::<Hole>().and_then(|hole| hole.mark(3, 3, &mut mask)).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    assert!(mask.iter().all(|m| !m));
    "1,0,2,1".parse::<Hole>().unwrap().mark(3, 3, &mut mask).unwrap();
    assert_eq!(mask.iter().filter(|m| **m).count(), 2);
}

#[test]
fn grids_come_from_long_tables() {
    use covary::data::{ReadOptions, Table};
    let read =
        |text: &str| Table::read(std::io::Cursor::new(text.to_string()), "t.csv", &ReadOptions::default()).unwrap();
    let text = "lon,lat,t\n10,1,5\n20,1,6\n30,1,7\n10,2,\n30,2,9\n20,0.5,1\n10,0.5,2\n";
    let grid = Grid::from_table(&read(text), &["lat", "lon"], "t").unwrap();
    assert_eq!((grid.shape(), grid.missing()), (vec![3, 3], vec![2, 6, 7]));
    assert_eq!(grid.axes()[0], [0.5, 1.0, 2.0]);
    assert_eq!(grid.channels()[0], [2.0, 1.0, 0.0, 5.0, 6.0, 7.0, 0.0, 0.0, 9.0]);
    assert_eq!(grid.names(), ["lat", "lon"]);
    let twice = Grid::from_table(&read(&format!("{text}20,1,3\n")), &["lat", "lon"], "t").unwrap_err();
    assert!(twice.to_string().contains("line 3 and line 9: the same cell twice"), "{twice}");
    let hollow = Grid::from_table(&read("a,b,v\n1,1,2\n1,2,3\n2,1,\n2,2,\n"), &["a", "b"], "v").unwrap_err();
    assert!(hollow.to_string().contains("a, place 2 of 2 (at 2): no observed cell"), "{hollow}");
    let text = Grid::from_table(&read("a,b,v\n1,x,2\n1,y,3\n"), &["a", "b"], "v").unwrap_err();
    assert!(text.to_string().contains("column `b`: not a number: x"), "{text}");
}

#[test]
fn going_on_from_the_last_solution_takes_fewer_steps_to_the_same_answer() {
    let block = |i: usize| (3..7).contains(&(i / 12)) && (2..9).contains(&(i % 12));
    let case = Case::new(&[12, 12], &TWO, 2, block);
    let limits = ConjugateGradients { tolerance: 1e-8, steps: 1000 };
    let (mut fresh, mut going) = (case.process().with_limits(limits), case.process().with_limits(limits).going_on());
    let (mut ours, mut theirs) = (vec![0.0; case.theta.len()], vec![0.0; case.theta.len()]);
    let mut steps = (0, 0);
    for k in 0..4 {
        let theta: Vec<f64> = case.theta.iter().map(|t| t * (1.0 + 1e-4 * f64::from(k))).collect();
        let (a, slope_a) = fresh.gradient(&theta, case.noise, &mut theirs).unwrap();
        let (b, slope_b) = going.gradient(&theta, case.noise, &mut ours).unwrap();
        // What is left of the residual enters the gradient to first order.
        close(b, a, 1e-9, "evidence");
        close(slope_b, slope_a, 1e-5, "noise");
        ours.iter().zip(&theirs).for_each(|(a, b)| close(*a, *b, 1e-5, "gradient"));
        if k > 0 {
            steps = (steps.0 + fresh.account.steps, steps.1 + going.account.steps);
        }
    }
    assert!(steps.1 < steps.0, "{steps:?}");
    // A spectrum that is not finite leaves nothing behind.
    let broken = vec![f64::NAN; case.theta.len()];
    assert!(going.gradient(&broken, case.noise, &mut ours).is_err());
    assert!(going.gradient(&case.theta, case.noise, &mut ours).unwrap().0.is_finite());
}
