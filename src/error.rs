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
