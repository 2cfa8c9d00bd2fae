//! Cholesky factor and inverse in tiles, with AVX2. The matrix library does the same and stands in where there is no AVX2
//! (`library.rs`); here panels are packed once for all of it, rows are solved and multiplied beside each other without
//! waiting, and small matrices, which are all edges to a general product, cost half as much.
//!
//! U = L⁻ᵀ is found row by row, each of which is a substitution of its own, and A⁻¹ = U Uᵀ. Bits do not depend on threads.

use super::Matrix;
use super::avx2::{self, LANES, PANEL, STEP};
use super::pack::{Dense, each, pack_chunk, panel, unpack_chunk, width};
use super::tiles::{Chunk, Cut, Place, Tiles};

/// Does this machine have the instructions?
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Overwrites the lower triangle with the factor and leaves a packed copy in the first of the tiles, or tells the failing
/// pivot. Block column by block column, each from the matrix and all columns before.
pub(super) fn factor(a: &mut Matrix, tiles: &mut Tiles, parallel: bool) -> Result<(), usize> {
    assert!(available() && a.rows() == a.columns() && a.rows() == tiles.cut.n, "tiles of another matrix");
    let cut = tiles.cut;
    let (a, [l, _]) = (Dense::of(a), tiles.places());
    let mut reciprocals = vec![1.0; cut.padded()];
    for k in 0..cut.tiles {
        let chunks = cut.chunks(k);
        let (own, below) = chunks.split_at(chunks.iter().take_while(|c| c.tile == k).count());
        // SAFETY: instructions and sizes as asserted; chunks write rows of their own in block column k, and read
        // columns before it and, once it is done, the tile on the diagonal.
        unsafe {
            each(parallel && k > 0, own, |c| update(a, l, cut, k, c));
            factor_tile(l.at().add(cut.tile(k, k)), cut, cut.height(k), &mut reciprocals[k * cut.side..])
                .map_err(|pivot| k * cut.side + pivot)?;
            own.iter().for_each(|&c| unpack_chunk(a, l, cut, k, c));
            let reciprocals = &reciprocals[k * cut.side..];
            each(parallel, below, |c| {
                update(a, l, cut, k, c);
                solve(l, cut, k, c, reciprocals);
                unpack_chunk(a, l, cut, k, c);
            });
        }
    }
    Ok(())
}

/// Copies a factor to the first of the tiles.
pub(super) fn pack_factor(a: &mut Matrix, tiles: &mut Tiles, parallel: bool) {
    assert!(available() && a.rows() == a.columns() && a.rows() == tiles.cut.n, "tiles of another matrix");
    let cut = tiles.cut;
    let (a, [l, _]) = (Dense::of(a), tiles.places());
    // SAFETY: sizes as asserted; chunks write rows of their own.
    each(parallel, &cut.chunks(0), |c| (0..=c.tile).for_each(|k| unsafe { pack_chunk(a, l, cut, k, c) }));
}

/// From a factor and its packed copy to A⁻¹ in the place of the factor; L⁻¹b and A⁻¹b too where there is a b.
pub(super) fn inverse(a: &mut Matrix, tiles: &mut Tiles, b: &[f64], parallel: bool) -> (Vec<f64>, Vec<f64>) {
    let (n, cut) = (a.rows(), tiles.cut);
    assert!(available() && n == a.columns() && n == cut.n && (b.is_empty() || b.len() == n), "another matrix");
    let reciprocals: Vec<f64> = (0..cut.padded()).map(|k| if k < n { 1.0 / a[(k, k)] } else { 1.0 }).collect();
    let (a, [l, u]) = (Dense::of(a), tiles.places());
    let chunks = cut.chunks(0);
    // What each chunk of rows adds to L⁻¹b = Uᵀb, added up in order at the end.
    let wanted = if b.is_empty() { 0 } else { n };
    let mut parts = vec![0.0; chunks.len() * wanted];
    let all = Place(parts.as_mut_ptr());
    let number = |c: Chunk| chunks.iter().take_while(|d| (d.tile, d.from) != (c.tile, c.from)).count();
    // SAFETY: instructions and sizes as asserted; chunks write rows of U and a part of their own.
    each(parallel, &chunks, |c| unsafe {
        invert(l, u, cut, &reciprocals, c);
        if wanted > 0 {
            let part = std::slice::from_raw_parts_mut(all.at().add(number(c) * n), n);
            transposed_times(u, cut, c, b, part);
        }
    });
    let mut half = vec![0.0; wanted];
    for part in parts.chunks_exact(n.max(1)) {
        half.iter_mut().zip(part).for_each(|(sum, v)| *sum += v);
    }
    let mut whole = vec![0.0; wanted];
    let to = Place(whole.as_mut_ptr());
    // SAFETY: as above; chunks write rows of their own in A, in the tiles of L, which nobody needs any more, and in A⁻¹b.
    each(parallel, &chunks, |c| unsafe {
        if wanted > 0 {
            times(u, cut, c, &half, to.at());
        }
        product(a, l, [u, u], cut, c);
    });
    (half, whole)
}

