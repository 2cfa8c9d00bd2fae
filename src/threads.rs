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
