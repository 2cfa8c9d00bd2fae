//! From what speaks for each fit of a series to its weight in the average.

/// By which power of the error of past forecasts a weight falls.
const POWER: f64 = 1.0;
/// What a fit that runs away has less than any other, as a logarithm.
pub(super) const OUT: f64 = 1e3;
/// The most members, and the smallest weight worth having.
pub(super) const MOST_MEMBERS: usize = 8;
const SMALLEST: f64 = 0.02;
/// The most that all fits of the asked kernel have together: that they agree is no proof, and intervals would be too sure.
const MOST_OF_ONE: f64 = 2.0 / 3.0;

/// Takes from each runner's logarithm what its errors at the origins cost, relative to the middle one of all.
pub(super) fn charge(logs: &mut [f64], errors: &[Vec<Option<f64>>]) {
    for at_origin in errors {
        let mut known: Vec<f64> = at_origin.iter().copied().flatten().collect();
        known.sort_by(f64::total_cmp);
        let Some(&middle) = known.get(known.len() / 2) else { continue };
        let least = 1e-6 * middle.max(f64::MIN_POSITIVE);
        for (log, error) in logs.iter_mut().zip(at_origin) {
            // One that failed on a shorter past is as good as twice the usual error.
            let ratio = error.map_or(2.0, |e| e.max(least) / middle.max(least));
            *log -= POWER * ratio.ln() / errors.len() as f64;
        }
    }
}

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
    fn errors_cost_by_their_ratio_to_the_middle_one() {
        let mut logs = [0.0, 1.0, 0.0, 0.0];
        charge(&mut logs, &[vec![Some(2.0), Some(4.0), Some(1.0), None], vec![]]);
        let half = std::f64::consts::LN_2 / 2.0;
        let expected = [0.0, 1.0 - POWER * half, POWER * half, -POWER * half];
        assert!(logs.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{logs:?}");
        // Without an origin there is nothing to charge for, and an error of nought is no infinite merit.
        let mut logs = [0.5, 0.0];
        charge(&mut logs, &[]);
        assert_eq!(logs, [0.5, 0.0]);
        charge(&mut logs, &[vec![Some(0.0), Some(1.0)]]);
        assert!(logs[0].is_finite() && logs[0] > 10.0 * POWER, "{logs:?}");
    }

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
