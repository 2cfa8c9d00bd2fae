//! From what speaks for each fit of a series to its weight in the average.

/// By which power of the error of past forecasts a weight falls.
const POWER: f64 = 1.0;
/// What a fit that runs away has less than any other, as a logarithm.
pub(super) const OUT: f64 = 1e3;
/// The most members, and the smallest weight worth having.
const MOST_MEMBERS: usize = 8;
const SMALLEST: f64 = 0.02;
/// The most that all fits of the asked kernel have together: that they agree is no proof, and intervals would be too sure.
const MOST_OF_ONE: f64 = 2.0 / 3.0;
/// The least that the target as it is and its transform have, each, and the most members of a side that had less.
const LEAST_OF_A_SIDE: f64 = 0.25;
const MOST_OF_A_SIDE: usize = 6;
/// The most members in all: those of two sides, each with half as many beside the asked kernel's, and one that has its share
/// whatever the others have.
pub(super) const MOST_IN_ALL: usize = 3 * MOST_OF_A_SIDE + 1;

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
fn shares(logs: &[f64], asked: &[bool], most: usize) -> Vec<f64> {
    let all = best_of(logs, |_| true, most);
    let own: f64 = all.iter().zip(asked).filter(|(_, a)| **a).map(|(w, _)| w).sum();
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Those that run away are no company.
    let calm = |i: usize| !asked[i] && logs[i] > highest - 0.5 * OUT;
    if own <= MOST_OF_ONE || !(0..logs.len()).any(calm) {
        return all;
    }
    let others = best_of(logs, calm, most / 2);
    let part = |i: usize| if asked[i] { all[i] / own * MOST_OF_ONE } else { others[i] * (1.0 - MOST_OF_ONE) };
    (0..logs.len()).map(part).collect()
}

/// The same, where the target and its transform both keep a part: which of the two went on as before is hard to know, and
/// the one that grows by a constant factor errs by far more.
pub(super) fn balanced(logs: &[f64], asked: &[bool], transformed: &[bool]) -> Vec<f64> {
    let all = shares(logs, asked, MOST_MEMBERS);
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let calm = |side: bool| (0..logs.len()).any(|i| transformed[i] == side && logs[i] > highest - 0.5 * OUT);
    let has: f64 = all.iter().zip(transformed).filter(|(_, t)| **t).map(|(w, _)| w).sum();
    let part = has.clamp(LEAST_OF_A_SIDE, 1.0 - LEAST_OF_A_SIDE);
    if part == has || !calm(true) || !calm(false) {
        return all;
    }
    let side = |which: bool| {
        let own = |i: usize| logs[i] - if transformed[i] == which { 0.0 } else { 2.0 * OUT };
        shares(&(0..logs.len()).map(own).collect::<Vec<_>>(), asked, MOST_OF_A_SIDE)
    };
    let (with, without) = (side(true), side(false));
    (0..logs.len()).map(|i| part * with[i] + (1.0 - part) * without[i]).collect()
}

/// Gives one runner at least some share, of which the others leave it equal parts of theirs.
pub(super) fn at_least(weights: &mut [f64], one: usize, least: f64) {
    let has = weights[one];
    if has < least {
        weights.iter_mut().for_each(|w| *w *= (1.0 - least) / (1.0 - has));
        weights[one] = least;
    }
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
        let shares = |logs: &[f64], asked: &[bool]| shares(logs, asked, MOST_MEMBERS);
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

    #[test]
    fn one_has_at_least_its_share() {
        let mut weights = [0.5, 0.4, 0.1, 0.0];
        at_least(&mut weights, 2, 0.28);
        let expected = [0.4, 0.32, 0.28, 0.0];
        assert!(weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{weights:?}");
        at_least(&mut weights, 0, 0.3);
        assert!((weights[0] - 0.4).abs() < 1e-12, "it had more");
        let mut alone = [1.0];
        at_least(&mut alone, 0, 0.3);
        assert_eq!(alone, [1.0]);
    }

    #[test]
    fn target_and_transform_both_keep_a_part() {
        let (asked, transformed) = ([false; 4], [true, true, false, false]);
        let part = |weights: &[f64]| weights[0] + weights[1];
        // By far the better side has three quarters; within a side all is as it was.
        let weights = balanced(&[0.0, -1.0, -40.0, -42.0], &asked, &transformed);
        assert!((part(&weights) - 0.75).abs() < 1e-12 && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((weights[3] / weights[2] - (-2f64).exp()).abs() < 1e-12, "{weights:?}");
        let weights = balanced(&[-40.0, -42.0, 0.0, -1.0], &asked, &transformed);
        assert!((part(&weights) - 0.25).abs() < 1e-12, "{weights:?}");
        // Between these, alone, or in the company of those that run away: as they are.
        let weights = balanced(&[0.0, 0.0, 0.0, -OUT], &asked, &transformed);
        assert!((part(&weights) - 2.0 / 3.0).abs() < 1e-12, "{weights:?}");
        assert_eq!(part(&balanced(&[0.0, -OUT, -OUT, -OUT], &asked, &transformed)), 1.0);
        assert_eq!(balanced(&[0.0, 0.0], &[false; 2], &[true; 2]), [0.5, 0.5]);
    }
}
