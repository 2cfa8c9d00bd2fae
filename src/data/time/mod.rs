//! Times become numbers and return to text in the form they came. The axis is chosen so that a calendar series is
//! regular: months are counted in months, days in days, anything finer in seconds. Knows nothing of models.

mod detect;
mod form;
mod horizon;
mod words;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
pub use detect::{Detected, names_a_time};
pub(super) use detect::{are_times, looks_like_epoch_nanoseconds};
use form::Reading;
pub use form::{Digits, Form, Zone};
pub use horizon::Horizon;

/// What 1.0 on the axis means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// The column's own number.
    Number,
    /// A year.
    Year,
    /// A month of the calendar, whatever its length.
    Month,
    /// A day of the calendar.
    Day,
    /// A second.
    Second,
}

/// A column of times as an axis of numbers.
///
/// ```
/// use covary::data::{Horizon, TimeAxis};
///
/// let axis = TimeAxis::detect("month", &["1960-10", "1960-11", "1960-12"])?.axis;
/// let last = axis.to_number("1960-12")?;
/// let ahead = axis.ahead(last, &Horizon::Steps(2))?;
/// assert_eq!(ahead[1].1, "1961-02");
/// assert_eq!(axis.in_words(12.0), "1 year");
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeAxis {
    /// How the times are written.
    form: Form,
    /// What 1.0 means.
    unit: Unit,
    /// The second of the Unix epoch that is 0; only for an axis of seconds.
    origin: i64,
    /// Day of the month on which an axis of months counts; 31 is the month's end.
    day: i8,
    /// Second of the day at which an axis of days or months counts.
    clock: i64,
    /// The smallest difference that is written, in nanoseconds.
    grain: i64,
    /// Distance from one time to the next, in units of the axis.
    step: f64,
}

const DAY: f64 = 86_400.0;
/// Days of a year.
const YEAR: f64 = 365.2425;
const NANOS: i128 = 1_000_000_000;

