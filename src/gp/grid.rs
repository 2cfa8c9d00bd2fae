//! The Gaussian process on a grid: K = K₁ ⊗ … ⊗ K_D + σ²I, one kernel an axis, with missing cells. Complete grids are
//! exact, in the basis of the factors' eigenvectors; with holes the quadratic form is that of the observed cells, and
//! the log-determinant that of the largest eigenvalues, scaled by observed/all.

use super::exact::LN_2PI;
use super::holes::{Holes, Room};
use crate::data::{Grid, Points};
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::linalg::product::{add_gram, congruence};
use crate::linalg::{
    ConjugateGradients, Eigen, EigenRoom, Matrix, leave_wide_registers, sum_of_logs, symmetric_eigen_in, unfold,
};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rayon::prelude::*;

/// One axis: its places, its kernel, and room to work in.
#[derive(Debug)]
struct AxisWork<'a> {
    program: &'a Program,
    x: Inputs,
    /// Where its parameters stand.
    at: std::ops::Range<usize>,
    k: Matrix,
    unfolded: Matrix,
    room: Matrix,
    /// H, and the adjoint of K.
    h: Matrix,
    eigen: EigenRoom,
    scratch: Scratch,
}

/// Axes shorter than this are worked on beside each other, each by one thread.
const SHORT: usize = 512;

impl AxisWork<'_> {
    fn threads(&self, axes: usize, threads: Threads) -> Threads {
        if axes > 1 && self.x.n() < SHORT { Threads::One } else { threads }
    }
}

/// How the holes were dealt with in the last evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GridAccount {
    /// Steps of conjugate gradients, over all channels.
    pub steps: usize,
    /// The largest residual on the observed cells, relative to the norm of the values.
    pub residual: f64,
}

/// A process over the cells of a grid: evaluates evidence and gradient again and again.
#[derive(Debug)]
pub struct GridProcess<'a> {
    axes: Vec<AxisWork<'a>>,
    shape: Vec<usize>,
    /// One tensor a channel, nought where nothing is observed.
    y: Vec<Vec<f64>>,
    holes: Holes,
    limits: ConjugateGradients,
    /// Whether a solution starts from the one before, and that one for every channel.
    goes_on: bool,
    before: Vec<Vec<f64>>,
    room: Room,
    threads: Threads,
    /// About the last evaluation.
    pub account: GridAccount,
}

/// The factors' eigenvectors and the products of their eigenvalues.
#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    pub axes: Vec<Eigen>,
    /// Π λ for every cell.
    pub lambda: Vec<f64>,
    pub noise: f64,
}

impl Spectrum {
    pub fn vectors(&self) -> Vec<&Matrix> {
        self.axes.iter().map(|e| &e.vectors).collect()
    }
}

/// The outer product of lists, the last fastest.
fn outer(lists: &[&[f64]]) -> Vec<f64> {
    lists.iter().fold(vec![1.0], |all, list| all.iter().flat_map(|a| list.iter().map(move |v| a * v)).collect())
}

