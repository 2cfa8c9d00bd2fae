//! Ctrl-C and a polite kill: what is worth keeping is kept, temporary files go, the code is 130. At once, for an
//! evaluation that has begun may take long.

use std::sync::{Mutex, PoisonError};

/// Keeps what there is to keep, and says so.
type Keep = Box<dyn Fn() -> String + Send>;

static KEEP: Mutex<Option<Keep>> = Mutex::new(None);

/// From now on an interruption ends the process in order.
pub fn install(quiet: bool) {
    // A second handler is refused; this one is the first.
    let _ = ctrlc::set_handler(move || {
        let keep = KEEP.lock().unwrap_or_else(PoisonError::into_inner);
        let message = keep.as_ref().map_or_else(|| "interrupted".to_string(), |keep| keep());
        covary::file::discard_drafts();
        if !quiet {
            use std::io::Write;
            // Standard error that is gone cannot be told about it.
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        std::process::exit(130);
    });
}

/// What is to be kept of the work that begins now.
pub fn keep(keep: impl Fn() -> String + Send + 'static) {
    *KEEP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(keep));
}
