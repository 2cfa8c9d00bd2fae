//! The sparse Gaussian process (VFE): a lower bound of the evidence from M inducing points, and its gradient, in two
//! passes over chunks of rows. Memory is O(M² + M·chunk) and a cache of fixed size, whatever the number of rows.

use super::bound::{Basis, Form, Jitter, Solution, Statistics};
use super::inducing::check_number;
use super::rows::Rows;
use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::linalg::{Matrix, prefetch, sum_scaled};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use std::time::Instant;

/// Bytes of kernel values that are kept from the first pass to the second.
const CACHE: usize = 256 << 20;

/// Where an evaluation's time went, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SparseTimings {
    /// Values of the kernel.
    pub assembly: f64,
    /// Matrix products and solves over the rows.
    pub products: f64,
    /// Everything of size M × M.
    pub factorisation: f64,
    /// The reverse pass.
    pub pullback: f64,
    /// Reading rows.
    pub reading: f64,
}

/// A sparse process over fixed rows: evaluates bound and gradient again and again.
///
/// ```
/// use covary::gp::{InMemory, Placing, Sparse, place_inducing};
/// use covary::{Kernel, Points, Threads, program::Program};
///
/// let x = Points::from_column(&(0..200).map(|i| i as f64 * 0.02).collect::<Vec<_>>())?;
/// let y: Vec<f64> = x.column(0).iter().map(|x| (3.0 * x).sin()).collect();
/// let kernel = Kernel::rbf().bind_to(1)?;
/// let (program, theta) = (Program::compile(&kernel, 1)?, kernel.values());
///
/// let z = place_inducing(&x, 20, Placing::KMeans, 0)?;
/// let rows = InMemory::new(&x, &y)?;
/// let mut sparse = Sparse::new(&program, &rows, &z, Threads::All)?;
/// let (mut in_theta, mut in_z) = (vec![0.0; theta.len()], vec![0.0; 20]);
/// let (bound, in_noise) = sparse.gradient(&theta, 0.01, &z, &mut in_theta, Some(&mut in_z))?;
/// assert!(bound.is_finite() && in_noise.is_finite());
/// # Ok::<(), covary::Error>(())
/// ```
pub struct Sparse<'a> {
    program: &'a Program,
    rows: &'a dyn Rows,
    m: usize,
    threads: Threads,
    jitter: Jitter,
    cache: Cache,
    scratch: Scratch,
    statistics: Statistics,
    /// Adjoints of a chunk.
    at: Matrix,
    /// What the last evaluation took.
    pub timings: SparseTimings,
    /// What the last evaluation added to the diagonal of K_uu.
    pub jitter_used: f64,
    /// In which basis the last evaluation added up.
    pub form: Form,
}

