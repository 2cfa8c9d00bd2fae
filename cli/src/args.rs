//! The words of the command line. Names are a contract; help opens with examples.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser)]
#[command(
    name = "covary",
    version,
    max_term_width = 100,
    about = "Learns the kernel of a Gaussian process from data: forecasts, predictions, and how sure they are",
    before_help = "Examples:
  covary demo                                            a forecast of an embedded series, with files to look at
  covary forecast sales.csv --horizon 12 --plot f.svg    a table with a time column, twelve steps ahead
  covary fit houses.csv --target price -o houses.covary  a model of a table
  covary predict houses.covary new.csv -o out.csv        means and intervals for new rows",
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad data, 4 bad model file, 130 interrupted"
)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Args)]
pub struct Common {
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Say more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Seed of everything random
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Threads; all by default
    #[arg(long, global = true, env = "COVARY_THREADS", value_name = "N")]
    pub threads: Option<usize>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Forecast an embedded series, print what was found, write covary-demo/
    #[command(before_help = "Example:\n  covary demo")]
    Demo(Demo),
    /// Fit a model to a table
    #[command(before_help = "Examples:
  covary fit houses.csv --target price -o houses.covary
  covary fit - --target y --kernel 'LIN + RBF' --restarts 2 --json < data.csv")]
    Fit(Fit),
    /// Predict new rows with a model
    #[command(before_help = "Examples:
  covary predict houses.covary new.csv -o out.csv
  covary predict houses.covary new.csv --mean-only > means.csv")]
    Predict(Predict),
    /// Compare a model's predictions with a table that has the target
    #[command(before_help = "Example:\n  covary evaluate houses.covary held-out.csv --json")]
    Evaluate(Evaluate),
    /// Forecast one series or many
    #[command(before_help = "Examples:
  covary forecast sales.csv --horizon 12
  covary forecast sales.csv --until 2027-12 --interval 50,90 --plot f.png --report f.html -o f.csv
  covary forecast shops.csv --id shop --horizon 4w --status status.csv -o all.csv
  covary forecast sales.csv --horizon 12 --backtest 3")]
    Forecast(Forecast),
    /// Run the paper's experiments beside its figures
    #[command(before_help = "Examples:
  covary reproduce --list
  covary reproduce synthetic-1d --out results/
  covary reproduce airline uci-random --data data/ --sets yacht,boston")]
    Reproduce(Reproduce),
    /// Fill the holes of a picture
    #[command(before_help = "Examples:
  covary inpaint photo.png --hole 60,80,60,80 -o whole.png
  covary inpaint photo.png --mask scratches.png -o whole.png --sd unsure.png --json")]
    Inpaint(crate::commands::inpaint::Inpaint),
    /// Measure what work costs on this machine
    #[command(before_help = "Example:\n  covary bench evidence --n 2000 --d 8 --json")]
    Bench(Bench),
    /// List the primitives, their formulas and parameters
    #[command(before_help = "Example:\n  covary kernels")]
    Kernels,
    /// Print a completion script
    #[command(before_help = "Example:\n  covary completions bash > /etc/bash_completion.d/covary")]
    Completions(Completions),
    /// Print the manual page, or write one for each command
    #[command(before_help = "Examples:\n  covary man | man -l -\n  covary man --dir man/")]
    Man(Man),
}

