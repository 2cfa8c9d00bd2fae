//! The small matrix products that everything linear comes down to: weights times planes, and adjoints times planes.
//! Rows and planes are taken in blocks that stay in registers.

use super::outer::{self, Beside};
use super::portable::Portable;
use super::profile;
use super::simd::Simd;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use crate::kernel::Profile;

/// The large loops, compiled once for each instruction set: inlined at every call they would swell the program.
#[allow(clippy::missing_safety_doc)]
pub(super) trait Loops: Simd {
    unsafe fn affine(layer: Layer);
    unsafe fn squares(layer: Layer, fixed: &[f64]);
    unsafe fn outer(a: &[*const f64], b: &[*const f64], beside: Beside, gradient: *mut f64, run: Run);
    unsafe fn moments(a: &[*const f64], b: &[*const f64], fixed: &[f64], to: [*mut f64; 2], run: Run);
    unsafe fn values(profile: Profile, shape: f64, planes: profile::Planes);
    unsafe fn values_and_slopes(profile: Profile, shape: f64, planes: profile::Planes);
}

macro_rules! loops {
    ($isa:ty $(, $feature:literal)?) => {
        // SAFETY: of every call: as the functions of the same name demand.
        impl Loops for $isa {
            $(#[target_feature(enable = $feature)])?
            unsafe fn affine(layer: Layer) {
                unsafe { products::<Self, false>(layer, &[]) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn squares(layer: Layer, fixed: &[f64]) {
                unsafe { products::<Self, true>(layer, fixed) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn outer(a: &[*const f64], b: &[*const f64], beside: Beside, gradient: *mut f64, run: Run) {
                unsafe { outer::outer::<Self>(a, b, beside, gradient, run) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments(a: &[*const f64], b: &[*const f64], fixed: &[f64], [first, second]: [*mut f64; 2], run: Run) {
                unsafe { outer::moments::<Self>(a, b, fixed, first, second, run) }
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

/// The pairs of a loop, by their places in the planes: whole vectors.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub from: usize,
    pub to: usize,
}

/// out[r] = start[r] + Σ weights[r·row_step + i·input_step] in[i] over the pairs of a run.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    pub weights: Weights,
    pub inputs: &'a [*const f64],
    pub outputs: &'a [*mut f64],
    pub start: Start<'a>,
    pub then: Then<'a>,
    pub run: Run,
}

/// A matrix of weights, in rows or in columns.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub at: *const f64,
    pub row_step: usize,
    pub input_step: usize,
}

/// What an output starts from.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    Zero,
    /// One number a row.
    Bias(*const f64),
    /// What is there already.
    Keep,
    /// One plane a row, the first pair this many entries on.
    Planes(&'a [*const f64], isize),
}

/// What becomes of the rows.
#[derive(Clone, Copy)]
pub(super) enum Then<'a> {
    /// They are stored.
    Store,
    /// So is the product of rows 2p and 2p + 1, at place p.
    Multiply(&'a [*mut f64]),
    /// The products alone are stored.
    Products(&'a [*mut f64]),
}

const STORE: u8 = 0;
const MULTIPLY: u8 = 1;
const PRODUCTS: u8 = 2;

/// A layer; where `SQUARE`, inputs are features and (in[i] − fixed[i])² stands for in[i].
///
/// # Safety
/// Inputs and outputs have the pairs of the run and do not overlap; rows that are multiplied are even in number;
/// instructions of `S` are enabled.
#[inline(always)]
unsafe fn products<S: Simd, const SQUARE: bool>(layer: Layer, fixed: &[f64]) {
    // SAFETY: as promised by the caller.
    unsafe {
        match layer.then {
            Then::Store => rows::<S, SQUARE, STORE>(layer, &[], fixed),
            Then::Multiply(to) => rows::<S, SQUARE, MULTIPLY>(layer, to, fixed),
            Then::Products(to) => rows::<S, SQUARE, PRODUCTS>(layer, to, fixed),
        }
    }
}

/// Some rows of a layer. Lists of planes are copied here once a run: the compiler cannot know that storing a plane leaves
/// the lists alone, and would read them again for every block.
struct Rows<const R: usize> {
    weights: [*const f64; R],
    outputs: [*mut f64; R],
    /// Where an output starts: a number, or a plane.
    start: [*const f64; R],
    /// The products of neighbours, at every second place.
    products: [*mut f64; R],
}

impl<const R: usize> Rows<R> {
    /// Rows r.. of a layer.
    #[inline(always)]
    unsafe fn of(layer: &Layer, to: &[*mut f64], r: usize) -> Self {
        let mut rows = Self {
            weights: [layer.weights.at; R],
            outputs: [std::ptr::null_mut(); R],
            start: [std::ptr::null(); R],
            products: [std::ptr::null_mut(); R],
        };
        for k in 0..R {
            rows.weights[k] = layer.weights.at.wrapping_add((r + k) * layer.weights.row_step);
            rows.outputs[k] = layer.outputs[r + k];
            rows.start[k] = match layer.start {
                Start::Zero => rows.start[k],
                Start::Bias(p) => p.wrapping_add(r + k),
                Start::Keep => rows.outputs[k],
                Start::Planes(list, shift) => list[r + k].wrapping_offset(shift),
            };
            if !to.is_empty() {
                rows.products[k] = to[(r + k) / 2];
            }
        }
        rows
    }
}

#[inline(always)]
unsafe fn rows<S: Simd, const SQUARE: bool, const THEN: u8>(layer: Layer, to: &[*mut f64], fixed: &[f64]) {
    let Layer { inputs, outputs, run, .. } = layer;
    assert!(!SQUARE || fixed.len() >= inputs.len(), "a number for each feature");
    let mut r = 0;
    // Eight sums at a time: fewer would wait for themselves, twelve would not leave sixteen registers enough room.
    macro_rules! rows {
        ($r:literal, $v:literal) => {{
            let (rows, step) = (Rows::<$r>::of(&layer, to, r), $v * S::LANES);
            let mut k = run.from;
            while k + step <= run.to {
                block::<S, $r, $v, SQUARE, THEN>(&rows, &layer, fixed, k);
                k += step;
            }
            while k < run.to {
                block::<S, $r, 1, SQUARE, THEN>(&rows, &layer, fixed, k);
                k += S::LANES;
            }
            r += $r;
        }};
    }
    // SAFETY: as in products.
    unsafe {
        // The widest vectors come with 32 registers: what is made of an input serves twice as many.
        if S::LANES == WIDEST {
            while r + 4 <= outputs.len() {
                rows!(4, 4);
            }
        }
        while r + 4 <= outputs.len() {
            rows!(4, 2);
        }
        if r + 2 <= outputs.len() {
            rows!(2, 4);
        }
        if r < outputs.len() {
            rows!(1, 4);
        }
    }
    let _ = r;
}

#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const V: usize, const SQUARE: bool, const THEN: u8>(
    rows: &Rows<R>,
    layer: &Layer,
    fixed: &[f64],
    k: usize,
) {
    // SAFETY: as in products.
    unsafe {
        let mut sum = [[S::splat(0.0); V]; R];
        for (r, sum) in sum.iter_mut().enumerate() {
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = match layer.start {
                    Start::Zero => S::splat(0.0),
                    Start::Bias(_) => S::splat(*rows.start[r]),
                    Start::Keep | Start::Planes(..) => S::load(rows.start[r].wrapping_add(k + v * S::LANES)),
                };
            }
        }
        for (i, input) in layer.inputs.iter().enumerate() {
            let mut x = [S::splat(0.0); V];
            for (v, x) in x.iter_mut().enumerate() {
                *x = S::load(input.wrapping_add(k + v * S::LANES));
                if SQUARE {
                    let t = S::sub(*x, S::splat(*fixed.get_unchecked(i)));
                    *x = S::mul(t, t);
                }
            }
            for (r, sum) in sum.iter_mut().enumerate() {
                let weight = S::splat(*rows.weights[r].add(i * layer.weights.input_step));
                for v in 0..V {
                    sum[v] = S::fma(weight, x[v], sum[v]);
                }
            }
        }
        if THEN != PRODUCTS {
            for (r, sum) in sum.iter().enumerate() {
                for (v, &sum) in sum.iter().enumerate() {
                    S::store(rows.outputs[r].add(k + v * S::LANES), sum);
                }
            }
        }
        if THEN != STORE {
            for p in 0..R / 2 {
                for (v, (&a, &b)) in sum[2 * p].iter().zip(&sum[2 * p + 1]).enumerate() {
                    S::store(rows.products[2 * p].add(k + v * S::LANES), S::mul(a, b));
                }
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

/// target = a·b and total += Σ over pairs of a·c, lane by lane.
///
/// # Safety
/// As [`products`].
#[inline(always)]
pub(super) unsafe fn two_slopes<S: Simd>(
    a: *const f64,
    [b, c]: [*const f64; 2],
    target: *mut f64,
    total: *mut f64,
    len: usize,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = [S::load(total), S::splat(0.0)];
        let mut k = 0;
        macro_rules! one {
            ($u:literal, $k:expr) => {{
                let a = S::load(a.add($k));
                S::store(target.add($k), S::mul(a, S::load(b.add($k))));
                sum[$u] = S::fma(a, S::load(c.add($k)), sum[$u]);
            }};
        }
        while k + 2 * S::LANES <= len {
            one!(0, k);
            one!(1, k + S::LANES);
            k += 2 * S::LANES;
        }
        if k < len {
            one!(0, k);
        }
        S::store(total, S::add(sum[0], sum[1]));
    }
}
