//! A fitted model: one process, or several with weights; predicts in the data's own units and tells how it came about.

use super::account::Account;
use super::candidate::Candidate;
use super::link::Link;
use super::member::Member;
use super::mixture::{Mixture, Part};
use super::problem::Problem;
use super::{Fit, Units};
use crate::data::{Dataset, Encoding, Points, Scaling};
use crate::error::{Error, Result};
use crate::gp::Prediction;
use crate::kernel::Kernel;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_distr::{Distribution, StandardNormal};

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) encoding: Encoding,
    pub(super) target: String,
    /// Standardised inputs, the same for every member.
    pub(super) x: Points,
    /// The heaviest first; at least one.
    pub(super) members: Vec<Member>,
    /// By what standard deviations are multiplied, where tests have shown them too small.
    pub(super) widening: f64,
    pub(super) account: Account,
}

impl Model {
    /// The model of some candidates, with their weights.
    pub(super) fn of(problems: &[Problem], chosen: &[(&Candidate, f64)], account: Account) -> Result<Self> {
        let problem = &problems[0];
        let member = |&(c, weight): &(&Candidate, f64)| {
            let parts = problems[c.problem].parts(c.kernel.clone(), c.noise, weight);
            let member = Member::new(parts, problem.x.points())?;
            if chosen.len() == 1 { Ok(member) } else { member.within_reach(problem.x.points()) }
        };
        let members = chosen.iter().map(member).collect::<Result<Vec<_>>>()?;
        let (encoding, target) = (problem.encoding.clone(), problem.target.clone());
        Ok(Self { encoding, target, x: problem.x.points().clone(), members, widening: 1.0, account })
    }

    /// The same processes, in the same units, once they have seen these rows instead of those they were learned from. The
    /// account stays that of the learning.
    ///
    /// # Errors
    /// When the rows do not fit, or their covariance cannot be factorised.
    pub(crate) fn shown(&self, data: &Dataset) -> Result<Self> {
        let mut shown = self.clone();
        for m in &mut shown.members {
            let mut fit = Fit::new(m.kernel.clone());
            (fit.units, fit.link) = (Units::All(m.scaling.clone()), m.link);
            let problem = Problem::new(data, &fit, Problem::may_merge(&m.kernel))?;
            let member = Member::new(problem.parts(m.kernel.clone(), m.noise, m.weight), problem.x.points())?;
            *m = Member { levels: m.levels.clone(), ..member };
            shown.x = problem.x.points().clone();
        }
        Ok(shown)
    }

    /// The weighted average of models of the same inputs: their members beside each other. The account is that of the
    /// first; members without weight are left out.
    ///
    /// # Errors
    /// When there is none, or the inputs differ.
    pub fn average(models: Vec<(Model, f64)>) -> Result<Model> {
        let total: f64 = models.iter().map(|m| m.1).sum();
        let mut models = models.into_iter().filter(|m| m.1 > 0.0);
        let Some((mut first, weight)) = models.next() else {
            return Err(Error::option("average", "there is no model with a weight"));
        };
        first.members.iter_mut().for_each(|m| m.weight *= weight / total);
        for (model, weight) in models {
            if model.x != first.x {
                return Err(Error::option("average", "the models have seen different inputs"));
            }
            first
                .members
                .extend(model.members.into_iter().map(|m| Member { weight: m.weight * weight / total, ..m }));
        }
        // Weights that come from elsewhere are taken as they are.
        first.members.iter_mut().for_each(|m| m.reach = None);
        first.members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        Ok(first)
    }

    /// The processes it is made of, the heaviest first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The kernel of the heaviest member with its fitted values, on standardised data.
    pub fn kernel(&self) -> &Kernel {
        &self.members[0].kernel
    }

    /// How the model came about.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The same model with another account.
    pub(crate) fn with_account(mut self, change: impl FnOnce(&mut Account)) -> Self {
        change(&mut self.account);
        self
    }

