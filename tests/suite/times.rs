//! Times become numbers on a regular axis and return in the form they came; a month is a month.

use covary::data::{Choice, Form, Horizon, ReadOptions, Table, TimeAxis, Unit, Zone};
use covary::{Dataset, Error};
use jiff::civil::date;
use jiff::{Span, Timestamp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn axis(cells: &[&str]) -> TimeAxis {
    TimeAxis::detect("t", cells).unwrap().axis
}

fn ahead(cells: &[&str], horizon: &str) -> Vec<String> {
    let axis = axis(cells);
    let last = axis.to_number(cells[cells.len() - 1]).unwrap();
    axis.ahead(last, &horizon.parse().unwrap()).unwrap().into_iter().map(|t| t.1).collect()
}

fn until(cells: &[&str], text: &str) -> Result<Vec<String>, Error> {
    let axis = axis(cells);
    let last = axis.to_number(cells[cells.len() - 1])?;
    Ok(axis.ahead(last, &Horizon::Until(text.into()))?.into_iter().map(|t| t.1).collect())
}

#[test]
fn times_return_in_the_form_they_came() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let patterns = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y%m%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%-d/%-m/%Y",
        "%-m/%-d/%Y",
        "%d %b %Y",
        "%d-%b-%Y",
        "%b %d, %Y",
        "%Y-%m",
        "%Y/%m",
        "%Y%m",
        "%YM%m",
        "%b %Y",
        "%B %Y",
        "%YQ%q",
        "%Y-Q%q",
        "%Y",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%dT%H:%M:%S%.3fZ",
        "%Y-%m-%d %H:%M:%S%.6f",
        "%Y-%m-%dT%H:%M:%S%:z",
        "%Y-%m-%d %H:%M:%S%z",
        "%Y-%m-%dT%H:%M:%S%:z[%Q]",
        "%d/%m/%Y %H:%M",
        "%Y-%m-%d %I:%M %p",
        "%s",
    ];
    for pattern in patterns {
        for zone in ["UTC", "Europe/London", "America/New_York"] {
            // Half of the columns keep to midnight, as daily data does.
            for midnight in [false, true] {
                let cells: Vec<String> = (0..60)
                    .map(|_| {
                        let day = date(1950, 1, 1) + Span::new().days(rng.random_range(10_000..36_000));
                        let seconds = if midnight { 0 } else { rng.random_range(0..86_400) };
                        let civil = day.to_datetime(jiff::civil::Time::midnight()) + Span::new().seconds(seconds);
                        civil.in_tz(zone).unwrap().strftime(pattern).to_string()
                    })
                    .collect();
                let found = TimeAxis::detect("t", &cells).unwrap_or_else(|e| panic!("{pattern} {zone}: {e}"));
                let mixed = pattern.contains("z") && !pattern.contains("%Q") && zone != "UTC";
                for (cell, number) in cells.iter().zip(&found.numbers) {
                    let back = found.axis.to_text(*number).unwrap();
                    if mixed {
                        // Offsets change with summer time and no zone is named: the same moment, or the same clock.
                        assert!(found.axis.unit() == Unit::Day || found.axis.to_number(&back).unwrap() == *number);
                    } else {
                        assert_eq!(&back, cell, "{pattern} {zone}");
                        assert_eq!(found.axis.to_number(cell).unwrap(), *number);
                    }
                }
                let stored = serde_json::to_string(&found.axis).unwrap();
                assert_eq!(serde_json::from_str::<TimeAxis>(&stored).unwrap(), found.axis);
            }
        }
    }
}

#[test]
fn epochs_are_told_apart_and_said() {
    for (cells, digits, what) in [
        (["1700000000", "1700003600"], 0, "seconds"),
        (["1700000000123", "1700003600123"], 3, "milliseconds"),
        (["1700000000123456", "1700003600123456"], 6, "microseconds"),
        (["1700000000123456789", "1700003600123456789"], 9, "nanoseconds"),
    ] {
        let found = TimeAxis::detect("t", &cells).unwrap();
        assert_eq!(found.axis.form(), &Form::Epoch(digits));
        assert!(found.notes[0].contains(what), "{:?}", found.notes);
        assert_eq!(found.axis.step(), 3600.0);
        for (cell, number) in cells.iter().zip(found.numbers) {
            assert_eq!(&found.axis.to_text(number).unwrap(), cell);
        }
    }
    let text = "t,y\n1700000000123456789,1\n1700000000123456790,2\n1700000000123456791,3\n";
    let table = Table::read(text.as_bytes(), "t", &ReadOptions::default()).unwrap();
    let data = Dataset::from_table(&table, &Choice::new("y")).unwrap();
    assert_eq!(data.ahead_to(&Horizon::Steps(1)).unwrap()[0].1, "1700000000123456792");
}

