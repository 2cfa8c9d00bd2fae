//! Cholesky factor and inverse in tiles. The matrix library does the same and stands in where there is no AVX2
//! (`library.rs`); here panels are packed once for all of it, rows are solved and multiplied beside each other without
//! waiting, and small matrices, which are all edges to a general product, cost half as much.
//!
//! U = L⁻ᵀ is found row by row, each of which is a substitution of its own, and A⁻¹ = U Uᵀ. Bits do not depend on threads.

use super::Matrix;
use super::level::{Level, at};
use super::pack::{Dense, blocks, each, from_diagonal, pack_chunk, panel, unpack_chunk, upper_panel};
use super::steps::{LARGEST_PANEL, Panel, Start, Steps};
use super::tiles::{Chunk, Cut, Place, Tiles};

/// Overwrites the lower triangle with the factor and leaves a packed copy in the first of the tiles, or tells the failing
/// pivot. Block column by block column, each from the matrix and all columns before.
pub(super) fn factor(a: &mut Matrix, tiles: &mut Tiles, parallel: bool) -> Result<(), usize> {
    at!(tiles.cut.level, S => factor_by::<S>(a, tiles, parallel))
}

fn factor_by<S: Steps>(a: &mut Matrix, tiles: &mut Tiles, parallel: bool) -> Result<(), usize> {
    assert!(a.rows() == a.columns() && a.rows() == tiles.cut.n, "tiles of another matrix");
    let cut = tiles.cut;
    let (a, [l, _]) = (Dense::of(a), tiles.places());
    let mut reciprocals = vec![1.0; cut.padded()];
    for k in 0..cut.tiles {
        let chunks = cut.chunks(k);
        let (own, below) = chunks.split_at(chunks.iter().take_while(|c| c.tile == k).count());
        // SAFETY: sizes as asserted, and a level means that there are the instructions; chunks write rows of their own in
        // block column k, and read columns before it and, once it is done, the tile on the diagonal.
        unsafe {
            each(parallel && k > 0, own, |c| update::<S>(a, l, cut, k, c));
            factor_tile::<S>(l.at().add(cut.tile(k, k)), cut, cut.height(k), &mut reciprocals[k * cut.side..])
                .map_err(|pivot| k * cut.side + pivot)?;
            own.iter().for_each(|&c| unpack_chunk::<S>(a, l, cut, k, c));
            let reciprocals = &reciprocals[k * cut.side..];
            each(parallel, below, |c| {
                update::<S>(a, l, cut, k, c);
                solve::<S>(l, cut, k, c, reciprocals);
                unpack_chunk::<S>(a, l, cut, k, c);
            });
        }
    }
    Ok(())
}

/// Copies a factor to the first of the tiles.
pub(super) fn pack_factor(a: &Matrix, tiles: &mut Tiles, parallel: bool) {
    assert!(a.rows() == a.columns() && a.rows() == tiles.cut.n, "tiles of another matrix");
    let cut = tiles.cut;
    let (a, [l, _]) = (Dense::read(a), tiles.places());
    // SAFETY: sizes as asserted; chunks write rows of their own.
    each(parallel, &cut.chunks(0), |c| {
        (0..=c.tile).for_each(|k| unsafe { at!(cut.level, S => pack_chunk::<S>(a, l, cut, k, c)) });
    });
}

/// From a factor and its packed copy to W = L⁻¹; its upper triangle is nought.
pub(super) fn inverse_factor(l: &Matrix, tiles: &mut Tiles, w: &mut Matrix, parallel: bool) {
    at!(tiles.cut.level, S => inverse_factor_by::<S>(l, tiles, w, parallel));
}

fn inverse_factor_by<S: Steps>(a: &Matrix, tiles: &mut Tiles, w: &mut Matrix, parallel: bool) {
    let (n, cut) = (a.rows(), tiles.cut);
    assert!(n == cut.n && n == a.columns() && n == w.rows() && n == w.columns(), "another matrix");
    let (reciprocals, w, [l, u]) = (reciprocals(a, cut), Dense::of(w), tiles.places());
    // SAFETY: sizes as asserted, and a level means that there are the instructions; chunks write rows of U, and columns of W, of
    // their own.
    each(parallel, &cut.chunks(0), |c| unsafe {
        invert::<S>(l, u, cut, &reciprocals, c);
        for (row, k) in c.panels().flat_map(|row| (c.tile..cut.tiles).map(move |k| (row, k))) {
            let (panel, first, below) = (upper_panel(u, cut, c.tile, k, row), c.tile * cut.side + row, k * cut.side);
            for j in first..n.min(first + panel.slivers * S::LANES) {
                let from = j.max(below);
                if k == c.tile {
                    w.entry(0, j).write_bytes(0, j);
                }
                for i in from..n.min(below + cut.side) {
                    *w.entry(i, j) = *panel.entry::<S>(j - first, i - below);
                }
            }
        }
    });
}

