//! Products of dense matrices, triangles where the result is symmetric, and solves with many right-hand sides. Sums run
//! in the same order whatever the number of threads. Symmetric results are cut into panels, of which the part above the
//! diagonal is not computed: the library's own triangular product runs at half the speed.

use super::times::{matmul, solve_lower};
use super::{Cholesky, Matrix, dot, par};
use crate::threads::Threads;
use faer::{Accum, Par};
use rayon::prelude::*;

/// Columns of a panel (64 to 256 run alike).
const PANEL: usize = 96;
/// Below this size a second thread costs more than it brings.
const LEAST: usize = 128;

/// The panels of n columns: first, number.
fn panels(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).step_by(PANEL).map(move |j| (j, PANEL.min(n - j)))
}

fn threads_for(threads: Threads, a: &Matrix) -> Par {
    par(threads, a.rows().min(a.columns()), LEAST)
}

/// C ← A B
pub fn multiply(c: &mut Matrix, a: &Matrix, b: &Matrix, threads: Threads) {
    assert!(a.columns() == b.rows(), "{} columns by {} rows", a.columns(), b.rows());
    c.reshape(a.rows(), b.columns());
    matmul(c.view_mut(), Accum::Replace, a.view(), b.view(), 1.0, threads_for(threads, a));
}

/// Columns of C from `to` on ← themselves + (columns of B from `from` on) A
pub fn add_times(c: &mut Matrix, to: usize, b: &Matrix, from: usize, a: &Matrix, threads: Threads) {
    let (into, b) = (c.view_mut().subcols_mut(to, a.columns()), b.view().subcols(from, a.rows()));
    matmul(into, Accum::Add, b, a.view(), 1.0, threads_for(threads, a));
}

/// Columns of C from `to` on ← themselves + (columns of B from `from` on) Aᵀ
pub fn add_times_transposed(c: &mut Matrix, to: usize, b: &Matrix, from: usize, a: &Matrix, threads: Threads) {
    let (into, b) = (c.view_mut().subcols_mut(to, a.rows()), b.view().subcols(from, a.columns()));
    matmul(into, Accum::Add, b, a.view().transpose(), 1.0, threads_for(threads, a));
}

/// C ← AᵀB for some columns of each: first and number.
pub fn columns_times(
    c: &mut Matrix,
    (a, of_a): (&Matrix, (usize, usize)),
    (b, of_b): (&Matrix, (usize, usize)),
    threads: Threads,
) {
    c.reshape(of_a.1, of_b.1);
    let (left, right) = (a.view().subcols(of_a.0, of_a.1).transpose(), b.view().subcols(of_b.0, of_b.1));
    matmul(c.view_mut(), Accum::Replace, left, right, 1.0, par(threads, of_a.1.min(of_b.1), LEAST));
}

/// C ← C + AᵀA, its lower triangle.
pub fn add_gram(c: &mut Matrix, a: &Matrix, threads: Threads) {
    to_gram(c, Accum::Add, a, threads);
}

/// C ← AᵀA, its lower triangle.
pub fn gram(c: &mut Matrix, a: &Matrix, threads: Threads) {
    to_gram(c, Accum::Replace, a, threads);
}

fn to_gram(c: &mut Matrix, accum: Accum, a: &Matrix, threads: Threads) {
    let n = a.columns();
    assert!(c.rows() == n && c.columns() == n, "{} rows for {n} columns", c.rows());
    // Few rows of many columns are work enough for two.
    let (par, a) = (par(threads, (a.rows() * n).isqrt(), LEAST), a.view());
    for (j, width) in panels(n) {
        let to = c.view_mut().submatrix_mut(j, j, n - j, width);
        matmul(to, accum, a.subcols(j, n - j).transpose(), a.subcols(j, width), 1.0, par);
    }
}

/// Does something with every column from the diagonal down, and with that of another matrix of the same size.
pub fn each_column(
    a: &mut Matrix,
    b: &mut Matrix,
    threads: Threads,
    f: impl Fn(usize, &mut [f64], &mut [f64]) + Sync + Send,
) {
    let (n, stride) = (a.rows(), a.stride());
    assert!(a.columns() == n && b.rows() == n && b.columns() == n, "{n} rows by {}", b.rows());
    let below = |(j, (a, b)): (usize, (&mut [f64], &mut [f64]))| f(j, &mut a[j..n], &mut b[j..n]);
    if n == 0 {
        return;
    }
    let (a, b) = (a.values_mut(), b.values_mut());
    match threads {
        Threads::All if n >= LEAST => {
            let both = a.par_chunks_mut(stride).zip(b.par_chunks_mut(stride));
            both.enumerate().with_min_len(32).for_each(below);
        }
        _ => a.chunks_mut(stride).zip(b.chunks_mut(stride)).enumerate().for_each(below),
    }
}

