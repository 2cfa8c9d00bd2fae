//! How much each fit of a grid counts: by how well it fills holes made for the purpose in observed places.

use super::Member;
use crate::linalg::{Cholesky, Matrix, dot};
use crate::threads::Threads;
use std::ops::Range;

/// The preference for small weights, in units of Σ truth².
const RIDGE: f64 = 0.01;
/// How dear it is for weights to leave the shares, in the same units; the first that is best in trials left out is taken.
const STRAYING: [f64; 6] = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003];

/// Mean squared error over mean square about the mean; nothing where there was no trial.
pub(super) fn share_left(truth: &[f64], said: &[f64]) -> Option<f64> {
    let mean = truth.iter().sum::<f64>() / truth.len().max(1) as f64;
    let total: f64 = truth.iter().map(|t| (t - mean).powi(2)).sum();
    let error: f64 = truth.iter().zip(said).map(|(t, s)| (t - s).powi(2)).sum();
    (total > 0.0).then(|| error / total)
}

/// What one trial hole, or several, say about the members: products of their values with each other, with the truth,
/// and of the truth with itself.
#[derive(Clone)]
struct Moments {
    gram: Matrix,
    right: Vec<f64>,
    truth: f64,
}

impl Moments {
    fn of(members: &[Member], truth: &[f64], part: Range<usize>) -> Self {
        let said = |i: usize| &members[i].filled[part.clone()];
        let truth = &truth[part.clone()];
        let n = members.len();
        Self {
            gram: Matrix::from_fn(n, n, |i, j| dot(said(i), said(j))),
            right: (0..n).map(|i| dot(said(i), truth)).collect(),
            truth: dot(truth, truth),
        }
    }

    /// All of these together, in units of Σ truth².
    fn sum<'a>(all: impl Iterator<Item = &'a Moments> + Clone) -> Self {
        let unit = 1.0 / all.clone().map(|m| m.truth).sum::<f64>().max(f64::MIN_POSITIVE);
        let n = all.clone().next().map_or(0, |m| m.right.len());
        let sum = |f: &dyn Fn(&Moments) -> f64| unit * all.clone().map(f).sum::<f64>();
        Self {
            gram: Matrix::from_fn(n, n, |i, j| sum(&|m: &Moments| m.gram[(i, j)])),
            right: (0..n).map(|i| sum(&|m: &Moments| m.right[i])).collect(),
            truth: sum(&|m: &Moments| m.truth),
        }
    }

    /// Σ (truth − Σ wᵢ saidᵢ)²
    fn error(&self, w: &[f64]) -> f64 {
        let curved: f64 = (0..w.len()).map(|i| w[i] * dot(self.gram.column(i), w)).sum();
        self.truth - 2.0 * dot(&self.right, w) + curved
    }

    /// ½ wᵀ(G + rI)w − bᵀw over w ≥ 0, Σw ≤ 1, by projected gradients.
    fn shares(&self) -> Vec<f64> {
        let n = self.right.len();
        let sum = |i: usize| self.gram.column(i).iter().map(|v| v.abs()).sum::<f64>();
        let steepest = (0..n).map(sum).fold(0.0, f64::max) + RIDGE;
        let mut w = vec![0.0; n];
        for _ in 0..5000 {
            let slope = |i: usize| dot(self.gram.column(i), &w) + RIDGE * w[i] - self.right[i];
            let next: Vec<f64> = (0..n).map(|i| w[i] - slope(i) / steepest).collect();
            w = onto_simplex(next);
        }
        w
    }

    /// Least squares with weights of any sign and sum, r·|w − shares|² added.
    fn free(&self, shares: &[f64], r: f64) -> Vec<f64> {
        let n = shares.len();
        let left: Vec<f64> = (0..n).map(|i| self.right[i] - dot(self.gram.column(i), shares)).collect();
        let fill = |a: &mut Matrix| {
            for j in 0..n {
                (j..n).for_each(|i| a[(i, j)] = self.gram[(i, j)] + if i == j { r } else { 0.0 });
            }
        };
        match Cholesky::factor_once(Matrix::zeros(n, n), fill, Threads::One) {
            Ok(factor) => factor.solve(&left).iter().zip(shares).map(|(d, s)| s + d).collect(),
            Err(_) => shares.to_vec(),
        }
    }
}

