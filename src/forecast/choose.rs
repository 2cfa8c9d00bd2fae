//! Which kernels, starts and links make a forecast, and with what weights: judged by the evidence and by forecasting
//! parts of the past from what came before them. Several good ones are averaged rather than one trusted.

use super::Effort;
use super::past::Past;
use super::rivals::{FADED, HANDICAP, LEAST_STRAIGHT, SCOUTS, STRAIGHT, plain, with_seasons};
use super::rolling::Rolling;
use super::rows::{Origin, kept, most_learned, origins};
use super::shares::{OUT, at_least, balanced, charge};
use crate::data::{Dataset, Points};
use crate::error::Result;
use crate::fit::{CandidateAccount, Fit, Levels, Link, Mixture, Model, Part, Step};
use crate::kernel::Kernel;
use crate::optim::State;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::Instant;

const SCOUT_STEPS: usize = 40;
/// The most iterations of a rival.
const RIVAL_STEPS: usize = 150;
/// Restarts of the asked kernel that stay in the running.
const STARTS: usize = 4;
/// Parameters beyond these cost nothing: weak priors hold them.
const MOST_COUNTED: usize = 12;
/// How much a difference of the penalised evidence counts: all of it would trust the model that fits the past.
const EVIDENCE: f64 = 0.1;
/// Evidence grows with the rows, what it says about the future does not: beyond this many it counts as if of so many.
const PLENTY: f64 = 100.0;
/// Shares of a limited time: the short look, the asked kernel, and within each kernel what is fitted first.
const SCOUTS_SHARE: f64 = 0.15;
const ASKED_SHARE: f64 = 0.6;
const FIRST_SHARE: f64 = 0.7;
/// A link whose best evidence is lower by this much is not tried with the asked kernel.
const CLEAR: f64 = 10.0;
/// A forecast that leaves the range of the data by more than this many times that range is taken only if all do.
const FAR: f64 = 3.0;
/// Intervals become wider by no more than this factor.
const WIDEST: f64 = 3.0;
/// What the errors of a few origins that overlap are short of those to come: without it, 95 % intervals hold 92.5 %.
const MARGIN: f64 = 1.1;
/// With this many values or fewer intervals are twice as wide as the fits say, with more nearly as wide: what is learned from few
/// is itself uncertain. Without it, 80 % intervals of series of less than 60 values hold 75 %.
const FEW: f64 = 15.0;
/// Iterations of a fit that goes on from that of a shorter past.
const AGAIN: usize = 40;

/// One kernel, start and link, fitted to the whole series and to its beginnings.
struct Runner {
    model: Model,
    name: String,
    /// Log marginal likelihood in the target's own units.
    evidence: f64,
    /// Does its forecast run away?
    away: bool,
    /// What it has less than others from the outset, as a logarithm.
    handicap: f64,
    /// The least share it has while the evidence does not speak against it.
    least: f64,
    /// What it said of the values after each origin; none where that fit failed.
    told: Vec<Option<Vec<Mixture>>>,
}

/// What is known under one link.
struct Pasts {
    link: Link,
    levels: Levels,
    /// At each origin.
    before: Vec<Past>,
    whole: Past,
}

/// What is fitted, to what.
pub(super) struct Question<'a> {
    pub fit: &'a Fit,
    pub data: &'a Dataset,
    pub links: &'a [Link],
    /// Do other kernels compete with the asked one?
    pub compete: bool,
    /// Steps that will be forecast, where they are known.
    pub horizon: Option<usize>,
    pub effort: Effort,
    pub resume: &'a [(Link, Vec<Option<State>>)],
    /// Steps of the level under each link.
    pub levels: &'a [(Link, Levels)],
}

/// What was chosen.
pub(super) struct Chosen {
    pub model: Model,
    /// Log marginal likelihood of the heaviest member, in the target's own units.
    pub evidence: f64,
    pub rolling: Option<Rolling>,
    /// Was time too short for all that is usually tried?
    pub hurried: bool,
}

