//! `covary inpaint`: fills the holes of a picture.

use crate::args::{Common, span};
use crate::failure::Failure;
use crate::output::{Talk, check_writable, print, print_json, short, write_file};
use covary::data::{Hole, Picture};
use covary::fit::{Deviations, GridFit, GridModel};
use covary::gp::Variances;
use covary::kernel::Task;
use covary::{Error, ErrorKind, Kernel};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
pub struct Inpaint {
    /// The picture: PNG, grey or coloured
    pub image: PathBuf,
    /// The picture without holes, PNG
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// A hole, counted from 0; repeatable. Transparent pixels are holes without being named
    #[arg(long, value_name = "ROW,COL,HEIGHT,WIDTH")]
    pub hole: Vec<String>,
    /// A picture of the same size, white where pixels are missing and black where they are kept
    #[arg(long, value_name = "MASK")]
    pub mask: Option<PathBuf>,
    /// Kernel text for both axes; twice: for rows, then for columns
    #[arg(long, value_name = "TEXT")]
    pub kernel: Vec<String>,
    /// A picture of how unsure each filled pixel is: white is a standard deviation of a quarter of the range or more
    #[arg(long, value_name = "OUT")]
    pub sd: Option<PathBuf>,
    /// The true picture, to be compared with
    #[arg(long, value_name = "IMAGE")]
    pub truth: Option<PathBuf>,
    /// How many starts
    #[arg(long, value_name = "K")]
    pub restarts: Option<usize>,
    /// The most iterations of each run of a start
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// Take the best so far after this time: 30s, 5min, 2h
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub time_limit: Option<Duration>,
}

pub fn run(args: &Inpaint, common: &Common, talk: &Talk) -> Result<(), Failure> {
    let holes = args.hole.iter().map(|h| h.parse::<Hole>()).collect::<Result<Vec<_>, _>>()?;
    let kernels = kernels(&args.kernel)?;
    check_writable(&[Some(&args.output), args.sd.as_ref()])?;
    let picture = Picture::read(&args.image).map_err(Failure::data)?;
    let (height, width) = (picture.height(), picture.width());
    let truth = args.truth.as_ref().map(|path| same_size(path, &picture)).transpose()?;
    let mut hidden = vec![false; height * width];
    for hole in holes {
        hole.mark(height, width, &mut hidden)?;
    }
    if let Some(path) = &args.mask {
        // White is missing, black is kept.
        let mask = same_size(path, &picture)?;
        hidden.iter_mut().zip(mask.grey()).for_each(|(h, v)| *h |= v >= 0.5);
    }
    let missing: Vec<bool> = hidden.iter().zip(picture.transparent()).map(|(h, t)| *h || *t).collect();
    if missing.iter().all(|m| !m) {
        let error = Error::new(ErrorKind::Grid { message: "the picture has no hole".into() });
        return Err(error
            .with_hint("name it with --hole ROW,COL,HEIGHT,WIDTH, --mask MASK.png or transparency")
            .into());
    }
    let grid = picture.grid(&hidden).map_err(Failure::data)?;
    let count = missing.iter().filter(|m| **m).count();
    talk.detail(format!("{height} x {width} pixels, {count} of them missing, {} channels", grid.channels().len()));

    let mut fit = GridFit::each(kernels).seed(common.seed);
    if let Some(starts) = args.restarts {
        fit = fit.starts(starts);
    }
    if let Some(iterations) = args.iterations {
        fit = fit.iterations(iterations);
    }
    if let Some(limit) = args.time_limit {
        fit = fit.time_limit(limit);
    }
    if args.sd.is_none() {
        fit = fit.deviations(Deviations::None);
    }
    let model = fit.run(&grid)?;
    let filled = compose(&picture, &missing, &model)?;
    write_file(&args.output, &filled.to_png()?)?;
    if let (Some(path), Some(sd)) = (&args.sd, &model.sd) {
        // White is a quarter of the range or more; grey is in proportion.
        let mean = (0..height * width).map(|i| sd.iter().map(|c| c[i]).sum::<f64>() / sd.len() as f64);
        let map = mean.zip(&missing).map(|(s, m)| if *m { 4.0 * s } else { 0.0 }).collect();
        write_file(path, &Picture::new(height, width, vec![map])?.to_png()?)?;
    }
    let score = truth.map(|truth| score(&truth, &filled, &missing));
    report(args, talk, &model, count, score)
}

