//! Tables that nobody would want, and outputs that cannot be written.

use crate::kit::*;
use std::fs;
use std::process::Command;
use std::time::Duration;

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

/// Every kill comes while the file is written: some of it is there, and much is still to come.
#[test]
fn a_kill_while_a_large_file_is_written_leaves_the_old_one() {
    let dir = fitted();
    let rows = fs::read_to_string(dir.path().join("table.csv")).unwrap();
    let (header, body) = rows.split_once('\n').unwrap();
    fs::write(dir.path().join("long.csv"), format!("{header}\n{}", body.repeat(50_000))).unwrap();
    let old = "the old file\n".repeat(1000);
    fs::write(dir.path().join("out.csv"), &old).unwrap();
    for round in 0..30_u64 {
        let args = ["predict", "m.covary", "long.csv", "-o", "out.csv", "--quiet"];
        let mut child = command(dir.path(), &args).spawn().unwrap();
        let written =
            || strays(dir.path()).iter().any(|s| fs::metadata(dir.path().join(s)).is_ok_and(|m| m.len() > 0));
        while !written() {
            assert!(child.try_wait().unwrap().is_none(), "round {round}: it ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round * 7919 % 60));
        child.kill().unwrap();
        let killed = child.wait().unwrap().code().is_none();
        assert!(killed, "round {round}: it was done before it was killed");
        assert_eq!(fs::read_to_string(dir.path().join("out.csv")).unwrap(), old, "round {round}");
        for stray in strays(dir.path()) {
            fs::remove_file(dir.path().join(stray)).unwrap();
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_model() {
    let dir = fitted();
    for wait in (0..20).map(|i| 2 + i * 4) {
        let args = [&["fit", "table.csv", "--target", "y", "-o", "m.covary", "--quiet"], &QUICK[..]].concat();
        let mut child = command(dir.path(), &args).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(covary(dir.path(), &["evaluate", "m.covary", "table.csv"]).status.code(), Some(0), "{wait}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_the_work() {
    let dir = fitted();
    for (option, path) in [
        ("-o", "none/f.csv"),
        ("--plot", "none/f.svg"),
        ("--report", "none/f.html"),
        ("--model", "none/f.covary"),
        ("--checkpoint", "none/c.json"),
        ("-o", "."),
        ("-o", "airline.csv/f.csv"),
    ] {
        let args = [&["forecast", "airline.csv", "--horizon", "2", option, path], &QUICK[..]].concat();
        let output = covary(dir.path(), &args);
        assert_eq!(output.status.code(), Some(1), "{option} {path}: {}", err(&output));
        // Nothing was computed: no memory was asked for.
        assert!(err(&output).starts_with(&format!("error: {path}")), "{}", err(&output));
    }
    let output = covary(dir.path(), &["predict", "m.covary", "table.csv", "-o", "none/out.csv"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let read_only = dir.path().join("kept.csv");
    fs::write(&read_only, "kept").unwrap();
    let mut permissions = fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&read_only, permissions).unwrap();
    let output = covary(dir.path(), &["predict", "m.covary", "table.csv", "-o", "kept.csv"]);
    assert_eq!((output.status.code(), fs::read(&read_only).unwrap()), (Some(1), b"kept".to_vec()));
    assert_eq!(strays(dir.path()), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_a_closed_pipe_is_not() {
    let dir = fitted();
    let shell = |line: &str| {
        let script = format!("set -o pipefail; covary() {{ \"$binary\" \"$@\"; }}; {line}");
        let bash = &mut Command::new("bash");
        bash.current_dir(dir.path())
            .env("binary", env!("CARGO_BIN_EXE_covary"))
            .args(["-c", &script])
            .output()
            .unwrap()
    };
    for line in [
        "covary predict m.covary table.csv > /dev/full",
        "covary predict m.covary table.csv -o /dev/full",
        "covary kernels > /dev/full",
        "covary evaluate m.covary table.csv --json > /dev/full",
        "covary man > /dev/full",
        "covary forecast airline.csv --horizon 2 --iterations 2 --restarts 1 --kernel RBF > /dev/full",
    ] {
        let output = shell(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", err(&output));
        assert!(err(&output).contains("error: "), "{line}: {}", err(&output));
    }
    for line in [
        "yes 1,2,red,3 | cat <(echo a,b,colour,y) - | covary predict m.covary - | head -1",
        "covary kernels | true",
        "covary --help | true",
        "covary man | head -1",
        "covary completions bash | head -1",
    ] {
        let output = shell(line);
        // 141: the writer of the input was cut off as well.
        assert!(matches!(output.status.code(), Some(0 | 141)), "{line}: {}", err(&output));
        assert!(!err(&output).contains("panic") && !err(&output).contains("error"), "{line}: {}", err(&output));
    }
}

#[test]
fn a_damaged_parquet_file_is_our_error_and_nothing_else() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let dir = place();
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..50).map(|i| f64::from(i) * 0.5)));
    let c: ArrayRef = Arc::new(StringArray::from_iter_values((0..50).map(|i| ["a", "b"][i % 2])));
    let y: ArrayRef = Arc::new(Float64Array::from_iter_values((0..50).map(|i| (f64::from(i) * 0.5).sin())));
    let batch = RecordBatch::try_from_iter([("x", x), ("c", c), ("y", y)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let run = |bytes: &[u8]| {
        fs::write(dir.path().join("t.parquet"), bytes).unwrap();
        covary(dir.path(), &["fit", "t.parquet", "--target", "y", "--kernel", "RBF", "--iterations", "0", "--quiet"])
    };
    assert_eq!(run(&bytes).status.code(), Some(0));
    let (mut refused, step) = (0, bytes.len() / 150);
    for at in (0..bytes.len()).step_by(step.max(1)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        for damaged in [&damaged[..], &bytes[..at]] {
            let output = run(damaged);
            let (code, said) = (output.status.code(), err(&output));
            assert!(matches!(code, Some(0 | 2 | 3)), "byte {at}: {code:?} {said}");
            refused += usize::from(code == Some(3));
            let ours = |line: &str| line.starts_with("error: ") || line.starts_with("hint: ");
            assert!(said.lines().all(ours) && said.lines().count() <= 2, "byte {at}: {said}");
        }
    }
    assert!(refused > 100, "{refused}");
}
