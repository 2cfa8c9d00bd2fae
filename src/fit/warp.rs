//! What is done to a table's target before it is fitted, chosen by evidence: a plain kernel is fitted to some rows under
//! each transform, and the likelihood of the target in its own units decides.

use super::candidate::Found;
use super::link::Link;
use super::problem::{Problem, order};
use super::{Fit, Model, Standardize, Step};
use crate::data::{Dataset, Split};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::optim::Stop;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The most rows and iterations a choice is made by.
const ROWS: usize = 400;
const ITERATIONS: usize = 40;
/// Fewer rows do not tell how a target is best transformed.
const FEWEST: usize = 30;
/// A target of fewer values, or with one of them in more than one row of so many, is coarse.
const FEWEST_VALUES: usize = 20;
const LARGEST_SHARE: usize = 5;

/// What is done to the target before it is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Warp {
    /// Nothing; but where one of Yeo and Johnson's powers has a clearly higher evidence, fits of the target so transformed
    /// compete with a network, and all are weighed together. Other units of the target give the same answer. By the exact method
    /// alone, from 30 rows on, where noise is not known and the target has more than a few values.
    #[default]
    Beside,
    /// Nothing.
    None,
    /// What has the highest evidence among nothing, the logarithm, Box and Cox's powers (of positive targets) and Yeo
    /// and Johnson's (of any).
    Auto,
    /// This.
    By(Link),
}

impl Warp {
    /// The link of a target, and what there is to say of the choice.
    pub(super) fn link(self, fit: &Fit, data: &Dataset) -> Result<(Link, Option<String>)> {
        let known = data.noise().is_some() || fit.noise.is_some();
        match self {
            Self::Beside | Self::None | Self::By(Link::Identity) => Ok((Link::Identity, None)),
            Self::By(_) if known => {
                Err(Error::option("transform", "the noise is known of the target as it is; leave out one of the two"))
            }
            Self::By(link) if Link::try_from(link.to_string()).ok() != Some(link) => {
                Err(Error::option("transform", format!("its numbers are out of range: {link}")))
            }
            Self::By(link) => match data.y().iter().position(|&y| !fits(link, y)) {
                Some(row) => {
                    let found = data.y()[row];
                    let error = Error::option("transform", format!("{link} of {found} in row {}", row + 1));
                    Err(error.with_hint("a logarithm needs positive targets; `auto` takes what the data allow"))
                }
                None => Ok((link, None)),
            },
            Self::Auto if known => Ok((Link::Identity, Some("not transformed, for its noise is known".into()))),
            Self::Auto => {
                let Some(Choice { link, gain }) = choose(fit, data, Family::All)? else {
                    return Ok((Link::Identity, None));
                };
                let note = match link {
                    Link::Identity => "target not transformed: no transform has a higher evidence".to_string(),
                    _ => {
                        format!("target transformed by {link}: evidence {gain:.1} above that of the target as it is")
                    }
                };
                Ok((link, Some(note)))
            }
        }
    }
}

impl Fit {
    /// The same rows with a transformed target, whose fits compete with those of the target as it is, and what there is to say of
    /// it. Only where a network has rivals and work is not to end: noise that is known, and data that are not to be
    /// standardised, are of the target as it is; few rows, and targets of few values, do not tell.
    pub(super) fn problem_beside(&self, data: &Dataset, ended: &Found, clock: Instant) -> Option<(Problem, String)> {
        let known = data.noise().is_some() || self.noise.is_some() || self.standardize == Standardize::No;
        let competes = self.warp == Warp::Beside && self.kernel.is_network() && !self.is_alone();
        if known || !competes || self.link != Link::Identity || data.n() < FEWEST || is_coarse(data.y()) {
            return None;
        }
        let stopped = ended.outcomes.iter().any(|o| matches!(o.stop, Stop::Time | Stop::Interrupted));
        if stopped || self.is_interrupted() || self.time_left(clock) == Some(Duration::ZERO) {
            return None;
        }
        let Choice { link, gain } = choose(self, data, Family::YeoJohnson).ok()??;
        if link == Link::Identity || !gain.is_finite() {
            return None;
        }
        // What cannot be transformed is no reason to fail.
        let linked = Fit { link, ..self.clone() }.problem(&link.of(data).ok()?).ok()?;
        Some((linked, format!("fits of the target transformed by {link} compete: evidence {gain:.1} higher")))
    }
}

