//! Tiles of pairs, computed group by group (`area.rs`). Every group adds up its own gradient; groups are added in order at
//! the end.

use super::area::{Area, Cursor, Group};
use super::features::Features;
use super::geometry::{FeatureAdjoints, Segment};
use super::lanes::{Loops, WIDEST};
use super::pass::{self, Lists, Sinks, Tile};
use super::places::Places;
use super::planes::{Aligned, Planes, TILE};
use super::simd::{self, Level, Work};
use super::{Both, Code};
use crate::threads::Threads;
use std::sync::{Mutex, PoisonError};

/// How tiles are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub level: Level,
    /// Pairs of a tile, at most [`TILE`], of values alone and of a pullback, which has several times as many planes.
    pub values: usize,
    pub pullback: usize,
}

impl How {
    pub fn best() -> Self {
        let level = Level::best();
        // Vectors of eight pairs want longer loops; with four, 128 to 512 pairs run alike.
        let (values, pullback) = if level == Level::Avx512 { (TILE, 256) } else { (128, 128) };
        Self { level, values, pullback }
    }
}

/// Buffers of a program's evaluation, used again from one to the next.
#[derive(Default)]
pub struct Scratch {
    pub(super) rows: Features,
    pub(super) columns: Features,
    pub(super) row_adjoint: Vec<f64>,
    pub(super) column_adjoint: Vec<f64>,
    /// Values by lag and their adjoints, one after another.
    pub(super) tables: Features,
    /// Features of the lags, from the values to the pullback.
    pub(super) lags: Features,
    /// Whose values the tables hold: program, lags and parameters.
    pub(super) tables_of: (u64, u64),
    pub(super) tables_at: Vec<f64>,
    pub(super) table_adjoint: Vec<f64>,
    coefficients: Vec<f64>,
    rooms: Vec<Room>,
    sums: Vec<Sums>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scratch({} groups)", self.sums.len())
    }
}

/// What one thread works with, whatever group it is at: it stays in that thread's caches.
#[derive(Default)]
struct Room {
    planes: Planes,
    places: Places,
    lists: Lists,
    segments: Vec<Segment>,
}

/// What one group of columns adds up.
#[derive(Default)]
struct Sums {
    gradient: Vec<f64>,
    row_adjoint: Vec<f64>,
    column_adjoint: Vec<f64>,
    table_adjoint: Aligned,
}

/// Where values go: one matrix an output, stored by columns.
pub(super) struct Output {
    at: *mut f64,
    stride: usize,
    /// From one output to the next.
    step: usize,
    len: usize,
}

// SAFETY: groups are disjoint, and so are the entries they write.
unsafe impl Sync for Output {}

impl Output {
    pub fn matrix(k: &mut [f64], stride: usize) -> Self {
        Self { at: k.as_mut_ptr(), stride, step: 0, len: k.len() }
    }

    /// One column for each output.
    pub fn tables(values: &mut [f64], step: usize) -> Self {
        Self { at: values.as_mut_ptr(), stride: 0, step, len: values.len() }
    }

    /// # Safety
    /// Nobody else writes the same run.
    unsafe fn write(&self, output: usize, segment: &Segment, values: &[f64]) {
        let at = output * self.step + segment.column * self.stride + segment.row;
        assert!(at + segment.len <= self.len && segment.len <= values.len(), "a run beyond the matrix");
        // SAFETY: within bounds, as asserted; disjoint, as promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.at.add(at), segment.len) }
    }
}

/// Where adjoints come from.
#[derive(Clone, Copy)]
pub(super) enum Adjoint<'a> {
    /// A function of column and first row.
    Given(&'a (dyn Fn(usize, usize, &mut [f64]) + Sync)),
    /// A table for each output.
    Tables(&'a [f64], usize),
}

/// Whose points want a gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asking {
    pub rows: bool,
    pub columns: bool,
}

impl Asking {
    pub fn both(asking: bool) -> Self {
        Self { rows: asking, columns: asking }
    }
}

