//! What the steps of `steps.rs` do, over the vectors of any instruction set. Everything is `inline(always)`, to be compiled
//! within a function that enables the instructions; SAFETY as there.

// Indices, not iterators or closures: several arrays go along together, and closures are not compiled for the instructions.
#![allow(clippy::needless_range_loop)]
// Loops up to a column or a sliver that is written out: those before the first are none.
#![allow(clippy::reversed_empty_ranges)]

use super::steps::{LARGEST_PANEL, LARGEST_SLIVER, Panel, Start, Vectors};

/// Every column of the identity, from some entry on; and from the first on, a column of noughts.
static ONE: [f64; 2 * LARGEST_PANEL] = {
    let mut one = [0.0; 2 * LARGEST_PANEL];
    one[LARGEST_PANEL] = 1.0;
    one
};

/// Does something for every column of a block, known to the compiler, which would otherwise keep the block in memory.
macro_rules! unrolled {
    ($set:ident, $c:ident => $body:block) => {
        unrolled!($set, $c => $body; 0 1 2 3 4 5 6 7)
    };
    ($set:ident, $c:ident => $body:block; $($number:literal)*) => {{
        $(if $number < $set::LANES {
            const $c: usize = $number;
            $body
        })*
    }};
}

/// Does something for a number of slivers that is known to the compiler.
macro_rules! by_slivers {
    ($panel:expr, $n:ident => $body:expr) => {
        match $panel.slivers {
            3 => {
                const $n: usize = 3;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            _ => {
                const $n: usize = 1;
                $body
            }
        }
    };
}

#[inline(always)]
unsafe fn begin<S: Vectors, const N: usize>(panel: Panel, start: Start) -> S::Block {
    unsafe {
        let mut block = S::nought();
        match start {
            Start::Nought => {}
            Start::There => unrolled!(S, C => {
                for v in 0..N {
                    block.as_mut()[C][v] = S::load(panel.at.add(v * panel.stride + C * S::LANES));
                }
            }),
            Start::Unit(shift) => unrolled!(S, C => {
                let column = ONE.as_ptr().add(LARGEST_PANEL.saturating_sub(shift + C));
                for v in 0..N {
                    block.as_mut()[C][v] = S::load(column.add(v * S::LANES));
                }
            }),
        }
        block
    }
}

/// Writes slivers of a block, from the first to the last.
#[inline(always)]
unsafe fn end<S: Vectors, const FIRST: usize, const N: usize>(panel: Panel, block: S::Block) {
    unsafe {
        unrolled!(S, C => {
            for v in FIRST..N {
                S::store(panel.at.add(v * panel.stride + C * S::LANES), block.as_ref()[C][v]);
            }
        });
    }
}

/// X ± A Bᵀ
#[inline(always)]
unsafe fn products<S: Vectors, const N: usize, const PLUS: bool>(
    mut x: S::Block,
    mut a: Panel,
    mut b: *const f64,
    mut len: usize,
) -> S::Block {
    unsafe {
        if a.stairs {
            let step = len.min(S::LANES);
            if N > 1 {
                x = few::<S, 1, PLUS>(x, a, b, step);
                (a, b, len) = (a.from::<S>(step), b.add(step * S::LANES), len - step);
            }
            let step = len.min(S::LANES);
            if N > 2 {
                x = few::<S, 2, PLUS>(x, a, b, step);
                (a, b, len) = (a.from::<S>(step), b.add(step * S::LANES), len - step);
            }
        }
        match (N, PLUS) {
            (3, true) => S::plus(x, a, b, len),
            (3, false) => S::minus(x, a, b, len),
            _ => few::<S, N, PLUS>(x, a, b, len),
        }
    }
}

/// The same for the first slivers: few enough for the compiler to keep in registers.
#[inline(always)]
unsafe fn few<S: Vectors, const N: usize, const PLUS: bool>(
    mut x: S::Block,
    a: Panel,
    b: *const f64,
    len: usize,
) -> S::Block {
    unsafe {
        for p in 0..len {
            let (at, b) = (a.at.add(p * S::LANES), b.add(p * S::LANES));
            let mut column = [S::splat(0.0); N];
            for v in 0..N {
                column[v] = S::load(at.add(v * a.stride));
            }
            unrolled!(S, C => {
                let y = S::splat(*b.add(C));
                for v in 0..N {
                    let sum = x.as_ref()[C][v];
                    x.as_mut()[C][v] = if PLUS { S::fma(column[v], y, sum) } else { S::fnma(column[v], y, sum) };
                }
            });
        }
        x
    }
}

#[inline(always)]
pub(super) unsafe fn add_product<S: Vectors>(to: Panel, start: Start, a: Panel, b: *const f64, len: usize) {
    unsafe {
        by_slivers!(to, N => end::<S, 0, N>(to, products::<S, N, true>(begin::<S, N>(to, start), a, b, len)));
    }
}

#[inline(always)]
pub(super) unsafe fn take_product<S: Vectors>(to: Panel, start: Start, a: Panel, b: *const f64, len: usize) {
    unsafe {
        by_slivers!(to, N => end::<S, 0, N>(to, products::<S, N, false>(begin::<S, N>(to, start), a, b, len)));
    }
}

#[inline(always)]
pub(super) unsafe fn solve<S: Vectors>(
    to: Panel,
    start: Start,
    a: Panel,
    b: *const f64,
    len: usize,
    reciprocals: *const f64,
) {
    unsafe {
        by_slivers!(to, N => {
            let x = products::<S, N, false>(begin::<S, N>(to, start), a, b, len);
            end::<S, 0, N>(to, substitute::<S, N>(x, b.add(len * S::LANES), reciprocals));
        });
    }
}

/// X ← X T⁻ᵀ
#[inline(always)]
unsafe fn substitute<S: Vectors, const N: usize>(
    mut x: S::Block,
    t: *const f64,
    reciprocals: *const f64,
) -> S::Block {
    unsafe {
        unrolled!(S, C => {
            for b in 0..C {
                let l = S::splat(*t.add(b * S::LANES + C));
                for v in 0..N {
                    x.as_mut()[C][v] = S::fnma(x.as_ref()[b][v], l, x.as_ref()[C][v]);
                }
            }
            let r = S::splat(*reciprocals.add(C));
            for v in 0..N {
                x.as_mut()[C][v] = S::mul(x.as_ref()[C][v], r);
            }
        });
        x
    }
}

#[inline(always)]
pub(super) unsafe fn factor<S: Vectors>(panel: Panel, c: usize, reciprocals: &mut [f64]) -> Result<(), usize> {
    unsafe { by_slivers!(panel, N => factor_slivers::<S, N>(panel, c, reciprocals)) }
}

#[inline(always)]
unsafe fn factor_slivers<S: Vectors, const N: usize>(
    panel: Panel,
    c: usize,
    reciprocals: &mut [f64],
) -> Result<(), usize> {
    unsafe {
        let to = panel.from::<S>(c);
        let x = products::<S, N, false>(begin::<S, N>(to, Start::There), panel, panel.at, c);
        end::<S, 0, N>(to, x);
        triangle::<S>(to.at, reciprocals)?;
        // T itself stays as it is. Solved along with the rows below, its entries would be rounded in another way than those
        // which its pivots were computed from, and where pivots are small that is far more than rounding.
        end::<S, 1, N>(to, substitute::<S, N>(x, to.at, reciprocals.as_ptr()));
        Ok(())
    }
}

/// Overwrites the lower triangle of a block of a sliver with its Cholesky factor, or tells the failing pivot.
#[inline(always)]
unsafe fn triangle<S: Vectors>(t: *mut f64, reciprocals: &mut [f64]) -> Result<(), usize> {
    unsafe {
        unrolled!(S, Q => {
            let mut pivot = *t.add(Q * S::LANES + Q);
            for b in 0..Q {
                let l = *t.add(b * S::LANES + Q);
                pivot -= l * l;
            }
            // Not `pivot <= 0.0`: what is not a number fails too.
            if !matches!(pivot.partial_cmp(&0.0), Some(std::cmp::Ordering::Greater)) {
                return Err(Q);
            }
            let root = pivot.sqrt();
            let reciprocal = 1.0 / root;
            *t.add(Q * S::LANES + Q) = root;
            reciprocals[Q] = reciprocal;
            for i in Q + 1..S::LANES {
                let mut value = *t.add(Q * S::LANES + i);
                for b in 0..Q {
                    value -= *t.add(b * S::LANES + i) * *t.add(b * S::LANES + Q);
                }
                *t.add(Q * S::LANES + i) = value * reciprocal;
            }
        });
    }
    Ok(())
}

#[inline(always)]
pub(super) unsafe fn rows_times<S: Vectors>(panel: Panel, y: &[f64; LARGEST_PANEL], total: &mut [f64]) {
    unsafe {
        by_slivers!(panel, N => {
            for (k, total) in total.iter_mut().enumerate() {
                let at = panel.at.add(k * S::LANES);
                let mut sum = S::mul(S::load(at), S::load(y.as_ptr()));
                for v in 1..N {
                    sum = S::fma(S::load(at.add(v * panel.stride)), S::load(y.as_ptr().add(v * S::LANES)), sum);
                }
                *total += S::sum(sum);
            }
        });
    }
}

#[inline(always)]
pub(super) unsafe fn columns_times<S: Vectors>(panel: Panel, z: &[f64], total: &mut [f64; LARGEST_PANEL]) {
    unsafe {
        by_slivers!(panel, N => {
            // Two sums a row: one alone would wait for itself.
            let mut sum = [[S::splat(0.0); N]; 2];
            for (k, z) in z.iter().enumerate() {
                for v in 0..N {
                    let x = S::load(panel.at.add(v * panel.stride + k * S::LANES));
                    sum[k % 2][v] = S::fma(x, S::splat(*z), sum[k % 2][v]);
                }
            }
            for v in 0..N {
                let to = total.as_mut_ptr().add(v * S::LANES);
                S::store(to, S::add(S::load(to), S::add(sum[0][v], sum[1][v])));
            }
        });
    }
}

#[inline(always)]
pub(super) unsafe fn pack<S: Vectors>(from: *const f64, stride: usize, to: Panel, columns: usize) {
    unsafe {
        if to.slivers == 0 {
            return;
        }
        by_slivers!(to, N => {
            for c in 0..columns {
                for v in 0..N {
                    let x = S::load(from.add(c * stride + v * S::LANES));
                    S::store(to.at.add(v * to.stride + c * S::LANES), x);
                }
            }
        });
    }
}

#[inline(always)]
pub(super) unsafe fn unpack<S: Vectors>(from: Panel, to: *mut f64, stride: usize, columns: usize) {
    unsafe {
        if from.slivers == 0 {
            return;
        }
        by_slivers!(from, N => {
            for c in 0..columns {
                for v in 0..N {
                    let x = S::load(from.at.add(v * from.stride + c * S::LANES));
                    S::store(to.add(c * stride + v * S::LANES), x);
                }
            }
        });
    }
}

#[inline(always)]
pub(super) unsafe fn slice<S: Vectors>(columns: &[*const f64; LARGEST_SLIVER], len: usize, to: *mut f64) {
    unsafe {
        for r in S::interleave(columns, len, to)..len {
            for c in 0..S::LANES {
                *to.add(r * S::LANES + c) = *columns[c].add(r);
            }
        }
    }
}

/// Whole vectors.
#[inline(always)]
pub(super) unsafe fn combine<S: Vectors>(to: *mut f64, a: *const f64, factor: f64, b: *const f64, len: usize) {
    unsafe {
        let factor = S::splat(factor);
        for p in (0..len).step_by(S::LANES) {
            S::store(to.add(p), S::fma(S::load(b.add(p)), factor, S::load(a.add(p))));
        }
    }
}

/// Whole vectors.
#[inline(always)]
pub(super) unsafe fn left_sums<S: Vectors>(a: [*const f64; 3], a21: *mut f64, s: [*mut f64; 3], len: usize) {
    unsafe {
        let minus = S::splat(-1.0);
        for p in (0..len).step_by(S::LANES) {
            let [a11, a12, a22] = [S::load(a[0].add(p)), S::load(a[1].add(p)), S::load(a[2].add(p))];
            let below = S::load(a21.add(p));
            let s1 = S::add(below, a22);
            let s2 = S::fma(a11, minus, s1);
            S::store(s[0].add(p), s1);
            S::store(s[1].add(p), s2);
            S::store(s[2].add(p), S::fma(s2, minus, a12));
            S::store(a21.add(p), S::fma(below, minus, a11));
        }
    }
}
