//! `covary predict`: a table in, the same table with predictions out, a piece at a time.

use crate::args::{Common, Of, Predict as Args};
use crate::failure::Failure;
use crate::input;
use crate::output::{Sink, Talk, csv_cell, csv_end, csv_line, csv_number, print_json};
use covary::Model;
use covary::data::Piece;
use rayon::prelude::*;
use serde_json::json;
use std::time::Instant;

/// Rows that become text together.
const LINES: usize = 1_024;
/// Joint samples need a matrix of the rows' square.
const MOST_SAMPLED: usize = 5_000;

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    if !(args.interval > 0.0 && args.interval < 1.0) {
        let message = format!("a probability between 0 and 1: {}", args.interval);
        return Err(Failure::usage("interval", message));
    }
    if args.model == args.data && args.data.as_os_str() == "-" {
        return Err(Failure::usage("data", "model and table cannot both come from standard input"));
    }
    if talk.json && args.output.as_deref() == Some("-".as_ref()) {
        return Err(Failure::usage("output", "`-o -` and `--json` both want standard output"));
    }
    let clock = Instant::now();
    let model = input::model(&args.model)?;
    let mut out = Out {
        args,
        talk,
        common,
        below: 0.5 - 0.5 * args.interval,
        rows: 0,
        names: vec![],
        columns: vec![],
        sink: None,
    };
    let notes = input::pieces(&args.reading, &args.data, &model, None, |piece| out.piece(&model, piece))?;
    if out.rows == 0 && out.sink.is_none() && out.columns.is_empty() {
        return Err(Failure::data(covary::ErrorKind::NoRows { file: args.data.clone() }.into()));
    }
    notes.iter().for_each(|note| talk.note(note));
    let (rows, names, columns) = (out.rows, out.names, out.columns);
    if let Some(sink) = out.sink {
        sink.finish()?;
    }
    if talk.json {
        let mut value = json!({
            "rows": rows, "target": model.target(), "interval": args.interval,
            "of": if args.of == Of::Y { "y" } else { "f" }, "seconds": clock.elapsed().as_secs_f64(),
            "peak_memory_bytes": input::peak_memory(), "output": args.output, "notes": notes,
        });
        if args.output.is_none() {
            names.iter().zip(columns).for_each(|(name, column)| value[name] = json!(column));
        }
        print_json(&value)?;
    } else if args.output.is_some() {
        talk.say(&format!("{rows} rows in {:.1} s", clock.elapsed().as_secs_f64()));
    }
    Ok(())
}

struct Out<'a> {
    args: &'a Args,
    talk: &'a Talk,
    common: &'a Common,
    /// The share of probability below the interval.
    below: f64,
    rows: usize,
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    sink: Option<Sink>,
}

impl Out<'_> {
    fn piece(&mut self, model: &Model, piece: &Piece) -> Result<(), Failure> {
        let first = self.names.is_empty();
        let mut columns = self.columns_of(model, piece)?;
        if first {
            self.names = self.header(piece);
        }
        self.rows += piece.rows.len();
        // As JSON the numbers are gathered; as a table they go out at once.
        if self.talk.json && self.args.output.is_none() {
            if self.columns.is_empty() {
                self.columns = columns;
            } else {
                self.columns.iter_mut().zip(&mut columns).for_each(|(all, more)| all.append(more));
            }
            return Ok(());
        }
        if first {
            let mut text = String::new();
            let old = piece.table.headings();
            csv_line(&mut text, old.into_iter().chain(self.names.iter().map(String::as_str)));
            self.sink = Some(Sink::new(self.args.output.as_deref())?);
            self.write(&text)?;
        }
        let lines = |start: usize| {
            let (mut text, width) = (String::new(), piece.table.headings().len());
            for (i, &row) in piece.rows.iter().enumerate().skip(start).take(LINES) {
                (0..width).for_each(|c| csv_cell(&mut text, &piece.table.written(row, c)));
                columns.iter().for_each(|c| csv_number(&mut text, c[i]));
                csv_end(&mut text);
            }
            text
        };
        let starts: Vec<usize> = (0..piece.rows.len()).step_by(LINES).collect();
        let parts: Vec<String> = starts.into_par_iter().map(lines).collect();
        parts.iter().try_for_each(|text| self.write(text))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.sink {
            Some(sink) => sink.write(text),
            None => Ok(()),
        }
    }

    fn columns_of(&self, model: &Model, piece: &Piece) -> Result<Vec<Vec<f64>>, Failure> {
        if self.args.mean_only {
            return Ok(vec![model.mean(&piece.x)?]);
        }
        let (f, y) = model.distributions(&piece.x)?;
        let mut columns = vec![vec![]; 4];
        for said in if self.args.of == Of::Y { y } else { f } {
            let (mean, spread) = said.moments();
            let row = [mean, spread.sqrt(), said.quantile(self.below), said.quantile(1.0 - self.below)];
            columns.iter_mut().zip(row).for_each(|(c, v)| c.push(v));
        }
        if let Some(count) = self.args.samples {
            if self.rows > 0 || piece.rows.len() > MOST_SAMPLED {
                let message = format!("joint samples of more than {MOST_SAMPLED} rows need too much memory");
                return Err(Failure::usage("samples", message));
            }
            columns.extend(match self.args.of {
                Of::Y => model.sample_y(&piece.x, count, self.common.seed)?,
                Of::F => model.sample(&piece.x, count, self.common.seed)?,
            });
        }
        Ok(columns)
    }

    /// Names of the new columns; where the table has one of them already, all are called `predicted_…`.
    fn header(&self, piece: &Piece) -> Vec<String> {
        let mut names: Vec<String> = match self.args.mean_only {
            true => vec!["mean".into()],
            false => ["mean", "sd", "lower", "upper"].map(String::from).to_vec(),
        };
        names.extend((1..=self.args.samples.unwrap_or(0)).map(|i| format!("sample_{i}")));
        if !self.talk.json && names.iter().any(|n| piece.table.headings().contains(&n.as_str())) {
            names.iter_mut().for_each(|n| *n = format!("predicted_{n}"));
        }
        names
    }
}