/// Aᵀ y
pub fn transposed_times(a: &Matrix, y: &[f64], threads: Threads) -> Vec<f64> {
    by_column(a.columns(), threads, |j| dot(a.column(j), y))
}

/// B ← B L⁻ᵀ: every row of B is solved by L.
pub fn solve_rows(l: &Cholesky, b: &mut Matrix, threads: Threads) {
    assert!(b.columns() == l.n(), "{} columns for a factor of {} rows", b.columns(), l.n());
    // Few rows of many columns are work enough for two.
    let par = par(threads, (b.rows() * b.columns()).isqrt(), LEAST);
    solve_lower(l.l().view(), b.view_mut().transpose_mut(), par);
}

/// A ← W A Wᵀ, for a lower triangular W and a symmetric A, of which the lower triangle is read and written; the upper one
/// may be written. `room` is room to work in.
pub fn whiten(w: &Matrix, a: &mut Matrix, room: &mut Matrix, threads: Threads) {
    let n = w.rows();
    #[cfg(target_arch = "x86_64")]
    if let Some(level) = super::level::Level::of(n) {
        return super::sandwich::whiten(level, w, a, room, threads_for(threads, w) != Par::Seq);
    }
    a.mirror();
    let (w, t, par) = (w.view(), room, threads_for(threads, w));
    // T = W A, of which W A Wᵀ needs the lower triangle only.
    t.reshape(n, n);
    for (i, height) in panels(n) {
        let end = i + height;
        let to = t.view_mut().submatrix_mut(i, 0, height, end);
        let a = a.view().submatrix(0, 0, end, end);
        matmul(to, Accum::Replace, w.submatrix(i, 0, height, end), a, 1.0, par);
    }
    for (j, width) in panels(n) {
        let end = j + width;
        let to = a.view_mut().submatrix_mut(j, j, n - j, width);
        let rows = t.view().submatrix(j, 0, n - j, end);
        matmul(to, Accum::Replace, rows, w.submatrix(j, 0, width, end).transpose(), 1.0, par);
    }
}

/// S ← Wᵀ S W, with a lower triangular W; S is symmetric, and of it the lower triangle is read and written; the upper one may
/// be written. And V ← Wᵀ (I − VᵀV) W for a lower triangular V, where there is one. `room` is room to work in.
pub fn unwhiten(w: &Matrix, s: &mut Matrix, v: Option<&mut Matrix>, room: &mut Matrix, threads: Threads) {
    #[cfg(target_arch = "x86_64")]
    if let Some(level) = super::level::Level::of(w.rows()) {
        return super::sandwich::unwhiten(level, w, s, v, room, threads_for(threads, w) != Par::Seq);
    }
    unwhiten_by_library(w, s, v, room, threads);
}

fn unwhiten_by_library(w: &Matrix, s: &mut Matrix, v: Option<&mut Matrix>, room: &mut Matrix, threads: Threads) {
    unwhiten_one(w, s, room, threads);
    if let Some(v) = v {
        let mut between = Matrix::zeros(w.rows(), w.rows());
        gram(&mut between, v, threads);
        for j in 0..w.rows() {
            between.column_mut(j).iter_mut().for_each(|e| *e = -*e);
            between[(j, j)] += 1.0;
        }
        unwhiten_one(w, &mut between, room, threads);
        *v = between;
    }
}

fn unwhiten_one(w: &Matrix, s: &mut Matrix, t: &mut Matrix, threads: Threads) {
    let (n, par) = (w.rows(), threads_for(threads, w));
    let w = w.view();
    t.reshape(n, n);
    s.mirror();
    // T = S W, of which Wᵀ S W needs the lower triangle only.
    for (j, width) in panels(n) {
        let to = t.view_mut().submatrix_mut(j, j, n - j, width);
        let s = s.view().submatrix(j, j, n - j, n - j);
        matmul(to, Accum::Replace, s, w.submatrix(j, j, n - j, width), 1.0, par);
    }
    for (i, height) in panels(n) {
        let to = s.view_mut().submatrix_mut(i, 0, height, i + height);
        let below = t.view().submatrix(i, 0, n - i, i + height);
        matmul(to, Accum::Replace, w.submatrix(i, i, n - i, height).transpose(), below, 1.0, par);
    }
}

/// Wᵀ v for each v, for a lower triangular W.
pub fn lower_transposed_times(w: &Matrix, list: &[Vec<f64>], threads: Threads) -> Vec<Vec<f64>> {
    let column = |j: usize| list.iter().map(|v| dot(&w.column(j)[j..], &v[j..])).collect::<Vec<f64>>();
    let columns = by_column(w.columns(), threads, column);
    (0..list.len()).map(|k| columns.iter().map(|c| c[k]).collect()).collect()
}

