//! W A Wᵀ and Wᵀ S W for a lower triangular W and a symmetric matrix between: what whitens and unwhitens. In tiles, as the
//! blocked factor.
//!
//! With C the lower triangle of the matrix between, its diagonal halved, that is C + Cᵀ, and the result is X + Xᵀ. Products of
//! triangles alone are left, as many operations as with all of the matrix, of which half would have to be packed by transposing.
//! Where the matrix between is I − VᵀV, with V a triangle too, the result is WᵀW − (V W)ᵀ(V W), and VᵀV need not be found first.

use super::Matrix;
use super::blocked::{Sign, product};
use super::level::{Level, at};
use super::pack::{
    Dense, blocks, each, from_diagonal, half_chunk, halve, pack_chunk, pack_transposed, panel, unpack_chunk,
    upper_panel,
};
use super::steps::{Start, Steps};
use super::tiles::{Chunk, Cut, Place, Tiles};

/// A ← W A Wᵀ, the lower triangles.
pub(super) fn whiten(level: Level, w: &Matrix, a: &mut Matrix, memory: &mut Matrix, parallel: bool) {
    at!(level, S => whiten_by::<S>(check(level, w, a), w, a, memory, parallel));
}

fn whiten_by<S: Steps>(cut: Cut, w: &Matrix, a: &mut Matrix, memory: &mut Matrix, parallel: bool) {
    let mut room = Tiles::with_room(cut, 3 * cut.triangle(), std::mem::take(memory));
    let first = room.first();
    // X takes the place of Cᵀ once T = W C is there.
    let [packed, t, half] = [0, 1, 2].map(|k| first.after(k * cut.triangle()));
    let (w, a) = (Dense::read(w), Dense::of(a));
    // The last have most to do.
    let chunks: Vec<Chunk> = cut.chunks(0).into_iter().rev().collect();
    // SAFETY: sizes are checked, and a level means that there are the instructions; chunks write rows of their own, and what
    // others have written is read once all of it is there.
    unsafe {
        each(parallel, &chunks, |c| {
            (0..=c.tile).for_each(|k| pack_chunk::<S>(w, packed, cut, k, c));
            (c.tile..cut.tiles).for_each(|k| pack_transposed::<S>(a, half, cut, k, c));
            c.panels().for_each(|row| halve::<S>(upper_panel(half, cut, c.tile, c.tile, row), row));
        });
        each(parallel, &chunks, |c| lower_times::<S>(packed, half, t, cut, c));
        each(parallel, &chunks, |c| {
            times_lower::<S>([t, packed], half, Start::Nought, cut, c);
            times_lower::<S>([packed, t], half, Start::There, cut, c);
            (0..=c.tile).for_each(|k| unpack_chunk::<S>(a, half, cut, k, c));
        });
    }
    *memory = room.into_memory();
}

/// S ← Wᵀ S W, the lower triangles; and V ← Wᵀ (I − VᵀV) W for a lower triangular V, where there is one.
pub(super) fn unwhiten(
    level: Level,
    w: &Matrix,
    s: &mut Matrix,
    v: Option<&mut Matrix>,
    memory: &mut Matrix,
    parallel: bool,
) {
    at!(level, S => unwhiten_by::<S>(check(level, w, s), w, s, v, memory, parallel));
}

