//! Rows of a file larger than memory, a piece at a time, in as many passes as needed. The columns and their encoding
//! are fixed at the start; a file that changes between or during passes is an error, never a different answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Points;
use super::choice::{Choice, Missing, counted, missing_cell};
use super::encoding::{Encoding, numbers};
use super::source::open_file;
use super::table::{ReadOptions, Table, TableReader};
use crate::error::{Error, ErrorKind, Result};

/// A file that is read in pieces.
///
/// ```
/// use covary::data::{Choice, ReadOptions, Stream};
///
/// let stream = Stream::open("examples/data/airline.csv", &ReadOptions::default(), &Choice::new("passengers"), 50)?;
/// for _ in 0..2 {
///     let sizes: Vec<usize> = stream.pass()?.map(|piece| piece.map(|p| p.y.len())).collect::<Result<_, _>>()?;
///     assert_eq!(sizes, [50, 50, 44]);
/// }
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    path: PathBuf,
    options: ReadOptions,
    encoding: Encoding,
    target: Option<String>,
    missing: Missing,
    size: usize,
    rows: Option<usize>,
    stamp: Stamp,
    notes: Vec<String>,
}

/// What tells that a file is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// Some rows of a stream.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The inputs.
    pub x: Points,
    /// The target; empty where the stream has none.
    pub y: Vec<f64>,
    /// The rows as they were read, before any was dropped.
    pub table: Table,
    /// The row of `table` that each point came from.
    pub rows: Vec<usize>,
    /// What was dropped, filled or not known in these rows.
    pub notes: Vec<String>,
}

/// One reading of a stream from start to end.
pub struct Pass<'a> {
    stream: &'a Stream,
    reader: TableReader,
    read: usize,
    done: bool,
}

impl Stream {
    /// Opens a file to learn from, `size` rows at a time. It is read once to find the texts of its text columns and
    /// to count its rows; what kind each column is, and the step of a column of times, is learned from the first piece.
    ///
    /// # Errors
    /// As [`Table::open`] and [`super::Dataset::from_table`]; and for [`Missing::Impute`], which needs all rows at
    /// once.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions, choice: &Choice, size: usize) -> Result<Self> {
        if choice.missing == Missing::Impute {
            let error = Error::option("missing", "cells cannot be imputed in a file that is read in pieces");
            return Err(error.with_hint("drop such rows, or read the whole table"));
        }
        if choice.noise.is_some() {
            return Err(Error::option("noise", "a column of noise cannot be used in a file that is read in pieces"));
        }
        let path = path.as_ref();
        let size = size.max(1);
        let first = TableReader::new(open_file(path)?, path, options)?.chunk(size)?;
        let first = first.ok_or_else(|| Error::new(ErrorKind::NoRows { file: path.into() }))?;
        let names = choice.input_names(&first)?;
        let (encoding, mut notes) = Encoding::learn(&first, &names, choice)?;
        notes.splice(0..0, first.notes().iter().cloned());
        let mut stream = Self { missing: choice.missing, notes, ..Self::with(path, options, encoding, size)? };
        let mut rows = 0;
        let mut encoding = stream.encoding.clone();
        let mut pass = stream.pass()?;
        while let Some(table) = pass.table()? {
            rows += table.n();
            encoding.widen(&table, choice.categories)?;
        }
        stream.notes.extend(encoding.notes());
        (stream.encoding, stream.rows, stream.target) = (encoding, Some(rows), Some(choice.target.clone()));
        Ok(stream)
    }

    /// Opens a file to predict from, `size` rows at a time, with an encoding that was learned before.
    ///
    /// # Errors
    /// When the file cannot be found.
    pub fn with(path: impl AsRef<Path>, options: &ReadOptions, encoding: Encoding, size: usize) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let (options, stamp) = (for_prediction(options, &encoding), Stamp::of(&path)?);
        let (size, missing) = (size.max(1), Missing::Error);
        Ok(Self { path, options, encoding, target: None, missing, size, rows: None, stamp, notes: Vec::new() })
    }

    /// The same stream with another policy for missing cells.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The same stream with a target to read.
    #[must_use]
    pub fn target(mut self, name: impl Into<String>) -> Self {
        self.target = Some(name.into());
        self
    }

    /// The name of the target, where there is one.
    pub fn target_name(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Rows of a piece, at most.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How columns become numbers.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Number of rows, where the file was read once to count them; dropped rows are among them.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// What was assumed or encoded, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads the file from its start.
    ///
    /// # Errors
    /// When it cannot be read, or is no longer the file it was.
    pub fn pass(&self) -> Result<Pass<'_>> {
        self.unchanged()?;
        let reader = TableReader::new(open_file(&self.path)?, &self.path, &self.options)?;
        Ok(Pass { stream: self, reader, read: 0, done: false })
    }

    fn changed(&self, found: String) -> Error {
        let error = Error::new(ErrorKind::FileChanged { file: self.path.clone(), found });
        error.with_hint("wait until nothing writes to it, then start again")
    }

    fn unchanged(&self) -> Result<()> {
        let (before, now) = (&self.stamp, Stamp::of(&self.path)?);
        if now.bytes != before.bytes {
            return Err(self.changed(format!("it had {} bytes and has {}", before.bytes, now.bytes)));
        }
        if now != *before { Err(self.changed("it was written to".into())) } else { Ok(()) }
    }

    fn piece(&self, table: Table) -> Result<Piece> {
        Piece::of(table, &self.encoding, self.target.as_deref(), self.missing)
    }
}

