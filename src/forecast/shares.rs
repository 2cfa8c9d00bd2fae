//! From what speaks for each fit of a series to its weight in the average.

/// What a fit that runs away has less than any other, as a logarithm.
pub(super) const OUT: f64 = 1e3;
/// The most members, and the smallest weight worth having.
const MOST_MEMBERS: usize = 8;
const SMALLEST: f64 = 0.02;
/// The most that all fits of the asked kernel have together: that they agree is no proof, and intervals would be too sure.
const MOST_OF_ONE: f64 = 2.0 / 3.0;

/// Weights of runners from their logarithms; where the asked kernel would have nearly all, others keep a part.
pub(super) fn shares(logs: &[f64], asked: &[bool]) -> Vec<f64> {
    let all = best_of(logs, |_| true, MOST_MEMBERS);
    let own: f64 = all.iter().zip(asked).filter(|(_, a)| **a).map(|(w, _)| w).sum();
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Those that run away are no company.
    let calm = |i: usize| !asked[i] && logs[i] > highest - 0.5 * OUT;
    if own <= MOST_OF_ONE || !(0..logs.len()).any(calm) {
        return all;
    }
    let others = best_of(logs, calm, MOST_MEMBERS / 2);
    let part = |i: usize| if asked[i] { all[i] / own * MOST_OF_ONE } else { others[i] * (1.0 - MOST_OF_ONE) };
    (0..logs.len()).map(part).collect()
}

/// Weights of the best of some runners; they add up to one.
fn best_of(logs: &[f64], of: impl Fn(usize) -> bool, most: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logs.len()).filter(|&i| of(i)).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]));
    let mut weights = vec![0.0; logs.len()];
    let Some(&first) = order.first() else { return weights };
    order.iter().for_each(|&i| weights[i] = (logs[i] - logs[first]).exp());
    let total: f64 = weights.iter().sum();
    for (place, &i) in order.iter().enumerate() {
        if place > 0 && (place >= most || weights[i] < SMALLEST * total) {
            weights[i] = 0.0;
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kernel_does_not_have_it_all() {
        let asked = [true, true, false, false, false];
        // By far the best: two thirds, and the best of the others has most of the rest.
        let weights = shares(&[0.0, -0.1, -40.0, -42.0, -OUT - 3.0], &asked);
        assert!((weights[0] + weights[1] - MOST_OF_ONE).abs() < 1e-12, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(weights[2] > weights[3] && weights[3] > 0.0 && weights[4] == 0.0, "{weights:?}");
        // Not the best, or alone, or in the company of those that run away: as they are.
        let weights = shares(&[-3.0, -3.0, 0.0, -1.0, -1.0], &asked);
        assert!((weights[2] - 1.0 / (1.0 + 2.0 * (-3f64).exp() + 2.0 * (-1f64).exp())).abs() < 1e-12, "{weights:?}");
        assert_eq!(shares(&[0.0, 0.0], &[true, true]), [0.5, 0.5]);
        assert_eq!(shares(&[0.0, -OUT], &[true, false]), [1.0, 0.0]);
    }
}
