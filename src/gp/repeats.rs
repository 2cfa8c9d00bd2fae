//! Rows with equal inputs, merged: each stands once, with the mean of its targets and its share of the noise. The
//! likelihood of all rows is that of the merged ones plus a part that depends on the noise alone, so nothing is lost.

use super::exact::LN_2PI;
use super::loo::LeaveOneOut;
use crate::data::Points;

/// How often each row was seen, and with which targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// The targets of row i are `targets[first[i]..first[i + 1]]`.
    first: Vec<usize>,
    targets: Vec<f64>,
    /// Σ (y − ȳ)² over all groups.
    within: f64,
    /// Σ ln w over all groups.
    log_counts: f64,
}

/// Rows that stand for all, and what they stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// One row of each group, in the order of the data.
    pub rows: Vec<usize>,
    /// The mean target of each.
    pub y: Vec<f64>,
    /// What was merged.
    pub repeats: Repeats,
}

impl Repeats {
    /// Merges equal rows; none if all rows differ.
    pub fn merge(x: &Points, y: &[f64]) -> Option<Merged> {
        let bits = |i: usize| (0..x.d()).map(move |c| (x.column(c)[i] + 0.0).to_bits());
        let mut order: Vec<usize> = (0..x.n()).collect();
        order.sort_by(|&a, &b| bits(a).cmp(bits(b)).then(a.cmp(&b)));
        let mut groups: Vec<&[usize]> = order.chunk_by(|&a, &b| bits(a).eq(bits(b))).collect();
        if groups.len() == x.n() {
            return None;
        }
        groups.sort_by_key(|g| g[0]);
        let (mut first, mut targets) = (vec![0], Vec::with_capacity(y.len()));
        for group in &groups {
            targets.extend(group.iter().map(|&i| y[i]));
            first.push(targets.len());
        }
        let rows = groups.iter().map(|g| g[0]).collect();
        let repeats = Self::new(first, targets);
        Some(Merged { rows, y: repeats.means(), repeats })
    }

    /// Groups of targets, one after another; group i begins at `first[i]`.
    pub fn new(first: Vec<usize>, targets: Vec<f64>) -> Self {
        let mut repeats = Self { first, targets, within: 0.0, log_counts: 0.0 };
        let squares = |(i, mean): (usize, f64)| repeats.of(i).iter().map(|y| (y - mean).powi(2)).sum::<f64>();
        let within = repeats.means().into_iter().enumerate().map(squares).sum();
        let log_counts = (0..repeats.n()).map(|i| repeats.count(i).ln()).sum();
        (repeats.within, repeats.log_counts) = (within, log_counts);
        repeats
    }

    /// New rows, each a group of its own.
    pub fn push(&mut self, y: &[f64]) {
        self.targets.extend(y);
        let begin = self.first[self.n()];
        self.first.extend((1..=y.len()).map(|i| begin + i));
    }

    /// Rows beyond the first of their group, where all targets of the group are the same.
    pub fn copies(&self) -> usize {
        let alike = |i: usize| self.of(i).iter().all(|y| *y == self.of(i)[0]);
        (0..self.n()).filter(|&i| alike(i)).map(|i| self.of(i).len() - 1).sum()
    }

    /// Number of groups.
    pub fn n(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of rows that were merged.
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// The targets of group i.
    pub fn of(&self, i: usize) -> &[f64] {
        &self.targets[self.first[i]..self.first[i + 1]]
    }

    /// How many rows group i stands for.
    pub fn count(&self, i: usize) -> f64 {
        (self.first[i + 1] - self.first[i]) as f64
    }

    /// The mean target of each group.
    pub fn means(&self) -> Vec<f64> {
        (0..self.n()).map(|i| self.of(i).iter().sum::<f64>() / self.count(i)).collect()
    }

    /// What the noise of each group differs from the common one by: σ²/w − σ².
    pub fn noise(&self, noise: f64) -> Vec<f64> {
        (0..self.n()).map(|i| noise / self.count(i) - noise).collect()
    }

    /// What the log likelihood of all rows has beyond that of the merged ones, and its slope in the noise variance:
    /// −½ Σ ((w − 1) log 2πσ² + log w) − Σ (y − ȳ)²/2σ²
    pub fn evidence(&self, noise: f64) -> (f64, f64) {
        let merged = (self.rows() - self.n()) as f64;
        let value = -0.5 * (merged * (LN_2PI + noise.ln()) + self.log_counts + self.within / noise);
        (value, 0.5 * (self.within / noise - merged) / noise)
    }

    /// Leave-one-out predictions of every row, in the order of the groups, from those that leave out whole groups.
    ///
    /// Without its group, f at row i has mean m and variance v; the other w − 1 rows of the group come back as one
    /// observation of noise σ²/(w − 1).
    pub(super) fn leave_one_out(&self, groups: &LeaveOneOut, noise: f64) -> LeaveOneOut {
        let (mut mean, mut variance) = (Vec::with_capacity(self.rows()), Vec::with_capacity(self.rows()));
        for i in 0..self.n() {
            let (w, sum) = (self.count(i), self.of(i).iter().sum::<f64>());
            let v = (groups.variance[i] - noise / w).max(0.0);
            for y in self.of(i) {
                let rest = w - 1.0;
                // Precision-weighted mean of N(m, v) and N(ȳ₋ⱼ, σ²/(w − 1)), without dividing by v.
                let share = rest * v / (rest * v + noise);
                let others = if rest > 0.0 { (sum - y) / rest } else { groups.mean[i] };
                mean.push(groups.mean[i] + share * (others - groups.mean[i]));
                variance.push(v * (1.0 - share) + noise);
            }
        }
        LeaveOneOut::of(mean, variance, &self.targets)
    }

    /// Every target, group after group: the order of leave-one-out predictions.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// Where each group begins.
    pub fn first(&self) -> &[usize] {
        &self.first
    }
}
