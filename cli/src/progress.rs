//! Long work: a bar for whoever watches, a checkpoint for whoever waits, an end for whoever has waited enough.

use crate::output::Talk;
use covary::file::write_atomically;
use covary::fit::Step;
use covary::optim::State;
use covary::{Dataset, Error, ErrorKind, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What a checkpoint file is called inside.
const FORMAT: &str = "covary checkpoint 1";
/// How often it is written.
const EVERY: Duration = Duration::from_secs(10);

/// All that is needed to go on with a fit of the same data.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    pub format: String,
    pub kernel: String,
    pub seed: u64,
    pub restarts: usize,
    pub data: String,
    pub states: Vec<Option<State>>,
}

impl Checkpoint {
    pub fn new(kernel: &str, seed: u64, restarts: usize, data: &Dataset) -> Self {
        let states = vec![None; restarts];
        Self { format: FORMAT.into(), kernel: kernel.into(), seed, restarts, data: fingerprint(data), states }
    }

    /// Reads a checkpoint, and refuses one of other work.
    pub fn open(path: &Path, like: &Checkpoint) -> Result<Self> {
        let refuse = |reason: String, hint: &str| {
            Error::new(ErrorKind::ModelFile { path: path.into(), reason }).with_hint(hint)
        };
        let bytes = std::fs::read(path).map_err(|source| Error::from(ErrorKind::Io { path: path.into(), source }))?;
        let found: Checkpoint = serde_json::from_slice(&bytes).map_err(|e| {
            refuse(format!("not a covary checkpoint: {e}"), "`covary fit --checkpoint FILE` writes one")
        })?;
        let same = "resume with the data, kernel and seed it was made with";
        for (what, a, b) in [
            ("format", &found.format, &like.format),
            ("kernel", &found.kernel, &like.kernel),
            ("data", &found.data, &like.data),
        ] {
            if a != b {
                return Err(refuse(format!("a checkpoint of another {what}: {a}, not {b}"), same));
            }
        }
        if (found.seed, found.restarts) != (like.seed, like.restarts) || found.states.len() != found.restarts {
            let reason = format!("a checkpoint of seed {} and {} starts", found.seed, found.restarts);
            return Err(refuse(reason, same));
        }
        Ok(found)
    }

    fn save(&self, path: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::from(ErrorKind::Io { path: path.into(), source: e.into() }))?;
        write_atomically(path, &bytes)
    }
}

/// Sizes and a hash (FNV-1a) of the numbers.
fn fingerprint(data: &Dataset) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for v in data.x().values().iter().chain(data.y()) {
        for byte in v.to_bits().to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    format!("{}x{}-{hash:016x}", data.n(), data.d())
}

/// Watches a fit.
pub struct Watch {
    bar: ProgressBar,
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    checkpoint: Option<Checkpoint>,
    path: Option<PathBuf>,
    best: f64,
    saved: Instant,
    iterations: Vec<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Watch {
    /// Begins to watch `total` units of work. On Ctrl-C the checkpoint, if there is one, is written and the process
    /// ends with 130: at once, for an evaluation that has begun may take long.
    pub fn new(talk: &Talk, total: u64, restarts: usize, checkpoint: Option<(Checkpoint, Option<PathBuf>)>) -> Self {
        let target = if talk.watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} gone, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let (checkpoint, path) = match checkpoint {
            Some((checkpoint, path)) => (Some(checkpoint), path),
            None => (None, None),
        };
        let iterations = vec![0; restarts];
        let kept = Kept { checkpoint, path, best: f64::INFINITY, saved: Instant::now(), iterations };
        let watch = Self { bar, kept: Arc::new(Mutex::new(kept)) };
        let (kept, bar, quiet) = (watch.kept.clone(), watch.bar.clone(), talk.quiet);
        // A second handler is refused; there is one piece of long work in a process.
        let _ = ctrlc::set_handler(move || {
            bar.abandon();
            let kept = lock(&kept);
            let mut message = "interrupted".to_string();
            if let (Some(checkpoint), Some(path)) = (&kept.checkpoint, &kept.path)
                && checkpoint.states.iter().any(Option::is_some)
            {
                message = match checkpoint.save(path) {
                    Ok(()) => format!("interrupted; the best so far is in {}, `--resume` goes on", path.display()),
                    Err(error) => format!("interrupted; no checkpoint: {error}"),
                };
            }
            if !quiet {
                eprintln!("{message}");
            }
            std::process::exit(130);
        });
        watch
    }

    /// One iteration of one restart.
    pub fn step(&self, step: Step) -> ControlFlow<()> {
        let mut kept = lock(&self.kept);
        kept.best = kept.best.min(step.progress.best);
        if let Some(count) = kept.iterations.get_mut(step.restart) {
            *count = step.progress.iteration as u64;
        }
        self.bar.set_position(kept.iterations.iter().sum());
        self.bar.set_message(format!("log evidence {:.2}", -kept.best));
        let kept = &mut *kept;
        if let Some(checkpoint) = &mut kept.checkpoint {
            if let Some(slot) = checkpoint.states.get_mut(step.restart) {
                *slot = step.state.cloned();
            }
            if let Some(path) = kept.path.as_ref().filter(|_| kept.saved.elapsed() > EVERY) {
                kept.saved = Instant::now();
                // One that cannot be written now is tried again; the last one counts.
                let _ = checkpoint.save(path);
            }
        }
        ControlFlow::Continue(())
    }

    /// One more unit of work is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// The work is done; where a file was named for it, the last state is kept.
    pub fn finish(self, keep: bool) -> Result<()> {
        self.bar.finish_and_clear();
        let kept = lock(&self.kept);
        match (&kept.checkpoint, &kept.path) {
            (Some(checkpoint), Some(path)) if keep => checkpoint.save(path),
            _ => Ok(()),
        }
    }
}
