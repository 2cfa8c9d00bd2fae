//! W A Wᵀ and Wᵀ S W for a lower triangular W and a symmetric matrix between: what whitens and unwhitens. In tiles, as the
//! blocked factor.

use super::Matrix;
use super::blocked::product;
use super::level::{Level, at};
use super::pack::{
    Dense, blocks, each, from_diagonal, pack_chunk, pack_symmetric, pack_transposed, panel, unpack_chunk,
    upper_panel, whole_tile,
};
use super::steps::{Start, Steps};
use super::tiles::{Chunk, Cut, Place, Tiles};

/// A ← W A Wᵀ, the lower triangles.
pub(super) fn whiten(level: Level, w: &Matrix, a: &mut Matrix, memory: &mut Matrix, parallel: bool) {
    at!(level, S => whiten_by::<S>(check(level, w, a), w, a, memory, parallel));
}

fn whiten_by<S: Steps>(cut: Cut, w: &Matrix, a: &mut Matrix, memory: &mut Matrix, parallel: bool) {
    let whole = cut.side * cut.side * cut.tiles * cut.tiles;
    let mut room = Tiles::with_room(cut, 3 * cut.triangle() + whole, std::mem::take(memory));
    let first = room.first();
    let [packed, t, x, all] = [0, 1, 2, 3].map(|k| first.after(k * cut.triangle()));
    let (w, a) = (Dense::read(w), Dense::of(a));
    // The last have most to do.
    let chunks: Vec<Chunk> = cut.chunks(0).into_iter().rev().collect();
    // SAFETY: sizes are checked, and a level means that there are the instructions; chunks write rows of their own, once
    // all of A is packed.
    unsafe {
        each(parallel, &chunks, |c| {
            (0..=c.tile).for_each(|k| pack_chunk::<S>(w, packed, cut, k, c));
            pack_symmetric::<S>(a, all, cut, c);
        });
        each(parallel, &chunks, |c| {
            lower_times::<S>(packed, all, t, cut, c);
            times_lower::<S>(t, packed, x, cut, c);
            (0..=c.tile).for_each(|k| unpack_chunk::<S>(a, x, cut, k, c));
        });
    }
    *memory = room.into_memory();
}

/// S ← Wᵀ S W, the lower triangles, for each S.
pub(super) fn unwhiten(level: Level, w: &Matrix, list: &mut [Matrix], memory: &mut Matrix, parallel: bool) {
    at!(level, S => unwhiten_by::<S>(check(level, w, w), w, list, memory, parallel));
}

fn unwhiten_by<S: Steps>(cut: Cut, w: &Matrix, list: &mut [Matrix], memory: &mut Matrix, parallel: bool) {
    let whole = cut.side * cut.side * cut.tiles * cut.tiles;
    let mut room = Tiles::with_room(cut, 3 * cut.triangle() + whole, std::mem::take(memory));
    let first = room.first();
    let [u, t, x, all] = [0, 1, 2, 3].map(|k| first.after(k * cut.triangle()));
    let (w, chunks) = (Dense::read(w), cut.chunks(0));
    // SAFETY: sizes are checked, and a level means that there are the instructions; chunks write rows of their own.
    unsafe { each(parallel, &chunks, |c| (c.tile..cut.tiles).for_each(|k| pack_transposed::<S>(w, u, cut, k, c))) };
    for s in list {
        assert!(s.rows() == cut.n && s.columns() == cut.n, "{} rows by {}", s.rows(), s.columns());
        let s = Dense::of(s);
        // SAFETY: as above; S is packed before it is written, T whole before it is read.
        unsafe {
            each(parallel, &chunks, |c| pack_symmetric::<S>(s, all, cut, c));
            each(parallel, &chunks, |c| upper_times::<S>(u, all, t, cut, c));
            each(parallel, &chunks, |c| product::<S>(s, x, [u, t], cut, c));
        }
    }
    *memory = room.into_memory();
}

fn check(level: Level, w: &Matrix, a: &Matrix) -> Cut {
    let n = w.rows();
    assert!(w.columns() == n && a.rows() == n && a.columns() == n, "{n} rows by {}", a.rows());
    Cut::new(level, n)
}

/// The rows of a chunk of T = W A, as far as the diagonal.
unsafe fn lower_times<S: Steps>(w: Place, a: Place, t: Place, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in 0..=own {
                let b = whole_tile(a, cut, k, j);
                for row in chunk.panels() {
                    let (to, from) = (panel(t, cut, own, k, row), panel(w, cut, own, j, row));
                    // Right of its last row, a panel is nought.
                    let len = if j == own { cut.height(own).min(row + S::PANEL) } else { cut.side };
                    for (c, above) in blocks::<S>(cut, own, k, row) {
                        let start = if j == 0 { Start::Nought } else { Start::There };
                        S::add_product(
                            to.from::<S>(c).below(above),
                            start,
                            from.below(above),
                            b.add(c * cut.side),
                            len,
                        );
                    }
                }
            }
        }
    }
}

/// The rows of a chunk of T Wᵀ, as far as the diagonal.
unsafe fn times_lower<S: Steps>(t: Place, w: Place, x: Place, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in 0..=k {
                let b = w.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let (to, from) = (panel(x, cut, own, k, row), panel(t, cut, own, j, row));
                    for (c, above) in blocks::<S>(cut, own, k, row) {
                        let len = if j == k { c + S::LANES } else { cut.side };
                        let start = if j == 0 { Start::Nought } else { Start::There };
                        S::add_product(
                            to.from::<S>(c).below(above),
                            start,
                            from.below(above),
                            b.add(c * cut.side),
                            len,
                        );
                    }
                }
            }
        }
    }
}

/// The rows of a chunk of T = U S, from the diagonal to the right.
unsafe fn upper_times<S: Steps>(u: Place, a: Place, t: Place, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in own..cut.tiles {
            for j in own..cut.tiles {
                let b = whole_tile(a, cut, k, j);
                for row in chunk.panels() {
                    let to = upper_panel(t, cut, own, k, row);
                    let (from, skip) = from_diagonal::<S>(u, cut, (own, j), row, 0);
                    let (first, len) = (if k == own { row } else { 0 }, cut.height(j) - skip);
                    for c in (first..cut.height(k)).step_by(S::LANES) {
                        let start = if j == own { Start::Nought } else { Start::There };
                        let b = b.add(c * cut.side + skip * S::LANES);
                        S::add_product(to.from::<S>(c), start, from, b, len);
                    }
                }
            }
        }
    }
}
