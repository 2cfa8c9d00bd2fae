//! The one error of the crate. Kinds hold facts (file, row, column, value); the sentence is made from them here, and
//! what to do about it is a hint beside it. Seen by every module, sees none.

use std::fmt;
use std::path::PathBuf;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and (where there is something to do) a hint.
#[derive(Debug)]
pub struct Error {
    kind: Box<ErrorKind>,
    hint: Option<String>,
}

/// Why a covariance matrix could not be factorised, as far as the data tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The same input occurs in these two rows.
    DuplicateRows(usize, usize),
    /// This column has one value only.
    ConstantColumn(usize),
    /// The matrix holds a value that is not finite.
    NonFinite,
    /// None of the usual causes was found.
    Unknown,
}

/// A row, counted the way its user counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A line of a text file; the first line, which holds the header, is line 1.
    Line(u64),
    /// A row of a file without lines (Parquet, Arrow) or of data in memory; the first is row 1.
    Row(u64),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// Where a cell of a table stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or what the table is called where it came from no file.
    pub file: PathBuf,
    /// The row.
    pub row: Row,
    /// The column's name.
    pub column: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, column `{}`", self.file.display(), self.row, self.column)
    }
}

/// The facts of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A number that must be finite is not.
    #[error("row {row}, column `{column}`: not a finite number: {found}")]
    NotFinite {
        /// 0-based row of the table.
        row: usize,
        /// Name of the column.
        column: String,
        /// The value found.
        found: f64,
    },
    /// A cell that should hold a number does not.
    #[error("{at}: not a number: {found}")]
    NotANumber {
        /// The cell.
        at: Place,
        /// Its text.
        found: String,
    },
    /// A cell holds an infinite number.
    #[error("{at}: not a finite number: {found}")]
    Infinite {
        /// The cell.
        at: Place,
        /// The value found.
        found: f64,
    },
    /// A cell that is needed is empty or says that its value is missing.
    #[error("{at}: the cell is missing")]
    MissingCell {
        /// The cell.
        at: Place,
    },
    /// A cell that should hold a time does not.
    #[error("{at}: not a time{}: {found}", Like(like))]
    NotATime {
        /// The cell.
        at: Place,
        /// Its text.
        found: String,
        /// A time of the same column that was understood, or nothing.
        like: String,
    },
    /// A time, a span or a horizon that cannot be read or computed.
    #[error("{message}: {found}")]
    Time {
        /// What is wrong with it.
        message: String,
        /// The text or number found.
        found: String,
    },
    /// The same time occurs twice in one series.
    #[error("{}, {first} and {second}, column `{column}`: the same time twice: {found}", file.display())]
    DuplicateTime {
        /// The file.
        file: PathBuf,
        /// The row that has it first.
        first: Row,
        /// The row that has it again.
        second: Row,
        /// The column of times.
        column: String,
        /// The time.
        found: String,
    },
    /// A file without any content.
    #[error("{}: the file is empty", file.display())]
    EmptyFile {
        /// The file.
        file: PathBuf,
    },
    /// A table with a header and no rows below it.
    #[error("{}: a header and no rows", file.display())]
    NoRows {
        /// The file.
        file: PathBuf,
    },
    /// The first line of a table holds numbers where the names of the columns should be.
    #[error("{}, line 1: names of columns expected, found numbers: {found}", file.display())]
    NoHeader {
        /// The file.
        file: PathBuf,
        /// How the line begins.
        found: String,
    },
    /// Two columns have the same name.
    #[error("{}: columns {first} and {second} have the same name: {name}", file.display())]
    DuplicateColumn {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// Position of the first, counted from 1.
        first: usize,
        /// Position of the second, counted from 1.
        second: usize,
    },
    /// A row with more or fewer cells than the header.
    #[error("{}, {row}: cells found: {found}, columns of the header: {expected}", file.display())]
    Ragged {
        /// The file.
        file: PathBuf,
        /// The row.
        row: Row,
        /// Cells of the header.
        expected: usize,
        /// Cells of the row.
        found: usize,
    },
    /// Text that is not UTF-8.
    #[error("{}, {row}: not UTF-8 text", file.display())]
    NotUtf8 {
        /// The file.
        file: PathBuf,
        /// The row.
        row: Row,
    },
    /// Something that is no table this library reads.
    #[error("{}: not a table: {found}", file.display())]
    NotATable {
        /// The file.
        file: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// A text column with too many different values to become indicator columns.
    #[error("{}, column `{column}`: text with {found} different values, at most {limit} can be used", file.display())]
    TooManyCategories {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Different values found.
        found: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// Columns that are needed and not there.
    #[error("{}: columns missing: {}", file.display(), names.join(", "))]
    MissingColumns {
        /// The file.
        file: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// A file that should hold an array or a picture and does not.
    #[error("{}: not {what}: {found}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What was expected.
        what: &'static str,
        /// What is wrong with it.
        found: String,
    },
    /// Axes, values and mask that do not make a grid.
    #[error("grid: {message}")]
    Grid {
        /// What does not fit.
        message: String,
    },
    /// A file that changed between or during readings.
    #[error("{}: the file changed while it was read: {found}", file.display())]
    FileChanged {
        /// The file.
        file: PathBuf,
        /// What differs.
        found: String,
    },
    /// There are too few rows for the work asked for.
    #[error("too few rows: {found}, at least {needed} needed")]
    TooFewRows {
        /// Rows found.
        found: usize,
        /// Rows needed.
        needed: usize,
    },
    /// Two things that must agree in size do not.
    #[error("{what}: expected {expected}, found {found}")]
    Size {
        /// What was measured.
        what: &'static str,
        /// The size it should have.
        expected: usize,
        /// The size it has.
        found: usize,
    },
    /// A column was named that does not exist.
    #[error("no column `{name}`")]
    NoSuchColumn {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Kernel text that cannot be read.
    #[error("kernel text, character {}: {message}\n  {text}\n  {:>width$}", at + 1, "^", width = at + 1)]
    KernelText {
        /// The whole text.
        text: String,
        /// 0-based character at which reading failed.
        at: usize,
        /// What was expected or found there.
        message: String,
    },
    /// A kernel that cannot be built or used as asked.
    #[error("kernel: {message}")]
    Kernel {
        /// What does not fit.
        message: String,
    },
    /// The covariance matrix stayed indefinite under the largest jitter.
    #[error("covariance matrix not positive definite at row {pivot}, with jitter up to {jitter:e}: {}", Reason(*cause))]
    NotPositiveDefinite {
        /// The row at which the factorisation failed.
        pivot: usize,
        /// The largest jitter tried.
        jitter: f64,
        /// The likely cause.
        cause: Cause,
    },
    /// An option with a value that makes no sense.
    #[error("{option}: {message}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with its value.
        message: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A model file that cannot be used.
    #[error("{}: {reason}", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// Why it is refused.
        reason: String,
    },
    /// The work was stopped from outside before there was a result.
    #[error("interrupted before there was a result")]
    Interrupted,
    /// Every restart of the optimiser failed.
    #[error("no restart of {tried} reached a finite objective; the last one said: {last}")]
    NoRestartSucceeded {
        /// How many were tried.
        tried: usize,
        /// The message of the last one.
        last: String,
    },
}

struct Like<'a>(&'a str);

impl fmt::Display for Like<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " like {}", self.0) }
    }
}

struct Reason(Cause);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::DuplicateRows(a, b) => write!(f, "rows {a} and {b} have the same inputs"),
            Cause::ConstantColumn(c) => write!(f, "input column {c} is constant"),
            Cause::NonFinite => write!(f, "a kernel value is not finite"),
            Cause::Unknown => write!(f, "no cause found in the data"),
        }
    }
}

impl Error {
    /// An error without a hint.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind: Box::new(kind), hint: None }
    }

    /// The same error with advice on what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A kernel that cannot be built or used as asked.
    pub(crate) fn kernel(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Kernel { message: message.into() })
    }

    /// An option whose value makes no sense.
    pub(crate) fn option(option: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Option { option, message: message.into() })
    }

    /// A time, span or horizon that cannot be read or computed.
    pub(crate) fn time(message: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Time { message: message.into(), found: found.to_string() })
    }

    /// The facts.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.kind)
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}
