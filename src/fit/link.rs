//! What is done to a target before it is fitted, and how predictions come back: means and variances by the moments of
//! the distribution, interval ends by the monotone function itself.

use crate::normal;
use serde::{Deserialize, Serialize};

/// A monotone function of the target under which it is modelled as normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The target as it is.
    #[default]
    Identity,
    /// Its logarithm; the target must be positive. Predictions are log-normal.
    Log,
}

impl Link {
    /// From the target's units to those in which it is normal.
    pub fn apply(self, y: f64) -> f64 {
        match self {
            Self::Identity => y,
            Self::Log => y.ln(),
        }
    }

    /// Back to the target's units.
    pub fn undo(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Log => z.exp(),
        }
    }

    /// Mean and variance in the target's units of what is normal with these: for a logarithm those of the log-normal
    /// distribution, exp(m + v/2) and (exp(v) − 1) exp(2m + v).
    pub fn moments(self, mean: f64, variance: f64) -> (f64, f64) {
        match self {
            Self::Identity => (mean, variance),
            Self::Log => {
                let centre = (mean + 0.5 * variance).exp();
                (centre, variance.exp_m1() * centre * centre)
            }
        }
    }

    /// The end of an interval: z standard deviations above the mean, in the target's units.
    pub fn quantile(self, mean: f64, variance: f64, z: f64) -> f64 {
        self.undo(mean + z * variance.sqrt())
    }

    /// The probability of a value at or below y, where its linked value is normal with this mean and variance.
    pub fn cdf(self, y: f64, mean: f64, variance: f64) -> f64 {
        match self {
            Self::Log if y <= 0.0 => 0.0,
            _ => normal::cdf((self.apply(y) - mean) / variance.sqrt()),
        }
    }

    /// ln |dz/dy|: what a log density gains on the way back to the target's units.
    pub fn log_jacobian(self, y: f64) -> f64 {
        match self {
            Self::Identity => 0.0,
            Self::Log => -y.ln(),
        }
    }

    /// The log density of y, where its linked value is normal with this mean and variance.
    pub fn log_density(self, y: f64, mean: f64, variance: f64) -> f64 {
        let z = (self.apply(y) - mean) / variance.sqrt();
        -0.5 * (z * z + variance.ln() + (2.0 * std::f64::consts::PI).ln()) + self.log_jacobian(y)
    }

    /// The continuous ranked probability score of y: 0 is perfect, and it is in the target's units.
    pub fn crps(self, y: f64, mean: f64, variance: f64) -> f64 {
        let sd = variance.sqrt();
        let z = (self.apply(y) - mean) / sd;
        match self {
            // s (z (2Φ(z) − 1) + 2φ(z) − 1/√π)
            Self::Identity => {
                sd * (z * (2.0 * normal::cdf(z) - 1.0) + 2.0 * normal::density(z) - 1.0 / std::f64::consts::PI.sqrt())
            }
            // y (2Φ(z) − 1) − 2 exp(m + s²/2) (Φ(z − s) + Φ(s/√2) − 1)
            Self::Log => {
                let tail = normal::cdf(z - sd) + normal::cdf(sd / std::f64::consts::SQRT_2) - 1.0;
                y * (2.0 * normal::cdf(z) - 1.0) - 2.0 * (mean + 0.5 * variance).exp() * tail
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Densities integrate to one, and scores are ∫ (F(t) − [t ≥ y])² dt, by the trapezium rule.
    #[test]
    fn scores_are_their_integrals() {
        let cases: [(Link, f64, f64, f64); 2] = [(Link::Identity, 1.3, 0.4, 0.49), (Link::Log, 2.2, 0.5, 0.16)];
        for (link, y, mean, variance) in cases {
            let (low, high, n) = (if link == Link::Log { 1e-9 } else { -8.0 }, 20.0, 200_000);
            let h = (high - low) / n as f64;
            let (mut score, mut mass, mut first) = (0.0, 0.0, 0.0);
            for i in 0..n {
                let t = low + (i as f64 + 0.5) * h;
                let f = normal::cdf((link.apply(t) - mean) / variance.sqrt());
                score += h * (f - f64::from(t >= y)).powi(2);
                let p = link.log_density(t, mean, variance).exp();
                (mass, first) = (mass + h * p, first + h * p * t);
            }
            assert!((score - link.crps(y, mean, variance)).abs() < 1e-3, "{link:?} {score}");
            assert!((mass - 1.0).abs() < 1e-6 && (first - link.moments(mean, variance).0).abs() < 1e-5);
        }
    }
}
