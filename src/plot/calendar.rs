//! Ticks at the turns of years, months, days and hours, found from labels that are ISO times. The plot knows no time
//! axis: it gets positions with labels, reads the labels, and puts its ticks where the calendar turns, between them.

/// A step between ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Years(i64),
    Months(i64),
    Days(i64),
    Seconds(i64),
}

use Step::{Days, Months, Seconds, Years};

const DAY: i64 = 86_400;

/// From fine to coarse. Weeks begin on Monday.
const STEPS: [Step; 25] = [
    Seconds(1),
    Seconds(5),
    Seconds(15),
    Seconds(60),
    Seconds(300),
    Seconds(900),
    Seconds(3600),
    Seconds(10_800),
    Seconds(21_600),
    Seconds(43_200),
    Days(1),
    Days(7),
    Days(14),
    Months(1),
    Months(3),
    Months(6),
    Years(1),
    Years(2),
    Years(5),
    Years(10),
    Years(20),
    Years(50),
    Years(100),
    Years(500),
    Years(1000),
];

/// The finest calendar ticks that `fits` accepts, or nothing where the labels are not ISO times in order, or where
/// fewer than two ticks would remain.
pub(crate) fn ticks(
    labels: &[(f64, String)],
    range: (f64, f64),
    fits: impl Fn(&[(f64, String)]) -> bool,
) -> Option<Vec<(f64, String)>> {
    let mut known = Vec::with_capacity(labels.len());
    let mut precision = 0;
    for (position, label) in labels {
        let (seconds, digits) = read(label)?;
        precision = precision.max(digits);
        known.push((*position, seconds));
    }
    let rising = known.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1);
    let (&(_, first), &(_, last)) = (known.first()?, known.last()?);
    if !rising || first == last {
        return None;
    }
    let allowed = |step: &Step| match step {
        Years(_) => true,
        Months(_) => precision >= 2,
        Days(_) => precision >= 3,
        Seconds(_) => precision >= 4,
    };
    for step in STEPS.into_iter().filter(allowed) {
        if (last - first) / length(step) > 60 {
            continue;
        }
        let mut found = Vec::new();
        for turn in turns(step, first, last) {
            let position = place(&known, turn)?;
            if position >= range.0 && position <= range.1 {
                found.push((position, write(turn, step)));
            }
        }
        if found.len() >= 2 && fits(&found) {
            return Some(found);
        }
    }
    None
}

fn length(step: Step) -> i64 {
    match step {
        Years(k) => k * 365 * DAY,
        Months(k) => k * 28 * DAY,
        Days(k) => k * DAY,
        Seconds(k) => k,
    }
}

/// The turns of a step from `first` to `last`, both in seconds. `length` bounds how many there are.
fn turns(step: Step, first: i64, last: i64) -> Vec<i64> {
    let (year, month, _) = civil(first.div_euclid(DAY));
    let at = |count: i64| match step {
        Years(k) => days((year.div_euclid(k) + count) * k, 1) * DAY,
        Months(k) => {
            let months = ((year * 12 + month - 1).div_euclid(k) + count) * k;
            days(months.div_euclid(12), months.rem_euclid(12) + 1) * DAY
        }
        // Day 0 of the count, 1970-01-01, was a Thursday; day −3 was a Monday.
        Days(k) if k >= 7 => ((first.div_euclid(DAY) + 3).div_euclid(k) + count) * k * DAY - 3 * DAY,
        Days(k) => (first.div_euclid(DAY * k) + count) * k * DAY,
        Seconds(k) => (first.div_euclid(k) + count) * k,
    };
    (0..200).map(at).skip_while(|t| *t < first).take_while(|t| *t <= last).collect()
}

/// Where a moment lies, on the straight line between the labels around it.
fn place(known: &[(f64, i64)], moment: i64) -> Option<f64> {
    let after = known.partition_point(|(_, t)| *t < moment);
    let &(p1, t1) = known.get(after)?;
    if t1 == moment {
        return Some(p1);
    }
    let &(p0, t0) = known.get(after.checked_sub(1)?)?;
    Some(p0 + (p1 - p0) * ((moment - t0) as f64 / (t1 - t0) as f64))
}

