//! Adjoints times planes: the gradient of a matrix of weights, in blocks that stay in registers.

use super::lanes::{Run, WIDEST};
use super::simd::Simd;

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

const PLAIN: u8 = 0;
const SQUARED: u8 = 1;

/// gradient[(r, i)] += Σ over pairs of a[r] b[i], lane by lane; `gradient` has WIDEST lanes an entry, row after row.
///
/// # Safety
/// Planes have the pairs of the run; instructions of `S` are enabled.
#[inline(always)]
pub(super) unsafe fn outer<S: Simd>(
    a: &[*const f64],
    b: &[*const f64],
    beside: Beside,
    gradient: *mut f64,
    run: Run,
) {
    let width = b.len();
    let mut r = 0;
    // Some ten sums at once, each of its own: fewer would wait for themselves, more than twelve spill. Blocks with few
    // entries take several vectors at a time instead (the last number).
    macro_rules! block {
        ($r:literal, $c:literal, $u:literal, $i:ident) => {{
            let (a, b, to) = (&a[r..], &b[$i..], gradient.add((r * width + $i) * WIDEST));
            match beside {
                Beside::Planes => outer_block::<S, $r, $c, $u, PLAIN>(a, b, [0.0; $c], [1.0; $c], to, width, run),
                Beside::Scaled(f) => {
                    let scale = std::array::from_fn(|c| f[$i + c]);
                    outer_block::<S, $r, $c, $u, PLAIN>(a, b, [0.0; $c], scale, to, width, run)
                }
                Beside::Squared(f) => {
                    let fixed = std::array::from_fn(|c| f[$i + c]);
                    outer_block::<S, $r, $c, $u, SQUARED>(a, b, fixed, [1.0; $c], to, width, run)
                }
            }
            $i += $c;
        }};
    }
    // SAFETY: as promised by the caller.
    unsafe {
        while r < a.len() {
            let mut i = 0;
            if a.len() - r >= 4 {
                while i < width {
                    match width - i {
                        1 => block!(4, 1, 2, i),
                        2 | 4 => block!(4, 2, 1, i),
                        _ => block!(4, 3, 1, i),
                    }
                }
                r += 4;
            } else if a.len() - r >= 2 {
                while i < width {
                    match width - i {
                        1 => block!(2, 1, 4, i),
                        2 | 3 => block!(2, 2, 2, i),
                        _ => block!(2, 4, 1, i),
                    }
                }
                r += 2;
            } else {
                while i < width {
                    match width - i {
                        1 => block!(1, 1, 4, i),
                        2 | 3 => block!(1, 2, 4, i),
                        _ => block!(1, 4, 2, i),
                    }
                }
                r += 1;
            }
        }
    }
}

// Indices, not iterators: three arrays go along together.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
unsafe fn outer_block<S: Simd, const R: usize, const C: usize, const U: usize, const MAKE: u8>(
    a: &[*const f64],
    b: &[*const f64],
    fixed: [f64; C],
    scale: [f64; C],
    gradient: *mut f64,
    width: usize,
    run: Run,
) {
    // SAFETY: as in outer.
    unsafe {
        let a: [*const f64; R] = std::array::from_fn(|r| *a.get_unchecked(r));
        let b: [*const f64; C] = std::array::from_fn(|c| *b.get_unchecked(c));
        let mut sum = [[[S::splat(0.0); C]; R]; U];
        macro_rules! add {
            ($u:expr, $k:expr) => {{
                let mut y = [S::splat(0.0); C];
                for (c, y) in y.iter_mut().enumerate() {
                    *y = S::load(b[c].wrapping_add($k));
                    if MAKE == SQUARED {
                        *y = S::sub(*y, S::splat(fixed[c]));
                        *y = S::mul(*y, *y);
                    }
                }
                for r in 0..R {
                    let x = S::load(a[r].add($k));
                    for c in 0..C {
                        sum[$u][r][c] = S::fma(x, y[c], sum[$u][r][c]);
                    }
                }
            }};
        }
        let mut k = run.from;
        while k + U * S::LANES <= run.to {
            for u in 0..U {
                add!(u, k + u * S::LANES);
            }
            k += U * S::LANES;
        }
        while k < run.to {
            add!(0, k);
            k += S::LANES;
        }
        for r in 0..R {
            for c in 0..C {
                let mut all = sum[0][r][c];
                let mut u = 1;
                while u < U {
                    all = S::add(all, sum[u][r][c]);
                    u += 1;
                }
                let p = gradient.add((r * width + c) * WIDEST);
                S::store(p, S::fma(all, S::splat(scale[c]), S::load(p)));
            }
        }
    }
}

