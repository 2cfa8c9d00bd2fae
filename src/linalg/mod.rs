//! Dense linear algebra: the only folder that names the matrix library. Knows nothing of kernels or data.

#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod body;
mod cg;
mod cholesky;
mod eigen;
#[cfg(target_arch = "x86_64")]
mod halves;
mod kept;
mod kron;
#[cfg(target_arch = "x86_64")]
mod level;
pub mod library;
mod many;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod pack;
pub mod product;
#[cfg(target_arch = "x86_64")]
mod sandwich;
#[cfg(target_arch = "x86_64")]
mod slabs;
#[cfg(target_arch = "x86_64")]
mod steps;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod times;
mod wide;
mod workspace;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use cg::{ConjugateGradients, Solved, conjugate_gradients};
pub use cholesky::{Cholesky, Failure, Inverse, JITTER_FIRST, JITTER_LAST};
pub use eigen::{Eigen, EigenRoom, symmetric_eigen, symmetric_eigen_in};
pub use kept::{Errors, Gram, Right};
pub use kron::{KronScratch, Side, kron_apply, unfold};
pub use many::{SolvedMany, conjugate_gradients_many};
pub use matrix::{Matrix, sum_of_logs};
pub use times::leave_wide_registers;
pub use wide::{add_scaled, dot, prefetch, sum_scaled};

use crate::threads::Threads;
use faer::Par;

/// The library's word for threads; below `least` rows one thread is faster.
fn par(threads: Threads, n: usize, least: usize) -> Par {
    match threads {
        Threads::All if n >= least && rayon::current_num_threads() > 1 => Par::rayon(0),
        _ => Par::Seq,
    }
}
