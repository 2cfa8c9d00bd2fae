//! Products with a large matrix that stays the same, by halves: Winograd's form of Strassen's, one level deep. Seven products of
//! half the size in place of eight; sums of the right side are made once, those of the left one by a few rows at a time, in cache.
//!
//! Errors are bounded by the norms of both sides, as ever, with a constant a few times larger. But rows of the left side are added
//! to others of their block, and columns of the right one: what is small loses digits to what is large there.

use super::Matrix;
use super::level::{Level, at};
use super::pack::{Dense, each};
use super::slabs::{Rooms, by_rows, pack_rows, slice_columns, unpack_rows, workers};
use super::steps::{Panel, Start, Steps};
use super::tiles::{Cut, Place, Tiles};

/// The longest sum that a block is kept in registers for.
const DEPTH: usize = 512;

/// The right sides of the seven products, in the order in which they are made.
const B11: usize = 0;
const B21: usize = 1;
const B22: usize = 2;
/// B₁₂ − B₁₁
const T1: usize = 3;
/// T₃ + B₁₁
const T2: usize = 4;
/// B₂₂ − B₁₂
const T3: usize = 5;
/// B₂₁ − T₂
const T4: usize = 6;

/// How both sides are halved.
#[derive(Debug, Clone, Copy)]
struct Halved {
    level: Level,
    /// Rows and columns of B.
    size: (usize, usize),
    /// Rows of its upper half; the lower one has as many or, without padding, one less.
    inner: usize,
    /// Columns of its left half, whole slivers; the right one is padded to as many.
    outer: usize,
}

impl Halved {
    /// Rows of C that are computed at once.
    fn rows(self) -> usize {
        2 * self.level.panel()
    }

    /// Entries of the right sides.
    fn packed(self) -> usize {
        7 * self.inner * self.outer
    }

    /// Entries that a thread works in: seven panels of the left side, five of the result.
    fn room(self) -> usize {
        self.level.panel() * (7 * self.inner + 5 * self.outer)
    }

    /// Where the sliver of a right side begins.
    fn sliver(self, b: Place, side: usize, column: usize) -> *mut f64 {
        b.at().wrapping_add((side * self.outer + column) * self.inner)
    }
}

/// A matrix that others are multiplied by, packed once.
#[derive(Debug)]
pub(super) struct Halves {
    halved: Halved,
    tiles: Tiles,
    /// For how many threads there is room behind the right sides.
    workers: usize,
}

impl Halves {
    /// For a matrix of two rows and two slivers at least.
    pub fn new(level: Level, b: &Matrix, memory: Matrix, parallel: bool) -> Self {
        let size = (b.rows(), b.columns());
        let outer = size.1.div_ceil(2).next_multiple_of(level.lanes());
        assert!(size.0 >= 2 && outer < size.1, "{} rows by {} cannot be halved", size.0, size.1);
        let halved = Halved { level, size, inner: size.0.div_ceil(2), outer };
        let cut = Cut::new(level, outer);
        let workers = workers(parallel);
        let mut tiles = Tiles::with_room(cut, halved.packed() + workers * halved.room(), memory);
        let (to, from) = (tiles.first(), Dense::read(b));
        // SAFETY: chunks write columns of their own.
        each(parallel, &cut.chunks(0), |c| unsafe {
            let first = c.tile * cut.side;
            for column in (first + c.from..first + c.to).step_by(level.lanes()) {
                at!(level, S => right::<S>(from, to, halved, column));
            }
        });
        Self { halved, tiles, workers }
    }

    pub fn into_memory(self) -> Matrix {
        self.tiles.into_memory()
    }

    /// C ← A B
    pub fn multiply(&mut self, c: &mut Matrix, a: &Matrix, parallel: bool) {
        let (halved, rows) = (self.halved, a.rows());
        let (inner, columns) = halved.size;
        assert!(a.columns() == inner, "{} columns by {inner} rows", a.columns());
        c.reshape(rows, columns);
        let (from, to, b) = (Dense::read(a), Dense::of(c), self.tiles.first());
        let rooms = Rooms { first: b.after(halved.packed()), size: halved.room(), number: self.workers };
        by_rows((rows, halved.rows()), rooms, parallel, |room, first, rows| {
            // SAFETY: sizes as asserted, and a level means that there are the instructions; every row is taken by one
            // thread, with room of its own.
            unsafe { at!(halved.level, S => multiply_rows::<S>(from, b, to, room, halved, (first, rows))) };
        });
    }
}