impl<'a> GridProcess<'a> {
    /// A process over the axes of a grid (scaled by whoever calls), one program an axis, and these channels of values.
    ///
    /// # Errors
    /// When there is not one program of one column for each axis.
    pub fn new(programs: &'a [Program], axes: &[Vec<f64>], grid: &Grid, y: Vec<Vec<f64>>) -> Result<Self> {
        let (shape, cells) = (grid.shape(), grid.observed().len());
        let size = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(Error::new(ErrorKind::Size { what, expected, found })) }
        };
        size("kernels for the axes", shape.len(), programs.len())?;
        size("axes", shape.len(), axes.len())?;
        y.iter().try_for_each(|y| size("values of a channel", cells, y.len()))?;
        let mut at = 0;
        let mut work = Vec::new();
        for ((program, axis), &n) in programs.iter().zip(axes).zip(&shape) {
            size("places of an axis", n, axis.len())?;
            size("columns of an axis's kernel", 1, program.d())?;
            work.push(AxisWork {
                program,
                x: Inputs::new(Points::from_column(axis)?),
                at: at..at + program.parameters(),
                k: Matrix::zeros(n, n),
                unfolded: Matrix::default(),
                room: Matrix::default(),
                h: Matrix::default(),
                eigen: EigenRoom::default(),
                scratch: Scratch::default(),
            });
            at += program.parameters();
        }
        let mut y = y;
        for channel in &mut y {
            channel.iter_mut().zip(grid.observed()).filter(|(_, seen)| !**seen).for_each(|(v, _)| *v = 0.0);
        }
        Ok(Self {
            axes: work,
            holes: Holes::new(&shape, grid.observed()),
            shape,
            y,
            limits: ConjugateGradients { tolerance: 1e-6, steps: 1000 },
            goes_on: false,
            before: vec![],
            room: Room::default(),
            threads: Threads::All,
            account: GridAccount::default(),
        })
    }

    /// The same process with other limits for the conjugate gradients, which run over the missing cells.
    #[must_use]
    pub fn with_limits(mut self, limits: ConjugateGradients) -> Self {
        self.limits = limits;
        self
    }

    /// The same process where each solution over the missing cells starts from the one before: fewer steps for whoever
    /// changes parameters little by little, but what comes out depends, within the tolerance, on what was asked before.
    #[must_use]
    pub fn going_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// The same process on the calling thread alone, for whoever runs several beside each other.
    #[must_use]
    pub fn on_one_thread(mut self) -> Self {
        self.threads = Threads::One;
        self
    }

    /// The same process where missing cells are imaginary observations of nought with this noise variance, instead of
    /// no observations at all.
    #[must_use]
    pub fn with_imaginary_noise(mut self, variance: f64) -> Self {
        self.holes.imaginary = 1.0 / variance;
        self
    }

    /// Number of parameters of all axes.
    pub fn parameters(&self) -> usize {
        self.axes.last().map_or(0, |a| a.at.end)
    }

    /// Number of observed values.
    pub fn observed(&self) -> usize {
        self.y.len() * (self.y[0].len() - self.holes.len())
    }

    /// Eigenvalues and eigenvectors of every factor.
    pub(super) fn spectrum(&mut self, theta: &[f64], noise: f64) -> Result<Spectrum> {
        let (expected, found) = (self.parameters(), theta.len());
        if expected != found {
            return Err(ErrorKind::Size { what: "parameters of all axes", expected, found }.into());
        }
        let (threads, axes) = (self.threads, self.axes.len());
        let one = |axis: &mut AxisWork| {
            leave_wide_registers();
            let threads = axis.threads(axes, threads);
            let (n, stride) = (axis.x.n(), axis.k.stride());
            let theta = &theta[axis.at.clone()];
            axis.program.gram(theta, &axis.x, axis.k.values_mut(), stride, &mut axis.scratch, threads)?;
            let finite = (0..n).all(|j| axis.k.column(j)[j..].iter().all(|v| v.is_finite()));
            let eigen = if finite { symmetric_eigen_in(&axis.k, &mut axis.eigen, threads) } else { None };
            let mut eigen = eigen.ok_or(Error::new(ErrorKind::NotPositiveDefinite {
                pivot: 0,
                jitter: 0.0,
                cause: Cause::NonFinite,
            }))?;
            // What is below nought is rounding.
            eigen.values.iter_mut().for_each(|v| *v = v.max(0.0));
            Ok(eigen)
        };
        let axes: Vec<Eigen> = self.axes.par_iter_mut().with_max_len(1).map(one).collect::<Result<_>>()?;
        let lambda = outer(&axes.iter().map(|e| e.values.as_slice()).collect::<Vec<_>>());
        Ok(Spectrum { axes, lambda, noise })
    }

    /// Values with their holes filled, in the basis of the eigenvectors and divided by λ + σ²; and the quadratic form.
    pub(super) fn solve(&mut self, spectrum: &Spectrum) -> Vec<(Vec<f64>, f64)> {
        self.holes.prepare(spectrum);
        self.account = GridAccount::default();
        let mut all = Vec::new();
        let before = std::mem::take(&mut self.before);
        for (channel, y) in self.y.iter().enumerate() {
            let guess = before.get(channel).map(Vec::as_slice);
            let solved = self.holes.solve(spectrum, y, guess, self.limits, &mut self.room, self.threads);
            if self.goes_on {
                // A guess that is no number would spoil all that follows.
                self.before.push(if solved.quadratic.is_finite() { solved.z } else { vec![0.0; self.holes.len()] });
            }
            self.account.steps += solved.steps;
            self.account.residual = self.account.residual.max(solved.residual);
            all.push((solved.alpha, solved.quadratic));
        }
        all
    }

    /// Which eigenvalues the log-determinant of the observed cells is made of: the largest, as many as there are
    /// observed cells. Equal ones are taken in order.
    fn chosen(&self, lambda: &[f64]) -> (f64, Vec<bool>) {
        let (all, missing) = (lambda.len(), self.holes.len());
        if missing == 0 {
            return (1.0, vec![true; all]);
        }
        let mut sorted = lambda.to_vec();
        let bar = *sorted.select_nth_unstable_by(missing, f64::total_cmp).1;
        let mut equal = (all - missing).saturating_sub(lambda.iter().filter(|&&v| v > bar).count());
        let mut take = |v: f64| {
            let tied = v == bar && equal > 0;
            equal -= usize::from(tied);
            tied || v > bar
        };
        ((all - missing) as f64 / all as f64, lambda.iter().map(|&v| take(v)).collect())
    }

    /// The evidence: exact on a complete grid. With holes, −½ yᵀα − ½ Σ log(cλᵢ + σ²) − M/2 log 2π over the M largest
    /// eigenvalues of the whole grid, M observed cells, c = M/N.
    ///
    /// # Errors
    /// When a kernel value is not finite or sizes do not fit.
    pub fn evidence(&mut self, theta: &[f64], noise: f64) -> Result<f64> {
        self.threads.enter(|| {
            let spectrum = self.spectrum(theta, noise)?;
            let solved = self.solve(&spectrum);
            let (c, chosen) = self.chosen(&spectrum.lambda);
            Ok(self.value(&spectrum, &solved, c, &chosen))
        })
    }

    fn value(&self, spectrum: &Spectrum, solved: &[(Vec<f64>, f64)], c: f64, chosen: &[bool]) -> f64 {
        let terms = spectrum.lambda.iter().zip(chosen).filter(|(_, take)| **take);
        let log_det = sum_of_logs(terms.map(|(l, _)| c * l + spectrum.noise));
        let quadratic: f64 = solved.iter().map(|(_, q)| q).sum();
        -0.5 * (quadratic + self.y.len() as f64 * log_det + self.observed() as f64 * LN_2PI)
    }

    /// The evidence and its gradient with respect to all axes' parameters (overwritten) and the noise variance.
    ///
    /// # Errors
    /// As [`GridProcess::evidence`].
    pub fn gradient(&mut self, theta: &[f64], noise: f64, gradient: &mut [f64]) -> Result<(f64, f64)> {
        self.threads.enter(|| self.all(theta, noise, gradient))
    }

    fn all(&mut self, theta: &[f64], noise: f64, gradient: &mut [f64]) -> Result<(f64, f64)> {
        let spectrum = self.spectrum(theta, noise)?;
        if gradient.len() != theta.len() {
            let (expected, found) = (theta.len(), gradient.len());
            return Err(ErrorKind::Size { what: "entries of the gradient", expected, found }.into());
        }
        let solved = self.solve(&spectrum);
        let (c, chosen) = self.chosen(&spectrum.lambda);
        let value = self.value(&spectrum, &solved, c, &chosen);
        // 1/(cλ + σ²) of what counts
        let channels = self.y.len() as f64;
        let inverse: Vec<f64> = spectrum
            .lambda
            .iter()
            .zip(&chosen)
            .map(|(l, &take)| if take { 1.0 / (c * l + noise) } else { 0.0 })
            .collect();
        let squares: f64 = solved.iter().flat_map(|(a, _)| a).map(|a| a * a).sum();
        let noise_slope = 0.5 * (squares - channels * inverse.iter().sum::<f64>());
        let (shape, threads, axes) = (&self.shape, self.threads, self.axes.len());
        let one = |(a, axis): (usize, &mut AxisWork)| {
            leave_wide_registers();
            let (n, threads) = (shape[a], axis.threads(axes, threads));
            let others: Vec<&[f64]> =
                (0..shape.len()).filter(|&b| b != a).map(|b| spectrum.axes[b].values.as_slice()).collect();
            let others = outer(&others);
            let roots: Vec<f64> = others.iter().map(|v| v.sqrt()).collect();
            // H = Ã diag(Π λ of the other axes) Ãᵀ − diag(w),  wᵢ = Σ c Π λ of the others/(cλ + σ²)
            let mut h = std::mem::take(&mut axis.h);
            if h.rows() != n {
                h = Matrix::zeros(n, n);
            }
            h.values_mut().fill(0.0);
            for (alpha, _) in &solved {
                unfold(shape, a, alpha, &roots, &mut axis.unfolded);
                add_gram(&mut h, &axis.unfolded, threads);
            }
            unfold(shape, a, &inverse, &others, &mut axis.unfolded);
            for i in 0..n {
                h[(i, i)] -= channels * c * axis.unfolded.column(i).iter().sum::<f64>();
            }
            h.mirror();
            // The adjoint of K is ½ Q H Qᵀ; a pair i > j stands for two entries.
            let adjoint = congruence(&spectrum.axes[a].vectors, &h, &mut axis.room, threads);
            let fill = |j: usize, i: usize, out: &mut [f64]| {
                out.copy_from_slice(&adjoint.column(j)[i..i + out.len()]);
                if i == j {
                    out[0] *= 0.5;
                }
            };
            let mut part = vec![0.0; axis.at.len()];
            let theta = &theta[axis.at.clone()];
            axis.program.pullback_gram(theta, &axis.x, fill, &mut part, None, &mut axis.scratch, threads)?;
            axis.h = h;
            Ok(part)
        };
        let parts: Vec<Vec<f64>> =
            self.axes.par_iter_mut().with_max_len(1).enumerate().map(one).collect::<Result<_>>()?;
        gradient.copy_from_slice(&parts.concat());
        self.axes.iter_mut().zip(spectrum.axes).for_each(|(axis, eigen)| axis.eigen.spare = eigen.vectors);
        Ok((value, noise_slope))
    }

    pub(super) fn parts(&self) -> (&[usize], &Holes, Threads) {
        (&self.shape, &self.holes, self.threads)
    }

    pub(super) fn limits(&self) -> ConjugateGradients {
        self.limits
    }

    pub(super) fn channels(&self) -> usize {
        self.y.len()
    }
}