#[test]
fn the_axis_is_regular_where_the_calendar_is() {
    for (cells, unit, step) in [
        (&["1949-01", "1949-02", "1949-03"][..], Unit::Month, 1.0),
        (&["2020-01-31", "2020-02-29", "2020-03-31"], Unit::Month, 1.0),
        (&["2020-01-30", "2020-02-29", "2020-03-30"], Unit::Month, 1.0),
        (&["2020-01-01", "2020-04-01", "2020-07-01"], Unit::Month, 3.0),
        (&["2020-12-31", "2021-12-31", "2022-12-31"], Unit::Month, 12.0),
        (&["2020-01-01", "2020-01-02", "2020-01-05", "2020-01-06"], Unit::Day, 1.0),
        (&["2020-01-01", "2020-01-08", "2020-01-15"], Unit::Day, 7.0),
        (&["2020-01-01 06:30", "2020-01-02 06:30"], Unit::Day, 1.0),
        (&["2020-01-01 06:30", "2020-01-01 07:30"], Unit::Second, 3600.0),
        (&["2001Q3", "2001Q4", "2002Q1"], Unit::Month, 3.0),
        (&["1961", "1962", "1964", "1965"], Unit::Year, 1.0),
        (&["0.1", "0.2", "0.3"], Unit::Number, 0.1),
    ] {
        let axis = axis(cells);
        assert_eq!((axis.unit(), axis.step()), (unit, step), "{cells:?}");
    }
    let mauna = axis(&["1958.16666666667", "1958.25000000000", "1958.33333333333"]);
    assert_eq!((mauna.unit(), mauna.step()), (Unit::Year, 1.0 / 12.0));
    assert_eq!(mauna.to_text(1958.0 + 5.0 / 12.0).unwrap(), "1958.41666666667");
}

#[test]
fn horizons_follow_the_calendar() {
    assert_eq!(ahead(&["2019-12-31", "2020-01-31"], "3"), ["2020-02-29", "2020-03-31", "2020-04-30"]);
    assert_eq!(ahead(&["2020-11-30", "2020-12-30", "2021-01-30"], "2"), ["2021-02-28", "2021-03-30"]);
    assert_eq!(ahead(&["1960-11", "1960-12"], "2y").last().unwrap(), "1962-12");
    assert_eq!(ahead(&["1960-11", "1960-12"], "18mo").len(), 18);
    assert_eq!(ahead(&["1960-11", "1960-12"], "90d").len(), 3);
    assert_eq!(ahead(&["2020-01-28", "2020-01-29"], "1mo").last().unwrap(), "2020-02-29");
    assert_eq!(ahead(&["2020-01-01", "2020-01-08"], "4w").last().unwrap(), "2020-02-05");
    assert_eq!(ahead(&["2020-01-01T22:00", "2020-01-01T23:00"], "12h").last().unwrap(), "2020-01-02T11:00");
    assert_eq!(ahead(&["2001Q3", "2001Q4"], "1y"), ["2002Q1", "2002Q2", "2002Q3", "2002Q4"]);
    assert_eq!(ahead(&["1960", "1961"], "3y"), ["1962", "1963", "1964"]);
    assert_eq!(ahead(&["0.1", "0.2"], "2"), ["0.3", "0.4"]);
    assert_eq!(ahead(&["20231230", "20231231"], "1"), ["20240101"]);
    assert_eq!(ahead(&["1703894400", "1703980800"], "1"), ["1704067200"]);
}

#[test]
fn until_includes_the_period_it_names() {
    let months = ["1960-11", "1960-12"];
    assert_eq!(until(&months, "1961-02").unwrap(), ["1961-01", "1961-02"]);
    assert_eq!(until(&months, "1961").unwrap().len(), 12);
    assert_eq!(until(&months, "1961-02-15").unwrap().len(), 2);
    let days = ["2020-01-30", "2020-01-31"];
    assert_eq!(until(&days, "2020-02").unwrap().len(), 29);
    assert_eq!(until(&days, "2020-02-03").unwrap().len(), 3);
    let hours = ["2020-01-30T10:00", "2020-01-30T11:00"];
    assert_eq!(until(&hours, "2020-01-30").unwrap().last().unwrap(), "2020-01-30T23:00");
    assert_eq!(until(&["5", "6"], "8").unwrap(), ["7", "8"]);
    assert!(until(&months, "1960-12").unwrap_err().to_string().contains("not one step after"));
    assert!(until(&months, "never").is_err());
}

