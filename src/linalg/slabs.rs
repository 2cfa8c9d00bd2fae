//! Matrix products over many rows with AVX2: sums of AᵀA, and A times a matrix that stays the same. Memory is kept from one
//! call to the next; the matrix library asks the system for some at every call, and the system clears it.
//!
//! A *slab* is some rows of a matrix, as slivers of its columns (see `avx2.rs`).

use super::Matrix;
use super::avx2::{self, LANES, PANEL, STEP};
use super::blocked::available;
use super::pack::{Dense, each, panel, unpack_chunk, width};
use super::tiles::{Chunk, Cut, Place, Tiles};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of a slab.
const DEPTH: usize = 192;
/// Rows that are multiplied at once.
const ROWS: usize = 4 * PANEL;
/// From one sliver of a slab to the next.
const STRIDE: usize = LANES * DEPTH;

/// The slabs of a matrix: their first rows and how many there are.
fn slabs(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(DEPTH).map(move |r| (r / DEPTH, DEPTH.min(rows - r)))
}

/// Slivers of some columns in every slab; columns beyond the last are nought.
#[target_feature(enable = "avx2,fma")]
unsafe fn pack(a: Dense, (rows, columns): (usize, usize), to: Place, slab: usize, chunk: std::ops::Range<usize>) {
    // SAFETY: the caller gives room for the slabs; only entries of the matrix are read.
    unsafe {
        let nought = [0.0; DEPTH];
        for (d, len) in slabs(rows) {
            for j in chunk.clone().step_by(LANES) {
                let column = |c: usize| match j + c < columns {
                    true => a.entry(d * DEPTH, j + c).cast_const(),
                    false => nought.as_ptr(),
                };
                let list = [column(0), column(1), column(2), column(3)];
                avx2::interleave(list, len, to.at().add(d * slab + j / LANES * STRIDE));
            }
        }
    }
}

/// Σ AᵀA, its lower triangle.
#[derive(Debug)]
pub(super) struct Sum {
    tiles: Tiles,
    room: Matrix,
    empty: bool,
}

impl Sum {
    pub fn new(m: usize, memory: Matrix, room: Matrix) -> Self {
        let cut = Cut::new(m);
        Self { tiles: Tiles::with_room(cut, cut.triangle(), memory), room, empty: true }
    }

    pub fn add(&mut self, a: &Matrix, parallel: bool) {
        let cut = self.tiles.cut;
        assert!(available() && a.columns() == cut.n, "{} columns for {} rows", a.columns(), cut.n);
        let (slab, count) = (cut.padded() * DEPTH, a.rows().div_ceil(DEPTH));
        let mut room = Tiles::with_room(cut, slab * count, std::mem::take(&mut self.room));
        let (packed, sum, from) = (room.first(), self.tiles.first(), Dense::read(a));
        // The last have most to do.
        let chunks: Vec<Chunk> = cut.chunks(0).into_iter().rev().collect();
        let (size, empty) = ((a.rows(), a.columns()), self.empty);
        // SAFETY: sizes and instructions as asserted; chunks write columns of the slabs, then rows of the sum, of their own.
        unsafe {
            each(parallel, &chunks, |c| {
                let first = c.tile * cut.side;
                pack(from, size, packed, slab, first + c.from..first + c.to);
            });
            each(parallel, &chunks, |c| add_chunk(sum, packed, slab, cut, c, size.0, empty));
        }
        self.empty = self.empty && a.rows() == 0;
        self.room = room.into_memory();
    }

    /// What was added up, in the memory of a matrix.
    pub fn matrix(&mut self, mut out: Matrix, parallel: bool) -> Matrix {
        let cut = self.tiles.cut;
        out.reshape(cut.n, cut.n);
        if self.empty {
            out.values_mut().fill(0.0);
            return out;
        }
        let (sum, to) = (self.tiles.first(), Dense::of(&mut out));
        // SAFETY: chunks write rows of their own.
        each(parallel, &cut.chunks(0), |c| (0..=c.tile).for_each(|k| unsafe { unpack_chunk(to, sum, cut, k, c) }));
        out
    }

    /// Both buffers.
    pub fn into_memory(self) -> [Matrix; 2] {
        [self.tiles.into_memory(), self.room]
    }
}

/// Adds slabs to the rows of a chunk.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_chunk(sum: Place, packed: Place, slab: usize, cut: Cut, chunk: Chunk, rows: usize, empty: bool) {
    let s = cut.stride();
    let sliver = |d: usize, column: usize| packed.at().wrapping_add(d * slab + column / LANES * STRIDE);
    // SAFETY: as promised by the caller.
    unsafe {
        for (d, len) in slabs(rows) {
            for j in 0..=chunk.tile {
                for row in chunk.panels() {
                    let to = panel(sum, cut, chunk.tile, j, row);
                    let from = sliver(d, chunk.tile * cut.side + row);
                    for c in (0..width(cut, chunk.tile, j, row)).step_by(STEP) {
                        let x = if empty && d == 0 { avx2::nought() } else { avx2::load(to, s, c) };
                        let b = sliver(d, j * cut.side + c);
                        avx2::store(to, s, c, avx2::plus(x, from, STRIDE, b, len));
                    }
                }
            }
        }
    }
}

