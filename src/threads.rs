//! Whether work may be spread over threads. Seen by every module, sees none.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// May the work be spread over threads? The result is the same to the bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// This thread only.
    One,
    /// All of the current pool, where the work is large enough to pay for it.
    #[default]
    All,
}

impl Threads {
    /// All of them where no thread of the pool asks: one that does has company at work already.
    pub fn outside_the_pool() -> Self {
        if rayon::current_thread_index().is_none() { Threads::All } else { Threads::One }
    }

    /// Does both, side by side where that is allowed.
    pub fn both<A: Send, B: Send>(self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
        if self == Threads::All { rayon::join(a, b) } else { (a(), b()) }
    }

    /// Does work that will be spread out again and again, from within the pool: from outside, every time would cost a
    /// waiting and two wakings, which for a few milliseconds of work is not little.
    ///
    /// A second thread stands by until the work is done and takes part as soon as there is something to share: waking
    /// it each time takes as long as half of a small evaluation.
    pub fn enter<R: Send>(self, work: impl FnOnce() -> R + Send) -> R {
        if self == Threads::All && rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1 {
            rayon::scope(|_| attended(work))
        } else {
            work()
        }
    }
}

thread_local! {
    /// Does this thread stand by, or has it attended work of its own under way? It must not stand by then: not for itself,
    /// nor for another that may do the same, and once is enough.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Does work while another thread of the pool stands by, if one is free. Nobody waits for that thread in the end: it may
/// have found something else to do.
fn attended<R>(work: impl FnOnce() -> R) -> R {
    let done = Arc::new(AtomicBool::new(false));
    let seen = done.clone();
    rayon::spawn(move || stand_by(&seen));
    let _until_the_end = UnderWay { done, before: BUSY.replace(true) };
    work()
}

/// Takes part in whatever there is to share. Where there is nothing, others may have the core.
fn stand_by(done: &AtomicBool) {
    if BUSY.get() {
        return;
    }
    BUSY.set(true);
    while !done.load(Ordering::Acquire) {
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            std::thread::yield_now();
        }
    }
    BUSY.set(false);
}

/// Attended work; it is done when this goes out of scope, whether by a result or by a panic.
struct UnderWay {
    done: Arc<AtomicBool>,
    before: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        BUSY.set(self.before);
        self.done.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_from_outside_comes_back_and_so_do_its_panics() {
        let sum = |n: u64| -> u64 {
            let parts = rayon::join(|| (0..n / 2).sum::<u64>(), || (n / 2..n).sum::<u64>());
            parts.0 + parts.1
        };
        let total: u64 = Threads::All.enter(|| (0..100).map(|_| sum(1000)).sum());
        assert_eq!(total, 100 * 499_500);
        let caught = std::panic::catch_unwind(|| Threads::All.enter(|| panic!("as asked")));
        assert!(caught.is_err());
    }

    #[test]
    fn who_waits_elsewhere_stands_by_for_nobody() {
        // Both threads of the pool are owners, so that nobody else takes what they leave; each then waits for a pool of
        // its own and looks for work at home meanwhile.
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads");
        let (home, other) = (pool(2), pool(1));
        let total = home.install(|| {
            let one = || attended(|| other.install(|| 1));
            let (a, b) = rayon::join(one, one);
            a + b
        });
        assert_eq!(total, 2);
    }
}
