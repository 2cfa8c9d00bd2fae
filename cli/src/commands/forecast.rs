//! `covary forecast`: a table with times becomes a table of the times to come.

use crate::args::{Common, Forecast as Args, TransformArg};
use crate::checkpoint::{self, Checkpoint, Done};
use crate::failure::Failure;
use crate::input::{check_memory_of_series, peak_memory};
use crate::output::{Sink, Talk, check_writable, columns, csv_line, print, print_json, short};
use crate::progress::{Place, Watch};
use covary::Dataset;
use covary::data::{Choice, Horizon, Table};
use covary::fit::Link;
use covary::forecast::{
    Backtest, Effort, Finding, Fitted, Forecast, Forecaster, Outcome, Plan, Series, Status, Transform, backtest,
    findings, forecast_all,
};
use covary::kernel::Task;
use covary::plot::{Colour, Terminal};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Iterations and restarts of one series, and of one of many.
const ONE: (Option<usize>, usize) = (Some(150), 6);
const MANY: (Option<usize>, usize) = (Some(60), 1);
/// The time of one of many, unless asked for otherwise: far more than any but a huge one needs.
const BUDGET: Duration = Duration::from_secs(60);

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let horizon = match (&args.horizon, &args.until) {
        (Some(text), _) => text.parse()?,
        (None, Some(date)) => Horizon::Until(date.clone()),
        (None, None) => return Err(Failure::usage("horizon", "give `--horizon` or `--until`")),
    };
    if args.interval.iter().any(|l| !(*l > 0.0 && *l < 100.0)) {
        return Err(Failure::usage("interval", "per cents between 0 and 100, such as 80,95"));
    }
    let twice = |l: &f64| args.interval.iter().filter(|m| *m == l).count() > 1;
    if let Some(level) = args.interval.iter().find(|l| twice(l)) {
        return Err(Failure::usage("interval", format!("the same one twice: {level}")));
    }
    if args.backtest == Some(0) {
        return Err(Failure::usage("backtest", "at least one origin is needed"));
    }
    if let Some(path) = args.plot.as_ref().filter(|p| !is_picture(p)) {
        let message = format!("a picture is written as .svg or .png, not as: {}", path.display());
        return Err(Failure::usage("plot", message));
    }
    if talk.json && args.output.as_deref() == Some("-".as_ref()) {
        return Err(Failure::usage("output", "`-o -` and `--json` both want standard output"));
    }
    let (checkpoint, status) = (args.search.checkpoint.as_ref(), args.status.as_ref());
    let results = [args.output.as_ref(), args.plot.as_ref(), args.report.as_ref(), args.model.as_ref()];
    check_writable(&[&results[..], &[checkpoint, status]].concat())?;
    let table = args.reading.table(&args.data)?;
    let time = args.time.as_deref();
    let (mut choice, guesses) = Choice::series(&table, time, args.target.as_deref(), args.id.as_deref())?;
    choice.missing = args.reading.missing();
    guesses.iter().for_each(|note| talk.note(note));
    match &args.id {
        None => one(args, common, talk, &table, &choice, &horizon, guesses),
        Some(id) => many(args, common, talk, &table, &choice, &horizon, id),
    }
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg") || e.eq_ignore_ascii_case("png"))
}

fn forecaster(args: &Args, fit: covary::Fit) -> Forecaster {
    Forecaster::new(fit).transform(match args.transform {
        TransformArg::None => Transform::None,
        TransformArg::Log => Transform::Log,
        TransformArg::Auto => Transform::Auto,
    })
}

