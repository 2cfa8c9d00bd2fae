//! Steps of the level along the first input: what no smooth kernel should have to explain. They are taken out before a
//! fit and put back into what it predicts, so that kernel and noise are those of the rest.

use super::member::Member;
use super::model::Model;
use crate::data::Dataset;
use crate::error::Result;
use crate::gp::Process;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// A level that changes in steps, relative to where it is in the end, in units of the linked target.
///
/// ```
/// use covary::fit::Levels;
///
/// let levels = Levels::default().with_step(10.0, 3.0).with_step(20.0, -1.0);
/// assert_eq!([5.0, 15.0, 25.0].map(|x| levels.at(x)), [-2.0, 1.0, 0.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Levels {
    /// Where each begins, and by how much it is above what came before.
    steps: Vec<(f64, f64)>,
    /// The first and the last x they were looked for between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    searched: Option<(f64, f64)>,
}

/// How a shift of the level over some rows would do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShiftTest {
    /// The first row, in the order of the first input.
    pub from: usize,
    /// The row after the last; the number of rows where it lasts.
    pub to: usize,
    /// Its size in units of the linked target, by generalised least squares.
    pub size: f64,
    /// That size in its standard errors.
    pub score: f64,
}

impl Levels {
    /// The same with one more step.
    #[must_use]
    pub fn with_step(mut self, from: f64, by: f64) -> Self {
        self.steps.push((from, by));
        self.steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        self
    }

    /// Where each step begins, and its size.
    pub fn steps(&self) -> &[(f64, f64)] {
        &self.steps
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The level at x; nought after the last step.
    pub fn at(&self, x: f64) -> f64 {
        -self.steps.iter().filter(|s| x < s.0).map(|s| s.1).sum::<f64>()
    }

    /// The same, looked for between these x: what has stepped there may step again.
    #[must_use]
    pub fn searched(mut self, first: f64, last: f64) -> Self {
        self.searched = Some((first, last)).filter(|_| first < last);
        self
    }

    /// The same, after values up to x were seen: steps to come are those beyond it.
    #[must_use]
    pub(super) fn seen_until(mut self, x: f64) -> Self {
        self.searched = self.searched.map(|(first, last)| (first, last.max(x)));
        self
    }

    /// The variance that steps to come give the level at x: those that lasted come again, up or down, as often as they
    /// have come so far; all of them once at most, for nobody has seen further.
    ///
    /// ```
    /// use covary::fit::Levels;
    ///
    /// let levels = Levels::default().with_step(10.0, 3.0).searched(0.0, 40.0);
    /// assert_eq!([30.0, 60.0, 80.0, 120.0].map(|x| levels.variance_at(x)), [0.0, 4.5, 9.0, 9.0]);
    /// ```
    pub fn variance_at(&self, x: f64) -> f64 {
        let Some((first, last)) = self.searched else { return 0.0 };
        let back = |by: f64| self.steps.iter().any(|s| s.1 == -by);
        let lasting = self.steps.iter().map(|s| s.1).filter(|&by| !back(by));
        // In parts of the span, which does not overflow.
        let ahead = (x / 2.0 - last / 2.0) / (last / 2.0 - first / 2.0);
        lasting.map(|by| by * by).sum::<f64>() * ahead.clamp(0.0, 1.0)
    }

    /// A path of the level by steps to come, at these x in any order.
    pub(super) fn walk(&self, x: &[f64], rng: &mut impl Rng) -> Vec<f64> {
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
        let (mut path, mut level, mut variance) = (vec![0.0; x.len()], 0.0, 0.0);
        for i in order {
            let next = self.variance_at(x[i]);
            if next > variance {
                let z: f64 = StandardNormal.sample(rng);
                level += (next - variance).sqrt() * z;
                variance = next;
            }
            path[i] = level;
        }
        path
    }

    /// A dataset with the level taken out.
    pub(crate) fn taken_out(&self, data: Dataset) -> Result<Dataset> {
        if self.is_empty() {
            return Ok(data);
        }
        let levels: Vec<f64> = data.x().column(0).iter().map(|&x| self.at(x)).collect();
        data.map_rows(|row, y| y - levels[row])
    }

    pub(super) fn is_finite(&self) -> bool {
        let ends = self.searched.iter().flat_map(|s| [s.0, s.1]);
        self.steps.iter().flat_map(|s| [s.0, s.1]).chain(ends).all(f64::is_finite)
    }
}

impl Member {
    /// The steps of the level that were taken out of its target.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }
}

impl Model {
    /// The same model, of a target whose level was taken out before it was fitted.
    #[must_use]
    pub(crate) fn with_levels(mut self, levels: &Levels) -> Self {
        self.members.iter_mut().for_each(|m| m.levels = levels.clone());
        self
    }

    /// How shifts of the level would do, to the end or over at most `widest` rows; none for processes without a factor.
    pub(crate) fn shift_tests(&self, widest: usize) -> Vec<ShiftTest> {
        let Process::Exact(posterior) = &self.members[0].process else { return vec![] };
        let x = self.x.column(0);
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
        let scaling = &self.members[0].scaling;
        let test = |(from, to, size, score)| ShiftTest { from, to, size: scaling.sd(size), score };
        posterior.shifts(&order, widest).into_iter().map(test).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn stepped() -> Levels {
        // The second is taken back by the third, and says nothing of the level to come.
        Levels::default().with_step(2.0, 3.0).with_step(4.0, 7.0).with_step(5.0, -7.0).searched(0.0, 10.0)
    }

    #[test]
    fn steps_that_lasted_come_again_at_their_rate() {
        let levels = stepped();
        assert_eq!([9.0, 10.0, 15.0, 20.0, 99.0].map(|x| levels.variance_at(x)), [0.0, 0.0, 4.5, 9.0, 9.0]);
        // Values that were seen since make the rate lower, and steps to come are those after them.
        let later = levels.seen_until(20.0).seen_until(3.0);
        assert_eq!([20.0, 30.0].map(|x| later.variance_at(x)), [0.0, 4.5]);
        assert_eq!(Levels::default().with_step(2.0, 3.0).variance_at(9.0), 0.0);
        assert_eq!(Levels::default().searched(0.0, 10.0).seen_until(11.0).variance_at(20.0), 0.0);
        assert_eq!(Levels::default().with_step(1.0, 2.0).searched(1.0, 1.0).variance_at(20.0), 0.0);
    }

    #[test]
    fn paths_have_that_variance_and_go_on_from_each_other() {
        let (levels, x, count) = (stepped(), [20.0, 5.0, 15.0], 20_000);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let paths: Vec<Vec<f64>> = (0..count).map(|_| levels.walk(&x, &mut rng)).collect();
        let mean = |f: &dyn Fn(&[f64]) -> f64| paths.iter().map(|p| f(p)).sum::<f64>() / f64::from(count);
        assert!(paths.iter().all(|p| p[1] == 0.0));
        assert!(
            (mean(&|p| p[0] * p[0]) / 9.0 - 1.0).abs() < 0.05 && (mean(&|p| p[2] * p[2]) / 4.5 - 1.0).abs() < 0.05
        );
        assert!((mean(&|p| p[0] * p[2]) / 4.5 - 1.0).abs() < 0.05);
    }
}
