//! Lanes of f64: one small set of operations for each instruction set, exp and ln written once over them, and the
//! choice of instruction set at run time. Nothing here knows of kernels.
//!
//! Every function is `inline(always)` and unsafe: it must be reached from a function that enables the instructions
//! (see [`dispatch`]), and pointers must have `LANES` readable or writable entries.

use super::lanes::Loops;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use std::sync::OnceLock;

/// The instruction sets this build can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// Arrays of four, left to the compiler: SSE2 on x86-64, NEON with fused multiply-add on aarch64.
    Portable,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, DQ, VL, BW.
    Avx512,
}

impl Level {
    /// The best level of this machine.
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| *Self::supported().last().expect("portable is always there"))
    }

    /// Every level this machine can run, slowest first.
    pub fn supported() -> Vec<Level> {
        #[allow(unused_mut)]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 {
                levels.push(Level::Avx2);
            }
            if avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                levels.push(Level::Avx512);
            }
        }
        levels
    }
}

/// Work that can be done at any level.
pub(super) trait Work {
    type Output;
    /// # Safety
    /// To be called from a function that enables the instructions of `S`.
    unsafe fn run<S: Loops>(self) -> Self::Output;
}

/// Does the work with the instructions of a level.
pub(super) fn dispatch<W: Work>(level: Level, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<W: Work>(work: W) -> W::Output {
            // SAFETY: this function enables what Avx2 needs.
            unsafe { work.run::<Avx2>() }
        }
        #[target_feature(enable = "avx2,fma,avx512f,avx512dq")]
        fn avx512<W: Work>(work: W) -> W::Output {
            // SAFETY: this function enables what Avx512 needs.
            unsafe { work.run::<Avx512>() }
        }
        match level {
            // SAFETY: a level is only handed out where the machine has it.
            Level::Avx512 => return unsafe { avx512(work) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(work) },
            Level::Portable => {}
        }
    }
    let _ = level;
    // SAFETY: Portable needs nothing.
    unsafe { work.run::<Portable>() }
}

/// 1.5·2⁵² + 1023: adding it to x leaves the nearest integer to x, plus the exponent's bias, in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0 + 1023.0;
/// Bits of √½: the mantissa is brought to [√½, √2).
pub(super) const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
/// 2⁵²
pub(super) const TWO_52: f64 = 4_503_599_627_370_496.0;

/// An array of vectors, each computed by itself. A macro: a closure would not be compiled for the instruction set.
macro_rules! vectors {
    ($n:expr; |$i:ident| $value:expr) => {{
        let mut out = [Self::splat(0.0); $n];
        let mut $i = 0;
        while $i < $n {
            out[$i] = $value;
            $i += 1;
        }
        out
    }};
}

