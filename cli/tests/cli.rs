//! The binary, run: exit codes, JSON, streams, hostile inputs, and every console block of `docs/cli.md`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const QUICK: [&str; 6] = ["--kernel", "LIN + RBF", "--restarts", "1", "--iterations", "10"];

fn covary(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_covary"));
    command.current_dir(dir).args(args).env_remove("COVARY_THREADS").stdin(Stdio::null());
    command
}

fn piped(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child =
        command(dir, args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A directory with the airline series, a small table, and a model of each.
fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let airline = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/airline.csv");
    fs::copy(airline, dir.path().join("airline.csv")).unwrap();
    let mut table = "a,b,colour,y\n".to_string();
    for i in 0..40 {
        let (a, b) = (f64::from(i) * 0.25, f64::from(i * i % 17));
        table += &format!("{a},{b},{},{}\n", ["red", "blue"][i as usize % 2], a.sin() + 0.1 * b);
    }
    fs::write(dir.path().join("table.csv"), table).unwrap();
    dir
}

fn fitted() -> TempDir {
    let dir = place();
    let fit = covary(dir.path(), &[&["fit", "table.csv", "--target", "y", "-o", "m.covary"], &QUICK[..]].concat());
    assert_eq!(fit.status.code(), Some(0), "{}", err(&fit));
    dir
}

fn keys(value: &serde_json::Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn every_exit_code() {
    let dir = fitted();
    let code = |args: &[&str]| covary(dir.path(), args).status.code();
    assert_eq!(code(&["kernels"]), Some(0));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["nonsense"]), Some(2));
    assert_eq!(code(&["fit", "table.csv"]), Some(2));
    assert_eq!(code(&["fit", "table.csv", "--target", "none"]), Some(2));
    assert_eq!(code(&["fit", "table.csv", "--target", "y", "--kernel", "RBF +"]), Some(2));
    assert_eq!(code(&["fit", "table.csv", "--target", "y", "--threads", "0"]), Some(2));
    assert_eq!(code(&["forecast", "airline.csv", "--horizon", "soon"]), Some(2));
    assert_eq!(code(&["forecast", "airline.csv"]), Some(2));
    assert_eq!(code(&["predict", "m.covary", "table.csv", "--interval", "95"]), Some(2));
    assert_eq!(code(&["fit", "absent.csv", "--target", "y"]), Some(3));
    assert_eq!(code(&["predict", "absent.covary", "table.csv"]), Some(4));
    assert_eq!(code(&["predict", "table.csv", "table.csv"]), Some(4));
    assert_eq!(code(&["predict", "m.covary", "absent.csv"]), Some(3));
    let bytes = fs::read(dir.path().join("m.covary")).unwrap();
    for damaged in [&bytes[..bytes.len() / 2], &[&bytes[..], b"x"].concat()[..]] {
        fs::write(dir.path().join("bad.covary"), damaged).unwrap();
        assert_eq!(code(&["evaluate", "bad.covary", "table.csv"]), Some(4));
    }
    let unwritable = [&["fit", "table.csv", "--target", "y", "-o", "none/m.covary"], &QUICK[..]].concat();
    assert_eq!(code(&unwritable), Some(1));
}

