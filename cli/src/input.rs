//! Tables and models in, and the machine's memory.

use crate::args::Reading;
use crate::failure::Failure;
use crate::output::{Talk, bytes};
use covary::Model;
use covary::data::{Missing, Once, Piece, ReadOptions, Stream, Table};
use covary::fit::{Method, Plan};
use covary::forecast::Forecaster;
use covary::memory::available;
pub use covary::memory::peak as peak_memory;
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

    /// Whether a table is read in pieces where the method allows it: a file that is large, or would be in memory.
    pub fn streams(&self, path: &Path) -> bool {
        let size = std::fs::metadata(path).map_or(0, |meta| if meta.is_file() { meta.len() as usize } else { 0 });
        path != Path::new("-") && (size > LARGE_FILE || available().is_some_and(|free| 8 * size > free))
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

/// Bytes of a file from which on it is read in pieces where the method allows it.
const LARGE_FILE: usize = 32 << 20;
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

/// Says what a fit will do and need, and refuses what this machine cannot hold. `most` tells what n rows need.
pub fn check_memory(
    plan: &Plan,
    (n, d): (usize, usize),
    most: impl Fn(usize) -> usize,
    talk: &Talk,
) -> Result<(), Failure> {
    let (need, method) = (plan.memory, plan.method.name());
    let columns = if d == 1 { "column" } else { "columns" };
    let points = if plan.inducing > 0 { format!(", {} inducing points", plan.inducing) } else { String::new() };
    talk.say(&format!("method {method}: {n} rows, {d} input {columns}{points}, about {} of memory", bytes(need)));
    let Some(free) = available().filter(|free| need > *free) else { return Ok(()) };
    let message = format!("{} are needed, {} are available", bytes(need), bytes(free));
    let fits = most_rows(free, most);
    let hint = match plan.method {
        Method::Sparse => "fewer inducing points need less: `--inducing M`".to_string(),
        _ => format!(
            "the {method} method fits about {fits} rows here: `--rows {fits}`; the sparse method takes all: `--method sparse`"
        ),
    };
    Err(Failure::refused("memory", message, hint))
}

/// The same for series, one on each thread.
pub fn check_memory_of_series(
    forecaster: &Forecaster,
    count: usize,
    longest: usize,
    talk: &Talk,
) -> Result<(), Failure> {
    let (one, threads) = (forecaster.memory(longest), rayon::current_num_threads());
    let need = one * threads.min(count);
    let what = if count == 1 { "a series".to_string() } else { format!("{count} series, the longest") };
    talk.say(&format!("{what} of {longest} rows, about {} of memory", bytes(need)));
    let Some(free) = available().filter(|free| need > *free) else { return Ok(()) };
    let hint = match free / one {
        0 => format!(
            "a series of about {} rows fits here: leave out the oldest",
            most_rows(free, |n| forecaster.memory(n))
        ),
        threads => format!("`--threads {threads}` needs about {}", bytes(one * threads)),
    };
    Err(Failure::refused("memory", format!("{} are needed, {} are available", bytes(need), bytes(free)), hint))
}

/// The same for a measurement, which needs no more than the evaluation and its floor.
pub fn check_memory_of_bench(n: usize, memory: impl Fn(usize) -> usize) -> Result<(), Failure> {
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