/// vᵀ A v for each v, from the lower triangle of a symmetric A.
pub fn quadratic_forms(a: &Matrix, list: &[Vec<f64>], threads: Threads) -> Vec<f64> {
    let column = |j: usize| {
        let below = |v: &Vec<f64>| v[j] * (2.0 * dot(&a.column(j)[j + 1..], &v[j + 1..]) + a[(j, j)] * v[j]);
        list.iter().map(below).collect::<Vec<f64>>()
    };
    let columns = by_column(a.columns(), threads, column);
    (0..list.len()).map(|k| columns.iter().map(|c| c[k]).sum()).collect()
}

fn by_column<T: Send>(n: usize, threads: Threads, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    match threads {
        Threads::All if n >= LEAST => (0..n).into_par_iter().with_min_len(64).map(f).collect(),
        _ => (0..n).map(f).collect(),
    }
}

/// The lower triangle of Q S Qᵀ, for a symmetric S (all of it); T is room to work in.
pub fn congruence(q: &Matrix, s: &Matrix, t: &mut Matrix, threads: Threads) -> Matrix {
    let n = q.rows();
    multiply(t, q, s, threads);
    let (q, par) = (q.view(), threads_for(threads, q));
    let mut out = Matrix::zeros(n, n);
    for (j, width) in panels(n) {
        let to = out.view_mut().submatrix_mut(j, j, n - j, width);
        matmul(to, Accum::Replace, t.view().subrows(j, n - j), q.subrows(j, width).transpose(), 1.0, par);
    }
    out
}

