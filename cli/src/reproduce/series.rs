//! Series: trained on the first two thirds and on the first nine tenths, the rest forecast.

use super::Setup;
use super::report::Report;
use crate::failure::Failure;
use covary::data::{Choice, ReadOptions, Table};
use covary::forecast::{Forecast, Forecaster};
use covary::kernel::Task;
use covary::{Dataset, Fit, Kernel};
use std::time::Instant;

/// Per cents of the intervals.
const LEVELS: [f64; 2] = [80.0, 95.0];

pub fn run(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let header = ["train", "kernel", "rmse", "crps", "in 80 %", "in 95 %", "seconds"];
    let mut report = Report::new(name, &header);
    let table = Table::open(setup.file(&format!("series/{name}.csv"))?, &ReadOptions::default());
    let table = table.map_err(Failure::data)?;
    let (choice, _) = Choice::series(&table, None, None, None).map_err(Failure::data)?;
    let data = Dataset::from_table(&table, &choice).map_err(Failure::data)?;
    let n = data.n();
    for (train, end) in [("2/3", 2 * n / 3), ("9/10", 9 * n / 10)] {
        let past = data.select(&(0..end).collect::<Vec<_>>());
        let (times, truth) = (data.x().column(0)[end..].to_vec(), &data.y()[end..]);
        for (label, fit) in kernels(setup) {
            let clock = Instant::now();
            let fitted = Forecaster::new(fit.seed(setup.seed)).horizon(n - end).run(&past)?;
            let seconds = clock.elapsed().as_secs_f64();
            let forecast = fitted.at(times.clone(), vec![String::new(); n - end], &LEVELS)?;
            let said = fitted.model.distribution(&covary::Points::from_column(&times)?)?;
            let crps = said.iter().zip(truth).map(|(m, y)| m.crps(*y)).sum::<f64>() / truth.len() as f64;
            report.rows.push(vec![
                train.to_string(),
                label.to_string(),
                format!("{:.4}", rmse(&forecast.mean, truth)),
                format!("{crps:.4}"),
                format!("{:.2}", coverage(&forecast, 0, truth)),
                format!("{:.2}", coverage(&forecast, 1, truth)),
                format!("{seconds:.1}"),
            ]);
            setup.talk.say(&format!("{name}, {train}, {label}: {}", report.rows[report.rows.len() - 1][2]));
            if label == "NKN" {
                let mut plot = fitted.plot(&forecast, &format!("{name}, trained on the first {train}"));
                plot.later = truth.to_vec();
                plot.save(setup.out.join(format!("{name}-{}.svg", train.replace('/', "-"))))
                    .map_err(Failure::data)?;
                report.remarks.extend(fitted.notes.iter().map(|note| format!("{train}: {note}")));
            }
        }
    }
    Ok(report)
}

/// The network as by default, and the kernels the paper compares it with, alone.
fn kernels(setup: &Setup) -> Vec<(&'static str, Fit)> {
    let network = Fit::new(Kernel::default_network(Task::Series));
    let parse = |text: &str| text.parse::<Kernel>().expect("a kernel of our own");
    let plain = |text: &str| Fit::new(parse(text)).restarts(2);
    let all = [
        ("NKN", network),
        ("heuristic", plain("heuristic")),
        ("RBF", plain("RBF")),
        ("PER", plain("PER")),
        ("SM-4", plain("SM4")),
    ];
    all.into_iter().filter(|(label, _)| Setup::takes(setup.kernels, label)).collect()
}

fn rmse(mean: &[f64], truth: &[f64]) -> f64 {
    let squares: f64 = mean.iter().zip(truth).map(|(m, y)| (m - y).powi(2)).sum();
    (squares / truth.len() as f64).sqrt()
}

fn coverage(forecast: &Forecast, band: usize, truth: &[f64]) -> f64 {
    let band = &forecast.bands[band];
    let ends = band.lower.iter().zip(&band.upper);
    let inside = truth.iter().zip(ends).filter(|(y, (l, u))| *l <= *y && *y <= *u).count();
    inside as f64 / truth.len() as f64
}