impl<'a> Sparse<'a> {
    /// A process over these rows, with as many inducing points as `start` has.
    ///
    /// # Errors
    /// When sizes do not fit, there are no rows or more inducing points than rows. Points that are the same are no error
    /// here, for points may meet while they are trained; [`super::check_inducing`] tells what a user gave twice.
    pub fn new(program: &'a Program, rows: &'a dyn Rows, start: &Points, threads: Threads) -> Result<Self> {
        let size = |what, expected, found| match expected == found {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Size { what, expected, found })),
        };
        size("input columns", program.d(), rows.d())?;
        size("columns of the inducing points", program.d(), start.d())?;
        check_number(start.n(), rows.n())?;
        Ok(Self {
            program,
            rows,
            m: start.n(),
            threads,
            jitter: Jitter::default(),
            cache: Cache::new(CACHE),
            scratch: Scratch::default(),
            statistics: Statistics::default(),
            at: Matrix::default(),
            timings: SparseTimings::default(),
            jitter_used: 0.0,
            form: Form::default(),
        })
    }

    /// The same process with another jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The same process, keeping at most this many bytes of kernel values from the first pass to the second; what
    /// does not fit is computed again. The result is the same to the bit.
    #[must_use]
    pub fn with_cache(mut self, bytes: usize) -> Self {
        self.cache = Cache::new(bytes);
        self
    }

    /// Bytes that the evaluation of n rows with m inducing points needs beyond the data, for chunks of so many rows.
    pub fn memory(n: usize, m: usize, chunk: usize) -> usize {
        let kept = n.saturating_mul(8 * m).min(CACHE);
        // Some 150 rows of m entries for each thread that multiplies.
        kept + 8 * (16 * m * m + 4 * m * chunk.min(n) + 150 * m * rayon::current_num_threads()) + (16 << 20)
    }

    /// The bound.
    ///
    /// # Errors
    /// When K_uu cannot be factorised, rows cannot be read or sizes do not fit.
    pub fn bound(&mut self, theta: &[f64], noise: f64, z: &Points) -> Result<f64> {
        let basis = self.first_pass(theta, noise, z)?;
        let start = Instant::now();
        let solution = Solution::new(&basis, &mut self.statistics, noise, self.threads)?;
        self.timings.factorisation += start.elapsed().as_secs_f64();
        Ok(solution.value)
    }

    /// The bound and its slope in the noise variance; the gradients in θ and, where asked for, in the inducing points
    /// (column by column) are overwritten.
    ///
    /// # Errors
    /// As [`Sparse::bound`].
    pub fn gradient(
        &mut self,
        theta: &[f64],
        noise: f64,
        z: &Points,
        gradient: &mut [f64],
        dz: Option<&mut [f64]>,
    ) -> Result<(f64, f64)> {
        self.threads.enter(|| self.all(theta, noise, z, gradient, dz))
    }

    fn all(
        &mut self,
        theta: &[f64],
        noise: f64,
        z: &Points,
        gradient: &mut [f64],
        mut dz: Option<&mut [f64]>,
    ) -> Result<(f64, f64)> {
        let basis = self.first_pass(theta, noise, z)?;
        let (program, threads) = (self.program, self.threads);
        let mut clock = Clock::start();
        let solution = Solution::new(&basis, &mut self.statistics, noise, threads)?;
        let value = solution.value;
        let (mut adjoints, noise_slope) = solution.adjoints(&basis, noise, &mut self.statistics.room, threads);
        clock.lap(&mut self.timings.factorisation);
        gradient.fill(0.0);
        if let Some(dz) = &mut dz {
            dz.fill(0.0);
        }

        let Self { rows, scratch, statistics, timings, cache, at, .. } = self;
        cache.rewind();
        rows.each(&mut |x, y| {
            clock.lap(&mut timings.reading);
            let x = Inputs::without_lags(x.clone());
            let (chunk, kept) = cache.place(8 * x.n() * basis.m());
            if !kept {
                assemble(program, theta, &x, &basis, chunk, scratch, threads)?;
                clock.lap(&mut timings.assembly);
                basis.prepare(chunk, threads);
            }
            if chunk.rows() != x.n() {
                let (expected, found) = (chunk.rows(), x.n());
                return Err(ErrorKind::Size { what: "rows of a chunk in the second pass", expected, found }.into());
            }
            // ∂F/∂K_fu = σ⁻²(K_fu G + y mᵀ);   ∂F/∂t = −1/2σ²
            adjoints.rows.multiply(at, chunk, threads);
            clock.lap(&mut timings.products);
            let (at, weights) = (&*at, &adjoints.weights);
            let adjoint = |j: usize, i: usize, out: &mut [f64]| {
                // What is below comes next, and then the top of the next column.
                let (column, end) = (at.column(j), i + out.len());
                let soon = if end < column.len() { &column[end..] } else { at.column((j + 1).min(basis.m() - 1)) };
                prefetch(&soon[..soon.len().min(out.len())]);
                sum_scaled(out, &column[i..], weights[j], &y[i..]);
            };
            let to = (None, dz.as_deref_mut());
            program.pullback_cross(theta, (&x, &basis.z), adjoint, gradient, to, scratch, threads)?;
            let diagonal = vec![-0.5 / noise; x.n()];
            program.pullback_diag(theta, &x, &diagonal, gradient, None, scratch)?;
            clock.lap(&mut timings.pullback);
            Ok(())
        })?;
        // A pair i > j stands for two entries.
        let adjoint = |j: usize, i: usize, out: &mut [f64]| {
            out.copy_from_slice(&adjoints.twice_inducing.column(j)[i..i + out.len()]);
            if i == j {
                out[0] = 0.5 * out[0] + adjoints.diagonal;
            }
        };
        program.pullback_gram(theta, &basis.z, adjoint, gradient, dz, scratch, threads)?;
        clock.lap(&mut timings.pullback);
        basis.leave(&mut statistics.room);
        adjoints.leave(&mut statistics.room);
        Ok((value, noise_slope))
    }

    fn first_pass(&mut self, theta: &[f64], noise: f64, z: &Points) -> Result<Basis> {
        if z.n() != self.m {
            return Err(ErrorKind::Size { what: "inducing points", expected: self.m, found: z.n() }.into());
        }
        let Self { program, rows, threads, jitter, scratch, statistics, cache, timings, .. } = self;
        *timings = SparseTimings::default();
        let seen = &mut Timed { timings, cache };
        let basis = accumulate(program, *rows, (theta, noise, z), *jitter, statistics, scratch, seen, *threads)?;
        (self.jitter_used, self.form) = (basis.jitter, basis.form);
        Ok(basis)
    }
}

