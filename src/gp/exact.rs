//! The exact Gaussian process: K = k(X, X) + σ²I, evidence and its gradient, in two n×n buffers.

use super::loo::LeaveOneOut;
use super::repeats::Repeats;
use crate::data::Points;
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::linalg::{Cholesky, Failure, Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use std::time::Instant;

/// ln 2π
pub(super) const LN_2PI: f64 = 1.837_877_066_409_345_3;

/// Below this many rows an evaluation stays on the thread that asks for it.
const LEAST_ROWS: usize = 100;

/// Where an evaluation's time went, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timings {
    /// Values of the kernel.
    pub assembly: f64,
    /// Cholesky factor.
    pub factorisation: f64,
    /// The inverse, and the solution that comes with it.
    pub inverse: f64,
    /// The reverse pass.
    pub pullback: f64,
}

/// An exact Gaussian process over fixed data: evaluates evidence and gradient again and again without allocating.
#[derive(Debug)]
pub struct Exact<'a> {
    program: &'a Program,
    x: &'a Inputs,
    y: &'a [f64],
    /// Known noise variance of each row, added to the common one.
    known_noise: Option<&'a [f64]>,
    /// What the rows stand for, where equal ones were merged.
    repeats: Option<&'a Repeats>,
    threads: Threads,
    buffers: (Matrix, Matrix),
    scratch: Scratch,
    /// What the last evaluation took.
    pub timings: Timings,
    /// The jitter the last factorisation needed.
    pub jitter: f64,
}

impl<'a> Exact<'a> {
    /// A process over these inputs and targets (standardised by whoever calls).
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn new(program: &'a Program, x: &'a Inputs, y: &'a [f64], threads: Threads) -> Result<Self> {
        if x.n() != y.len() {
            return Err(ErrorKind::Size { what: "targets", expected: x.n(), found: y.len() }.into());
        }
        if y.is_empty() {
            return Err(ErrorKind::TooFewRows { found: 0, needed: 1 }.into());
        }
        Ok(Self {
            program,
            x,
            y,
            known_noise: None,
            repeats: None,
            threads: if y.len() < LEAST_ROWS { Threads::One } else { threads },
            buffers: Default::default(),
            scratch: Scratch::default(),
            timings: Timings::default(),
            jitter: 0.0,
        })
    }

    /// The same process with a known noise variance for each row, on top of the common one.
    ///
    /// # Errors
    /// When there is not one for each row.
    pub fn with_known_noise(mut self, variances: &'a [f64]) -> Result<Self> {
        if variances.len() != self.y.len() {
            let (expected, found) = (self.y.len(), variances.len());
            return Err(ErrorKind::Size { what: "known noise variances", expected, found }.into());
        }
        self.known_noise = Some(variances);
        Ok(self)
    }

    /// The same process where rows stand for several with equal inputs and their mean target; evidence, gradient and
    /// leave-one-out predictions are those of all rows.
    ///
    /// # Errors
    /// When there is not one group for each row.
    pub fn with_repeats(mut self, repeats: &'a Repeats) -> Result<Self> {
        if repeats.n() != self.y.len() {
            let (expected, found) = (self.y.len(), repeats.n());
            return Err(ErrorKind::Size { what: "groups of equal rows", expected, found }.into());
        }
        self.repeats = Some(repeats);
        Ok(self)
    }

    /// Bytes that the evaluation of n rows needs beyond the data.
    pub fn memory(n: usize) -> usize {
        8 * (n * n + Cholesky::room(n)) + (8 << 20)
    }