fn one(
    args: &Args,
    common: &Common,
    talk: &Talk,
    table: &Table,
    choice: &Choice,
    horizon: &Horizon,
    mut notes: Vec<String>,
) -> Result<(), Failure> {
    let data = Dataset::from_table(table, choice).map_err(Failure::data)?;
    let steps = data.ahead_to(horizon)?.len();
    let (fit, iterations, restarts) = args.search.fit(Task::Series, common.seed, ONE)?;
    if let Some(origins) = args.backtest.filter(|k| k.saturating_mul(steps).saturating_add(8) > data.n()) {
        let n = data.n();
        let message = format!("{origins} origins of {steps} steps leave fewer than 8 of {n} rows to learn from");
        return Err(Failure::usage("backtest", message));
    }
    let forecaster = forecaster(args, fit).horizon(steps);
    check_memory_of_series(&forecaster, 1, data.n(), talk)?;
    let task = format!("forecast of one series, transform {}", args.transform.name());
    let mut checkpoint =
        Checkpoint::new(&task, &args.search.kernel, common.seed, restarts, checkpoint::fingerprint(&data));
    let mut resumed = forecaster.clone();
    if let Some(path) = &args.search.resume {
        checkpoint = Checkpoint::open(path, &checkpoint).map_err(Failure::model)?;
        for link in [Link::Identity, Link::Log] {
            resumed = resumed.resume(link, checkpoint.states(link));
        }
    }
    let fits = if args.transform == TransformArg::Auto { 2 } else { 1 };
    let place = Place::of(args.search.kept(), &[args.model.as_ref(), args.output.as_ref()]);
    let watch = Watch::new(talk, (fits * iterations * restarts) as u64, checkpoint, place);
    let fitted = resumed.run_observed(&data, |link, step| watch.step(link, step))?;
    let forecast = fitted.ahead(horizon, &args.interval)?;
    let tested = args.backtest.map(|origins| backtest(&forecaster, &data, steps, origins)).transpose()?;
    watch.clear();
    let found = findings(&fitted)?;
    let account = fitted.model.account();
    account.notes.iter().chain(&fitted.notes).for_each(|note| talk.note(note));
    notes.extend(account.notes.iter().chain(&fitted.notes).cloned());

    let reach = forecast.numbers.last().zip(data.x().column(0).iter().copied().reduce(f64::max));
    let reach = reach.filter(|_| fitted.axis().is_calendar()).map(|(to, from)| fitted.axis().in_words(to - from));
    let title = format!("{}: {} ahead", data.target(), reach.unwrap_or(format!("{steps} steps")));
    let plot = fitted.plot(&forecast, &title);
    if let Some(path) = &args.plot {
        plot.save(path)?;
    }
    if let Some(path) = &args.report {
        fitted.report(&forecast, &found, tested.as_ref(), &title)?.save(path)?;
    }
    if let Some(path) = &args.model {
        fitted.model.save(path)?;
    }
    if let Some(b) = &tested {
        talk.say(&backtest_table(b));
    }
    if args.output.is_none() && !talk.json && talk.watched() && std::io::stdout().is_terminal() {
        print(&table_for_people(&forecast, &choice.inputs[0]))?;
    } else if !talk.json || args.output.is_some() {
        write_table(args, &choice.inputs[0], None, std::iter::once((String::new(), forecast.clone())))?;
    }
    watch.finish()?;
    talk.detail(words(&found));
    if talk.json {
        return print_json(&summary(args, &fitted, &forecast, &found, tested.as_ref(), &notes, common));
    }
    if talk.watched() && std::io::stdout().is_terminal() {
        talk.say(&plot.to_text(&terminal())?);
    }
    Ok(())
}

/// A chart as wide as the terminal, within reason; colours only where they are wanted.
pub fn terminal() -> Terminal {
    let columns = terminal_size::terminal_size().map_or(80, |size| usize::from(size.0.0).clamp(40, 120));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) || !std::io::stdout().is_terminal();
    Terminal::new(columns, 20).colour(if plain { Colour::Plain } else { Colour::Ansi })
}

/// The forecast with four digits, in columns.
pub fn table_for_people(forecast: &Forecast, time: &str) -> String {
    let row =
        |i: usize| [forecast.times[i].clone()].into_iter().chain(forecast.row(i).into_iter().map(short)).collect();
    let rows: Vec<Vec<String>> = (0..forecast.times.len()).map(row).collect();
    let names = forecast.columns();
    columns(&[time].into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>(), &rows)
}

/// The largest findings as lines.
pub fn words(found: &[Finding]) -> String {
    let line = |f: &Finding| format!("  {:5.1} %  {}", 100.0 * f.share, f.words);
    found.iter().filter(|f| f.share >= 0.01).take(6).map(line).collect::<Vec<_>>().join("\n")
}

