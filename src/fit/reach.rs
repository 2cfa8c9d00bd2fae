//! How far a member is to be believed at a point, beside the others: less where its prior says that anything may happen,
//! and less the less sure it is of its prediction. Cheap enough to stand beside means alone.

use super::member::Member;
use crate::data::Points;
use crate::error::Result;
use crate::gp::{Posterior, landmarks};
use crate::program::Program;

/// How sure a member is follows from so many of the rows. More of them weigh no better: to who has seen a few rows, points
/// beyond the data are as far away as they are.
const ROWS: usize = 64;

/// What a member's share at a point follows from.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// The largest prior variance at a row it has seen.
    pub prior: f64,
    /// None in models of before version 7.
    pub few: Option<Few>,
}

/// A member's process once it has seen a few of the rows.
#[derive(Debug, Clone)]
pub(super) struct Few {
    process: Box<Posterior>,
    /// The geometric mean over all rows of the deviations it gives.
    typical: f64,
}

impl Reach {
    /// What follows from the rows of a member's process; none where its prior is nought at all of them.
    pub fn of(member: &Member, x: &Points) -> Result<Option<Self>> {
        let prior = member.process.prior(x)?.into_iter().fold(0.0, f64::max);
        if prior > 0.0 { Ok(Some(Self { prior, few: Some(Few::of(member, x)?) })) } else { Ok(None) }
    }

    /// The share of each standardised point in a member's weight, before shares of all members are made to add up to one, for means
    /// under its link: 1/√(k(x, x)/max k(xᵢ, xᵢ)), where that is below 1, for beyond the data the prior of a polynomial grows without
    /// bound, and its mean with it; and the typical deviation over that at the point.
    pub fn shares(&self, member: &Member, at: &Points, means: &[f64]) -> Result<Vec<f64>> {
        let within = |v: f64| 1.0 / (v / self.prior).max(1.0).sqrt();
        let prior = member.process.prior(at)?.into_iter().map(within);
        let Some(few) = &self.few else { return Ok(prior.collect()) };
        let one = |(within, sd): (f64, f64)| within * few.typical / sd;
        Ok(prior.zip(few.deviations(member, at, means)?).map(one).collect())
    }
}

impl Few {
    /// The few rows that tell most, of all those of a member's process.
    pub fn of(member: &Member, x: &Points) -> Result<Self> {
        let (program, theta) = (Program::compile(&member.kernel, x.d())?, member.kernel.values());
        let rows = landmarks(&program, &theta, x, ROWS)?;
        let nothing = vec![0.0; rows.n()];
        let process = Box::new(Posterior::new(program, theta, member.noise, rows, nothing, None)?);
        let few = Self { process, typical: 1.0 };
        let means: Vec<f64> = member.y.iter().map(|&y| member.scaling.mean(y)).collect();
        let logs: f64 = few.deviations(member, x, &means)?.iter().map(|sd| sd.ln()).sum();
        Ok(Self { typical: (logs / x.n() as f64).exp(), ..few })
    }

    /// Deviations of y in the target's units at standardised points, about means under the link: half of what lies between the
    /// values a deviation above and below. What overflows is as far away as can be.
    fn deviations(&self, member: &Member, at: &Points, means: &[f64]) -> Result<Vec<f64>> {
        let variances = self.process.predict(at)?.variance_y;
        let one = |(v, &mean): (f64, &f64)| {
            let sd = member.scaling.variance(v).sqrt();
            let half = 0.5 * (member.link.undo(mean + sd) - member.link.undo(mean - sd));
            if half.is_nan() { f64::INFINITY } else { half.max(f64::MIN_POSITIVE) }
        };
        Ok(variances.into_iter().zip(means).map(one).collect())
    }
}
