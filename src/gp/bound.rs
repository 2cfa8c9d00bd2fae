//! The algebra of the VFE bound between its two passes over the rows: everything of size M, nothing of size N. Stands
//! between the statistics that the first pass adds up and the adjoints that the second one pulls back.

use super::exact::{LN_2PI, indefinite};
use crate::data::Points;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Errors, Gram, Inverse, JITTER_LAST, Matrix, Right, dot, product};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What is added to the diagonal of K_uu, always, before it is factorised. The bound stays a bound whatever it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// This share of the mean of the diagonal; ten times as much, up to 1e-4, while the factorisation fails.
    Relative(f64),
    /// This number and no other.
    Absolute(f64),
}

impl Default for Jitter {
    /// 1e-8 of the diagonal: the loss of bound is far below what the choice of inducing points costs, and the value
    /// keeps ten digits under smooth kernels.
    fn default() -> Self {
        Self::Relative(1e-8)
    }
}

/// In which basis the first pass adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Φ = K_uf K_fu, whitened once at the end: fast, and as good where K_uu is far from singular.
    #[default]
    Plain,
    /// Φ = A Aᵀ with A = L⁻¹K_uf, row by row: a triangular solve more, and safe under any kernel.
    White,
}

/// The largest relative error of the bound, as estimated from a few rows, at which the plain form is good enough. On
/// power_plant with 1000 of its rows as inducing points the estimate is 2e-10 and the error was 2e-12.
const PLAIN_ERROR: f64 = 1e-9;
/// Rows and random vectors of that estimate. Every row costs m² operations twice. With few of them the estimate is rather too large
/// than too small: errors that are random grow with the root of their number, and are divided by the number.
const PROBED: usize = 24;
const PROBES: usize = 4;

/// K_uu, factorised.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    pub z: Inputs,
    /// L Lᵀ = K_uu + jitter
    pub factor: Cholesky,
    /// W = L⁻¹
    pub inverse: Matrix,
    /// What was added to the diagonal.
    pub jitter: f64,
    /// Its slope in every entry of the diagonal.
    jitter_slope: f64,
    pub form: Form,
}

/// Memory of size M × M, kept from one evaluation to the next: the system clears what it is asked for anew.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// To pack and to work in.
    work: Matrix,
    /// For what the rows are multiplied by, packed: larger than a square.
    packed: Matrix,
    spare: Vec<Matrix>,
}

impl Room {
    /// A square matrix; what it holds means nothing.
    fn square(&mut self, m: usize) -> Matrix {
        let mut a = self.spare.pop().unwrap_or_default();
        a.reshape(m, m);
        a
    }
}

impl Basis {
    pub fn new(
        program: &Program,
        (theta, z): (&[f64], &Points),
        jitter: Jitter,
        scratch: &mut Scratch,
        room: &mut Room,
        threads: Threads,
    ) -> Result<Self> {
        let z = Inputs::without_lags(z.clone());
        let m = z.n();
        let (mut relative, absolute) = match jitter {
            Jitter::Relative(share) => (share, 0.0),
            Jitter::Absolute(value) => (0.0, value),
        };
        if !(relative >= 0.0 && absolute >= 0.0 && relative.is_finite() && absolute.is_finite()) {
            return Err(Error::option("jitter", format!("not a number from 0 up: {}", relative + absolute)));
        }
        loop {
            let (mut failed, mut added) = (None, 0.0);
            let fill = |k: &mut Matrix| {
                let stride = k.stride();
                failed = program.gram(theta, &z, k.values_mut(), stride, scratch, threads).err();
                added = absolute + relative * k.trace() / m as f64;
                (0..m).for_each(|i| k[(i, i)] += added);
            };
            let work = std::mem::take(&mut room.work);
            let factor = Cholesky::factor_once_with(room.square(m), work, fill, threads);
            if let Some(error) = failed {
                return Err(error);
            }
            match factor {
                Ok(mut factor) => {
                    let inverse = factor.inverse_factor(room.square(m), threads);
                    room.work = factor.take_spare();
                    let jitter_slope = relative / m as f64;
                    return Ok(Self { z, factor, inverse, jitter: added, jitter_slope, form: Form::White });
                }
                Err(f) if f.non_finite || absolute > 0.0 || relative >= JITTER_LAST * 0.9999 => {
                    return Err(indefinite(crate::linalg::Failure { jitter: added, ..f }, z.points()));
                }
                Err(_) => relative = if relative == 0.0 { 1e-10 } else { (10.0 * relative).min(JITTER_LAST) },
            }
        }
    }

    pub fn m(&self) -> usize {
        self.z.n()
    }

    /// Gives its memory to the next one.
    pub fn leave(self, room: &mut Room) {
        room.spare.extend([self.factor.into_buffers().0, self.inverse]);
    }

