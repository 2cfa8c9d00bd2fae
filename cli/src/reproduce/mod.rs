//! The paper's experiments (Sun et al., Differentiable Compositional Kernel Learning for Gaussian Processes, ICML
//! 2018): each reads its data from a folder, prints a table beside the published figures, and writes CSV, JSON and plots.

mod paper;
mod report;
mod series;
mod synthetic;
mod tables;
mod texture;

pub use report::Report;

use crate::failure::Failure;
use crate::output::Talk;
use covary::{Error, ErrorKind};
use std::path::PathBuf;

/// What every experiment is told.
pub struct Setup<'a> {
    /// The folder of the data sets.
    pub data: PathBuf,
    /// Where files go.
    pub out: PathBuf,
    /// Less of everything, to see that it works.
    pub quick: bool,
    pub seed: u64,
    /// Only these data sets, where any are named.
    pub sets: &'a [String],
    /// Only these kernels, where any are named.
    pub kernels: &'a [String],
    /// The most splits.
    pub splits: usize,
    pub talk: &'a Talk,
}

impl Setup<'_> {
    /// Whether a name is asked for; `NKN` is short for `NKN-4`.
    fn takes(list: &[String], name: &str) -> bool {
        let short = name.split('-').next().unwrap_or(name);
        list.is_empty() || list.iter().any(|s| s.eq_ignore_ascii_case(name) || s.eq_ignore_ascii_case(short))
    }

    /// A file of the data folder.
    ///
    /// # Errors
    /// When it is not there.
    pub fn file(&self, path: &str) -> Result<PathBuf, Failure> {
        let file = self.data.join(path);
        if file.is_file() {
            return Ok(file);
        }
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        let hint = "`--data DIR` names the folder with series/, texture/, uci/ and uci/splits/";
        Err(Failure::data(Error::new(ErrorKind::Io { path: file, source }).with_hint(hint)))
    }
}

type Run = fn(&Setup, &str) -> Result<Report, Failure>;

/// One experiment.
pub struct Experiment {
    pub name: &'static str,
    pub what: &'static str,
    /// What it reads.
    pub needs: &'static str,
    /// How long the whole of it takes on two cores.
    pub takes: &'static str,
    pub run: Run,
}

/// All of them, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 9] = [
    Experiment {
        name: "synthetic-1d",
        what: "a function with a gap in its data, continued",
        needs: "nothing",
        takes: "seconds",
        run: synthetic::one,
    },
    Experiment {
        name: "synthetic-2d",
        what: "(cos 2a + cos 2b) √|ab| from 100 points, continued",
        needs: "nothing",
        takes: "seconds",
        run: synthetic::two,
    },
    Experiment {
        name: "airline",
        what: "monthly airline passengers, forecast from 2/3 and from 9/10",
        needs: "series/airline.csv",
        takes: "seconds",
        run: series::run,
    },
    Experiment {
        name: "mauna",
        what: "monthly CO₂ at Mauna Loa",
        needs: "series/mauna.csv",
        takes: "a minute",
        run: series::run,
    },
    Experiment {
        name: "solar",
        what: "yearly solar irradiance",
        needs: "series/solar.csv",
        takes: "a minute",
        run: series::run,
    },
    Experiment {
        name: "uci-random",
        what: "regression tables, ten random splits",
        needs: "uci/*.csv, uci/splits/*.csv",
        takes: "an hour",
        run: tables::random,
    },
    Experiment {
        name: "uci-pca",
        what: "regression tables, extrapolating along the first principal component",
        needs: "uci/*.csv",
        takes: "ten minutes",
        run: tables::pca,
    },
    Experiment {
        name: "texture-plate",
        what: "a hole in a picture of tread plate, filled",
        needs: "texture/plate.png",
        takes: "minutes",
        run: texture::run,
    },
    Experiment {
        name: "texture-pave",
        what: "a hole in a picture of paving stones, filled",
        needs: "texture/pave.png",
        takes: "minutes",
        run: texture::run,
    },
];
