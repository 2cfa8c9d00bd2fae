//! `covary evaluate`: predictions beside the truth.

use crate::args::{Common, Evaluate as Args};
use crate::failure::Failure;
use crate::input;
use crate::output::{Talk, print, print_json, short};
use covary::Model;
use covary::data::Piece;
use serde_json::json;

const LEVELS: [u32; 4] = [50, 80, 90, 95];

/// Sums over rows.
#[derive(Default)]
struct Sums {
    n: usize,
    squares: f64,
    absolute: f64,
    density: f64,
    crps: f64,
    inside: [usize; 4],
}

impl Sums {
    fn add(&mut self, model: &Model, piece: &Piece) -> Result<(), Failure> {
        for (&y, said) in piece.y.iter().zip(model.distribution(&piece.x)?) {
            let error = y - said.moments().0;
            self.n += 1;
            self.squares += error * error;
            self.absolute += error.abs();
            self.density += said.log_density(y);
            self.crps += said.crps(y);
            let off_centre = (2.0 * said.cdf(y) - 1.0).abs();
            for (count, level) in self.inside.iter_mut().zip(LEVELS) {
                *count += usize::from(100.0 * off_centre <= f64::from(level));
            }
        }
        Ok(())
    }
}

pub fn run(args: &Args, _: &Common, talk: &Talk) -> Result<(), Failure> {
    if args.model == args.data && args.data.as_os_str() == "-" {
        return Err(Failure::usage("data", "model and table cannot both come from standard input"));
    }
    let model = input::model(&args.model)?;
    let mut sums = Sums::default();
    let notes = input::pieces(&args.reading, &args.data, &model, Some(model.target()), |p| sums.add(&model, p))?;
    if sums.n == 0 {
        return Err(Failure::data(covary::ErrorKind::NoRows { file: args.data.clone() }.into()));
    }
    notes.iter().for_each(|note| talk.note(note));
    let n = sums.n as f64;
    let (rmse, mae, density, crps) = ((sums.squares / n).sqrt(), sums.absolute / n, sums.density / n, sums.crps / n);
    let coverage = LEVELS.iter().zip(sums.inside).map(|(l, c)| (l.to_string(), c as f64 / n));
    if talk.json {
        let coverage: serde_json::Map<String, serde_json::Value> = coverage.map(|(l, c)| (l, json!(c))).collect();
        return print_json(&json!({
            "rmse": rmse, "mae": mae, "mean_log_density": density, "crps": crps, "coverage": coverage,
            "n": sums.n, "notes": notes,
        }));
    }
    let covered: Vec<String> =
        coverage.map(|(l, c)| format!("{:.1} % within the {l} % interval", 100.0 * c)).collect();
    print(&format!(
        "rmse {}\nmae {}\nmean log density {}\ncrps {}\n{}\nrows {}\n",
        short(rmse),
        short(mae),
        short(density),
        short(crps),
        covered.join("\n"),
        sums.n
    ))
}
