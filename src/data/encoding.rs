//! From the columns of a table to columns of numbers, the same way each time: learned from the training table, kept in
//! the model file, applied again to a new table whatever the order of its columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::choice::{Choice, Missing, counted};
use super::table::{Cells, Column, Table};
use super::time::{Detected, TimeAxis, names_a_time};
use super::{Points, choice};
use crate::error::{Error, ErrorKind, Result};

/// How each input column of a table becomes one or more columns of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    inputs: Vec<Input>,
}

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Input {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A number; a missing one may be filled with the median of training.
    Number { fill: Option<f64> },
    /// A time on this axis.
    Time { axis: TimeAxis },
    /// One of these texts, each an indicator column; a missing one may be filled with the most frequent.
    Category { levels: Vec<String>, fill: Option<String> },
}

/// The inputs of a table, encoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The points.
    pub x: Points,
    /// The row of the table that each point came from.
    pub rows: Vec<usize>,
    /// What was dropped, filled or not known, in sentences.
    pub notes: Vec<String>,
}

impl Encoding {
    /// Number columns of these names.
    pub(super) fn numbers(names: impl IntoIterator<Item = String>) -> Self {
        let number = |name| Input { name, kind: Kind::Number { fill: None } };
        Self { inputs: names.into_iter().map(number).collect() }
    }

    /// Learns the encoding of these columns from a table.
    pub(super) fn learn(table: &Table, names: &[String], choice: &Choice) -> Result<(Self, Vec<String>)> {
        let mut notes = Vec::new();
        let mut inputs = Vec::with_capacity(names.len());
        for name in names {
            let column = table.column(name)?;
            let asked = choice.time.as_ref() == Some(name) || (names.len() == 1 && names_a_time(name));
            let kind = match column.cells() {
                _ if column.missing().len() == table.n() => {
                    let error = Error::new(ErrorKind::MissingCell { at: table.place(0, name) });
                    return Err(error.with_hint(format!("column `{name}` has no values at all: exclude it")));
                }
                Cells::Times(_) => time(table, column, &mut notes)?,
                _ if asked => time(table, column, &mut notes)?,
                Cells::Numbers(values) => Kind::Number { fill: median(values) },
                Cells::Text(_) => category(table, column, choice)?,
            };
            inputs.push(Input { name: name.clone(), kind });
        }
        Ok((Self { inputs }, notes))
    }

    /// Adds the texts of more training rows to the indicator columns.
    pub(super) fn widen(&mut self, table: &Table, limit: usize) -> Result<()> {
        for input in &mut self.inputs {
            let Kind::Category { levels, .. } = &mut input.kind else { continue };
            let column = table.column(&input.name)?;
            for text in (0..table.n()).map(|row| column.text(row)).filter(|t| !t.is_empty()) {
                if let Err(at) = levels.binary_search_by(|l| l.as_str().cmp(&text)) {
                    levels.insert(at, text.into_owned());
                    few(table, &input.name, levels.len(), limit)?;
                }
            }
        }
        Ok(())
    }

    /// Which text columns became indicator columns, in sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |input: &Input| match &input.kind {
            Kind::Category { levels, .. } => {
                let columns = counted(levels.len(), "indicator column");
                Some(format!("text column `{}` became {columns}", input.name))
            }
            _ => None,
        };
        self.inputs.iter().filter_map(note).collect()
    }

    /// The names of the encoded columns; an indicator is called `colour=red`.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for input in &self.inputs {
            match &input.kind {
                Kind::Category { levels, .. } => names.extend(levels.iter().map(|l| format!("{}={l}", input.name))),
                _ => names.push(input.name.clone()),
            }
        }
        names
    }

    /// The columns of the table that are needed.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(|i| i.name.as_str())
    }

    /// The columns of the table that are read as text.
    pub(super) fn text_columns(&self) -> Vec<String> {
        self.inputs.iter().filter(|i| matches!(i.kind, Kind::Category { .. })).map(|i| i.name.clone()).collect()
    }

    /// The time axis of an encoded column, where it is one.
    pub fn axis(&self, column: usize) -> Option<&TimeAxis> {
        let mut at = 0;
        for input in &self.inputs {
            match &input.kind {
                Kind::Time { axis } if at == column => return Some(axis),
                Kind::Category { levels, .. } => at += levels.len(),
                _ => at += 1,
            }
        }
        None
    }

    /// Encodes a table: the training table again, or another one for prediction. A text that training did not see
    /// has zero in every indicator, and a note says so.
    ///
    /// # Errors
    /// When columns are not there, a cell is not what it should be, or it is missing and the policy is
    /// [`Missing::Error`].
    pub fn apply(&self, table: &Table, missing: Missing) -> Result<Encoded> {
        let names: Vec<String> = self.columns().filter(|name| !table.has(name)).map(str::to_string).collect();
        if !names.is_empty() {
            let kind = ErrorKind::MissingColumns { file: table.name().into(), names };
            return Err(Error::new(kind).with_hint("the table needs every input column the model was fitted with"));
        }
        let (mut columns, mut notes) = (Vec::new(), Vec::new());
        let mut gone = vec![false; table.n()];
        for input in &self.inputs {
            let column = table.column(&input.name)?;
            let filled = missing == Missing::Impute && input.fill(&mut notes, column.missing().len());
            if let Some(&row) = column.missing().first().filter(|_| !filled) {
                if missing != Missing::Drop {
                    return Err(choice::missing_cell(table, row, &input.name));
                }
                column.missing().iter().for_each(|&i| gone[i] = true);
            }
            input.encode(table, column, &mut columns, &mut notes)?;
        }
        let rows: Vec<usize> = (0..table.n()).filter(|&i| !gone[i]).collect();
        if rows.len() < table.n() {
            notes.push(choice::dropped(table, &gone));
        }
        let mut values = Vec::with_capacity(rows.len() * columns.len());
        for column in &columns {
            values.extend(rows.iter().map(|&i| column[i]));
        }
        Ok(Encoded { x: Points::from_values(rows.len(), columns.len(), values)?, rows, notes })
    }
}

