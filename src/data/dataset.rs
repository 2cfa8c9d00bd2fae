//! A dataset: inputs, target, their names, and what was done to the rows on the way here. What models are fitted to.

use std::path::Path;

use super::Points;
use super::choice::{self, Choice, Missing};
use super::encoding::{self, Encoding};
use super::table::{ReadOptions, Table};
use super::time::{Horizon, TimeAxis};
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
    encoding: Encoding,
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
        let inputs: Vec<String> = (0..x.d()).map(|c| format!("x{c}")).collect();
        let encoding = Encoding::numbers(inputs.iter().cloned());
        Ok(Self { x, y, inputs, target: "y".into(), noise: None, encoding, notes: Vec::new() })
    }

    /// Reads a table and predicts one of its columns from all others.
    ///
    /// # Errors
    /// When the file is not a table, the target is not in it, or a cell is missing or not what it should be.
    ///
    /// ```
    /// let data = covary::Dataset::from_csv("examples/data/airline.csv", "passengers")?;
    /// assert_eq!(data.n(), 144);
    /// assert_eq!(data.ahead(24).n(), 24);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn from_csv(path: impl AsRef<Path>, target: &str) -> Result<Self> {
        Self::from_table(&Table::open(path, &ReadOptions::default())?, &Choice::new(target))
    }

    /// The dataset of the chosen columns of a table. A single column of times must not hold the same time twice; its
    /// rows are put in order.
    ///
    /// # Errors
    /// When a column does not exist, a cell is missing or not what it should be, a time occurs twice, or fewer than
    /// two rows are left.
    pub fn from_table(table: &Table, choice: &Choice) -> Result<Self> {
        let names = choice.input_names(table)?;
        let mut y = encoding::numbers(table, table.column(&choice.target)?)?;
        let mut noise = match &choice.noise {
            Some(name) => Some(encoding::numbers(table, table.column(name)?)?),
            None => None,
        };
        let (encoding, mut notes) = Encoding::learn(table, &names, choice)?;
        notes.splice(0..0, table.notes().iter().cloned());
        notes.extend(encoding.notes());

        // Rows without a target or its noise cannot be filled: they stop the work or leave it.
        let mut gone = vec![false; table.n()];
        for (name, values) in [(Some(&choice.target), Some(&y)), (choice.noise.as_ref(), noise.as_ref())] {
            let (Some(name), Some(values)) = (name, values) else { continue };
            for row in (0..values.len()).filter(|&i| values[i].is_nan()) {
                if choice.missing == Missing::Error {
                    return Err(choice::missing_cell(table, row, name));
                }
                gone[row] = true;
            }
        }
        let whole;
        let (rows, table) = if gone.contains(&true) {
            notes.push(choice::dropped(table, &gone));
            let rows: Vec<usize> = (0..table.n()).filter(|&i| !gone[i]).collect();
            whole = table.select(&rows);
            (rows, &whole)
        } else {
            ((0..table.n()).collect(), table)
        };
        let encoded = encoding.apply(table, choice.missing)?;
        notes.extend(encoded.notes);
        if encoded.rows.len() < 2 {
            return Err(ErrorKind::TooFewRows { found: encoded.rows.len(), needed: 2 }.into());
        }
        y = encoded.rows.iter().map(|&i| y[rows[i]]).collect();
        noise = noise.map(|sd| encoded.rows.iter().map(|&i| sd[rows[i]] * sd[rows[i]]).collect());
        let mut data = Self { inputs: encoding.names(), target: choice.target.clone(), ..Self::new(encoded.x, y)? };
        if let Some(variance) = noise {
            data = data.with_noise(variance)?;
        }
        (data.encoding, data.notes) = (encoding, notes);
        data.in_order(table, &encoded.rows)
    }

    /// A series is put in order, and has every time once.
    fn in_order(mut self, table: &Table, rows: &[usize]) -> Result<Self> {
        let Some(axis) = self.axis(0).filter(|axis| self.d() == 1 && axis.is_calendar()) else { return Ok(self) };
        let times = self.x.column(0);
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
        if let Some(pair) = order.windows(2).find(|w| times[w[0]] == times[w[1]]) {
            let at = |i: usize| table.place(rows[i], &self.inputs[0]);
            let (first, second, found) = (at(pair[0]), at(pair[1]).row, axis.to_text(times[pair[0]])?);
            let (file, first, column) = (first.file, first.row, first.column);
            let error = Error::new(ErrorKind::DuplicateTime { file, first, second, column, found });
            return Err(error.with_hint("if the table holds several series, name the column that tells them apart"));
        }
        if order.iter().enumerate().any(|(i, &at)| i != at) {
            self = self.select(&order);
            self.notes.push(format!("rows put in order of `{}`", self.inputs[0]));
        }
        Ok(self)
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
        self.encoding = Encoding::numbers(self.inputs.iter().cloned());
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

    /// The same dataset with its target taken through a function.
    ///
    /// # Errors
    /// When a value becomes one that is not finite.
    pub fn map_target(self, f: impl Fn(f64) -> f64) -> Result<Self> {
        self.map_rows(|_, y| f(y))
    }

    /// The same dataset with another target, row by row.
    pub(crate) fn map_rows(mut self, f: impl Fn(usize, f64) -> f64) -> Result<Self> {
        for (row, y) in self.y.iter_mut().enumerate() {
            *y = f(row, *y);
            if !y.is_finite() {
                return Err(ErrorKind::NotFinite { row, column: self.target, found: *y }.into());
            }
        }
        Ok(self)
    }

    /// The same dataset with something more to say of it.
    pub(crate) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
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

    /// How the inputs were made from a table; a model keeps it to read new tables the same way.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// The time axis of an input column, where it is one.
    pub fn axis(&self, column: usize) -> Option<&TimeAxis> {
        self.encoding.axis(column)
    }

    /// The inputs of the next steps of a series: one input column, continued from its largest value by its usual
    /// step, with the calendar where it is one of times. No points where there is no such series (several inputs, or
    /// a step that leads beyond the calendar); [`Dataset::ahead_to`] says why.
    pub fn ahead(&self, steps: usize) -> Points {
        let numbers = self.ahead_to(&Horizon::Steps(steps)).unwrap_or_default();
        let numbers: Vec<f64> = numbers.into_iter().map(|t| t.0).collect();
        Points::from_column(&numbers).unwrap_or_else(|_| self.x.slice(0..0))
    }

    /// The next times of a series up to a horizon: number and text of each.
    ///
    /// # Errors
    /// When there is not exactly one input column, or the horizon cannot be reached.
    pub fn ahead_to(&self, horizon: &Horizon) -> Result<Vec<(f64, String)>> {
        if self.d() != 1 {
            let error = ErrorKind::Size { what: "input columns of a series", expected: 1, found: self.d() };
            return Err(Error::new(error).with_hint("choose the column of times as the only input"));
        }
        let column = self.x.column(0);
        let last = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.axis(0) {
            Some(axis) => axis.ahead(last, horizon),
            None => TimeAxis::plain(column).ahead(last, horizon),
        }
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
            encoding: self.encoding.clone(),
            notes: self.notes.clone(),
        }
    }
}
