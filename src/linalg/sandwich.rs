//! W A Wᵀ and Wᵀ S W for a lower triangular W and a symmetric matrix between: what whitens and unwhitens. In tiles, as the
//! blocked factor; the caller knows that the machine has the instructions.

use super::Matrix;
use super::avx2::{self, LANES, PANEL, STEP};
use super::blocked::{available, product};
use super::pack::{Dense, each, pack_chunk, pack_symmetric, pack_transposed, panel, unpack_chunk, whole_tile, width};
use super::tiles::{Chunk, Cut, Place, Tiles};

/// A ← W A Wᵀ, the lower triangles.
pub(super) fn whiten(w: &Matrix, a: &mut Matrix, memory: &mut Matrix, parallel: bool) {
    let cut = check(w, a);
    let whole = cut.side * cut.side * cut.tiles * cut.tiles;
    let mut room = Tiles::with_room(cut, 3 * cut.triangle() + whole, std::mem::take(memory));
    let first = room.first();
    let [packed, t, x, all] = [0, 1, 2, 3].map(|k| first.after(k * cut.triangle()));
    let (w, a, chunks) = (Dense::read(w), Dense::of(a), cut.chunks(0));
    // SAFETY: sizes and instructions are checked; chunks write rows of their own, once all of A is packed.
    unsafe {
        each(parallel, &chunks, |c| {
            (0..=c.tile).for_each(|k| pack_chunk(w, packed, cut, k, c));
            pack_symmetric(a, all, cut, c);
        });
        each(parallel, &chunks, |c| {
            lower_times(packed, all, t, cut, c);
            times_lower(t, packed, x, cut, c);
            (0..=c.tile).for_each(|k| unpack_chunk(a, x, cut, k, c));
        });
    }
    *memory = room.into_memory();
}

/// S ← Wᵀ S W, the lower triangles, for each S.
pub(super) fn unwhiten(w: &Matrix, list: &mut [Matrix], memory: &mut Matrix, parallel: bool) {
    let cut = check(w, w);
    let whole = cut.side * cut.side * cut.tiles * cut.tiles;
    let mut room = Tiles::with_room(cut, 3 * cut.triangle() + whole, std::mem::take(memory));
    let first = room.first();
    let [u, t, x, all] = [0, 1, 2, 3].map(|k| first.after(k * cut.triangle()));
    let (w, chunks) = (Dense::read(w), cut.chunks(0));
    // SAFETY: sizes and instructions are checked; chunks write rows of their own.
    unsafe { each(parallel, &chunks, |c| (c.tile..cut.tiles).for_each(|k| pack_transposed(w, u, cut, k, c))) };
    for s in list {
        assert!(s.rows() == cut.n && s.columns() == cut.n, "{} rows by {}", s.rows(), s.columns());
        let s = Dense::of(s);
        // SAFETY: as above; S is packed before it is written, T whole before it is read.
        unsafe {
            each(parallel, &chunks, |c| pack_symmetric(s, all, cut, c));
            each(parallel, &chunks, |c| upper_times(u, all, t, cut, c));
            each(parallel, &chunks, |c| product(s, x, [u, t], cut, c));
        }
    }
    *memory = room.into_memory();
}

fn check(w: &Matrix, a: &Matrix) -> Cut {
    let n = w.rows();
    assert!(available() && w.columns() == n && a.rows() == n && a.columns() == n, "{n} rows by {}", a.rows());
    Cut::new(n)
}

/// The rows of a chunk of T = W A, as far as the diagonal.
#[target_feature(enable = "avx2,fma")]
unsafe fn lower_times(w: Place, a: Place, t: Place, cut: Cut, chunk: Chunk) {
    let (s, own) = (cut.stride(), chunk.tile);
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in 0..=own {
                let b = whole_tile(a, cut, k, j);
                for row in chunk.panels() {
                    let (to, from) = (panel(t, cut, own, k, row), panel(w, cut, own, j, row));
                    // Right of its last row, a panel is nought.
                    let len = if j == own { row + PANEL } else { cut.side };
                    for c in (0..width(cut, own, k, row)).step_by(STEP) {
                        let x = if j == 0 { avx2::nought() } else { avx2::load(to, s, c) };
                        avx2::store(to, s, c, avx2::plus(x, from, s, b.add(c / LANES * s), len));
                    }
                }
            }
        }
    }
}

/// The rows of a chunk of T Wᵀ, as far as the diagonal.
#[target_feature(enable = "avx2,fma")]
unsafe fn times_lower(t: Place, w: Place, x: Place, cut: Cut, chunk: Chunk) {
    let (s, own) = (cut.stride(), chunk.tile);
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in 0..=k {
                let b = w.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let (to, from) = (panel(x, cut, own, k, row), panel(t, cut, own, j, row));
                    for c in (0..width(cut, own, k, row)).step_by(STEP) {
                        let len = if j == k { c + STEP } else { cut.side };
                        let x = if j == 0 { avx2::nought() } else { avx2::load(to, s, c) };
                        avx2::store(to, s, c, avx2::plus(x, from, s, b.add(c / LANES * s), len));
                    }
                }
            }
        }
    }
}

/// The rows of a chunk of T = U S, from the diagonal to the right.
#[target_feature(enable = "avx2,fma")]
unsafe fn upper_times(u: Place, a: Place, t: Place, cut: Cut, chunk: Chunk) {
    let (s, own) = (cut.stride(), chunk.tile);
    // SAFETY: as promised by the caller.
    unsafe {
        for k in own..cut.tiles {
            for j in own..cut.tiles {
                let b = whole_tile(a, cut, k, j);
                for row in chunk.panels() {
                    let (to, from) = (panel(t, cut, k, own, row), panel(u, cut, j, own, row));
                    let skip = if j == own { row } else { 0 };
                    let (first, len) = (if k == own { row } else { 0 }, cut.height(j) - skip);
                    for c in (first..cut.height(k)).step_by(STEP) {
                        let x = if j == own { avx2::nought() } else { avx2::load(to, s, c) };
                        let b = b.add(c / LANES * s + skip * LANES);
                        avx2::store(to, s, c, avx2::plus(x, from.add(skip * LANES), s, b, len));
                    }
                }
            }
        }
    }
}
