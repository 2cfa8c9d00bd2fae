//! Lengths along a time axis in the words of the calendar.

use super::{DAY, TimeAxis, Unit};

const YEAR: f64 = super::YEAR * DAY;
const MONTH: f64 = YEAR / 12.0;
const SIZES: [(&str, f64); 6] =
    [("year", YEAR), ("month", MONTH), ("day", DAY), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)];

impl TimeAxis {
    /// A length on this axis, such as a period or a lengthscale, in calendar units.
    ///
    /// ```
    /// use covary::data::TimeAxis;
    ///
    /// let months = TimeAxis::detect("month", &["1960-11", "1960-12"])?.axis;
    /// assert_eq!(months.in_words(12.0), "1 year");
    /// assert_eq!(months.in_words(5.5), "5.5 months");
    /// let days = TimeAxis::detect("day", &["1960-11-03", "1960-11-04"])?.axis;
    /// assert_eq!(days.in_words(7.0), "7 days");
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn in_words(&self, length: f64) -> String {
        let seconds = match self.unit {
            Unit::Number => return short(length),
            Unit::Year => length * YEAR,
            Unit::Month => length * MONTH,
            Unit::Day => length * 86_400.0,
            Unit::Second => length,
        };
        // On an axis of days nobody thinks of 90 days as 2.96 months.
        let months = matches!(self.unit, Unit::Year | Unit::Month);
        let fits = |(name, size): &&(&str, f64)| seconds.abs() >= 0.99 * size && (months || *name != "month");
        let (name, size) = SIZES.iter().find(fits).unwrap_or(&SIZES[5]);
        let amount = short(seconds / size);
        let plural = if amount == "1" { "" } else { "s" };
        format!("{amount} {name}{plural}")
    }
}

/// Three significant digits; what is within half a percent of a whole number is that number.
fn short(value: f64) -> String {
    let whole = value.round();
    if value == 0.0 || (whole != 0.0 && (value - whole).abs() < 0.005 * value.abs() && value.abs() < 1e6) {
        return whole.to_string();
    }
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    if (1e-4..1e6).contains(&value.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}
