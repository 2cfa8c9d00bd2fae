//! The vectors of AVX2 and AVX-512, and the innermost loop of all products. SAFETY throughout: the caller enables the
//! instructions; panels and slivers have the columns named, each on a multiple of a vector.

use super::steps::{LARGEST_SLIVER, Panel, Vectors};
use std::arch::x86_64::*;

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2;

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512;

/// acc[c] ± Σₚ a[p] b[p][c]. In assembly: twelve sums, three vectors and one
/// number fill the sixteen registers, and the compiler spills some of them, which halves the speed.
macro_rules! products_of_four {
    ($name:ident, $fma:literal) => {
        #[target_feature(enable = "avx2,fma")]
        #[inline]
        unsafe fn $name(acc: [[__m256d; 3]; 4], a: Panel, b: *const f64, len: usize) -> [[__m256d; 3]; 4] {
            if len == 0 {
                return acc;
            }
            let [
                [mut c00, mut c01, mut c02], [mut c10, mut c11, mut c12], [mut c20, mut c21, mut c22],
                [mut c30, mut c31, mut c32],
            ] = acc;
            // SAFETY: reads `len` columns of a panel and of a sliver, as promised by the caller.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "vmovapd {x0}, [{a}]",
                    "vmovapd {x1}, [{a} + {s}]",
                    "vmovapd {x2}, [{a} + 2*{s}]",
                    "vbroadcastsd {y}, [{b}]",
                    concat!($fma, " {c00}, {x0}, {y}"),
                    concat!($fma, " {c01}, {x1}, {y}"),
                    concat!($fma, " {c02}, {x2}, {y}"),
                    "vbroadcastsd {y}, [{b} + 8]",
                    concat!($fma, " {c10}, {x0}, {y}"),
                    concat!($fma, " {c11}, {x1}, {y}"),
                    concat!($fma, " {c12}, {x2}, {y}"),
                    "vbroadcastsd {y}, [{b} + 16]",
                    concat!($fma, " {c20}, {x0}, {y}"),
                    concat!($fma, " {c21}, {x1}, {y}"),
                    concat!($fma, " {c22}, {x2}, {y}"),
                    "vbroadcastsd {y}, [{b} + 24]",
                    concat!($fma, " {c30}, {x0}, {y}"),
                    concat!($fma, " {c31}, {x1}, {y}"),
                    concat!($fma, " {c32}, {x2}, {y}"),
                    "add {a}, 32",
                    "add {b}, 32",
                    "dec {len}",
                    "jnz 2b",
                    a = inout(reg) a.at => _,
                    b = inout(reg) b => _,
                    len = inout(reg) len => _,
                    s = in(reg) a.stride * 8,
                    x0 = out(ymm_reg) _,
                    x1 = out(ymm_reg) _,
                    x2 = out(ymm_reg) _,
                    y = out(ymm_reg) _,
                    c00 = inout(ymm_reg) c00,
                    c01 = inout(ymm_reg) c01,
                    c02 = inout(ymm_reg) c02,
                    c10 = inout(ymm_reg) c10,
                    c11 = inout(ymm_reg) c11,
                    c12 = inout(ymm_reg) c12,
                    c20 = inout(ymm_reg) c20,
                    c21 = inout(ymm_reg) c21,
                    c22 = inout(ymm_reg) c22,
                    c30 = inout(ymm_reg) c30,
                    c31 = inout(ymm_reg) c31,
                    c32 = inout(ymm_reg) c32,
                    options(nostack, readonly),
                );
            }
            [[c00, c01, c02], [c10, c11, c12], [c20, c21, c22], [c30, c31, c32]]
        }
    };
}

products_of_four!(plus_four, "vfmadd231pd");
products_of_four!(minus_four, "vfnmadd231pd");