fn unwhiten_by<S: Steps>(
    cut: Cut,
    w: &Matrix,
    s: &mut Matrix,
    v: Option<&mut Matrix>,
    memory: &mut Matrix,
    parallel: bool,
) {
    let mut room = Tiles::with_room(cut, 3 * cut.triangle(), std::mem::take(memory));
    let first = room.first();
    // The result takes the place of C or V once T is there.
    let [u, t, half] = [0, 1, 2].map(|k| first.after(k * cut.triangle()));
    let (w, s, chunks) = (Dense::read(w), Dense::of(s), cut.chunks(0));
    // SAFETY: sizes are checked, and a level means that there are the instructions; chunks write rows of their own, and what
    // others have written is read once all of it is there.
    unsafe {
        each(parallel, &chunks, |c| {
            (c.tile..cut.tiles).for_each(|k| pack_transposed::<S>(w, u, cut, k, c));
            half_chunk::<S>(s, half, cut, c);
        });
        // T = U Cᵀ
        each(parallel, &chunks, |c| upper_times::<S>(u, half, t, cut, c));
        let terms = [(Sign::Plus, [u, t]), (Sign::Plus, [t, u])];
        each(parallel, &chunks, |c| product::<S>(s, half, &terms, cut, c));
        if let Some(v) = v {
            assert!(v.rows() == cut.n && v.columns() == cut.n, "{} rows by {}", v.rows(), v.columns());
            let v = Dense::of(v);
            each(parallel, &chunks, |c| (0..=c.tile).for_each(|k| pack_chunk::<S>(v, half, cut, k, c)));
            // T = U Vᵀ
            each(parallel, &chunks, |c| upper_times::<S>(u, half, t, cut, c));
            let terms = [(Sign::Plus, [u, u]), (Sign::Minus, [t, t])];
            each(parallel, &chunks, |c| product::<S>(v, half, &terms, cut, c));
        }
    }
    *memory = room.into_memory();
}

fn check(level: Level, w: &Matrix, a: &Matrix) -> Cut {
    let n = w.rows();
    assert!(w.columns() == n && a.rows() == n && a.columns() == n, "{n} rows by {}", a.rows());
    Cut::new(level, n)
}

/// The rows of a chunk of T = W C, both lower triangles, of which Cᵀ is given.
unsafe fn lower_times<S: Steps>(w: Place, c: Place, t: Place, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in k..=own {
                let b = c.at().add(cut.tile(j, k));
                for row in chunk.panels() {
                    let (to, from) = (panel(t, cut, own, k, row), panel(w, cut, own, j, row));
                    // Right of its last row, a panel is nought, and so is Cᵀ left of the diagonal.
                    let len = if j == own { cut.height(own).min(row + S::PANEL) } else { cut.side };
                    for (c, above) in blocks::<S>(cut, own, k, row) {
                        let (start, skip) = if j == k { (Start::Nought, c) } else { (Start::There, 0) };
                        let (to, from) = (to.from::<S>(c).below(above), from.from::<S>(skip).below(above));
                        S::add_product(to, start, from, b.add(c * cut.side + skip * S::LANES), len - skip);
                    }
                }
            }
        }
    }
}

/// The rows of a chunk of A Bᵀ, both lower triangles, as far as the diagonal.
unsafe fn times_lower<S: Steps>([a, b]: [Place; 2], x: Place, start: Start, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in 0..=own {
            for j in 0..=k {
                let b = b.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let (to, from) = (panel(x, cut, own, k, row), panel(a, cut, own, j, row));
                    for (c, above) in blocks::<S>(cut, own, k, row) {
                        let len = if j == k { c + S::LANES } else { cut.side };
                        let start = if j == 0 { start } else { Start::There };
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

/// The rows of a chunk of T = U Cᵀ, both upper triangles, of which C is given.
unsafe fn upper_times<S: Steps>(u: Place, c: Place, t: Place, cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in own..cut.tiles {
            for j in own..=k {
                let b = c.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let to = upper_panel(t, cut, own, k, row);
                    let (from, skip) = from_diagonal::<S>(u, cut, (own, j), row, 0);
                    let first = if k == own { row } else { 0 };
                    for c in (first..cut.height(k)).step_by(S::LANES) {
                        let start = if j == own { Start::Nought } else { Start::There };
                        // Right of its last row, a sliver of C is nought.
                        let len = if j == k { c + S::LANES } else { cut.side } - skip;
                        S::add_product(to.from::<S>(c), start, from, b.add(c * cut.side + skip * S::LANES), len);
                    }
                }
            }
        }
    }
}
