//! A dataset: inputs, target, their names, and what was done to the rows on the way here. What models are fitted to.

use super::Points;
use crate::error::{Error, ErrorKind, Result};

/// Inputs with their target, in the user's units.
///
/// ```
/// use covary::{Dataset, Points};
///
/// let data = Dataset::new(Points::from_rows(&[[0.0, 1.0], [2.0, 3.0]])?, vec![5.0, 6.0])?;
/// assert_eq!((data.n(), data.d()), (2, 2));
/// assert_eq!((data.inputs(), data.target()), (&["x0".to_string(), "x1".to_string()][..], "y"));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    x: Points,
    y: Vec<f64>,
    inputs: Vec<String>,
    target: String,
    noise: Option<Vec<f64>>,
    notes: Vec<String>,
}

impl Dataset {
    /// A dataset of points and their target values, with columns named x0, x1, … and y.
    ///
    /// # Errors
    /// When there are not as many target values as points, or one of them is not finite.
    pub fn new(x: Points, y: Vec<f64>) -> Result<Self> {
        if y.len() != x.n() {
            return Err(ErrorKind::Size { what: "values of the target", expected: x.n(), found: y.len() }.into());
        }
        if let Some(row) = y.iter().position(|v| !v.is_finite()) {
            let kind = ErrorKind::NotFinite { row, column: "y".into(), found: y[row] };
            return Err(Error::new(kind).with_hint("remove the row or fill the cell before fitting"));
        }
        let inputs = (0..x.d()).map(|c| format!("x{c}")).collect();
        Ok(Self { x, y, inputs, target: "y".into(), noise: None, notes: Vec::new() })
    }

    /// The same dataset with these names for its input columns and its target.
    ///
    /// # Errors
    /// When there are not as many names as input columns.
    pub fn named<S: Into<String>>(mut self, inputs: Vec<S>, target: impl Into<String>) -> Result<Self> {
        if inputs.len() != self.d() {
            return Err(ErrorKind::Size { what: "names of inputs", expected: self.d(), found: inputs.len() }.into());
        }
        self.inputs = inputs.into_iter().map(Into::into).collect();
        self.target = target.into();
        Ok(self)
    }

    /// The same dataset with a known noise variance for each row, in squared units of the target.
    ///
    /// # Errors
    /// When there are not as many variances as rows, or one is negative or not finite.
    pub fn with_noise(mut self, variance: Vec<f64>) -> Result<Self> {
        if variance.len() != self.n() {
            let (expected, found) = (self.n(), variance.len());
            return Err(ErrorKind::Size { what: "noise variances", expected, found }.into());
        }
        if let Some(row) = variance.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
            let message = format!("row {row}: a variance must be finite and not negative: {}", variance[row]);
            return Err(Error::option("noise", message));
        }
        self.noise = Some(variance);
        Ok(self)
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.x.n()
    }

    /// Number of input columns.
    pub fn d(&self) -> usize {
        self.x.d()
    }

    /// The inputs.
    pub fn x(&self) -> &Points {
        &self.x
    }

    /// The target values.
    pub fn y(&self) -> &[f64] {
        &self.y
    }

    /// The names of the input columns.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// The name of the target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The known noise variance of each row, where there is one.
    pub fn noise(&self) -> Option<&[f64]> {
        self.noise.as_deref()
    }

    /// What was dropped, imputed, encoded or sorted to get here, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The dataset of these rows, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            x: self.x.select(rows),
            y: rows.iter().map(|&i| self.y[i]).collect(),
            noise: self.noise.as_ref().map(|noise| rows.iter().map(|&i| noise[i]).collect()),
            inputs: self.inputs.clone(),
            target: self.target.clone(),
            notes: self.notes.clone(),
        }
    }
}
