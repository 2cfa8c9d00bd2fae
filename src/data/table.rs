//! A table: named columns of numbers, text or times, as a file gave them. Nothing is judged here: what is missing or
//! out of place becomes an error only when a column is used, so a column nobody asked for does no harm.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::csv::{CsvReader, Raw};
use super::source::{Source, open_file, open_reader};
use super::texts::Texts;
use crate::error::{Error, ErrorKind, Place, Result, Row};

/// How a table is read. The default detects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What stands between cells; detected among comma, tab, semicolon and bar where absent.
    pub delimiter: Option<u8>,
    /// What stands around cells that hold a delimiter; detected where absent.
    pub quote: Option<u8>,
    /// Words that mean a missing cell, beside the empty cell, NA, N/A, NaN, null, none, `-`, `.` and `?`.
    pub missing_words: Vec<String>,
    /// Read no more rows than this.
    pub rows: Option<usize>,
    /// Columns that are text even where every cell looks like a number.
    pub text: Vec<String>,
    /// Read only these columns of a text table, and keep the cells of all as they were written
    /// ([`Table::written`]); all columns, and nothing kept, where empty.
    pub only: Vec<String>,
}

/// Named columns of equal length.
///
/// ```
/// use covary::data::{Cells, ReadOptions, Table};
///
/// let text = "when;colour;size\n2024-01-01;red;1,5\n2024-01-02;;2,5\n";
/// let table = Table::read(text.as_bytes(), "example", &ReadOptions::default())?;
/// assert_eq!(table.n(), 2);
/// assert_eq!(table.column("size")?.cells(), &Cells::Numbers(vec![1.5, 2.5]));
/// assert_eq!(table.column("colour")?.missing(), [1]);
/// assert!(matches!(table.column("when")?.cells(), Cells::Times(_)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    name: PathBuf,
    rows: Vec<Row>,
    columns: Vec<Column>,
    /// Where each name stands: a table may have a million columns.
    index: HashMap<String, usize>,
    notes: Vec<String>,
    /// Every cell as it was written, where that is kept.
    written: Option<(Vec<String>, Raw)>,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    name: String,
    cells: Cells,
    missing: Vec<usize>,
    forced: bool,
}

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Numbers; a missing one is NaN, and infinities are kept until the column is used.
    Numbers(Vec<f64>),
    /// Text; a missing one is empty.
    Text(Texts),
    /// Times as they are written; a missing one is empty.
    Times(Texts),
}

