//! Regression tables: the network, RBF and spectral mixtures on random splits and on splits that ask for extrapolation.
//! Nothing of the test rows is seen before they are scored.

use super::report::{Report, cell, mean_and_error};
use super::{Setup, paper};
use crate::failure::Failure;
use covary::data::{ReadOptions, Split, Table};
use covary::kernel::Task;
use covary::{Dataset, Fit, Kernel, Points};
use serde_json::json;
use std::collections::HashSet;
use std::time::Instant;

/// Small sets first; those after are fitted by the method that fits their size.
const SETS: [&str; 8] = ["yacht", "boston", "energy", "concrete", "wine", "power_plant", "kin8nm", "naval"];
const SMALL: usize = 5;
/// Naval's inputs include the other target as their last column.
const LEAKING: (&str, &str) = ("naval", "naval, no leak");

/// A data set as a table of numbers.
struct Set {
    /// As it is called in the table.
    title: String,
    name: &'static str,
    x: Points,
    y: Vec<f64>,
    /// Test rows of each random split.
    splits: Vec<Vec<usize>>,
}

/// How one fit did on one split.
struct Score {
    rmse: f64,
    density: f64,
    seconds: f64,
    evidence: f64,
}

pub fn random(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let header =
        ["set", "kernel", "rmse", "se", "ll", "ll se", "s/split", "paper rmse", "paper ll", "log rmse", "log ll"];
    let mut report = Report::new(name, &header);
    let mut details = Vec::new();
    each_set(setup, |set| {
        let count = if setup.quick { 1 } else { setup.splits.min(set.splits.len()) };
        for (label, fit) in kernels(setup) {
            let mut scores = Vec::new();
            for (i, test) in set.splits.iter().take(count).enumerate() {
                let split = Split::with_test(set.y.len(), test.clone()).map_err(Failure::data)?;
                let score = score(set, &split, fit.clone().seed(setup.seed + i as u64))?;
                setup.talk.say(&format!(
                    "{}, {label}, split {}: rmse {:.4}, ll {:.3}, {:.1} s",
                    set.title,
                    i + 1,
                    score.rmse,
                    score.density,
                    score.seconds
                ));
                details.push(json!({"set": set.title, "kernel": label, "split": i + 1, "rmse": score.rmse,
                    "log_likelihood": score.density, "seconds": score.seconds,
                    "log_marginal_likelihood": score.evidence}));
                scores.push(score);
            }
            let of = |f: fn(&Score) -> f64| mean_and_error(&scores.iter().map(f).collect::<Vec<_>>());
            let ((rmse, rmse_error), (density, density_error)) = (of(|s| s.rmse), of(|s| s.density));
            let published = paper::of(set.name).filter(|_| set.title == set.name);
            let paper = published.and_then(|p| p.random.iter().find(|r| r.0 == label));
            let log = published.and_then(|p| p.log).filter(|_| label == "NKN");
            let digits = decimals(rmse);
            report.rows.push(vec![
                set.title.clone(),
                label.to_string(),
                format!("{rmse:.digits$}"),
                format!("{rmse_error:.digits$}"),
                format!("{density:.3}"),
                format!("{density_error:.3}"),
                format!("{:.1}", of(|s| s.seconds).0),
                cell(paper.map(|p| p.1), 3),
                cell(paper.map(|p| p.3), 3),
                cell(log.map(|l| l[0]), 3),
                cell(log.map(|l| l[2]), 3),
            ]);
        }
        Ok(())
    })?;
    report.details = json!(details);
    report.remarks.push("paper: mean over ten splits; log: the published log of the paper's implementation".into());
    Ok(report)
}

pub fn pca(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let header = ["set", "kernel", "rmse", "ll", "s", "paper rmse", "paper ll", "log rmse", "log ll"];
    let mut report = Report::new(name, &header);
    each_set(setup, |set| {
        let split = Split::pca(&set.x).map_err(Failure::data)?;
        for (label, fit) in kernels(setup) {
            let (label, fit) = match label {
                "SM-4" => ("SM", mixture(set, &split, setup)?),
                _ => (label, fit),
            };
            let score = score(set, &split, fit.seed(setup.seed))?;
            let published = paper::of(set.name).filter(|_| set.title == set.name);
            let paper = published.and_then(|p| p.pca.iter().find(|r| r.0 == label));
            let log = published.and_then(|p| p.log_pca).filter(|_| label == "NKN");
            setup.talk.say(&format!("{}, {label}: rmse {:.4}, ll {:.3}", set.title, score.rmse, score.density));
            let digits = decimals(score.rmse);
            report.rows.push(vec![
                set.title.clone(),
                label.to_string(),
                format!("{:.digits$}", score.rmse),
                format!("{:.3}", score.density),
                format!("{:.1}", score.seconds),
                cell(paper.map(|p| p.1), 3),
                cell(paper.map(|p| p.2), 3),
                cell(log.map(|l| l[0]), 3),
                cell(log.map(|l| l[1]), 3),
            ]);
        }
        Ok(())
    })?;
    Ok(report)
}

/// Decimals that show three significant digits, three at least.
fn decimals(value: f64) -> usize {
    (2.0 - value.log10().floor()).clamp(3.0, 9.0) as usize
}