impl Question<'_> {
    /// Fits, judges and averages.
    pub fn answer(&self, watch: &(impl Fn(Link, Step) -> ControlFlow<()> + Sync)) -> Result<Chosen> {
        let clock = Instant::now();
        let mut origins = origins(self.data.n(), self.horizon);
        if self.effort == Effort::Quick {
            origins.truncate(1);
        }
        let origins = origins;
        let rivals = self.compete;
        let pasts = self.pasts(&origins)?;
        let certain = |p: &Pasts| p.whole.seasons.iter().filter(|s| s.certain).count();
        let seasons = pasts.iter().map(certain).max().unwrap_or(0);
        let (texts, bending) = plain(self.effort == Effort::Quick, seasons);
        let favoured: Vec<String> = texts[texts.len() - bending..].iter().filter_map(|t| printed(t)).collect();
        // Where there are two links, a short look first: the asked kernel takes longest, and is fitted only under links
        // that plain kernels do not speak against.
        let looking = if rivals && self.links.len() > 1 { with_seasons(&SCOUTS, seasons) } else { vec![] };
        let quick = self.fit.clone().with_share_of_time(SCOUTS_SHARE);
        let scouts = self.rivals(&looking, &pasts, &[], quick.clone().at_most(SCOUT_STEPS))?;
        let mut hurried = quick.is_late();
        let best = |link: Option<Link>| {
            let some = scouts.iter().filter(|r| link.is_none_or(|link| r.model.link() == link));
            some.map(|r| r.evidence).fold(f64::NEG_INFINITY, f64::max)
        };
        let doubtful = |link: Link| !hurried && best(Some(link)) < best(None) - CLEAR;
        let worth: Vec<&Pasts> = pasts.iter().filter(|p| !doubtful(p.link)).collect();
        // Where time is short, some of it is left for the rivals.
        let asked_fit = if rivals { self.fit.clone().with_share_of_time(ASKED_SHARE) } else { self.fit.clone() };
        let run =
            |p: &&Pasts| self.run(asked_fit.kernel(), p, &origins, asked_fit.clone(), &|step| watch(p.link, step));
        let asked: Vec<Result<Vec<Runner>>> = worth.par_iter().with_max_len(1).map(run).collect();
        hurried |= asked_fit.is_late();
        let few = self.fit.clone().at_most(RIVAL_STEPS);
        let mut runners = if rivals { self.rivals(&texts, &pasts, &origins, few)? } else { vec![] };
        hurried |= self.fit.is_late();
        let mut failed = None;
        for result in asked {
            match result {
                Ok(some) => runners.extend(some),
                Err(error) => failed = Some(error),
            }
        }
        if !favoured.is_empty() {
            runners.iter_mut().filter(|r| !favoured.contains(&r.name)).for_each(|r| r.handicap = HANDICAP);
            let straight = printed(STRAIGHT);
            let goes_on = |r: &&mut Runner| Some(&r.name) == straight.as_ref() && r.model.link() == Link::Identity;
            runners.iter_mut().filter(goes_on).for_each(|r| r.least = LEAST_STRAIGHT);
        }
        if runners.is_empty() {
            // Better than nothing: what the short look found.
            runners.extend(scouts.into_iter().map(|r| Runner { told: vec![None; origins.len()], ..r }));
        }
        if let (true, Some(error)) = (runners.is_empty(), failed) {
            return Err(error);
        }
        let chosen = self.average(runners, &origins, &pasts)?;
        // Of the whole search, not of the heaviest member.
        let seconds = clock.elapsed().as_secs_f64();
        Ok(Chosen { model: chosen.model.with_account(|a| a.seconds = seconds), hurried, ..chosen })
    }

    /// The values that kernels are learned from.
    fn learned_values(&self) -> Vec<f64> {
        at_rows(self.data.y(), &kept(self.data.n(), most_learned(self.data.n(), self.compete)))
    }

    /// What is known at each origin and at the end, under each link.
    fn pasts(&self, origins: &[Origin]) -> Result<Vec<Pasts>> {
        let one = |&link: &Link| {
            let none = Levels::default();
            let levels = self.levels.iter().find(|l| l.0 == link).map_or(none, |l| l.1.clone());
            let series = levels.taken_out(link.of(self.data)?)?;
            let past = |at: usize| Past::new(&series, at, most_learned(series.n(), self.compete));
            let ends: Vec<usize> = origins.iter().map(|o| o.at).chain([series.n()]).collect();
            let mut all: Vec<Past> = ends.into_par_iter().with_max_len(1).map(past).collect();
            let whole = all.pop().expect("one was put there");
            Ok(Pasts { link, levels, before: all, whole })
        };
        self.links.iter().map(one).collect()
    }

    /// Rivals under every link; one that fails is no reason to fail.
    fn rivals(&self, texts: &[String], pasts: &[Pasts], origins: &[Origin], fit: Fit) -> Result<Vec<Runner>> {
        let mut entries: Vec<(Kernel, &Pasts)> = Vec::new();
        for text in texts {
            for past in pasts {
                entries.push((text.parse()?, past));
            }
        }
        let plain = fit.restarts(1).resume(vec![]);
        let run = |(kernel, pasts): &(Kernel, &Pasts)| {
            self.run(kernel, pasts, origins, plain.clone(), &|_| ControlFlow::Continue(()))
        };
        let all: Vec<Vec<Runner>> =
            entries.par_iter().with_max_len(1).map(|entry| run(entry).unwrap_or_default()).collect();
        Ok(all.into_iter().flatten().collect())
    }

    /// One kernel under one link: the fit to the whole series, and to what comes before each origin.
    fn run(
        &self,
        kernel: &Kernel,
        pasts: &Pasts,
        origins: &[Origin],
        fit: Fit,
        watch: &(impl Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Runner>> {
        let Pasts { link, levels, before, whole } = pasts;
        let fit = fit.kernel_of(kernel.clone());
        let asked = *kernel == *self.fit.kernel();
        let once = fit.clone().restarts(1).resume(vec![]);
        let first = |fit: &Fit| fit.clone().with_share_of_time(if origins.is_empty() { 1.0 } else { FIRST_SHARE });
        // The asked kernel is fitted to the whole series first, from all its starts: that is what can be resumed.
        let mut models = Vec::new();
        if asked {
            let states = self.resume.iter().find(|r| r.0 == *link).map_or(vec![], |r| r.1.clone());
            models = whole.known_to(first(&fit).resume_some(states)).run_each(&whole.learned, watch)?;
        }
        // From the shortest past to the longest, each fit going on from the one before: none has seen what it forecasts,
        // but for shifts of the level, which nobody could foresee and no kernel is judged by.
        let mut last: Option<(Model, &Past)> = None;
        let mut told: Vec<Option<Vec<Mixture>>> = vec![None; origins.len()];
        let mut order: Vec<usize> = (0..origins.len()).collect();
        order.sort_by_key(|&o| origins[o].at);
        let again = |once: &Fit, past: &Past, earlier: &Option<(Model, &Past)>| match earlier {
            Some((model, from)) if past.repeats_as(from) => once.clone().going_on_from(model, AGAIN),
            _ => past.known_to(once.clone()),
        };
        let past_fit = if asked { once.clone() } else { first(&once) };
        for o in order {
            let (past, ahead) = (&before[o], at_rows(self.data.x().column(0), &origins[o].ahead));
            let ahead = Points::from_column(&ahead)?;
            let found = again(&past_fit, past, &last).run_each(&past.learned, &|_: Step| ControlFlow::Continue(()));
            if let Some(model) = found.ok().and_then(|m| m.into_iter().next()) {
                let knows = past.shown_to(&model);
                told[o] = knows.and_then(|m| m.with_link(*link).with_levels(levels).distribution(&ahead)).ok();
                last = Some((model, past));
            }
        }
        if !asked {
            models = again(&once, whole, &last).run_each(&whole.learned, watch)?;
        }
        models.truncate(STARTS);
        let runner = |model: Model| {
            // Every step of the level was looked for among all times.
            let cost = 1.5 * levels.steps().len() as f64 * (self.data.n() as f64).ln();
            let evidence = model.evidence_under(*link, &self.learned_values()) - cost;
            let model = model.with_link(*link).with_levels(levels);
            let away = self.runs_away(&model);
            Runner { model, name: kernel.to_string(), evidence, away, handicap: 0.0, least: 0.0, told: told.clone() }
        };
        Ok(models.into_iter().map(runner).collect())
    }

    /// Weighs the runners and averages the best.
    fn average(&self, runners: Vec<Runner>, origins: &[Origin], pasts: &[Pasts]) -> Result<Chosen> {
        let weights = self.weights(&runners, origins, None);
        let mut order: Vec<usize> = (0..runners.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let rolling = self.rolling(&runners, origins);
        let width = |r: &Runner| r.model.scaling().target_width().ln();
        let y = self.learned_values();
        let account = |&i: &usize| {
            let r = &runners[i];
            let jacobian = y.iter().map(|&y| r.model.link().log_jacobian(y)).sum::<f64>() / y.len() as f64;
            CandidateAccount {
                kernel: r.name.clone(),
                transform: r.model.link(),
                weight: weights[i],
                log_marginal_likelihood: r.evidence + width(r) * y.len() as f64,
                loo_log_density: r.model.account().loo.log_density + jacobian,
            }
        };
        let candidates: Vec<CandidateAccount> = order.iter().map(account).collect();
        let evidence = runners[order[0]].evidence;
        let mut models: Vec<Option<Model>> = runners.into_iter().map(|r| Some(r.model)).collect();
        let chosen = order.iter().filter(|&&i| weights[i] > 0.0);
        let chosen: Vec<(Model, f64)> = chosen.filter_map(|&i| Some((models[i].take()?, weights[i]))).collect();
        let whole = |link: Link| pasts.iter().find(|p| p.link == link).map(|p| &p.whole);
        let shown = |(model, weight): &(Model, f64)| Some((whole(model.link())?.shown_to(model).ok()?, *weight));
        let shown: Vec<(Model, f64)> = chosen.par_iter().with_max_len(1).filter_map(shown).collect();
        // If not one of them can take in more rows, those they were learned from must do.
        let model = Model::average(if shown.is_empty() { chosen } else { shown })?
            .with_account(|a| a.candidates = candidates);
        // Forecasts of the past that were too sure make those of the future wider.
        let spread = rolling.map_or(1.0, |r| (MARGIN * r.spread).max(1.0));
        let few = 1.0 + (FEW / self.data.n() as f64).powi(2).min(1.0);
        let model = model.widened((spread * few).min(WIDEST));
        Ok(Chosen { model, evidence, rolling, hurried: false })
    }

    /// exp(c · penalised evidence · min(1, 100/n)) · error⁻ᵖ, the error relative to the others' at each origin, less what
    /// is left of a handicap, and at least what is left of a share. One origin may be left out.
    fn weights(&self, runners: &[Runner], origins: &[Origin], without: Option<usize>) -> Vec<f64> {
        let n = self.learned_values().len() as f64;
        let penalised = |r: &Runner| {
            let count = r.model.kernel().params().len().min(MOST_COUNTED) as f64;
            r.evidence - 0.5 * count * n.ln()
        };
        let best = runners.iter().map(penalised).fold(f64::NEG_INFINITY, f64::max);
        let scale = EVIDENCE * (PLENTY / n).min(1.0);
        let mut logs: Vec<f64> = runners.iter().map(|r| scale * (penalised(r) - best)).collect();
        let seen = origins.iter().enumerate().filter(|(o, _)| Some(*o) != without);
        let errors = seen.map(|(o, origin)| {
            let truth = at_rows(self.data.y(), &origin.ahead);
            let error = |r: &Runner| -> Option<f64> {
                let told = r.told[o].as_ref()?;
                let squares = told.iter().zip(&truth).map(|(m, y)| (m.moments().0 - y).powi(2)).sum::<f64>();
                Some((squares / truth.len() as f64).sqrt()).filter(|e| e.is_finite())
            };
            runners.iter().map(error).collect()
        });
        charge(&mut logs, &errors.collect::<Vec<_>>());
        let favoured = runners.iter().filter(|r| r.handicap == 0.0).map(penalised).fold(f64::NEG_INFINITY, f64::max);
        for (log, runner) in logs.iter_mut().zip(runners) {
            let left = (1.0 - (penalised(runner) - favoured) / FADED).clamp(0.0, 1.0);
            *log -= runner.handicap * left + if runner.away { OUT } else { 0.0 };
        }
        let asked: Vec<bool> = runners.iter().map(|r| r.name == self.fit.kernel().to_string()).collect();
        let transformed: Vec<bool> = runners.iter().map(|r| r.model.link() != Link::Identity).collect();
        let mut weights = balanced(&logs, &asked, &transformed);
        let highest = runners.iter().filter(|r| !r.away).map(penalised).fold(f64::NEG_INFINITY, f64::max);
        for (i, runner) in runners.iter().enumerate().filter(|(_, r)| r.least > 0.0 && !r.away) {
            let left = (1.0 - (highest - penalised(runner)) / FADED).clamp(0.0, 1.0);
            at_least(&mut weights, i, runner.least * left);
        }
        weights
    }

    /// Does its forecast leave the range of the data by several times that range?
    fn runs_away(&self, model: &Model) -> bool {
        let (x, y) = (self.data.x().column(0), self.data.y());
        let (low, high) = y.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        let (last, step) = (x[x.len() - 1], (x[x.len() - 1] - x[0]) / (x.len() - 1).max(1) as f64);
        let steps = self.horizon.unwrap_or(x.len() / 5).max(1);
        // A few times tell; a long horizon has many.
        let times: Vec<f64> = (1..=20).map(|i| last + step * (i * steps) as f64 / 20.0).collect();
        let ahead = Points::from_column(&times).and_then(|p| model.mean(&p));
        let away = |v: &f64| !v.is_finite() || (v - high).max(low - v) > FAR * (high - low).max(f64::MIN_POSITIVE);
        ahead.is_ok_and(|mean| mean.iter().any(away)) && high > low
    }

    /// How the weighted forecasts of the past came out: from each origin by weights that have not seen it, for by those
    /// that have, they look better than they are.
    fn rolling(&self, runners: &[Runner], origins: &[Origin]) -> Option<Rolling> {
        let mut rolling = Rolling::default();
        for (o, origin) in origins.iter().enumerate() {
            let weights = self.weights(runners, origins, Some(o));
            for (step, &row) in origin.ahead.iter().enumerate() {
                let mut parts = Vec::new();
                for (r, &w) in runners.iter().zip(&weights).filter(|(_, w)| **w > 0.0) {
                    let told = r.told[o].iter().flat_map(|t| t[step].parts.iter());
                    parts.extend(told.map(|p| Part { weight: p.weight * w, ..*p }));
                }
                let total: f64 = parts.iter().map(|p| p.weight).sum();
                if total > 0.0 {
                    parts.iter_mut().for_each(|p| p.weight /= total);
                    rolling.add(&Mixture { parts }, self.data.y()[row]);
                }
            }
        }
        rolling.finish(origins.len())
    }
}

/// A kernel's text as it is printed.
fn printed(text: &str) -> Option<String> {
    text.parse::<Kernel>().ok().map(|kernel| kernel.to_string())
}

/// The values of some rows.
fn at_rows(values: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&r| values[r]).collect()
}