impl Input {
    /// Whether missing cells can be filled; says so if there are any.
    fn fill(&self, notes: &mut Vec<String>, count: usize) -> bool {
        let with = match &self.kind {
            Kind::Number { fill: Some(fill) } => format!("the median {fill}"),
            Kind::Category { fill: Some(fill), .. } => format!("the most frequent `{fill}`"),
            _ => return false,
        };
        if count > 0 {
            let cells = counted(count, "missing cell");
            notes.push(format!("{cells} of column `{}` filled with {with}", self.name));
        }
        true
    }

    fn encode(
        &self,
        table: &Table,
        column: &Column,
        into: &mut Vec<Vec<f64>>,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        match &self.kind {
            Kind::Number { fill } => {
                let fill = fill.unwrap_or(0.0);
                into.push(numbers(table, column)?.into_iter().map(|v| if v.is_nan() { fill } else { v }).collect());
            }
            Kind::Time { axis } => {
                let mut values = vec![0.0; table.n()];
                for (i, value) in values.iter_mut().enumerate() {
                    let text = column.text(i);
                    if !text.is_empty() {
                        *value = axis.to_number(&text).map_err(|_| {
                            let (at, like) = (table.place(i, &self.name), axis.example());
                            Error::new(ErrorKind::NotATime { at, found: text.to_string(), like })
                        })?;
                    }
                }
                into.push(values);
            }
            Kind::Category { levels, fill } => {
                let start = into.len();
                into.resize(start + levels.len(), vec![0.0; table.n()]);
                let (mut unknown, mut first) = (0, None);
                for (row, text) in (0..table.n()).map(|row| (row, column.text(row))) {
                    let text = Some(text).filter(|t| !t.is_empty()).or_else(|| fill.as_deref().map(Cow::Borrowed));
                    let Some(text) = text else { continue };
                    match levels.iter().position(|l| *l == text) {
                        Some(level) => into[start + level][row] = 1.0,
                        None => {
                            unknown += 1;
                            first.get_or_insert(text);
                        }
                    }
                }
                if let Some(first) = first {
                    let name = &self.name;
                    let cells = counted(unknown, "cell");
                    notes.push(format!("column `{name}`: {cells} not seen in training, such as `{first}`"));
                }
            }
        }
        Ok(())
    }
}

/// The numbers of a column, NaN where a cell is missing.
pub(super) fn numbers(table: &Table, column: &Column) -> Result<Vec<f64>> {
    let values: Vec<f64> = match column.cells() {
        Cells::Numbers(values) => values.clone(),
        Cells::Text(cells) | Cells::Times(cells) => {
            let read = |(i, cell): (usize, &str)| match cell.parse::<f64>() {
                Ok(value) => Ok(value),
                Err(_) if cell.is_empty() => Ok(f64::NAN),
                Err(_) => {
                    let at = table.place(i, column.name());
                    let hint = format!("if `{cell}` means a missing cell, add it to the words that do");
                    Err(Error::new(ErrorKind::NotANumber { at, found: cell.into() }).with_hint(hint))
                }
            };
            cells.iter().enumerate().map(read).collect::<Result<_>>()?
        }
    };
    match values.iter().position(|v| v.is_infinite()) {
        Some(i) => Err(ErrorKind::Infinite { at: table.place(i, column.name()), found: values[i] }.into()),
        None => Ok(values),
    }
}

fn time(table: &Table, column: &Column, notes: &mut Vec<String>) -> Result<Kind> {
    let present: Vec<usize> = (0..table.n()).filter(|i| column.missing().binary_search(i).is_err()).collect();
    let cells: Vec<Cow<str>> = present.iter().map(|&i| column.text(i)).collect();
    let at = |i: usize| table.place(present[i], column.name());
    let Detected { axis, notes: found, .. } = TimeAxis::detect_at(column.name(), &cells, at)?;
    notes.extend(found);
    Ok(Kind::Time { axis })
}

fn category(table: &Table, column: &Column, choice: &Choice) -> Result<Kind> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut present, mut numeric) = (0, 0);
    for i in 0..table.n() {
        let text = column.text(i);
        if !text.is_empty() {
            present += 1;
            numeric += usize::from(text.parse::<f64>().is_ok());
            *counts.entry(text.into_owned()).or_default() += 1;
        }
    }
    // A column that is mostly numbers is a column of numbers with a mistake in it.
    if 2 * numeric > present && !column.is_forced_text() {
        numbers(table, column)?;
    }
    few(table, column.name(), counts.len(), choice.categories)?;
    // The first in alphabetical order among the most frequent, so that the choice does not depend on row order.
    let fill = counts.iter().rev().max_by_key(|(_, count)| **count).map(|(text, _)| text.clone());
    Ok(Kind::Category { levels: counts.into_keys().collect(), fill })
}

fn few(table: &Table, column: &str, found: usize, limit: usize) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    let error =
        Error::new(ErrorKind::TooManyCategories { file: table.name().into(), column: column.into(), found, limit });
    Err(error.with_hint(format!("exclude column `{column}`, or allow more categories")))
}

/// The median of the finite values; of an even number the lower of the middle two, which is a value that occurs.
fn median(values: &[f64]) -> Option<f64> {
    let mut finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    finite.get(finite.len().saturating_sub(1) / 2).copied()
}
