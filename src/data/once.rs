//! Rows that can be read once, a piece at a time: a table longer than memory that comes through a pipe.

use std::io::Read;

use super::choice::Missing;
use super::encoding::Encoding;
use super::source::open_reader;
use super::stream::{Piece, for_prediction};
use super::table::{ReadOptions, TableReader};
use crate::error::Result;

/// The rows of anything that can be read once, such as standard input, a piece at a time.
///
/// ```
/// use covary::Dataset;
/// use covary::data::{Once, ReadOptions};
///
/// let encoding = Dataset::from_csv("examples/data/airline.csv", "passengers")?.encoding().clone();
/// let text: &[u8] = b"month\n1961-01\n1961-02\n1961-03\n";
/// let pieces = Once::read(text, "example", &ReadOptions::default(), encoding, 2)?;
/// let sizes: Vec<usize> = pieces.map(|piece| piece.map(|p| p.x.n())).collect::<Result<_, _>>()?;
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), covary::Error>(())
/// ```
pub struct Once {
    reader: TableReader,
    encoding: Encoding,
    target: Option<String>,
    missing: Missing,
    size: usize,
    left: usize,
}

impl Once {
    /// Begins to read, `size` rows at a time, with an encoding that was learned before; `name` stands for the file in
    /// messages. Parquet and Arrow are read whole first, for they must be seen from the end.
    ///
    /// # Errors
    /// When it is not a table.
    pub fn read<R: Read + Send + 'static>(
        reader: R,
        name: &str,
        options: &ReadOptions,
        encoding: Encoding,
        size: usize,
    ) -> Result<Self> {
        let options = for_prediction(options, &encoding);
        let reader = TableReader::new(open_reader(Box::new(reader), name.as_ref())?, name.as_ref(), &options)?;
        let (missing, left) = (Missing::Error, options.rows.unwrap_or(usize::MAX));
        Ok(Self { reader, encoding, target: None, missing, size: size.max(1), left })
    }

    /// The same rows with another policy for missing cells.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The same rows with a target to read.
    #[must_use]
    pub fn target(mut self, name: impl Into<String>) -> Self {
        self.target = Some(name.into());
        self
    }
}

impl Iterator for Once {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let table = self.reader.piece(self.size.min(self.left));
        let piece = table.and_then(|table| {
            table.map(|t| Piece::of(t, &self.encoding, self.target.as_deref(), self.missing)).transpose()
        });
        self.left = match &piece {
            Ok(Some(piece)) => self.left.saturating_sub(piece.table.n()),
            _ => 0,
        };
        piece.transpose()
    }
}
