//! One process of a model: a kernel with its values, the data it has seen, standardised under its link.

use super::levels::Levels;
use super::link::Link;
use super::reach::{Few, Reach};
use crate::data::{Points, Scaling};
use crate::error::Result;
use crate::gp::{Posterior, Prediction, Process, Repeats};
use crate::kernel::Kernel;
use crate::program::Program;

/// One process of a [`super::Model`], with its weight in it.
#[derive(Debug, Clone)]
pub struct Member {
    pub(super) weight: f64,
    pub(super) kernel: Kernel,
    pub(super) noise: f64,
    pub(super) link: Link,
    pub(super) levels: Levels,
    pub(super) scaling: Scaling,
    pub(super) y: Vec<f64>,
    pub(super) known: Option<Vec<f64>>,
    pub(super) repeats: Option<Repeats>,
    pub(super) process: Process,
    /// How far it is to be believed, beside other members.
    pub(super) reach: Option<Reach>,
}

/// What a member is made from; the posterior follows from it.
pub(super) struct Parts {
    pub weight: f64,
    pub kernel: Kernel,
    pub noise: f64,
    pub link: Link,
    pub scaling: Scaling,
    pub y: Vec<f64>,
    pub known: Option<Vec<f64>>,
    pub repeats: Option<Repeats>,
}

impl Member {
    pub(super) fn new(parts: Parts, x: &Points) -> Result<Self> {
        let Parts { weight, kernel, noise, link, scaling, y, known, repeats } = parts;
        let program = Program::compile(&kernel, x.d())?;
        let own = repeats.as_ref().map(|r| r.noise(noise));
        let beside = own.as_deref().or(known.as_deref());
        let posterior = Posterior::new(program, kernel.values(), noise, x.clone(), y.clone(), beside)?;
        let process = Process::Exact(Box::new(posterior));
        let levels = Levels::default();
        Ok(Self { weight, kernel, noise, link, levels, scaling, y, known, repeats, process, reach: None })
    }

    /// The member of a process that does not refer to targets of its own.
    pub(super) fn of(weight: f64, kernel: Kernel, noise: f64, scaling: Scaling, process: Process) -> Self {
        let (y, link, levels) = (vec![], Link::Identity, Levels::default());
        Self { weight, kernel, noise, link, levels, scaling, y, known: None, repeats: None, process, reach: None }
    }

    /// The same member, which counts less where it is less sure.
    pub(super) fn within_reach(mut self, x: &Points) -> Result<Self> {
        self.reach = Reach::of(&self, x)?;
        Ok(self)
    }

    /// Chooses, of all rows, the few that its shares follow from.
    pub(super) fn look(&mut self, x: &Points) -> Result<()> {
        if let Some(mut reach) = self.reach.take() {
            reach.few = Some(Few::of(self, x)?);
            self.reach = Some(reach);
        }
        Ok(())
    }

    /// Do its shares follow from a few of the rows?
    pub(super) fn has_looked(&self) -> bool {
        self.reach.as_ref().is_some_and(|r| r.few.is_some())
    }

    /// Its share at each point, before shares are made to add up to one, where its means under the link are these.
    pub(super) fn shares(&self, points: &Points, means: &[f64]) -> Result<Vec<f64>> {
        let Some(reach) = &self.reach else { return Ok(vec![self.weight; points.n()]) };
        let mut shares = reach.shares(self, &self.scaling.points(points)?, means)?;
        shares.iter_mut().for_each(|s| *s *= self.weight);
        Ok(shares)
    }

    /// Its share in the model's predictions.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The kernel with its fitted values, on standardised data.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What was done to the target before it was fitted.
    pub fn link(&self) -> Link {
        self.link
    }

    /// From the data's units to the member's and back.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// The variance of the noise of the linked target.
    pub(super) fn noise(&self) -> f64 {
        self.scaling.variance(self.noise)
    }

    /// Means and variances of the linked target, where it is normal.
    pub(super) fn predict(&self, points: &Points) -> Result<Prediction> {
        let mut p = self.process.predict(&self.scaling.points(points)?)?;
        p.mean.iter_mut().zip(points.column(0)).for_each(|(m, &x)| *m = self.scaling.mean(*m) + self.levels.at(x));
        p.variance_f.iter_mut().chain(&mut p.variance_y).for_each(|v| *v = self.scaling.variance(*v));
        Ok(p)
    }

    /// Means of the linked target and of the target itself, without variances where they are not needed.
    pub(super) fn means(&self, points: &Points) -> Result<(Vec<f64>, Vec<f64>)> {
        if matches!(self.link, Link::Log | Link::BoxCox { .. }) {
            // The mean of an exponential needs the variance.
            let p = self.predict(points)?;
            let own = p.mean.iter().zip(&p.variance_y).map(|(&m, &v)| self.link.moments(m, v).0).collect();
            return Ok((p.mean, own));
        }
        let (mut linked, noise) = (self.process.mean(&self.scaling.points(points)?)?, self.noise());
        for (m, &x) in linked.iter_mut().zip(points.column(0)) {
            *m = self.scaling.mean(*m) + self.levels.at(x);
        }
        let own = linked.iter().map(|&m| self.link.moments(m, noise).0).collect();
        Ok((linked, own))
    }

    /// Takes in more observations; the noise of new rows is the common one.
    pub(super) fn append(&mut self, points: &Points, y: &[f64]) -> Result<()> {
        let level = |(&v, &x): (&f64, &f64)| self.link.apply(v) - self.levels.at(x);
        let y: Vec<f64> = y.iter().zip(points.column(0)).map(level).collect();
        let (x, y) = (self.scaling.points(points)?, self.scaling.target(&y));
        let seen = self.process.prior(&x)?.into_iter().fold(0.0, f64::max);
        self.process.append(&x, &y)?;
        if let Some(reach) = &mut self.reach {
            reach.prior = reach.prior.max(seen);
        }
        if let Some(known) = &mut self.known {
            known.resize(known.len() + y.len(), 0.0);
        }
        if let Some(repeats) = &mut self.repeats {
            repeats.push(&y);
        }
        self.y.extend(y);
        let last = points.column(0).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.levels = std::mem::take(&mut self.levels).seen_until(last);
        Ok(())
    }
}
