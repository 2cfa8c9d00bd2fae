//! How much each candidate counts: weights that maximise the density of the mixture at rows left out (stacking), drawn
//! towards equal ones. Averages of several good fits predict better than the best of them, and one that is plainly
//! worse gets next to nothing. Rows are left out one by one, and by blocks at the ends of the data.

use super::candidate::Candidate;
use super::problem::Problem;
use crate::gp::LeaveOneOut;

/// What is drawn towards equal weights, as a share of the rows: the candidates were fitted to the rows they are judged
/// by, so differences between them are smaller than they look.
const EQUAL: f64 = 0.1;
/// What a row at an end counts, against one between others: there are few, and the parameters have seen both.
const END: f64 = 6.0;
/// A smaller weight is not worth the memory and the time.
const SMALLEST: f64 = 0.03;
/// Rounds of the iteration; it has converged long before.
const ROUNDS: usize = 200;

/// What candidates said of rows they were not shown, as log densities.
pub(super) struct Tests {
    candidates: usize,
    /// For each row what it counts, and the density of each candidate relative to the best.
    rows: Vec<(f64, Vec<f64>)>,
}

impl Tests {
    pub fn new(candidates: usize) -> Self {
        Self { candidates, rows: vec![] }
    }

    /// What each candidate says of rows it is not shown: of each alone, and of those at the ends. The problems are of the same
    /// rows, whose targets were transformed in different ways.
    pub fn of(problems: &[Problem], candidates: &[Candidate]) -> Self {
        let mut tests = Self::new(candidates.len());
        let all: Vec<Vec<f64>> = problems.iter().map(|p| p.targets().to_vec()).collect();
        let said = candidates.iter().map(|c| Some((c.problem, &c.loo)));
        tests.add(1.0, &Targets::of(problems, all), said);
        for (k, block) in problems[0].ends().iter().enumerate() {
            let own = |p: &Problem| block.iter().map(|&i| p.y[i]).collect();
            let ends = Targets::of(problems, problems.iter().map(own).collect());
            tests.add(END, &ends, candidates.iter().map(|c| Some((c.problem, c.ends.get(k)?.as_ref()?))));
        }
        tests
    }

    /// The one with the highest density of all rows.
    pub fn best(&self) -> usize {
        let total =
            |c: usize| self.rows.iter().map(|(counts, row)| counts * row[c].max(f64::MIN_POSITIVE).ln()).sum();
        let totals: Vec<f64> = (0..self.candidates).map(total).collect();
        (0..self.candidates).max_by(|&a, &b| totals[a].total_cmp(&totals[b])).unwrap_or(0)
    }

    /// Adds predictions of the same targets, for each candidate which form of them it predicts, and its list; left aside if
    /// one of them has none.
    fn add<'a>(
        &mut self,
        counts: f64,
        targets: &Targets,
        predictions: impl Iterator<Item = Option<(usize, &'a LeaveOneOut)>>,
    ) {
        let Some(all) = predictions.collect::<Option<Vec<_>>>() else { return };
        for i in 0..targets.forms[0].0.len() {
            let density = |(form, c): &(usize, &LeaveOneOut)| {
                let (y, units) = &targets.forms[*form];
                let (e, v) = (y[i] - c.mean[i], c.variance[i]);
                -0.5 * (e * e / v + v.ln()) + units[i]
            };
            let own: Vec<f64> = all.iter().map(density).collect();
            let largest = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if largest.is_finite() {
                self.rows.push((counts, own.iter().map(|l| (l - largest).exp()).collect()));
            }
        }
    }

    /// Weights of at most so many candidates; they add up to one.
    ///
    /// Maximises Σᵢ log Σₖ wₖ pₖ(yᵢ) + c Σₖ log wₖ: each round shares every row out among the candidates by how well
    /// they predict it.
    pub fn weights(&self, most: usize) -> Vec<f64> {
        let mut taken: Vec<usize> = (0..self.candidates).collect();
        loop {
            let weights = solve(&self.rows, &taken);
            let smallest = (0..taken.len()).min_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap_or(0);
            // What comes from the pull alone says nothing for a candidate.
            let idle = 1.5 * EQUAL / (1.0 + EQUAL) / taken.len() as f64;
            if taken.len() <= 1 || (weights[smallest] >= SMALLEST.max(idle) && taken.len() <= most.max(1)) {
                let mut all = vec![0.0; self.candidates];
                taken.iter().zip(weights).for_each(|(&i, w)| all[i] = w);
                return all;
            }
            taken.remove(smallest);
        }
    }
}

/// The same targets as each of several fits saw them.
struct Targets {
    /// The numbers themselves, and what the log density of each gains on the way to the numbers of the first.
    forms: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Targets {
    fn of(problems: &[Problem], all: Vec<Vec<f64>>) -> Self {
        let first: Vec<f64> = all[0].iter().map(|&z| problems[0].log_unit(z)).collect();
        let gain =
            |(p, own): (&Problem, &Vec<f64>)| own.iter().zip(&first).map(|(&z, f)| p.log_unit(z) - f).collect();
        let gains: Vec<Vec<f64>> = problems.iter().zip(&all).map(gain).collect();
        Self { forms: all.into_iter().zip(gains).collect() }
    }
}

fn solve(rows: &[(f64, Vec<f64>)], taken: &[usize]) -> Vec<f64> {
    let (n, k) = (rows.iter().map(|r| r.0).sum::<f64>(), taken.len());
    let equal = EQUAL * n / k as f64;
    let mut weights = vec![1.0 / k as f64; k];
    for _ in 0..ROUNDS {
        let mut shares = vec![equal; k];
        for (counts, row) in rows {
            let total: f64 = taken.iter().zip(&weights).map(|(&i, w)| w * row[i]).sum();
            if total > 0.0 {
                shares.iter_mut().zip(taken).zip(&weights).for_each(|((s, &i), w)| *s += counts * w * row[i] / total);
            }
        }
        let total: f64 = shares.iter().sum();
        if total <= 0.0 {
            break;
        }
        weights = shares.iter().map(|s| s / total).collect();
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loo(mean: Vec<f64>, variance: f64) -> LeaveOneOut {
        LeaveOneOut { variance: vec![variance; mean.len()], mean, ..LeaveOneOut::default() }
    }

    #[test]
    fn good_candidates_share_and_bad_ones_get_nothing() {
        let y: Vec<f64> = (0..100).map(|i| (f64::from(i) * 0.7).sin()).collect();
        let off = |by: f64| loo(y.iter().enumerate().map(|(i, y)| y + by * (i as f64 * 1.3).cos()).collect(), 0.02);
        let (a, b, bad) = (off(0.1), off(-0.1), off(3.0));
        let plain = Targets { forms: vec![(y.clone(), vec![0.0; 100])] };
        let stack = |most| {
            let mut tests = Tests::new(3);
            tests.add(1.0, &plain, [&a, &b, &bad].into_iter().map(|l| Some((0, l))));
            tests.weights(most)
        };
        let weights = stack(5);
        assert!((weights[0] - weights[1]).abs() < 0.2 && weights[2] == 0.0, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let mut tests = Tests::new(3);
        tests.add(1.0, &plain, [&bad, &b, &off(0.5)].into_iter().map(|l| Some((0, l))));
        assert_eq!(tests.best(), 1);
        let one = stack(1);
        assert_eq!(one.iter().filter(|w| **w > 0.0).count(), 1);
    }
}