    fn factor(&mut self, theta: &[f64], noise: f64) -> Result<Cholesky> {
        let n = self.y.len();
        let (mut k, spare) = std::mem::take(&mut self.buffers);
        k.reshape(n, n);
        let (program, x, known, repeats, threads, scratch) =
            (self.program, self.x, self.known_noise, self.repeats, self.threads, &mut self.scratch);
        let (mut failed, start) = (None, Instant::now());
        let mut assembly = 0.0;
        let fill = |k: &mut Matrix| {
            let (begin, stride) = (Instant::now(), k.stride());
            failed = program.gram(theta, x, k.values_mut(), stride, scratch, threads).err();
            for i in 0..n {
                let own = repeats.map_or(noise, |r| noise / r.count(i));
                k[(i, i)] += own + known.map_or(0.0, |v| v[i]);
            }
            assembly += begin.elapsed().as_secs_f64();
        };
        let factor = Cholesky::factor_with(k, spare, fill, threads);
        if let Some(error) = failed {
            return Err(error);
        }
        self.timings.assembly = assembly;
        self.timings.factorisation = start.elapsed().as_secs_f64() - assembly;
        let factor = factor.map_err(|f| indefinite(f, x.points()))?;
        self.jitter = factor.jitter();
        Ok(factor)
    }

    /// log p(y) = −½ yᵀα − ½ log|K| − n/2 log 2π
    ///
    /// # Errors
    /// When the matrix cannot be factorised or sizes do not fit.
    pub fn evidence(&mut self, theta: &[f64], noise: f64) -> Result<f64> {
        let factor = self.factor(theta, noise)?;
        let mut z = self.y.to_vec();
        factor.half_solve(&mut z);
        let value = -0.5 * (dot(&z, &z) + factor.log_det() + self.y.len() as f64 * LN_2PI);
        self.buffers = factor.into_buffers();
        Ok(value + self.repeats.map_or(0.0, |r| r.evidence(noise).0))
    }

    /// The evidence and the leave-one-out predictions, without a gradient.
    ///
    /// # Errors
    /// As [`Exact::evidence`].
    pub fn leave_one_out(&mut self, theta: &[f64], noise: f64) -> Result<(f64, LeaveOneOut)> {
        let (value, loo, _) = self.leave_out(theta, noise, &[])?;
        Ok((value, loo))
    }

    /// The same, and for each block of rows what the rows outside of it say about them (merged rows count as one);
    /// nothing of a block that rounding has spoilt.
    ///
    /// # Errors
    /// As [`Exact::evidence`].
    pub fn leave_out(
        &mut self,
        theta: &[f64],
        noise: f64,
        blocks: &[Vec<usize>],
    ) -> Result<(f64, LeaveOneOut, Vec<Option<LeaveOneOut>>)> {
        let n = self.y.len();
        let factor = self.factor(theta, noise)?;
        let mut alpha = self.y.to_vec();
        factor.half_solve(&mut alpha);
        let value = -0.5 * (dot(&alpha, &alpha) + factor.log_det() + n as f64 * LN_2PI);
        factor.half_solve_transposed(&mut alpha);
        let inverse = factor.into_inverse(Matrix::default(), self.threads);
        let diagonal: Vec<f64> = (0..n).map(|i| inverse.inverse[(i, i)]).collect();
        let one = |block: &Vec<usize>| LeaveOneOut::of_block(self.y, &alpha, &inverse.inverse, block);
        let left_out = blocks.iter().map(one).collect();
        self.buffers = (inverse.inverse, inverse.spare);
        let (beyond, _, loo) = self.of_all_rows(noise, LeaveOneOut::new(self.y, &alpha, &diagonal));
        Ok((value + beyond, loo, left_out))
    }

    /// What merged rows add to the evidence and its slope in the noise, and the predictions of each row.
    fn of_all_rows(&self, noise: f64, loo: LeaveOneOut) -> (f64, f64, LeaveOneOut) {
        match self.repeats {
            None => (0.0, 0.0, loo),
            Some(repeats) => {
                let (value, slope) = repeats.evidence(noise);
                (value, slope, repeats.leave_one_out(&loo, noise))
            }
        }
    }

    /// The evidence and its gradient with respect to θ (overwritten) and the noise variance (returned last).
    ///
    /// # Errors
    /// As [`Exact::evidence`].
    pub fn gradient(&mut self, theta: &[f64], noise: f64, gradient: &mut [f64]) -> Result<(f64, f64)> {
        let (value, noise_slope, _) = self.gradient_and_loo(theta, noise, gradient)?;
        Ok((value, noise_slope))
    }

