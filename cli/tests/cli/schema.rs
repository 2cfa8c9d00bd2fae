//! The shape of every `--json`: names and types of all fields, however deep, against a text kept in
//! `cli/tests/snapshots/`. `COVARY_UPDATE=1 cargo test -p covary-cli json` writes those anew.

use crate::kit::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Adds the types found at every path below a value; elements of a list share one path.
fn walk(value: &Value, path: &str, found: &mut BTreeMap<String, Vec<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| walk(item, &format!("{path}[]"), found));
            "list"
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| walk(field, &format!("{path}.{name}"), found));
            "object"
        }
    };
    let kinds = found.entry(path.to_string()).or_default();
    if !kinds.contains(&kind) {
        kinds.push(kind);
        kinds.sort_unstable();
    }
}

fn check(name: &str, value: &Value) {
    let mut found = BTreeMap::new();
    walk(value, "", &mut found);
    let text: String =
        found.iter().skip(1).map(|(path, kinds)| format!("{path}: {}\n", kinds.join(" or "))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.txt"));
    if std::env::var_os("COVARY_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, kept, "the JSON of {name} has another shape than {}", path.display());
}

#[test]
fn json_has_the_shape_it_always_had() {
    let dir = place();
    let run = |args: &[&str]| json(&covary(dir.path(), &[args, &["--json"]].concat()));
    let quick = |args: &[&str]| run(&[args, &QUICK[..]].concat());
    check("demo", &run(&["demo"]));
    check("fit", &quick(&["fit", "table.csv", "--target", "y", "-o", "m.covary"]));
    check("predict", &run(&["predict", "m.covary", "table.csv", "--samples", "2"]));
    check("predict-mean-only", &run(&["predict", "m.covary", "table.csv", "--mean-only"]));
    check("predict-to-a-file", &run(&["predict", "m.covary", "table.csv", "-o", "out.csv"]));
    let hole = ["inpaint", "tile.png", "--hole", "10,12,6,8", "-o", "whole.png", "--truth", "tile.png"];
    check("inpaint", &run(&[&hole[..], &["--kernel", "RBF", "--restarts", "1", "--iterations", "5"]].concat()));
    check("evaluate", &run(&["evaluate", "m.covary", "table.csv"]));
    check(
        "forecast",
        &quick(&["forecast", "airline.csv", "--horizon", "2", "--backtest", "2", "--transform", "log"]),
    );
    let airline = fs::read_to_string(dir.path().join("airline.csv")).unwrap();
    let rows = airline.lines().skip(1).map(|row| format!("a,{row}\n")).collect::<String>();
    fs::write(dir.path().join("many.csv"), format!("shop,month,passengers\n{rows}b,1949-01,7\n")).unwrap();
    check("forecast-many", &quick(&["forecast", "many.csv", "--id", "shop", "--horizon", "2"]));
    check("bench-evidence", &run(&["bench", "evidence", "--n", "60", "--d", "2", "--repeat", "2"]));
    check("kernels", &run(&["kernels"]));
    check("completions", &run(&["completions", "bash"]));
    check("man", &run(&["man"]));
    check("man-to-a-directory", &run(&["man", "--dir", "man"]));
}
