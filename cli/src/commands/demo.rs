//! `covary demo`: an embedded series, a forecast, a chart, words, files to look at.

use super::forecast::{rows_of, table_for_people, terminal, words};
use crate::args::{Common, Demo as Args};
use crate::failure::Failure;
use crate::output::{Talk, csv_line, print, print_json, write_file};
use covary::data::{Choice, Horizon, ReadOptions, Table};
use covary::forecast::{Forecaster, findings};
use covary::kernel::Task;
use covary::{Dataset, Error, ErrorKind, Fit, Kernel};
use serde_json::json;

/// Monthly airline passengers, 1949 to 1960, in thousands (Box and Jenkins; R's `AirPassengers`).
const AIRLINE: &str = include_str!("../../../examples/data/airline.csv");

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let table = Table::read(AIRLINE.as_bytes(), "airline.csv", &ReadOptions::default())?;
    let (choice, _) = Choice::series(&table, None, None, None)?;
    let data = Dataset::from_table(&table, &choice)?;
    talk.say("fitting 144 monthly numbers of airline passengers, 1949 to 1960, in thousands ...");
    let fit = Fit::new(Kernel::default_network(Task::Series)).seed(common.seed).iterations(100).restarts(2);
    let fitted = Forecaster::new(fit).run(&data)?;
    let forecast = fitted.ahead(&Horizon::Steps(24), &[80.0, 95.0])?;
    let found = findings(&fitted)?;
    let title = "Airline passengers, thousands a month";
    let plot = fitted.plot(&forecast, title);

    let made = std::fs::create_dir_all(&args.out);
    made.map_err(|source| Error::new(ErrorKind::Io { path: args.out.clone(), source }))?;
    let mut csv = String::new();
    csv_line(&mut csv, ["month".to_string()].into_iter().chain(forecast.columns()));
    for (i, time) in forecast.times.iter().enumerate() {
        let numbers = forecast.row(i).into_iter().map(|v| v.to_string());
        csv_line(&mut csv, [time.clone()].into_iter().chain(numbers));
    }
    write_file(&args.out.join("forecast.csv"), csv.as_bytes())?;
    plot.save(args.out.join("forecast.svg"))?;
    fitted.report(&forecast, &found, None, title)?.save(args.out.join("report.html"))?;
    fitted.model.save(args.out.join("model.covary"))?;

    let account = fitted.model.account();
    if talk.json {
        return print_json(&json!({
            "forecast": rows_of(&forecast), "transform": fitted.model.link(), "log_marginal_likelihood": fitted.evidence,
            "findings": found, "seconds": account.seconds, "converged": account.converged, "reason": account.reason,
            "seed": common.seed, "output": args.out,
        }));
    }
    if talk.quiet {
        return print(&csv);
    }
    let mut text = format!("{}\n{}\n", table_for_people(&forecast, "month"), plot.to_text(&terminal())?);
    text.push_str(&format!("What was found (share of the prior variance):\n{}\n\n", words(&found)));
    fitted.notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
    text.push_str(&format!(
        "fitted in {:.1} s; the table, the picture, a report and the model are in {}/\n",
        account.seconds,
        args.out.display()
    ));
    print(&text)
}
