//! Loops over one or two vectors, compiled for the widest instructions of the machine.

/// From this many entries on, the wider instructions are worth asking for.
const LEAST: usize = 64;

/// A function that is compiled three times, with a body that is inlined, and the best of them called.
macro_rules! wide {
    ($(#[$doc:meta])* $name:ident => $body:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?, $long:expr) => {
        $(#[$doc])*
        pub fn $name($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            if $long {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) $(-> $out)? {
                    $body::<true>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,avx512f")]
                fn avx512($($arg: $type),*) $(-> $out)? {
                    $body::<true>($($arg),*)
                }
                match super::level::Level::supported().last() {
                    // SAFETY: a level is only there where the machine has it.
                    Some(super::level::Level::Avx512) => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Some(super::level::Level::Avx2) => return unsafe { avx2($($arg),*) },
                    None => {}
                }
            }
            $body::<false>($($arg),*)
        }
    };
}

wide!(
    /// Σ aᵢ bᵢ, in an order that depends on their number alone.
    dot => dot_body(a: &[f64], b: &[f64]) -> f64, a.len() >= LEAST
);
wide!(
    /// yᵢ ← yᵢ + a xᵢ
    add_scaled => add_scaled_body(y: &mut [f64], a: f64, x: &[f64]), y.len() >= LEAST
);
wide!(
    /// outᵢ ← xᵢ + a yᵢ
    sum_scaled => sum_scaled_body(out: &mut [f64], x: &[f64], a: f64, y: &[f64]), out.len() >= LEAST
);

/// Asks for what will be read soon and lies in an outer cache.
#[inline]
pub fn prefetch(soon: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    for line in soon.chunks(8) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; the address is that of a number.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = soon;
}

/// a b + c, in one instruction where there is one; without, it would be a call.
#[inline(always)]
fn fused<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Several vectors of sums: one alone would wait for itself.
#[inline(always)]
fn dot_body<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    let mut total = 0.0;
    let (mut a, mut b) = (a, b);
    if FMA {
        total += sums::<32, FMA>(&mut a, &mut b);
    }
    total += sums::<8, FMA>(&mut a, &mut b);
    total + a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>()
}

/// The sum over whole blocks of N, which are taken away.
#[inline(always)]
fn sums<const N: usize, const FMA: bool>(a: &mut &[f64], b: &mut &[f64]) -> f64 {
    let (blocks, rest) = a.as_chunks::<N>();
    let (others, other_rest) = b.as_chunks::<N>();
    let mut sums = [0.0; N];
    for (x, y) in blocks.iter().zip(others) {
        for k in 0..N {
            sums[k] = fused::<FMA>(x[k], y[k], sums[k]);
        }
    }
    (*a, *b) = (rest, other_rest);
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] += sums[k + half];
        }
        half /= 2;
    }
    sums[0]
}

#[inline(always)]
fn add_scaled_body<const FMA: bool>(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = fused::<FMA>(a, *x, *y);
    }
}

#[inline(always)]
fn sum_scaled_body<const FMA: bool>(out: &mut [f64], x: &[f64], a: f64, y: &[f64]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = fused::<FMA>(a, *y, *x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_loops_are_their_formulas_at_every_length() {
        for n in (0..70).chain([127, 128, 129, 1000]) {
            let x: Vec<f64> = (0..n).map(|i| (0.3 * f64::from(i)).sin()).collect();
            let y: Vec<f64> = (0..n).map(|i| (0.7 * f64::from(i)).cos()).collect();
            let close = |a: f64, b: f64| (a - b).abs() < 1e-13;
            assert!(close(dot(&x, &y), x.iter().zip(&y).map(|(x, y)| x * y).sum()), "dot of {n}");
            let (mut added, mut sum) = (y.clone(), vec![f64::NAN; x.len()]);
            add_scaled(&mut added, 0.6, &x);
            sum_scaled(&mut sum, &y, 0.6, &x);
            for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                assert!(close(added[i], y + 0.6 * x) && close(sum[i], y + 0.6 * x), "{i} of {n}");
            }
        }
    }
}