#[derive(Args)]
pub struct Demo {
    /// Directory for the files
    #[arg(long, default_value = "covary-demo", value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Args)]
pub struct Reproduce {
    /// Experiments; all by default
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Folder of the data sets
    #[arg(long, default_value = "data", value_name = "DIR")]
    pub data: PathBuf,
    /// Folder for tables and plots
    #[arg(long, default_value = "covary-paper", value_name = "DIR")]
    pub out: PathBuf,
    /// Less of everything, to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Tell what each experiment needs and how long it takes
    #[arg(long)]
    pub list: bool,
    /// Only these data sets of the tables
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub sets: Vec<String>,
    /// Only these kernels
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub kernels: Vec<String>,
    /// The most splits of each table
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub splits: usize,
}

/// How tables are read.
#[derive(Args, Clone)]
pub struct Reading {
    /// What to do about missing cells
    #[arg(long, value_enum, default_value_t = MissingArg::Error, value_name = "HOW")]
    pub missing: MissingArg,
    /// A further word that means a missing cell; repeatable
    #[arg(long, value_name = "WORD")]
    pub na: Vec<String>,
    /// Read no more rows than this
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// What stands between cells, or `tab`; detected by default
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum MissingArg {
    Error,
    Drop,
    Impute,
}

/// How parameters are found.
#[derive(Args, Clone)]
pub struct Search {
    /// Kernel text; `covary kernels` tells how to write it
    #[arg(long, default_value = "nkn", value_name = "TEXT")]
    pub kernel: String,
    /// The optimiser
    #[arg(long, value_enum, default_value_t = OptimizerArg::Lbfgs, value_name = "NAME")]
    pub optimizer: OptimizerArg,
    /// The most iterations of each start
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// How many starts; good ones are averaged
    #[arg(long, value_name = "K")]
    pub restarts: Option<usize>,
    /// The most fits that are averaged; 1 takes the best alone
    #[arg(long, value_name = "K")]
    pub members: Option<usize>,
    /// Fit this kernel alone: no plain kernels compete with it
    #[arg(long)]
    pub alone: bool,
    /// Where starting values come from
    #[arg(long, value_enum, default_value_t = StartArg::Data, value_name = "FROM")]
    pub start: StartArg,
    /// Take the best so far after this time: 30s, 5min, 2h (for each series, where there are many)
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub time_limit: Option<Duration>,
    /// Keep the state of the work here: every ten seconds, when interrupted, and at the end
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum StartArg {
    /// Distances, periodogram, local differences
    Data,
    /// Fixed multiples of the median distance
    Paper,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerArg {
    Lbfgs,
    Adam,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum MethodArg {
    Auto,
    Exact,
    Sparse,
    Iterative,
}

impl From<MethodArg> for covary::fit::Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Auto => Self::Auto,
            MethodArg::Exact => Self::Exact,
            MethodArg::Sparse => Self::Sparse,
            MethodArg::Iterative => Self::Iterative,
        }
    }
}

#[derive(Args)]
pub struct Fit {
    /// The table: CSV, TSV, gzipped or not, Parquet, Arrow IPC; `-` for standard input
    pub data: PathBuf,
    /// The column to predict
    #[arg(long, short, value_name = "COL")]
    pub target: String,
    /// The model file
    #[arg(long, short, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// The columns to predict it from; all others by default
    #[arg(long, value_delimiter = ',', value_name = "COLS")]
    pub inputs: Vec<String>,
    /// Columns to leave out
    #[arg(long, value_delimiter = ',', value_name = "COLS")]
    pub exclude: Vec<String>,
    #[command(flatten)]
    pub search: Search,
    /// How evidence is computed
    #[arg(long, value_enum, default_value_t = MethodArg::Auto, value_name = "NAME")]
    pub method: MethodArg,
    /// Inducing points of the sparse method
    #[arg(long, value_name = "M")]
    pub inducing: Option<usize>,
    /// Known noise: a standard deviation, or a column of them
    #[arg(long, value_name = "VALUE|COL")]
    pub noise: Option<String>,
    /// Bring columns to mean nought and deviation one first (the default)
    #[arg(long, overrides_with = "no_standardize")]
    pub standardize: bool,
    /// Take the data as they are
    #[arg(long)]
    pub no_standardize: bool,
    /// What is done to the target first; `auto` takes a logarithm or a power where the evidence is higher. By default nothing,
    /// but where a power has a clearly higher evidence, fits of the target so transformed compete with a network
    #[arg(long, value_enum, value_name = "NAME")]
    pub transform: Option<TransformArg>,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// New observations, noise included
    Y,
    /// The function itself
    F,
}

#[derive(Args)]
pub struct Predict {
    /// The model file
    pub model: PathBuf,
    /// The table; `-` for standard input
    pub data: PathBuf,
    /// Where the table with predictions goes
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Probability of the interval from `lower` to `upper`
    #[arg(long, default_value_t = 0.95, value_name = "P")]
    pub interval: f64,
    /// What is predicted
    #[arg(long, value_enum, default_value_t = Of::Y)]
    pub of: Of,
    /// Means only: faster, and several times so with many training rows
    #[arg(long, conflicts_with = "samples")]
    pub mean_only: bool,
    /// Add columns with so many joint samples
    #[arg(long, value_name = "K")]
    pub samples: Option<usize>,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Args)]
pub struct Evaluate {
    /// The model file
    pub model: PathBuf,
    /// The table; `-` for standard input
    pub data: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum TransformArg {
    None,
    Log,
    Auto,
}

impl TransformArg {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Log => "log",
            Self::Auto => "auto",
        }
    }
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("ahead").required(true).args(["horizon", "until"]))]
pub struct Forecast {
    /// The table; `-` for standard input
    pub data: PathBuf,
    /// How far: a number of steps, or 18mo, 2y, 90d, 4w, 12h, 30min
    #[arg(long, value_name = "H")]
    pub horizon: Option<String>,
    /// Up to and including this time
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// The column of times; guessed where absent
    #[arg(long, value_name = "COL")]
    pub time: Option<String>,
    /// The column to forecast; guessed where absent
    #[arg(long, short, value_name = "COL")]
    pub target: Option<String>,
    /// The column that tells series apart
    #[arg(long, value_name = "COL")]
    pub id: Option<String>,
    /// Per cents of the intervals
    #[arg(long, default_value = "80,95", value_delimiter = ',', value_name = "P,P")]
    pub interval: Vec<f64>,
    /// Test on the past: so many origins, against simple methods
    #[arg(long, value_name = "K")]
    pub backtest: Option<usize>,
    /// A picture, SVG or PNG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A page of HTML
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Fit the logarithm of the target? `auto` asks the evidence
    #[arg(long, value_enum, default_value_t = TransformArg::Auto, value_name = "HOW")]
    pub transform: TransformArg,
    /// Where the table goes; standard output by default
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Keep the fitted model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// A CSV with one status row for each series
    #[arg(long, value_name = "FILE", requires = "id")]
    pub status: Option<PathBuf>,
    #[command(flatten)]
    pub search: Search,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: BenchWhat,
}

#[derive(Subcommand)]
pub enum BenchWhat {
    /// One evaluation of the evidence with every gradient, beside the bare linear algebra it cannot do without
    Evidence(BenchEvidence),
}

#[derive(Args)]
pub struct BenchEvidence {
    /// Rows
    #[arg(long, default_value_t = 2000)]
    pub n: usize,
    /// Input columns
    #[arg(long, default_value_t = 8)]
    pub d: usize,
    /// Kernel text
    #[arg(long, default_value = "nkn", value_name = "TEXT")]
    pub kernel: String,
    /// How evidence is computed
    #[arg(long, value_enum, default_value_t = MethodArg::Exact, value_name = "NAME")]
    pub method: MethodArg,
    /// Inducing points of the sparse method
    #[arg(long, value_name = "M")]
    pub inducing: Option<usize>,
    /// How often; the median is told
    #[arg(long, default_value_t = 5)]
    pub repeat: usize,
}

#[derive(Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// Write a page for every command into this directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// A span of time: 30s, 5min, 2h; a number alone is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let bad = || "a span such as 30s, 5min or 2h".to_string();
    let number: f64 = text[..end].parse().map_err(|_| bad())?;
    let unit = match &text[end..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|_| bad())
}
