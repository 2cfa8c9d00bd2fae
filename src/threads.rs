//! Whether work may be spread over threads. Seen by every module, sees none.

use std::cell::Cell;
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
    /// How much attended work this thread has under way.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Does work while another thread of the pool stands by, if one is free.
fn attended<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let done = AtomicBool::new(false);
    let stand_by = || {
        // A thread may come by here while its own work waits for something else. It must not stand by then: not for
        // itself, nor for another that may do the same.
        while !done.load(Ordering::Acquire) && OWN.get() == 0 {
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                std::thread::yield_now();
            }
        }
    };
    let work = || {
        let _until_the_end = UnderWay::begin(&done);
        work()
    };
    rayon::join(work, stand_by).0
}

/// Attended work; it is done when this goes out of scope, whether by a result or by a panic.
struct UnderWay<'a>(&'a AtomicBool);

impl<'a> UnderWay<'a> {
    fn begin(done: &'a AtomicBool) -> Self {
        OWN.set(OWN.get() + 1);
        Self(done)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        self.0.store(true, Ordering::Release);
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
