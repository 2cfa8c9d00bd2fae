//! Matrix products over many rows: sums of AᵀA, and A times a matrix that stays the same. Memory is kept from one
//! call to the next; the matrix library asks the system for some at every call, and the system clears it.
//!
//! A *slab* is some rows of a matrix, as slivers of its columns (see `steps.rs`).

use super::Matrix;
use super::level::{Level, at};
use super::pack::{Dense, blocks, each, panel, unpack_chunk};
use super::steps::{LARGEST_PANEL, Panel, Start, Steps};
use super::tiles::{Chunk, Cut, Place, Tiles};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of a slab.
const DEPTH: usize = 192;
/// Rows that are multiplied at once: whole panels.
const ROWS: usize = 48;

/// The slabs of a matrix: their first rows and how many there are.
fn slabs(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(DEPTH).map(move |r| (r / DEPTH, DEPTH.min(rows - r)))
}

/// Slivers of some columns in every slab; columns beyond the last are nought.
unsafe fn pack<S: Steps>(
    a: Dense,
    (rows, columns): (usize, usize),
    to: Place,
    slab: usize,
    chunk: std::ops::Range<usize>,
) {
    // SAFETY: the caller gives room for the slabs; only entries of the matrix are read.
    unsafe {
        for (d, len) in slabs(rows) {
            for j in chunk.clone().step_by(S::LANES) {
                let left = columns.saturating_sub(j);
                slice_columns::<S>(a, (d * DEPTH, len), (j, left), to.at().add(d * slab + j * DEPTH));
            }
        }
    }
}

/// Some rows of columns as a sliver; columns beyond the last are nought.
pub(super) unsafe fn slice_columns<S: Steps>(
    a: Dense,
    (row, rows): (usize, usize),
    (column, columns): (usize, usize),
    to: *mut f64,
) {
    // SAFETY: as promised by the caller; only entries of the matrix are read.
    unsafe {
        if columns >= S::LANES {
            let list = std::array::from_fn(|c| a.entry(row, column + c.min(S::LANES - 1)).cast_const());
            return S::slice(&list, rows, to);
        }
        for (r, c) in (0..rows).flat_map(|r| (0..S::LANES).map(move |c| (r, c))) {
            *to.add(r * S::LANES + c) = if c < columns { *a.entry(row + r, column + c) } else { 0.0 };
        }
    }
}

/// Room for each thread to work in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rooms {
    pub first: Place,
    /// Entries of each.
    pub size: usize,
    pub number: usize,
}

/// How many threads may want room.
pub(super) fn workers(parallel: bool) -> usize {
    if parallel { rayon::current_num_threads().max(1) } else { 1 }
}

