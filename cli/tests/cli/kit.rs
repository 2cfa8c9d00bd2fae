//! How the tests run the binary, and what they run it on.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub const QUICK: [&str; 6] = ["--kernel", "LIN + RBF", "--restarts", "1", "--iterations", "10"];

pub fn covary(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_covary"));
    command.current_dir(dir).args(args).env_remove("COVARY_THREADS").stdin(Stdio::null());
    command
}

pub fn piped(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child =
        command(dir, args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A directory with the example series, a small table and a small picture.
pub fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["airline.csv", "nile.csv"] {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data").join(name);
        fs::copy(example, dir.path().join(name)).unwrap();
    }
    let mut table = "a,b,colour,y\n".to_string();
    for i in 0..40 {
        let (a, b) = (f64::from(i) * 0.25, f64::from(i * i % 17));
        table += &format!("{a},{b},{},{}\n", ["red", "blue"][i as usize % 2], a.sin() + 0.1 * b);
    }
    fs::write(dir.path().join("table.csv"), table).unwrap();
    let wave = |i: usize| 0.5 + 0.3 * ((i / 40) as f64 / 3.0).sin() * ((i % 40) as f64 / 2.0).cos();
    let tile = covary::data::Picture::new(40, 40, vec![(0..1600).map(wave).collect()]).unwrap();
    fs::write(dir.path().join("tile.png"), tile.to_png().unwrap()).unwrap();
    dir
}

pub fn fitted() -> TempDir {
    let dir = place();
    let fit = covary(dir.path(), &[&["fit", "table.csv", "--target", "y", "-o", "m.covary"], &QUICK[..]].concat());
    assert_eq!(fit.status.code(), Some(0), "{}", err(&fit));
    dir
}

/// Ctrl-C after a while: what it said and its code, which came within a second.
#[cfg(unix)]
pub fn interrupted(dir: &Path, args: &[&str], after: std::time::Duration) -> (Option<i32>, String) {
    let child = command(dir, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(after);
    let asked = std::time::Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed().as_secs_f64() < 1.0, "{:?}", asked.elapsed());
    (output.status.code(), err(&output))
}

/// The files of a directory that are neither given nor asked for.
pub fn strays(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|n| n.ends_with(".tmp") || n.ends_with(".checkpoint")).collect()
}