/// Whether a target has few values, or one of them in many rows: densities then say more of the values than of the rows.
fn is_coarse(y: &[f64]) -> bool {
    let mut sorted = y.to_vec();
    sorted.sort_by(f64::total_cmp);
    let runs: Vec<usize> = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    runs.len() < FEWEST_VALUES || runs.iter().any(|&rows| rows * LARGEST_SHARE > y.len())
}

/// Which transforms are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Yeo and Johnson's powers alone, which follow the units of the target.
    YeoJohnson,
    /// These, and for positive targets the logarithm and Box and Cox's.
    All,
}

/// What has the highest evidence, by how much above that of the target as it is.
struct Choice {
    link: Link,
    gain: f64,
}

fn fits(link: Link, y: f64) -> bool {
    link.apply(y).is_finite() && link.log_jacobian(y).is_finite()
}

/// The link with the highest evidence; nothing where there is nothing to see, or someone said to stop.
fn choose(fit: &Fit, data: &Dataset, family: Family) -> Result<Option<Choice>> {
    // Of the rows in an order of their own, whatever that of the file.
    let order = order(data);
    let rows = match data.n() {
        n if n > ROWS => {
            Split::random(n, ROWS as f64 / n as f64, fit.seed)?.test.into_iter().map(|i| order[i]).collect()
        }
        _ => order,
    };
    let some = data.select(&rows);
    let mut sorted = data.y().to_vec();
    sorted.sort_by(f64::total_cmp);
    // Between the two nearest values: of −y it is the same from above.
    let at = |share: f64| {
        let place = share * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (place - place.floor()) * (above - below)
    };
    let (centre, width) = (at(0.5), at(0.9) - at(0.1));
    // Nothing to see, or nothing but outliers.
    if !(width > 0.0 && width.is_finite()) {
        return Ok(None);
    }
    let reach = sorted.iter().map(|y| ((y - centre) / width).abs()).fold(0.0, f64::max);
    if !reach.is_finite() {
        return Ok(None);
    }
    let yeo_johnson = |power: f64| Link::YeoJohnson { power, centre, width, reach };
    let mut links = vec![Link::Identity];
    if family == Family::All && sorted[0] > 0.0 {
        links.extend([Link::Log, Link::BoxCox { power: 0.5 }]);
    }
    links.extend([0.0, 0.5, 1.5, 2.0].map(yeo_johnson));
    links.retain(|&link| sorted.iter().all(|&y| fits(link, y)));
    let evidence = |links: &[Link]| links.par_iter().map(|&link| evidence(fit, &some, link)).collect::<Vec<_>>();
    let mut told = evidence(&links);
    let best = |told: &[f64]| (0..told.len()).max_by(|&a, &b| told[a].total_cmp(&told[b])).unwrap_or(0);
    // Half-way to its neighbours.
    if let Link::YeoJohnson { power, .. } = links[best(&told)] {
        let beside: Vec<Link> =
            [power - 0.25, power + 0.25].into_iter().filter(|p| (0.0..=2.0).contains(p)).map(yeo_johnson).collect();
        told.extend(evidence(&beside));
        links.extend(beside);
    }
    if fit.is_interrupted() {
        return Ok(None);
    }
    let won = best(&told);
    // A power is one parameter more.
    let gain = told[won] - told[0];
    let link = if gain > 0.5 * (some.n() as f64).ln() { links[won] } else { Link::Identity };
    Ok(Some(Choice { link, gain }))
}

/// The log marginal likelihood of the target in its own units, under a plain kernel.
fn evidence(fit: &Fit, data: &Dataset, link: Link) -> f64 {
    let fitted = || -> Result<f64> {
        let plain = fit.aside(Kernel::matern52(), ITERATIONS);
        let linked = data.clone().map_target(|y| link.apply(y))?;
        let models = plain.run_each(&linked, &|_: Step| ControlFlow::Continue(()))?;
        Ok(models.first().map_or(f64::NEG_INFINITY, |m| m.evidence_under(link, data.y())))
    };
    fitted().ok().filter(|e| e.is_finite()).unwrap_or(f64::NEG_INFINITY)
}

impl Model {
    /// The log marginal likelihood of the target in its own units, of a model fitted to the linked target:
    /// ln p(y) = ln p(z) + Σ ln |dz/dy|, and z was standardised by its width on the way.
    pub(crate) fn evidence_under(&self, link: Link, y: &[f64]) -> f64 {
        let jacobian: f64 = y.iter().map(|&y| link.log_jacobian(y)).sum();
        self.account().log_marginal_likelihood - self.scaling().target_width().ln() * y.len() as f64 + jacobian
    }
}