#[test]
fn horizons_that_make_no_sense_are_errors() {
    for text in ["", "0", "-3", "3m", "two", "1.5y", "99999999999999999999", "9999999999999y", "5 parsecs"] {
        assert!(text.parse::<Horizon>().is_err(), "{text}");
    }
    let plain = axis(&["1", "2"]);
    assert!(plain.ahead(2.0, &Horizon::Months(3)).is_err());
    let months = axis(&["1960-11", "1960-12"]);
    let last = months.to_number("1960-12").unwrap();
    assert!(months.ahead(last, &Horizon::Seconds(86_400)).unwrap_err().to_string().contains("1 month"));
    for horizon in [Horizon::Steps(2_000_000), Horizon::Steps(999_999), Horizon::Months(1 << 39)] {
        assert!(months.ahead(last, &horizon).is_err());
    }
    for number in [f64::NAN, f64::INFINITY, 1e300, -1e9] {
        assert!(months.to_text(number).is_err());
        assert!(axis(&["2020-01-01T10:00", "2020-01-01T11:00"]).to_text(number * 1e9).is_err());
    }
}

#[test]
fn summer_time_is_handled() {
    // The night of 31 March 2024 has no 01:30 in London, and 27 October has it twice.
    let zoned = |t: i64| Timestamp::from_second(t).unwrap().in_tz("Europe/London").unwrap();
    for start in [1_711_846_800, 1_729_983_600] {
        let cells: Vec<String> =
            (0..48).map(|h| zoned(start + 1800 * h).strftime("%Y-%m-%dT%H:%M:%S%:z[%Q]").to_string()).collect();
        let found = TimeAxis::detect("t", &cells).unwrap();
        assert_eq!(found.axis.step(), 1800.0);
        assert!(matches!(found.axis.form(), Form::Pattern(_, Zone::Named(name)) if name == "Europe/London"));
        for (cell, number) in cells.iter().zip(&found.numbers) {
            assert_eq!(&found.axis.to_text(*number).unwrap(), cell);
        }
    }
    // Daily at local midnight through the change: days stay days and offsets follow the zone.
    let cells = ["2024-03-29T00:00:00+00:00[Europe/London]", "2024-03-30T00:00:00+00:00[Europe/London]"];
    assert_eq!(ahead(&cells, "2").last().unwrap(), "2024-04-01T00:00:00+01:00[Europe/London]");
    // Offsets that change with no zone named: said, and written with the last.
    let found = TimeAxis::detect("t", &["2024-03-30T12:00:00+00:00", "2024-03-31T13:30:00+01:00"]).unwrap();
    assert!(found.notes[0].contains("changes its offset"), "{:?}", found.notes);
}

#[test]
fn day_and_month_in_doubt_are_an_error() {
    let error = TimeAxis::detect("t", &["01/02/2020", "03/04/2020"]).unwrap_err();
    assert!(error.to_string().contains("cannot be told apart"), "{error}");
    assert_eq!(ahead(&["30/01/2020", "31/01/2020"], "1"), ["01/02/2020"]);
    assert!(TimeAxis::detect("t", &["2020-01-01", "soon"]).unwrap_err().to_string().contains("row 2"));
    assert!(TimeAxis::detect::<&str>("t", &[]).is_err());
}

#[test]
fn lengths_are_told_in_calendar_units() {
    let months = axis(&["1960-11", "1960-12"]);
    for (length, words) in
        [(12.0, "1 year"), (1.0, "1 month"), (30.0, "2.5 years"), (0.5, "15.2 days"), (11.99, "1 year")]
    {
        assert_eq!(months.in_words(length), words);
    }
    let days = axis(&["2020-01-01", "2020-01-02"]);
    for (length, words) in [(7.0, "7 days"), (365.25, "1 year"), (0.25, "6 hours"), (90.0, "90 days")] {
        assert_eq!(days.in_words(length), words);
    }
    assert_eq!(axis(&["1958.25", "1958.5"]).in_words(1.0 / 12.0), "1 month");
    assert_eq!(axis(&["5", "6"]).in_words(0.12345), "0.123");
}

#[test]
fn a_series_is_sorted_and_continued() {
    let read = |text: &'static str| Table::read(text.as_bytes(), "t", &ReadOptions::default()).unwrap();
    let table = read("day,y\n2020-01-03,3\n2020-01-01,1\n2020-01-02,2\n");
    let data = Dataset::from_table(&table, &Choice::new("y")).unwrap();
    assert_eq!(data.y(), [1.0, 2.0, 3.0]);
    assert!(data.notes().iter().any(|n| n.contains("put in order")));
    let next = data.ahead(2);
    assert_eq!(data.axis(0).unwrap().to_text(next.column(0)[1]).unwrap(), "2020-01-05");
    let (choice, notes) = Choice::series(&table, None, None, None).unwrap();
    assert_eq!((choice.time.as_deref(), choice.target.as_str(), notes.len()), (Some("day"), "y", 2));
    // Repeats of a plain number are replicates, not duplicate times.
    assert_eq!(Dataset::from_table(&read("x,y\n1,2\n1,3\n"), &Choice::new("y")).unwrap().n(), 2);
    assert_eq!(Dataset::from_table(&read("a,b,y\n1,2,3\n4,5,6\n"), &Choice::new("y")).unwrap().ahead(3).n(), 0);
}
