//! Where inducing points start: in the middle of clusters of rows, or where the others leave most variance. The gradient
//! moves them from there.

use super::rows::Rows;
use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::linalg::{Matrix, dot};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::HashSet;

/// Rounds of moving every centre to the mean of its rows: the bound hardly gains from more.
const ROUNDS: usize = 5;
/// Rows that are assigned to centres as one piece of parallel work.
const PIECE: usize = 256;

/// How inducing points are placed to start with. At starting values, greedy variance gives the better bound under networks
/// and k-means mostly under an RBF (`docs/performance.md`).
#[derive(Debug, Clone, Copy)]
pub enum Placing<'a> {
    /// The centres of clusters (k-means++, then a few rounds of Lloyd's).
    KMeans,
    /// One row after another, each the one whose variance given the others is largest under a kernel.
    GreedyVariance(&'a Program, &'a [f64]),
}

/// Says whether these can be the inducing points of a model of n rows.
///
/// # Errors
/// When there are none, more than rows, or the same one twice.
pub fn check_inducing(z: &Points, n: usize) -> Result<()> {
    check_number(z.n(), n)?;
    let mut order: Vec<usize> = (0..z.n()).collect();
    let rows: Vec<Vec<u64>> = order.iter().map(|&i| bits(&z.row(i))).collect();
    order.sort_by(|&a, &b| rows[a].cmp(&rows[b]).then(a.cmp(&b)));
    if let Some(pair) = order.windows(2).find(|w| rows[w[0]] == rows[w[1]]) {
        let message = format!("points {} and {} are the same", pair[0], pair[1]);
        return Err(Error::option("inducing", message).with_hint("leave one of them out"));
    }
    Ok(())
}

/// Are there as many rows as inducing points, and any at all?
pub(crate) fn check_number(m: usize, n: usize) -> Result<()> {
    if n == 0 {
        return Err(ErrorKind::TooFewRows { found: 0, needed: 1 }.into());
    }
    if m == 0 {
        return Err(Error::option("inducing", "at least one inducing point is needed"));
    }
    if m > n {
        let error = Error::option("inducing", format!("more inducing points than rows: {m} points, {n} rows"));
        return Err(error.with_hint(format!("take at most {n}, or the exact method")));
    }
    Ok(())
}

/// Bits of a row, with −0 as 0.
fn bits(row: &[f64]) -> Vec<u64> {
    row.iter().map(|v| (v + 0.0).to_bits()).collect()
}

/// The inputs of a random choice of at most `size` rows; see [`sample`].
///
/// # Errors
/// When the rows cannot be read.
pub fn sample_rows(rows: &dyn Rows, size: usize, seed: u64) -> Result<Points> {
    Ok(sample(rows, size, seed)?.0)
}

/// A random choice of at most `size` rows with their targets in one pass, in the order of the rows; all of them where
/// there are no more.
///
/// # Errors
/// When the rows cannot be read.
pub fn sample(rows: &dyn Rows, size: usize, seed: u64) -> Result<(Points, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kept: Vec<(usize, Vec<f64>, f64)> = Vec::new();
    let mut seen = 0;
    rows.each(&mut |x, y| {
        for (i, &y) in y.iter().enumerate() {
            // Row number s stays with probability size/s.
            if kept.len() < size {
                kept.push((seen, x.row(i), y));
            } else {
                let at = rng.random_range(0..=seen);
                if at < size {
                    kept[at] = (seen, x.row(i), y);
                }
            }
            seen += 1;
        }
        Ok(())
    })?;
    kept.sort_by_key(|(row, ..)| *row);
    let y = kept.iter().map(|(.., y)| *y).collect();
    Ok((Points::from_rows(&kept.into_iter().map(|(_, row, _)| row).collect::<Vec<_>>())?, y))
}

/// How many rows differ.
pub(crate) fn count_distinct(x: &Points) -> usize {
    (0..x.n()).map(|i| bits(&x.row(i))).collect::<HashSet<_>>().len()
}

/// m inducing points for these rows; of more rows than can be handled take a sample first ([`sample_rows`]). The same
/// rows and seed give the same points.
///
/// # Errors
/// When m is 0 or larger than the number of different rows.
pub fn place_inducing(x: &Points, m: usize, placing: Placing, seed: u64) -> Result<Points> {
    check_number(m, x.n())?;
    let mut seen = HashSet::new();
    let distinct: Vec<usize> = (0..x.n()).filter(|&i| seen.insert(bits(&x.row(i)))).collect();
    if distinct.len() < m {
        let message = format!("more inducing points than different rows: {m} points, {} rows", distinct.len());
        return Err(Error::option("inducing", message).with_hint(format!("take at most {}", distinct.len())));
    }
    if distinct.len() == m {
        return Ok(x.select(&distinct));
    }
    match placing {
        Placing::KMeans => k_means(x, &distinct, m, seed),
        Placing::GreedyVariance(program, theta) => greedy_variance(program, theta, &x.select(&distinct), m),
    }
}