/// What is done with each tile.
enum Job<'a> {
    Values(&'a Output),
    Pullback { adjoint: Adjoint<'a>, points: Asking },
}

struct GroupWork<'a> {
    code: &'a Code,
    tile: usize,
    coefficients: &'a [f64],
    rows: &'a Features,
    columns: &'a Features,
    tables: &'a Features,
    both: Both,
    group: &'a Group<'a>,
    room: &'a mut Room,
    sums: &'a mut Sums,
    job: &'a Job<'a>,
}

impl Work for GroupWork<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Loops>(self) {
        let sides = self.both.sides(self.rows, self.columns);
        let Room { planes, places, lists, segments } = self.room;
        let Sums { gradient, row_adjoint, column_adjoint, table_adjoint } = self.sums;
        let mut planes = planes.layout(&self.code.slots, matches!(self.job, Job::Pullback { .. }), self.tile);
        places.find(&self.code.steps, &planes);
        if let Job::Pullback { points, .. } = self.job {
            planes.silence();
            gradient.clear();
            gradient.resize(self.code.coefficients.len() * WIDEST, 0.0);
            table_adjoint.clear_to(self.tables.values.len());
            let trained = self.code.trained.contains(&true);
            row_adjoint.clear();
            row_adjoint.resize(if trained || points.rows { self.rows.values.len() } else { 0 }, 0.0);
            column_adjoint.clear();
            let two = (trained || points.rows || points.columns) && self.both == Both::Different;
            column_adjoint.resize(if two { self.columns.values.len() } else { 0 }, 0.0);
        }
        // Which features want adjoints: all where the points do, else those with a trained parameter.
        let points = matches!(self.job, Job::Pullback { points, .. } if points.rows || points.columns);
        let wanted: Vec<bool> = self.code.trained.iter().map(|&t| t || points).collect();
        let mut cursor = Cursor::new(self.group, sides.meeting, self.tile);
        while let Some(len) = cursor.next_tile(segments, S::LANES) {
            let tile = Tile {
                steps: &self.code.steps,
                needed: self.code.needed,
                coefficients: self.coefficients,
                sides,
                segments,
                len,
                tables: self.tables,
            };
            // SAFETY: planes are reserved, segments lie within the sides, the caller enables the instructions.
            unsafe {
                match self.job {
                    Job::Values(output) => {
                        pass::forward::<S, false>(&tile, &planes, places, lists);
                        for (o, &plane) in self.code.outputs.iter().enumerate() {
                            let values = planes.values(plane, len);
                            segments.iter().for_each(|s| output.write(o, s, &values[s.offset..]));
                        }
                    }
                    Job::Pullback { adjoint, .. } => {
                        pass::forward::<S, true>(&tile, &planes, places, lists);
                        for (o, &plane) in self.code.outputs.iter().enumerate() {
                            let to = planes.adjoints(plane, len);
                            for s in segments.iter() {
                                let (run, padding) = to[s.offset..s.offset + s.padded].split_at_mut(s.len);
                                match adjoint {
                                    Adjoint::Given(fill) => fill(s.column, s.row, run),
                                    Adjoint::Tables(tables, stride) => {
                                        let from = o * stride + s.row;
                                        run.copy_from_slice(&tables[from..from + s.len]);
                                    }
                                }
                                padding.fill(0.0);
                            }
                        }
                        let features = match (row_adjoint.is_empty(), column_adjoint.is_empty()) {
                            (true, true) => None,
                            (false, true) => Some(FeatureAdjoints::Same(row_adjoint)),
                            (false, false) => Some(FeatureAdjoints::Both(row_adjoint, column_adjoint)),
                            (true, false) => Some(FeatureAdjoints::Columns(column_adjoint)),
                        };
                        let mut sinks =
                            Sinks { coefficients: gradient, wanted: &wanted, features, tables: table_adjoint };
                        pass::reverse::<S>(&tile, &planes, places, lists, &mut sinks);
                    }
                }
            }
        }
    }
}