    /// Chooses the form by what rounding does to a few rows of the first chunk. With Φ of these rows, u = L⁻ᵀv and a
    /// random v, uᵀΦu is vᵀL⁻¹ΦL⁻ᵀv by the plain form, and |Av|² is the same by the white one. Their difference
    /// is of the size of the error E of the whitened Φ. The bound has tr(S E)/2σ² of it, with S = I − B⁻¹ (less mmᵀ): a
    /// direction that the rows do not use costs nothing, so v is ±√s with s a guess of the diagonal of S.
    pub fn choose(&mut self, chunk: &Matrix, n: usize, noise: f64, room: &mut Room, threads: Threads) {
        let (m, rows) = (self.m(), chunk.rows().min(PROBED));
        let mut a = Matrix::from_fn(rows, m, |i, j| chunk[(i, j)]);
        let mut gram = room.square(m);
        product::gram(&mut gram, &a, threads);
        product::solve_rows(&self.factor, &mut a, threads);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let share = n as f64 / rows as f64;
        let used = |j: usize| {
            let phi = share * dot(a.column(j), a.column(j)) / noise;
            (phi / (1.0 + phi)).sqrt()
        };
        let used: Vec<f64> = (0..m).map(used).collect();
        let mut probe = || used.iter().map(|s| if rng.random_range(0..2) == 0 { *s } else { -s }).collect();
        let probes: Vec<Vec<f64>> = (0..PROBES).map(|_| probe()).collect();
        let turned = product::lower_transposed_times(&self.inverse, &probes, threads);
        let plain = product::quadratic_forms(&gram, &turned, threads);
        room.spare.push(gram);
        let mut error = 0.0_f64;
        for (v, plain) in probes.iter().zip(plain) {
            let mut av = vec![0.0; rows];
            for (j, v) in v.iter().enumerate() {
                av.iter_mut().zip(a.column(j)).for_each(|(sum, a)| *sum += v * a);
            }
            error = error.max((plain - dot(&av, &av)).abs());
        }
        // Both grow with the number of rows: the error, and the bound itself.
        let relative = error / (2.0 * noise * rows as f64);
        self.form = if relative <= PLAIN_ERROR { Form::Plain } else { Form::White };
    }

    /// A chunk of rows as the statistics take it: K_fu (Plain) or Aᵀ = K_fu L⁻ᵀ (White).
    pub fn prepare(&self, k: &mut Matrix, threads: Threads) {
        if self.form == Form::White {
            product::solve_rows(&self.factor, k, threads);
        }
    }
}

/// What the first pass adds up.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// N
    pub n: usize,
    /// The lower triangle of Φ, or of Φ in the white basis.
    gram: Gram,
    /// K_uf y, or A y
    pub b: Vec<f64>,
    /// yᵀy
    pub yy: f64,
    /// Σ k(xₙ, xₙ)
    pub t: f64,
    pub room: Room,
}

impl Statistics {
    pub fn clear(&mut self, m: usize) {
        self.gram.begin(m);
        let (gram, room) = (std::mem::take(&mut self.gram), std::mem::take(&mut self.room));
        *self = Self { gram, room, b: vec![0.0; m], ..Self::default() };
    }

    /// Adds a chunk, prepared by its basis.
    pub fn add(&mut self, chunk: &Matrix, y: &[f64], diagonal: &[f64], threads: Threads) {
        self.gram.add(chunk, y, &mut self.b, threads);
        self.n += y.len();
        self.yy += dot(y, y);
        self.t += diagonal.iter().sum::<f64>();
    }
}

/// The bound, and what predictions and gradients need.
#[derive(Debug, Clone)]
pub(super) struct Solution {
    pub value: f64,
    /// ∂F/∂σ²
    pub noise_slope: f64,
    /// m = σ⁻² Σ⁻¹ b: the weight of each inducing point in the mean.
    pub weights: Vec<f64>,
    /// The factor of B = I + σ⁻² L⁻¹ΦL⁻ᵀ.
    pub white: Cholesky,
    /// m in the white basis.
    white_weights: Vec<f64>,
    /// B − I, lower triangle.
    excess: Matrix,
}

/// The adjoints that the second pass and the Gram matrix of the inducing points pull back.
#[derive(Debug)]
pub(super) struct Adjoints {
    /// What a prepared chunk is multiplied by: σ⁻²G (Plain) or σ⁻² (I − B⁻¹ − mmᵀ) L⁻¹ (White).
    pub rows: Right,
    /// σ⁻² m
    pub weights: Vec<f64>,
    /// The lower triangle of 2 ∂F/∂K_uu.
    pub twice_inducing: Matrix,
    /// Is added to every entry of the diagonal of ∂F/∂K_uu: the jitter follows the mean of the diagonal.
    pub diagonal: f64,
}

impl Adjoints {
    /// Gives its memory to the next one.
    pub fn leave(self, room: &mut Room) {
        let (b, packed) = self.rows.into_buffers();
        room.packed = packed;
        room.spare.extend([b, self.twice_inducing]);
    }
}

