//! Values on a grid: one axis of places for each dimension, one or several channels of values, and which cells were
//! observed. Pictures are grids of pixels. Knows nothing of kernels.

use super::Table;
use crate::error::{Error, ErrorKind, Result};

/// The most cells a grid may have.
const MOST: usize = 1 << 28;

/// Cells over D ≥ 2 axes, the last running fastest; every place of every axis has an observed cell.
///
/// ```
/// use covary::data::Grid;
/// let grid = Grid::new(vec![vec![0.0, 1.0], vec![0.0, 1.0, 2.0]], vec![vec![1., 2., 3., 4., f64::NAN, 6.]])?;
/// assert_eq!((grid.shape(), grid.missing()), (vec![2, 3], vec![4]));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    axes: Vec<Vec<f64>>,
    names: Vec<String>,
    channels: Vec<Vec<f64>>,
    observed: Vec<bool>,
}

/// A rectangle of cells of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// First row.
    pub row: usize,
    /// First column.
    pub column: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Grid { message: message.into() })
}

impl Grid {
    /// A grid of channels of values; a cell whose value is not a number in any channel is missing.
    ///
    /// # Errors
    /// When there are fewer than two axes, an axis does not ascend, sizes do not fit, a value is infinite, nothing is
    /// observed, or a place of an axis has no observed cell.
    pub fn new(axes: Vec<Vec<f64>>, channels: Vec<Vec<f64>>) -> Result<Self> {
        let cells = channels.first().map_or(0, Vec::len);
        let observed = (0..cells).map(|i| channels.iter().all(|c| c.get(i).is_some_and(|v| !v.is_nan()))).collect();
        Self::with_observed(axes, channels, observed)
    }

