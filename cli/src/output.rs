//! What is said and where: data on standard output, all else on standard error, colour only for people who can see it.

use crate::args::Common;
use crate::failure::Failure;
use covary::file::{Draft, write_atomically};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// How much is said.
pub struct Talk {
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    colour: bool,
}

impl Talk {
    pub fn new(common: &Common) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let colour = io::stderr().is_terminal() && !plain;
        Self { json: common.json, quiet: common.quiet, verbose: common.verbose > 0, colour }
    }

    /// Something worth knowing.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line("note", "36", text.as_ref());
        }
    }

    /// Something for those who asked for more.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.verbose && !self.quiet {
            self.say(text.as_ref());
        }
    }

    /// Text for people.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", text.trim_end_matches('\n'));
        }
    }

    /// An error is said even to the quiet.
    pub fn error(&self, text: &str, hint: Option<&str>) {
        self.line("error", "31", text);
        if let Some(hint) = hint {
            self.line("hint", "33", hint);
        }
    }

    fn line(&self, word: &str, code: &str, text: &str) {
        // Standard error that is gone cannot be told about it.
        let _ = match self.colour {
            true => writeln!(io::stderr(), "\x1b[1;{code}m{word}:\x1b[0m {text}"),
            false => writeln!(io::stderr(), "{word}: {text}"),
        };
    }

    /// Whether a person watches.
    pub fn watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Prints one JSON object.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::writing("standard output", e.into()))?;
    print(&format!("{text}\n"))
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::writing("standard output", e))
}

/// Where a table goes: a file that appears when it is whole, or standard output.
pub enum Sink {
    File(Draft),
    Stdout(io::BufWriter<io::Stdout>),
}

impl Sink {
    /// `-` and nothing are standard output.
    pub fn new(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(match path.filter(|p| *p != Path::new("-")) {
            Some(path) => Self::File(Draft::new(path)?),
            None => Self::Stdout(io::BufWriter::new(io::stdout())),
        })
    }

    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        match self {
            Self::File(draft) => draft.write_all(text.as_bytes()).map_err(|e| Failure::writing("the output file", e)),
            Self::Stdout(out) => out.write_all(text.as_bytes()).map_err(|e| Failure::writing("standard output", e)),
        }
    }

    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(draft) => Ok(draft.finish()?),
            Self::Stdout(mut out) => out.flush().map_err(|e| Failure::writing("standard output", e)),
        }
    }
}

/// One line of CSV.
pub fn csv_line<S: AsRef<str>>(line: &mut String, cells: impl IntoIterator<Item = S>) {
    cells.into_iter().for_each(|cell| csv_cell(line, cell.as_ref()));
    csv_end(line);
}

/// A cell and the comma after it.
pub fn csv_cell(line: &mut String, cell: &str) {
    if cell.contains([',', '"', '\n', '\r']) {
        let _ = write!(line, "\"{}\"", cell.replace('"', "\"\""));
    } else {
        line.push_str(cell);
    }
    line.push(',');
}

/// A number and the comma after it.
pub fn csv_number(line: &mut String, value: f64) {
    let _ = write!(line, "{value},");
}

/// The last comma becomes the end of the line.
pub fn csv_end(line: &mut String) {
    line.pop();
    line.push('\n');
}

/// Bytes to a file, or to standard output for `-`.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| Failure::writing("standard output", e));
    }
    Ok(write_atomically(path, bytes)?)
}

/// Whether results can be written where they are wanted, asked before the work begins. Pipes and devices are not touched.
pub fn check_writable(paths: &[Option<&PathBuf>]) -> Result<(), Failure> {
    let given: Vec<&PathBuf> = paths.iter().flatten().copied().collect();
    if let Some(path) = given.iter().find(|p| given.iter().filter(|q| q == p).count() > 1) {
        return Err(Failure::usage("output", format!("two results want the same file: {}", path.display())));
    }
    for path in given.into_iter().filter(|p| p.as_os_str() != "-") {
        if !std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            drop(Draft::new(path)?);
        }
    }
    Ok(())
}

/// Rows of cells as columns for people: the first to the left, numbers to the right.
pub fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let count = |s: &str| s.chars().count();
    let width = |c: usize| rows.iter().map(|r| count(&r[c])).chain([count(header[c])]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let right = |c: usize| {
        c > 0 && rows.iter().all(|r| r[c].is_empty() || r[c].trim_end_matches(" %").parse::<f64>().is_ok())
    };
    let mut text = String::new();
    let mut line = |cells: Vec<&str>| {
        let cell = |(c, s): (usize, &&str)| match right(c) {
            true => format!("{s:>w$}", w = widths[c]),
            false => format!("{s:<w$}", w = widths[c]),
        };
        let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    };
    line(header.to_vec());
    rows.iter().for_each(|r| line(r.iter().map(String::as_str).collect()));
    text
}

/// Bytes for people.
pub fn bytes(n: usize) -> String {
    match n as f64 {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.0} MB", n / 1e6),
        n => format!("{:.0} kB", n / 1e3),
    }
}

/// Four significant digits.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i64).clamp(0, 12) as usize;
    format!("{value:.digits$}")
}
