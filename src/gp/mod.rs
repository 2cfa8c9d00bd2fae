//! Evidence and posterior of a Gaussian process; one file for each way of computing them. Asks the program for values
//! and pullbacks, `linalg` for factors; never looks at what a kernel is made of.

mod bound;
mod exact;
mod grid;
mod grid_posterior;
mod holes;
mod inducing;
mod iterative;
mod iterative_posterior;
mod loo;
mod preconditioner;
mod predict;
mod process;
mod repeats;
mod rows;
mod sparse;
mod sparse_posterior;

pub use bound::{Form, Jitter};
pub use exact::{Exact, Timings};
pub use grid::{GridAccount, GridProcess};
pub use grid_posterior::{GridPosterior, Variances};
pub use inducing::{Placing, check_inducing, place_inducing, sample, sample_rows};
pub(crate) use inducing::{check_number, count_distinct, landmarks};
pub use iterative::{Effort, Iterative};
pub use iterative_posterior::IterativePosterior;
pub use loo::LeaveOneOut;
pub use predict::{Posterior, Prediction};
pub use process::Process;
pub use repeats::{Merged, Repeats};
pub use rows::{InMemory, Rows, Streamed};
pub use sparse::{Sparse, SparseTimings};
pub use sparse_posterior::{SparsePosterior, Summary};
