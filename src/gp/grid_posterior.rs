//! What a grid's observed cells say about all of them: means, variances, and the exact evidence where the holes are
//! small enough to factorise.

use super::exact::LN_2PI;
use super::grid::{GridProcess, Spectrum};
use super::holes::Room;
use crate::error::{Cause, ErrorKind, Result};
use crate::linalg::{Cholesky, KronScratch, Matrix, Side, kron_apply, sum_of_logs};
use crate::threads::Threads;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// The most missing cells whose covariance is factorised: two square matrices of that size, 0.6 GB.
const MOST_EXACT: usize = 6000;
/// Samples where variances are estimated; the standard error of a standard deviation is a share 1/√(2·samples) of it.
const SAMPLES: usize = 128;

/// How variances were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variances {
    /// Exactly, at every cell.
    Exact,
    /// Exactly at the missing cells; at the observed ones what the holes add is estimated from so many samples.
    ExactInHoles(usize),
    /// Estimated from so many samples of the posterior.
    Sampled(usize),
}

/// Means, variances and evidence given the observed cells.
#[derive(Debug, Clone)]
pub struct GridPosterior {
    /// Mean of f at every cell, one tensor a channel.
    pub mean: Vec<Vec<f64>>,
    /// Variance of f at every cell, the same for every channel.
    pub variance: Vec<f64>,
    /// How the variances came about.
    pub variances: Variances,
    /// The exact evidence, where the holes were factorised.
    pub evidence: Option<f64>,
}

