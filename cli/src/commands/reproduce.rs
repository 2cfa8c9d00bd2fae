//! `covary reproduce`: the paper's experiments.

use crate::args::{Common, Reproduce as Args};
use crate::failure::Failure;
use crate::output::{Talk, columns, print, print_json};
use crate::reproduce::{EXPERIMENTS, Experiment, Setup};
use covary::{Error, ErrorKind};
use serde_json::json;

pub fn run(args: &Args, common: &Common, talk: &Talk) -> Result<(), Failure> {
    if args.list {
        return list(talk);
    }
    let chosen = args.names.iter().map(|name| {
        EXPERIMENTS.iter().find(|e| e.name == name).ok_or_else(|| {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
            Failure::usage("NAME", format!("no experiment `{name}`; there are {}", names.join(", ")))
        })
    });
    let mut chosen: Vec<&Experiment> = chosen.collect::<Result<_, _>>()?;
    if chosen.is_empty() {
        chosen = EXPERIMENTS.iter().collect();
    }
    let made = std::fs::create_dir_all(&args.out);
    made.map_err(|source| Error::new(ErrorKind::Io { path: args.out.clone(), source }))?;
    let setup = Setup {
        data: args.data.clone(),
        out: args.out.clone(),
        quick: args.quick,
        seed: common.seed,
        sets: &args.sets,
        kernels: &args.kernels,
        splits: args.splits,
        talk,
    };
    let mut all = Vec::new();
    for experiment in chosen {
        talk.say(&format!("{}: {} ...", experiment.name, experiment.what));
        let report = (experiment.run)(&setup, experiment.name)?;
        report.save(&setup)?;
        if !talk.json {
            print(&format!("{}\n", report.to_text()))?;
        }
        all.push(report.to_json());
    }
    if talk.json {
        return print_json(&json!({ "experiments": all }));
    }
    talk.note(format!("tables and plots are in {}", args.out.display()));
    Ok(())
}

fn list(talk: &Talk) -> Result<(), Failure> {
    if talk.json {
        let one = |e: &Experiment| json!({"name": e.name, "what": e.what, "needs": e.needs, "takes": e.takes});
        return print_json(&json!({ "experiments": EXPERIMENTS.iter().map(one).collect::<Vec<_>>() }));
    }
    let row = |e: &Experiment| [e.name, e.what, e.needs, e.takes].map(String::from).to_vec();
    print(&columns(&["name", "what", "needs", "takes"], &EXPERIMENTS.iter().map(row).collect::<Vec<_>>()))
}