    /// From the data's units to those of the heaviest member and back.
    pub fn scaling(&self) -> &Scaling {
        &self.members[0].scaling
    }

    /// By what standard deviations are multiplied, where forecasts of the past have shown them too small; usually 1.
    pub fn widening(&self) -> f64 {
        self.widening
    }

    /// The same model with standard deviations multiplied by a factor.
    #[must_use]
    pub(crate) fn widened(mut self, factor: f64) -> Self {
        self.widening = factor;
        self
    }

    /// How table columns become inputs.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Number of observations; rows that were merged count as one.
    pub fn n(&self) -> usize {
        self.members[0].process.n()
    }

    /// What was done to the target of the heaviest member before it was fitted.
    pub fn link(&self) -> Link {
        self.members[0].link
    }

    /// The same model, of a target that was taken through this link before it was fitted.
    #[must_use]
    pub fn with_link(mut self, link: Link) -> Self {
        self.members.iter_mut().for_each(|m| m.link = link);
        self
    }

    /// Means and variances at some points, in the data's units; memory is bounded whatever their number. For intervals
    /// see [`Model::distribution`].
    ///
    /// # Errors
    /// When the points have another width than the data.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        let (f, y) = self.distributions(points)?;
        let mean = y.iter().map(|m| m.moments().0).collect();
        let variance = |of: &[Mixture]| of.iter().map(|m| m.moments().1).collect();
        Ok(Prediction { mean, variance_f: variance(&f), variance_y: variance(&y) })
    }

    /// The whole distribution of a new observation at each point: quantiles, densities, scores.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn distribution(&self, points: &Points) -> Result<Vec<Mixture>> {
        Ok(self.distributions(points)?.1)
    }

    /// The distribution of f, without noise, and of y at each point.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn distributions(&self, points: &Points) -> Result<(Vec<Mixture>, Vec<Mixture>)> {
        let (mut f, mut y) = (vec![Mixture::default(); points.n()], vec![Mixture::default(); points.n()]);
        let said = self.members.iter().map(|m| m.predict(points)).collect::<Result<Vec<_>>>()?;
        let shares = self.shares(points, said.iter().map(|p| p.mean.as_slice()))?;
        for ((member, p), shares) in self.members.iter().zip(&said).zip(&shares) {
            let link = member.link;
            let (wider, noise) = (self.widening * self.widening, member.noise());
            for i in 0..points.n() {
                let (weight, mean) = (shares[i], p.mean[i]);
                if weight == 0.0 {
                    // Its prior has overflowed, and so has its mean.
                    continue;
                }
                let steps = member.levels.variance_at(points.column(0)[i]);
                let part = |variance: f64, noise: f64| {
                    let mean_over = link.mean_over(variance, noise);
                    Part { weight, link, mean, variance: wider * variance + steps, mean_over }
                };
                f[i].parts.push(part(p.variance_f[i], 0.0));
                y[i].parts.push(part(p.variance_y[i], noise));
            }
        }
        Ok((f, y))
    }

    /// Means only, which is several times faster.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        let mut mean = vec![0.0; points.n()];
        let said = self.members.iter().map(|m| m.means(points)).collect::<Result<Vec<_>>>()?;
        let shares = self.shares(points, said.iter().map(|(linked, _)| linked.as_slice()))?;
        for ((_, own), shares) in said.into_iter().zip(&shares) {
            let counts = mean.iter_mut().zip(own).zip(shares).filter(|(_, share)| **share > 0.0);
            counts.for_each(|((m, own), share)| *m += share * own);
        }
        Ok(mean)
    }

    /// For each member its weight at each point, where its means under its link are these; they add up to one.
    fn shares<'a>(&self, points: &Points, means: impl Iterator<Item = &'a [f64]>) -> Result<Vec<Vec<f64>>> {
        let each = self.members.iter().zip(means);
        let mut shares = each.map(|(m, means)| m.shares(points, means)).collect::<Result<Vec<_>>>()?;
        if self.members.iter().any(|m| m.reach.is_some()) {
            for i in 0..points.n() {
                let total: f64 = shares.iter().map(|s| s[i]).sum();
                // So far away that every prior overflows: nothing tells members apart.
                let far = total.is_nan() || total <= 0.0;
                let members = shares.iter_mut().zip(&self.members);
                members.for_each(|(s, m)| s[i] = if far { m.weight } else { s[i] / total });
            }
        }
        Ok(shares)
    }

    /// Joint samples of f at some points, in the data's units.
    ///
    /// # Errors
    /// As [`Model::predict`], or when their covariance cannot be factorised.
    pub fn sample(&self, points: &Points, count: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
        self.samples(points, count, seed, |_| 0.0)
    }

    /// The same, with observation noise: samples of y.
    ///
    /// # Errors
    /// As [`Model::sample`].
    pub fn sample_y(&self, points: &Points, count: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
        self.samples(points, count, seed, |member| member.noise.sqrt())
    }

    /// Each sample comes from a member drawn by weight, with noise of this deviation.
    fn samples(
        &self,
        points: &Points,
        count: usize,
        seed: u64,
        noise: impl Fn(&Member) -> f64,
    ) -> Result<Vec<Vec<f64>>> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let places: Vec<usize> = (0..self.members.len()).collect();
        // A sample is of one member at all points: by its mean share in them.
        let means = match self.members.iter().any(|m| m.reach.is_some()) {
            true => self.members.iter().map(|m| Ok(m.means(points)?.0)).collect::<Result<Vec<_>>>()?,
            false => vec![vec![]; self.members.len()],
        };
        let shares = self.shares(points, means.iter().map(Vec::as_slice))?;
        let shares: Vec<f64> = shares.iter().map(|s| s.iter().sum()).collect();
        let draw = |rng: &mut _| places.choose_weighted(rng, |&i| shares[i]).copied().unwrap_or(0);
        let drawn: Vec<usize> =
            if places.len() == 1 { vec![0; count] } else { (0..count).map(|_| draw(&mut rng)).collect() };
        let mut samples = vec![vec![]; count];
        for (i, member) in self.members.iter().enumerate() {
            let mine: Vec<usize> = (0..count).filter(|&s| drawn[s] == i).collect();
            if mine.is_empty() {
                continue;
            }
            let own = member.process.sample(&member.scaling.points(points)?, mine.len(), &mut rng)?;
            let sd = noise(member);
            for (s, mut values) in mine.into_iter().zip(own) {
                let walk = member.levels.walk(points.column(0), &mut rng);
                for ((v, &x), level) in values.iter_mut().zip(points.column(0)).zip(walk) {
                    let z: f64 = if sd > 0.0 { StandardNormal.sample(&mut rng) } else { 0.0 };
                    *v = member.link.undo(member.scaling.mean(*v + z * sd) + member.levels.at(x) + level);
                }
                samples[s] = values;
            }
        }
        Ok(samples)
    }

    /// Takes in more observations without refitting the parameters.
    ///
    /// # Errors
    /// When sizes do not fit or the larger covariance is not positive definite; nothing has changed then.
    pub fn append(&mut self, points: &Points, y: &[f64]) -> Result<()> {
        let mut members = self.members.clone();
        members.iter_mut().try_for_each(|m| m.append(points, y))?;
        let x = self.scaling().points(points)?;
        let columns: Vec<Vec<f64>> = (0..x.d()).map(|c| [self.x.column(c), x.column(c)].concat()).collect();
        let x = Points::from_columns(&columns)?;
        members.iter_mut().filter(|m| m.has_looked()).try_for_each(|m| m.look(&x))?;
        (self.x, self.members) = (x, members);
        Ok(())
    }
}