/// Rows of a chunk in block column k: from the matrix, less what the columns before have.
#[target_feature(enable = "avx2,fma")]
unsafe fn update(a: Dense, l: Place, cut: Cut, k: usize, chunk: Chunk) {
    let s = cut.stride();
    // SAFETY: as promised by the caller.
    unsafe {
        pack_chunk(a, l, cut, k, chunk);
        for j in 0..k {
            let b = l.at().add(cut.tile(k, j));
            for row in chunk.panels() {
                let (to, from) = (panel(l, cut, chunk.tile, k, row), panel(l, cut, chunk.tile, j, row));
                for c in (0..width(cut, chunk.tile, k, row)).step_by(STEP) {
                    let x = avx2::minus(avx2::load(to, s, c), from, s, b.add(c / LANES * s), cut.side);
                    avx2::store(to, s, c, x);
                }
            }
        }
    }
}

/// Rows of a chunk below the diagonal tile, solved by it.
#[target_feature(enable = "avx2,fma")]
unsafe fn solve(l: Place, cut: Cut, k: usize, chunk: Chunk, reciprocals: &[f64]) {
    let s = cut.stride();
    // SAFETY: as promised by the caller.
    unsafe {
        let tile = l.at().add(cut.tile(k, k));
        for row in chunk.panels() {
            let panel = panel(l, cut, chunk.tile, k, row);
            for c in (0..cut.height(k)).step_by(STEP) {
                let b = tile.add(c / LANES * s);
                let x = avx2::minus(avx2::load(panel, s, c), panel, s, b, c);
                avx2::store(panel, s, c, avx2::substitute(x, b.add(c * LANES), reciprocals.as_ptr().add(c)));
            }
        }
    }
}

/// The factor of a tile on the diagonal, in place.
#[target_feature(enable = "avx2,fma")]
unsafe fn factor_tile(tile: *mut f64, cut: Cut, height: usize, reciprocals: &mut [f64]) -> Result<(), usize> {
    let s = cut.stride();
    // SAFETY: as promised by the caller.
    unsafe {
        for row in (0..height).step_by(PANEL) {
            let panel = tile.add(row / LANES * s);
            for c in (0..row + PANEL).step_by(STEP) {
                let b = tile.add(c / LANES * s);
                let (x, t) = (avx2::minus(avx2::load(panel, s, c), panel, s, b, c), b.add(c * LANES));
                if c < row {
                    avx2::store(panel, s, c, avx2::substitute(x, t, reciprocals.as_ptr().add(c)));
                    continue;
                }
                avx2::store(panel, s, c, x);
                avx2::factor_four(t, &mut reciprocals[c..c + STEP]).map_err(|pivot| c + pivot)?;
                // The four rows themselves are solved along with the others; their roots are better.
                let roots: [f64; STEP] = std::array::from_fn(|q| *t.add(q * LANES + q));
                avx2::store(panel, s, c, avx2::substitute(x, t, reciprocals.as_ptr().add(c)));
                roots.iter().enumerate().for_each(|(q, root)| *t.add(q * LANES + q) = *root);
            }
        }
    }
    Ok(())
}