/// A matrix that others are multiplied by, packed once.
#[derive(Debug)]
pub(super) struct Packed {
    rows: usize,
    cut: Cut,
    tiles: Tiles,
    rooms: Vec<Tiles>,
}

impl Packed {
    pub fn new(b: &Matrix, memory: Matrix, parallel: bool) -> Self {
        assert!(available(), "no AVX2");
        // Cut as a triangle of as many rows would be: only the sides of its tiles matter.
        let cut = Cut::new(b.columns());
        let slab = cut.padded() * DEPTH;
        let mut tiles = Tiles::with_room(cut, slab * b.rows().div_ceil(DEPTH), memory);
        let (to, from, size) = (tiles.first(), Dense::read(b), (b.rows(), b.columns()));
        // SAFETY: chunks write columns of their own.
        each(parallel, &cut.chunks(0), |c| unsafe {
            let first = c.tile * cut.side;
            pack(from, size, to, slab, first + c.from..first + c.to);
        });
        Self { rows: b.rows(), cut, tiles, rooms: vec![] }
    }

    pub fn into_memory(self) -> Matrix {
        self.tiles.into_memory()
    }

    /// C ← A B
    pub fn multiply(&mut self, c: &mut Matrix, a: &Matrix, parallel: bool) {
        assert!(a.columns() == self.rows, "{} columns by {} rows", a.columns(), self.rows);
        c.reshape(a.rows(), self.cut.n);
        if self.rows == 0 {
            c.values_mut().fill(0.0);
            return;
        }
        let (cut, b, rows) = (self.cut, self.tiles.first(), a.rows());
        let (from, to) = (Dense::read(a), Dense::of(c));
        let workers = if parallel { rayon::current_num_threads().max(1) } else { 1 };
        let room = ROWS * (DEPTH + cut.padded());
        self.rooms.resize_with(workers.max(self.rooms.len()), || Tiles::with_room(cut, room, Matrix::default()));
        let next = AtomicUsize::new(0);
        let work = |room: &mut Tiles| {
            loop {
                let first = ROWS * next.fetch_add(1, Ordering::Relaxed);
                if first >= rows {
                    return;
                }
                let size = (ROWS.min(rows - first), self.rows);
                // SAFETY: sizes and instructions as asserted; every row is taken by one thread, with room of its own.
                unsafe { multiply_rows(from, b, to, room.first(), cut, first, size) };
            }
        };
        if parallel {
            self.rooms[..workers].par_iter_mut().with_max_len(1).for_each(work);
        } else {
            self.rooms[..1].iter_mut().for_each(work);
        }
    }
}

/// Some rows of A B.
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_rows(a: Dense, b: Place, c: Dense, room: Place, cut: Cut, first: usize, size: (usize, usize)) {
    let ((rows, inner), slab) = (size, cut.padded() * DEPTH);
    let (own, out, s) = (room, room.after(ROWS * DEPTH), LANES * cut.padded());
    let panels = || (0..rows).step_by(PANEL);
    // SAFETY: as promised by the caller.
    unsafe {
        for (d, len) in slabs(inner) {
            for p in 0..len {
                let from = a.entry(first, d * DEPTH + p);
                for r in (0..rows.next_multiple_of(PANEL)).step_by(LANES) {
                    let to = own.at().add(r / LANES * STRIDE + p * LANES);
                    if r + LANES <= rows {
                        to.copy_from_nonoverlapping(from.add(r), LANES);
                    } else {
                        (0..LANES).for_each(|k| *to.add(k) = if r + k < rows { *from.add(r + k) } else { 0.0 });
                    }
                }
            }
            for tile in 0..cut.tiles {
                for row in panels() {
                    let (to, from) = (out.at().add(row / LANES * s), own.at().add(row / LANES * STRIDE));
                    let first = tile * cut.side;
                    for k in (first..first + cut.height(tile)).step_by(STEP) {
                        let x = if d == 0 { avx2::nought() } else { avx2::load(to, s, k) };
                        let b = b.at().add(d * slab + k / LANES * STRIDE);
                        avx2::store(to, s, k, avx2::plus(x, from, STRIDE, b, len));
                    }
                }
            }
        }
        for k in 0..cut.n {
            let to = c.entry(first, k);
            for r in (0..rows).step_by(LANES) {
                let from = out.at().add(r / LANES * s + k * LANES);
                // As many as a number in the code says are a move, others a call.
                match rows - r {
                    LANES.. => to.add(r).copy_from_nonoverlapping(from, LANES),
                    rest => to.add(r).copy_from_nonoverlapping(from, rest),
                }
            }
        }
    }
}
