//! `covary fit`: a table becomes a model file.

use crate::args::{Common, Fit as Args, MethodArg, OptimizerArg, Search, StartArg, TransformArg};
use crate::checkpoint::{self, Checkpoint};
use crate::failure::Failure;
use crate::input::{check_memory, peak_memory};
use crate::output::{Talk, check_writable, print_json, short, write_file};
use crate::progress::{Place, Watch};
use covary::data::{Choice, Missing, Stream};
use covary::fit::{Link, Method, Plan, Standardize, StartFrom, Step, Warp};
use covary::kernel::Task;
use covary::optim::Adam;
use covary::{Dataset, Fit, Kernel};
use serde_json::json;
use std::path::PathBuf;

/// What a bar counts on where no number is given.
const ITERATIONS: usize = 200;
const RESTARTS: usize = 4;
/// Rows that are read at a time where the table stays in its file.
const PIECE: usize = 8_192;

impl Search {
    /// The fit that these options ask for, and the numbers of iterations and restarts.
    pub fn fit(
        &self,
        task: Task,
        seed: u64,
        defaults: (Option<usize>, usize),
    ) -> Result<(Fit, usize, usize), Failure> {
        if self.kernel.trim() == "search" {
            return Err(Failure::usage("kernel", "`search` is not part of this version"));
        }
        let (iterations, restarts) = (self.iterations.or(defaults.0), self.restarts.unwrap_or(defaults.1));
        let mut fit = Fit::new(Kernel::parse(&self.kernel, task)?).seed(seed).restarts(restarts);
        if let Some(iterations) = iterations {
            fit = fit.iterations(iterations);
        }
        if self.optimizer == OptimizerArg::Adam {
            fit = fit.optimizer(Adam::default());
        }
        if let Some(limit) = self.time_limit {
            fit = fit.time_limit(limit);
        }
        if self.start == StartArg::Paper {
            fit = fit.start(StartFrom::Paper);
        }
        if self.alone {
            fit = fit.rivals(vec![]);
        }
        if let Some(members) = self.members {
            if members == 0 {
                return Err(Failure::usage("members", "at least one is needed"));
            }
            fit = fit.members(members);
        }
        Ok((fit, iterations.unwrap_or(ITERATIONS), restarts))
    }

    /// Where the user wants the state of the work.
    pub fn kept(&self) -> [Option<&PathBuf>; 2] {
        [self.checkpoint.as_ref(), self.resume.as_ref()]
    }
}

/// The rows of a fit: in memory, or in their file.
enum Rows {
    Whole(Dataset),
    Pieces(Stream),
}

impl Rows {
    /// Reads the table, unless it is large and the method can leave it in its file.
    fn read(args: &Args, choice: &Choice) -> Result<Self, Failure> {
        let may = matches!(args.method, MethodArg::Auto | MethodArg::Sparse)
            && choice.missing != Missing::Impute
            && choice.noise.is_none()
            && matches!(args.transform, None | Some(TransformArg::None));
        if may && args.reading.streams(&args.data) {
            let stream = Stream::open(&args.data, &args.reading.options()?, choice, PIECE).map_err(Failure::data)?;
            return Ok(Self::Pieces(stream));
        }
        let table = args.reading.table(&args.data)?;
        Ok(Self::Whole(Dataset::from_table(&table, choice).map_err(Failure::data)?))
    }

    fn size(&self) -> (usize, usize) {
        match self {
            Self::Whole(data) => (data.n(), data.d()),
            Self::Pieces(stream) => (stream.rows().unwrap_or(0), stream.encoding().names().len()),
        }
    }

    fn plan(&self, fit: &Fit) -> Result<Plan, Failure> {
        Ok(match self {
            Self::Whole(data) => fit.plan(data)?,
            Self::Pieces(stream) => fit.plan_stream(stream)?,
        })
    }

    /// What tells a checkpoint that the data are the same.
    fn fingerprint(&self, args: &Args) -> String {
        match self {
            Self::Whole(data) => checkpoint::fingerprint(data),
            Self::Pieces(stream) => {
                let size = std::fs::metadata(&args.data).map_or(0, |meta| meta.len());
                format!("{} rows, {size} bytes", stream.rows().unwrap_or(0))
            }
        }
    }
}

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let stdout = args.output.as_deref() == Some("-".as_ref());
    if stdout && talk.json {
        return Err(Failure::usage("output", "`-o -` and `--json` both want standard output"));
    }
    check_writable(&[args.output.as_ref(), args.search.checkpoint.as_ref()])?;
    let known = args.noise.as_ref().and_then(|text| text.parse::<f64>().ok());
    let choice = Choice {
        inputs: args.inputs.clone(),
        exclude: args.exclude.clone(),
        noise: args.noise.clone().filter(|_| known.is_none()),
        missing: args.reading.missing(),
        ..Choice::new(&args.target)
    };
    let rows = Rows::read(args, &choice)?;
    let (n, d) = rows.size();
    let task = if d == 1 { Task::Series } else { Task::Table };
    let (mut fit, iterations, restarts) = args.search.fit(task, common.seed, (None, RESTARTS))?;
    fit = fit.method(args.method.into());
    if let Some(m) = args.inducing {
        fit = fit.inducing(m);
    }
    if let Some(sd) = known {
        fit = fit.noise(sd);
    }
    if args.no_standardize {
        fit = fit.standardize(Standardize::No);
    }
    fit = fit.warp(match args.transform {
        None => Warp::Beside,
        Some(TransformArg::None) => Warp::None,
        Some(TransformArg::Log) => Warp::By(Link::Log),
        Some(TransformArg::Auto) => Warp::Auto,
    });
    let plan = rows.plan(&fit)?;
    check_memory(&plan, (n, d), |n| fit.memory(n, d), talk)?;

    let task = match args.transform {
        None => "fit".to_string(),
        Some(transform) => format!("fit, transform {}", transform.name()),
    };
    let mut checkpoint = Checkpoint::new(&task, &args.search.kernel, common.seed, restarts, rows.fingerprint(args));
    if let Some(path) = &args.search.resume {
        checkpoint = Checkpoint::open(path, &checkpoint).map_err(Failure::model)?;
        fit = fit.resume_some(checkpoint.states(Link::Identity));
    }
    let place = Place::of(args.search.kept(), &[args.output.as_ref()]);
    let starts = if plan.method == Method::Exact { restarts } else { 1 };
    let watch = Watch::new(talk, (iterations * starts) as u64, checkpoint, place);
    let step = |step: Step| watch.step(Link::Identity, step);
    let model = match &rows {
        Rows::Whole(data) => fit.run_observed(data, step)?,
        Rows::Pieces(stream) => fit.run_stream_observed(stream, step).map_err(Failure::data)?,
    };
    watch.clear();
    let account = model.account();
    account.notes.iter().for_each(|note| talk.note(note));
    if let Some(path) = &args.output {
        write_file(path, &model.to_bytes()?)?;
    }
    watch.finish()?;
    talk.say(&format!(
        "{} {:.2}, noise sd {}, leave-one-out rmse {}; {:.1} s, {}",
        if plan.method == Method::Sparse {
            "bound of the log marginal likelihood"
        } else {
            "log marginal likelihood"
        },
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
