//! Steps of the level along the first input: what no smooth kernel should have to explain. They are taken out before a
//! fit and put back into what it predicts, so that kernel and noise are those of the rest.

use super::member::Member;
use super::model::Model;
use crate::data::Dataset;
use crate::error::Result;
use crate::gp::Process;
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

    /// A dataset with the level taken out.
    pub(crate) fn taken_out(&self, data: Dataset) -> Result<Dataset> {
        if self.is_empty() {
            return Ok(data);
        }
        let levels: Vec<f64> = data.x().column(0).iter().map(|&x| self.at(x)).collect();
        data.map_rows(|row, y| y - levels[row])
    }

    pub(super) fn is_finite(&self) -> bool {
        self.steps.iter().all(|s| s.0.is_finite() && s.1.is_finite())
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