#[test]
fn errors_have_a_line_and_a_hint_and_no_colour_in_a_pipe() {
    let dir = place();
    let bad = covary(dir.path(), &["fit", "table.csv", "--target", "z"]);
    assert_eq!(out(&bad), "");
    let text = err(&bad);
    assert!(text.starts_with("error: no column `z`\nhint: the columns are a, b, colour, y\n"), "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn fit_tells_its_account() {
    let dir = place();
    let args = [&["fit", "table.csv", "--target", "y", "-o", "m.covary", "--json"], &QUICK[..]].concat();
    let value = json(&covary(dir.path(), &args));
    for key in [
        "method",
        "rows",
        "columns",
        "kernel",
        "log_marginal_likelihood",
        "noise_sd",
        "parameters",
        "iterations",
        "evaluations",
        "seconds",
        "converged",
        "reason",
        "jitter",
        "restarts",
        "loo",
        "seed",
        "peak_memory_bytes",
        "notes",
    ] {
        assert!(!value[key].is_null(), "{key}");
    }
    assert_eq!(keys(&value["loo"]), ["coverage_95", "log_density", "rmse"]);
    assert_eq!(value["rows"], 40);
    assert!(dir.path().join("m.covary").exists());
}

#[test]
fn the_same_command_gives_the_same_model_whatever_the_threads() {
    let dir = place();
    for (threads, name) in [("1", "a.covary"), ("2", "b.covary")] {
        let args =
            ["fit", "airline.csv", "--target", "passengers", "-o", name, "--iterations", "5", "--threads", threads];
        assert_eq!(covary(dir.path(), &args).status.code(), Some(0));
    }
    let kernel = |name: &str| {
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        let body: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
        body["kernel"].clone()
    };
    assert_eq!(kernel("a.covary"), kernel("b.covary"));
}

#[test]
fn predict_appends_columns_and_streams() {
    let dir = fitted();
    let plain = covary(dir.path(), &["predict", "m.covary", "table.csv"]);
    let text = out(&plain);
    assert!(text.starts_with("a,b,colour,y,mean,sd,lower,upper\n0,0,red,0,"), "{text}");
    assert_eq!(text.lines().count(), 41);
    let input = fs::read(dir.path().join("table.csv")).unwrap();
    assert_eq!(out(&piped(dir.path(), &["predict", "m.covary", "-"], &input)), text);
    let file = covary(dir.path(), &["predict", "m.covary", "table.csv", "-o", "out.csv"]);
    assert_eq!((out(&file), fs::read_to_string(dir.path().join("out.csv")).unwrap()), (String::new(), text));
    let means = out(&covary(dir.path(), &["predict", "m.covary", "table.csv", "--mean-only"]));
    assert!(means.starts_with("a,b,colour,y,mean\n"));
    let samples = out(&covary(dir.path(), &["predict", "m.covary", "table.csv", "--samples", "2", "--of", "f"]));
    assert!(samples.starts_with("a,b,colour,y,mean,sd,lower,upper,sample_1,sample_2\n"));
    let value = json(&covary(dir.path(), &["predict", "m.covary", "table.csv", "--json"]));
    for key in ["mean", "sd", "lower", "upper"] {
        assert_eq!(value[key].as_array().unwrap().len(), 40);
    }
}

#[test]
fn evaluate_tells_its_scores() {
    let dir = fitted();
    let value = json(&covary(dir.path(), &["evaluate", "m.covary", "table.csv", "--json"]));
    for key in ["rmse", "mae", "mean_log_density", "crps", "n"] {
        assert!(value[key].is_number(), "{key}");
    }
    assert_eq!(keys(&value["coverage"]), ["50", "80", "90", "95"]);
}

#[test]
fn bench_and_kernels_tell_theirs() {
    let dir = place();
    let value = json(&covary(dir.path(), &["bench", "evidence", "--n", "60", "--d", "2", "--repeat", "2", "--json"]));
    for key in ["seconds_per_evaluation", "factorisation_floor_seconds", "peak_memory_bytes"] {
        assert!(value[key].is_number(), "{key}");
    }
    assert_eq!(keys(&value["seconds"]), ["assembly", "factorisation", "inverse", "pullback"]);
    let kernels = json(&covary(dir.path(), &["kernels", "--json"]));
    assert!(kernels["kernels"].as_array().unwrap().iter().any(|k| k["name"] == "RBF"));
}

#[test]
fn quiet_is_quiet() {
    let dir = place();
    let args = [&["forecast", "airline.csv", "--horizon", "2", "--quiet"], &QUICK[..]].concat();
    let output = covary(dir.path(), &args);
    assert_eq!(err(&output), "");
    assert!(out(&output).starts_with("month,mean,sd,lower_80,upper_80,lower_95,upper_95\n1961-01,"));
}

#[test]
fn a_forecast_with_everything() {
    let dir = place();
    let args = [
        &["forecast", "airline.csv", "--until", "1961", "-o", "f.csv", "--plot", "f.svg", "--report", "f.html"][..],
        &["--model", "f.covary", "--transform", "log", "--backtest", "2", "--interval", "90", "--json"],
        &QUICK[..],
    ]
    .concat();
    let value = json(&covary(dir.path(), &args));
    assert_eq!(value["forecast"].as_array().unwrap().len(), 12);
    assert_eq!(keys(&value["forecast"][0]), ["lower_90", "mean", "sd", "time", "upper_90"]);
    let methods: Vec<&str> =
        value["backtest"]["scores"].as_array().unwrap().iter().map(|s| s["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["covary", "seasonal-naive", "drift", "smoothing"]);
    assert!(fs::read_to_string(dir.path().join("f.html")).unwrap().contains("<svg"));
    assert!(fs::read_to_string(dir.path().join("f.svg")).unwrap().contains("forecast begins"));

    // The model predicts at any times, and undoes the logarithm as the forecast did.
    fs::write(dir.path().join("times.csv"), "month\n1961-03\n").unwrap();
    let again = covary(dir.path(), &["predict", "f.covary", "times.csv", "--interval", "0.9", "--json"]);
    let again = json(&again);
    for (a, b) in [("mean", "mean"), ("sd", "sd"), ("lower", "lower_90"), ("upper", "upper_90")] {
        let (a, b) = (again[a][0].as_f64().unwrap(), value["forecast"][2][b].as_f64().unwrap());
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
    }
    let scores = json(&covary(dir.path(), &["evaluate", "f.covary", "airline.csv", "--json"]));
    assert!(scores["coverage"]["95"].as_f64().unwrap() > 0.85, "{scores}");
}

#[test]
fn one_bad_series_never_stops_the_rest() {
    let dir = place();
    let mut table = "shop,day,sales\n".to_string();
    for shop in ["north", "south", "short", "broken", "steady"] {
        for day in 1..=if shop == "short" { 1 } else { 28 } {
            let value = match (shop, day) {
                ("broken", 9) => "oops".to_string(),
                ("steady", _) => "5".to_string(),
                _ => (10.0 + f64::from(day % 7) + f64::from(day) * 0.1).to_string(),
            };
            // Text in one series would make the whole column text.
            let value = if value == "oops" { String::new() } else { value };
            table += &format!("{shop},2024-02-{day:02},{value}\n");
        }
    }
    fs::write(dir.path().join("shops.csv"), table).unwrap();
    let run = |threads: &str, out: &str| {
        let base =
            ["forecast", "shops.csv", "--id", "shop", "--horizon", "3", "-o", out, "--status", "s.csv", "--json"];
        covary(dir.path(), &[&base[..], &QUICK[..], &["--threads", threads]].concat())
    };
    let value = json(&run("1", "one.csv"));
    json(&run("2", "two.csv"));
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("one.csv"), read("two.csv"));
    let status: Vec<(&str, &str)> = value["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["id"].as_str().unwrap(), s["status"].as_str().unwrap()))
        .collect();
    assert_eq!((status[0], status[2], status[3]), (("north", "ok"), ("short", "failed"), ("broken", "failed")));
    assert_ne!(status[4].1, "failed");
    assert_eq!(read("s.csv").lines().count(), 6);
    assert!(read("one.csv").starts_with("shop,day,mean,sd,lower_80,upper_80,lower_95,upper_95\nnorth,2024-02-29,"));
}

#[test]
fn hostile_tables_are_refused_with_a_reason() {
    let dir = place();
    let long: String = (0..1_000_000).map(|i| format!("c{i},")).collect();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", b"".to_vec(), "empty"),
        ("header only", b"t,y\n".to_vec(), "no rows"),
        ("ragged", b"t,y\n1,2\n3\n".to_vec(), "line 3"),
        ("nan", b"t,y\n1,2\n2,NaN\n3,4\n".to_vec(), "missing"),
        ("text", b"t,y\n1,2\n2,3\n3,oops\n".to_vec(), "oops"),
        ("one row", b"t,y\n1,2\n".to_vec(), "too few rows"),
        ("invalid", b"t,y\n1,2\n\xff\xfe,3\n4,5\n".to_vec(), "UTF-8"),
        ("infinite", b"t,y\n1,2\n2,inf\n3,4\n".to_vec(), "finite"),
        ("wide", format!("{long}y\n1,2\n").into_bytes(), "cells found"),
    ];
    for (name, content, expected) in cases {
        fs::write(dir.path().join("bad.csv"), content).unwrap();
        let output = covary(dir.path(), &[&["fit", "bad.csv", "--target", "y"], &QUICK[..]].concat());
        assert_eq!(output.status.code(), Some(3), "{name}: {}", err(&output));
        assert!(err(&output).contains(expected), "{name}: {}", err(&output));
        assert_eq!(out(&output), "");
    }
    let directory = covary(dir.path(), &["fit", ".", "--target", "y"]);
    assert_eq!(directory.status.code(), Some(3));
    assert!(err(&directory).contains("a directory"));
    fs::write(dir.path().join("twice.csv"), "day,y\n2024-01-01,1\n2024-01-02,2\n2024-01-02,3\n").unwrap();
    let twice = covary(dir.path(), &["forecast", "twice.csv", "--horizon", "2"]);
    assert_eq!(twice.status.code(), Some(3));
    assert!(err(&twice).contains("the same time twice: 2024-01-02"), "{}", err(&twice));
}

#[test]
fn marks_and_line_ends_of_other_systems_are_read() {
    let dir = place();
    let airline = fs::read_to_string(dir.path().join("airline.csv")).unwrap();
    let args = |file: &'static str| [&["forecast", file, "--horizon", "2", "--quiet"], &QUICK[..]].concat();
    let plain = out(&covary(dir.path(), &args("airline.csv")));
    fs::write(dir.path().join("bom.csv"), format!("\u{feff}{}", airline.replace('\n', "\r\n"))).unwrap();
    assert_eq!(out(&covary(dir.path(), &args("bom.csv"))), plain);
    assert_eq!(out(&piped(dir.path(), &args("-"), airline.as_bytes())), plain);
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_model() {
    let dir = fitted();
    let old = fs::read(dir.path().join("m.covary")).unwrap();
    let script =
        "trap '' XFSZ; ulimit -f 1; exec \"$0\" fit table.csv --target y -o m.covary --kernel RBF --restarts 1";
    let output =
        Command::new("bash").current_dir(dir.path()).args(["-c", script, env!("CARGO_BIN_EXE_covary")]).output();
    let Ok(output) = output else { return }; // no bash here
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("m.covary"), "{}", err(&output));
    assert_eq!(fs::read(dir.path().join("m.covary")).unwrap(), old);
    assert!(fs::read_dir(dir.path()).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().ends_with(".tmp")));
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_model() {
    let dir = fitted();
    for wait in [5, 20, 40, 60, 80, 100, 120] {
        let args = [&["fit", "table.csv", "--target", "y", "-o", "m.covary", "--quiet"], &QUICK[..]].concat();
        let mut child = command(dir.path(), &args).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(covary(dir.path(), &["evaluate", "m.covary", "table.csv"]).status.code(), Some(0), "{wait}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_a_checkpoint_that_resumes() {
    let dir = place();
    let base = ["fit", "airline.csv", "--target", "passengers", "-o", "m.covary", "--iterations", "1000000"];
    // A network that never converges within the test: Adam takes small steps.
    let args = [&base[..], &["--optimizer", "adam", "--checkpoint", "c.json", "--restarts", "2"]].concat();
    let mut child = command(dir.path(), &args).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let asked = std::time::Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(asked.elapsed().as_secs_f64() < 1.0);
    assert!(!dir.path().join("m.covary").exists());
    let resumed = [&args[..], &["--resume", "c.json", "--time-limit", "300ms", "--json"]].concat();
    let value = json(&covary(dir.path(), &resumed));
    assert!(value["iterations"].as_u64().unwrap() > 10);
    assert!(dir.path().join("m.covary").exists());
    // Another seed is other work.
    let other = [&resumed[..], &["--seed", "3"]].concat();
    assert_eq!(covary(dir.path(), &other).status.code(), Some(4));
}

#[test]
fn the_demo_needs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = covary(dir.path(), &["demo"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    for file in ["forecast.csv", "forecast.svg", "report.html", "model.covary"] {
        assert!(fs::metadata(dir.path().join("covary-demo").join(file)).unwrap().len() > 1000, "{file}");
    }
    let text = out(&output);
    assert!(text.contains("1962-12") && text.contains("repeating every 1 year") && !text.contains('\x1b'), "{text}");
}

#[test]
fn completions_and_pages_are_made() {
    let dir = place();
    assert!(out(&covary(dir.path(), &["completions", "bash"])).contains("forecast"));
    assert!(out(&covary(dir.path(), &["man"])).contains(".TH covary"));
    assert_eq!(covary(dir.path(), &["man", "--dir", "man"]).status.code(), Some(0));
    assert!(dir.path().join("man/covary-fit.1").exists());
}

/// Lines `$ …` of the console blocks are run by `sh` in one directory, in order; a block that shows `[exit N]` expects
/// that code, any other 0. The output that the page shows is not compared.
#[test]
fn the_page_is_true() {
    let dir = place();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_covary")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in page.split("```console\n").skip(1).map(|b| b.split("```").next().unwrap()) {
        let expected = block.lines().find_map(|l| l.strip_prefix("[exit ")?.strip_suffix(']')).unwrap_or("0");
        for line in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
            let output =
                Command::new("sh").current_dir(dir.path()).env("PATH", &path).args(["-c", line]).output().unwrap();
            assert_eq!(output.status.code().unwrap().to_string(), expected, "{line}\n{}", err(&output));
            run += 1;
        }
    }
    assert!(run >= 10);
}