/// Those of the diagonal, and ones beyond it.
fn reciprocals(l: &Matrix, cut: Cut) -> Vec<f64> {
    (0..cut.padded()).map(|k| if k < cut.n { 1.0 / l[(k, k)] } else { 1.0 }).collect()
}

/// From a factor and its packed copy to A⁻¹ in the place of the factor; L⁻¹b and A⁻¹b too where there is a b.
pub(super) fn inverse(a: &mut Matrix, tiles: &mut Tiles, b: &[f64], parallel: bool) -> (Vec<f64>, Vec<f64>) {
    at!(tiles.cut.level, S => inverse_by::<S>(a, tiles, b, parallel))
}

fn inverse_by<S: Steps>(a: &mut Matrix, tiles: &mut Tiles, b: &[f64], parallel: bool) -> (Vec<f64>, Vec<f64>) {
    let (n, cut) = (a.rows(), tiles.cut);
    assert!(n == a.columns() && n == cut.n && (b.is_empty() || b.len() == n), "another matrix");
    let reciprocals = reciprocals(a, cut);
    let (a, [l, u]) = (Dense::of(a), tiles.places());
    let chunks = cut.chunks(0);
    // What each chunk of rows adds to L⁻¹b = Uᵀb, added up in order at the end.
    let wanted = if b.is_empty() { 0 } else { n };
    let mut parts = vec![0.0; chunks.len() * wanted];
    let all = Place(parts.as_mut_ptr());
    let number = |c: Chunk| chunks.iter().take_while(|d| (d.tile, d.from) != (c.tile, c.from)).count();
    // SAFETY: sizes as asserted, and a level means that there are the instructions; chunks write rows of U and a part of
    // their own.
    each(parallel, &chunks, |c| unsafe {
        invert::<S>(l, u, cut, &reciprocals, c);
        if wanted > 0 {
            let part = std::slice::from_raw_parts_mut(all.at().add(number(c) * n), n);
            transposed_times::<S>(u, cut, c, b, part);
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
            times::<S>(u, cut, c, &half, to.at());
        }
        product::<S>(a, l, &[(Sign::Plus, [u, u])], cut, c);
    });
    (half, whole)
}

/// Rows of a chunk in block column k: from the matrix, less what the columns before have.
unsafe fn update<S: Steps>(a: Dense, l: Place, cut: Cut, k: usize, chunk: Chunk) {
    // SAFETY: as promised by the caller.
    unsafe {
        pack_chunk::<S>(a, l, cut, k, chunk);
        for j in 0..k {
            let b = l.at().add(cut.tile(k, j));
            for row in chunk.panels() {
                let (to, from) = (panel(l, cut, chunk.tile, k, row), panel(l, cut, chunk.tile, j, row));
                for (c, above) in blocks::<S>(cut, chunk.tile, k, row) {
                    let (to, from) = (to.from::<S>(c).below(above), from.below(above));
                    S::take_product(to, Start::There, from, b.add(c * cut.side), cut.side);
                }
            }
        }
    }
}

/// Rows of a chunk below the diagonal tile, solved by it.
unsafe fn solve<S: Steps>(l: Place, cut: Cut, k: usize, chunk: Chunk, reciprocals: &[f64]) {
    // SAFETY: as promised by the caller.
    unsafe {
        let tile = l.at().add(cut.tile(k, k));
        for row in chunk.panels() {
            let panel = panel(l, cut, chunk.tile, k, row);
            for c in (0..cut.height(k)).step_by(S::LANES) {
                let (to, b) = (panel.from::<S>(c), tile.add(c * cut.side));
                S::solve(to, Start::There, panel, b, c, reciprocals.as_ptr().add(c));
            }
        }
    }
}

/// The factor of a tile on the diagonal, in place.
unsafe fn factor_tile<S: Steps>(
    tile: *mut f64,
    cut: Cut,
    height: usize,
    reciprocals: &mut [f64],
) -> Result<(), usize> {
    // SAFETY: as promised by the caller.
    unsafe {
        for row in (0..height).step_by(S::PANEL) {
            let slivers = ((height - row) / S::LANES).min(3);
            let panel = Panel { at: tile.add(row * cut.side), stride: cut.stride(), slivers, stairs: false };
            for c in (0..row).step_by(S::LANES) {
                let b = tile.add(c * cut.side);
                S::solve(panel.from::<S>(c), Start::There, panel, b, c, reciprocals.as_ptr().add(c));
            }
            for (above, c) in (row..row + slivers * S::LANES).step_by(S::LANES).enumerate() {
                let reciprocals = &mut reciprocals[c..c + S::LANES];
                S::factor(panel.below(above), c, reciprocals).map_err(|pivot| c + pivot)?;
            }
        }
    }
    Ok(())
}