/// One kernel for both axes, or one for rows and one for columns.
fn kernels(texts: &[String]) -> Result<Vec<Kernel>, Failure> {
    if texts.len() > 2 {
        return Err(Failure::usage(
            "kernel",
            format!("one for both axes, or rows' and columns': {} given", texts.len()),
        ));
    }
    let parse = |text: &String| match text.as_str() {
        "nkn" => Ok(Kernel::default_network(Task::Axis)),
        text => Ok(text.parse::<Kernel>()?),
    };
    match texts {
        [] => Ok(vec![Kernel::default_network(Task::Axis)]),
        texts => texts.iter().map(parse).collect(),
    }
}

/// Another picture of the same size.
fn same_size(path: &Path, picture: &Picture) -> Result<Picture, Failure> {
    let other = Picture::read(path).map_err(Failure::data)?;
    let (expected, found) = ((picture.height(), picture.width()), (other.height(), other.width()));
    if expected == found {
        return Ok(other);
    }
    let message = format!(
        "{}: {} rows and {} columns, the picture has {} and {}",
        path.display(),
        found.0,
        found.1,
        expected.0,
        expected.1
    );
    Err(Error::new(ErrorKind::Grid { message }).into())
}

/// The picture with its missing pixels from the model and the others as they were.
fn compose(picture: &Picture, missing: &[bool], model: &GridModel) -> Result<Picture, Failure> {
    let channel = |(c, seen): (usize, &Vec<f64>)| -> Vec<f64> {
        // Channels that are the same everywhere were fitted as one.
        let said = model.mean.get(c).unwrap_or(&model.mean[0]);
        seen.iter().zip(said).zip(missing).map(|((v, m), missing)| if *missing { *m } else { *v }).collect()
    };
    let channels = picture.channels().iter().enumerate().map(channel).collect();
    Ok(Picture::new(picture.height(), picture.width(), channels)?)
}

/// SMSE and PSNR in the hole, on grey in [0, 1].
fn score(truth: &Picture, filled: &Picture, missing: &[bool]) -> (f64, f64) {
    let (truth, filled) = (truth.grey(), filled.grey());
    let cells: Vec<usize> = (0..missing.len()).filter(|&i| missing[i]).collect();
    smse(&truth, &filled, &cells)
}

/// Mean squared error over the variance of the truth, and the peak signal-to-noise ratio in decibels, at some cells.
pub fn smse(truth: &[f64], said: &[f64], cells: &[usize]) -> (f64, f64) {
    let n = cells.len() as f64;
    let mean = cells.iter().map(|&i| truth[i]).sum::<f64>() / n;
    let variance = cells.iter().map(|&i| (truth[i] - mean).powi(2)).sum::<f64>() / n;
    let error = cells.iter().map(|&i| (truth[i] - said[i]).powi(2)).sum::<f64>() / n;
    (error / variance, -10.0 * error.log10())
}

fn report(
    args: &Inpaint,
    talk: &Talk,
    model: &GridModel,
    missing: usize,
    score: Option<(f64, f64)>,
) -> Result<(), Failure> {
    let cells = model.mean[0].len();
    let deviations = match model.variances {
        None => "not computed".to_string(),
        Some(Variances::Exact | Variances::ExactInHoles(_)) => "exact".into(),
        Some(Variances::Sampled(n)) => format!("estimated from {n} samples"),
    };
    if talk.json {
        let restarts = model.restarts.iter().map(|r| {
            json!({
                "start": r.start, "noise_variance": r.noise, "weight": r.weight, "trial_smse": r.trial,
                "log_marginal_likelihood": r.log_marginal_likelihood, "iterations": r.iterations,
                "evaluations": r.evaluations,
            })
        });
        let mut value = json!({
            "observed": cells - missing, "missing": missing, "seconds": model.seconds, "iterations": model.iterations,
            "log_marginal_likelihood": model.log_marginal_likelihood, "exact_evidence": model.exact,
            "deviations": deviations, "noise_variance": model.noise,
            "kernels": model.kernels.iter().map(Kernel::to_string).collect::<Vec<_>>(),
            "restarts": restarts.collect::<Vec<_>>(),
        });
        if let (Some((smse, psnr)), Some(fields)) = (score, value.as_object_mut()) {
            fields.insert("smse".into(), json!(smse));
            fields.insert("psnr".into(), json!(psnr));
        }
        return print_json(&value);
    }
    let used = model.restarts.iter().filter(|r| r.weight != 0.0).count();
    let mut text = format!(
        "{missing} pixels filled from {} in {:.1} s: {} iterations, {used} of {} fits averaged\n",
        cells - missing,
        model.seconds,
        model.iterations,
        model.restarts.len()
    );
    if let Some((smse, psnr)) = score {
        text += &format!("smse {}\npsnr {} dB\n", short(smse), short(psnr));
    }
    if args.sd.is_some() {
        text += &format!("standard deviations: {deviations}\n");
    }
    if args.output.as_os_str() == "-" {
        talk.say(&text);
        return Ok(());
    }
    print(&text)
}
