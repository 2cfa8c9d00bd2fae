//! Factor, inverse and solution against slow versions of their formulas, at sizes on either side of every block.

use covary::Threads;
use covary::linalg::{Cholesky, Matrix, library};
use rand::{RngExt, SeedableRng};

/// Around vectors (4, 8), panels (12, 24), chunks (48) and tiles (192), and sizes at which several of these are not full.
const SIZES: [usize; 26] =
    [0, 1, 2, 3, 4, 5, 8, 11, 12, 13, 23, 24, 25, 47, 48, 49, 95, 100, 144, 191, 192, 193, 250, 384, 385, 401];

/// A random positive definite matrix; with small `share` of the identity it is close to singular.
fn positive(n: usize, share: f64) -> Matrix {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(n as u64);
    let x: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
    Matrix::from_fn(n, n, |i, j| (-0.5 * (x[i] - x[j]).powi(2)).exp() + if i == j { share } else { 0.0 })
}

fn slow_factor(a: &Matrix) -> Result<Matrix, usize> {
    let n = a.rows();
    let mut l = Matrix::zeros(n, n);
    for j in 0..n {
        for i in j..n {
            let sum = a[(i, j)] - (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum::<f64>();
            if i == j && sum.is_nan() | (sum <= 0.0) {
                return Err(j);
            }
            l[(i, j)] = if i == j { sum.sqrt() } else { sum / l[(j, j)] };
        }
    }
    Ok(l)
}

/// The lower triangle alone, so that whoever reads above the diagonal is found out.
fn below(a: &Matrix) -> impl FnMut(&mut Matrix) + '_ {
    move |to| {
        for j in 0..a.columns() {
            to.column_mut(j)[..j].fill(f64::NAN);
            to.column_mut(j)[j..].copy_from_slice(&a.column(j)[j..]);
        }
    }
}

fn factor(a: &Matrix, threads: Threads) -> Cholesky {
    let n = a.rows();
    // Memory with something in it: nobody may count on noughts.
    let spare = Matrix::from_fn(n + 1, n + 3, |_, _| f64::NAN);
    Cholesky::factor_with(Matrix::zeros(n, n), spare, below(a), threads).unwrap()
}

#[test]
fn factor_inverse_and_solution_are_what_their_formulas_say() {
    for n in SIZES {
        let a = positive(n, 0.5);
        let b: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
        let slow = slow_factor(&a).unwrap();
        let fast = factor(&a, Threads::All);
        assert_eq!(fast.jitter(), 0.0);
        // Entries are of the order of one, and so are those of the factor; sums of n terms.
        for j in 0..n {
            for i in j..n {
                let (f, s) = (fast.l()[(i, j)], slow[(i, j)]);
                assert!((f - s).abs() < 1e-12, "factor of {n}, ({i}, {j}): {f} {s}");
            }
        }
        let (mut z, x) = (b.clone(), fast.solve(&b));
        fast.half_solve(&mut z);
        let packed = factor(&a, Threads::All).into_inverse_and_solution(&b, Matrix::default(), Threads::All);
        // A factor whose workspace is gone is packed anew.
        let spare = Matrix::from_fn(2, 2, |_, _| f64::NAN);
        let again =
            Cholesky::from_factor(fast.l().clone()).unwrap().into_inverse_and_solution(&b, spare, Threads::All);
        for (inverse, half, whole) in [packed, again] {
            for (i, (v, w)) in half.iter().zip(&z).chain(whole.iter().zip(&x)).enumerate() {
                assert!((v - w).abs() < 1e-11, "solution of {n}, {i}: {v} {w}");
            }
            assert_eq!((half.len(), whole.len()), (n, n));
            let inverse = Matrix::from_fn(n, n, |i, j| inverse.inverse[(i.max(j), i.min(j))]);
            for j in 0..n {
                for i in 0..n {
                    let entry: f64 = (0..n).map(|k| a[(i, k)] * inverse[(k, j)]).sum();
                    let gap = entry - f64::from(u8::from(i == j));
                    assert!(gap.abs() < 1e-11, "A A⁻¹ of {n}, ({i}, {j}): {entry}");
                }
            }
        }
    }
}

#[test]
fn near_singular_matrices_have_small_residuals_and_fail_at_the_same_pivot() {
    for n in [2, 12, 13, 60, 193, 250] {
        // The condition number is about n/share; what counts is that L Lᵀ is A to rounding.
        let a = positive(n, 1e-13);
        let Ok(l) = Cholesky::factor_once(Matrix::zeros(n, n), below(&a), Threads::All) else {
            panic!("{n} rows with 1e-13 on the diagonal are positive definite")
        };
        for j in 0..n {
            for i in j..n {
                let entry: f64 = (0..=j).map(|k| l.l()[(i, k)] * l.l()[(j, k)]).sum();
                assert!((entry - a[(i, j)]).abs() < 1e-13, "L Lᵀ of {n}, ({i}, {j}): {entry} {}", a[(i, j)]);
            }
        }
        // Negative, and clearly so, at one place: no earlier and no later.
        for pivot in [0, 1, n / 2, n - 1] {
            let mut bad = positive(n, 0.5);
            bad[(pivot, pivot)] = -1.0;
            let failure = Cholesky::factor_once(Matrix::zeros(n, n), below(&bad), Threads::All).unwrap_err();
            assert_eq!((failure.pivot, failure.non_finite), (pivot, false), "{n} rows");
            assert_eq!(slow_factor(&bad).unwrap_err(), pivot);
            bad[(pivot, pivot)] = f64::NAN;
            assert!(Cholesky::factor_once(Matrix::zeros(n, n), below(&bad), Threads::All).unwrap_err().non_finite);
            bad[(pivot, pivot)] = f64::INFINITY;
            assert!(Cholesky::factor_once(Matrix::zeros(n, n), below(&bad), Threads::All).unwrap_err().non_finite);
        }
    }
}

#[test]
fn factor_and_inverse_are_the_same_bits_on_any_number_of_threads() {
    for n in [305, 420, 701] {
        let (a, b) = (positive(n, 0.1), vec![1.0; n]);
        let run = |threads| {
            let l = factor(&a, threads);
            let (inverse, half, whole) = l.clone().into_inverse_and_solution(&b, Matrix::default(), threads);
            let triangle = |m: &Matrix| (0..n).flat_map(|j| m.column(j)[j..].to_vec()).collect::<Vec<_>>();
            let all = [triangle(l.l()), triangle(&inverse.inverse), half, whole].concat();
            all.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let one = run(Threads::One);
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| run(Threads::All)) == one, "{n} rows, {threads} threads");
        }
    }
}

#[test]
fn the_library_agrees() {
    for n in [0, 1, 13, 144, 250] {
        let (a, b) = (positive(n, 0.5), vec![1.0; n]);
        let (ours, half, whole) =
            factor(&a, Threads::All).into_inverse_and_solution(&b, Matrix::default(), Threads::All);
        let (mut theirs, mut room) = (a.clone(), Matrix::default());
        library::factor(&mut theirs, Threads::All).unwrap();
        let (their_half, their_whole) = library::inverse(&mut theirs, &mut room, &b, Threads::All);
        for j in 0..n {
            assert!((half[j] - their_half[j]).abs() + (whole[j] - their_whole[j]).abs() < 1e-11, "{n} rows, {j}");
            for i in j..n {
                assert!((ours.inverse[(i, j)] - theirs[(i, j)]).abs() < 1e-11, "{n} rows, ({i}, {j})");
            }
        }
    }
}