/// acc[c] ± Σₚ a[p] b[p][c]. In assembly, as above: 29 of 32 registers. Slivers may come from far away, and are asked for early.
macro_rules! products_of_eight {
    ($name:ident, $fma:literal) => {
        #[target_feature(enable = "avx512f")]
        #[inline]
        unsafe fn $name(acc: [[__m512d; 3]; 8], a: Panel, b: *const f64, len: usize) -> [[__m512d; 3]; 8] {
            if len == 0 {
                return acc;
            }
            let [
                [mut c00, mut c01, mut c02], [mut c10, mut c11, mut c12], [mut c20, mut c21, mut c22],
                [mut c30, mut c31, mut c32], [mut c40, mut c41, mut c42], [mut c50, mut c51, mut c52],
                [mut c60, mut c61, mut c62], [mut c70, mut c71, mut c72],
            ] = acc;
            // SAFETY: reads `len` columns of a panel and of a sliver, as promised by the caller.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "prefetcht0 [{b} + 2048]",
                    "vmovapd {x0}, [{a}]",
                    "vmovapd {x1}, [{a} + {s}]",
                    "vmovapd {x2}, [{a} + 2*{s}]",
                    "vbroadcastsd {y0}, [{b}]",
                    concat!($fma, " {c00}, {x0}, {y0}"),
                    concat!($fma, " {c01}, {x1}, {y0}"),
                    concat!($fma, " {c02}, {x2}, {y0}"),
                    "vbroadcastsd {y1}, [{b} + 8]",
                    concat!($fma, " {c10}, {x0}, {y1}"),
                    concat!($fma, " {c11}, {x1}, {y1}"),
                    concat!($fma, " {c12}, {x2}, {y1}"),
                    "vbroadcastsd {y0}, [{b} + 16]",
                    concat!($fma, " {c20}, {x0}, {y0}"),
                    concat!($fma, " {c21}, {x1}, {y0}"),
                    concat!($fma, " {c22}, {x2}, {y0}"),
                    "vbroadcastsd {y1}, [{b} + 24]",
                    concat!($fma, " {c30}, {x0}, {y1}"),
                    concat!($fma, " {c31}, {x1}, {y1}"),
                    concat!($fma, " {c32}, {x2}, {y1}"),
                    "vbroadcastsd {y0}, [{b} + 32]",
                    concat!($fma, " {c40}, {x0}, {y0}"),
                    concat!($fma, " {c41}, {x1}, {y0}"),
                    concat!($fma, " {c42}, {x2}, {y0}"),
                    "vbroadcastsd {y1}, [{b} + 40]",
                    concat!($fma, " {c50}, {x0}, {y1}"),
                    concat!($fma, " {c51}, {x1}, {y1}"),
                    concat!($fma, " {c52}, {x2}, {y1}"),
                    "vbroadcastsd {y0}, [{b} + 48]",
                    concat!($fma, " {c60}, {x0}, {y0}"),
                    concat!($fma, " {c61}, {x1}, {y0}"),
                    concat!($fma, " {c62}, {x2}, {y0}"),
                    "vbroadcastsd {y1}, [{b} + 56]",
                    concat!($fma, " {c70}, {x0}, {y1}"),
                    concat!($fma, " {c71}, {x1}, {y1}"),
                    concat!($fma, " {c72}, {x2}, {y1}"),
                    "add {a}, 64",
                    "add {b}, 64",
                    "dec {len}",
                    "jnz 2b",
                    a = inout(reg) a.at => _,
                    b = inout(reg) b => _,
                    len = inout(reg) len => _,
                    s = in(reg) a.stride * 8,
                    x0 = out(zmm_reg) _,
                    x1 = out(zmm_reg) _,
                    x2 = out(zmm_reg) _,
                    y0 = out(zmm_reg) _,
                    y1 = out(zmm_reg) _,
                    c00 = inout(zmm_reg) c00,
                    c01 = inout(zmm_reg) c01,
                    c02 = inout(zmm_reg) c02,
                    c10 = inout(zmm_reg) c10,
                    c11 = inout(zmm_reg) c11,
                    c12 = inout(zmm_reg) c12,
                    c20 = inout(zmm_reg) c20,
                    c21 = inout(zmm_reg) c21,
                    c22 = inout(zmm_reg) c22,
                    c30 = inout(zmm_reg) c30,
                    c31 = inout(zmm_reg) c31,
                    c32 = inout(zmm_reg) c32,
                    c40 = inout(zmm_reg) c40,
                    c41 = inout(zmm_reg) c41,
                    c42 = inout(zmm_reg) c42,
                    c50 = inout(zmm_reg) c50,
                    c51 = inout(zmm_reg) c51,
                    c52 = inout(zmm_reg) c52,
                    c60 = inout(zmm_reg) c60,
                    c61 = inout(zmm_reg) c61,
                    c62 = inout(zmm_reg) c62,
                    c70 = inout(zmm_reg) c70,
                    c71 = inout(zmm_reg) c71,
                    c72 = inout(zmm_reg) c72,
                    options(nostack, readonly),
                );
            }
            [
                [c00, c01, c02], [c10, c11, c12], [c20, c21, c22], [c30, c31, c32],
                [c40, c41, c42], [c50, c51, c52], [c60, c61, c62], [c70, c71, c72],
            ]
        }
    };
}

