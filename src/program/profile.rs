//! Profiles: scalar functions of a geometry's number, with their slopes. The formula stands above the code; the test
//! suite compares each with a slow version and with differences.

use super::simd::Simd;
use crate::kernel::Profile;
use std::f64::consts::PI;

/// Does the reverse pass read slopes from a plane (rather than from the value itself)?
pub(super) fn keeps_slope(profile: Profile) -> bool {
    !matches!(profile, Profile::Gauss)
}

/// Planes to write to. `slope` and `in_shape` are read by the reverse pass only; `in_shape` has a meaning for the
/// rational quadratic alone.
#[derive(Clone, Copy)]
pub(super) struct Planes {
    pub s: *const f64,
    pub value: *mut f64,
    pub slope: *mut f64,
    pub in_shape: *mut f64,
    pub len: usize,
}

/// Vectors handled together, so that one's chain of operations fills the other's waiting.
pub(super) const TOGETHER: usize = 4;

/// Values, and slopes where `SLOPES`.
///
/// # Safety
/// Planes have room for `len` entries rounded up to `TOGETHER` vectors; instructions of `S` are enabled.
#[inline(always)]
pub(super) unsafe fn forward<S: Simd, const SLOPES: bool>(profile: Profile, shape: f64, p: Planes) {
    // Macros, not closures: a closure would not be compiled for the instruction set.
    macro_rules! vectors {
        (|$i:ident| $value:expr) => {{
            let mut out = [S::splat(0.0); TOGETHER];
            let mut $i = 0;
            while $i < TOGETHER {
                out[$i] = $value;
                $i += 1;
            }
            out
        }};
    }
    macro_rules! store {
        ($to:expr, $k:ident, |$i:ident| $value:expr) => {
            for $i in 0..TOGETHER {
                S::store($to.add($k + $i * S::LANES), $value);
            }
        };
    }
    macro_rules! each {
        (|$s:ident, $k:ident| $body:expr) => {
            each!(p.s, |$s, $k| $body)
        };
        ($from:expr, |$s:ident, $k:ident| $body:expr) => {
            for $k in (0..p.len).step_by(TOGETHER * S::LANES) {
                let $s = vectors!(|i| S::load($from.add($k + i * S::LANES)));
                $body
            }
        };
    }
    // SAFETY: as promised by the caller.
    unsafe {
        let c = S::splat;
        match profile {
            // k = exp(−s/2);   ∂k/∂s = −k/2, from the value
            Profile::Gauss => each!(|s, k| {
                let value = S::exp_half(s);
                store!(p.value, k, |i| value[i]);
            }),
            // k = u^(−α), u = 1 + s/2α;   ∂k/∂s = −k/2u;   ∂k/∂α = k (s/(2αu) − ln u)
            // Two loops: one chain through logarithm and exponential would be too long to be overlapped.
            Profile::RationalQuadratic => {
                let (half, minus) = (c(0.5 / shape), c(-shape));
                each!(|s, k| {
                    let x = vectors!(|i| S::mul(s[i], half));
                    let (ln, reciprocal) = S::ln_1p_and_reciprocal::<TOGETHER, SLOPES>(x);
                    store!(p.value, k, |i| ln[i]);
                    if SLOPES {
                        store!(p.slope, k, |i| reciprocal[i]);
                        store!(p.in_shape, k, |i| S::sub(S::mul(x[i], reciprocal[i]), ln[i]));
                    }
                });
                each!(p.value, |ln, k| {
                    let value = S::exp_below(vectors!(|i| S::mul(ln[i], minus)));
                    store!(p.value, k, |i| value[i]);
                    if SLOPES {
                        let [slope, in_shape] = [p.slope.add(k), p.in_shape.add(k)];
                        for (i, &value) in value.iter().enumerate() {
                            let (slope, in_shape) = (slope.add(i * S::LANES), in_shape.add(i * S::LANES));
                            S::store(slope, S::mul(S::mul(value, S::load(slope)), c(-0.5)));
                            S::store(in_shape, S::mul(value, S::load(in_shape)));
                        }
                    }
                });
            }
            // k = exp(−r), r = √s;   ∂k/∂s = −k/2r, taken as 0 at r = 0, where it has no slope
            Profile::Matern12 => each!(|s, k| {
                let r = vectors!(|i| S::sqrt(s[i]));
                let value = S::exp_below(vectors!(|i| S::sub(c(0.0), r[i])));
                store!(p.value, k, |i| value[i]);
                if SLOPES {
                    let slope = vectors!(|i| S::div(S::mul(value[i], c(-0.5)), r[i]));
                    store!(p.slope, k, |i| S::select_lt(c(0.0), s[i], slope[i], c(0.0)));
                }
            }),
            // k = (1 + q) exp(−q), q = √3s;   ∂k/∂s = −3/2 exp(−q)
            Profile::Matern32 => each!(|s, k| {
                let q = vectors!(|i| S::sqrt(S::mul(s[i], c(3.0))));
                let e = S::exp_below(vectors!(|i| S::sub(c(0.0), q[i])));
                store!(p.value, k, |i| S::fma(q[i], e[i], e[i]));
                if SLOPES {
                    store!(p.slope, k, |i| S::mul(e[i], c(-1.5)));
                }
            }),
            // k = (1 + q + q²/3) exp(−q), q = √5s;   ∂k/∂s = −5/6 (1 + q) exp(−q)
            Profile::Matern52 => each!(|s, k| {
                let q = vectors!(|i| S::sqrt(S::mul(s[i], c(5.0))));
                let e = S::exp_below(vectors!(|i| S::sub(c(0.0), q[i])));
                let one_q = vectors!(|i| S::add(q[i], c(1.0)));
                store!(p.value, k, |i| S::mul(S::fma(S::mul(q[i], q[i]), c(1.0 / 3.0), one_q[i]), e[i]));
                if SLOPES {
                    store!(p.slope, k, |i| S::mul(S::mul(one_q[i], e[i]), c(-5.0 / 6.0)));
                }
            }),
            // k = s^q;   ∂k/∂s = q s^(q−1)
            Profile::Power(q) => each!(|s, k| {
                let mut below = [c(1.0); TOGETHER];
                for _ in 1..q {
                    below = vectors!(|i| S::mul(below[i], s[i]));
                }
                store!(p.value, k, |i| S::mul(below[i], s[i]));
                if SLOPES {
                    store!(p.slope, k, |i| S::mul(below[i], c(f64::from(q))));
                }
            }),
            // Not vectorised: the arc sine is the standard library's.
            Profile::Arc(order) => {
                for k in 0..p.len {
                    let (value, slope) = arc(order, *p.s.add(k));
                    *p.value.add(k) = value;
                    if SLOPES {
                        *p.slope.add(k) = slope;
                    }
                }
            }
            Profile::Identity => {}
        }
    }
}

