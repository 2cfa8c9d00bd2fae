//! How forecasts of the past came out: errors and calibration over the origins inside the training data.

use crate::fit::Mixture;
use crate::normal;
use serde::{Deserialize, Serialize};

/// Forecasts of parts of the series from what came before them, scored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rolling {
    /// Origins.
    pub origins: usize,
    /// Values forecast, over all origins.
    pub n: usize,
    /// Root mean squared error.
    pub rmse: f64,
    /// Share of values within their 80 % intervals.
    pub coverage_80: f64,
    /// Share of values within their 95 % intervals.
    pub coverage_95: f64,
    /// Mean continuous ranked probability score.
    pub crps: f64,
    /// Mean score of the 95 % intervals: their width, and 40 times the distance of a value outside.
    pub interval_score_95: f64,
    /// Root mean square of the values' places in their distributions, in standard deviations: 1 is calibrated, more is
    /// too sure.
    pub spread: f64,
}

impl Rolling {
    /// Adds one value and what was said of it.
    pub(super) fn add(&mut self, said: &Mixture, y: f64) {
        let level = said.cdf(y);
        let off_centre = (2.0 * level - 1.0).abs();
        self.n += 1;
        self.rmse += (y - said.moments().0).powi(2);
        self.coverage_80 += f64::from(off_centre <= 0.8);
        self.coverage_95 += f64::from(off_centre <= 0.95);
        self.crps += said.crps(y);
        self.interval_score_95 += said.interval_score(y, 0.95);
        self.spread += normal::quantile(level.clamp(1e-9, 1.0 - 1e-9)).powi(2);
    }

    /// From sums to means; none if nothing was added.
    pub(super) fn finish(self, origins: usize) -> Option<Self> {
        let n = self.n as f64;
        (self.n > 0).then(|| Self {
            origins,
            n: self.n,
            rmse: (self.rmse / n).sqrt(),
            coverage_80: self.coverage_80 / n,
            coverage_95: self.coverage_95 / n,
            crps: self.crps / n,
            interval_score_95: self.interval_score_95 / n,
            spread: (self.spread / n).sqrt(),
        })
    }
}