impl Solution {
    /// With B = I + Φ/σ² and all in the white basis, m = B⁻¹b/σ²:
    ///
    /// F = −N/2 log 2πσ² − ½log|B| − (yy + t − tr Φ)/2σ² + ½ bᵀB⁻¹b/σ⁴
    pub fn new(basis: &Basis, statistics: &mut Statistics, noise: f64, threads: Threads) -> Result<Self> {
        let (m, n) = (basis.m(), statistics.n as f64);
        let Statistics { gram, room, .. } = statistics;
        let mut excess = gram.finish(room.square(m), threads);
        let mut b = statistics.b.clone();
        if basis.form == Form::Plain {
            // A substitution is one long chain, which another thread may as well do meanwhile.
            let whiten = || product::whiten(&basis.inverse, &mut excess, &mut room.work, threads);
            threads.both(whiten, || basis.factor.half_solve(&mut b));
        }
        let trace = excess.trace();
        let mut scale = noise;
        let fill = |a: &mut Matrix| {
            product::each_column(&mut excess, a, threads, |_, excess, b| {
                excess.iter_mut().zip(&mut *b).for_each(|(e, b)| {
                    *e /= scale;
                    *b = *e;
                });
                b[0] += 1.0;
            });
            // Once it is scaled.
            scale = 1.0;
        };
        // B ≥ I up to rounding: jitter is of no help where that is not enough.
        let work = std::mem::take(&mut room.work);
        let white = Cholesky::factor_once_with(room.square(m), work, fill, threads);
        let white = white.map_err(|f| indefinite(f, basis.z.points()))?;
        white.half_solve(&mut b);
        let quadratic = dot(&b, &b);
        white.half_solve_transposed(&mut b);
        b.iter_mut().for_each(|v| *v /= noise);
        let rest = statistics.t - trace;
        let value = -0.5 * (n * (LN_2PI + noise.ln()) + white.log_det()) - (statistics.yy + rest) / (2.0 * noise)
            + 0.5 * quadratic / (noise * noise);
        let mut weights = b.clone();
        basis.factor.half_solve_transposed(&mut weights);
        // ∂F/∂σ², less ½(M − tr B⁻¹)/σ², for which the inverse is not here yet.
        let noise_slope = -0.5 * n / noise + 0.5 * (statistics.yy + rest) / (noise * noise)
            - 0.5 * quadratic / noise.powi(3)
            - 0.5 * dot(&b, &b) / noise;
        Ok(Self { value, noise_slope, weights, white, white_weights: b, excess })
    }

    /// G = L⁻ᵀ S L⁻¹ with S = I − B⁻¹ − m mᵀ;   2 ∂F/∂K_uu = L⁻ᵀ (S − (B − I)) L⁻¹
    ///
    /// Also completes ∂F/∂σ².
    pub fn adjoints(mut self, basis: &Basis, noise: f64, room: &mut Room, threads: Threads) -> (Adjoints, f64) {
        let (m, w) = (basis.m(), &basis.inverse);
        let mut inducing = self.excess;
        // From I − B⁻¹ and B − I, in either basis, to what is pulled back; where the rows need it, it is divided by σ².
        let finish = |s: &mut Matrix, e: &mut Matrix, weights: &[f64]| {
            product::each_column(s, e, threads, |j, column, excess| {
                for (k, (s, e)) in column.iter_mut().zip(excess).enumerate() {
                    let value = *s - weights[j + k] * weights[j];
                    *e = value - *e;
                    *s = value / noise;
                }
            });
            s.mirror();
        };
        let (rows, trace) = match basis.form {
            Form::Plain => {
                // With V the inverse of the factor of B, I − B⁻¹ = I − VᵀV: triangles are enough, and the inverse need not be
                // found. Errors are of the size of rounding times |L⁻¹|² in both ways.
                let mut v = self.white.inverse_factor(room.square(m), threads);
                let (factor, work) = self.white.into_buffers();
                room.work = work;
                room.spare.push(factor);
                let trace: f64 = (0..m).map(|j| dot(&v.column(j)[j..], &v.column(j)[j..])).sum();
                product::unwhiten(w, &mut inducing, Some(&mut v), &mut room.work, threads);
                finish(&mut v, &mut inducing, &self.weights);
                (v, trace)
            }
            Form::White => {
                let Inverse { inverse: mut s, spare } = self.white.into_inverse(Matrix::default(), threads);
                room.work = spare;
                let trace = s.trace();
                s.values_mut().iter_mut().for_each(|v| *v = -*v);
                (0..m).for_each(|j| s[(j, j)] += 1.0);
                finish(&mut s, &mut inducing, &self.white_weights);
                product::unwhiten(w, &mut inducing, None, &mut room.work, threads);
                (product::times_lower(&s, w, threads), trace)
            }
        };
        let (noise_slope, twice_inducing) = (self.noise_slope + 0.5 * (m as f64 - trace) / noise, inducing);
        let weights = self.weights.iter().map(|v| v / noise).collect();
        let diagonal = 0.5 * basis.jitter_slope * twice_inducing.trace();
        // In the white basis a chunk's columns and these rows may differ by many orders of magnitude.
        let errors = if basis.form == Form::Plain { Errors::ByNorm } else { Errors::ByEntry };
        let rows = Right::new(rows, std::mem::take(&mut room.packed), errors, threads);
        (Adjoints { rows, weights, twice_inducing, diagonal }, noise_slope)
    }
}