/// The operations of an instruction set on a vector of lanes.
#[allow(clippy::missing_safety_doc)]
pub(super) trait Simd: Copy + 'static {
    type V: Copy;
    const LANES: usize;
    unsafe fn splat(a: f64) -> Self::V;
    unsafe fn load(p: *const f64) -> Self::V;
    unsafe fn store(p: *mut f64, a: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sqrt(a: Self::V) -> Self::V;
    /// a·b + c
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c − a·b
    unsafe fn fnma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger; b where a lane is not a number.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The smaller; b where a lane is not a number.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// x where a < b, else y.
    unsafe fn select_lt(a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V;
    /// 2ⁿ from n + MAGIC.
    unsafe fn power_of_two(t: Self::V) -> Self::V;
    /// (e, m) with u = m·2ᵉ, m in [√½, √2), for finite u ≥ √½.
    unsafe fn split(u: Self::V) -> (Self::V, Self::V);

    /// The sum of the lanes, always in the same order.
    #[inline(always)]
    unsafe fn sum(a: Self::V) -> f64 {
        let mut lanes = [0.0; 8];
        unsafe { Self::store(lanes.as_mut_ptr(), a) };
        let mut half = Self::LANES / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
            half /= 2;
        }
        lanes[0]
    }

    /// exp(x) within 1 ulp; below −708 it stays at exp(−708), above 709 it is infinite. Several vectors at once: one
    /// alone would wait for its own chain of operations.
    #[inline(always)]
    unsafe fn exp<const N: usize>(x: [Self::V; N]) -> [Self::V; N] {
        unsafe {
            let e = Self::exp_below(x);
            let c = Self::splat;
            vectors!(N; |i| Self::select_lt(c(709.0), x[i], c(f64::INFINITY), e[i]))
        }
    }

    /// The same for x ≤ 709.
    #[inline(always)]
    unsafe fn exp_below<const N: usize>(x: [Self::V; N]) -> [Self::V; N] {
        unsafe {
            let c = Self::splat;
            // Operand order: a lane that is not a number stays so.
            let x = vectors!(N; |i| Self::max(c(-708.0), x[i]));
            let t = vectors!(N; |i| Self::fma(x[i], c(std::f64::consts::LOG2_E), c(MAGIC)));
            let n = vectors!(N; |i| Self::sub(t[i], c(MAGIC)));
            let r = vectors!(N; |i| Self::fnma(n[i], c(LN2_HI), x[i]));
            let r = vectors!(N; |i| Self::fnma(n[i], c(LN2_LO), r[i]));
            Self::exp_rest(t, r, 1.0, &EXP)
        }
    }

    /// exp(−s/2) for s ≥ 0, within 1 ulp; it stays at exp(−708) where it would be smaller. The factor is in the constants.
    #[inline(always)]
    unsafe fn exp_half<const N: usize>(s: [Self::V; N]) -> [Self::V; N] {
        unsafe {
            let c = Self::splat;
            let s = vectors!(N; |i| Self::min(c(1416.0), s[i]));
            let t = vectors!(N; |i| Self::fma(s[i], c(-0.5 * std::f64::consts::LOG2_E), c(MAGIC)));
            let n = vectors!(N; |i| Self::sub(t[i], c(MAGIC)));
            let r = vectors!(N; |i| Self::fma(n[i], c(2.0 * LN2_HI), s[i]));
            let r = vectors!(N; |i| Self::fma(n[i], c(2.0 * LN2_LO), r[i]));
            Self::exp_rest(t, r, -0.5, &EXP_HALF)
        }
    }

    /// 2ⁿ (1 + linear·r + r² q(r)), q by Estrin's scheme, n from t.
    #[inline(always)]
    unsafe fn exp_rest<const N: usize>(t: [Self::V; N], r: [Self::V; N], linear: f64, q: &[f64; 10]) -> [Self::V; N] {
        unsafe {
            let c = Self::splat;
            let r2 = vectors!(N; |i| Self::mul(r[i], r[i]));
            let q89 = vectors!(N; |i| Self::fma(c(q[9]), r[i], c(q[8])));
            let q67 = vectors!(N; |i| Self::fma(c(q[7]), r[i], c(q[6])));
            let q45 = vectors!(N; |i| Self::fma(c(q[5]), r[i], c(q[4])));
            let r4 = vectors!(N; |i| Self::mul(r2[i], r2[i]));
            let q47 = vectors!(N; |i| Self::fma(q67[i], r2[i], q45[i]));
            let q49 = vectors!(N; |i| Self::fma(q89[i], r4[i], q47[i]));
            let q23 = vectors!(N; |i| Self::fma(c(q[3]), r[i], c(q[2])));
            let q01 = vectors!(N; |i| Self::fma(c(q[1]), r[i], c(q[0])));
            let q03 = vectors!(N; |i| Self::fma(q23[i], r2[i], q01[i]));
            let q = vectors!(N; |i| Self::fma(q49[i], r4[i], q03[i]));
            let p = vectors!(N; |i| Self::fma(q[i], r[i], c(linear)));
            let p = vectors!(N; |i| Self::fma(p[i], r[i], c(1.0)));
            vectors!(N; |i| Self::mul(p[i], Self::power_of_two(t[i])))
        }
    }

    /// (ln(1 + x), 1/(1 + x)) for x ≥ 0, within 3 ulp and 2 ulp; one division serves both. Without `RECIPROCAL` the second
    /// means nothing.
    #[inline(always)]
    unsafe fn ln_1p_and_reciprocal<const N: usize, const RECIPROCAL: bool>(
        x: [Self::V; N],
    ) -> ([Self::V; N], [Self::V; N]) {
        const L: [f64; 7] = [
            0.666_666_666_666_673_5,
            0.399_999_999_994_094_2,
            0.285_714_287_436_623_9,
            0.222_221_984_321_497_84,
            0.181_835_721_616_180_5,
            0.153_138_376_992_093_73,
            0.147_981_986_051_165_86,
        ];
        unsafe {
            let c = Self::splat;
            let u = vectors!(N; |i| Self::add(x[i], c(1.0)));
            let e = vectors!(N; |i| Self::split(u[i]).0);
            let m = vectors!(N; |i| Self::split(u[i]).1);
            // Where u is below √2, x itself is the exact fraction.
            let f = vectors!(N; |i| Self::select_lt(e[i], c(0.5), x[i], Self::sub(m[i], c(1.0))));
            let g = vectors!(N; |i| Self::add(f[i], c(2.0)));
            // 1/(g u) gives both f/g and 1/u.
            let mut reciprocal = g;
            let z = if RECIPROCAL {
                let both = vectors!(N; |i| Self::div(c(1.0), Self::mul(g[i], u[i])));
                reciprocal = vectors!(N; |i| Self::mul(g[i], both[i]));
                vectors!(N; |i| Self::mul(Self::mul(f[i], u[i]), both[i]))
            } else {
                vectors!(N; |i| Self::div(f[i], g[i]))
            };
            // ln(1 + f) = 2 artanh z = z (2 + z² p(z²))
            let z2 = vectors!(N; |i| Self::mul(z[i], z[i]));
            let z4 = vectors!(N; |i| Self::mul(z2[i], z2[i]));
            let odd = vectors!(N; |i| Self::fma(z4[i], c(L[6]), c(L[4])));
            let even = vectors!(N; |i| Self::fma(z4[i], c(L[5]), c(L[3])));
            let odd = vectors!(N; |i| Self::fma(z4[i], odd[i], c(L[2])));
            let even = vectors!(N; |i| Self::fma(z4[i], even[i], c(L[1])));
            let odd = vectors!(N; |i| Self::fma(z4[i], odd[i], c(L[0])));
            let p = vectors!(N; |i| Self::fma(z2[i], even[i], odd[i]));
            let p = vectors!(N; |i| Self::fma(z2[i], p[i], c(2.0)));
            // A lane that is not finite spoils its own exponent, so that it is not lost.
            let e = vectors!(N; |i| Self::add(e[i], Self::sub(u[i], u[i])));
            let ln = vectors!(N; |i| Self::fma(z[i], p[i], Self::mul(e[i], c(LN2_LO))));
            (vectors!(N; |i| Self::fma(e[i], c(LN2_HI), ln[i])), reciprocal)
        }
    }
}