/// Does something with some rows at a time, beside each other where that is wanted, each thread with room of its own.
pub(super) fn by_rows(
    (rows, step): (usize, usize),
    rooms: Rooms,
    parallel: bool,
    f: impl Fn(Place, usize, usize) + Sync + Send,
) {
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        loop {
            let first = step * next.fetch_add(1, Ordering::Relaxed);
            if first >= rows {
                return;
            }
            f(rooms.first.after(worker * rooms.size), first, step.min(rows - first));
        }
    };
    // A matrix may be packed for fewer threads than there are now.
    match workers(parallel).min(rooms.number) {
        1 => work(0),
        number => (0..number).into_par_iter().with_max_len(1).for_each(work),
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
    pub fn new(level: Level, m: usize, memory: Matrix, room: Matrix) -> Self {
        let cut = Cut::new(level, m);
        Self { tiles: Tiles::with_room(cut, cut.triangle(), memory), room, empty: true }
    }

    /// Adds AᵀA, and Aᵀy to b: both read the same columns of A.
    pub fn add(&mut self, a: &Matrix, y: &[f64], b: &mut [f64], parallel: bool) {
        let cut = self.tiles.cut;
        assert!(a.columns() == cut.n && b.len() == cut.n, "{} columns for {} rows", a.columns(), cut.n);
        assert!(y.len() == a.rows(), "{} values for {} rows", y.len(), a.rows());
        let (slab, count) = (cut.padded() * DEPTH, a.rows().div_ceil(DEPTH));
        let mut room = Tiles::with_room(cut, slab * count, std::mem::take(&mut self.room));
        let (packed, sum, from) = (room.first(), self.tiles.first(), Dense::read(a));
        let b = Place(b.as_mut_ptr());
        // The last have most to do.
        let chunks: Vec<Chunk> = cut.chunks(0).into_iter().rev().collect();
        let (size, empty) = ((a.rows(), a.columns()), self.empty);
        // SAFETY: sizes as asserted, and a level means that there are the instructions; chunks write columns of the slabs,
        // then rows of the sum, of their own.
        unsafe {
            each(parallel, &chunks, |c| {
                let first = c.tile * cut.side;
                let columns = first + c.from..first + c.to;
                at!(cut.level, S => {
                    pack::<S>(from, size, packed, slab, columns.clone());
                    slivers_times::<S>(packed, slab, size, columns, y, b);
                });
            });
            each(
                parallel,
                &chunks,
                |c| at!(cut.level, S => add_chunk::<S>(sum, packed, slab, cut, c, size.0, empty)),
            );
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
        each(parallel, &cut.chunks(0), |c| {
            (0..=c.tile).for_each(|k| unsafe { at!(cut.level, S => unpack_chunk::<S>(to, sum, cut, k, c)) });
        });
        out
    }

    /// Both buffers.
    pub fn into_memory(self) -> [Matrix; 2] {
        [self.tiles.into_memory(), self.room]
    }
}

/// Adds to b what slivers of some columns are, times y.
unsafe fn slivers_times<S: Steps>(
    packed: Place,
    slab: usize,
    (rows, columns): (usize, usize),
    chunk: std::ops::Range<usize>,
    y: &[f64],
    b: Place,
) {
    for j in chunk.step_by(S::LANES) {
        let mut total = [0.0; LARGEST_PANEL];
        // SAFETY: as promised by the caller; columns of this chunk.
        unsafe {
            for (d, len) in slabs(rows) {
                let at = packed.at().add(d * slab + j * DEPTH);
                let sliver = Panel { at, stride: 0, slivers: 1, stairs: false };
                S::columns_times(sliver, &y[d * DEPTH..d * DEPTH + len], &mut total);
            }
            for (c, total) in total.iter().enumerate().take(S::LANES.min(columns.saturating_sub(j))) {
                *b.at().add(j + c) += total;
            }
        }
    }
}

/// Adds slabs to the rows of a chunk.
unsafe fn add_chunk<S: Steps>(
    sum: Place,
    packed: Place,
    slab: usize,
    cut: Cut,
    chunk: Chunk,
    rows: usize,
    empty: bool,
) {
    let sliver = |d: usize, column: usize| packed.at().wrapping_add(d * slab + column * DEPTH);
    // SAFETY: as promised by the caller.
    unsafe {
        for (d, len) in slabs(rows) {
            for j in 0..=chunk.tile {
                for row in chunk.panels() {
                    let to = panel(sum, cut, chunk.tile, j, row);
                    let at = sliver(d, chunk.tile * cut.side + row);
                    let from = Panel { at, stride: S::LANES * DEPTH, slivers: to.slivers, stairs: false };
                    let start = if empty && d == 0 { Start::Nought } else { Start::There };
                    for (c, above) in blocks::<S>(cut, chunk.tile, j, row) {
                        let b = sliver(d, j * cut.side + c);
                        S::add_product(to.from::<S>(c).below(above), start, from.below(above), b, len);
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
    /// For how many threads there is room behind the matrix.
    workers: usize,
}

impl Packed {
    pub fn new(level: Level, b: &Matrix, memory: Matrix, parallel: bool) -> Self {
        // Cut as a triangle of as many rows would be: only the sides of its tiles matter.
        let cut = Cut::new(level, b.columns());
        let slab = cut.padded() * DEPTH;
        let (packed, workers) = (slab * b.rows().div_ceil(DEPTH), workers(parallel));
        let mut tiles = Tiles::with_room(cut, packed + workers * room(cut), memory);
        let (to, from, size) = (tiles.first(), Dense::read(b), (b.rows(), b.columns()));
        // SAFETY: chunks write columns of their own.
        each(parallel, &cut.chunks(0), |c| unsafe {
            let first = c.tile * cut.side;
            at!(level, S => pack::<S>(from, size, to, slab, first + c.from..first + c.to));
        });
        Self { rows: b.rows(), cut, tiles, workers }
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
        let packed = cut.padded() * DEPTH * self.rows.div_ceil(DEPTH);
        let rooms = Rooms { first: b.after(packed), size: room(cut), number: self.workers };
        by_rows((rows, ROWS), rooms, parallel, |room, first, rows| {
            // SAFETY: sizes as asserted, and a level means that there are the instructions; every row is taken by one
            // thread, with room of its own.
            unsafe { at!(cut.level, S => multiply_rows::<S>(from, b, to, room, cut, first, (rows, self.rows))) };
        });
    }
}

/// Entries that a thread works in: rows of a slab, and of the result.
fn room(cut: Cut) -> usize {
    ROWS * (DEPTH + cut.padded())
}

/// Some rows of A B.
unsafe fn multiply_rows<S: Steps>(
    a: Dense,
    b: Place,
    c: Dense,
    room: Place,
    cut: Cut,
    first: usize,
    (rows, inner): (usize, usize),
) {
    let slab = cut.padded() * DEPTH;
    // Rows of the room, `width` columns each.
    let of = |room: Place, row: usize, width: usize| Panel {
        at: room.at().wrapping_add(row * width),
        stride: S::LANES * width,
        slivers: (rows - row).div_ceil(S::LANES).min(3),
        stairs: false,
    };
    let own = |row: usize| of(room, row, DEPTH);
    let out = |row: usize| of(room.after(ROWS * DEPTH), row, cut.padded());
    let panels = || (0..rows).step_by(S::PANEL);
    // SAFETY: as promised by the caller.
    unsafe {
        for (d, len) in slabs(inner) {
            for row in panels() {
                pack_rows::<S>(a, own(row), (first + row, rows - row), (d * DEPTH, len));
            }
            for tile in 0..cut.tiles {
                for row in panels() {
                    let columns = tile * cut.side..tile * cut.side + cut.height(tile);
                    for k in columns.step_by(S::LANES) {
                        let start = if d == 0 { Start::Nought } else { Start::There };
                        let b = b.at().add(d * slab + k * DEPTH);
                        S::add_product(out(row).from::<S>(k), start, own(row), b, len);
                    }
                }
            }
        }
        for row in panels() {
            unpack_rows::<S>(c, out(row), (first + row, rows - row), (0, cut.n));
        }
    }
}

/// From a panel to some rows of a matrix, as far as there are any.
pub(super) unsafe fn unpack_rows<S: Steps>(
    c: Dense,
    from: Panel,
    (row, rows): (usize, usize),
    (column, columns): (usize, usize),
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let whole = from.first(rows / S::LANES);
        S::unpack(whole, c.entry(row, column), c.stride(), columns);
        for k in 0..columns {
            for r in whole.slivers * S::LANES..rows.min(from.slivers * S::LANES) {
                *c.entry(row + r, column + k) = *from.entry::<S>(r, k);
            }
        }
    }
}

/// Some columns of a panel's rows; rows beyond the last are nought.
pub(super) unsafe fn pack_rows<S: Steps>(
    a: Dense,
    to: Panel,
    (row, rows): (usize, usize),
    (column, columns): (usize, usize),
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let whole = to.first(rows / S::LANES);
        S::pack(a.entry(row, column), a.stride(), whole, columns);
        for k in 0..columns {
            for r in whole.slivers * S::LANES..to.slivers * S::LANES {
                *to.entry::<S>(r, k) = if r < rows { *a.entry(row + r, column + k) } else { 0.0 };
            }
        }
    }
}