/// The kernels of the table and how they are fitted: the network as by default, the others from two starts.
fn kernels(setup: &Setup) -> Vec<(&'static str, Fit)> {
    let network = Fit::new(Kernel::default_network(Task::Table));
    let plain = |kernel: Kernel| Fit::new(kernel).restarts(2);
    let all = [("NKN", network), ("RBF", plain(Kernel::rbf())), ("SM-4", plain(Kernel::spectral_mixture(4)))];
    all.into_iter().filter(|(label, _)| Setup::takes(setup.kernels, label)).collect()
}

/// The spectral mixture with as many components, from 1 to 4, as predict a split of the same kind inside the training
/// rows best.
fn mixture(set: &Set, split: &Split, setup: &Setup) -> Result<Fit, Failure> {
    let inner = Set {
        title: set.title.clone(),
        name: set.name,
        x: set.x.select(&split.train),
        y: split.train.iter().map(|&i| set.y[i]).collect(),
        splits: vec![],
    };
    let validation = Split::pca(&inner.x).map_err(Failure::data)?;
    let fit = |q: usize| Fit::new(Kernel::spectral_mixture(q)).restarts(2).seed(setup.seed);
    let mut best = (f64::INFINITY, 1);
    for q in 1..=4 {
        let error = score(&inner, &validation, fit(q))?.rmse;
        if error < best.0 {
            best = (error, q);
        }
    }
    Ok(fit(best.1))
}

fn score(set: &Set, split: &Split, fit: Fit) -> Result<Score, Failure> {
    let pick = |rows: &[usize]| (set.x.select(rows), rows.iter().map(|&i| set.y[i]).collect::<Vec<f64>>());
    let ((x, y), (test_x, test_y)) = (pick(&split.train), pick(&split.test));
    let clock = Instant::now();
    let model = fit.run(&Dataset::new(x, y)?)?;
    let seconds = clock.elapsed().as_secs_f64();
    let said = model.distribution(&test_x)?;
    let n = test_y.len() as f64;
    let squares: f64 = said.iter().zip(&test_y).map(|(m, y)| (m.moments().0 - y).powi(2)).sum();
    let density: f64 = said.iter().zip(&test_y).map(|(m, y)| m.log_density(*y)).sum();
    let evidence = model.account().log_marginal_likelihood;
    Ok(Score { rmse: (squares / n).sqrt(), density: density / n, seconds, evidence })
}

/// Every wanted set, then the same without what leaks from training into test rows.
fn each_set(setup: &Setup, mut f: impl FnMut(&Set) -> Result<(), Failure>) -> Result<(), Failure> {
    for (place, name) in SETS.iter().enumerate() {
        let wanted =
            if setup.sets.is_empty() { place < SMALL || !setup.quick } else { Setup::takes(setup.sets, name) };
        if !wanted || (setup.quick && setup.sets.is_empty() && place > 0) {
            continue;
        }
        let set = read(setup, name)?;
        f(&set)?;
        if let Some(clean) = without_leaks(&set)? {
            f(&clean)?;
        }
    }
    Ok(())
}

fn read(setup: &Setup, name: &'static str) -> Result<Set, Failure> {
    let file = setup.file(&format!("uci/{name}.csv"))?;
    let table = Table::open(&file, &ReadOptions::default()).map_err(Failure::data)?;
    let target = table.headings().last().map_or_else(String::new, |h| (*h).to_string());
    let data = Dataset::from_csv(&file, &target).map_err(Failure::data)?;
    let (x, y) = (data.x().clone(), data.y().to_vec());
    let path = setup.file(&format!("uci/splits/{name}.csv"))?;
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::writing(&path.display().to_string(), e))?;
    let bad = || Failure::usage("data", format!("{}: its lines are not `split,test_rows`", path.display()));
    let mut splits = Vec::new();
    for line in text.lines().skip(1).filter(|l| !l.trim().is_empty()) {
        let rows = line.split_once(',').ok_or_else(bad)?.1;
        let numbers = rows.trim_matches('"').split_whitespace().map(|w| w.parse::<usize>().map_err(|_| bad()));
        splits.push(numbers.collect::<Result<Vec<usize>, Failure>>()?);
    }
    Ok(Set { title: name.to_string(), name, x, y, splits })
}

/// The set without rows that are there twice, or without the column that gives the target away.
fn without_leaks(set: &Set) -> Result<Option<Set>, Failure> {
    if set.name == LEAKING.0 {
        let columns: Vec<Vec<f64>> = (0..set.x.d() - 1).map(|c| set.x.column(c).to_vec()).collect();
        let x = Points::from_columns(&columns).map_err(Failure::data)?;
        let (y, splits) = (set.y.clone(), set.splits.clone());
        return Ok(Some(Set { title: LEAKING.1.into(), name: set.name, x, y, splits }));
    }
    let mut seen = HashSet::new();
    let bits = |i: usize| -> Vec<u64> { set.x.row(i).iter().chain([&set.y[i]]).map(|v| v.to_bits()).collect() };
    let kept: Vec<usize> = (0..set.y.len()).filter(|&i| seen.insert(bits(i))).collect();
    if kept.len() == set.y.len() {
        return Ok(None);
    }
    let place: std::collections::HashMap<usize, usize> =
        kept.iter().enumerate().map(|(new, &old)| (old, new)).collect();
    let renumber = |test: &Vec<usize>| test.iter().filter_map(|old| place.get(old).copied()).collect();
    Ok(Some(Set {
        title: format!("{}, deduplicated", set.name),
        name: set.name,
        x: set.x.select(&kept),
        y: kept.iter().map(|&i| set.y[i]).collect(),
        splits: set.splits.iter().map(renumber).collect(),
    }))
}