products_of_eight!(plus_eight, "vfmadd231pd");
products_of_eight!(minus_eight, "vfnmadd231pd");

impl Vectors for Avx2 {
    type V = __m256d;
    type Block = [[__m256d; 3]; 4];
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::V {
        unsafe { _mm256_set1_pd(a) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::V {
        unsafe { _mm256_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, a: Self::V) {
        unsafe { _mm256_storeu_pd(to, a) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_mul_pd(a, b) }
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
    unsafe fn sum(a: Self::V) -> f64 {
        unsafe {
            let half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd::<1>(a));
            _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)))
        }
    }
    #[inline(always)]
    unsafe fn nought() -> Self::Block {
        unsafe { [[_mm256_setzero_pd(); 3]; 4] }
    }
    #[inline(always)]
    unsafe fn plus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block {
        unsafe { plus_four(acc, a, b, len) }
    }
    #[inline(always)]
    unsafe fn minus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block {
        unsafe { minus_four(acc, a, b, len) }
    }
    #[inline(always)]
    unsafe fn interleave(columns: &[*const f64; LARGEST_SLIVER], len: usize, to: *mut f64) -> usize {
        unsafe {
            let mut r = 0;
            while r + 4 <= len {
                let (a, b) = (Self::load(columns[0].add(r)), Self::load(columns[1].add(r)));
                let (c, d) = (Self::load(columns[2].add(r)), Self::load(columns[3].add(r)));
                let (ab, cd) = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
                let (odd_ab, odd_cd) = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
                let to = to.add(r * 4);
                Self::store(to, _mm256_permute2f128_pd::<0x20>(ab, cd));
                Self::store(to.add(4), _mm256_permute2f128_pd::<0x20>(odd_ab, odd_cd));
                Self::store(to.add(8), _mm256_permute2f128_pd::<0x31>(ab, cd));
                Self::store(to.add(12), _mm256_permute2f128_pd::<0x31>(odd_ab, odd_cd));
                r += 4;
            }
            r
        }
    }
}

impl Vectors for Avx512 {
    type V = __m512d;
    type Block = [[__m512d; 3]; 8];
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::V {
        unsafe { _mm512_set1_pd(a) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::V {
        unsafe { _mm512_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, a: Self::V) {
        unsafe { _mm512_storeu_pd(to, a) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_mul_pd(a, b) }
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
    unsafe fn sum(a: Self::V) -> f64 {
        unsafe { Avx2::sum(_mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd::<1>(a))) }
    }
    #[inline(always)]
    unsafe fn nought() -> Self::Block {
        unsafe { [[_mm512_setzero_pd(); 3]; 8] }
    }
    #[inline(always)]
    unsafe fn plus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block {
        unsafe { plus_eight(acc, a, b, len) }
    }
    #[inline(always)]
    unsafe fn minus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block {
        unsafe { minus_eight(acc, a, b, len) }
    }
    #[inline(always)]
    unsafe fn interleave(columns: &[*const f64; LARGEST_SLIVER], len: usize, to: *mut f64) -> usize {
        unsafe {
            let mut r = 0;
            while r + 8 <= len {
                let mut x = Self::nought();
                // Pairs of columns: their even rows, and their odd ones.
                for k in 0..4 {
                    let (a, b) = (Self::load(columns[2 * k].add(r)), Self::load(columns[2 * k + 1].add(r)));
                    (x[k][0], x[k][1]) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
                }
                // An index: a closure or an iterator is not sure to be compiled for the instructions.
                #[allow(clippy::needless_range_loop)]
                for odd in 0..2 {
                    let to = to.add((r + odd) * 8);
                    // Two rows each of four columns: rows 0 and 2, rows 4 and 6.
                    let a = _mm512_shuffle_f64x2::<0x44>(x[0][odd], x[1][odd]);
                    let b = _mm512_shuffle_f64x2::<0x44>(x[2][odd], x[3][odd]);
                    let c = _mm512_shuffle_f64x2::<0xEE>(x[0][odd], x[1][odd]);
                    let d = _mm512_shuffle_f64x2::<0xEE>(x[2][odd], x[3][odd]);
                    Self::store(to, _mm512_shuffle_f64x2::<0x88>(a, b));
                    Self::store(to.add(16), _mm512_shuffle_f64x2::<0xDD>(a, b));
                    Self::store(to.add(32), _mm512_shuffle_f64x2::<0x88>(c, d));
                    Self::store(to.add(48), _mm512_shuffle_f64x2::<0xDD>(c, d));
                }
                r += 8;
            }
            r
        }
    }
}
