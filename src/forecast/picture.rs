//! The picture and the page of a forecast.

use super::{Backtest, Finding, Fitted, Forecast, by_time};
use crate::data::TimeAxis;
use crate::error::Result;
use crate::fit::{Account, Link};
use crate::plot::{ForecastPlot, Page};

/// Texts of more times than this help no axis.
const LABELS: usize = 2000;
/// The past takes at most so many times the room of the forecast, unless it has few values.
const PAST: usize = 8;
const FEW: usize = 240;

impl Forecast {
    /// The plot of the forecast after what was observed.
    pub fn plot(&self, title: &str, target: &str, times: &[f64], observed: &[f64], axis: &TimeAxis) -> ForecastPlot {
        let all: Vec<f64> = times.iter().chain(&self.numbers).copied().collect();
        let every = all.len().div_ceil(LABELS).max(1);
        let label = |t: &f64| axis.to_text(*t).ok().map(|text| (*t, text));
        let labels = match axis.is_calendar() {
            true => all.iter().step_by(every).filter_map(label).collect(),
            false => vec![],
        };
        ForecastPlot {
            title: title.into(),
            target_label: target.into(),
            times: times.to_vec(),
            observed: observed.to_vec(),
            future: self.numbers.clone(),
            mean: self.mean.clone(),
            bands: self.bands.clone(),
            labels,
            ..ForecastPlot::default()
        }
    }

    /// Names of the columns of numbers: mean, sd, and the ends of each interval.
    pub fn columns(&self) -> Vec<String> {
        let ends = self.bands.iter().flat_map(|b| [format!("lower_{}", b.level), format!("upper_{}", b.level)]);
        ["mean".to_string(), "sd".to_string()].into_iter().chain(ends).collect()
    }

    /// The numbers of one time, in the order of [`Forecast::columns`].
    pub fn row(&self, i: usize) -> Vec<f64> {
        let ends = self.bands.iter().flat_map(|b| [b.lower[i], b.upper[i]]);
        [self.mean[i], self.sd[i]].into_iter().chain(ends).collect()
    }
}

impl Fitted {
    /// The plot of a forecast of this series, after as much of its past as lets the forecast be seen.
    pub fn plot(&self, forecast: &Forecast, title: &str) -> ForecastPlot {
        let rows = by_time(self.data());
        let past = self.data().select(&rows[rows.len() - shown(rows.len(), forecast)..]);
        forecast.plot(title, past.target(), past.x().column(0), past.y(), self.axis())
    }

    /// One page with the plot, the table, what was found, the account of the fit and the backtest.
    ///
    /// # Errors
    /// As [`ForecastPlot::figure`].
    pub fn report(
        &self,
        forecast: &Forecast,
        findings: &[Finding],
        backtest: Option<&Backtest>,
        title: &str,
    ) -> Result<Page> {
        let account = self.model.account();
        let figure = self.plot(forecast, "").figure()?;
        let mut page = Page::new(title).figure(&figure, &caption(self, forecast));
        page = page.heading("What was found").paragraph(
            "The largest terms of the learned kernel. The share is that of the prior variance, averaged over the times \
             of the data; it tells what the model is made of, not how much each part explains.",
        );
        let shown = findings.iter().filter(|f| f.share >= 0.005).take(12);
        page = page.table(
            &["share", "in words", "largest term"],
            shown.map(|f| [format!("{:.1} %", 100.0 * f.share), f.words.clone(), f.term.clone()]),
        );
        let columns = forecast.columns();
        let header: Vec<&str> =
            [self.data().inputs()[0].as_str()].into_iter().chain(columns.iter().map(String::as_str)).collect();
        let rows = (0..forecast.times.len()).map(|i| {
            let numbers = forecast.row(i).into_iter().map(significant);
            [forecast.times[i].clone()].into_iter().chain(numbers).collect::<Vec<String>>()
        });
        page = page.heading("Forecast").table(&header, rows);
        if let Some(b) = backtest {
            page = page.heading("Backtest").paragraph(&backtest_words(b)).table(
                &["method", "MAE", "RMSE", "MASE", "within 80 %", "within 95 %"],
                b.scores.iter().map(|s| {
                    let share = |v: f64| format!("{:.0} %", 100.0 * v);
                    let (mae, rmse, mase) = (significant(s.mae), significant(s.rmse), significant(s.mase));
                    [s.method.clone(), mae, rmse, mase, share(s.coverage_80), share(s.coverage_95)]
                }),
            );
        }
        page = page
            .heading("How the fit went")
            .list(account_words(account, self))
            .details(Page::new("The kernel as text").preformatted(&account.kernel));
        Ok(page)
    }
}

/// How a backtest was made.
pub(super) fn backtest_words(b: &Backtest) -> String {
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    format!(
        "{} of {} each, after {}. MASE is the mean absolute error divided by that of repeating the value of {} before.",
        count(b.origins.len(), "forecast"),
        count(b.steps, "step"),
        b.origins.join(", "),
        count(b.season, "step")
    )
}

/// How many of `n` values are drawn before a forecast.
fn shown(n: usize, forecast: &Forecast) -> usize {
    n.min(FEW.max(PAST.saturating_mul(forecast.times.len())))
}

fn caption(fitted: &Fitted, forecast: &Forecast) -> String {
    let levels: Vec<String> = forecast.bands.iter().map(|b| format!("{} %", b.level)).collect();
    let log = if fitted.model.link() == Link::Log { "; the logarithm was fitted" } else { "" };
    let n = fitted.data().n();
    let all = shown(n, forecast) == n;
    format!(
        "{n} observations{}, {} steps ahead, intervals of {}{log}",
        if all { String::new() } else { format!(" (the last {} are shown)", shown(n, forecast)) },
        forecast.times.len(),
        levels.join(" and ")
    )
}

fn account_words(account: &Account, fitted: &Fitted) -> Vec<String> {
    let mut words = vec![
        format!("{} rows, method {}, seed {}", fitted.data().n(), account.method, account.seed),
        format!("log marginal likelihood in the target's units: {:.2}", fitted.evidence),
        format!(
            "best of {} starts after {} iterations, {} evaluations in {:.2} s: {}",
            account.restarts.len(),
            account.iterations,
            account.evaluations,
            account.seconds,
            account.reason
        ),
        format!("leave one out: {:.0} % of the values within their 95 % intervals", 100.0 * account.loo.coverage_95),
    ];
    words.extend(account.notes.iter().chain(&fitted.notes).cloned());
    words
}

/// Four significant digits, for people.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i64).clamp(0, 12) as usize;
    format!("{value:.digits$}")
}
