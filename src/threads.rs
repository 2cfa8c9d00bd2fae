//! Whether work may be spread over threads. Seen by every module, sees none.

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
    /// Does work that will be spread out again and again, from within the pool: from outside, every time would cost a
    /// waiting and two wakings, which for a few milliseconds of work is not little.
    pub fn enter<R: Send>(self, work: impl FnOnce() -> R + Send) -> R {
        if self == Threads::All && rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1 {
            rayon::scope(|_| work())
        } else {
            work()
        }
    }
}
