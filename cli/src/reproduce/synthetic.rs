//! The paper's two made-up functions, with plots that show the pattern continued.

use super::Setup;
use super::report::Report;
use crate::failure::Failure;
use covary::kernel::Task;
use covary::plot::{Axis, Figure, Ink, Layer, Panel, Shades};
use covary::{Dataset, Fit, Kernel, Model, Points};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

const HEADER: [&str; 6] = ["where", "kernel", "rmse", "sd of truth", "in 95 %", "seconds"];

/// A function from a process with the sum of an RBF and a periodic kernel; 100 points in [−12, 0] ∪ [6, 14].
pub fn one(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let mut report = Report::new(name, &HEADER);
    let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
    // Random Fourier features of RBF(l = 3), and a periodic part of period 2.5 from its first harmonics.
    let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    let smooth: Vec<[f64; 3]> = (0..200)
        .map(|_| [normal(&mut rng) / 3.0, rng.random_range(0.0..std::f64::consts::TAU), normal(&mut rng)])
        .collect();
    let waves: Vec<[f64; 2]> =
        (1..=4).map(|h| [normal(&mut rng) / f64::from(h), normal(&mut rng) / f64::from(h)]).collect();
    let f = |t: f64| {
        let slow: f64 = smooth.iter().map(|[w, p, a]| a * (w * t + p).cos()).sum::<f64>() * (2.0f64 / 200.0).sqrt();
        let phase = std::f64::consts::TAU * t / 2.5;
        let turn = |(h, [a, b]): (usize, &[f64; 2])| {
            let (s, c) = ((h + 1) as f64 * phase).sin_cos();
            a * c + b * s
        };
        slow + waves.iter().enumerate().map(turn).sum::<f64>()
    };
    let mut x: Vec<f64> = (0..60).map(|_| rng.random_range(-12.0..0.0)).collect();
    x.extend((0..40).map(|_| rng.random_range(6.0..14.0)));
    x.sort_by(f64::total_cmp);
    let y: Vec<f64> = x.iter().map(|&t| f(t) + 0.05 * normal(&mut rng)).collect();
    let data = Dataset::new(Points::from_column(&x)?, y.clone())?;
    let grid: Vec<f64> = (0..=600).map(|i| -14.0 + 0.05 * f64::from(i)).collect();
    let truth: Vec<f64> = grid.iter().map(|&t| f(t)).collect();
    let mut figure = Figure::new(900, 620).title("A function with a gap in its data").columns(1);
    for (label, kernel) in [("NKN", Kernel::default_network(Task::Series)), ("RBF", Kernel::rbf())] {
        let (model, seconds) = fit(kernel, &data, setup)?;
        let said = model.distributions(&Points::from_column(&grid)?)?.0;
        let (mean, sd): (Vec<f64>, Vec<f64>) = said.iter().map(|m| m.moments()).map(|(m, v)| (m, v.sqrt())).unzip();
        for (place, range) in [("in the gap", 0.0..6.0), ("beyond the end", 14.0..16.0)] {
            let rows: Vec<usize> = (0..grid.len()).filter(|&i| range.contains(&grid[i])).collect();
            report.rows.push(row(place, label, &rows, &truth, &mean, &sd, seconds));
        }
        let end = |z: f64| mean.iter().zip(&sd).map(|(m, s)| m + z * s).collect::<Vec<f64>>();
        let panel = Panel::new(Axis::new("x"), Axis::new("y"))
            .title(label)
            .with(Layer::band(&grid, &end(-1.96), &end(1.96)).ink(Ink::Blue).opacity(0.2).name("95 % of f"))
            .with(Layer::line(&grid, &truth).ink(Ink::Grey).dashed().name("truth"))
            .with(Layer::line(&grid, &mean).ink(Ink::Blue).name("mean"))
            .with(Layer::points(&x, &y).name("data"));
        figure = figure.panel(panel);
    }
    figure.save(setup.out.join(format!("{name}.svg"))).map_err(Failure::data)?;
    Ok(report)
}

