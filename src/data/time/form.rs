//! How times are written, read and written again. A form is found by trying: it must read a cell and write the same
//! text back, which is the promise that times return in the form they came.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How the times of a column are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Form {
    /// Plain numbers.
    Number(Digits),
    /// Whole years: `1961`.
    Year,
    /// Years with a fraction: `1958.25`.
    DecimalYear(Digits),
    /// Whole numbers since the start of 1970 in UTC: seconds (0), milliseconds (3), microseconds (6), nanoseconds (9).
    Epoch(u32),
    /// Year and quarter with this text between them: `2001Q3`, `2001-Q3`.
    Quarter(String),
    /// A strftime pattern, and the zone of its clock.
    Pattern(String, Zone),
}

/// Digits after the decimal point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digits {
    /// The most that occur.
    pub most: u8,
    /// Whether every number shows that many.
    pub padded: bool,
}

/// The zone of a column of times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// Not said; every day has 24 hours.
    Unknown,
    /// This many seconds ahead of UTC.
    Offset(i32),
    /// A zone by name, with its summer time: `Europe/London`.
    Named(String),
}

/// What one cell says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    Number(f64),
    Moment { civil: DateTime, zone: Zone, offset: Offset },
}

const DATES: [&str; 16] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%-d/%-m/%Y",
    "%-m/%-d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%-d %B %Y",
    "%B %-d, %Y",
    "%-d.%-m.%Y",
];
const MONTHS: [&str; 10] = ["%Y-%m", "%Y/%m", "%Y%m", "%YM%m", "%b %Y", "%b-%Y", "%B %Y", "%m/%Y", "%Y-%b", "%Y %b"];
const CLOCKS: [&str; 7] =
    ["%H:%M:%S", "%H:%M", "%H:%M:%S%.3f", "%H:%M:%S%.6f", "%H:%M:%S%.9f", "%H:%M:%S%.f", "%I:%M %p"];
const ZONES: [&str; 7] = ["", "Z", "%:z", "%z", " %:z", " UTC", "%:z[%Q]"];

/// Every form that reads this cell and writes it back, apart from those of bare numbers. Usually one; day and month
/// may be in doubt, and then there are two.
pub(super) fn forms_of(text: &str) -> Vec<Form> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if !(4..=30).contains(&digits) || text.len() > 64 || !text.is_ascii() {
        return Vec::new();
    }
    let mut forms: Vec<Form> =
        ["", "-", " ", "_"].iter().map(|s| Form::Quarter((*s).into())).filter(|f| f.keeps(text)).collect();
    let mut consider = |pattern: String| {
        if let Some((_, zone, _)) = parse(&pattern, text) {
            let form = Form::Pattern(pattern, zone);
            if form.keeps(text) {
                forms.push(form);
            }
        }
    };
    for month in MONTHS {
        consider(month.into());
    }
    for date in DATES {
        let Ok((_, end)) = BrokenDownTime::parse_prefix(date, text) else { continue };
        if end == text.len() {
            consider(date.into());
        } else if end + 1 < text.len() {
            let between = &text[end..=end];
            for clock in CLOCKS.iter().filter(|_| between == "T" || between == " ") {
                for zone in ZONES {
                    consider(format!("{date}{between}{clock}{zone}"));
                }
            }
        }
    }
    forms
}

fn parse(pattern: &str, text: &str) -> Option<(DateTime, Zone, Offset)> {
    let parts = strtime::parse(pattern, text).ok()?;
    let date = Date::new(parts.year()?, parts.month()?, parts.day().unwrap_or(1)).ok()?;
    let time = if parts.hour().is_some() { parts.to_time().ok()? } else { Time::midnight() };
    let zulu = pattern.ends_with('Z') || pattern.ends_with("UTC");
    let offset = parts.offset().unwrap_or(Offset::UTC);
    let zone = match (parts.iana_time_zone(), parts.offset()) {
        (Some(name), _) => Zone::Named(TimeZone::get(name).ok()?.iana_name()?.into()),
        (None, Some(offset)) => Zone::Offset(offset.seconds()),
        (None, None) if zulu => Zone::Offset(0),
        (None, None) => Zone::Unknown,
    };
    Some((date.to_datetime(time), zone, offset))
}

impl Form {
    /// Reading this text and writing it again gives this text.
    pub(super) fn keeps(&self, text: &str) -> bool {
        match self.read(text) {
            Some(Reading::Moment { civil, zone, offset }) => {
                // Whether the zone is the same in every row is asked elsewhere; here each cell stands in its own.
                let form = match self {
                    Self::Pattern(pattern, _) => Self::Pattern(pattern.clone(), zone),
                    other => other.clone(),
                };
                let zoned = offset.to_timestamp(civil).ok().and_then(|t| form.zoned(t).ok());
                zoned.and_then(|z| form.write(&z).ok()).is_some_and(|back| back == text)
            }
            Some(Reading::Number(_)) => true,
            None => false,
        }
    }

