//! From matrices stored by columns to panels of tiles, and back.

use super::Matrix;
use super::steps::{Panel, Steps};
use super::tiles::{Chunk, Cut, LARGEST, Place};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        Self { stride: a.stride(), at: Place(a.values().as_ptr().cast_mut()) }
    }

    /// Entries from one column to the next.
    pub fn stride(self) -> usize {
        self.stride
    }

    /// # Safety
    /// Row and column are within the matrix.
    pub unsafe fn entry(self, i: usize, j: usize) -> *mut f64 {
        // SAFETY: as promised by the caller.
        unsafe { self.at.at().add(j * self.stride + i) }
    }
}

/// Does something with every chunk, beside each other where that is wanted. Whoever is free takes the next, so that nobody
/// waits long where those with most to do come first.
pub(super) fn each(parallel: bool, chunks: &[Chunk], f: impl Fn(Chunk) + Sync + Send) {
    if parallel && chunks.len() > 1 {
        let next = AtomicUsize::new(0);
        let workers = rayon::current_num_threads().min(chunks.len());
        (0..workers).into_par_iter().with_max_len(1).for_each(|_| {
            while let Some(&c) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                f(c);
            }
        });
    } else {
        chunks.iter().for_each(|&c| f(c));
    }
}

/// The panel from a row of tile (i, k) of a lower triangle on.
pub(super) fn panel(place: Place, cut: Cut, tile: usize, k: usize, row: usize) -> Panel {
    let at = place.at().wrapping_add(cut.tile(tile, k) + row * cut.side);
    Panel { at, stride: cut.stride(), slivers: cut.slivers(tile, row), stairs: false }
}

/// The same in an upper triangle, whose tile (i, k) lies where (k, i) of a lower one does.
pub(super) fn upper_panel(place: Place, cut: Cut, tile: usize, k: usize, row: usize) -> Panel {
    let at = place.at().wrapping_add(cut.tile(k, tile) + row * cut.side);
    Panel { at, stride: cut.stride(), slivers: cut.slivers(tile, row), stairs: false }
}

/// The same without its first slivers, and from the diagonal on where the tile is on it; and the columns before that.
pub(super) fn from_diagonal<S: Steps>(
    place: Place,
    cut: Cut,
    (tile, k): (usize, usize),
    row: usize,
    above: usize,
) -> (Panel, usize) {
    let panel = upper_panel(place, cut, tile, k, row).below(above);
    let skip = if tile == k { row + above * S::LANES } else { 0 };
    (Panel { stairs: tile == k, ..panel.from::<S>(skip) }, skip)
}

/// The blocks of a panel of tile (i, k), as far as the diagonal goes: the first column, and how many slivers lie above the
/// diagonal.
pub(super) fn blocks<S: Steps>(cut: Cut, tile: usize, k: usize, row: usize) -> impl Iterator<Item = (usize, usize)> {
    let above = move |c: usize| if tile == k { c.saturating_sub(row) / S::LANES } else { 0 };
    (0..width(cut, tile, k, row)).step_by(S::LANES).map(move |c| (c, above(c)))
}

/// Columns of a panel of tile (i, k), whose first row is `row` within the tile: as far as the diagonal goes.
fn width(cut: Cut, tile: usize, k: usize, row: usize) -> usize {
    let height = cut.height(k);
    if tile == k { height.min(row + cut.level.panel()) } else { height }
}

/// From the matrix to the panels of a chunk in block column k.
pub(super) unsafe fn pack_chunk<S: Steps>(a: Dense, to: Place, cut: Cut, k: usize, chunk: Chunk) {
    let n = cut.n;
    for row in chunk.panels() {
        let (to, width) = (panel(to, cut, chunk.tile, k, row), width(cut, chunk.tile, k, row));
        let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
        // SAFETY: as promised by the caller; rows and columns beyond the last are not read.
        unsafe {
            let whole = to.first((n - i) / S::LANES);
            S::pack(a.entry(i, j), a.stride, whole, width.min(n - j));
            let filled = whole.slivers * S::LANES;
            for c in 0..width {
                let first = if j + c < n { filled } else { 0 };
                for r in first..to.slivers * S::LANES {
                    let inside = i + r < n && j + c < n;
                    let value = if inside { *a.entry(i + r, j + c) } else { f64::from(i + r == j + c) };
                    *to.entry::<S>(r, c) = value;
                }
            }
        }
    }
}