fn run(code: &Code, how: How, area: Area, both: Both, job: &Job, scratch: &mut Scratch, threads: Threads) -> usize {
    let groups = area.groups(code.work);
    // Two threads, of which one may stand by; a third for less than two groups would hardly be awake before they are done.
    let most = (groups.len() / 2).max(2).min(groups.len());
    let wide = if threads == Threads::All { rayon::current_num_threads().clamp(1, most) } else { 1 };
    let Scratch { rows, columns, tables, coefficients, rooms, sums, .. } = scratch;
    if rooms.len() < wide {
        rooms.resize_with(wide, Room::default);
    }
    if sums.len() < groups.len() {
        sums.resize_with(groups.len(), Sums::default);
    }
    // Whoever is free takes the next group: a thread that comes late, as it does where it has to be woken, does less.
    let left = Mutex::new(sums.iter_mut().zip(&groups));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let tile = match job {
        Job::Values(_) => how.values,
        Job::Pullback { .. } => how.pullback,
    };
    let work = |room: &mut Room| {
        while let Some((sums, group)) = next() {
            let room = &mut *room;
            let work = GroupWork { code, tile, coefficients, rows, columns, tables, both, group, room, sums, job };
            simd::dispatch(how.level, work);
        }
    };
    spread(&mut rooms[..wide], &work);
    groups.len()
}

/// The same work from as many threads as there are rooms.
fn spread(rooms: &mut [Room], work: &(impl Fn(&mut Room) + Sync)) {
    match rooms {
        [] => {}
        [room] => work(room),
        _ => {
            let (some, others) = rooms.split_at_mut(rooms.len() / 2);
            rayon::join(|| spread(some, work), || spread(others, work));
        }
    }
}

/// Values of every output; features of both sides must be there.
#[allow(clippy::too_many_arguments)]
pub(super) fn values(
    code: &Code,
    how: How,
    theta: &[f64],
    area: Area,
    both: Both,
    output: &Output,
    scratch: &mut Scratch,
    threads: Threads,
) {
    set_coefficients(code, theta, &mut scratch.coefficients);
    run(code, how, area, both, &Job::Values(output), scratch, threads);
}

/// Adds the gradient of coefficients to `gradient`; leaves adjoints of features and tables in the scratch.
#[allow(clippy::too_many_arguments)]
pub(super) fn pullback(
    code: &Code,
    how: How,
    theta: &[f64],
    area: Area,
    both: Both,
    adjoint: Adjoint,
    gradient: &mut [f64],
    points: Asking,
    scratch: &mut Scratch,
    threads: Threads,
) {
    set_coefficients(code, theta, &mut scratch.coefficients);
    let groups = run(code, how, area, both, &Job::Pullback { adjoint, points }, scratch, threads);
    let Scratch { rows, columns, row_adjoint, column_adjoint, table_adjoint, sums, .. } = scratch;
    let sums = &sums[..groups];
    add_up(sums, |s| &s.row_adjoint, rows.values.len(), row_adjoint);
    add_up(sums, |s| &s.column_adjoint, columns.values.len(), column_adjoint);
    add_up(sums, |s| &s.table_adjoint, 0, table_adjoint);
    for (c, coefficient) in code.coefficients.iter().enumerate() {
        let lanes = |s: &Sums| {
            let l: &[f64] = &s.gradient[c * WIDEST..(c + 1) * WIDEST];
            ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
        };
        let total: f64 = sums.iter().map(lanes).sum();
        coefficient.pull(theta, total, gradient);
    }
}

/// Adds what every group has, in the order of the groups; at least `len` entries, even where no group has any.
fn add_up(sums: &[Sums], of: impl Fn(&Sums) -> &[f64], len: usize, into: &mut Vec<f64>) {
    let len = len.max(sums.iter().map(|s| of(s).len()).max().unwrap_or(0));
    into.clear();
    into.resize(len, 0.0);
    for sums in sums {
        for (total, v) in into.iter_mut().zip(of(sums)) {
            *total += v;
        }
    }
}

fn set_coefficients(code: &Code, theta: &[f64], into: &mut Vec<f64>) {
    into.clear();
    into.extend(code.coefficients.iter().map(|c| c.of(theta)));
}
