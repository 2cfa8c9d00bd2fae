//! What is done to a table's target before it is fitted, chosen by evidence: a plain kernel is fitted to some rows under
//! each transform, and the likelihood of the target in its own units decides.

use super::link::Link;
use super::{Fit, Model, Step};
use crate::data::{Dataset, Split};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// The most rows and iterations a choice is made by.
const ROWS: usize = 400;
const ITERATIONS: usize = 40;

/// What is done to the target before it is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Warp {
    /// Nothing.
    #[default]
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
            Self::None | Self::By(Link::Identity) => Ok((Link::Identity, None)),
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
            Self::Auto => choose(fit, data),
        }
    }
}

fn fits(link: Link, y: f64) -> bool {
    link.apply(y).is_finite() && link.log_jacobian(y).is_finite()
}

/// The link with the highest evidence.
fn choose(fit: &Fit, data: &Dataset) -> Result<(Link, Option<String>)> {
    let rows = match data.n() {
        n if n > ROWS => Split::random(n, ROWS as f64 / n as f64, fit.seed)?.test,
        n => (0..n).collect(),
    };
    let some = data.select(&rows);
    let mut sorted = data.y().to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
    let (centre, width) = (at(0.5), at(0.9) - at(0.1));
    // Nothing to see, or nothing but outliers.
    if width.is_nan() || width <= 0.0 {
        return Ok((Link::Identity, None));
    }
    let yeo_johnson = |power: f64| Link::YeoJohnson { power, centre, width };
    let mut links = vec![Link::Identity];
    if sorted[0] > 0.0 {
        links.extend([Link::Log, Link::BoxCox { power: 0.5 }]);
    }
    links.extend([0.0, 0.5, 1.5, 2.0].map(yeo_johnson));
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
        return Ok((Link::Identity, None));
    }
    let won = best(&told);
    // A power is one parameter more.
    let gain = told[won] - told[0];
    let link = if gain > 0.5 * (some.n() as f64).ln() { links[won] } else { Link::Identity };
    let note = match link {
        Link::Identity => "target not transformed: no transform has a higher evidence".to_string(),
        _ => format!("target transformed by {link}: evidence {gain:.1} above that of the target as it is"),
    };
    Ok((link, Some(note)))
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