impl Table {
    /// Reads a table from a file: CSV, TSV or semicolons, plain or gzipped; Parquet or Arrow IPC with the feature
    /// `columnar`.
    ///
    /// # Errors
    /// When the file cannot be read or is not a table; the message says where.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        Self::whole(open_file(path)?, path, options)
    }

    /// Reads a table from anything that can be read, such as standard input; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn read<R: Read + Send + 'static>(reader: R, name: &str, options: &ReadOptions) -> Result<Self> {
        Self::whole(open_reader(Box::new(reader), name.as_ref())?, name.as_ref(), options)
    }

    fn whole(source: Source<File>, name: &Path, options: &ReadOptions) -> Result<Self> {
        let limit = options.rows.unwrap_or(usize::MAX);
        let mut reader = TableReader::new(source, name, options)?;
        let table = reader.chunk(limit)?;
        let mut table = table.ok_or_else(|| Error::new(ErrorKind::NoRows { file: name.into() }))?;
        if table.n() == limit && reader.chunk(1)?.is_some() {
            table.notes.push(format!("only the first {limit} rows were read"));
        }
        Ok(table)
    }

    /// A table of columns in memory.
    ///
    /// # Errors
    /// When columns differ in length or share a name.
    pub fn from_columns(name: &str, columns: Vec<(String, Cells)>) -> Result<Self> {
        let n = columns.first().map_or(0, |c| c.1.len());
        if let Some(other) = columns.iter().find(|c| c.1.len() != n) {
            return Err(ErrorKind::Size { what: "rows of a column", expected: n, found: other.1.len() }.into());
        }
        check_names(columns.iter().map(|c| c.0.as_str()), name.as_ref())?;
        let columns = columns.into_iter().map(|(name, cells)| Column::new(name, cells)).collect();
        let rows = (1..=n as u64).map(Row::Row).collect();
        Ok(Self::assemble(name.as_ref(), rows, columns, Vec::new()))
    }

    /// A table of columns that are known to fit.
    pub(super) fn assemble(name: &Path, rows: Vec<Row>, columns: Vec<Column>, notes: Vec<String>) -> Self {
        let index = columns.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
        Self { name: name.into(), rows, columns, index, notes, written: None }
    }

    /// The same table with the names and cells of the file beside it.
    pub(super) fn with_written(self, names: Vec<String>, cells: Raw) -> Self {
        Self { written: Some((names, cells)), ..self }
    }

    /// The names of the columns of the file, which may be more than were read ([`ReadOptions::only`]).
    pub fn headings(&self) -> Vec<&str> {
        match &self.written {
            Some((names, _)) => names.iter().map(String::as_str).collect(),
            None => self.columns.iter().map(|c| c.name.as_str()).collect(),
        }
    }

    /// A cell as it was written in the file, where that was kept; its value as text otherwise, and for a number with
    /// a decimal comma. Columns are counted as in [`Table::headings`].
    pub fn written(&self, row: usize, column: usize) -> Cow<'_, str> {
        let Some((names, cells)) = &self.written else { return self.columns[column].text(row) };
        let cell = cells.cell(row, column);
        if cell.contains(',')
            && let Some(Column { cells: Cells::Numbers(v), .. }) =
                self.index.get(&names[column]).map(|&c| &self.columns[c])
        {
            return v[row].to_string().into();
        }
        cell.into()
    }

    /// The file it came from, or what it is called.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.rows.len()
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What was assumed while reading, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A column by name.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.index.get(name).map(|&at| &self.columns[at]).ok_or_else(|| {
            let known: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
            let shown = known.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
            let more = if known.len() > 20 { ", …" } else { "" };
            Error::new(ErrorKind::NoSuchColumn { name: name.into(), known })
                .with_hint(format!("the columns are {shown}{more}"))
        })
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Where a cell stands, for messages.
    pub fn place(&self, row: usize, column: &str) -> Place {
        let row = self.rows.get(row).copied().unwrap_or(Row::Row(row as u64 + 1));
        Place { file: self.name.clone(), row, column: column.into() }
    }

    /// The table of these rows, in this order; messages still name their place in the file.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let part = |c: &Column| Column { forced: c.forced, ..Column::new(c.name.clone(), c.cells.select(rows)) };
        let columns = self.columns.iter().map(part).collect();
        let places = rows.iter().map(|&i| self.rows[i]).collect();
        Self::assemble(&self.name, places, columns, self.notes.clone())
    }

    /// The rows of each different value of a column, in order of first appearance: many series in one long table.
    ///
    /// # Errors
    /// When there is no such column, or one of its cells is missing.
    pub fn groups(&self, column: &str) -> Result<Vec<(String, Vec<usize>)>> {
        let found = self.column(column)?;
        if let Some(&row) = found.missing.first() {
            return Err(ErrorKind::MissingCell { at: self.place(row, column) }.into());
        }
        let mut order: HashMap<Cow<str>, usize> = HashMap::new();
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for i in 0..self.n() {
            let text = found.text(i);
            let at = *order.entry(text).or_insert_with_key(|text| {
                groups.push((text.to_string(), Vec::new()));
                groups.len() - 1
            });
            groups[at].1.push(i);
        }
        Ok(groups)
    }
}

