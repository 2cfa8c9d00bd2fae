//! What the blocked factor and inverse do to a few rows at a time, with AVX2 and fused multiply-add.
//!
//! A *sliver* holds four rows, column after column, so that a column of it is one vector; a *panel* is three slivers,
//! `stride` entries apart, each on a multiple of 32 bytes. SAFETY throughout: the caller has the instructions, panels and
//! slivers have the columns named.

// Indices, not iterators: several arrays go along together.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

/// Rows of a sliver.
pub(super) const LANES: usize = 4;
/// Rows of a panel.
pub(super) const PANEL: usize = 3 * LANES;
/// Columns that are computed at once.
pub(super) const STEP: usize = 4;

/// Four columns of a panel.
pub(super) type Block = [[__m256d; 3]; STEP];

/// acc[c] ± Σₚ a[p] b[p][c], for a panel a and a sliver b over `len` columns. In assembly: twelve sums, three vectors and
/// one number fill the sixteen registers, and the compiler spills some of them, which halves the speed.
macro_rules! products {
    ($name:ident, $fma:literal) => {
        #[target_feature(enable = "avx2,fma")]
        #[inline]
        pub(super) unsafe fn $name(acc: Block, a: *const f64, stride: usize, b: *const f64, len: usize) -> Block {
            if len == 0 {
                return acc;
            }
            let [[mut c00, mut c01, mut c02], [mut c10, mut c11, mut c12], next, last] = acc;
            let ([mut c20, mut c21, mut c22], [mut c30, mut c31, mut c32]) = (next, last);
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
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    len = inout(reg) len => _,
                    s = in(reg) stride * 8,
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

products!(plus, "vfmadd231pd");
products!(minus, "vfnmadd231pd");

/// A block of noughts.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn nought() -> Block {
    [[_mm256_setzero_pd(); 3]; STEP]
}

/// Columns `shift`.. of the identity.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn unit(shift: usize) -> Block {
    let mut block = nought();
    for (c, column) in block.iter_mut().enumerate() {
        let mut rows = [0.0; PANEL];
        if let Some(one) = rows.get_mut(shift + c) {
            *one = 1.0;
        }
        for (v, column) in column.iter_mut().enumerate() {
            // SAFETY: three vectors of a panel's rows.
            *column = unsafe { _mm256_loadu_pd(rows.as_ptr().add(v * LANES)) };
        }
    }
    block
}

/// Columns k.. of a panel.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn load(panel: *const f64, stride: usize, k: usize) -> Block {
    let mut block = nought();
    for (c, column) in block.iter_mut().enumerate() {
        for (v, column) in column.iter_mut().enumerate() {
            *column = unsafe { _mm256_load_pd(panel.add(v * stride + (k + c) * LANES)) };
        }
    }
    block
}

/// Writes columns k.. of a panel.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn store(panel: *mut f64, stride: usize, k: usize, block: Block) {
    for (c, column) in block.iter().enumerate() {
        for (v, column) in column.iter().enumerate() {
            unsafe { _mm256_store_pd(panel.add(v * stride + (k + c) * LANES), *column) };
        }
    }
}

/// X ← X T⁻ᵀ for the lower triangular T that is the first four columns of a sliver, with the reciprocals of its diagonal.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn substitute(mut x: Block, t: *const f64, reciprocals: *const f64) -> Block {
    unsafe {
        for c in 0..STEP {
            for b in 0..c {
                let l = _mm256_broadcast_sd(&*t.add(b * LANES + c));
                for v in 0..3 {
                    x[c][v] = _mm256_fnmadd_pd(x[b][v], l, x[c][v]);
                }
            }
            let r = _mm256_broadcast_sd(&*reciprocals.add(c));
            for v in 0..3 {
                x[c][v] = _mm256_mul_pd(x[c][v], r);
            }
        }
    }
    x
}

/// Overwrites the lower triangle of four columns of a sliver with its Cholesky factor, or tells the failing pivot.
pub(super) unsafe fn factor_four(t: *mut f64, reciprocals: &mut [f64]) -> Result<(), usize> {
    let at = |i: usize, j: usize| t.wrapping_add(j * LANES + i);
    unsafe {
        for q in 0..STEP {
            let pivot = (0..q).fold(*at(q, q), |d, b| d - *at(q, b) * *at(q, b));
            // Not `pivot <= 0.0`: what is not a number fails too.
            if !matches!(pivot.partial_cmp(&0.0), Some(std::cmp::Ordering::Greater)) {
                return Err(q);
            }
            *at(q, q) = pivot.sqrt();
            reciprocals[q] = 1.0 / *at(q, q);
            for i in q + 1..STEP {
                *at(i, q) = (0..q).fold(*at(i, q), |v, b| v - *at(i, b) * *at(q, b)) * reciprocals[q];
            }
        }
    }
    Ok(())
}

/// total[k] += Σ of a panel's column k times y, for `len` columns.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn rows_times(panel: *const f64, stride: usize, y: &[f64; PANEL], total: &mut [f64]) {
    unsafe {
        let y: [__m256d; 3] = [0, 1, 2].map(|v| _mm256_loadu_pd(y.as_ptr().add(v * LANES)));
        for (k, total) in total.iter_mut().enumerate() {
            let x = [0, 1, 2].map(|v| _mm256_load_pd(panel.add(v * stride + k * LANES)));
            let sum = _mm256_fmadd_pd(x[2], y[2], _mm256_fmadd_pd(x[1], y[1], _mm256_mul_pd(x[0], y[0])));
            let half = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd::<1>(sum));
            *total += _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
        }
    }
}

/// total += Σₖ of a panel's column k times z[k].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn columns_times(panel: *const f64, stride: usize, z: &[f64], total: &mut [f64; PANEL]) {
    unsafe {
        // Two sums a row: one alone would wait for itself.
        let mut sum = [[_mm256_setzero_pd(); 3]; 2];
        for (k, z) in z.iter().enumerate() {
            for v in 0..3 {
                let x = _mm256_load_pd(panel.add(v * stride + k * LANES));
                sum[k % 2][v] = _mm256_fmadd_pd(x, _mm256_set1_pd(*z), sum[k % 2][v]);
            }
        }
        for v in 0..3 {
            let to = total.as_mut_ptr().add(v * LANES);
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), _mm256_add_pd(sum[0][v], sum[1][v])));
        }
    }
}

/// Four columns as a sliver of their rows: entry (r, c) of the sliver is entry r of column c.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn interleave(columns: [*const f64; LANES], len: usize, to: *mut f64) {
    unsafe {
        let mut r = 0;
        while r + LANES <= len {
            let [a, b, c, d] = columns.map(|p| _mm256_loadu_pd(p.add(r)));
            let (ab, cd) = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
            let (odd_ab, odd_cd) = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
            let to = to.add(r * LANES);
            _mm256_store_pd(to, _mm256_permute2f128_pd::<0x20>(ab, cd));
            _mm256_store_pd(to.add(LANES), _mm256_permute2f128_pd::<0x20>(odd_ab, odd_cd));
            _mm256_store_pd(to.add(2 * LANES), _mm256_permute2f128_pd::<0x31>(ab, cd));
            _mm256_store_pd(to.add(3 * LANES), _mm256_permute2f128_pd::<0x31>(odd_ab, odd_cd));
            r += LANES;
        }
        for r in r..len {
            for (c, column) in columns.iter().enumerate() {
                *to.add(r * LANES + c) = *column.add(r);
            }
        }
    }
}
