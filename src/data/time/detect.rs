//! Finds the form of a column of times, the unit in which its axis is regular, and its step.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::path::PathBuf;

use super::form::{Digits, Form, Reading, Zone, forms_of};
use super::{NANOS, TimeAxis, Unit};
use crate::error::{Error, ErrorKind, Place, Result, Row};

/// A column of times that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Detected {
    /// The axis.
    pub axis: TimeAxis,
    /// The number of each cell.
    pub numbers: Vec<f64>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// Whether a column of numbers with this name may well hold times.
pub fn names_a_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["date", "datetime", "time", "timestamp", "year", "month", "week", "day", "quarter", "ds", "t"];
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| words.contains(&w))
}

/// Whether whole numbers as large as this can be told from one another only as text: a double has 53 bits.
pub(in crate::data) fn looks_like_epoch_nanoseconds(text: &str) -> bool {
    (18..=19).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && Form::Epoch(9).keeps(text)
}

/// Whether cells are times of one form, numbers apart.
pub(in crate::data) fn are_times(cells: &[&str]) -> bool {
    let nowhere = |_| Place { file: PathBuf::new(), row: Row::Row(0), column: String::new() };
    let form = cells.first().and_then(|_| number_form(cells).or_else(|| text_form(cells, nowhere).ok()));
    form.is_some_and(|form| !matches!(form, Form::Number(_)))
}