/// Where the first pass notes its times and keeps its chunks.
pub(super) struct Timed<'a> {
    pub timings: &'a mut SparseTimings,
    pub cache: &'a mut Cache,
}

/// The first pass: adds up the statistics of every row.
#[allow(clippy::too_many_arguments)]
pub(super) fn accumulate(
    program: &Program,
    rows: &dyn Rows,
    (theta, noise, z): (&[f64], f64, &Points),
    jitter: Jitter,
    statistics: &mut Statistics,
    scratch: &mut Scratch,
    seen: &mut Timed,
    threads: Threads,
) -> Result<Basis> {
    if !(noise > 0.0 && noise.is_finite()) {
        return Err(Error::option("noise", format!("a sparse model needs a positive variance: {noise}")));
    }
    let mut clock = Clock::start();
    let mut basis = Basis::new(program, (theta, z), jitter, scratch, &mut statistics.room, threads)?;
    clock.lap(&mut seen.timings.factorisation);
    statistics.clear(basis.m());
    let mut diagonal = Vec::new();
    seen.cache.rewind();
    rows.each(&mut |x, y| {
        clock.lap(&mut seen.timings.reading);
        let x = Inputs::without_lags(x.clone());
        let (chunk, _) = seen.cache.place(8 * x.n() * basis.m());
        assemble(program, theta, &x, &basis, chunk, scratch, threads)?;
        diagonal.resize(x.n(), 0.0);
        program.diag(theta, &x, &mut diagonal, scratch)?;
        clock.lap(&mut seen.timings.assembly);
        if statistics.n == 0 {
            basis.choose(chunk, rows.n(), noise, &mut statistics.room, threads);
            clock.lap(&mut seen.timings.factorisation);
        }
        basis.prepare(chunk, threads);
        statistics.add(chunk, y, &diagonal, threads);
        clock.lap(&mut seen.timings.products);
        Ok(())
    })?;
    check_number(basis.m(), statistics.n)?;
    Ok(basis)
}

/// K_fu of a chunk.
fn assemble(
    program: &Program,
    theta: &[f64],
    x: &Inputs,
    basis: &Basis,
    into: &mut Matrix,
    scratch: &mut Scratch,
    threads: Threads,
) -> Result<()> {
    into.reshape(x.n(), basis.m());
    let stride = into.stride();
    program.cross(theta, x, &basis.z, into.values_mut(), stride, scratch, threads)
}

/// Prepared chunks, kept from the first pass to the second as long as there is room; the others share one place.
#[derive(Debug, Default)]
pub(super) struct Cache {
    limit: usize,
    kept: Vec<Matrix>,
    spare: Matrix,
    index: usize,
    used: usize,
}

impl Cache {
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Begins a pass.
    fn rewind(&mut self) {
        (self.index, self.used) = (0, 0);
    }

    /// The place of the next chunk, of this many bytes, and whether the chunk stays there.
    fn place(&mut self, bytes: usize) -> (&mut Matrix, bool) {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.limit {
            self.used = usize::MAX;
            return (&mut self.spare, false);
        }
        if self.kept.len() == self.index {
            self.kept.push(Matrix::default());
        }
        self.index += 1;
        (&mut self.kept[self.index - 1], true)
    }
}

struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn lap(&mut self, to: &mut f64) {
        *to += self.0.elapsed().as_secs_f64();
        self.0 = Instant::now();
    }
}

impl std::fmt::Debug for Sparse<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sparse({} inducing points, at most {} rows)", self.m, self.rows.n())
    }
}