/// (cos 2a + cos 2b) √|ab| at 100 points of [−6, 6]².
pub fn two(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let mut report = Report::new(name, &HEADER);
    let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
    let f = |a: f64, b: f64| ((2.0 * a).cos() + (2.0 * b).cos()) * (a * b).abs().sqrt();
    let points: Vec<[f64; 2]> =
        (0..100).map(|_| [rng.random_range(-6.0..6.0), rng.random_range(-6.0..6.0)]).collect();
    let y: Vec<f64> = points.iter().map(|p| f(p[0], p[1])).collect();
    let data = Dataset::new(Points::from_rows(&points)?, y)?;
    let (side, reach) = (81usize, 8.0);
    let at = |i: usize| -reach + 2.0 * reach * i as f64 / (side - 1) as f64;
    // Rows of the image from the top: b falls.
    let grid: Vec<[f64; 2]> = (0..side * side).map(|i| [at(i % side), -at(i / side)]).collect();
    let truth: Vec<f64> = grid.iter().map(|p| f(p[0], p[1])).collect();
    let largest = truth.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let mut figure = Figure::new(1100, 420).title("(cos 2a + cos 2b) √|ab|, from 100 points within ±6").columns(3);
    let (px, py): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (p[0], p[1])).unzip();
    let add = |figure: Figure, title: &str, values: &[f64]| {
        let image = Layer::image(side, side, values)
            .spanning((-reach, reach), (-reach, reach))
            .shades(Shades::Signed, Some((-largest, largest)));
        let panel = Panel::new(Axis::new("a"), Axis::new("b")).title(title).with(image).equal_scales();
        figure.panel(panel.with(Layer::points(&px, &py).size(1.5)))
    };
    figure = add(figure, "truth", &truth);
    let network = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1")?;
    for (label, kernel) in [("NKN", network), ("RBF", Kernel::rbf())] {
        let (model, seconds) = fit(kernel, &data, setup)?;
        let said = model.distributions(&Points::from_rows(&grid)?)?.0;
        let (mean, sd): (Vec<f64>, Vec<f64>) = said.iter().map(|m| m.moments()).map(|(m, v)| (m, v.sqrt())).unzip();
        let inside = |i: &usize| grid[*i].iter().all(|v| v.abs() <= 6.0);
        let (near, far): (Vec<usize>, Vec<usize>) = (0..grid.len()).partition(inside);
        report.rows.push(row("within ±6", label, &near, &truth, &mean, &sd, seconds));
        report.rows.push(row("6 to 8", label, &far, &truth, &mean, &sd, seconds));
        figure = add(figure, label, &mean);
    }
    figure.save(setup.out.join(format!("{name}.svg"))).map_err(Failure::data)?;
    Ok(report)
}

fn fit(kernel: Kernel, data: &Dataset, setup: &Setup) -> Result<(Model, f64), Failure> {
    let clock = Instant::now();
    let starts = if kernel.is_network() { 8 } else { 2 };
    let model = Fit::new(kernel).restarts(starts).seed(setup.seed).run(data)?;
    Ok((model, clock.elapsed().as_secs_f64()))
}

fn row(
    place: &str,
    label: &str,
    rows: &[usize],
    truth: &[f64],
    mean: &[f64],
    sd: &[f64],
    seconds: f64,
) -> Vec<String> {
    let n = rows.len() as f64;
    let squares: f64 = rows.iter().map(|&i| (mean[i] - truth[i]).powi(2)).sum();
    let middle = rows.iter().map(|&i| truth[i]).sum::<f64>() / n;
    let spread: f64 = rows.iter().map(|&i| (truth[i] - middle).powi(2)).sum();
    let inside = rows.iter().filter(|&&i| (mean[i] - truth[i]).abs() <= 1.96 * sd[i]).count();
    vec![
        place.to_string(),
        label.to_string(),
        format!("{:.4}", (squares / n).sqrt()),
        format!("{:.4}", (spread / n).sqrt()),
        format!("{:.2}", inside as f64 / n),
        format!("{seconds:.1}"),
    ]
}