    /// A grid of which only some cells are observed; the values of the others do not matter.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn with_observed(axes: Vec<Vec<f64>>, channels: Vec<Vec<f64>>, observed: Vec<bool>) -> Result<Self> {
        let names = (0..axes.len()).map(|a| format!("axis {}", a + 1)).collect();
        Self::build(axes, names, channels, observed)
    }

    fn build(
        axes: Vec<Vec<f64>>,
        names: Vec<String>,
        mut channels: Vec<Vec<f64>>,
        observed: Vec<bool>,
    ) -> Result<Self> {
        if axes.len() < 2 {
            return Err(wrong(format!("a grid needs at least two axes: {}", axes.len()))
                .with_hint("one axis is a series or a table: see `fit` and `forecast`"));
        }
        for (a, axis) in axes.iter().enumerate() {
            if axis.len() < 2 {
                return Err(wrong(format!("axis {}: at least two places needed: {}", a + 1, axis.len())));
            }
            if let Some(i) = axis.iter().position(|v| !v.is_finite()) {
                return Err(wrong(format!("axis {}, place {}: not a finite number: {}", a + 1, i + 1, axis[i])));
            }
            if let Some(i) = (1..axis.len()).find(|&i| axis[i] <= axis[i - 1]) {
                let (before, at) = (axis[i - 1], axis[i]);
                return Err(wrong(format!("axis {}, place {}: does not ascend: {before}, {at}", a + 1, i + 1)));
            }
        }
        let cells = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.len())).unwrap_or(usize::MAX);
        if cells > MOST {
            return Err(wrong(format!("too many cells: {cells}, at most {MOST}")));
        }
        if channels.is_empty() {
            return Err(wrong("no values"));
        }
        let size = |what, found| {
            if found == cells { Ok(()) } else { Err(Error::new(ErrorKind::Size { what, expected: cells, found })) }
        };
        channels.iter().try_for_each(|c| size("values of the grid", c.len()))?;
        size("cells of the mask", observed.len())?;
        for channel in &mut channels {
            for (i, (v, &seen)) in channel.iter_mut().zip(&observed).enumerate() {
                if !seen {
                    *v = 0.0;
                } else if !v.is_finite() {
                    return Err(wrong(format!("cell {}: not a finite number: {v}", i + 1)));
                }
            }
        }
        let grid = Self { axes, names, channels, observed };
        grid.check_observed()?;
        Ok(grid)
    }

    /// Something is observed, and at every place of every axis.
    fn check_observed(&self) -> Result<()> {
        if self.observed.iter().all(|seen| !seen) {
            return Err(
                wrong("no cell is observed").with_hint("there is nothing to learn from: make the hole smaller")
            );
        }
        let shape = self.shape();
        for (axis, &n) in shape.iter().enumerate() {
            let right: usize = shape[axis + 1..].iter().product();
            let mut seen = vec![false; n];
            for (i, _) in self.observed.iter().enumerate().filter(|(_, seen)| **seen) {
                seen[i / right % n] = true;
            }
            if let Some(place) = seen.iter().position(|seen| !seen) {
                let at = self.axes[axis][place];
                let message = format!("{}, place {} of {n} (at {at}): no observed cell", self.names[axis], place + 1);
                return Err(wrong(message).with_hint("leave that place out of the grid, or make the hole smaller"));
            }
        }
        Ok(())
    }

    /// A picture: rows by columns of pixels, one list of values a channel; `observed` says which pixels count.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn picture(height: usize, width: usize, channels: Vec<Vec<f64>>, observed: Vec<bool>) -> Result<Self> {
        let axis = |n: usize| (0..n).map(|i| i as f64).collect::<Vec<f64>>();
        Self::build(vec![axis(height), axis(width)], vec!["row".into(), "column".into()], channels, observed)
    }

    /// A grid from a long table: columns of coordinates, one row a cell. Cells without a row, and rows whose value is
    /// missing, are missing cells.
    ///
    /// # Errors
    /// When a column is not there or holds no numbers, a coordinate is missing, or a cell has two rows; as [`Grid::new`].
    pub fn from_table(table: &Table, axes: &[&str], value: &str) -> Result<Self> {
        let numbers = |name: &str| match table.column(name)?.cells() {
            super::Cells::Numbers(v) => Ok(v.clone()),
            _ => {
                let found = table.column(name)?.text(0).into_owned();
                Err(Error::new(ErrorKind::NotANumber { at: table.place(0, name), found }))
            }
        };
        let values = numbers(value)?;
        let mut places = Vec::new();
        let mut cell_of = vec![0usize; table.n()];
        let mut cells = 1usize;
        for &name in axes {
            if let Some(&row) = table.column(name)?.missing().first() {
                return Err(ErrorKind::MissingCell { at: table.place(row, name) }.into());
            }
            let column = numbers(name)?;
            if let Some(row) = column.iter().position(|v| !v.is_finite()) {
                let at = table.place(row, name);
                return Err(ErrorKind::Infinite { at, found: column[row] }.into());
            }
            // −0 and 0 are one place.
            let mut axis: Vec<f64> = column.iter().map(|v| v + 0.0).collect();
            axis.sort_by(f64::total_cmp);
            axis.dedup();
            cells = cells.saturating_mul(axis.len());
            if cells > MOST {
                return Err(wrong(format!("{}: too many cells for a grid, at most {MOST}", table.name().display()))
                    .with_hint("coordinates that hardly repeat are points, not a grid: see `fit`"));
            }
            for (at, v) in cell_of.iter_mut().zip(&column) {
                *at = *at * axis.len() + axis.partition_point(|a| a < v);
            }
            places.push(axis);
        }
        let mut filled = vec![f64::NAN; cells];
        let mut seen: Vec<Option<u32>> = vec![None; cells];
        for (row, (&cell, &v)) in cell_of.iter().zip(&values).enumerate() {
            if let Some(first) = seen[cell] {
                let (first, second) = (table.place(first as usize, value), table.place(row, value));
                let message =
                    format!("{}, {} and {}: the same cell twice", first.file.display(), first.row, second.row);
                return Err(wrong(message).with_hint("average the rows of one cell first"));
            }
            seen[cell] = Some(row as u32);
            if v.is_infinite() {
                return Err(ErrorKind::Infinite { at: table.place(row, value), found: v }.into());
            }
            filled[cell] = v;
        }
        let observed = filled.iter().map(|v| !v.is_nan()).collect();
        Self::build(places, axes.iter().map(|a| (*a).to_string()).collect(), vec![filled], observed)
    }

    /// The places of every axis.
    pub fn axes(&self) -> &[Vec<f64>] {
        &self.axes
    }

    /// What the axes are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of places of every axis.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(Vec::len).collect()
    }

    /// The channels of values, the last axis fastest; nought where nothing was observed.
    pub fn channels(&self) -> &[Vec<f64>] {
        &self.channels
    }

    /// Which cells were observed.
    pub fn observed(&self) -> &[bool] {
        &self.observed
    }

    /// The cells that were not observed, in order.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.observed.len()).filter(|&i| !self.observed[i]).collect()
    }

    /// The same grid with fewer observed cells.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn hiding(&self, hidden: &[bool]) -> Result<Self> {
        if hidden.len() != self.observed.len() {
            let (expected, found) = (self.observed.len(), hidden.len());
            return Err(ErrorKind::Size { what: "cells of the mask", expected, found }.into());
        }
        let observed = self.observed.iter().zip(hidden).map(|(&seen, &hide)| seen && !hide).collect();
        Self::build(self.axes.clone(), self.names.clone(), self.channels.clone(), observed)
    }
}

impl Hole {
    /// Marks its cells in the mask of a picture.
    ///
    /// # Errors
    /// When it is empty or does not lie inside.
    pub fn mark(self, height: usize, width: usize, mask: &mut [bool]) -> Result<()> {
        let Self { row, column, height: rows, width: columns } = self;
        let inside = |start: usize, count: usize, end: usize| start.checked_add(count).is_some_and(|e| e <= end);
        if rows == 0 || columns == 0 {
            return Err(Error::option("hole", format!("empty: {row},{column},{rows},{columns}")));
        }
        if !inside(row, rows, height) || !inside(column, columns, width) || mask.len() != height * width {
            let message = format!(
                "{row},{column},{rows},{columns} lies outside the picture of {height} rows and {width} columns"
            );
            return Err(Error::option("hole", message).with_hint("the hole is ROW,COL,HEIGHT,WIDTH, counted from 0"));
        }
        (row..row + rows).for_each(|r| mask[r * width + column..r * width + column + columns].fill(true));
        Ok(())
    }
}

impl std::str::FromStr for Hole {
    type Err = Error;

    /// `ROW,COL,HEIGHT,WIDTH`
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::option("hole", format!("ROW,COL,HEIGHT,WIDTH expected: {text}"));
        let numbers: Vec<usize> =
            text.split(',').map(|v| v.trim().parse().map_err(|_| bad())).collect::<Result<_>>()?;
        match numbers[..] {
            [row, column, height, width] => Ok(Self { row, column, height, width }),
            _ => Err(bad()),
        }
    }
}
