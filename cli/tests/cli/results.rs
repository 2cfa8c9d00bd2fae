//! What the commands compute and where it goes.

use crate::kit::*;
use std::fs;

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

/// The kernel's own account of the most memory the process held.
#[cfg(target_os = "linux")]
#[test]
fn standard_input_is_predicted_in_bounded_memory() {
    let dir = fitted();
    let table = fs::read_to_string(dir.path().join("table.csv")).unwrap();
    let (header, body) = table.split_once('\n').unwrap();
    let peak = |copies: usize| {
        let input = format!("{header}\n{}", body.repeat(copies));
        let args = ["predict", "m.covary", "-", "--mean-only", "--json", "-o", "out.csv"];
        let value = json(&piped(dir.path(), &args, input.as_bytes()));
        assert_eq!(value["rows"], 40 * copies);
        assert_eq!(fs::read_to_string(dir.path().join("out.csv")).unwrap().lines().count(), 40 * copies + 1);
        value["peak_memory_bytes"].as_f64().unwrap()
    };
    // 5 MB of text are several pieces; ten times as much must not need more.
    let (some, more) = (peak(5_000), peak(50_000));
    assert!(more < 1.25 * some + 4e6, "{some} {more}");
}

#[test]
fn cells_come_out_as_they_went_in() {
    let dir = fitted();
    let rows = "code,a,b,colour,note\n007,1.50,2e0, red ,\"x, y\"\n12345678901234567890,+2,3,blue,NA\n";
    fs::write(dir.path().join("new.csv"), rows).unwrap();
    let text = out(&covary(dir.path(), &["predict", "m.covary", "new.csv", "--mean-only"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "code,a,b,colour,note,mean");
    assert!(lines[1].starts_with("007,1.50,2e0,red,\"x, y\","), "{text}");
    assert!(lines[2].starts_with("12345678901234567890,+2,3,blue,NA,"), "{text}");
    // A decimal comma would not survive among commas.
    fs::write(dir.path().join("new.csv"), "a;b;colour\n1,5;2;red\n").unwrap();
    let text = out(&covary(dir.path(), &["predict", "m.covary", "new.csv", "--mean-only"]));
    assert!(text.starts_with("a,b,colour,mean\n1.5,2,red,"), "{text}");
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
    let names: Vec<&String> = value["forecast"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["time", "mean", "sd", "lower_90", "upper_90"]);
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
    // No time at all: simple methods take over.
    let args = ["forecast", "shops.csv", "--id", "shop", "--horizon", "3", "--time-limit", "0s", "--json"];
    let hasty = json(&covary(dir.path(), &args));
    assert_eq!((hasty["ok"].as_u64(), hasty["fallback"].as_u64()), (Some(0), Some(3)), "{hasty}");
    assert_eq!(hasty["series"][0]["method"], "seasonal-naive");
    assert!(read("one.csv").starts_with("shop,day,mean,sd,lower_80,upper_80,lower_95,upper_95\nnorth,2024-02-29,"));
}