/// The arc-cosine kernels' angular part of the squared chord s = 2 − 2cos θ, divided by π:
/// k₀ = π − θ;   k₁ = sin θ + (π − θ) cos θ;   k₂ = 3 sin θ cos θ + (π − θ)(1 + 2cos²θ);   with ∂θ/∂s = 1/(2 sin θ):
/// ∂k₀/∂s = −1/(2 sin θ), taken as 0 at θ = 0 and π;   ∂k₁/∂s = −(π − θ)/2;   ∂k₂/∂s = −2 (sin θ + (π − θ) cos θ)
fn arc(order: u8, s: f64) -> (f64, f64) {
    let half = (s.max(0.0).sqrt() / 2.0).min(1.0);
    let theta = 2.0 * half.asin();
    let (cos, rest) = (1.0 - 2.0 * half * half, PI - theta);
    let sin = 2.0 * half * (1.0 - half * half).sqrt();
    let (value, slope) = match order {
        0 => (rest, if sin > 0.0 { -0.5 / sin } else { 0.0 }),
        1 => (sin + rest * cos, -0.5 * rest),
        _ => (3.0 * sin * cos + rest * (1.0 + 2.0 * cos * cos), -2.0 * (sin + rest * cos)),
    };
    // A number that is not one must not become a value by way of max and min.
    if s.is_nan() { (s, s) } else { (value / PI, slope / PI) }
}
