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

/// Values, and slopes where `SLOPES`.
///
/// # Safety
/// Planes have `len` entries, a multiple of the lanes; instructions of `S` are enabled.
#[inline(always)]
pub(super) unsafe fn forward<S: Simd, const SLOPES: bool>(profile: Profile, shape: f64, p: Planes) {
    // SAFETY: as promised by the caller.
    unsafe {
        macro_rules! each {
            (|$s:ident| $body:expr) => {
                for k in (0..p.len).step_by(S::LANES) {
                    let $s = S::load(p.s.add(k));
                    let (value, slope) = $body;
                    S::store(p.value.add(k), value);
                    if SLOPES {
                        S::store(p.slope.add(k), slope);
                    }
                }
            };
        }
        let c = |v: f64| S::splat(v);
        match profile {
            // k = exp(−s/2);   ∂k/∂s = −k/2, from the value
            Profile::Gauss => {
                for k in (0..p.len).step_by(S::LANES) {
                    S::store(p.value.add(k), S::exp(S::mul(S::load(p.s.add(k)), c(-0.5))));
                }
            }
            // k = u^(−α), u = 1 + s/2α;   ∂k/∂s = −k/2u;   ∂k/∂α = k (s/(2αu) − ln u)
            Profile::RationalQuadratic => {
                let (half, minus) = (c(0.5 / shape), c(-shape));
                for k in (0..p.len).step_by(S::LANES) {
                    let x = S::mul(S::load(p.s.add(k)), half);
                    let (ln, reciprocal) = S::ln_1p_and_reciprocal(x);
                    let value = S::exp(S::mul(ln, minus));
                    S::store(p.value.add(k), value);
                    if SLOPES {
                        S::store(p.slope.add(k), S::mul(S::mul(value, reciprocal), c(-0.5)));
                        let bracket = S::sub(S::mul(x, reciprocal), ln);
                        S::store(p.in_shape.add(k), S::mul(value, bracket));
                    }
                }
            }
            // k = exp(−r), r = √s;   ∂k/∂s = −k/2r, taken as 0 at r = 0, where it has no slope
            Profile::Matern12 => each!(|s| {
                let r = S::sqrt(s);
                let value = S::exp(S::sub(c(0.0), r));
                let slope = S::div(S::mul(value, c(-0.5)), r);
                (value, S::select_lt(c(0.0), s, slope, c(0.0)))
            }),
            // k = (1 + q) exp(−q), q = √3s;   ∂k/∂s = −3/2 exp(−q)
            Profile::Matern32 => each!(|s| {
                let q = S::sqrt(S::mul(s, c(3.0)));
                let e = S::exp(S::sub(c(0.0), q));
                (S::fma(q, e, e), S::mul(e, c(-1.5)))
            }),
            // k = (1 + q + q²/3) exp(−q), q = √5s;   ∂k/∂s = −5/6 (1 + q) exp(−q)
            Profile::Matern52 => each!(|s| {
                let q2 = S::mul(s, c(5.0));
                let q = S::sqrt(q2);
                let e = S::exp(S::sub(c(0.0), q));
                let one_q = S::add(q, c(1.0));
                (S::mul(S::fma(q2, c(1.0 / 3.0), one_q), e), S::mul(S::mul(one_q, e), c(-5.0 / 6.0)))
            }),
            // k = s^q;   ∂k/∂s = q s^(q−1)
            Profile::Power(q) => each!(|s| {
                let mut below = c(1.0);
                for _ in 1..q {
                    below = S::mul(below, s);
                }
                (S::mul(below, s), S::mul(below, c(f64::from(q))))
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