impl Piece {
    /// The points of a table, by an encoding that was learned before, and its target where one is named.
    ///
    /// # Errors
    /// As [`Encoding::apply`].
    pub fn of(table: Table, encoding: &Encoding, target: Option<&str>, missing: Missing) -> Result<Self> {
        let encoded = encoding.apply(&table, missing)?;
        let (mut y, mut rows, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let Some(target) = target else {
            return Ok(Piece { x: encoded.x, y, table, rows: encoded.rows, notes: encoded.notes });
        };
        let values = numbers(&table, table.column(target)?)?;
        for (i, &row) in encoded.rows.iter().enumerate() {
            if !values[row].is_nan() {
                y.push(values[row]);
                rows.push(row);
                kept.push(i);
            } else if missing == Missing::Error {
                return Err(missing_cell(&table, row, target));
            }
        }
        let mut notes = encoded.notes;
        if kept.len() < encoded.rows.len() {
            let rows = counted(encoded.rows.len() - kept.len(), "row");
            notes.push(format!("{rows} without a target dropped"));
        }
        Ok(Piece { x: encoded.x.select(&kept), y, table, rows, notes })
    }
}

impl Pass<'_> {
    /// The next rows as they are; nothing at the end of a file that is still the same.
    fn table(&mut self) -> Result<Option<Table>> {
        let stream = self.stream;
        let left = stream.options.rows.map_or(stream.size, |rows| stream.size.min(rows - self.read));
        let table = if left == 0 { Ok(None) } else { self.reader.piece(left) };
        // A cell cut in two by a writer looks like bad data; that the file changed is the truer message.
        stream.unchanged()?;
        let table = table?;
        match (&table, stream.rows) {
            (Some(table), _) => self.read += table.n(),
            (None, Some(rows)) if rows != self.read => {
                return Err(stream.changed(format!("it had {rows} rows and ended after {}", self.read)));
            }
            (None, _) => {}
        }
        Ok(table)
    }
}

impl Iterator for Pass<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let piece = self.table().and_then(|table| table.map(|t| self.stream.piece(t)).transpose());
        self.done = !matches!(piece, Ok(Some(_)));
        piece.transpose()
    }
}

/// The options for rows that are predicted by an encoding: what was text stays text.
pub(super) fn for_prediction(options: &ReadOptions, encoding: &Encoding) -> ReadOptions {
    let mut options = options.clone();
    options.text.extend(encoding.text_columns());
    options
}

impl Stamp {
    fn of(path: &Path) -> Result<Self> {
        let meta = fs::metadata(path).map_err(|source| Error::new(ErrorKind::Io { path: path.into(), source }))?;
        Ok(Self { bytes: meta.len(), modified: meta.modified().ok() })
    }
}