/// Rows of a chunk of U = L⁻ᵀ, from the diagonal to the right; tile (p, i) holds rows of tile i and columns of tile p.
#[target_feature(enable = "avx2,fma")]
unsafe fn invert(l: Place, u: Place, cut: Cut, reciprocals: &[f64], chunk: Chunk) {
    let (s, own) = (cut.stride(), chunk.tile);
    // SAFETY: as promised by the caller.
    unsafe {
        for k in own..cut.tiles {
            for j in own..k {
                let b = l.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let (to, from) = (panel(u, cut, k, own, row), panel(u, cut, j, own, row));
                    // Left of its first row, a panel is nought.
                    let skip = if j == own { row } else { 0 };
                    for c in (0..cut.height(k)).step_by(STEP) {
                        let x = if j == own { avx2::nought() } else { avx2::load(to, s, c) };
                        let b = b.add(c / LANES * s + skip * LANES);
                        avx2::store(to, s, c, avx2::minus(x, from.add(skip * LANES), s, b, cut.side - skip));
                    }
                }
            }
            let (tile, r) = (l.at().add(cut.tile(k, k)), reciprocals.as_ptr().add(k * cut.side));
            for row in chunk.panels() {
                let (to, skip) = (panel(u, cut, k, own, row), if k == own { row } else { 0 });
                for c in (skip..cut.height(k)).step_by(STEP) {
                    let b = tile.add(c / LANES * s);
                    let x = if k == own { avx2::unit(c - row) } else { avx2::load(to, s, c) };
                    let x = avx2::minus(x, to.add(skip * LANES), s, b.add(skip * LANES), c - skip);
                    avx2::store(to, s, c, avx2::substitute(x, b.add(c * LANES), r.add(c)));
                }
            }
        }
    }
}

/// The rows of a chunk of U Tᵀ, on and below the diagonal, by way of the tiles of `room`; both hold rows from the diagonal
/// to the right.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn product(a: Dense, room: Place, [u, t]: [Place; 2], cut: Cut, chunk: Chunk) {
    let (s, own) = (cut.stride(), chunk.tile);
    // SAFETY: as promised by the caller.
    unsafe {
        for j in 0..=own {
            for p in own..cut.tiles {
                let b = t.at().add(cut.tile(p, j));
                for row in chunk.panels() {
                    let (to, from) = (panel(room, cut, own, j, row), panel(u, cut, p, own, row));
                    let skip = if p == own { row } else { 0 };
                    let len = cut.side.min(cut.n - p * cut.side).saturating_sub(skip);
                    for c in (0..width(cut, own, j, row)).step_by(STEP) {
                        let x = if p == own { avx2::nought() } else { avx2::load(to, s, c) };
                        let b = b.add(c / LANES * s + skip * LANES);
                        avx2::store(to, s, c, avx2::plus(x, from.add(skip * LANES), s, b, len));
                    }
                }
            }
            unpack_chunk(a, room, cut, j, chunk);
        }
    }
}

/// total = Uᵀb, as far as the rows of a chunk go.
unsafe fn transposed_times(u: Place, cut: Cut, chunk: Chunk, b: &[f64], total: &mut [f64]) {
    for row in chunk.panels() {
        let first = chunk.tile * cut.side + row;
        let y = std::array::from_fn(|r| b.get(first + r).copied().unwrap_or(0.0));
        for p in chunk.tile..cut.tiles {
            let skip = if p == chunk.tile { row } else { 0 };
            let columns = p * cut.side + skip..cut.n.min((p + 1) * cut.side);
            // SAFETY: as promised by the caller.
            unsafe {
                let panel = panel(u, cut, p, chunk.tile, row).add(skip * LANES);
                avx2::rows_times(panel, cut.stride(), &y, &mut total[columns]);
            }
        }
    }
}

/// The rows of a chunk of U z.
unsafe fn times(u: Place, cut: Cut, chunk: Chunk, z: &[f64], to: *mut f64) {
    for row in chunk.panels() {
        let (first, mut total) = (chunk.tile * cut.side + row, [0.0; PANEL]);
        for p in chunk.tile..cut.tiles {
            let skip = if p == chunk.tile { row } else { 0 };
            let columns = p * cut.side + skip..cut.n.min((p + 1) * cut.side);
            // SAFETY: as promised by the caller.
            unsafe {
                let panel = panel(u, cut, p, chunk.tile, row).add(skip * LANES);
                avx2::columns_times(panel, cut.stride(), &z[columns], &mut total);
            }
        }
        for (r, v) in total.iter().enumerate().take(cut.n.saturating_sub(first)) {
            // SAFETY: rows of this chunk.
            unsafe { *to.add(first + r) = *v };
        }
    }
}