/// exp(r) = 1 + r + r² q(r): the coefficients of q.
const EXP: [f64; 10] = [
    0.5,
    0.166_666_666_666_666_69,
    0.041_666_666_666_624_13,
    0.008_333_333_333_330_062,
    0.001_388_888_891_721_371_7,
    0.000_198_412_698_630_536_18,
    2.480_152_129_595_437_6e-5,
    2.755_726_845_999_706_4e-6,
    2.762_008_844_540_974_6e-7,
    2.510_038_549_551_032e-8,
];

/// The same for exp(−r/2): powers of two, so that nothing is rounded.
const EXP_HALF: [f64; 10] = {
    let (mut out, mut factor, mut k) = ([0.0; 10], 0.25, 0);
    while k < 10 {
        out[k] = EXP[k] * factor;
        factor *= -0.5;
        k += 1;
    }
    out
};

/// ln 2 in two pieces, the first with room for a factor.
const LN2_HI: f64 = 0.693_147_180_369_123_8;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

#[cfg(test)]
mod tests {
    use super::*;

    struct Apply<'a> {
        x: &'a [f64],
        exp: &'a mut [f64],
        ln: &'a mut [f64],
        reciprocal: &'a mut [f64],
    }

    impl Work for Apply<'_> {
        type Output = ();
        #[inline(always)]
        unsafe fn run<S: Loops>(self) {
            for i in (0..self.x.len()).step_by(S::LANES) {
                // SAFETY: all lengths are multiples of eight.
                unsafe {
                    let x = S::load(self.x.as_ptr().add(i));
                    let [exp] = S::exp([x]);
                    S::store(self.exp.as_mut_ptr().add(i), exp);
                    let ([ln], [reciprocal]) = S::ln_1p_and_reciprocal::<1, true>([x]);
                    S::store(self.ln.as_mut_ptr().add(i), ln);
                    S::store(self.reciprocal.as_mut_ptr().add(i), reciprocal);
                }
            }
        }
    }

    fn apply(level: Level, x: &[f64]) -> [Vec<f64>; 3] {
        let mut out = [vec![0.0; x.len()], vec![0.0; x.len()], vec![0.0; x.len()]];
        let [exp, ln, reciprocal] = &mut out;
        dispatch(level, Apply { x, exp, ln, reciprocal });
        out
    }

    fn ulps(a: f64, b: f64) -> f64 {
        if a == b { 0.0 } else { (a - b).abs() / (b.abs() * f64::EPSILON) }
    }

    #[test]
    fn exp_and_ln_agree_with_std_on_every_level() {
        let grid = |lo: f64, hi: f64| (0..8000).map(move |i| lo + (hi - lo) * f64::from(i) / 8000.0);
        let small = (0..8000).map(|i| 10f64.powf(-18.0 + f64::from(i) / 400.0));
        for level in Level::supported() {
            for (x, both) in [
                (grid(-700.0, 0.0).collect::<Vec<_>>(), false),
                (grid(-1.0, 1.0).collect(), false),
                (grid(0.0, 40.0).collect(), true),
                (small.clone().collect(), true),
                ((0..304).map(|i| 10f64.powi(i - 4)).collect(), true),
            ] {
                let [exp, ln, reciprocal] = apply(level, &x);
                for (i, &x) in x.iter().enumerate() {
                    if x < 700.0 {
                        assert!(ulps(exp[i], x.exp()) < 1.5, "{level:?} exp({x}): {} {}", exp[i], x.exp());
                    }
                    if both {
                        assert!(ulps(ln[i], x.ln_1p()) < 3.0, "{level:?} ln_1p({x}): {} {}", ln[i], x.ln_1p());
                        assert!(ulps(reciprocal[i], 1.0 / (1.0 + x)) < 2.5, "{level:?} 1/(1+{x})");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for level in Level::supported() {
            let [exp, ln, _] = apply(level, &[f64::NAN, 0.0, f64::NAN, 1.0, -1e9, 800.0, f64::NAN, 2.0]);
            assert!(exp[0].is_nan() && exp[2].is_nan() && exp[6].is_nan() && exp[1] == 1.0);
            assert!(exp[4] < 1e-300 && exp[4] > 0.0 && exp[5] == f64::INFINITY);
            assert!(ln[0].is_nan() && ln[2].is_nan() && ln[1] == 0.0);
        }
    }
}
