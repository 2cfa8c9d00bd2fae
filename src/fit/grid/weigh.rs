//! How much each fit of a grid counts: by how well it fills holes made for the purpose in observed places.

use super::Member;
use crate::linalg::dot;

/// The preference for small weights, in units of Σ truth².
const RIDGE: f64 = 0.01;

/// Mean squared error over mean square about the mean; nothing where there was no trial.
pub(super) fn share_left(truth: &[f64], said: &[f64]) -> Option<f64> {
    let mean = truth.iter().sum::<f64>() / truth.len().max(1) as f64;
    let total: f64 = truth.iter().map(|t| (t - mean).powi(2)).sum();
    let error: f64 = truth.iter().zip(said).map(|(t, s)| (t - s).powi(2)).sum();
    (total > 0.0).then(|| error / total)
}

/// Weights that fill the trial holes best together: least squares with weights that are not negative, and a slight
/// preference for small ones. Without a trial the highest evidence has all the weight.
pub(super) fn weigh(members: &mut [Member], truth: &[f64]) {
    let n = members.len();
    if truth.is_empty() {
        let value = |m: &Member| m.restart.log_marginal_likelihood;
        let best = (0..n).max_by(|&a, &b| value(&members[a]).total_cmp(&value(&members[b])).then(b.cmp(&a)));
        members[best.unwrap_or(0)].restart.weight = 1.0;
        return;
    }
    // ½ wᵀ(G + rI)w − bᵀw over w ≥ 0, Σw ≤ 1, by projected gradients, in units of Σ truth².
    let scale = dot(truth, truth).max(f64::MIN_POSITIVE);
    let product = |i: usize, j: usize| dot(&members[i].filled, &members[j].filled) / scale;
    let gram: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| product(i, j)).collect()).collect();
    let right: Vec<f64> = members.iter().map(|m| dot(&m.filled, truth) / scale).collect();
    let steepest = gram.iter().map(|row| row.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max) + RIDGE;
    let mut w = vec![0.0; n];
    for _ in 0..5000 {
        let slope = |i: usize| dot(&gram[i], &w) + RIDGE * w[i] - right[i];
        let next: Vec<f64> = (0..n).map(|i| w[i] - slope(i) / steepest).collect();
        w = onto_simplex(next);
    }
    // What hardly counts is not worth its time.
    w.iter_mut().filter(|w| **w < 0.02).for_each(|w| *w = 0.0);
    if w.iter().all(|w| *w == 0.0) {
        let trial = |i: usize| members[i].restart.trial.unwrap_or(f64::INFINITY);
        let best = (0..n).min_by(|&a, &b| trial(a).total_cmp(&trial(b)));
        w[best.unwrap_or(0)] = 1.0;
    }
    members.iter_mut().zip(w).for_each(|(m, w)| m.restart.weight = w);
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
            log_marginal_likelihood: 0.0,
            trial: None,
            iterations: 1,
            evaluations: 1,
            steps: 0,
        };
        Member { raw: vec![], filled: filled.to_vec(), restart }
    }

    fn weights(members: &[&[f64]], truth: &[f64]) -> Vec<f64> {
        let mut members: Vec<Member> = members.iter().map(|m| member(m)).collect();
        weigh(&mut members, truth);
        members.iter().map(|m| m.restart.weight).collect()
    }

    #[test]
    fn weights_go_to_whoever_fills_the_trials() {
        let truth: Vec<f64> = (0..50).map(|i| f64::from(i).sin()).collect();
        let noise: Vec<f64> = (0..50).map(|i| (f64::from(i) * 7.7).cos()).collect();
        let half: Vec<f64> = truth.iter().zip(&noise).map(|(t, n)| t + 0.4 * n).collect();
        let other: Vec<f64> = truth.iter().zip(&noise).map(|(t, n)| t - 0.4 * n).collect();
        let alone = weights(&[&noise, &truth], &truth);
        assert!(alone[0] < 0.05 && alone[1] > 0.9, "{alone:?}");
        // Errors that cancel are worth an average.
        let both = weights(&[&half, &other], &truth);
        assert!((both[0] - both[1]).abs() < 0.1 && both[0] + both[1] > 0.9, "{both:?}");
        // One that helps nobody counts alone rather than not at all.
        let against: Vec<f64> = truth.iter().map(|t| -t).collect();
        assert_eq!(weights(&[&against], &truth), [1.0]);
        assert_eq!(weights(&[&truth, &truth], &[]), [1.0, 0.0]);
    }

    #[test]
    fn the_nearest_point_of_the_simplex() {
        assert_eq!(onto_simplex(vec![0.2, -1.0, 0.3]), [0.2, 0.0, 0.3]);
        let w = onto_simplex(vec![2.0, 1.5, -1.0]);
        assert!((w[0] - 0.75).abs() < 1e-12 && (w[1] - 0.25).abs() < 1e-12 && w[2] == 0.0, "{w:?}");
    }
}
