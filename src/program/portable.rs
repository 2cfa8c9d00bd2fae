//! Lanes without instructions of their own: arrays of four, left to the compiler.

use super::simd::{SQRT_HALF, Simd, TWO_52};

/// Four lanes as an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

macro_rules! each_lane {
    ($f:expr) => {{
        let mut out = [0.0; 4];
        for (i, o) in out.iter_mut().enumerate() {
            *o = $f(i);
        }
        out
    }};
}

#[inline(always)]
fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction, mul_add would call a library function for each lane.
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
}

impl Simd for Portable {
    type V = [f64; 4];
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::V {
        [a; 4]
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self::V {
        // SAFETY: the caller gives four readable entries.
        unsafe { p.cast::<[f64; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, a: Self::V) {
        // SAFETY: the caller gives four writable entries.
        unsafe { p.cast::<[f64; 4]>().write_unaligned(a) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| a[i] + b[i])
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| a[i] - b[i])
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| a[i] / b[i])
    }
    #[inline(always)]
    unsafe fn sqrt(a: Self::V) -> Self::V {
        each_lane!(|i: usize| a[i].sqrt())
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each_lane!(|i: usize| multiply_add(a[i], b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn fnma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each_lane!(|i: usize| multiply_add(-a[i], b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        each_lane!(|i: usize| if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn select_lt(a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V {
        each_lane!(|i: usize| if a[i] < b[i] { x[i] } else { y[i] })
    }
    #[inline(always)]
    unsafe fn power_of_two(t: Self::V) -> Self::V {
        each_lane!(|i: usize| f64::from_bits(t[i].to_bits() << 52))
    }
    #[inline(always)]
    unsafe fn split(u: Self::V) -> (Self::V, Self::V) {
        let e = each_lane!(|i: usize| {
            let e = u[i].to_bits().wrapping_sub(SQRT_HALF) >> 52;
            f64::from_bits(e | TWO_52.to_bits()) - TWO_52
        });
        let m = each_lane!(|i: usize| {
            let e = u[i].to_bits().wrapping_sub(SQRT_HALF) >> 52;
            f64::from_bits(u[i].to_bits().wrapping_sub(e << 52))
        });
        (e, m)
    }
}
