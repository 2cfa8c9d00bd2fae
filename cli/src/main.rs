//! The command line of covary: words become options, options become library calls, results become text. What can fail
//! ends in one place: an `error:` line, a `hint:` line, an exit code.

mod args;
mod checkpoint;
mod commands;
mod failure;
mod input;
mod interrupt;
mod output;
mod progress;
mod reproduce;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use output::Talk;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// More than any machine has; a slip of the finger must not ask for a million.
const MOST_THREADS: usize = 1024;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let talk = Talk::new(&cli.common);
    interrupt::install(talk.quiet);
    faults::collect();
    match std::panic::catch_unwind(AssertUnwindSafe(|| run(&cli, &talk))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(&talk),
        Err(_) => Failure::fault(faults::last()).report(&talk),
    }
}

/// Panics. Those of the readers of Parquet and Arrow are caught in the library and become errors about the file, so
/// nothing is printed when one happens; one that nobody caught is a fault of ours, and is reported as such.
mod faults {
    use std::panic::PanicHookInfo;
    use std::sync::{Mutex, PoisonError};

    static LAST: Mutex<String> = Mutex::new(String::new());

    pub fn collect() {
        std::panic::set_hook(Box::new(|info: &PanicHookInfo| {
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string().replace('\n', " ");
        }));
    }

    pub fn last() -> String {
        LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn run(cli: &Cli, talk: &Talk) -> Result<(), Failure> {
    if let Some(threads) = cli.common.threads {
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(Failure::usage("threads", format!("a number from 1 to {MOST_THREADS}: {threads}")));
        }
        // The pool can only have been made already if this ran twice.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let common = &cli.common;
    match &cli.command {
        Command::Demo(a) => commands::demo::run(a, common, talk),
        Command::Fit(a) => commands::fit::run(a, common, talk),
        Command::Predict(a) => commands::predict::run(a, common, talk),
        Command::Evaluate(a) => commands::evaluate::run(a, common, talk),
        Command::Forecast(a) => commands::forecast::run(a, common, talk),
        Command::Reproduce(a) => commands::reproduce::run(a, common, talk),
        Command::Inpaint(a) => commands::inpaint::run(a, common, talk),
        Command::Bench(a) => commands::bench::run(a, common, talk),
        Command::Kernels => commands::kernels::run(common, talk),
        Command::Completions(a) => commands::pages::completions(a, talk),
        Command::Man(a) => commands::pages::man(a, talk),
    }
}
