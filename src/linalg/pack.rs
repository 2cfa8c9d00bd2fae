//! From matrices stored by columns to panels of tiles, and back.

use super::Matrix;
use super::avx2::{LANES, PANEL};
use super::tiles::{Chunk, Cut, Place};
use rayon::prelude::*;

/// A matrix by columns.
#[derive(Clone, Copy)]
pub(super) struct Dense {
    at: Place,
    stride: usize,
}

impl Dense {
    pub fn of(a: &mut Matrix) -> Self {
        Self { stride: a.stride(), at: Place(a.values_mut().as_mut_ptr()) }
    }

    /// The same, to be read alone.
    pub fn read(a: &Matrix) -> Self {
        let at = if a.columns() == 0 { std::ptr::null_mut() } else { a.column(0).as_ptr().cast_mut() };
        Self { stride: a.stride(), at: Place(at) }
    }

    /// # Safety
    /// Row and column are within the matrix.
    pub unsafe fn entry(self, i: usize, j: usize) -> *mut f64 {
        // SAFETY: as promised by the caller.
        unsafe { self.at.at().add(j * self.stride + i) }
    }
}

/// Does something with every chunk, beside each other where that is wanted.
pub(super) fn each(parallel: bool, chunks: &[Chunk], f: impl Fn(Chunk) + Sync + Send) {
    if parallel && chunks.len() > 1 {
        chunks.par_iter().with_max_len(1).for_each(|&c| f(c));
    } else {
        chunks.iter().for_each(|&c| f(c));
    }
}

/// Rows of a chunk in tiles of column k.
pub(super) unsafe fn panel(place: Place, cut: Cut, tile: usize, k: usize, row: usize) -> *mut f64 {
    // SAFETY: the caller names a panel of the triangle.
    unsafe { place.at().add(cut.tile(tile, k) + row / LANES * cut.stride()) }
}

/// Columns of a panel of tile (i, k), whose first row is `row` within the tile: as far as the diagonal goes.
pub(super) fn width(cut: Cut, tile: usize, k: usize, row: usize) -> usize {
    if tile == k { row + PANEL } else { cut.height(k) }
}

/// From the matrix to the panels of a chunk in block column k.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn pack_chunk(a: Dense, to: Place, cut: Cut, k: usize, chunk: Chunk) {
    let (n, stride) = (cut.n, cut.stride());
    for row in chunk.panels() {
        // SAFETY: as promised by the caller; rows beyond the last are not read.
        unsafe {
            let (to, width) = (panel(to, cut, chunk.tile, k, row), width(cut, chunk.tile, k, row));
            let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
            for c in 0..width {
                if i + PANEL <= n {
                    let from = a.entry(i, j + c);
                    for v in 0..3 {
                        to.add(v * stride + c * LANES).copy_from_nonoverlapping(from.add(v * LANES), LANES);
                    }
                } else {
                    for r in 0..PANEL {
                        let inside = i + r < n && j + c < n;
                        let value = if inside { *a.entry(i + r, j + c) } else { f64::from(i + r == j + c) };
                        *to.add(r / LANES * stride + c * LANES + r % LANES) = value;
                    }
                }
            }
        }
    }
}

/// And back: what lies on and below the diagonal.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn unpack_chunk(a: Dense, from: Place, cut: Cut, k: usize, chunk: Chunk) {
    let (n, stride) = (cut.n, cut.stride());
    for row in chunk.panels() {
        // SAFETY: as in pack_chunk.
        unsafe {
            let (from, width) = (panel(from, cut, chunk.tile, k, row), width(cut, chunk.tile, k, row));
            let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
            for c in 0..width.min(n - j) {
                if i + PANEL <= n && i >= j + c {
                    let to = a.entry(i, j + c);
                    for v in 0..3 {
                        to.add(v * LANES).copy_from_nonoverlapping(from.add(v * stride + c * LANES), LANES);
                    }
                } else {
                    for r in (j + c).saturating_sub(i)..PANEL.min(n.saturating_sub(i)) {
                        *a.entry(i + r, j + c) = *from.add(r / LANES * stride + c * LANES + r % LANES);
                    }
                }
            }
        }
    }
}

/// From a lower triangular W to the panels of a chunk of rows of Wᵀ, in block column k of it.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn pack_transposed(w: Dense, to: Place, cut: Cut, k: usize, chunk: Chunk) {
    let (n, stride) = (cut.n, cut.stride());
    for row in chunk.panels() {
        // SAFETY: as in pack_chunk.
        unsafe {
            let to = panel(to, cut, k, chunk.tile, row);
            let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
            for r in 0..PANEL {
                let to = to.add(r / LANES * stride + r % LANES);
                for c in 0..cut.height(k) {
                    *to.add(c * LANES) = if j + c < n && i + r <= j + c { *w.entry(j + c, i + r) } else { 0.0 };
                }
            }
        }
    }
}

/// The same for all tiles of a symmetric matrix, of which the lower triangle is read; tile (k, j) lies at k·tiles + j.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn pack_symmetric(a: Dense, to: Place, cut: Cut, chunk: Chunk) {
    let (n, stride) = (cut.n, cut.stride());
    for (row, k) in chunk.panels().flat_map(|row| (0..cut.tiles).map(move |k| (row, k))) {
        // SAFETY: as in pack_chunk.
        unsafe {
            let to = whole_tile(to, cut, chunk.tile, k).add(row / LANES * stride);
            let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
            if i >= j + cut.height(k) && i + PANEL <= n {
                for c in 0..cut.height(k) {
                    let from = a.entry(i, j + c);
                    for v in 0..3 {
                        to.add(v * stride + c * LANES).copy_from_nonoverlapping(from.add(v * LANES), LANES);
                    }
                }
                continue;
            }
            for r in 0..PANEL {
                let to = to.add(r / LANES * stride + r % LANES);
                for c in 0..cut.height(k) {
                    let (row, column) = (i + r, j + c);
                    let inside = row < n && column < n;
                    *to.add(c * LANES) = if inside { *a.entry(row.max(column), row.min(column)) } else { 0.0 };
                }
            }
        }
    }
}

/// Where tile (k, j) of a whole matrix begins.
///
/// # Safety
/// There is one.
pub(super) unsafe fn whole_tile(place: Place, cut: Cut, k: usize, j: usize) -> *mut f64 {
    // SAFETY: as promised by the caller.
    unsafe { place.at().add((k * cut.tiles + j) * cut.side * cut.side) }
}
