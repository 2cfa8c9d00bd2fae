//! What is visited of a matrix and in which order: groups of columns, the unit of parallel work, the same whatever the
//! number of threads, and the tiles of a group.

use super::geometry::{Meeting, Segment};
use crate::data::Places;

/// Multiplications (as [`super::step::Step::work`] counts them) that are worth a group of their own: some 20 µs
/// of values. Smaller groups cost a single thread more than they bring to two.
const GROUP: usize = 240_000;
/// Pairs of a group, at most.
const MOST_PAIRS: usize = 12_288;
/// The most groups: more would only cost memory.
const MOST_GROUPS: usize = 48;

/// The pairs to visit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Area<'a> {
    /// Rows j..n of every column j; where lags are shared, with the places of the points.
    Lower(usize, Option<&'a Places>),
    /// All rows of all columns.
    All { rows: usize, columns: usize },
    /// The pairs (i, i), as one column of n rows.
    Diagonal(usize),
}

impl<'a> Area<'a> {
    pub fn lower(n: usize, places: Option<&'a Places>) -> Self {
        Self::Lower(n, places)
    }

    pub fn all(rows: usize, columns: usize) -> Self {
        Self::All { rows, columns }
    }

    pub fn diagonal(n: usize) -> Self {
        Self::Diagonal(n)
    }

    fn pairs(self) -> usize {
        match self {
            Area::Lower(n, _) => n * (n + 1) / 2,
            Area::All { rows, columns } => rows * columns,
            Area::Diagonal(n) => n,
        }
    }

    /// Groups with about equally many pairs, each of so much work; depends on these alone.
    pub fn groups(self, work: usize) -> Vec<Group<'a>> {
        let count = self.pairs() / (GROUP / work.max(1)).clamp(1, MOST_PAIRS);
        // Even in number, so that two threads have equally many.
        let count = if count > 1 { count.next_multiple_of(2).min(MOST_GROUPS) } else { 1 };
        match self {
            Area::Diagonal(n) => vec![Group { columns: 0..1, rows: 0..n, lower: false, places: None }],
            Area::All { rows, columns } if columns >= count || rows == 0 => {
                let cut = |g: usize| g * columns / count;
                (0..count)
                    .map(|g| Group { columns: cut(g)..cut(g + 1), rows: 0..rows, lower: false, places: None })
                    .collect()
            }
            Area::All { rows, columns } => {
                let cut = |g: usize| g * rows / count;
                (0..count)
                    .map(|g| Group { columns: 0..columns, rows: cut(g)..cut(g + 1), lower: false, places: None })
                    .collect()
            }
            Area::Lower(n, places) => {
                // Columns 0..c hold n c − c(c−1)/2 pairs.
                let before = |c: usize| n * c - c * c.saturating_sub(1) / 2;
                let mut cuts = vec![0];
                for g in 1..count {
                    let target = self.pairs() / count * g;
                    let mut c = *cuts.last().unwrap_or(&0);
                    while c < n && before(c) < target {
                        c += 1;
                    }
                    cuts.push(c);
                }
                cuts.push(n);
                cuts.windows(2).map(|w| Group { columns: w[0]..w[1], rows: 0..n, lower: true, places }).collect()
            }
        }
    }
}

/// Some columns of an area.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
    lower: bool,
    places: Option<&'a Places>,
}

/// Walks through the pairs of a group, a tile at a time.
pub(super) struct Cursor<'a> {
    group: &'a Group<'a>,
    meeting: Meeting,
    tile: usize,
    column: usize,
    row: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(group: &'a Group<'a>, meeting: Meeting, tile: usize) -> Self {
        let column = group.columns.start;
        let row = if group.lower { column } else { group.rows.start };
        Self { group, meeting, tile, column, row }
    }

    /// Fills the list with the next tile's segments; its length with padding.
    #[inline(always)]
    pub fn next_tile(&mut self, segments: &mut Vec<Segment>, lanes: usize) -> Option<usize> {
        segments.clear();
        let mut len = 0;
        while self.column < self.group.columns.end && len < self.tile {
            // A segment has lags that follow each other: it ends where a gap begins.
            let places = self.group.places.filter(|_| self.row < self.group.rows.end);
            let left = places.map_or(self.group.rows.end, |p| p.end(self.row)) - self.row;
            let take = left.min(self.tile - len);
            if take > 0 {
                let padded = take.next_multiple_of(lanes);
                // Pairwise, the column goes along with the row.
                let column = if self.meeting == Meeting::Pairwise { self.row } else { self.column };
                let lag = places.map_or(0, |p| p.lag(self.row, column));
                segments.push(Segment { offset: len, len: take, padded, row: self.row, column, lag });
                len += padded;
                self.row += take;
            }
            if self.row >= self.group.rows.end {
                self.column += 1;
                self.row = if self.group.lower { self.column } else { self.group.rows.start };
            }
        }
        (len > 0).then_some(len)
    }
}
