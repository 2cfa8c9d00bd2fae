//! Tables and models in, and the machine's memory.

use crate::args::Reading;
use crate::failure::Failure;
use crate::output::{Talk, bytes};
use covary::data::{Missing, Once, Piece, ReadOptions, Stream, Table};
use covary::gp::Sparse;
use covary::{Fit, Model};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

impl Reading {
    pub fn options(&self) -> Result<ReadOptions, Failure> {
        let delimiter = match self.delimiter.as_deref() {
            None => None,
            Some("tab" | "\\t") => Some(b'\t'),
            Some(text) if text.len() == 1 => Some(text.as_bytes()[0]),
            Some(text) => return Err(Failure::usage("delimiter", format!("one character, or `tab`: {text}"))),
        };
        if self.rows == Some(0) {
            return Err(Failure::usage("rows", "at least one is needed"));
        }
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

/// Rows in memory at a time.
const PIECE: usize = 16_384;

/// Hands on a table a piece at a time, read beside the work on the piece before; `-` is standard input. `target` is read
/// too where it is named. What was noticed comes back, each once.
pub fn pieces(
    reading: &Reading,
    path: &Path,
    model: &Model,
    target: Option<&str>,
    mut take: impl FnMut(&Piece) -> Result<(), Failure>,
) -> Result<Vec<String>, Failure> {
    let (mut options, missing, encoding) = (reading.options()?, reading.missing(), model.encoding().clone());
    options.only = encoding.columns().chain(target).map(String::from).collect();
    let (send, receive) = sync_channel(2);
    // Stops when nobody listens any more.
    fn feed(pieces: impl Iterator<Item = covary::Result<Piece>>, to: &SyncSender<covary::Result<Piece>>) {
        for piece in pieces {
            if to.send(piece).is_err() {
                return;
            }
        }
    }
    // The reader is not waited for when the work fails: it may stand before a pipe that never ends.
    let reader = if path == Path::new("-") {
        let once =
            Once::read(std::io::stdin(), "standard input", &options, encoding, PIECE).map_err(Failure::data)?;
        let once = match target {
            Some(name) => once.missing(missing).target(name),
            None => once.missing(missing),
        };
        std::thread::spawn(move || feed(once, &send))
    } else {
        let stream = Stream::with(path, &options, encoding, PIECE).map_err(Failure::data)?.missing(missing);
        let stream = match target {
            Some(name) => stream.target(name),
            None => stream,
        };
        stream.pass().map_err(Failure::data)?;
        std::thread::spawn(move || match stream.pass() {
            Ok(pass) => feed(pass, &send),
            Err(error) => feed([Err(error)].into_iter(), &send),
        })
    };
    let mut notes = Vec::new();
    for piece in receive {
        let piece = piece.map_err(Failure::data)?;
        take(&piece)?;
        piece.notes.into_iter().for_each(|note| {
            if !notes.contains(&note) {
                notes.push(note);
            }
        });
    }
    // A reader that panicked must not look like the end of the table.
    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(notes)
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

/// Inducing points of the sparse method, where its need is told.
const INDUCING: usize = 1_000;

/// Says what a fit needs, and refuses what this machine cannot hold.
pub fn check_memory(fit: &Fit, n: usize, d: usize, talk: &Talk) -> Result<(), Failure> {
    let need = fit.memory(n, d);
    let columns = if d == 1 { "column" } else { "columns" };
    talk.say(&format!("method exact: {n} rows, {d} input {columns}, about {} of memory", bytes(need)));
    let Some(free) = available().filter(|free| need > *free) else { return Ok(()) };
    let fits = most_rows(free, |n| fit.memory(n, d));
    let mut hint = format!("the exact method fits about {fits} rows here: `--rows {fits}`");
    let sparse = Sparse::memory(INDUCING, 4_096);
    if sparse <= free {
        let all = bytes(sparse);
        hint += &format!(
            "; the sparse method would take all rows in about {all}: the library has it, this command not yet"
        );
    }
    Err(Failure::refused("memory", format!("{} are needed, {} are available", bytes(need), bytes(free)), hint))
}

/// The same for many series, one on each thread.
pub fn check_memory_of_many(fit: &Fit, count: usize, longest: usize, talk: &Talk) -> Result<(), Failure> {
    let (one, threads) = (fit.memory(longest, 1), rayon::current_num_threads());
    let need = one * threads.min(count);
    talk.say(&format!("{count} series, the longest of {longest} rows, about {} of memory", bytes(need)));
    let Some(free) = available().filter(|free| need > *free) else { return Ok(()) };
    let hint = match free / one {
        0 => format!(
            "a series of about {} rows fits here: leave out the oldest",
            most_rows(free, |n| fit.memory(n, 1))
        ),
        threads => format!("`--threads {threads}` needs about {}", bytes(one * threads)),
    };
    Err(Failure::refused("memory", format!("{} are needed, {} are available", bytes(need), bytes(free)), hint))
}

/// The same for a measurement, which needs no more than the evaluation and its floor.
pub fn check_memory_of_bench(n: usize) -> Result<(), Failure> {
    let memory = |n: usize| n.saturating_mul(n).saturating_mul(5 * 8).saturating_add(8 << 20);
    let Some(free) = available().filter(|free| memory(n) > *free) else { return Ok(()) };
    let message = format!("{} are needed, {} are available", bytes(memory(n)), bytes(free));
    Err(Failure::refused("memory", message, format!("about {} rows fit here", most_rows(free, memory))))
}

/// The most rows that fit, to two digits.
fn most_rows(free: usize, memory: impl Fn(usize) -> usize) -> usize {
    let (mut low, mut high) = (0_usize, 10_000_000_usize);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if memory(middle) <= free { low = middle } else { high = middle - 1 }
    }
    let unit = 10_usize.pow(low.max(1).ilog10().saturating_sub(1));
    low / unit * unit
}

/// What may be used: COVARY_MEMORY in bytes, else what the machine or the container has left, where they say so.
fn available() -> Option<usize> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<usize>().ok();
    if let Some(asked) = std::env::var("COVARY_MEMORY").ok().and_then(|v| v.parse().ok()) {
        return Some(asked);
    }
    let machine = status("/proc/meminfo", "MemAvailable:");
    let container = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    machine.into_iter().chain(container).min()
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
