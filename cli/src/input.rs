//! Tables and models in, and the machine's memory.

use crate::args::Reading;
use crate::failure::Failure;
use crate::output::bytes;
use covary::data::{Missing, ReadOptions, Table};
use covary::{Fit, Model};
use std::path::Path;

impl Reading {
    pub fn options(&self) -> Result<ReadOptions, Failure> {
        let delimiter = match self.delimiter.as_deref() {
            None => None,
            Some("tab" | "\\t") => Some(b'\t'),
            Some(text) if text.len() == 1 => Some(text.as_bytes()[0]),
            Some(text) => return Err(Failure::usage("delimiter", format!("one character, or `tab`: {text}"))),
        };
        Ok(ReadOptions { delimiter, missing_words: self.na.clone(), rows: self.rows, ..ReadOptions::default() })
    }

    pub fn missing(&self) -> Missing {
        match self.missing {
            crate::args::MissingArg::Error => Missing::Error,
            crate::args::MissingArg::Drop => Missing::Drop,
            crate::args::MissingArg::Impute => Missing::Impute,
        }
    }

    /// A whole table; `-` is standard input.
    pub fn table(&self, path: &Path) -> Result<Table, Failure> {
        let options = self.options()?;
        let table = match path == Path::new("-") {
            true => Table::read(std::io::stdin(), "standard input", &options),
            false => Table::open(path, &options),
        };
        table.map_err(Failure::data)
    }
}

/// A model from a file; `-` is standard input.
pub fn model(path: &Path) -> Result<Model, Failure> {
    if path == Path::new("-") {
        let mut content = Vec::new();
        let read = std::io::Read::read_to_end(&mut std::io::stdin(), &mut content);
        read.map_err(|e| Failure::writing("standard input", e))?;
        return Model::from_bytes(&content, Path::new("standard input")).map_err(Failure::model);
    }
    Model::open(path).map_err(Failure::model)
}

/// Says what a fit needs, and refuses what this machine cannot hold.
pub fn check_memory(fit: &Fit, n: usize, d: usize, talk: &crate::output::Talk) -> Result<(), Failure> {
    let need = fit.memory(n, d);
    talk.say(&format!(
        "method exact: {n} rows, {d} input column{}, about {} of memory",
        if d == 1 { "" } else { "s" },
        bytes(need)
    ));
    match available() {
        Some(free) if need > free => {
            let fits = ((free as f64 / 16.0).sqrt() as usize / 100) * 100;
            let message = format!("{} are needed, {} are available", bytes(need), bytes(free));
            Err(Failure::refused(
                "memory",
                message,
                format!("the exact method fits about {fits} rows here: `--rows {fits}`"),
            ))
        }
        _ => Ok(()),
    }
}

/// What the machine has left, where it says so.
fn available() -> Option<usize> {
    status("/proc/meminfo", "MemAvailable:")
}

/// The most memory this process ever held.
pub fn peak_memory() -> usize {
    status("/proc/self/status", "VmHWM:").unwrap_or(0)
}

fn status(file: &str, key: &str) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok()? * 1024)
}