/// first[(r, i)] += Σ a[r] (b[i] − fixed[i]) and second[(r, i)] += Σ a[r] (b[i] − fixed[i])² over the pairs of a run, as
/// [`outer`]: what is read of a and b serves both.
///
/// # Safety
/// As [`outer`].
#[inline(always)]
pub(super) unsafe fn moments<S: Simd>(
    a: &[*const f64],
    b: &[*const f64],
    fixed: &[f64],
    first: *mut f64,
    second: *mut f64,
    run: Run,
) {
    let (width, mut r) = (b.len(), 0);
    assert!(fixed.len() >= width, "a number for each feature");
    macro_rules! block {
        ($r:literal, $c:literal, $i:ident) => {{
            let at = (r * width + $i) * WIDEST;
            let to = [first.add(at), second.add(at)];
            moments_block::<S, $r, $c>(&a[r..], &b[$i..], &fixed[$i..], to, width, run);
            $i += $c;
        }};
    }
    // SAFETY: as promised by the caller.
    unsafe {
        while r < a.len() {
            let mut i = 0;
            if a.len() - r >= 4 {
                // Eight sums fill sixteen registers; with twice as many registers, sixteen.
                while S::LANES == WIDEST && i + 2 <= width {
                    block!(4, 2, i);
                }
                while i < width {
                    block!(4, 1, i);
                }
                r += 4;
            } else if a.len() - r >= 2 {
                while i + 2 <= width {
                    block!(2, 2, i);
                }
                while i < width {
                    block!(2, 1, i);
                }
                r += 2;
            } else {
                while i + 4 <= width {
                    block!(1, 4, i);
                }
                while i < width {
                    block!(1, 1, i);
                }
                r += 1;
            }
        }
    }
}

#[inline(always)]
unsafe fn moments_block<S: Simd, const R: usize, const C: usize>(
    a: &[*const f64],
    b: &[*const f64],
    fixed: &[f64],
    to: [*mut f64; 2],
    width: usize,
    run: Run,
) {
    // SAFETY: as in moments.
    unsafe {
        let a: [*const f64; R] = std::array::from_fn(|r| *a.get_unchecked(r));
        let b: [*const f64; C] = std::array::from_fn(|c| *b.get_unchecked(c));
        let mut at = [S::splat(0.0); C];
        for (c, at) in at.iter_mut().enumerate() {
            *at = S::splat(*fixed.get_unchecked(c));
        }
        let mut sum = [[[S::splat(0.0); 2]; C]; R];
        for k in (run.from..run.to).step_by(S::LANES) {
            let mut apart = [[S::splat(0.0); 2]; C];
            for (c, apart) in apart.iter_mut().enumerate() {
                let t = S::sub(S::load(b[c].wrapping_add(k)), at[c]);
                *apart = [t, S::mul(t, t)];
            }
            for (r, sum) in sum.iter_mut().enumerate() {
                let x = S::load(a[r].add(k));
                for (sum, apart) in sum.iter_mut().zip(&apart) {
                    *sum = [S::fma(x, apart[0], sum[0]), S::fma(x, apart[1], sum[1])];
                }
            }
        }
        for (r, sum) in sum.iter().enumerate() {
            for (c, sum) in sum.iter().enumerate() {
                for (to, &sum) in to.iter().zip(sum) {
                    let p = to.add((r * width + c) * WIDEST);
                    S::store(p, S::add(S::load(p), sum));
                }
            }
        }
    }
}
