//! `covary fit`: a table becomes a model file.

use crate::args::{Common, Fit as Args, MethodArg, OptimizerArg, Search};
use crate::checkpoint::{self, Checkpoint};
use crate::failure::Failure;
use crate::input::{check_memory, peak_memory};
use crate::output::{Talk, check_writable, print_json, short, write_file};
use crate::progress::{Place, Watch};
use covary::data::Choice;
use covary::fit::{Link, Standardize};
use covary::kernel::Task;
use covary::optim::Adam;
use covary::{Dataset, Fit, Kernel};
use serde_json::json;
use std::path::PathBuf;

const ITERATIONS: usize = 300;
const RESTARTS: usize = 4;

impl Search {
    /// The fit that these options ask for, and the numbers of iterations and restarts.
    pub fn fit(&self, task: Task, seed: u64, defaults: (usize, usize)) -> Result<(Fit, usize, usize), Failure> {
        if self.kernel.trim() == "search" {
            return Err(Failure::usage("kernel", "`search` is not part of this version"));
        }
        let (iterations, restarts) = (self.iterations.unwrap_or(defaults.0), self.restarts.unwrap_or(defaults.1));
        let mut fit =
            Fit::new(Kernel::parse(&self.kernel, task)?).seed(seed).iterations(iterations).restarts(restarts);
        if self.optimizer == OptimizerArg::Adam {
            fit = fit.optimizer(Adam::default());
        }
        if let Some(limit) = self.time_limit {
            fit = fit.time_limit(limit);
        }
        Ok((fit, iterations, restarts))
    }

    /// Where the user wants the state of the work.
    pub fn kept(&self) -> [Option<&PathBuf>; 2] {
        [self.checkpoint.as_ref(), self.resume.as_ref()]
    }
}

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    if matches!(args.method, MethodArg::Sparse | MethodArg::Iterative) || args.inducing.is_some() {
        return Err(Failure::usage("method", "only `exact` is part of this version"));
    }
    let stdout = args.output.as_deref() == Some("-".as_ref());
    if stdout && talk.json {
        return Err(Failure::usage("output", "`-o -` and `--json` both want standard output"));
    }
    check_writable(&[args.output.as_ref(), args.search.checkpoint.as_ref()])?;
    let table = args.reading.table(&args.data)?;
    let known = args.noise.as_ref().and_then(|text| text.parse::<f64>().ok());
    let choice = Choice {
        inputs: args.inputs.clone(),
        exclude: args.exclude.clone(),
        noise: args.noise.clone().filter(|_| known.is_none()),
        missing: args.reading.missing(),
        ..Choice::new(&args.target)
    };
    let data = Dataset::from_table(&table, &choice).map_err(Failure::data)?;
    drop(table);
    let task = if data.d() == 1 { Task::Series } else { Task::Table };
    let (mut fit, iterations, restarts) = args.search.fit(task, common.seed, (ITERATIONS, RESTARTS))?;
    if let Some(sd) = known {
        fit = fit.noise(sd);
    }
    if args.no_standardize {
        fit = fit.standardize(Standardize::No);
    }
    check_memory(&fit, data.n(), data.d(), talk)?;

    let mut checkpoint =
        Checkpoint::new("fit", &args.search.kernel, common.seed, restarts, checkpoint::fingerprint(&data));
    if let Some(path) = &args.search.resume {
        checkpoint = Checkpoint::open(path, &checkpoint).map_err(Failure::model)?;
        fit = fit.resume_some(checkpoint.states(Link::Identity));
    }
    let place = Place::of(args.search.kept(), &[args.output.as_ref()]);
    let watch = Watch::new(talk, (iterations * restarts) as u64, checkpoint, place);
    let model = fit.run_observed(&data, |step| watch.step(Link::Identity, step))?;
    watch.clear();
    let account = model.account();
    account.notes.iter().for_each(|note| talk.note(note));
    if let Some(path) = &args.output {
        write_file(path, &model.to_bytes()?)?;
    }
    watch.finish()?;
    talk.say(&format!(
        "log marginal likelihood {:.2}, noise sd {}, leave-one-out rmse {}; {:.1} s, {}",
        account.log_marginal_likelihood,
        short(account.noise_sd),
        short(account.loo.rmse),
        account.seconds,
        account.reason
    ));
    talk.detail(format!("kernel: {}", account.kernel));
    if talk.json {
        let mut value = serde_json::to_value(account).unwrap_or_default();
        value["peak_memory_bytes"] = json!(peak_memory());
        value["output"] = json!(args.output);
        print_json(&value)?;
    } else if args.output.is_none() {
        talk.note("no model was kept: `-o MODEL` writes one");
    }
    Ok(())
}
