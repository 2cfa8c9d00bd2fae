//! Which columns of a table are what, and what to do about missing cells.

use std::collections::HashSet;

use super::table::{Cells, Column, Table};
use super::time::names_a_time;
use crate::error::{Error, ErrorKind, Result};

/// What to do with a row in which a needed cell is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// Stop, and name the cell.
    #[default]
    Error,
    /// Leave the row out, and say how many were.
    Drop,
    /// Fill inputs with the median or the most frequent text of training, and say how many; rows without a target
    /// are left out, for a filled target would teach nothing.
    Impute,
}

/// Which columns of a table are target, inputs, time and noise.
///
/// ```
/// use covary::data::{Choice, Missing};
///
/// let choice = Choice { exclude: vec!["id".into()], missing: Missing::Drop, ..Choice::new("price") };
/// assert_eq!(choice.target, "price");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The column to predict.
    pub target: String,
    /// The columns to predict it from; all others where none is named.
    pub inputs: Vec<String>,
    /// Columns to leave out.
    pub exclude: Vec<String>,
    /// The column of times. Columns of dates are known without it; numbers, such as years, may need it.
    pub time: Option<String>,
    /// A column with the known standard deviation of each row's noise, in units of the target.
    pub noise: Option<String>,
    /// What to do about missing cells.
    pub missing: Missing,
    /// The most different texts a text column may have to become indicator columns.
    pub categories: usize,
}

impl Choice {
    /// Predict this column from all others.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            inputs: Vec::new(),
            exclude: Vec::new(),
            time: None,
            noise: None,
            missing: Missing::Error,
            categories: 20,
        }
    }

    /// A target against time, in a table that may hold other columns. What is not given is guessed, and the second
    /// part of the result says so: the time is the first column of dates, or of numbers with a name such as `year`;
    /// the target is the last other column of numbers. `id`, which tells series apart, is neither.
    ///
    /// # Errors
    /// When there is no column to guess, or a given one does not exist.
    pub fn series(
        table: &Table,
        time: Option<&str>,
        target: Option<&str>,
        id: Option<&str>,
    ) -> Result<(Self, Vec<String>)> {
        let mut notes = Vec::new();
        for name in [time, target, id].into_iter().flatten() {
            table.column(name)?;
        }
        let free = |c: &&Column| Some(c.name()) != id && Some(c.name()) != time && Some(c.name()) != target;
        let numbers = |c: &&Column| matches!(c.cells(), Cells::Numbers(_));
        let guess = |what: &'static str, found: Option<&Column>, notes: &mut Vec<String>| match found {
            Some(column) => {
                notes.push(format!("{what} column: `{}` (guessed)", column.name()));
                Ok(column.name().to_string())
            }
            None => Err(Error::option(what, "no column looks like it").with_hint("name the column")),
        };
        let time = match time {
            Some(name) => name.to_string(),
            None => {
                let dates = table.columns().iter().filter(free).find(|c| matches!(c.cells(), Cells::Times(_)));
                let named = || table.columns().iter().filter(free).find(|c| numbers(c) && names_a_time(c.name()));
                let first = || table.columns().iter().filter(free).find(|c| numbers(c) && rises(c));
                // A text that is called a date and cannot be read as one: better a word about it than another column.
                let text = |c: &&Column| matches!(c.cells(), Cells::Text(_)) && names_a_time(c.name());
                let unread = || table.columns().iter().filter(free).find(text);
                guess("time", dates.or_else(named).or_else(unread).or_else(first), &mut notes)?
            }
        };
        let target = match target {
            Some(name) => name.to_string(),
            None => {
                let last = table.columns().iter().filter(free).rfind(|c| numbers(c) && c.name() != time);
                guess("target", last, &mut notes)?
            }
        };
        Ok((Self { inputs: vec![time.clone()], time: Some(time), ..Self::new(target) }, notes))
    }

    /// The names of the input columns in this table.
    pub(super) fn input_names(&self, table: &Table) -> Result<Vec<String>> {
        for name in self.inputs.iter().chain(&self.exclude).chain(&self.time).chain(&self.noise) {
            table.column(name)?;
        }
        table.column(&self.target)?;
        if self.inputs.contains(&self.target) {
            return Err(Error::option("inputs", format!("the target `{}` cannot be an input", self.target)));
        }
        let mut names = self.inputs.clone();
        if names.is_empty() {
            names = table.columns().iter().map(|c| c.name().to_string()).collect();
            names.retain(|n| *n != self.target && Some(n) != self.noise.as_ref());
        }
        names.retain(|n| !self.exclude.contains(n));
        if names.is_empty() {
            return Err(Error::option("inputs", format!("no column is left beside the target `{}`", self.target)));
        }
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(Error::option("inputs", format!("column `{name}` is named twice")));
        }
        Ok(names)
    }
}

fn rises(column: &Column) -> bool {
    matches!(column.cells(), Cells::Numbers(v) if v.windows(2).all(|w| w[0] < w[1]))
}

pub(super) fn missing_cell(table: &Table, row: usize, column: &str) -> Error {
    let error = Error::new(ErrorKind::MissingCell { at: table.place(row, column) });
    error.with_hint("fill the cell, or read with missing cells dropped or imputed")
}

/// How many rows were dropped, and which was the first.
pub(super) fn dropped(table: &Table, gone: &[bool]) -> String {
    let count = gone.iter().filter(|g| **g).count();
    let first = gone.iter().position(|g| *g).unwrap_or(0);
    format!("{} with missing cells dropped, the first at {}", counted(count, "row"), table.place(first, "").row)
}

/// `1 row`, `2 rows`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