impl TimeAxis {
    /// The axis of a column of times. `name` is used in messages.
    ///
    /// # Errors
    /// When a cell is not a time in the form of those before it, or day and month cannot be told apart.
    ///
    /// ```
    /// use covary::data::{TimeAxis, Unit};
    ///
    /// let found = TimeAxis::detect("when", &["20240131", "20240229", "20240331"])?;
    /// assert_eq!(found.axis.unit(), Unit::Month);
    /// assert_eq!(found.notes, ["column `when` read as dates written YYYYMMDD"]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn detect<S: AsRef<str>>(name: &str, cells: &[S]) -> Result<Detected> {
        let at = |i: usize| Place { file: "times".into(), row: Row::Row(i as u64 + 1), column: name.into() };
        Self::detect_at(name, cells, at)
    }

    /// The axis of plain numbers.
    pub fn plain(numbers: &[f64]) -> Self {
        let texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
        let form = Form::Number(Digits::of(texts.iter().map(String::as_str)));
        Self::of_numbers(form, Unit::Number, numbers)
    }

    pub(in crate::data) fn detect_at<S: AsRef<str>>(
        name: &str,
        cells: &[S],
        at: impl Fn(usize) -> Place,
    ) -> Result<Detected> {
        let cells: Vec<&str> = cells.iter().map(|c| c.as_ref().trim()).collect();
        if cells.is_empty() {
            return Err(ErrorKind::TooFewRows { found: 0, needed: 1 }.into());
        }
        let form = match number_form(&cells) {
            Some(form) => form,
            None => text_form(&cells, at)?,
        };
        let mut notes: Vec<String> =
            form.remark().map(|what| format!("column `{name}` read as {what}")).into_iter().collect();
        let readings: Vec<Reading> = cells.iter().filter_map(|c| form.read(c)).collect();
        let unit = if matches!(form, Form::Number(_)) { Unit::Number } else { Unit::Year };
        let numbers: Vec<f64> =
            readings.iter().filter_map(|r| if let Reading::Number(v) = r { Some(*v) } else { None }).collect();
        if numbers.len() == cells.len() {
            return Ok(Detected { axis: Self::of_numbers(form, unit, &numbers), numbers, notes });
        }
        let mut axis = Self::of_moments(form, &readings);
        let numbers: Vec<f64> = readings.iter().filter_map(|r| axis.number_of(r)).collect();
        if numbers.len() != cells.len() {
            return Err(Error::time("a time beyond the calendar in column", name));
        }
        axis.step = axis.usual_step(&numbers);
        if let Some(zone) = one_zone(&mut axis, &readings, &numbers) {
            notes.push(format!("column `{name}` changes its offset from UTC; times ahead are written with {zone}"));
        }
        Ok(Detected { axis, numbers, notes })
    }

    fn of_numbers(form: Form, unit: Unit, numbers: &[f64]) -> Self {
        let mut axis = Self { form, unit, origin: 0, day: 1, clock: 0, grain: 1_000_000_000, step: 1.0 };
        axis.step = axis.usual_step(numbers);
        axis
    }

    /// Months if the times keep to a day of the month, days if they keep to a time of the day, else seconds.
    fn of_moments(form: Form, readings: &[Reading]) -> Self {
        let moments: Vec<(DateTime, Offset)> = readings
            .iter()
            .filter_map(
                |r| if let Reading::Moment { civil, offset, .. } = r { Some((*civil, *offset)) } else { None },
            )
            .collect();
        let civil: Vec<DateTime> = moments.iter().map(|m| m.0).collect();
        let clock = civil
            .first()
            .map_or(0, |c| 3600 * i64::from(c.hour()) + 60 * i64::from(c.minute()) + i64::from(c.second()));
        let several = civil.iter().any(|c| c.date() != civil[0].date());
        let dated = form.grain() >= 86_400 * 1_000_000_000;
        let same_clock = civil.iter().all(|c| c.time() == civil[0].time() && c.subsec_nanosecond() == 0);
        let mut axis = Self { unit: Unit::Second, origin: 0, day: 1, clock, grain: form.grain(), step: 1.0, form };
        if axis.form.is_monthly() {
            axis.unit = Unit::Month;
        } else if dated || (several && same_clock) {
            let day = kept_day(&civil).filter(|_| several);
            (axis.unit, axis.day) = day.map_or((Unit::Day, 1), |day| (Unit::Month, day));
        } else {
            let nanos: Vec<i128> =
                moments.iter().filter_map(|(c, o)| Some(o.to_timestamp(*c).ok()?.as_nanosecond())).collect();
            axis.clock = 0;
            axis.origin = nanos.first().map_or(0, |t| t.div_euclid(NANOS) as i64);
            // Beyond 104 days a double of seconds no longer tells single nanoseconds apart, and need not.
            let grains = [1_000_000_000, 1_000_000, 1_000, 1];
            let shared = grains.into_iter().find(|g| nanos.iter().all(|t| t % i128::from(*g) == 0));
            axis.grain = axis.grain.max(shared.unwrap_or(1));
        }
        axis
    }

    /// The median distance between neighbours, made whole where the calendar says so.
    fn usual_step(&self, numbers: &[f64]) -> f64 {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let mut steps: Vec<f64> = sorted.windows(2).map(|w| w[1] - w[0]).collect();
        steps.sort_by(f64::total_cmp);
        let Some(&step) = steps.get(steps.len().saturating_sub(1) / 2) else { return 1.0 };
        match self.unit {
            Unit::Month | Unit::Day => step.round().max(1.0),
            Unit::Year => {
                // Decimal years of a monthly series step by twelfths, whatever their rounding.
                let months = (12.0 * step).round();
                if months >= 1.0 && (12.0 * step - months).abs() < 0.02 { months / 12.0 } else { step }
            }
            Unit::Second if step.round() >= 1.0 && (step - step.round()).abs() < 1e-6 => step.round(),
            Unit::Number => {
                // The usual rounding of a written step: 0.1, not 0.09999999999999998.
                let short = format!("{step:.12e}").parse::<f64>().unwrap_or(step);
                if short > 0.0 { short } else { step }
            }
            Unit::Second => step,
        }
    }
}

