//! Leave-one-out predictions in closed form: what the model says of each row when it has not seen it.

use super::exact::LN_2PI;
use crate::linalg::{Cholesky, Matrix};
use crate::threads::Threads;

/// For each row, the prediction of its target from all other rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeaveOneOut {
    /// Predicted means.
    pub mean: Vec<f64>,
    /// Predicted variances of the target, noise included.
    pub variance: Vec<f64>,
    /// Mean log density of the targets.
    pub log_density: f64,
    /// Root mean squared error.
    pub rmse: f64,
}

impl LeaveOneOut {
    /// μ₋ᵢ = yᵢ − αᵢ/[K⁻¹]ᵢᵢ, s²₋ᵢ = 1/[K⁻¹]ᵢᵢ
    pub(super) fn new(y: &[f64], alpha: &[f64], inverse_diagonal: &[f64]) -> Self {
        let variance: Vec<f64> = inverse_diagonal.iter().map(|k| 1.0 / k).collect();
        let mean: Vec<f64> = y.iter().zip(alpha).zip(&variance).map(|((y, a), v)| y - a * v).collect();
        Self::of(mean, variance, y)
    }

    /// The rows of a block, each predicted from the rows outside of it: with S = ([K⁻¹]_BB)⁻¹, μ = y_B − S α_B and
    /// s² = diag S. Nothing where rounding has spoilt the block. Of K⁻¹ the lower triangle is read.
    pub(super) fn of_block(y: &[f64], alpha: &[f64], inverse: &Matrix, block: &[usize]) -> Option<Self> {
        let m = block.len();
        let entry = |i: usize, j: usize| inverse[(block[i].max(block[j]), block[i].min(block[j]))];
        let fill = |to: &mut Matrix| (0..m).for_each(|j| (j..m).for_each(|i| to[(i, j)] = entry(i, j)));
        let factor = Cholesky::factor(Matrix::zeros(m, m), fill, Threads::One).ok()?;
        let pull: Vec<f64> = factor.solve(&block.iter().map(|&i| alpha[i]).collect::<Vec<f64>>());
        let spread = factor.into_inverse(Matrix::default(), Threads::One).inverse;
        let own: Vec<f64> = block.iter().map(|&i| y[i]).collect();
        let mean = own.iter().zip(&pull).map(|(y, p)| y - p).collect();
        Some(Self::of(mean, (0..m).map(|i| spread[(i, i)]).collect(), &own))
    }

    /// Scores predictions.
    pub(super) fn of(mean: Vec<f64>, variance: Vec<f64>, y: &[f64]) -> Self {
        let n = y.len() as f64;
        let error = |((y, m), v): ((&f64, &f64), &f64)| {
            let e = y - m;
            (e * e, -0.5 * (e * e / v + v.ln() + LN_2PI))
        };
        let (square, density) =
            y.iter().zip(&mean).zip(&variance).map(error).fold((0.0, 0.0), |(s, d), (e, l)| (s + e, d + l));
        Self { mean, variance, log_density: density / n, rmse: (square / n).sqrt() }
    }

    /// The share of targets within the central interval of this many standard deviations.
    pub fn coverage(&self, y: &[f64], deviations: f64) -> f64 {
        let inside = |((y, m), v): ((&f64, &f64), &f64)| (y - m).abs() <= deviations * v.sqrt();
        y.iter().zip(&self.mean).zip(&self.variance).filter(|&t| inside(t)).count() as f64 / y.len() as f64
    }
}