impl TimeAxis {
    /// How the times are written.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// What 1.0 on the axis means.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The usual distance from one time to the next, in units of the axis.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// What times this far apart often repeat with, in units of the axis, the shortest first: days, weeks and years.
    ///
    /// ```
    /// use covary::data::TimeAxis;
    ///
    /// let axis = TimeAxis::detect("quarter", &["1960-01-01", "1960-04-01", "1960-07-01"])?.axis;
    /// assert_eq!(axis.cycles(), [12.0]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn cycles(&self) -> Vec<f64> {
        let (day, week, year) = match self.unit {
            Unit::Number => return vec![],
            Unit::Year => (1.0 / YEAR, 7.0 / YEAR, 1.0),
            Unit::Month => (12.0 / YEAR, 84.0 / YEAR, 12.0),
            Unit::Day => (1.0, 7.0, YEAR),
            Unit::Second => (DAY, 7.0 * DAY, YEAR * DAY),
        };
        // Two times a repetition are the least that show it.
        [day, week, year].into_iter().filter(|cycle| 2.0 * self.step <= 1.001 * cycle).collect()
    }

    /// Whether the column holds real times and not plain numbers.
    pub fn is_calendar(&self) -> bool {
        self.unit != Unit::Number
    }

    /// The number of a time. Text in the column's own form, or in any other form of dates that is not ambiguous.
    ///
    /// # Errors
    /// When the text is not a time of this axis.
    pub fn to_number(&self, text: &str) -> Result<f64> {
        let text = text.trim();
        let reading = self.form.read(text).or_else(|| match &form::forms_of(text)[..] {
            [one] => one.read(text),
            _ => None,
        });
        match reading {
            Some(reading) => self.number_of(&reading).ok_or_else(|| Error::time("a time out of range", text)),
            None => Err(Error::time(format!("not a time like {}", self.example()), text)),
        }
    }

    /// The text of a number of this axis, in the form of the column.
    ///
    /// # Errors
    /// When the number lies beyond the calendar (years −9999 to 9999).
    pub fn to_text(&self, number: f64) -> Result<String> {
        match self.form {
            Form::Number(_) | Form::Year | Form::DecimalYear(_) if number.is_finite() => {
                Ok(self.form.write_number(number))
            }
            _ => self.form.write(&self.zoned(number)?),
        }
    }

    /// A time in the form of the column, for messages.
    pub(super) fn example(&self) -> String {
        let number = match self.unit {
            Unit::Year => 1961.0,
            Unit::Month => 12.0 * 1961.0,
            _ => 0.0,
        };
        self.to_text(number).unwrap_or_default()
    }

    fn number_of(&self, reading: &Reading) -> Option<f64> {
        let (civil, offset) = match reading {
            Reading::Number(value) => return matches!(self.unit, Unit::Number | Unit::Year).then_some(*value),
            Reading::Moment { civil, offset, .. } => (*civil, *offset),
        };
        match self.unit {
            Unit::Number => None,
            Unit::Year => {
                let (start, next) = (first_of(civil.year(), 1)?, first_of(civil.year().checked_add(1)?, 1)?);
                Some(f64::from(civil.year()) + seconds_between(start, civil) / seconds_between(start, next))
            }
            Unit::Month => {
                // k + the part of the way from this month's day to the next one's.
                let mut k = 12 * i64::from(civil.year()) + i64::from(civil.month()) - 1;
                if self.day_of(k)? > civil {
                    k -= 1;
                }
                let (start, next) = (self.day_of(k)?, self.day_of(k + 1)?);
                Some(k as f64 + seconds_between(start, civil) / seconds_between(start, next))
            }
            Unit::Day => Some((seconds_between(epoch(), civil) - self.clock as f64) / DAY),
            Unit::Second => {
                let nanos = offset.to_timestamp(civil).ok()?.as_nanosecond();
                let whole = nanos.div_euclid(NANOS) - i128::from(self.origin);
                Some(whole as f64 + nanos.rem_euclid(NANOS) as f64 / NANOS as f64)
            }
        }
    }

    /// The moment of a number, rounded to what the form can show.
    fn zoned(&self, number: f64) -> Result<Zoned> {
        let beyond = || Error::time("beyond the calendar", number);
        let civil = match self.unit {
            Unit::Second => {
                let nanos = self.rounded(number).ok_or_else(beyond)? + i128::from(self.origin) * NANOS;
                return self.form.zoned(Timestamp::from_nanosecond(nanos).map_err(|_| beyond())?);
            }
            Unit::Day => self.after(epoch(), self.clock as f64 + number * DAY),
            Unit::Month => self.month_number(number),
            Unit::Year => {
                let year = number.floor();
                let start = if year.abs() < 9999.0 { first_of(year as i16, 1) } else { None };
                start.and_then(|s| {
                    let next = first_of(year as i16 + 1, 1)?;
                    self.after(s, (number - year) * seconds_between(s, next))
                })
            }
            Unit::Number => None,
        };
        civil.and_then(|c| c.to_zoned(self.form.time_zone().ok()?).ok()).ok_or_else(beyond)
    }

    fn month_number(&self, number: f64) -> Option<DateTime> {
        if number.is_nan() || number.abs() > 12.0 * 9999.0 {
            return None;
        }
        // A number that is whole up to rounding is the day itself.
        let near = number.round();
        if (number - near).abs() < 1e-6 || self.form.is_monthly() {
            return self.day_of(near as i64);
        }
        let k = number.floor();
        let (start, next) = (self.day_of(k as i64)?, self.day_of(k as i64 + 1)?);
        self.after(start, (number - k) * seconds_between(start, next))
    }

    /// The day and time in month k (months since year 0) at which an axis of months counts.
    fn day_of(&self, k: i64) -> Option<DateTime> {
        let first = first_of(i16::try_from(k.div_euclid(12)).ok()?, k.rem_euclid(12) as i8 + 1)?;
        let day = self.day.clamp(1, first.date().days_in_month());
        let start = Date::new(first.year(), first.month(), day).ok()?.to_datetime(Time::midnight());
        start.checked_add(SignedDuration::from_secs(self.clock)).ok()
    }

    fn after(&self, start: DateTime, seconds: f64) -> Option<DateTime> {
        let nanos = self.rounded(seconds)?;
        let duration = SignedDuration::new((nanos / NANOS) as i64, (nanos % NANOS) as i32);
        start.checked_add(duration).ok()
    }

    /// Seconds as whole nanoseconds, a multiple of what the form shows.
    fn rounded(&self, seconds: f64) -> Option<i128> {
        if seconds.is_nan() || seconds.abs() > 1e12 {
            return None;
        }
        let (whole, grain) = (seconds.trunc(), i128::from(self.grain.max(1)));
        let nanos = whole as i128 * NANOS + ((seconds - whole) * NANOS as f64).round() as i128;
        Some((nanos + grain / 2).div_euclid(grain) * grain)
    }

    /// Moves a number by whole months and seconds of the calendar.
    fn moved(&self, number: f64, months: i64, seconds: i64) -> Result<f64> {
        let beyond = || Error::time("beyond the calendar", number);
        match self.unit {
            Unit::Number => return Err(Error::time("plain numbers have no calendar", number)),
            Unit::Year => return Ok(number + months as f64 / 12.0 + seconds as f64 / (YEAR * DAY)),
            Unit::Month if seconds == 0 => return Ok(number + months as f64),
            Unit::Day if months == 0 => return Ok(number + seconds as f64 / DAY),
            Unit::Second if months == 0 => return Ok(number + seconds as f64),
            _ => {}
        }
        let start = self.zoned(number)?.datetime();
        let span = jiff::Span::new().try_months(months).map_err(|_| beyond())?;
        let civil = start.checked_add(span).ok().ok_or_else(beyond)?;
        let civil = civil.checked_add(SignedDuration::from_secs(seconds)).map_err(|_| beyond())?;
        let offset = civil.to_zoned(self.form.time_zone()?).map_err(|_| beyond())?.offset();
        self.number_of(&Reading::Moment { civil, zone: Zone::Unknown, offset }).ok_or_else(beyond)
    }
}

fn epoch() -> DateTime {
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0)
}

fn first_of(year: i16, month: i8) -> Option<DateTime> {
    Some(Date::new(year, month, 1).ok()?.to_datetime(Time::midnight()))
}

fn seconds_between(start: DateTime, end: DateTime) -> f64 {
    let nanos = end.duration_since(start).as_nanos();
    nanos.div_euclid(NANOS) as f64 + nanos.rem_euclid(NANOS) as f64 / NANOS as f64
}