impl GridProcess<'_> {
    /// Means of f at every cell, one tensor a channel.
    ///
    /// # Errors
    /// As [`GridProcess::evidence`].
    pub fn mean(&mut self, theta: &[f64], noise: f64) -> Result<Vec<Vec<f64>>> {
        let spectrum = self.spectrum(theta, noise)?;
        Ok(self.means(&spectrum).0)
    }

    /// Means, and the sum of the quadratic forms.
    fn means(&mut self, spectrum: &Spectrum) -> (Vec<Vec<f64>>, f64) {
        let solved = self.solve(spectrum);
        let quadratic = solved.iter().map(|(_, q)| q).sum();
        let (_, _, threads) = self.parts();
        // f = K α
        let mean = |(alpha, _): &(Vec<f64>, f64)| {
            let turned: Vec<f64> = alpha.iter().zip(&spectrum.lambda).map(|(a, l)| a * l).collect();
            back(spectrum, &turned, threads)
        };
        (solved.iter().map(mean).collect(), quadratic)
    }

    /// Means and variances at every cell. Variances in holes of up to 6,000 cells are exact, and so is the evidence
    /// then; beyond that variances are estimated from samples.
    ///
    /// # Errors
    /// As [`GridProcess::evidence`], or when the covariance of the missing cells cannot be factorised.
    pub fn posterior(&mut self, theta: &[f64], noise: f64, seed: u64) -> Result<GridPosterior> {
        self.posterior_within(theta, noise, seed, MOST_EXACT)
    }

    /// The same with another limit for the exact way.
    ///
    /// # Errors
    /// As [`GridProcess::posterior`].
    pub fn posterior_within(&mut self, theta: &[f64], noise: f64, seed: u64, most: usize) -> Result<GridPosterior> {
        let spectrum = self.spectrum(theta, noise)?;
        let (mean, quadratic) = self.means(&spectrum);
        let channels = self.channels() as f64;
        let (_, holes, threads) = self.parts();
        let log_all = sum_of_logs(spectrum.lambda.iter().map(|l| l + noise));
        let observed = self.observed() as f64;
        let evidence = |log_det: f64| -0.5 * (quadratic + channels * log_det + observed * LN_2PI);
        // Were every cell observed: diag K(K + σ²)⁻¹σ², which turns by squares of the eigenvectors.
        let complete = || {
            let squares: Vec<Matrix> = spectrum
                .vectors()
                .iter()
                .map(|q| Matrix::from_fn(q.rows(), q.columns(), |i, j| q[(i, j)] * q[(i, j)]))
                .collect();
            let squares: Vec<&Matrix> = squares.iter().collect();
            let turned: Vec<f64> = spectrum.lambda.iter().zip(&holes.inverse).map(|(l, i)| noise * l * i).collect();
            let mut out = Vec::new();
            kron_apply(&squares, Side::Plain, &turned, &mut out, &mut KronScratch::default(), threads);
            out
        };
        if holes.len() == 0 {
            let (variance, evidence) = (complete(), Some(evidence(log_all)));
            return Ok(GridPosterior { mean, variance, variances: Variances::Exact, evidence });
        }
        if holes.len() > most {
            let variance = self.sampled(&spectrum, seed);
            return Ok(GridPosterior { mean, variance, variances: Variances::Sampled(SAMPLES), evidence: None });
        }
        // S = B_mm⁻¹ is the covariance of the missing values, noise included, given the observed ones.
        let mut variance = complete();
        let factor = self.factor()?;
        let (_, holes, threads) = self.parts();
        let log_det = log_all + factor.log_det();
        let samples = SAMPLES.min(64);
        let draw = |k: usize| {
            // What unknown missing values s ~ N(0, S) do to f at the observed cells: K B s.
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut s: Vec<f64> = (0..holes.len()).map(|_| StandardNormal.sample(&mut rng)).collect();
            factor.half_solve_transposed(&mut s);
            let room = &mut Room::default();
            holes.turn(&s, room, Threads::One);
            let weigh = |(t, (l, i)): (&f64, (&f64, &f64))| t * l * i;
            let turned: Vec<f64> =
                room.turned.iter().zip(spectrum.lambda.iter().zip(&holes.inverse)).map(weigh).collect();
            back(&spectrum, &turned, Threads::One)
        };
        add_mean_of(samples, |k| draw(k).iter().map(|d| d * d).collect(), &mut variance);
        let inverse = factor.into_inverse(Matrix::default(), threads).inverse;
        for (i, &cell) in holes.cells.iter().enumerate() {
            variance[cell] = (inverse[(i, i)] - noise).max(0.0);
        }
        let variances = Variances::ExactInHoles(samples);
        Ok(GridPosterior { mean, variance, variances, evidence: Some(evidence(log_det)) })
    }

    /// The factor of B_mm.
    fn factor(&self) -> Result<Cholesky> {
        let (_, holes, threads) = self.parts();
        let m = holes.len();
        let mut b = Matrix::zeros(m, m);
        let stride = b.stride();
        b.values_mut().par_chunks_mut(stride).enumerate().for_each_init(
            || (Room::default(), vec![0.0; m]),
            |(room, unit), (j, column)| {
                unit[j] = 1.0;
                holes.precision(unit, &mut column[..m], room, Threads::One);
                unit[j] = 0.0;
            },
        );
        Cholesky::factor_once(b, |_| (), threads).map_err(|f| {
            let cause = if f.non_finite { Cause::NonFinite } else { Cause::Unknown };
            ErrorKind::NotPositiveDefinite { pivot: f.pivot, jitter: 0.0, cause }.into()
        })
    }

    /// Variances from samples: f drawn from the prior, less what its noisy values at the observed cells say about it, is
    /// a draw of the posterior's deviation from its mean.
    fn sampled(&self, spectrum: &Spectrum, seed: u64) -> Vec<f64> {
        let (_, holes, _) = self.parts();
        let limits = self.limits();
        let cells = spectrum.lambda.len();
        let draw = |k: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let root: Vec<f64> = spectrum.lambda.iter().map(|l| l.sqrt()).collect();
            let turned: Vec<f64> = root
                .iter()
                .map(|r| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    r * z
                })
                .collect();
            let f = back(spectrum, &turned, Threads::One);
            let sd = spectrum.noise.sqrt();
            let mut y: Vec<f64> = f
                .iter()
                .map(|f| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    f + sd * z
                })
                .collect();
            holes.cells.iter().for_each(|&cell| y[cell] = 0.0);
            let solved = holes.solve(spectrum, &y, None, limits, &mut Room::default(), Threads::One);
            let turned: Vec<f64> = solved.alpha.iter().zip(&spectrum.lambda).map(|(a, l)| a * l).collect();
            let mean = back(spectrum, &turned, Threads::One);
            f.iter().zip(&mean).map(|(f, m)| (f - m) * (f - m)).collect::<Vec<f64>>()
        };
        let mut variance = vec![0.0; cells];
        add_mean_of(SAMPLES, draw, &mut variance);
        variance
    }
}

/// Adds the mean of many lists, a few at a time, in order.
fn add_mean_of(count: usize, one: impl Fn(usize) -> Vec<f64> + Sync, to: &mut [f64]) {
    const FEW: usize = 16;
    for first in (0..count).step_by(FEW) {
        let some: Vec<Vec<f64>> = (first..count.min(first + FEW)).into_par_iter().map(&one).collect();
        for list in &some {
            to.iter_mut().zip(list).for_each(|(t, v)| *t += v / count as f64);
        }
    }
}

/// Back from the basis of the eigenvectors.
fn back(spectrum: &Spectrum, turned: &[f64], threads: Threads) -> Vec<f64> {
    let mut out = Vec::new();
    kron_apply(&spectrum.vectors(), Side::Plain, turned, &mut out, &mut KronScratch::default(), threads);
    out
}
