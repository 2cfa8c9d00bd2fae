//! How far ahead: a number of steps, a span of the calendar, or a date; and the times that lie on the way there.

use std::str::FromStr;

use super::form::{Reading, forms_of};
use super::{TimeAxis, Unit, first_of};
use crate::error::{Error, Result};

/// How far ahead to look.
///
/// ```
/// use covary::data::Horizon;
///
/// assert_eq!("24".parse::<Horizon>()?, Horizon::Steps(24));
/// assert_eq!("2y".parse::<Horizon>()?, Horizon::Months(24));
/// assert_eq!("4w".parse::<Horizon>()?, Horizon::Seconds(4 * 7 * 86_400));
/// assert!("soon".parse::<Horizon>().is_err());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Horizon {
    /// This many steps of the series.
    Steps(usize),
    /// A span of calendar months: `18mo`, `2y`, `3q`.
    Months(i64),
    /// A span of fixed length: `90d`, `4w`, `12h`, `30min`, `45s`.
    Seconds(i64),
    /// Up to and including this time; a day, month or year means all of it.
    Until(String),
}

/// More future times than this are taken for a mistake.
const MOST: f64 = 1e6;

impl FromStr for Horizon {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let bad = |message: &str| {
            let error = Error::time(format!("not a horizon ({message})"), text);
            error.with_hint("a number of steps such as 24, or a span such as 18mo, 2y, 90d, 4w, 12h, 30min")
        };
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let count: i64 = text[..end].parse().map_err(|_| bad("a whole number must come first"))?;
        if count == 0 {
            return Err(bad("it must be at least 1"));
        }
        let times = |size: i64| count.checked_mul(size).filter(|v| *v < 1 << 40).ok_or_else(|| bad("too far"));
        Ok(match text[end..].trim().to_ascii_lowercase().as_str() {
            "" => Self::Steps(usize::try_from(count).map_err(|_| bad("too far"))?),
            "y" | "yr" | "year" | "years" => Self::Months(times(12)?),
            "q" | "quarter" | "quarters" => Self::Months(times(3)?),
            "mo" | "month" | "months" => Self::Months(times(1)?),
            "w" | "week" | "weeks" => Self::Seconds(times(7 * 86_400)?),
            "d" | "day" | "days" => Self::Seconds(times(86_400)?),
            "h" | "hour" | "hours" => Self::Seconds(times(3600)?),
            "min" | "minute" | "minutes" => Self::Seconds(times(60)?),
            "s" | "sec" | "second" | "seconds" => Self::Seconds(times(1)?),
            "m" => return Err(bad("`m` may mean months, `mo`, or minutes, `min`")),
            _ => return Err(bad("unknown unit")),
        })
    }
}

impl TimeAxis {
    /// The times after `last` up to the horizon, one step apart: number and text of each.
    ///
    /// # Errors
    /// When the horizon is shorter than one step, not after `last`, beyond the calendar, or more than a million steps;
    /// or a span of the calendar is asked of plain numbers.
    pub fn ahead(&self, last: f64, horizon: &Horizon) -> Result<Vec<(f64, String)>> {
        // A tolerance for rounding, in steps.
        const EPS: f64 = 1e-6;
        let step = self.step;
        if !(step > 0.0 && step.is_finite() && last.is_finite()) {
            return Err(Error::time("a step that leads nowhere", step));
        }
        let whole = |end: f64| ((end - last) / step + EPS).floor();
        let count = match horizon {
            Horizon::Steps(count) => *count as f64,
            Horizon::Months(_) | Horizon::Seconds(_) if !self.is_calendar() => {
                let error = Error::time("a calendar span, but the times are plain numbers like", self.to_text(last)?);
                return Err(error.with_hint("give the number of steps"));
            }
            Horizon::Months(months) => whole(self.moved(last, *months, 0)?),
            Horizon::Seconds(seconds) => whole(self.moved(last, 0, *seconds)?),
            Horizon::Until(text) => match self.period(text.trim())? {
                (end, true) => whole(end),
                (end, false) => ((end - last) / step - EPS).ceil() - 1.0,
            },
        };
        if count > MOST {
            return Err(Error::time("more than a million steps ahead, each of", self.in_words(step)));
        }
        if count < 1.0 {
            return Err(match horizon {
                Horizon::Until(text) => {
                    Error::time(format!("not one step after the last time {}", self.to_text(last)?), text)
                }
                _ => Error::time("a horizon shorter than one step of", self.in_words(step)),
            });
        }
        (1..=count as usize)
            .map(|i| {
                let number = last + i as f64 * step;
                Ok((number, self.to_text(number)?))
            })
            .collect()
    }

    /// The end of the period that a text names, and whether it belongs to it.
    fn period(&self, text: &str) -> Result<(f64, bool)> {
        let own = self.form.read(text).and_then(|r| self.number_of(&r));
        if let Some(number) = own {
            return Ok((number, true));
        }
        let year = text.parse::<i16>().ok().filter(|_| text.len() == 4 && self.unit != Unit::Number);
        if let Some(start) = year.and_then(|y| first_of(y + 1, 1)) {
            return Ok((self.number_at(start)?, false));
        }
        let forms = forms_of(text);
        if let ([form], Some(Reading::Moment { civil, .. })) = (&forms[..], forms.first().and_then(|f| f.read(text)))
        {
            let day = form.grain() >= 86_400 * 1_000_000_000 && self.unit == Unit::Second;
            let months = if form.is_monthly() { 1 } else { 0 };
            let days = if day && months == 0 { 1 } else { 0 };
            let end = civil.checked_add(jiff::Span::new().months(months).days(days));
            let end = end.map_err(|_| Error::time("beyond the calendar", text))?;
            return Ok((self.number_at(end)?, months + days == 0));
        }
        Ok((self.to_number(text)?, true))
    }

    /// The number of a clock time in the zone of this axis.
    fn number_at(&self, civil: jiff::civil::DateTime) -> Result<f64> {
        let beyond = |_| Error::time("beyond the calendar", civil);
        let offset = civil.to_zoned(self.form.time_zone()?).map_err(beyond)?.offset();
        let reading = Reading::Moment { civil, zone: super::Zone::Unknown, offset };
        self.number_of(&reading).ok_or_else(|| Error::time("beyond the calendar", civil))
    }
}
