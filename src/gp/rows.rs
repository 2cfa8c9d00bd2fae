//! Rows that are gone through again and again, always in the same chunks and the same order: from memory, or from a file
//! larger than it. Numbers are standardised on the way.

use crate::data::{Points, Scaling, Stream};
use crate::error::{ErrorKind, Result};

/// Rows of a chunk in memory. Larger chunks cost memory, smaller ones the fixed cost of every chunk.
const CHUNK: usize = 2048;

/// A source of rows, with inputs and targets in standardised units.
pub trait Rows: Sync {
    /// Number of input columns.
    fn d(&self) -> usize;

    /// Number of rows; where some may be dropped on reading, the most there can be.
    fn n(&self) -> usize;

    /// Hands out every row, a chunk at a time: the same chunks in the same order every time.
    ///
    /// # Errors
    /// When rows cannot be read, or the first error of `chunk`.
    fn each(&self, chunk: &mut dyn FnMut(&Points, &[f64]) -> Result<()>) -> Result<()>;
}

/// Rows in memory.
#[derive(Debug, Clone, Copy)]
pub struct InMemory<'a> {
    x: &'a Points,
    y: &'a [f64],
    chunk: usize,
}

impl<'a> InMemory<'a> {
    /// These inputs and targets, standardised by whoever calls.
    ///
    /// # Errors
    /// When there are not as many targets as points.
    pub fn new(x: &'a Points, y: &'a [f64]) -> Result<Self> {
        if x.n() != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: x.n(), found: y.len() }.into());
        }
        Ok(Self { x, y, chunk: CHUNK })
    }

    /// The same rows in chunks of at most this size.
    #[must_use]
    pub fn in_chunks_of(mut self, rows: usize) -> Self {
        self.chunk = rows.max(1);
        self
    }
}

impl Rows for InMemory<'_> {
    fn d(&self) -> usize {
        self.x.d()
    }

    fn n(&self) -> usize {
        self.x.n()
    }

    fn each(&self, chunk: &mut dyn FnMut(&Points, &[f64]) -> Result<()>) -> Result<()> {
        // Chunks of about equal size: no small one at the end.
        let (n, count) = (self.x.n(), self.x.n().div_ceil(self.chunk));
        for c in 0..count {
            let rows = c * n / count..(c + 1) * n / count;
            chunk(&self.x.slice(rows.clone()), &self.y[rows])?;
        }
        Ok(())
    }
}

/// Rows of a file, read again in every pass; a chunk is a piece of the stream.
#[derive(Debug, Clone, Copy)]
pub struct Streamed<'a> {
    stream: &'a Stream,
    scaling: &'a Scaling,
}

impl<'a> Streamed<'a> {
    /// The rows of a stream that has a target, standardised by a scaling (see [`Scaling::of_stream`]).
    ///
    /// # Errors
    /// When the scaling is for another number of columns.
    pub fn new(stream: &'a Stream, scaling: &'a Scaling) -> Result<Self> {
        let (expected, found) = (stream.encoding().names().len(), scaling.d());
        if expected != found {
            return Err(ErrorKind::Size { what: "columns of the scaling", expected, found }.into());
        }
        Ok(Self { stream, scaling })
    }
}

impl Rows for Streamed<'_> {
    fn d(&self) -> usize {
        self.scaling.d()
    }

    fn n(&self) -> usize {
        self.stream.rows().unwrap_or(usize::MAX)
    }

    fn each(&self, chunk: &mut dyn FnMut(&Points, &[f64]) -> Result<()>) -> Result<()> {
        for piece in self.stream.pass()? {
            let piece = piece?;
            if piece.y.len() != piece.x.n() {
                let (expected, found) = (piece.x.n(), piece.y.len());
                return Err(ErrorKind::Size { what: "targets of the stream", expected, found }.into());
            }
            if !piece.y.is_empty() {
                chunk(&self.scaling.points(&piece.x)?, &self.scaling.target(&piece.y))?;
            }
        }
        Ok(())
    }
}