fn write(seconds: i64, step: Step) -> String {
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let clock = seconds.rem_euclid(DAY);
    match step {
        Years(_) => format!("{year:04}"),
        Months(_) => format!("{year:04}-{month:02}"),
        _ if clock == 0 => format!("{year:04}-{month:02}-{day:02}"),
        Seconds(k) if k < 60 => format!("{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60),
        _ => format!("{:02}:{:02}", clock / 3600, clock / 60 % 60),
    }
}

/// Reads `1949`, `1949-01`, `1949-01-31`, `1949-01-31T12:00`, …: seconds since 1970 on the wall clock, and how many
/// parts were given. A zone is not looked at, for an axis has one.
fn read(label: &str) -> Option<(i64, usize)> {
    let label = label.trim();
    let (date, clock) = match label.split_once(['T', ' ']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (label, None),
    };
    let number = |text: &str, width: usize| {
        (text.len() == width && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i64>().ok()).flatten()
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let month = parts.next().map(|p| number(p, 2).filter(|m| (1..=12).contains(m)));
    let day = parts.next().map(|p| number(p, 2).filter(|d| (1..=31).contains(d)));
    if parts.next().is_some() {
        return None;
    }
    let precision = 1 + usize::from(month.is_some()) + usize::from(day.is_some());
    let (month, day) = (month.unwrap_or(Some(1))?, day.unwrap_or(Some(1))?);
    let start = (days(year, month) + day - 1) * DAY;
    let Some(clock) = clock else { return Some((start, precision)) };
    let hour = number(clock.get(..2)?, 2)?;
    let minute = clock.get(2..5).filter(|m| m.starts_with(':')).map_or(Some(0), |m| number(&m[1..], 2))?;
    let second = clock.get(5..8).filter(|s| s.starts_with(':')).map_or(Some(0), |s| number(&s[1..], 2))?;
    (hour < 24 && minute < 60 && second <= 60 && precision == 3)
        .then_some((start + hour * 3600 + minute * 60 + second, 4))
}

/// Days from 1970-01-01 to the first of a month, in the Gregorian calendar; years begin in March to put the leap day last.
fn days(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year - 719_468
}

/// The date of a day counted from 1970-01-01: year, month and day.
fn civil(day: i64) -> (i64, i64, i64) {
    // A guess that is never too late by more than a year, then forward to the month that holds the day.
    let mut year = 1970 + (day as f64 / 365.2425).floor() as i64 - 1;
    while days(year + 1, 1) <= day {
        year += 1;
    }
    let month = (1..=12).rev().find(|m| days(year, *m) <= day).unwrap_or(1);
    (year, month, day - days(year, month) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip() {
        assert_eq!(days(1970, 1), 0);
        assert_eq!(days(2000, 3), 11_017);
        for day in (-800_000..800_000).step_by(37) {
            let (y, m, d) = civil(day);
            assert_eq!(days(y, m) + d - 1, day);
            assert!((1..=31).contains(&d));
        }
    }

    fn at_most(n: usize) -> impl Fn(&[(f64, String)]) -> bool {
        move |ticks| ticks.len() <= n
    }

    #[test]
    fn months_become_years() {
        let labels: Vec<(f64, String)> =
            (0..168).map(|i| (i as f64, format!("{}-{:02}", 1949 + i / 12, i % 12 + 1))).collect();
        let found = ticks(&labels, (0.0, 167.0), at_most(8)).unwrap();
        assert_eq!(found[0], (12.0, "1950".to_string()));
        assert!(found.iter().all(|(p, _)| p % 12.0 == 0.0));
        let few = ticks(&labels[..10], (0.0, 9.0), at_most(8)).unwrap();
        assert_eq!(few[1].1, "1949-04");
    }

    #[test]
    fn weeks_get_ticks_where_months_turn() {
        // Every seventh day from 2024-01-03; positions are days.
        let labels: Vec<(f64, String)> = (0..30)
            .map(|i| {
                let (y, m, d) = civil(days(2024, 1) + 2 + 7 * i);
                ((7 * i) as f64, format!("{y}-{m:02}-{d:02}"))
            })
            .collect();
        let found = ticks(&labels, (0.0, 203.0), at_most(9)).unwrap();
        assert_eq!(found[0], (29.0, "2024-02".to_string()));
        assert_eq!(found[1], (58.0, "2024-03".to_string()));
    }

    #[test]
    fn hours_show_the_date_at_midnight() {
        let labels: Vec<(f64, String)> =
            (0..48).map(|h| (h as f64, format!("2024-05-{:02}T{:02}:00:00+02:00", 6 + h / 24, h % 24))).collect();
        let found = ticks(&labels, (0.0, 47.0), at_most(9)).unwrap();
        assert_eq!(found[0].1, "2024-05-06");
        assert_eq!(found[1], (6.0, "06:00".to_string()));
    }

    #[test]
    fn other_labels_are_left_alone() {
        for bad in ["", "Q1", "2024-13", "2024-01-01-01", "2024-1", "２０２４", "2024-01-01T9", "2024-01-01Té:00"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
        let falling = vec![(0.0, "2024".to_string()), (1.0, "2023".to_string())];
        assert_eq!(ticks(&falling, (0.0, 1.0), |_| true), None);
        assert_eq!(ticks(&[], (0.0, 1.0), |_| true), None);
    }
}
