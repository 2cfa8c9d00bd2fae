//! Eigenvalues and eigenvectors of a symmetric matrix.

use super::{Matrix, leave_wide_registers, par};
use crate::threads::Threads;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors, SelfAdjointEvdParams};
use faer::{Auto, Spec};

/// Below this size matrices are not divided further: at n = 224 it takes 4.7 ms, and 5.3 to 6.3 ms with the library's 128.
const UNDIVIDED: usize = 48;

/// A = Q diag(λ) Qᵀ, eigenvalues ascending.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// λ, ascending.
    pub values: Vec<f64>,
    /// Q, one eigenvector a column.
    pub vectors: Matrix,
}

/// Memory that is kept from one decomposition to the next.
#[derive(Default)]
pub struct EigenRoom {
    memory: Option<(usize, MemBuffer)>,
    /// What becomes the next eigenvectors.
    pub spare: Matrix,
}

impl std::fmt::Debug for EigenRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EigenRoom({} bytes)", self.memory.as_ref().map_or(0, |m| m.0))
    }
}

/// Decomposes a symmetric matrix, of which the lower triangle is read; nothing if a number is not finite.
pub fn symmetric_eigen(a: &Matrix, threads: Threads) -> Option<Eigen> {
    symmetric_eigen_in(a, &mut EigenRoom::default(), threads)
}

/// The same, in memory that was used before.
pub fn symmetric_eigen_in(a: &Matrix, room: &mut EigenRoom, threads: Threads) -> Option<Eigen> {
    let n = a.rows();
    let par = par(threads, n, 400);
    let mut params = <SelfAdjointEvdParams as Auto<f64>>::auto();
    params.recursion_threshold = UNDIVIDED;
    let spec: Spec<SelfAdjointEvdParams, f64> = Spec::from(params);
    let scratch = evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, par, spec);
    let needed = scratch.unaligned_bytes_required();
    if room.memory.as_ref().is_none_or(|(size, _)| *size < needed) {
        room.memory = Some((needed, MemBuffer::new(scratch)));
    }
    let (_, memory) = room.memory.as_mut()?;
    let mut vectors = std::mem::take(&mut room.spare);
    if (vectors.rows(), vectors.columns()) != (n, n) {
        vectors = Matrix::zeros(n, n);
    }
    let mut values = vec![0.0; n];
    let (s, u) = (DiagMut::from_slice_mut(&mut values), Some(vectors.view_mut()));
    let done = evd::self_adjoint_evd(a.view(), s, u, par, MemStack::new(memory), spec);
    leave_wide_registers();
    done.ok()?;
    values.iter().all(|v| v.is_finite()).then_some(Eigen { values, vectors })
}
