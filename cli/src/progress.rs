//! Long work: a bar for whoever watches, a checkpoint for whoever waits, an end for whoever has waited enough.

use crate::checkpoint::{Checkpoint, Done};
use crate::interrupt;
use crate::output::Talk;
use covary::Result;
use covary::fit::{Link, Step};
use covary::forecast::Outcome;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a checkpoint is written.
const EVERY: Duration = Duration::from_secs(10);

/// Where a checkpoint goes.
pub enum Place {
    /// Where the user said: it is written now and then, when interrupted, and at the end.
    Named(PathBuf),
    /// Beside a result: written now and then and when interrupted, and gone once the result is there.
    Beside(PathBuf),
    /// Nothing was named: written when interrupted.
    Last(PathBuf),
}

impl Place {
    /// The place for these options: a checkpoint that is named or resumed from, else one beside the first result that
    /// is a file, else one in this directory.
    pub fn of(named: [Option<&PathBuf>; 2], results: &[Option<&PathBuf>]) -> Self {
        if let Some(path) = named.into_iter().flatten().next() {
            return Self::Named(path.clone());
        }
        match results.iter().flatten().find(|p| p.as_os_str() != "-") {
            Some(path) => Self::Beside(format!("{}.checkpoint", path.display()).into()),
            None => Self::Last("covary.checkpoint".into()),
        }
    }

    fn path(&self) -> &PathBuf {
        match self {
            Self::Named(path) | Self::Beside(path) | Self::Last(path) => path,
        }
    }
}

/// Watches long work.
pub struct Watch {
    bar: ProgressBar,
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    checkpoint: Checkpoint,
    place: Place,
    best: f64,
    saved: Instant,
    written: bool,
    iterations: BTreeMap<(String, usize), u64>,
}

impl Kept {
    fn save_now_and_then(&mut self) {
        if matches!(self.place, Place::Last(_)) || self.saved.elapsed() < EVERY {
            return;
        }
        self.saved = Instant::now();
        // One that cannot be written now is tried again; the last one counts.
        self.written |= self.checkpoint.save(self.place.path()).is_ok();
    }

    /// What Ctrl-C leaves behind.
    fn leave(&self) -> String {
        if self.checkpoint.is_empty() {
            return "interrupted".into();
        }
        let path = self.place.path().display();
        let done = match self.checkpoint.done.len() {
            0 => "the best so far is in".to_string(),
            n => format!("{n} series are done and kept in"),
        };
        match self.checkpoint.save(self.place.path()) {
            Ok(()) => format!("interrupted; {done} {path}, `--resume {path}` goes on"),
            Err(error) => format!("interrupted; no checkpoint: {error}"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Watch {
    /// Begins to watch `total` units of work. On Ctrl-C the checkpoint is written.
    pub fn new(talk: &Talk, total: u64, checkpoint: Checkpoint, place: Place) -> Self {
        let target = if talk.watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        // What does not fit on one line leaves its remains behind.
        let room = terminal_size::terminal_size().map_or(80, |size| usize::from(size.0.0));
        let width = room.saturating_sub(56).clamp(4, 30);
        let style = format!("{{bar:{width}}} {{percent:>3}} %  {{msg}}  {{elapsed}} gone, {{eta}} left");
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        let (best, saved, iterations) = (f64::INFINITY, Instant::now(), BTreeMap::new());
        let kept = Arc::new(Mutex::new(Kept { checkpoint, place, best, saved, written: false, iterations }));
        let watch = Self { bar, kept };
        let (kept, bar) = (watch.kept.clone(), watch.bar.clone());
        interrupt::keep(move || {
            let kept = lock(&kept);
            bar.finish_and_clear();
            let message = kept.leave();
            // The process ends now: whoever works on must not draw the bar again.
            std::mem::forget(kept);
            message
        });
        watch
    }

    /// One iteration of one restart of the fit under this link.
    pub fn step(&self, link: Link, step: Step) -> ControlFlow<()> {
        let mut kept = lock(&self.kept);
        let stage = Checkpoint::stage(link);
        kept.best = kept.best.min(step.progress.best);
        kept.iterations.insert((stage.clone(), step.restart), step.progress.iteration as u64);
        self.bar.set_position(kept.iterations.values().sum());
        self.bar.set_message(match kept.best.is_finite() {
            true => format!("log evidence {:.2}", -kept.best),
            false => "getting ready".into(),
        });
        kept.checkpoint.set(stage, step.restart, step.state);
        kept.save_now_and_then();
        ControlFlow::Continue(())
    }

    /// One more series is done; comes back where it cannot be kept here.
    pub fn done(&self, outcome: Outcome) -> Option<Outcome> {
        let mut kept = lock(&self.kept);
        let odd = kept.checkpoint.done(outcome);
        kept.save_now_and_then();
        self.bar.inc(1);
        odd
    }

    /// All series that are done, those of a run before too.
    pub fn all_done(&self) -> Vec<Done> {
        lock(&self.kept).checkpoint.done.clone()
    }

    /// Nothing more is to come: the bar goes, so that what is said next stands alone.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// The work is done: a checkpoint that was named is kept, one beside a result is not needed any more.
    pub fn finish(self) -> Result<()> {
        self.bar.finish_and_clear();
        let kept = lock(&self.kept);
        match &kept.place {
            Place::Named(path) => kept.checkpoint.save(path),
            Place::Beside(path) if kept.written => {
                // It was ours; if it cannot be removed it does no harm.
                let _ = std::fs::remove_file(path);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