/// Rows of a chunk of U = L⁻ᵀ, from the diagonal to the right; tile (p, i) holds rows of tile i and columns of tile p.
unsafe fn invert<S: Steps>(l: Place, u: Place, cut: Cut, reciprocals: &[f64], chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for k in own..cut.tiles {
            for j in own..k {
                let b = l.at().add(cut.tile(k, j));
                for row in chunk.panels() {
                    let to = upper_panel(u, cut, own, k, row);
                    let (from, skip) = from_diagonal::<S>(u, cut, (own, j), row, 0);
                    let start = if j == own { Start::Nought } else { Start::There };
                    for c in (0..cut.height(k)).step_by(S::LANES) {
                        let b = b.add(c * cut.side + skip * S::LANES);
                        S::take_product(to.from::<S>(c), start, from, b, cut.side - skip);
                    }
                }
            }
            let (tile, r) = (l.at().add(cut.tile(k, k)), reciprocals.as_ptr().add(k * cut.side));
            for row in chunk.panels() {
                let to = upper_panel(u, cut, own, k, row);
                let (from, skip) = from_diagonal::<S>(u, cut, (own, k), row, 0);
                for c in (skip..cut.height(k)).step_by(S::LANES) {
                    let b = tile.add(c * cut.side + skip * S::LANES);
                    let start = if k == own { Start::Unit(c - row) } else { Start::There };
                    S::solve(to.from::<S>(c), start, from, b, c - skip, r.add(c));
                }
            }
        }
    }
}

/// What is done with a product of two triangles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// The rows of a chunk of Σ ± U Tᵀ, on and below the diagonal, by way of the tiles of `room`; U and T hold rows from the
/// diagonal to the right.
pub(super) unsafe fn product<S: Steps>(a: Dense, room: Place, terms: &[(Sign, [Place; 2])], cut: Cut, chunk: Chunk) {
    let own = chunk.tile;
    // SAFETY: as promised by the caller.
    unsafe {
        for j in 0..=own {
            for (nth, &(sign, [u, t]), p) in
                terms.iter().enumerate().flat_map(|(n, term)| (own..cut.tiles).map(move |p| (n, term, p)))
            {
                let b = t.at().add(cut.tile(p, j));
                for row in chunk.panels() {
                    let (to, len) = (panel(room, cut, own, j, row), cut.side.min(cut.n - p * cut.side));
                    let start = if (nth, p) == (0, own) { Start::Nought } else { Start::There };
                    for (c, above) in blocks::<S>(cut, own, j, row) {
                        let (from, skip) = from_diagonal::<S>(u, cut, (own, p), row, above);
                        let b = b.add(c * cut.side + skip * S::LANES);
                        let (to, len) = (to.from::<S>(c).below(above), len.saturating_sub(skip));
                        match sign {
                            Sign::Plus => S::add_product(to, start, from, b, len),
                            Sign::Minus => S::take_product(to, start, from, b, len),
                        }
                    }
                }
            }
            unpack_chunk::<S>(a, room, cut, j, chunk);
        }
    }
}

/// total = Uᵀb, as far as the rows of a chunk go.
unsafe fn transposed_times<S: Steps>(u: Place, cut: Cut, chunk: Chunk, b: &[f64], total: &mut [f64]) {
    for row in chunk.panels() {
        let first = chunk.tile * cut.side + row;
        let y: [f64; LARGEST_PANEL] = std::array::from_fn(|r| b.get(first + r).copied().unwrap_or(0.0));
        for p in chunk.tile..cut.tiles {
            let skip = if p == chunk.tile { row } else { 0 };
            let columns = p * cut.side + skip..cut.n.min((p + 1) * cut.side);
            // SAFETY: as promised by the caller.
            unsafe {
                S::rows_times(upper_panel(u, cut, chunk.tile, p, row).from::<S>(skip), &y, &mut total[columns])
            };
        }
    }
}

/// The rows of a chunk of U z.
unsafe fn times<S: Steps>(u: Place, cut: Cut, chunk: Chunk, z: &[f64], to: *mut f64) {
    for row in chunk.panels() {
        let (first, mut total) = (chunk.tile * cut.side + row, [0.0; LARGEST_PANEL]);
        for p in chunk.tile..cut.tiles {
            let skip = if p == chunk.tile { row } else { 0 };
            let columns = p * cut.side + skip..cut.n.min((p + 1) * cut.side);
            // SAFETY: as promised by the caller.
            unsafe {
                S::columns_times(upper_panel(u, cut, chunk.tile, p, row).from::<S>(skip), &z[columns], &mut total)
            };
        }
        for (r, v) in total[..S::PANEL].iter().enumerate().take(cut.n.saturating_sub(first)) {
            // SAFETY: rows of this chunk.
            unsafe { *to.add(first + r) = *v };
        }
    }
}