/// Rows one after another, as distances read them.
fn by_rows(x: &Points) -> Vec<f64> {
    (0..x.n()).flat_map(|i| x.row(i)).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn k_means(x: &Points, distinct: &[usize], m: usize, seed: u64) -> Result<Points> {
    let (n, d, mut rng) = (x.n(), x.d(), ChaCha8Rng::seed_from_u64(seed));
    let rows = by_rows(x);
    let row = |i: usize| &rows[i * d..(i + 1) * d];
    // k-means++: each next centre is a row, drawn in proportion to its squared distance from the nearest centre.
    let mut centres: Vec<f64> = row(distinct[rng.random_range(0..distinct.len())]).to_vec();
    let mut nearest = vec![f64::INFINITY; n];
    while centres.len() < m * d {
        let last = centres[centres.len() - d..].to_vec();
        nearest.par_iter_mut().with_min_len(4096).enumerate().for_each(|(i, v)| *v = v.min(distance(row(i), &last)));
        let total: f64 = nearest.iter().sum();
        let mut left = rng.random_range(0.0..1.0) * total;
        let drawn = nearest.iter().position(|v| {
            left -= v;
            left < 0.0 && *v > 0.0
        });
        // Rounding may run past the end: the farthest row then.
        let farthest = || (0..n).max_by(|&a, &b| nearest[a].total_cmp(&nearest[b])).unwrap_or(0);
        centres.extend_from_slice(row(drawn.unwrap_or_else(farthest)));
    }
    for _ in 0..ROUNDS {
        let assigned: Vec<usize> = rows
            .par_chunks(PIECE * d)
            .flat_map_iter(|piece| piece.chunks(d).map(|row| closest(row, &centres)).collect::<Vec<_>>())
            .collect();
        let (mut sums, mut counts) = (vec![0.0; m * d], vec![0usize; m]);
        for (row, &c) in rows.chunks(d).zip(&assigned) {
            sums[c * d..(c + 1) * d].iter_mut().zip(row).for_each(|(s, v)| *s += v);
            counts[c] += 1;
        }
        for c in (0..m).filter(|&c| counts[c] > 0) {
            for k in c * d..(c + 1) * d {
                centres[k] = sums[k] / counts[c] as f64;
            }
        }
    }
    Points::from_rows(&centres.chunks(d).collect::<Vec<_>>())
}

fn closest(row: &[f64], centres: &[f64]) -> usize {
    let mut best = (0, f64::INFINITY);
    for (c, centre) in centres.chunks(row.len()).enumerate() {
        let at = distance(row, centre);
        if at < best.1 {
            best = (c, at);
        }
    }
    best.0
}

/// The pivots of the pivoted Cholesky factor of k(x, x).
fn greedy_variance(program: &Program, theta: &[f64], x: &Points, m: usize) -> Result<Points> {
    let mut chosen = pivoted(program, theta, &Inputs::without_lags(x.clone()), m)?.1;
    // Rounding decides among the rest: any rows that are not yet chosen.
    let taken: HashSet<usize> = chosen.iter().copied().collect();
    chosen.extend((0..x.n()).filter(|i| !taken.contains(i)).take(m - chosen.len()));
    Ok(x.select(&chosen))
}

/// Rows one after another, each the one whose variance given the others is largest under a kernel; at most so many, and as many
/// as tell something.
pub(crate) fn landmarks(program: &Program, theta: &[f64], x: &Points, most: usize) -> Result<Points> {
    let chosen = pivoted(program, theta, &Inputs::without_lags(x.clone()), most.min(x.n()))?.1;
    Ok(x.select(&chosen))
}

/// The first rows of the pivoted Cholesky factor of k(x, x) = RᵀR, and their pivots; needs as many of its columns only.
/// Ends early where nothing is left: the other rows of R are nought.
pub(super) fn pivoted(program: &Program, theta: &[f64], x: &Inputs, m: usize) -> Result<(Matrix, Vec<usize>)> {
    let (scratch, n) = (&mut Scratch::default(), x.n());
    let mut left = vec![0.0; n];
    program.diag(theta, x, &mut left, scratch)?;
    let (mut r, mut column, mut chosen) = (Matrix::zeros(m, n), vec![0.0; n], Vec::with_capacity(m));
    for step in 0..m {
        let pivot = (0..n).max_by(|&a, &b| left[a].total_cmp(&left[b]).then(b.cmp(&a))).unwrap_or(0);
        if left[pivot].is_nan() || left[pivot] <= 0.0 {
            break;
        }
        chosen.push(pivot);
        let one = Inputs::without_lags(x.points().select(&[pivot]));
        program.cross(theta, x, &one, &mut column, n, scratch, Threads::All)?;
        let (root, at) = (left[pivot].sqrt(), r.column(pivot)[..step].to_vec());
        let stride = r.stride();
        let update = |((row, left), k): ((&mut [f64], &mut f64), &f64)| {
            let value = (k - dot(&row[..step], &at)) / root;
            row[step] = value;
            *left -= value * value;
        };
        r.values_mut().par_chunks_mut(stride).zip(&mut left).zip(&column).with_min_len(256).for_each(update);
        left[pivot] = f64::NEG_INFINITY;
    }
    Ok((r, chosen))
}
