//! From an error to an exit code: 1 failed, 2 wrong usage, 3 bad data, 4 bad model file, 130 interrupted.

use crate::output::Talk;
use covary::{Error, ErrorKind};
use std::io;
use std::process::ExitCode;

/// An error and the code it ends in.
#[derive(Debug)]
pub struct Failure {
    error: Option<Error>,
    code: u8,
}

impl Failure {
    /// An option whose value makes no sense.
    pub fn usage(option: &'static str, message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Option { option, message: message.into() }).into()
    }

    /// The work cannot be done, and this is what would help.
    pub fn refused(option: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let error = Error::new(ErrorKind::Option { option, message: message.into() }).with_hint(hint);
        Self { error: Some(error), code: 1 }
    }

    /// A file of data that cannot be used, for whatever reason.
    pub fn data(error: Error) -> Self {
        let code = if matches!(error.kind(), ErrorKind::Io { .. } | ErrorKind::Time { .. }) {
            3
        } else {
            code(error.kind())
        };
        Self { error: Some(error), code }
    }

    /// A model or checkpoint that cannot be used, for whatever reason.
    pub fn model(error: Error) -> Self {
        Self { error: Some(error), code: 4 }
    }

    /// Standard output or a device could not be written. A reader that went away is no failure of ours.
    pub fn writing(name: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self { error: None, code: 0 },
            _ => Self { error: Some(ErrorKind::Io { path: name.into(), source }.into()), code: 1 },
        }
    }

    /// A broken promise of our own.
    pub fn fault(what: String) -> Self {
        let error =
            Error::new(ErrorKind::Option { option: "covary", message: format!("a fault of its own: {what}") });
        Self { error: Some(error.with_hint("please report it, with the command and the data")), code: 1 }
    }

    /// Prints the error and its hint, and gives the exit code.
    pub fn report(self, talk: &Talk) -> ExitCode {
        if let Some(error) = &self.error {
            talk.error(&error.to_string(), option_hint(error.kind()).as_deref().or(error.hint()));
        }
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = code(error.kind());
        Self { error: Some(error), code }
    }
}

/// The option that helps, where the library can only say what would.
fn option_hint(kind: &ErrorKind) -> Option<String> {
    Some(match kind {
        ErrorKind::MissingCell { .. } => {
            "`--missing drop` leaves such rows out, `--missing impute` fills inputs".into()
        }
        ErrorKind::NotANumber { found, .. } => format!("`--na '{found}'` reads it as a missing cell"),
        ErrorKind::DuplicateTime { .. } => "`--id COL` names the column that tells several series apart".into(),
        _ => return None,
    })
}

fn code(kind: &ErrorKind) -> u8 {
    use ErrorKind as K;
    match kind {
        K::Option { .. } | K::KernelText { .. } | K::Kernel { .. } | K::NoSuchColumn { .. } | K::Time { .. } => 2,
        K::ModelFile { .. } => 4,
        K::Interrupted => 130,
        K::NotPositiveDefinite { .. } | K::Io { .. } | K::NoRestartSucceeded { .. } => 1,
        _ => 3,
    }
}