/// And back: what lies on and below the diagonal.
pub(super) unsafe fn unpack_chunk<S: Steps>(a: Dense, from: Place, cut: Cut, k: usize, chunk: Chunk) {
    let n = cut.n;
    for row in chunk.panels() {
        let (from, width) =
            (panel(from, cut, chunk.tile, k, row), width(cut, chunk.tile, k, row).min(n - k * cut.side));
        let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
        // Slivers whose rows are all there, and those that are left, one by one.
        let whole = from.first((n - i) / S::LANES);
        // SAFETY: as in pack_chunk.
        unsafe {
            let copy = |rows: Range<usize>, c: usize| {
                for r in rows {
                    *a.entry(i + r, j + c) = *from.entry::<S>(r, c);
                }
            };
            let (filled, rows) = (whole.slivers * S::LANES, (n - i).min(from.slivers * S::LANES));
            let left = if chunk.tile == k { width.min(row) } else { width };
            S::unpack(whole, a.entry(i, j), a.stride, left);
            (0..left).for_each(|c| copy(filled..rows, c));
            // Columns that the diagonal goes through.
            for c in (left..width).step_by(S::LANES) {
                let (above, end) = ((c - left) / S::LANES + 1, width.min(c + S::LANES));
                if above < whole.slivers {
                    let to = a.entry(i + above * S::LANES, j + c);
                    S::unpack(whole.below(above).from::<S>(c), to, a.stride, end - c);
                }
                for c in c..end {
                    copy(c - left..rows.min(above * S::LANES), c);
                    copy(filled.max(above * S::LANES)..rows, c);
                }
            }
        }
    }
}

/// From a lower triangular W to the panels of a chunk of rows of Wᵀ, in block column k of it.
pub(super) unsafe fn pack_transposed<S: Steps>(w: Dense, to: Place, cut: Cut, k: usize, chunk: Chunk) {
    for row in chunk.panels() {
        let to = upper_panel(to, cut, chunk.tile, k, row);
        let (i, j) = (chunk.tile * cut.side + row, k * cut.side);
        // Columns left of the diagonal, and right of it.
        let [left, right] = [i, i + S::PANEL].map(|c| c.saturating_sub(j).min(cut.height(k)));
        // SAFETY: as in pack_chunk.
        unsafe {
            for (c, r) in (0..right).flat_map(|c| (0..to.slivers * S::LANES).map(move |r| (c, r))) {
                let inside = c >= left && j + c < cut.n && i + r <= j + c;
                *to.entry::<S>(r, c) = if inside { *w.entry(j + c, i + r) } else { 0.0 };
            }
            transpose::<S>(w, to, cut.n, (i, j), right..cut.height(k));
        }
    }
}

/// From the lower triangle of a matrix to the panels of a chunk, nought above the diagonal, which is halved.
pub(super) unsafe fn half_chunk<S: Steps>(a: Dense, to: Place, cut: Cut, chunk: Chunk) {
    // SAFETY: as in pack_chunk.
    unsafe {
        (0..=chunk.tile).for_each(|k| pack_chunk::<S>(a, to, cut, k, chunk));
        for row in chunk.panels() {
            let to = panel(to, cut, chunk.tile, chunk.tile, row);
            for r in 0..to.slivers * S::LANES {
                (r + 1..to.slivers * S::LANES).for_each(|c| *to.entry::<S>(r, row + c) = 0.0);
            }
            halve::<S>(to, row);
        }
    }
}

/// Halves the diagonal of a panel of a tile on it.
pub(super) unsafe fn halve<S: Steps>(panel: Panel, row: usize) {
    for r in 0..panel.slivers * S::LANES {
        // SAFETY: as promised by the caller.
        unsafe { *panel.entry::<S>(r, row + r) *= 0.5 };
    }
}

/// Some columns of a panel from row i and column j of Aᵀ on: slivers of the columns of A. Beyond the last they are nought.
unsafe fn transpose<S: Steps>(a: Dense, to: Panel, n: usize, (i, j): (usize, usize), columns: Range<usize>) {
    static NOUGHT: [f64; LARGEST] = [0.0; LARGEST];
    if columns.is_empty() {
        return;
    }
    let len = columns.end.min(n - j) - columns.start;
    for v in 0..to.slivers {
        let first = i + v * S::LANES;
        // SAFETY: as in pack_chunk; a tile has no more columns than there are noughts.
        unsafe {
            let list = std::array::from_fn(|r| match first + r < n {
                true => a.entry(j + columns.start, first + r).cast_const(),
                false => NOUGHT.as_ptr(),
            });
            let to = to.below(v).from::<S>(columns.start).at;
            S::slice(&list, len, to);
            to.add(len * S::LANES).write_bytes(0, (columns.len() - len) * S::LANES);
        }
    }
}
