//! The small matrix products that everything linear comes down to: weights times planes, and adjoints times planes.
//! Rows and planes are taken in blocks that stay in registers.

use super::profile;
use super::simd::{Portable, Simd};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use crate::kernel::Profile;

/// The large loops, compiled once for each instruction set: inlined at every call they would swell the program.
#[allow(clippy::missing_safety_doc)]
pub(super) trait Loops: Simd {
    unsafe fn affine(weights: Weights, inputs: &[*const f64], outputs: &[*mut f64], start: Start, len: usize);
    unsafe fn squares(
        w: Weights,
        inputs: &[*const f64],
        fixed: &[f64],
        outputs: &[*mut f64],
        start: Start,
        len: usize,
    );
    unsafe fn outer(a: &[*const f64], b: &[*const f64], beside: Beside, gradient: *mut f64, len: usize);
    unsafe fn values(profile: Profile, shape: f64, planes: profile::Planes);
    unsafe fn values_and_slopes(profile: Profile, shape: f64, planes: profile::Planes);
}

macro_rules! loops {
    ($isa:ty $(, $feature:literal)?) => {
        // SAFETY: of every call: as the functions of the same name demand.
        impl Loops for $isa {
            $(#[target_feature(enable = $feature)])?
            unsafe fn affine(weights: Weights, inputs: &[*const f64], outputs: &[*mut f64], start: Start, len: usize) {
                unsafe { products::<Self, false>(weights, inputs, &[], outputs, start, len) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn squares(
                w: Weights,
                inputs: &[*const f64],
                fixed: &[f64],
                outputs: &[*mut f64],
                start: Start,
                len: usize,
            ) {
                unsafe { products::<Self, true>(w, inputs, fixed, outputs, start, len) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn outer(a: &[*const f64], b: &[*const f64], beside: Beside, gradient: *mut f64, len: usize) {
                unsafe { outer::<Self>(a, b, beside, gradient, len) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn values(profile: Profile, shape: f64, planes: profile::Planes) {
                unsafe { profile::forward::<Self, false>(profile, shape, planes) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn values_and_slopes(profile: Profile, shape: f64, planes: profile::Planes) {
                unsafe { profile::forward::<Self, true>(profile, shape, planes) }
            }
        }
    };
}

loops!(Portable);
#[cfg(target_arch = "x86_64")]
loops!(Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
loops!(Avx512, "avx2,fma,avx512f,avx512dq");

/// Lanes kept for each coefficient's gradient until the end, so that the order of sums does not depend on the tile.
pub(super) const WIDEST: usize = 8;

/// out[r] = base[r] + Σ weights[r·row_step + i·input_step] in[i], over `len` pairs; where `SQUARE`, inputs are features
/// and (in[i] − fixed[i])² stands for in[i].
///
/// # Safety
/// Inputs and outputs have `len` entries (a multiple of the lanes) and do not overlap; instructions of `S` are enabled.
#[inline(always)]
unsafe fn products<S: Simd, const SQUARE: bool>(
    weights: Weights,
    inputs: &[*const f64],
    fixed: &[f64],
    outputs: &[*mut f64],
    start: Start,
    len: usize,
) {
    let mut r = 0;
    // Two vectors at a time: three would not leave the registers enough room.
    macro_rules! rows {
        ($r:literal) => {{
            let (w, s, two) = (weights.at_row(r), start.at_row(r), 2 * S::LANES);
            let mut k = 0;
            while k + two <= len {
                block::<S, $r, 2, SQUARE>(w, inputs, fixed, &outputs[r..], s, k);
                k += two;
            }
            if k < len {
                block::<S, $r, 1, SQUARE>(w, inputs, fixed, &outputs[r..], s, k);
            }
            r += $r;
        }};
    }
    // SAFETY: as promised by the caller.
    unsafe {
        while r + 4 <= outputs.len() {
            rows!(4);
        }
        if r + 2 <= outputs.len() {
            rows!(2);
        }
        if r < outputs.len() {
            rows!(1);
        }
    }
    let _ = r;
}

/// A matrix of weights, in rows or in columns.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub at: *const f64,
    pub row_step: usize,
    pub input_step: usize,
}

impl Weights {
    #[inline(always)]
    unsafe fn at_row(self, r: usize) -> Self {
        // SAFETY: the caller stays within the matrix.
        Self { at: unsafe { self.at.add(r * self.row_step) }, ..self }
    }
}

/// What an output starts from.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Zero,
    /// One number a row.
    Bias(*const f64),
    /// What is there already.
    Keep,
}

impl Start {
    #[inline(always)]
    unsafe fn at_row(self, r: usize) -> Self {
        match self {
            // SAFETY: the caller stays within the biases.
            Start::Bias(p) => Start::Bias(unsafe { p.add(r) }),
            other => other,
        }
    }
}

#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const V: usize, const SQUARE: bool>(
    w: Weights,
    inputs: &[*const f64],
    fixed: &[f64],
    outputs: &[*mut f64],
    start: Start,
    k: usize,
) {
    // SAFETY: as in products.
    unsafe {
        // Copies: the compiler cannot know that storing a plane leaves the list of planes alone.
        let outputs: [*mut f64; R] = std::array::from_fn(|r| *outputs.get_unchecked(r));
        let mut sum = [[S::splat(0.0); V]; R];
        for (r, sum) in sum.iter_mut().enumerate() {
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = match start {
                    Start::Zero => S::splat(0.0),
                    Start::Bias(p) => S::splat(*p.add(r)),
                    Start::Keep => S::load(outputs[r].add(k + v * S::LANES)),
                };
            }
        }
        for (i, input) in inputs.iter().enumerate() {
            let mut x = [S::splat(0.0); V];
            for (v, x) in x.iter_mut().enumerate() {
                *x = S::load(input.add(k + v * S::LANES));
                if SQUARE {
                    let t = S::sub(*x, S::splat(*fixed.get_unchecked(i)));
                    *x = S::mul(t, t);
                }
            }
            for (r, sum) in sum.iter_mut().enumerate() {
                let weight = S::splat(*w.at.add(r * w.row_step + i * w.input_step));
                for v in 0..V {
                    sum[v] = S::fma(weight, x[v], sum[v]);
                }
            }
        }
        for (r, sum) in sum.iter().enumerate() {
            for (v, &sum) in sum.iter().enumerate() {
                S::store(outputs[r].add(k + v * S::LANES), sum);
            }
        }
    }
}

/// What stands beside an adjoint in a gradient.
#[derive(Clone, Copy)]
pub(super) enum Beside<'a> {
    /// b[i]
    Planes,
    /// fixed[i] · b[i], for products of features
    Scaled(&'a [f64]),
    /// (b[i] − fixed[i])², for squares of their differences
    Squared(&'a [f64]),
}

/// gradient[(r, i)] += Σ over pairs of a[r] b[i], lane by lane; `gradient` has WIDEST lanes an entry, row after row.
///
/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn outer<S: Simd>(a: &[*const f64], b: &[*const f64], beside: Beside, gradient: *mut f64, len: usize) {
    let width = b.len();
    let mut r = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while r + 4 <= a.len() {
            outer_rows::<S, 4>(&a[r..], b, beside, gradient.add(r * width * WIDEST), len);
            r += 4;
        }
        if r + 2 <= a.len() {
            outer_rows::<S, 2>(&a[r..], b, beside, gradient.add(r * width * WIDEST), len);
            r += 2;
        }
        if r < a.len() {
            outer_rows::<S, 1>(&a[r..], b, beside, gradient.add(r * width * WIDEST), len);
        }
    }
}

#[inline(always)]
unsafe fn outer_rows<S: Simd, const R: usize>(
    a: &[*const f64],
    b: &[*const f64],
    beside: Beside,
    gradient: *mut f64,
    len: usize,
) {
    let (mut i, width) = (0, b.len());
    macro_rules! columns {
        ($c:literal) => {{
            let (b, to) = (&b[i..], gradient.add(i * WIDEST));
            match beside {
                Beside::Planes => outer_block::<S, R, $c, false>(a, b, [0.0; $c], [1.0; $c], to, width, len),
                Beside::Scaled(f) => {
                    outer_block::<S, R, $c, false>(a, b, [0.0; $c], std::array::from_fn(|c| f[i + c]), to, width, len)
                }
                Beside::Squared(f) => {
                    outer_block::<S, R, $c, true>(a, b, std::array::from_fn(|c| f[i + c]), [1.0; $c], to, width, len)
                }
            }
            i += $c;
        }};
    }
    // SAFETY: as in outer.
    unsafe {
        while i + 3 <= width {
            columns!(3);
        }
        while i < width {
            columns!(1);
        }
    }
    let _ = i;
}

#[inline(always)]
unsafe fn outer_block<S: Simd, const R: usize, const C: usize, const SQUARE: bool>(
    a: &[*const f64],
    b: &[*const f64],
    fixed: [f64; C],
    scale: [f64; C],
    gradient: *mut f64,
    width: usize,
    len: usize,
) {
    // SAFETY: as in outer.
    unsafe {
        let a: [*const f64; R] = std::array::from_fn(|r| *a.get_unchecked(r));
        let b: [*const f64; C] = std::array::from_fn(|c| *b.get_unchecked(c));
        let mut sum = [[S::splat(0.0); C]; R];
        for k in (0..len).step_by(S::LANES) {
            let mut y = [S::splat(0.0); C];
            for (c, y) in y.iter_mut().enumerate() {
                *y = S::load(b[c].add(k));
                if SQUARE {
                    let t = S::sub(*y, S::splat(fixed[c]));
                    *y = S::mul(t, t);
                }
            }
            for (r, sum) in sum.iter_mut().enumerate() {
                let x = S::load(a[r].add(k));
                for c in 0..C {
                    sum[c] = S::fma(x, y[c], sum[c]);
                }
            }
        }
        for (r, sum) in sum.iter().enumerate() {
            for (c, &sum) in sum.iter().enumerate() {
                let p = gradient.add((r * width + c) * WIDEST);
                S::store(p, S::fma(sum, S::splat(scale[c]), S::load(p)));
            }
        }
    }
}

/// total += Σ over pairs of a, lane by lane. Four sums at once: one alone would wait for itself.
///
/// # Safety
/// As [`products`].
#[inline(always)]
pub(super) unsafe fn total<S: Simd>(a: *const f64, total: *mut f64, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = [S::load(total), S::splat(0.0), S::splat(0.0), S::splat(0.0)];
        let (mut k, four) = (0, 4 * S::LANES);
        while k + four <= len {
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = S::add(*sum, S::load(a.add(k + v * S::LANES)));
            }
            k += four;
        }
        while k < len {
            sum[0] = S::add(sum[0], S::load(a.add(k)));
            k += S::LANES;
        }
        S::store(total, S::add(S::add(sum[0], sum[1]), S::add(sum[2], sum[3])));
    }
}

/// total += Σ over pairs of a·b, lane by lane, as [`total`].
///
/// # Safety
/// As [`products`].
#[inline(always)]
pub(super) unsafe fn inner<S: Simd>(a: *const f64, b: *const f64, total: *mut f64, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = [S::load(total), S::splat(0.0), S::splat(0.0), S::splat(0.0)];
        let (mut k, four) = (0, 4 * S::LANES);
        while k + four <= len {
            for (v, sum) in sum.iter_mut().enumerate() {
                let at = k + v * S::LANES;
                *sum = S::fma(S::load(a.add(at)), S::load(b.add(at)), *sum);
            }
            k += four;
        }
        while k < len {
            sum[0] = S::fma(S::load(a.add(k)), S::load(b.add(k)), sum[0]);
            k += S::LANES;
        }
        S::store(total, S::add(S::add(sum[0], sum[1]), S::add(sum[2], sum[3])));
    }
}
