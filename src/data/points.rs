//! Points: n rows of d numbers, one column after another, as the tile engine reads them.

use crate::error::{Error, ErrorKind, Result};

/// A set of n points with d coordinates each, stored column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    n: usize,
    d: usize,
    values: Vec<f64>,
}

impl Points {
    /// Points from columns of equal length.
    ///
    /// # Errors
    /// When the columns differ in length or hold a value that is not finite.
    pub fn from_columns(columns: &[Vec<f64>]) -> Result<Self> {
        let n = columns.first().map_or(0, Vec::len);
        for column in columns {
            if column.len() != n {
                return Err(ErrorKind::Size { what: "rows of a column", expected: n, found: column.len() }.into());
            }
        }
        Self::checked(n, columns.len(), columns.concat())
    }

    /// Points from rows of equal width.
    ///
    /// # Errors
    /// When the rows differ in width or hold a value that is not finite.
    ///
    /// ```
    /// let x = covary::Points::from_rows(&[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])?;
    /// assert_eq!((x.n(), x.d()), (3, 2));
    /// assert_eq!(x.column(1), [1.0, 3.0, 5.0]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self> {
        let (n, d) = (rows.len(), rows.first().map_or(0, |r| r.as_ref().len()));
        let mut values = vec![0.0; n * d];
        for (i, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            if row.len() != d {
                return Err(ErrorKind::Size { what: "columns of a row", expected: d, found: row.len() }.into());
            }
            for (c, &v) in row.iter().enumerate() {
                values[c * n + i] = v;
            }
        }
        Self::checked(n, d, values)
    }

    /// One coordinate a point.
    ///
    /// # Errors
    /// When a value is not finite.
    pub fn from_column(column: &[f64]) -> Result<Self> {
        Self::checked(column.len(), 1, column.to_vec())
    }

    /// Points from n·d values, one column after another.
    ///
    /// # Errors
    /// When there are not n·d values, or one of them is not finite.
    pub fn from_values(n: usize, d: usize, values: Vec<f64>) -> Result<Self> {
        if n.checked_mul(d) != Some(values.len()) {
            let expected = n.saturating_mul(d);
            return Err(ErrorKind::Size { what: "values of the points", expected, found: values.len() }.into());
        }
        Self::checked(n, d, values)
    }

    fn checked(n: usize, d: usize, values: Vec<f64>) -> Result<Self> {
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let (column, row) = (at / n, at % n);
            let kind = ErrorKind::NotFinite { row, column: column.to_string(), found: values[at] };
            return Err(Error::new(kind).with_hint("remove the row or fill the cell before fitting"));
        }
        Ok(Self { n, d, values })
    }

    /// Number of points.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of coordinates.
    pub fn d(&self) -> usize {
        self.d
    }

    /// One coordinate of every point.
    pub fn column(&self, c: usize) -> &[f64] {
        &self.values[c * self.n..(c + 1) * self.n]
    }

    /// All values, one column after another.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The coordinates of one point.
    pub fn row(&self, i: usize) -> Vec<f64> {
        (0..self.d).map(|c| self.values[c * self.n + i]).collect()
    }

    /// The points of these rows, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let values = (0..self.d).flat_map(|c| rows.iter().map(move |&i| self.column(c)[i])).collect();
        Self { n: rows.len(), d: self.d, values }
    }

    /// The points of a range of rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Self {
        let values = (0..self.d).flat_map(|c| self.column(c)[rows.clone()].iter().copied()).collect();
        Self { n: rows.len(), d: self.d, values }
    }
}