pub fn backtest_table(b: &Backtest) -> String {
    let share = |v: f64| format!("{:.0} %", 100.0 * v);
    let row = |s: &covary::forecast::Score| {
        vec![s.method.clone(), short(s.mae), short(s.rmse), short(s.mase), share(s.coverage_80), share(s.coverage_95)]
    };
    let rows: Vec<Vec<String>> = b.scores.iter().map(row).collect();
    let head = format!("backtest: {} origins, {} steps each, season {}\n", b.origins.len(), b.steps, b.season);
    head + &columns(&["method", "mae", "rmse", "mase", "in 80 %", "in 95 %"], &rows)
}

fn write_table(
    args: &Args,
    time: &str,
    id: Option<&str>,
    parts: impl Iterator<Item = (String, Forecast)>,
) -> Result<(), Failure> {
    let mut sink = Sink::new(args.output.as_deref())?;
    let mut text = String::new();
    let levels = Forecast {
        bands: args.interval.iter().map(|&level| covary::plot::Band { level, ..Default::default() }).collect(),
        ..Default::default()
    };
    csv_line(&mut text, id.map(String::from).into_iter().chain([time.to_string()]).chain(levels.columns()));
    for (name, forecast) in parts {
        for (i, at) in forecast.times.iter().enumerate() {
            let numbers = forecast.row(i).into_iter().map(|v| v.to_string());
            csv_line(&mut text, id.map(|_| name.clone()).into_iter().chain([at.clone()]).chain(numbers));
        }
        sink.write(&text)?;
        text.clear();
    }
    sink.write(&text)?;
    sink.finish()
}

pub fn rows_of(forecast: &Forecast) -> Vec<Value> {
    let names = forecast.columns();
    let row = |i: usize| {
        let mut value = json!({ "time": forecast.times[i] });
        names.iter().zip(forecast.row(i)).for_each(|(name, v)| value[name] = json!(v));
        value
    };
    (0..forecast.times.len()).map(row).collect()
}

fn summary(
    args: &Args,
    fitted: &Fitted,
    forecast: &Forecast,
    found: &[Finding],
    tested: Option<&Backtest>,
    notes: &[String],
    common: &Common,
) -> Value {
    let account = fitted.model.account();
    json!({
        "time": fitted.data().inputs()[0], "target": fitted.data().target(), "rows": fitted.data().n(),
        "steps": forecast.times.len(), "transform": fitted.model.link(), "intervals": args.interval,
        "forecast": rows_of(forecast), "log_marginal_likelihood": fitted.evidence, "noise_sd": account.noise_sd,
        "kernel": account.kernel, "findings": found, "backtest": tested, "iterations": account.iterations,
        "evaluations": account.evaluations, "seconds": account.seconds, "converged": account.converged,
        "reason": account.reason, "seed": common.seed, "peak_memory_bytes": peak_memory(), "notes": notes,
    })
}