/// How much members count, by how they fill the trial holes together. *Shares* are not negative and add up to one at most.
/// *Weights* lie around them and may have any sign: several kernels of one product each can together say what none of
/// them can, and each may be too cautious or too bold. How far they may stray is what fills each trial hole best
/// when it is left out; with a single trial, not at all. Without a trial the highest evidence has it all.
pub(super) fn weigh(members: &mut [Member], truth: &[f64], trials: &[usize]) {
    let n = members.len();
    if truth.is_empty() {
        let value = |m: &Member| m.restart.log_marginal_likelihood;
        let best = (0..n).max_by(|&a, &b| value(&members[a]).total_cmp(&value(&members[b])).then(b.cmp(&a)));
        let best = &mut members[best.unwrap_or(0)].restart;
        (best.share, best.weight) = (1.0, 1.0);
        return;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for &length in trials {
        parts.push(Moments::of(members, truth, start..start + length));
        start += length;
    }
    let all = Moments::sum(parts.iter());
    let mut shares = all.shares();
    // What hardly counts is not worth its time.
    shares.iter_mut().filter(|w| **w < 0.02).for_each(|w| *w = 0.0);
    if shares.iter().all(|w| *w == 0.0) {
        let trial = |i: usize| members[i].restart.trial.unwrap_or(f64::INFINITY);
        let best = (0..n).min_by(|&a, &b| trial(a).total_cmp(&trial(b)));
        shares[best.unwrap_or(0)] = 1.0;
    }
    let mut weights = shares.clone();
    if parts.len() > 1 {
        // For each trial left out: what the others say.
        let rest: Vec<(Moments, Vec<f64>)> = (0..parts.len())
            .map(|out| {
                let others = Moments::sum(parts.iter().enumerate().filter(|(k, _)| *k != out).map(|(_, m)| m));
                let shares = others.shares();
                (others, shares)
            })
            .collect();
        let bound: f64 = parts.iter().zip(&rest).map(|(part, (_, shares))| part.error(shares)).sum();
        let error = |r: f64| -> f64 {
            parts.iter().zip(&rest).map(|(part, (others, shares))| part.error(&others.free(shares, r))).sum()
        };
        let tried = STRAYING.iter().map(|&r| (error(r), r)).filter(|t| t.0 < bound);
        if let Some((_, r)) = tried.min_by(|a, b| a.0.total_cmp(&b.0)) {
            weights = all.free(&shares, r);
            weights.iter_mut().filter(|w| w.abs() < 0.01).for_each(|w| *w = 0.0);
        }
    }
    for (m, (share, weight)) in members.iter_mut().zip(shares.into_iter().zip(weights)) {
        (m.restart.share, m.restart.weight) = (share, weight);
    }
}

/// The nearest point with w ≥ 0 and Σw ≤ 1.
fn onto_simplex(w: Vec<f64>) -> Vec<f64> {
    let cut = |by: f64| w.iter().map(|v| (v - by).max(0.0)).collect::<Vec<f64>>();
    let inside = cut(0.0);
    if inside.iter().sum::<f64>() <= 1.0 {
        return inside;
    }
    let mut sorted = w.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut by) = (0.0, 0.0);
    for (i, v) in sorted.iter().enumerate() {
        sum += v;
        let level = (sum - 1.0) / (i + 1) as f64;
        if *v > level {
            by = level;
        }
    }
    cut(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::GridRestart;

    fn member(filled: &[f64]) -> Member {
        let restart = GridRestart {
            start: 0,
            noise: 0.1,
            weight: 0.0,
            share: 0.0,
            log_marginal_likelihood: 0.0,
            trial: None,
            iterations: 1,
            evaluations: 1,
            steps: 0,
        };
        Member { raw: vec![], filled: filled.to_vec(), restart }
    }

    fn weighed(members: &[&[f64]], truth: &[f64], trials: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let mut members: Vec<Member> = members.iter().map(|m| member(m)).collect();
        weigh(&mut members, truth, trials);
        members.iter().map(|m| (m.restart.share, m.restart.weight)).unzip()
    }

    #[test]
    fn shares_go_to_whoever_fills_the_trials() {
        let truth: Vec<f64> = (0..50).map(|i| f64::from(i).sin()).collect();
        let noise: Vec<f64> = (0..50).map(|i| (f64::from(i) * 7.7).cos()).collect();
        let half: Vec<f64> = truth.iter().zip(&noise).map(|(t, n)| t + 0.4 * n).collect();
        let other: Vec<f64> = truth.iter().zip(&noise).map(|(t, n)| t - 0.4 * n).collect();
        let (alone, weights) = weighed(&[&noise, &truth], &truth, &[50]);
        assert!(alone[0] < 0.05 && alone[1] > 0.9, "{alone:?}");
        // One trial cannot tell how far weights may stray.
        assert_eq!(alone, weights);
        // Errors that cancel are worth an average.
        let (both, _) = weighed(&[&half, &other], &truth, &[50]);
        assert!((both[0] - both[1]).abs() < 0.1 && both[0] + both[1] > 0.9, "{both:?}");
        // One that helps nobody counts alone rather than not at all.
        let against: Vec<f64> = truth.iter().map(|t| -t).collect();
        assert_eq!(weighed(&[&against], &truth, &[50]).0, [1.0]);
        assert_eq!(weighed(&[&truth, &truth], &[], &[]).1, [1.0, 0.0]);
    }

    #[test]
    fn weights_stray_where_trials_left_out_say_so() {
        let wave = |f: f64| (0..200).map(|i| (f64::from(i) * f).sin()).collect::<Vec<f64>>();
        let (truth, other) = (wave(0.7), wave(1.9));
        // Both are cautious, and what is wrong with them is the same: one less the other is the truth.
        let first: Vec<f64> = truth.iter().zip(&other).map(|(t, o)| 0.5 * t + 0.5 * o).collect();
        let second: Vec<f64> = truth.iter().zip(&other).map(|(t, o)| 0.1 * t + 0.5 * o).collect();
        let (shares, weights) = weighed(&[&first, &second], &truth, &[50, 50, 50, 50]);
        let left = |w: &[f64]| -> f64 {
            (0..200).map(|i| (truth[i] - w[0] * first[i] - w[1] * second[i]).powi(2)).sum::<f64>() / 100.0
        };
        assert!(shares.iter().all(|s| *s >= 0.0) && left(&shares) > 0.4, "{shares:?}");
        assert!(weights[1] < -1.0 && left(&weights) < 0.05, "{weights:?} {}", left(&weights));
        // Where what helps in one trial harms in the next, they stay.
        let lying: Vec<f64> = (0..200).map(|i| if i % 100 < 50 { truth[i] } else { -truth[i] }).collect();
        let (shares, weights) = weighed(&[&lying], &truth, &[50, 50, 50, 50]);
        assert!(weights[0].abs() <= shares[0] && shares[0] == 1.0, "{shares:?} {weights:?}");
    }

    #[test]
    fn the_nearest_point_of_the_simplex() {
        assert_eq!(onto_simplex(vec![0.2, -1.0, 0.3]), [0.2, 0.0, 0.3]);
        let w = onto_simplex(vec![2.0, 1.5, -1.0]);
        assert!((w[0] - 0.75).abs() < 1e-12 && (w[1] - 0.25).abs() < 1e-12 && w[2] == 0.0, "{w:?}");
    }
}