/// S W, for a lower triangular W.
pub fn times_lower(s: &Matrix, w: &Matrix, threads: Threads) -> Matrix {
    let n = w.rows();
    let par = threads_for(threads, w);
    let mut out = Matrix::zeros(n, n);
    for (j, width) in panels(n) {
        let to = out.view_mut().submatrix_mut(0, j, n, width);
        let (s, w) = (s.view().subcols(j, n - j), w.view().submatrix(j, j, n - j, width));
        matmul(to, Accum::Replace, s, w, 1.0, par);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(rows: usize, columns: usize, seed: u64) -> Matrix {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<f64> = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect();
        Matrix::from_fn(rows, columns, |i, j| values[i * columns + j])
    }

    fn product(a: &Matrix, b: &Matrix) -> Matrix {
        Matrix::from_fn(a.rows(), b.columns(), |i, j| (0..a.columns()).map(|k| a[(i, k)] * b[(k, j)]).sum())
    }

    fn transpose(a: &Matrix) -> Matrix {
        Matrix::from_fn(a.columns(), a.rows(), |i, j| a[(j, i)])
    }

    fn lower_agree(a: &Matrix, b: &Matrix, what: &str) {
        for j in 0..a.columns() {
            for i in j..a.rows() {
                let (a, b) = (a[(i, j)], b[(i, j)]);
                assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{what} ({i},{j}): {a} {b}");
            }
        }
    }

    #[test]
    fn products_are_what_their_formulas_say_and_the_same_bits_on_any_threads() {
        for n in [1, 2, 7, 12, 13, 49, 96, 97, 192, 193, 250] {
            let (x, a) = (random(310, n, 1), random(n, n, 2));
            let symmetric = Matrix::from_fn(n, n, |i, j| a[(i, j)] + a[(j, i)]);
            // Whoever says that the lower triangle is read must not look above it.
            let half = Matrix::from_fn(n, n, |i, j| if i < j { f64::NAN } else { symmetric[(i, j)] });
            let w = Matrix::from_fn(n, n, |i, j| {
                if i == j {
                    1.0
                } else if i > j {
                    a[(i, j)] / n as f64
                } else {
                    0.0
                }
            });
            let spd = {
                let mut c = product(&w, &transpose(&w));
                c.mirror();
                c
            };
            let factor =
                Cholesky::factor(Matrix::zeros(n, n), |m| m.clone_from(&spd), Threads::One).expect("positive");
            let both = |f: &dyn Fn(Threads) -> Matrix| {
                let (one, all) = (f(Threads::One), f(Threads::All));
                let same = (0..n).all(|j| (j..n).all(|i| one[(i, j)].to_bits() == all[(i, j)].to_bits()));
                assert!(same, "bits depend on threads at {n}");
                one
            };
            let gram = both(&|t| {
                let mut c = Matrix::zeros(n, n);
                add_gram(&mut c, &x, t);
                c
            });
            lower_agree(&gram, &product(&transpose(&x), &x), "add_gram");
            let gram = both(&|t| {
                let mut c = half.clone();
                super::gram(&mut c, &x, t);
                c
            });
            lower_agree(&gram, &product(&transpose(&x), &x), "gram");
            let twice = both(&|t| {
                let (mut a, mut b) = (half.clone(), symmetric.clone());
                each_column(&mut a, &mut b, t, |j, a, b| {
                    b.iter_mut().zip(a).for_each(|(b, a)| *b += *a + j as f64);
                });
                b
            });
            let expected = Matrix::from_fn(n, n, |i, j| 2.0 * symmetric[(i, j)] + j as f64);
            lower_agree(&twice, &expected, "each_column");
            // Blocks of vectors: rows 3.. of x by a, and back.
            let rows = Matrix::from_fn(4, n + 3, |i, j| x[(i, j % n)]);
            let cut = Matrix::from_fn(4, n, |i, j| rows[(i, j + 3)]);
            let mut c = Matrix::zeros(4, n + 1);
            add_times(&mut c, 1, &rows, 3, &a, Threads::All);
            add_times_transposed(&mut c, 1, &rows, 3, &a, Threads::All);
            let expected = product(&cut, &symmetric);
            (0..n).for_each(|j| assert!((0..4).all(|i| (c[(i, j + 1)] - expected[(i, j)]).abs() < 1e-9)));
            columns_times(&mut c, (&rows, (3, n)), (&rows, (0, 2)), Threads::All);
            let expected = product(&transpose(&cut), &Matrix::from_fn(4, 2, |i, j| rows[(i, j)]));
            (0..n).for_each(|i| assert!((0..2).all(|j| (c[(i, j)] - expected[(i, j)]).abs() < 1e-9)));
            let times = both(&|t| {
                let mut c = Matrix::zeros(0, 0);
                multiply(&mut c, &x, &symmetric, t);
                c
            });
            lower_agree(&times, &product(&x, &symmetric), "multiply");
            let solved = both(&|t| {
                let mut b = x.clone();
                solve_rows(&factor, &mut b, t);
                b
            });
            lower_agree(&product(&solved, &transpose(&w)), &x, "solve_rows");
            let inverse = both(&|t| factor.clone().inverse_factor(random(n, n + 1, 4), t));
            lower_agree(&product(&inverse, &w), &Matrix::from_fn(n, n, |i, j| f64::from(i == j)), "inverse_factor");
            let white = product(&product(&w, &symmetric), &transpose(&w));
            let whitened = both(&|t| {
                let mut a = half.clone();
                whiten(&w, &mut a, &mut Matrix::zeros(2, 2), t);
                a
            });
            lower_agree(&whitened, &white, "whiten");
            let back = product(&product(&transpose(&w), &symmetric), &w);
            let two = |t| {
                let mut list = [half.clone(), inverse.clone()];
                let [s, v] = &mut list;
                unwhiten(&w, s, Some(v), &mut Matrix::zeros(2, 2), t);
                list
            };
            let [first, second] = [0, 1].map(|k| both(&|t| two(t)[k].clone()));
            lower_agree(&first, &back, "unwhiten");
            let square = product(&transpose(&inverse), &inverse);
            let between = Matrix::from_fn(n, n, |i, j| f64::from(i == j) - square[(i, j)]);
            let back = product(&product(&transpose(&w), &between), &w);
            lower_agree(&second, &back, "unwhiten by a triangle");
            let (mut alone, mut triangle) = (half.clone(), inverse.clone());
            unwhiten_by_library(&w, &mut alone, Some(&mut triangle), &mut Matrix::zeros(2, 2), Threads::All);
            lower_agree(&alone, &first, "unwhiten by the library");
            lower_agree(&triangle, &second, "unwhiten a triangle by the library");
            let vectors: Vec<Vec<f64>> = (0..3).map(|k| (0..n).map(|i| a[(i, k % n)]).collect()).collect();
            let turned = lower_transposed_times(&w, &vectors, Threads::All);
            let forms = quadratic_forms(&half, &vectors, Threads::All);
            for (k, v) in vectors.iter().enumerate() {
                let column = Matrix::from_fn(n, 1, |i, _| v[i]);
                let expected = product(&transpose(&w), &column);
                assert!((0..n).all(|i| (turned[k][i] - expected[(i, 0)]).abs() < 1e-9), "Wᵀv at {n}");
                let expected = product(&transpose(&column), &product(&symmetric, &column))[(0, 0)];
                assert!((forms[k] - expected).abs() < 1e-9 * (1.0 + expected.abs()), "vᵀAv at {n}");
            }
            let turned = product(&product(&a, &symmetric), &transpose(&a));
            lower_agree(&both(&|t| congruence(&a, &symmetric, &mut Matrix::zeros(0, 0), t)), &turned, "congruence");
            lower_agree(&both(&|t| times_lower(&symmetric, &w, t)), &product(&symmetric, &w), "times_lower");
        }
    }
}