impl Column {
    pub(super) fn new(name: String, cells: Cells) -> Self {
        let missing = match &cells {
            Cells::Numbers(v) => (0..v.len()).filter(|&i| v[i].is_nan()).collect(),
            Cells::Text(v) | Cells::Times(v) => (0..v.len()).filter(|&i| v[i].is_empty()).collect(),
        };
        Self { name, cells, missing, forced: false }
    }

    /// A column that is text because somebody said so.
    pub(super) fn forced_text(name: String, cells: Texts) -> Self {
        Self { forced: true, ..Self::new(name, Cells::Text(cells)) }
    }

    pub(super) fn is_forced_text(&self) -> bool {
        self.forced
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The rows whose cell is missing, in order.
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// One cell as text; empty where it is missing.
    pub fn text(&self, row: usize) -> Cow<'_, str> {
        match &self.cells {
            Cells::Numbers(v) if v[row].is_nan() => "".into(),
            Cells::Numbers(v) => v[row].to_string().into(),
            Cells::Text(v) | Cells::Times(v) => Cow::Borrowed(&v[row]),
        }
    }
}

impl Cells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(v) => v.len(),
            Self::Text(v) | Self::Times(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(v) => Self::Numbers(rows.iter().map(|&i| v[i]).collect()),
            Self::Text(v) => Self::Text(rows.iter().map(|&i| &v[i]).collect()),
            Self::Times(v) => Self::Times(rows.iter().map(|&i| &v[i]).collect()),
        }
    }
}

/// How much text a piece holds at most, whatever its number of rows: what a wide file needs of memory.
const PIECE: usize = 8 << 20;

/// Reads a table of any format piece by piece; the one way into a [`Table`].
pub(super) enum TableReader {
    Csv(Box<CsvReader>),
    #[cfg(feature = "columnar")]
    Columnar(super::columnar::ColumnarReader),
}

impl TableReader {
    pub(super) fn new(source: Source<File>, name: &Path, options: &ReadOptions) -> Result<Self> {
        match source {
            Source::Text(reader) => Ok(Self::Csv(Box::new(CsvReader::new(reader, name, options)?))),
            #[cfg(feature = "columnar")]
            Source::Parquet(from) => Ok(Self::Columnar(super::columnar::ColumnarReader::parquet(from, name)?)),
            #[cfg(feature = "columnar")]
            Source::Arrow(from) => Ok(Self::Columnar(super::columnar::ColumnarReader::arrow(from, name)?)),
            #[cfg(not(feature = "columnar"))]
            Source::Parquet(_) | Source::Arrow(_) => Err(Error::new(ErrorKind::NotATable {
                file: name.into(),
                found: "a Parquet or Arrow file, which this build does not read".into(),
            })
            .with_hint("build covary with the feature `columnar`, or save the table as CSV")),
        }
    }

    /// The next rows, at most `most` of them and fewer where they are long; nothing at the end.
    pub(super) fn piece(&mut self, most: usize) -> Result<Option<Table>> {
        self.rows(most, PIECE)
    }

    /// The next rows, at most `most` of them; nothing at the end.
    pub(super) fn chunk(&mut self, most: usize) -> Result<Option<Table>> {
        self.rows(most, usize::MAX)
    }

    fn rows(&mut self, most: usize, bytes: usize) -> Result<Option<Table>> {
        match self {
            Self::Csv(reader) => reader.chunk(most, bytes),
            #[cfg(feature = "columnar")]
            Self::Columnar(reader) => reader.chunk(most),
        }
    }
}

/// An error when two names are the same.
pub(super) fn check_names<'a>(names: impl Iterator<Item = &'a str>, file: &Path) -> Result<()> {
    let mut seen = HashMap::new();
    for (i, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, i) {
            let kind =
                ErrorKind::DuplicateColumn { file: file.into(), name: name.into(), first: first + 1, second: i + 1 };
            return Err(Error::new(kind).with_hint("give one of them another name"));
        }
    }
    Ok(())
}