fn many(
    args: &Args,
    common: &Common,
    talk: &Talk,
    table: &Table,
    choice: &Choice,
    horizon: &Horizon,
    id: &str,
) -> Result<(), Failure> {
    for (given, name) in [
        (args.backtest.is_some(), "backtest"),
        (args.plot.is_some(), "plot"),
        (args.report.is_some(), "report"),
        (args.model.is_some(), "model"),
    ] {
        if given {
            return Err(Failure::usage(name, "is for one series; leave out `--id`"));
        }
    }
    let clock = std::time::Instant::now();
    let series: Vec<Series> = table.groups(id)?.into_iter().map(|(id, rows)| Series { id, rows }).collect();
    let (mut fit, iterations, restarts) = args.search.fit(Task::Series, common.seed, MANY)?;
    if args.search.time_limit.is_none() {
        fit = fit.time_limit(BUDGET);
    }
    let longest = series.iter().map(|s| s.rows.len()).max().unwrap_or(0);
    let forecaster = forecaster(args, fit).effort(Effort::Quick);
    check_memory_of_series(&forecaster, series.len(), longest, talk)?;
    let task = format!(
        "forecasts of many series, transform {}, {horizon:?}, intervals {:?}, {iterations} iterations",
        args.transform.name(),
        args.interval
    );
    let data = checkpoint::fingerprint_of(table, choice, id)?;
    let mut checkpoint = Checkpoint::new(&task, &args.search.kernel, common.seed, restarts, data);
    if let Some(path) = &args.search.resume {
        checkpoint = Checkpoint::open(path, &checkpoint).map_err(Failure::model)?;
    }
    let before: HashSet<&str> = checkpoint.done.iter().map(Done::id).collect();
    let rest: Vec<Series> = series.iter().filter(|s| !before.contains(s.id.as_str())).cloned().collect();
    if !before.is_empty() {
        talk.note(format!("{} series were done before", before.len()));
    }
    let place = Place::of(args.search.kept(), &[args.output.as_ref(), args.status.as_ref()]);
    let watch = Watch::new(talk, rest.len() as u64, checkpoint, place);
    let plan = Plan { forecaster: &forecaster, choice, horizon, levels: &args.interval };
    let mut odd = Vec::new();
    forecast_all(&plan, table, &rest, |_, o| odd.extend(watch.done(o)), &AtomicBool::new(false));
    let done = watch.all_done();
    // One at a time: forecasts of very many series would fill the memory.
    let places: HashMap<&str, usize> = done.iter().enumerate().map(|(i, d)| (d.id(), i)).collect();
    let outcome = |s: &Series| {
        let kept = places.get(s.id.as_str()).map(|&i| done[i].restore());
        kept.or_else(|| odd.iter().find(|o: &&Outcome| o.id == s.id).cloned())
    };
    let outcomes = || series.iter().filter_map(outcome);

    watch.clear();
    let mut counts: HashMap<Status, usize> = HashMap::new();
    outcomes().for_each(|o| *counts.entry(o.status).or_default() += 1);
    let count = |status: Status| counts.get(&status).copied().unwrap_or(0);
    let (ok, fallback, failed) = (count(Status::Ok), count(Status::Fallback), count(Status::Failed));
    if !talk.json || args.output.is_some() {
        write_table(args, &choice.inputs[0], Some(id), outcomes().map(|o| (o.id, o.forecast)))?;
    }
    let header =
        [id, "status", "rows", "method", "transform", "log_marginal_likelihood", "converged", "seconds", "message"];
    let cells = |o: &Outcome| -> Vec<String> {
        let word = |v: Value| v.as_str().unwrap_or_default().to_string();
        vec![
            o.id.clone(),
            word(json!(o.status)),
            o.rows.to_string(),
            o.method.clone(),
            word(json!(o.transform)),
            o.log_marginal_likelihood.map_or(String::new(), |v| format!("{v:.3}")),
            o.converged.to_string(),
            format!("{:.3}", o.seconds),
            o.message.clone(),
        ]
    };
    if let Some(path) = &args.status {
        let mut text = String::new();
        csv_line(&mut text, header);
        outcomes().for_each(|o| csv_line(&mut text, cells(&o)));
        crate::output::write_file(path, text.as_bytes())?;
    }
    watch.finish()?;
    // All of a few, those that need a look of many.
    let shown = outcomes().filter(|o| series.len() <= 20 || o.status != Status::Ok).take(50);
    let rows: Vec<Vec<String>> = shown.map(|o| cells(&o)).collect();
    if !rows.is_empty() {
        talk.say(&columns(&header, &rows));
    }
    let seconds = clock.elapsed().as_secs_f64();
    talk.say(&format!(
        "{} series in {seconds:.1} s: {ok} fitted, {fallback} by a simple method, {failed} failed",
        ok + fallback + failed
    ));
    if talk.json {
        let value = |o: Outcome| {
            let mut value = json!(o);
            if args.output.is_none() {
                value["forecast"] = json!(rows_of(&o.forecast));
            }
            value
        };
        print_json(&json!({
            "id": id, "time": choice.inputs[0], "target": choice.target, "count": ok + fallback + failed, "ok": ok,
            "fallback": fallback, "failed": failed, "seconds": seconds, "seed": common.seed,
            "peak_memory_bytes": peak_memory(), "series": outcomes().map(value).collect::<Vec<_>>(),
        }))?;
    }
    if ok + fallback == 0 {
        let first = outcomes().next().map_or("there is none".to_string(), |o| o.message);
        let kind = covary::ErrorKind::NotATable {
            file: args.data.clone(),
            found: format!("no series could be forecast; the first: {first}"),
        };
        return Err(Failure::data(kind.into()));
    }
    Ok(())
}