    /// The same, with the leave-one-out predictions that come for free.
    ///
    /// # Errors
    /// As [`Exact::evidence`].
    pub fn gradient_and_loo(
        &mut self,
        theta: &[f64],
        noise: f64,
        gradient: &mut [f64],
    ) -> Result<(f64, f64, LeaveOneOut)> {
        self.threads.enter(|| self.all(theta, noise, gradient))
    }

    fn all(&mut self, theta: &[f64], noise: f64, gradient: &mut [f64]) -> Result<(f64, f64, LeaveOneOut)> {
        let n = self.y.len();
        let factor = self.factor(theta, noise)?;
        let mut start = Instant::now();
        let mut lap = || {
            let seconds = start.elapsed().as_secs_f64();
            start = Instant::now();
            seconds
        };
        // log p = −½ yᵀα − ½ log|K| − n/2 log 2π, with yᵀα = |z|², z = L⁻¹y
        let log_det = factor.log_det();
        let (inverse, z, alpha) = factor.into_inverse_and_solution(self.y, Matrix::default(), self.threads);
        let value = -0.5 * (dot(&z, &z) + log_det + n as f64 * LN_2PI);
        self.timings.inverse = lap();

        // ∂/∂K = ½(ααᵀ − K⁻¹); a pair i > j stands for two entries
        let (a, k) = (&alpha, &inverse.inverse);
        let adjoint = |j: usize, i: usize, out: &mut [f64]| {
            let (aj, column) = (a[j], &k.column(j)[i..]);
            for ((o, ai), k) in out.iter_mut().zip(&a[i..]).zip(column) {
                *o = ai * aj - k;
            }
            if i == j {
                out[0] *= 0.5;
            }
        };
        gradient.fill(0.0);
        let (scratch, threads) = (&mut self.scratch, self.threads);
        self.program.pullback_gram(theta, self.x, adjoint, gradient, None, scratch, threads)?;
        let diagonal: Vec<f64> = (0..n).map(|i| k[(i, i)]).collect();
        let slope = |(i, (a, k)): (usize, (&f64, &f64))| (a * a - k) / self.repeats.map_or(1.0, |r| r.count(i));
        let noise_slope = 0.5 * alpha.iter().zip(&diagonal).enumerate().map(slope).sum::<f64>();
        self.timings.pullback = lap();
        let (beyond, its_slope, loo) = self.of_all_rows(noise, LeaveOneOut::new(self.y, &alpha, &diagonal));
        self.buffers = (inverse.inverse, inverse.spare);
        Ok((value + beyond, noise_slope + its_slope, loo))
    }
}

/// The error of a matrix that cannot be factorised, with the likely cause.
pub(super) fn indefinite(failure: Failure, x: &Points) -> Error {
    let cause = if failure.non_finite { Cause::NonFinite } else { likely_cause(x) };
    let hint = match cause {
        Cause::NonFinite => "parameter values are out of range for this data: give other starting values",
        Cause::DuplicateRows(..) => "merge the duplicate rows or let the noise be larger",
        _ => "let the noise be larger, or take a less smooth kernel (MAT52)",
    };
    let (pivot, jitter) = (failure.pivot, failure.jitter);
    Error::new(ErrorKind::NotPositiveDefinite { pivot, jitter, cause }).with_hint(hint)
}

fn likely_cause(x: &Points) -> Cause {
    let mut order: Vec<usize> = (0..x.n()).collect();
    let rows: Vec<Vec<u64>> = order.iter().map(|&i| x.row(i).iter().map(|v| v.to_bits()).collect()).collect();
    order.sort_by(|&a, &b| rows[a].cmp(&rows[b]));
    if let Some(pair) = order.windows(2).find(|w| rows[w[0]] == rows[w[1]]) {
        return Cause::DuplicateRows(pair[0].min(pair[1]), pair[0].max(pair[1]));
    }
    let constant = (0..x.d()).find(|&c| x.column(c).iter().all(|v| *v == x.column(c)[0]));
    constant.map_or(Cause::Unknown, Cause::ConstantColumn)
}
