//! Lanes of f64 on x86-64, by intrinsics: AVX2 and AVX-512. SAFETY throughout: the caller enables the instructions.
use super::simd::{SQRT_HALF, Simd, TWO_52};
use std::arch::x86_64::*;

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2;

impl Simd for Avx2 {
    type V = __m256d;
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::V {
        unsafe { _mm256_set1_pd(a) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self::V {
        unsafe { _mm256_loadu_pd(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, a: Self::V) {
        unsafe { _mm256_storeu_pd(p, a) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_sub_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_div_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: Self::V) -> Self::V {
        unsafe { _mm256_sqrt_pd(a) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn fnma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm256_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_max_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn select_lt(a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V {
        unsafe { _mm256_blendv_pd(y, x, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b)) }
    }
    #[inline(always)]
    unsafe fn power_of_two(t: Self::V) -> Self::V {
        unsafe { _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_castpd_si256(t))) }
    }
    #[inline(always)]
    unsafe fn split(u: Self::V) -> (Self::V, Self::V) {
        unsafe {
            let bits = _mm256_castpd_si256(u);
            let e = _mm256_srli_epi64::<52>(_mm256_sub_epi64(bits, _mm256_set1_epi64x(SQRT_HALF as i64)));
            let m = _mm256_castsi256_pd(_mm256_sub_epi64(bits, _mm256_slli_epi64::<52>(e)));
            let two = _mm256_set1_pd(TWO_52);
            (_mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(e, _mm256_castpd_si256(two))), two), m)
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512;

impl Simd for Avx512 {
    type V = __m512d;
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::V {
        unsafe { _mm512_set1_pd(a) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self::V {
        unsafe { _mm512_loadu_pd(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, a: Self::V) {
        unsafe { _mm512_storeu_pd(p, a) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_sub_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_div_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: Self::V) -> Self::V {
        unsafe { _mm512_sqrt_pd(a) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn fnma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm512_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_max_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn select_lt(a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V {
        unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), y, x) }
    }
    #[inline(always)]
    unsafe fn power_of_two(t: Self::V) -> Self::V {
        unsafe { _mm512_castsi512_pd(_mm512_slli_epi64::<52>(_mm512_castpd_si512(t))) }
    }
    #[inline(always)]
    unsafe fn split(u: Self::V) -> (Self::V, Self::V) {
        unsafe {
            let bits = _mm512_castpd_si512(u);
            let e = _mm512_srli_epi64::<52>(_mm512_sub_epi64(bits, _mm512_set1_epi64(SQRT_HALF as i64)));
            let m = _mm512_castsi512_pd(_mm512_sub_epi64(bits, _mm512_slli_epi64::<52>(e)));
            let two = _mm512_set1_pd(TWO_52);
            (_mm512_sub_pd(_mm512_castsi512_pd(_mm512_or_si512(e, _mm512_castpd_si512(two))), two), m)
        }
    }
}
