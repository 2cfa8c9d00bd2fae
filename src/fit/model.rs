//! A fitted model: predicts in the data's own units and tells how it came about.

use super::account::Account;
use super::link::Link;
use crate::data::{Dataset, Encoding, Points, Scaling};
use crate::error::Result;
use crate::gp::{Posterior, Prediction};
use crate::kernel::Kernel;
use crate::program::Program;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) kernel: Kernel,
    pub(super) noise: f64,
    pub(super) scaling: Scaling,
    pub(super) encoding: Encoding,
    pub(super) target: String,
    pub(super) x: Points,
    pub(super) y: Vec<f64>,
    pub(super) known: Option<Vec<f64>>,
    pub(super) posterior: Posterior,
    pub(super) account: Account,
    pub(super) link: Link,
}

impl Model {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn new(
        kernel: Kernel,
        noise: f64,
        scaling: Scaling,
        x: Points,
        y: Vec<f64>,
        known: Option<Vec<f64>>,
        data: &Dataset,
        account: Account,
    ) -> Result<Self> {
        let (encoding, target) = (data.encoding().clone(), data.target().to_string());
        let posterior = Self::condition(&kernel, noise, &x, &y, known.as_deref())?;
        Ok(Self { kernel, noise, scaling, encoding, target, x, y, known, posterior, account, link: Link::Identity })
    }

    pub(super) fn condition(
        kernel: &Kernel,
        noise: f64,
        x: &Points,
        y: &[f64],
        known: Option<&[f64]>,
    ) -> Result<Posterior> {
        let program = Program::compile(kernel, x.d())?;
        Posterior::new(program, kernel.values(), noise, x.clone(), y.to_vec(), known)
    }

    /// The kernel with its fitted values, on standardised data.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// How the model came about.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// From the data's units to the model's and back.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// How table columns become inputs.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Number of observations.
    pub fn n(&self) -> usize {
        self.posterior.n()
    }

    /// What was done to the target before it was fitted.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The same model, of a target that was taken through this link before it was fitted.
    #[must_use]
    pub fn with_link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Means and variances at some points, in the data's units; memory is bounded whatever their number. For intervals
    /// of a target that was taken through a [`Link`] see [`Model::predict_linked`].
    ///
    /// # Errors
    /// When the points have another width than the data.
    pub fn predict(&self, points: &Points) -> Result<Prediction> {
        Ok(self.link.prediction(self.predict_linked(points)?))
    }

    /// Means and variances of the target as it was fitted, where it is normal: the link is not undone.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn predict_linked(&self, points: &Points) -> Result<Prediction> {
        let mut p = self.posterior.predict(&self.scaling.points(points)?)?;
        p.mean.iter_mut().for_each(|m| *m = self.scaling.mean(*m));
        p.variance_f.iter_mut().chain(&mut p.variance_y).for_each(|v| *v = self.scaling.variance(*v));
        Ok(p)
    }

    /// Means only, which is several times faster.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn mean(&self, points: &Points) -> Result<Vec<f64>> {
        if self.link != Link::Identity {
            // The mean of an exponential needs the variance.
            return Ok(self.predict(points)?.mean);
        }
        let mean = self.posterior.mean(&self.scaling.points(points)?)?;
        Ok(mean.into_iter().map(|m| self.scaling.mean(m)).collect())
    }

    /// Joint samples of f at some points, in the data's units.
    ///
    /// # Errors
    /// As [`Model::predict`], or when their covariance cannot be factorised.
    pub fn sample(&self, points: &Points, count: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut samples = self.posterior.sample(&self.scaling.points(points)?, count, &mut rng)?;
        samples.iter_mut().flatten().for_each(|v| *v = self.link.undo(self.scaling.mean(*v)));
        Ok(samples)
    }

    /// The same, with observation noise: samples of y.
    ///
    /// # Errors
    /// As [`Model::sample`].
    pub fn sample_y(&self, points: &Points, count: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut samples = self.posterior.sample(&self.scaling.points(points)?, count, &mut rng)?;
        for v in samples.iter_mut().flatten() {
            let z: f64 = StandardNormal.sample(&mut rng);
            *v = self.link.undo(self.scaling.mean(*v + z * self.noise.sqrt()));
        }
        Ok(samples)
    }

    /// Takes in more observations without refitting the parameters.
    ///
    /// # Errors
    /// When sizes do not fit or the larger covariance is not positive definite; nothing has changed then.
    pub fn append(&mut self, points: &Points, y: &[f64]) -> Result<()> {
        let y: Vec<f64> = y.iter().map(|&v| self.link.apply(v)).collect();
        let (x, y) = (self.scaling.points(points)?, self.scaling.target(&y));
        self.posterior.append(&x, &y)?;
        let columns: Vec<Vec<f64>> = (0..x.d()).map(|c| [self.x.column(c), x.column(c)].concat()).collect();
        self.x = Points::from_columns(&columns)?;
        self.y.extend(y);
        if let Some(known) = &mut self.known {
            known.resize(self.y.len(), 0.0);
        }
        Ok(())
    }
}
