//! The small matrix products that everything linear comes down to: weights times planes, and adjoints times planes.
//! Rows and planes are taken in blocks that stay in registers.

use super::simd::Simd;

/// Lanes kept for each coefficient's gradient until the end, so that the order of sums does not depend on the tile.
pub(super) const WIDEST: usize = 8;

/// out[r] = base[r] + Σ weights[r·row_step + i·input_step] in[i], over `len` pairs.
///
/// # Safety
/// Planes have `len` entries (a multiple of the lanes) and do not overlap the output; instructions of `S` are enabled.
#[inline(always)]
pub(super) unsafe fn affine<S: Simd>(weights: Weights, inputs: &[*const f64], outputs: &[*mut f64], start: Start, len: usize) {
    let mut r = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while r + 4 <= outputs.len() {
            rows::<S, 4>(weights.from_row(r), inputs, &outputs[r..], start.from_row(r), len);
            r += 4;
        }
        if r + 2 <= outputs.len() {
            rows::<S, 2>(weights.from_row(r), inputs, &outputs[r..], start.from_row(r), len);
            r += 2;
        }
        if r < outputs.len() {
            rows::<S, 1>(weights.from_row(r), inputs, &outputs[r..], start.from_row(r), len);
        }
    }
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
    unsafe fn from_row(self, r: usize) -> Self {
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
    unsafe fn from_row(self, r: usize) -> Self {
        match self {
            // SAFETY: the caller stays within the biases.
            Start::Bias(p) => Start::Bias(unsafe { p.add(r) }),
            other => other,
        }
    }
}

#[inline(always)]
unsafe fn rows<S: Simd, const R: usize>(w: Weights, inputs: &[*const f64], outputs: &[*mut f64], start: Start, len: usize) {
    let two = 2 * S::LANES;
    let mut k = 0;
    // SAFETY: as in affine.
    unsafe {
        while k + two <= len {
            block::<S, R, 2>(w, inputs, outputs, start, k);
            k += two;
        }
        if k < len {
            block::<S, R, 1>(w, inputs, outputs, start, k);
        }
    }
}

#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const V: usize>(
    w: Weights,
    inputs: &[*const f64],
    outputs: &[*mut f64],
    start: Start,
    k: usize,
) {
    // SAFETY: as in affine.
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

/// gradient[(r, i)] += Σ over pairs of a[r] b[i], lane by lane; `gradient` has WIDEST lanes an entry, row after row.
///
/// # Safety
/// As [`affine`].
#[inline(always)]
pub(super) unsafe fn outer<S: Simd>(a: &[*const f64], b: &[*const f64], gradient: *mut f64, len: usize) {
    let width = b.len();
    let mut r = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while r + 4 <= a.len() {
            outer_rows::<S, 4>(&a[r..], b, gradient.add(r * width * WIDEST), width, len);
            r += 4;
        }
        if r + 2 <= a.len() {
            outer_rows::<S, 2>(&a[r..], b, gradient.add(r * width * WIDEST), width, len);
            r += 2;
        }
        if r < a.len() {
            outer_rows::<S, 1>(&a[r..], b, gradient.add(r * width * WIDEST), width, len);
        }
    }
}

#[inline(always)]
unsafe fn outer_rows<S: Simd, const R: usize>(
    a: &[*const f64],
    b: &[*const f64],
    gradient: *mut f64,
    width: usize,
    len: usize,
) {
    let mut i = 0;
    // SAFETY: as in outer.
    unsafe {
        while i + 3 <= width {
            outer_block::<S, R, 3>(a, &b[i..], gradient.add(i * WIDEST), width, len);
            i += 3;
        }
        if i + 2 <= width {
            outer_block::<S, R, 2>(a, &b[i..], gradient.add(i * WIDEST), width, len);
            i += 2;
        }
        if i < width {
            outer_block::<S, R, 1>(a, &b[i..], gradient.add(i * WIDEST), width, len);
        }
    }
}

#[inline(always)]
unsafe fn outer_block<S: Simd, const R: usize, const C: usize>(
    a: &[*const f64],
    b: &[*const f64],
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
                S::store(p, S::add(S::load(p), sum));
            }
        }
    }
}

/// total += Σ over pairs of a, lane by lane.
///
/// # Safety
/// As [`affine`].
#[inline(always)]
pub(super) unsafe fn total<S: Simd>(a: *const f64, total: *mut f64, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = S::load(total);
        for k in (0..len).step_by(S::LANES) {
            sum = S::add(sum, S::load(a.add(k)));
        }
        S::store(total, sum);
    }
}

/// total += Σ over pairs of a·b, lane by lane.
///
/// # Safety
/// As [`affine`].
#[inline(always)]
pub(super) unsafe fn inner<S: Simd>(a: *const f64, b: *const f64, total: *mut f64, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = S::load(total);
        for k in (0..len).step_by(S::LANES) {
            sum = S::fma(S::load(a.add(k)), S::load(b.add(k)), sum);
        }
        S::store(total, sum);
    }
}
