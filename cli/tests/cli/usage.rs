//! Exit codes, streams, what is said and what is not.

use crate::kit::*;
use std::fs;

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
fn quiet_is_quiet() {
    let dir = place();
    let args = [&["forecast", "airline.csv", "--horizon", "2", "--quiet"], &QUICK[..]].concat();
    let output = covary(dir.path(), &args);
    assert_eq!(err(&output), "");
    assert!(out(&output).starts_with("month,mean,sd,lower_80,upper_80,lower_95,upper_95\n1961-01,"));
}

#[test]
fn what_does_not_fit_into_memory_is_refused() {
    let dir = place();
    let args = ["fit", "table.csv", "--target", "y"];
    let output = command(dir.path(), &args).env("COVARY_MEMORY", "1000000").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("error: memory: ") && err(&output).contains("hint: "), "{}", err(&output));
    // The need comes before the refusal, and the refusal names what would fit: rows, and the method for all of them.
    let mut text = "x,y\n".to_string();
    (0..9000).for_each(|i| text += &format!("{},{}\n", f64::from(i) * 0.37 % 11.0, f64::from(i) * 0.11 % 7.0));
    fs::write(dir.path().join("tall.csv"), text).unwrap();
    let run = |args: &[&str], memory: &str| {
        let output = command(dir.path(), args).env("COVARY_MEMORY", memory).output().unwrap();
        (output.status.code(), err(&output))
    };
    let (code, said) = run(&["fit", "tall.csv", "--target", "y", "--method", "exact"], "600000000");
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("method exact: 9000 rows, 1 input column, about 1.3 GB of memory\nerror: memory: "),
        "{said}"
    );
    assert!(said.contains("`--rows 5900`") && said.contains("`--method sparse`"), "{said}");
    let many = ["forecast", "many.csv", "--id", "id", "--horizon", "2", "--threads", "2", "--kernel", "C"];
    let rows: String = (0..40).map(|i| format!("{},{i},{}\n", i % 2, i * i % 7)).collect();
    fs::write(dir.path().join("many.csv"), format!("id,t,y\n{rows}")).unwrap();
    let (code, said) = run(&many, "10000000");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("2 series, the longest of 20 rows, about 17 MB of memory"), "{said}");
    assert!(said.contains("hint: `--threads 1` needs about 8 MB"), "{said}");
}

#[test]
fn completions_and_pages_are_made() {
    let dir = place();
    assert!(out(&covary(dir.path(), &["completions", "bash"])).contains("forecast"));
    assert!(out(&covary(dir.path(), &["man"])).contains(".TH covary"));
    assert_eq!(covary(dir.path(), &["man", "--dir", "man"]).status.code(), Some(0));
    assert!(dir.path().join("man/covary-fit.1").exists());
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

/// Slips of the finger: each ends at once, with a word about the option and nothing computed.
#[test]
fn odd_options_are_refused_before_the_work() {
    let dir = fitted();
    let forecast = |more: &[&'static str]| [&["forecast", "airline.csv", "--horizon", "2"], more].concat();
    let fit = |more: &[&'static str]| [&["fit", "airline.csv", "--target", "passengers"], more].concat();
    for (args, expected) in [
        (forecast(&["--interval", "80,80"]), "interval: the same one twice: 80"),
        (forecast(&["--interval", "80,100"]), "interval: per cents between 0 and 100"),
        (forecast(&["--backtest", "0"]), "backtest: at least one origin"),
        (forecast(&["--backtest", "18446744073709551615"]), "backtest: 18446744073709551615 origins of 2 steps"),
        (forecast(&["--plot", "f.gif"]), "plot: a picture is written as .svg or .png, not as: f.gif"),
        (forecast(&["-o", "f.csv", "--model", "f.csv"]), "output: two results want the same file: f.csv"),
        (forecast(&["-o", "-", "--model", "-"]), "output: two results want the same file: -"),
        (forecast(&["--threads", "100000"]), "threads: a number from 1 to 1024: 100000"),
        (forecast(&["--horizon", "0"]), "cannot be used multiple times"),
        (fit(&["--rows", "0"]), "rows: at least one is needed"),
        (fit(&["--delimiter", "xx"]), "delimiter: one character"),
        (fit(&["--kernel", "search"]), "kernel: `search` is not part"),
        (vec!["predict", "-", "-"], "data: model and table cannot both"),
        (vec!["evaluate", "-", "-"], "data: model and table cannot both"),
        (vec!["bench", "evidence", "--n", "0"], "n: at least two rows"),
    ] {
        let output = covary(dir.path(), &args);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected) && !said.contains("method exact"), "{args:?}: {said}");
    }
    let bench = covary(dir.path(), &["bench", "evidence", "--n", "1000000"]);
    assert_eq!(bench.status.code(), Some(1));
    assert!(err(&bench).contains("rows fit here"), "{}", err(&bench));
}

#[test]
fn dates_that_cannot_be_read_are_told_and_not_passed_over() {
    let dir = place();
    fs::write(dir.path().join("d.csv"), "date,y\n01/02/2024,1\n02/02/2024,2\n03/02/2024,3\n").unwrap();
    let output = covary(dir.path(), &["forecast", "d.csv", "--horizon", "2"]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(err(&output).contains("column `date`"), "{}", err(&output));
}