/// A sliver of each of the right sides.
unsafe fn right<S: Steps>(b: Dense, to: Place, halved: Halved, column: usize) {
    let Halved { size: (rows, columns), inner, outer, .. } = halved;
    let at = |side: usize| halved.sliver(to, side, column);
    // SAFETY: as promised by the caller.
    unsafe {
        // B₁₂ waits where T₄ will be.
        for (side, below, right) in [(B11, false, false), (T4, false, true), (B21, true, false), (B22, true, true)] {
            let (row, first) = (if below { inner } else { 0 }, column + if right { outer } else { 0 });
            let len = if below { rows - inner } else { inner };
            slice_columns::<S>(b, (row, len), (first, columns.saturating_sub(first)), at(side));
            at(side).add(len * S::LANES).write_bytes(0, (inner - len) * S::LANES);
        }
        let len = inner * S::LANES;
        S::combine(at(T1), at(T4), -1.0, at(B11), len);
        S::combine(at(T3), at(B22), -1.0, at(T4), len);
        S::combine(at(T2), at(T3), 1.0, at(B11), len);
        S::combine(at(T4), at(B21), -1.0, at(T2), len);
    }
}

/// Some rows of A B.
unsafe fn multiply_rows<S: Steps>(
    a: Dense,
    b: Place,
    c: Dense,
    room: Place,
    halved: Halved,
    (first, rows): (usize, usize),
) {
    let Halved { size: (all, columns), inner, outer, .. } = halved;
    let half = rows.div_ceil(2).next_multiple_of(S::LANES);
    let panel = |at: usize, width: usize| Panel {
        at: room.at().wrapping_add(S::PANEL * at),
        stride: S::LANES * width,
        slivers: half / S::LANES,
        stairs: false,
    };
    let [a11, a12, a21, a22, s1, s2, s4] = [0, 1, 2, 3, 4, 5, 6].map(|n| panel(n * inner, inner));
    let [x, c11, c12, c21, p5] = [0, 1, 2, 3, 4].map(|n| panel(7 * inner + n * outer, outer));
    // SAFETY: as promised by the caller.
    unsafe {
        for (to, below, column) in [(a11, 0, 0), (a12, 0, inner), (a21, half, 0), (a22, half, inner)] {
            let len = inner.min(all - column);
            pack_rows::<S>(a, to, (first + below, rows.saturating_sub(below)), (column, len));
            for v in (0..to.slivers).filter(|_| len < inner) {
                to.below(v).from::<S>(len).at.write_bytes(0, (inner - len) * S::LANES);
            }
        }
        let add = |to: Panel, start: Start, a: Panel, side: usize| {
            for p in (0..inner).step_by(DEPTH) {
                let (a, start) = (a.from::<S>(p), if p == 0 { start } else { Start::There });
                for k in (0..outer).step_by(S::LANES) {
                    let b = halved.sliver(b, side, k).add(p * S::LANES);
                    S::add_product(to.from::<S>(k), start, a, b, DEPTH.min(inner - p));
                }
            }
        };
        let copy = |to: Panel, from: Panel| to.at.copy_from_nonoverlapping(from.at, half * outer);
        let s3 = a21;
        S::left_sums([a11, a12, a22].map(|a| a.at.cast_const()), s3.at, [s1, s2, s4].map(|s| s.at), half * inner);
        add(x, Start::Nought, a11, B11);
        copy(c11, x);
        add(c11, Start::There, a12, B21);
        add(x, Start::There, s2, T2);
        add(p5, Start::Nought, s1, T1);
        S::combine(c12.at, x.at, 1.0, p5.at, half * outer);
        add(c12, Start::There, s4, B22);
        add(x, Start::There, s3, T3);
        copy(c21, x);
        add(c21, Start::There, a22, T4);
        let c22 = x;
        S::combine(c22.at, x.at, 1.0, p5.at, half * outer);
        for (from, below, column) in [(c11, 0, 0), (c12, 0, outer), (c21, half, 0), (c22, half, outer)] {
            let (rows, columns) = (rows.saturating_sub(below).min(half), outer.min(columns - column));
            unpack_rows::<S>(c, from, (first + below, rows), (column, columns));
        }
    }
}