    /// What this text says in this form.
    pub(super) fn read(&self, text: &str) -> Option<Reading> {
        match self {
            Self::Number(_) | Self::Year | Self::DecimalYear(_) => {
                text.parse::<f64>().ok().filter(|v| v.is_finite()).map(Reading::Number)
            }
            Self::Epoch(digits) => {
                let scale = 10_i128.checked_pow(9_u32.checked_sub(*digits)?)?;
                let t = Timestamp::from_nanosecond(text.parse::<i128>().ok()?.checked_mul(scale)?).ok()?;
                let civil = Offset::UTC.to_datetime(t);
                Some(Reading::Moment { civil, zone: Zone::Offset(0), offset: Offset::UTC })
            }
            Self::Quarter(between) => {
                let (year, quarter) = text.split_at_checked(4)?;
                let quarter = quarter.strip_prefix(between.as_str())?.strip_prefix('Q')?;
                let month = 3 * quarter.parse::<i8>().ok().filter(|q| (1..=4).contains(q))? - 2;
                let civil = Date::new(year.parse().ok()?, month, 1).ok()?.to_datetime(Time::midnight());
                Some(Reading::Moment { civil, zone: Zone::Unknown, offset: Offset::UTC })
            }
            Self::Pattern(pattern, _) => {
                let (civil, zone, offset) = parse(pattern, text)?;
                Some(Reading::Moment { civil, zone, offset })
            }
        }
    }

    /// The text of a number in a form of numbers.
    pub(super) fn write_number(&self, value: f64) -> String {
        match self {
            Self::Number(digits) | Self::DecimalYear(digits) => digits.write(value),
            _ => Digits { most: 6, padded: false }.write(value),
        }
    }

    /// The text of a time in a form of dates and times.
    pub(super) fn write(&self, t: &Zoned) -> Result<String> {
        match self {
            Self::Epoch(digits) => {
                let scale = 10_i128.pow(9_u32.saturating_sub(*digits));
                Ok(t.timestamp().as_nanosecond().div_euclid(scale).to_string())
            }
            Self::Quarter(between) => Ok(format!("{:04}{between}Q{}", t.year(), (t.month() - 1) / 3 + 1)),
            Self::Pattern(pattern, _) => {
                strtime::format(pattern, t).map_err(|e| Error::time(format!("cannot write a time: {e}"), t))
            }
            _ => Err(Error::time("not a form of dates", t)),
        }
    }

    /// The zone in which times are written.
    pub(super) fn time_zone(&self) -> Result<TimeZone> {
        match self {
            Self::Pattern(_, Zone::Named(name)) => {
                TimeZone::get(name).map_err(|_| Error::time("unknown time zone", name))
            }
            Self::Pattern(_, Zone::Offset(seconds)) => Offset::from_seconds(*seconds)
                .map(TimeZone::fixed)
                .map_err(|_| Error::time("an offset from UTC out of range, in seconds", seconds)),
            _ => Ok(TimeZone::UTC),
        }
    }

    pub(super) fn zoned(&self, t: Timestamp) -> Result<Zoned> {
        Ok(t.to_zoned(self.time_zone()?))
    }

    /// The smallest difference that the text can show, in nanoseconds.
    pub(super) fn grain(&self) -> i64 {
        const SECOND: i64 = 1_000_000_000;
        match self {
            Self::Epoch(digits) => 10_i64.pow(9_u32.saturating_sub(*digits)),
            Self::Pattern(pattern, _) => match pattern {
                p if p.contains("%.9f") || p.contains("%.f") => 1,
                p if p.contains("%.6f") => 1_000,
                p if p.contains("%.3f") => 1_000_000,
                p if p.contains("%S") => SECOND,
                p if p.contains("%M") => 60 * SECOND,
                _ => 86_400 * SECOND,
            },
            _ => 86_400 * SECOND,
        }
    }

    /// Whether the text shows no more than the month.
    pub(super) fn is_monthly(&self) -> bool {
        match self {
            Self::Quarter(_) => true,
            Self::Pattern(pattern, _) => !pattern.contains("%d") && !pattern.contains("%-d"),
            _ => false,
        }
    }

    /// The form in words, where a reader would not see it at once.
    pub(super) fn remark(&self) -> Option<&'static str> {
        Some(match self {
            Self::Year => "years",
            Self::DecimalYear(_) => "decimal years",
            Self::Epoch(0) => "seconds since 1970 (UTC)",
            Self::Epoch(3) => "milliseconds since 1970 (UTC)",
            Self::Epoch(6) => "microseconds since 1970 (UTC)",
            Self::Epoch(_) => "nanoseconds since 1970 (UTC)",
            Self::Pattern(p, _) if p == "%Y%m%d" => "dates written YYYYMMDD",
            Self::Pattern(p, _) if p == "%Y%m" => "months written YYYYMM",
            Self::Pattern(p, _) if p.starts_with("%d/%m") || p.starts_with("%-d/%-m") => "day/month/year",
            Self::Pattern(p, _) if p.starts_with("%m/%d") || p.starts_with("%-m/%-d") => "month/day/year",
            _ => return None,
        })
    }
}

impl Digits {
    /// The digits these numbers have, as they are written or, for those in scientific notation, as they would be.
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Self {
        let (mut most, mut least) = (0, usize::MAX);
        for cell in cells {
            let plain = cell.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+'));
            let shortest = cell.parse::<f64>().map(|v| v.to_string()).unwrap_or_default();
            let written = if plain { cell } else { &shortest };
            let digits = written.split_once('.').map_or(0, |(_, d)| d.len());
            (most, least) = (most.max(digits), least.min(digits));
        }
        Self { most: most.min(15) as u8, padded: most == least && most <= 15 }
    }

    fn write(self, value: f64) -> String {
        let text = format!("{value:.*}", usize::from(self.most.min(15)));
        if self.padded || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').into()
    }
}