/// The form of a column in which every cell is a bare number.
fn number_form(cells: &[&str]) -> Option<Form> {
    let numbers: Vec<f64> =
        cells.iter().map(|c| c.parse::<f64>().ok().filter(|v| v.is_finite())).collect::<Option<_>>()?;
    let within = |low: f64, high: f64| numbers.iter().all(|v| (low..high).contains(v));
    let keeps = |form: &Form| cells.iter().all(|c| form.keeps(c));
    if cells.iter().all(|c| c.bytes().all(|b| b.is_ascii_digit())) {
        let dated = |pattern: &str| Form::Pattern(pattern.into(), Zone::Unknown);
        let epochs = [(1e8, 1e11, 0), (1e11, 1e14, 3), (1e14, 1e17, 6), (1e17, 9.3e18, 9)];
        let epoch = epochs.iter().find(|(low, high, _)| within(*low, *high)).map(|e| Form::Epoch(e.2));
        if within(1500.0, 2200.0) {
            return Some(Form::Year);
        }
        let written = if within(1.5e7, 2.2e7) { Some(dated("%Y%m%d")) } else { None };
        let written = written.or(if within(1.5e5, 2.2e5) { Some(dated("%Y%m")) } else { None });
        if let Some(form) = written.or(epoch).filter(keeps) {
            return Some(form);
        }
    } else if within(1500.0, 2200.0) && numbers.iter().any(|v| v.fract() != 0.0) {
        return Some(Form::DecimalYear(Digits::of(cells.iter().copied())));
    }
    Some(Form::Number(Digits::of(cells.iter().copied())))
}

/// The one form that reads every cell.
fn text_form(cells: &[&str], at: impl Fn(usize) -> Place) -> Result<Form> {
    let mut forms = forms_of(cells[0]);
    for (i, cell) in cells.iter().enumerate() {
        forms.retain(|f| f.keeps(cell));
        if forms.is_empty() {
            let like = if i == 0 { String::new() } else { cells[0].to_string() };
            let kind = ErrorKind::NotATime { at: at(i), found: shortened(cell), like };
            return Err(
                Error::new(kind).with_hint("dates as 2024-01-31, months as 2024-01, times as 2024-01-31T12:00")
            );
        }
    }
    let differ = |f: &Form| cells.iter().any(|c| f.read(c) != forms[0].read(c));
    if forms.iter().any(differ) {
        let found = format!("{} at {}", cells[0], at(0));
        let error = Error::time("day and month cannot be told apart in any row", found);
        return Err(error.with_hint("write dates as year-month-day"));
    }
    Ok(forms.swap_remove(0))
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.into() } else { text.chars().take(57).chain("...".chars()).collect() }
}

/// The day of the month that every date keeps to: 31 for the month's end, or the last day of shorter months.
fn kept_day(dates: &[DateTime]) -> Option<i8> {
    let last = |d: &DateTime| d.date().days_in_month();
    if dates.iter().all(|d| d.day() == last(d)) {
        return Some(31);
    }
    let day = dates.iter().map(|d| d.day()).max()?;
    dates.iter().all(|d| d.day() == day.min(last(d))).then_some(day)
}

/// Gives the axis the zone of the latest time. Its name, if the zone was not the same throughout.
fn one_zone(axis: &mut TimeAxis, readings: &[Reading], numbers: &[f64]) -> Option<String> {
    let zones: Vec<&Zone> = readings
        .iter()
        .filter_map(|r| if let Reading::Moment { zone, .. } = r { Some(zone) } else { None })
        .collect();
    let latest = (0..numbers.len()).max_by(|a, b| numbers[*a].total_cmp(&numbers[*b]))?;
    let zone = (*zones.get(latest)?).clone();
    if let Form::Pattern(_, of_axis) = &mut axis.form {
        *of_axis = zone.clone();
    }
    zones.iter().any(|z| **z != zone).then(|| match zone {
        Zone::Named(name) => name,
        Zone::Offset(seconds) => Offset::from_seconds(seconds).map_or_else(|_| String::new(), |o| o.to_string()),
        Zone::Unknown => "none".into(),
    })
}
