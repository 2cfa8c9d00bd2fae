//! Long work: Ctrl-C, checkpoints, resuming.
#![cfg(unix)]

use crate::kit::*;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

/// A fit that never converges within a test: Adam takes small steps.
const ENDLESS: [&str; 6] = ["--optimizer", "adam", "--iterations", "1000000", "--restarts", "2"];
const WHILE: Duration = Duration::from_millis(1500);

#[test]
fn ctrl_c_keeps_a_checkpoint_that_resumes() {
    let dir = place();
    let base = ["fit", "airline.csv", "--target", "passengers", "-o", "m.covary"];
    let args = [&base[..], &ENDLESS, &["--checkpoint", "c.json"]].concat();
    let (code, said) = interrupted(dir.path(), &args, WHILE);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("`--resume c.json` goes on"), "{said}");
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
fn a_checkpoint_without_a_name_lies_beside_the_result_or_here() {
    let dir = place();
    let base = ["fit", "airline.csv", "--target", "passengers"];
    let (code, said) = interrupted(dir.path(), &[&base[..], &ENDLESS, &["-o", "m.covary"]].concat(), WHILE);
    assert_eq!((code, strays(dir.path())), (Some(130), vec!["m.covary.checkpoint".to_string()]), "{said}");
    let (code, said) = interrupted(dir.path(), &[&base[..], &ENDLESS].concat(), WHILE);
    assert_eq!((code, strays(dir.path()).len()), (Some(130), 2), "{said}");
    assert!(said.contains("`--resume covary.checkpoint` goes on"), "{said}");
}

#[test]
fn an_interrupted_forecast_resumes() {
    let dir = place();
    let base = ["forecast", "airline.csv", "--horizon", "6", "-o", "f.csv"];
    let args = [&base[..], &ENDLESS, &["--checkpoint", "c.json"]].concat();
    let (code, said) = interrupted(dir.path(), &args, WHILE);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("the best so far is in c.json"), "{said}");
    assert!(!dir.path().join("f.csv").exists());
    let resumed = [&args[..], &["--resume", "c.json", "--time-limit", "300ms", "--json"]].concat();
    let value = json(&covary(dir.path(), &resumed));
    assert!(value["iterations"].as_u64().unwrap() > 10, "{value}");
    assert_eq!(fs::read_to_string(dir.path().join("f.csv")).unwrap().lines().count(), 7);
    // Another transform is other work, and a fit's checkpoint is none of a forecast.
    let other = covary(dir.path(), &[&resumed[..], &["--transform", "none"]].concat());
    assert_eq!(other.status.code(), Some(4));
    assert!(err(&other).contains("another task"), "{}", err(&other));
    let fit = ["fit", "airline.csv", "--target", "passengers", "--resume", "c.json", "--restarts", "2"];
    assert_eq!(covary(dir.path(), &fit).status.code(), Some(4));
}

#[test]
fn of_many_series_those_that_are_done_are_kept() {
    let dir = place();
    let mut table = "shop,day,sales\n".to_string();
    for shop in 0..60 {
        for day in 1..=28 {
            let value = 10.0 + f64::from(shop) + f64::from(day % 7) + (f64::from(day * (shop + 3)) * 0.7).sin();
            writeln!(table, "s{shop},2024-02-{day:02},{value}").unwrap();
        }
    }
    fs::write(dir.path().join("shops.csv"), table).unwrap();
    let base = ["forecast", "shops.csv", "--id", "shop", "--horizon", "3", "--quiet"];
    let run = |out: &'static str, more: &[&'static str]| [&base[..], &["-o", out], more].concat();
    // Enough work that some are done and some are not, on any machine: the wait doubles until it is so.
    let (mut wait, path) = (Duration::from_millis(100), dir.path().join("c.json"));
    let done = loop {
        let _ = fs::remove_file(&path);
        let (code, _) = interrupted(dir.path(), &run("f.csv", &["--checkpoint", "c.json"]), wait);
        if let Ok(text) = fs::read_to_string(&path) {
            assert_eq!(code, Some(130));
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            break value["done"].as_array().unwrap().len();
        }
        assert_eq!(code, Some(130), "all was done before any was interrupted");
        wait = wait * 3 / 2;
    };
    assert!((1..60).contains(&done), "{done}");
    assert!(!dir.path().join("f.csv").exists());
    let resumed = covary(dir.path(), &run("f.csv", &["--resume", "c.json", "--json"]));
    assert_eq!(json(&resumed)["count"], 60);
    assert_eq!(covary(dir.path(), &run("whole.csv", &[])).status.code(), Some(0));
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("f.csv"), read("whole.csv"));
    // Other rows are other work.
    fs::write(dir.path().join("shops.csv"), read("shops.csv").replace("s5,", "t5,")).unwrap();
    assert_eq!(covary(dir.path(), &run("f.csv", &["--resume", "c.json"])).status.code(), Some(4));
}

#[test]
fn an_interrupted_prediction_leaves_nothing_behind() {
    let dir = fitted();
    let rows = fs::read_to_string(dir.path().join("table.csv")).unwrap();
    let (header, body) = rows.split_once('\n').unwrap();
    fs::write(dir.path().join("long.csv"), format!("{header}\n{}", body.repeat(50_000))).unwrap();
    fs::write(dir.path().join("out.csv"), "old").unwrap();
    let args = ["predict", "m.covary", "long.csv", "-o", "out.csv"];
    let (code, said) = interrupted(dir.path(), &args, Duration::from_millis(300));
    assert_eq!((code, said.as_str()), (Some(130), "interrupted\n"));
    assert_eq!(fs::read_to_string(dir.path().join("out.csv")).unwrap(), "old");
    assert_eq!(strays(dir.path()), [""; 0]);
}
