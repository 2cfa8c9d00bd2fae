//! What is done to a target before it is fitted, and how predictions come back: means and variances by the moments of
//! the distribution, interval ends by the monotone function itself.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::normal;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A monotone function of the target under which it is modelled as normal. As text it is `identity`, `log`,
/// `box_cox(0.5)` or `yeo_johnson(0.5, centre, width, reach)`, without the last number where it is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Link {
    /// The target as it is.
    #[default]
    Identity,
    /// Its logarithm; the target must be positive. Predictions are log-normal.
    Log,
    /// A power between 0 and 2 of a target that is not negative: (yᵖ − 1)/p. What would be below zero is zero.
    BoxCox {
        /// The power.
        power: f64,
    },
    /// Yeo and Johnson's powers of (y − centre)/width, for targets of any sign: ((1 + t)ᵖ − 1)/p above the centre, and
    /// −((1 − t)²⁻ᵖ − 1)/(2 − p) below, with p between 0 and 2. Farther from the centre than `reach` it goes on straight: a
    /// tail of large values is drawn in as far as there were any, and what lies beyond does not explode on the way back.
    YeoJohnson {
        /// The power; 1 changes nothing, smaller ones draw in a long tail of large values, larger ones one of small.
        power: f64,
        /// The middle of the targets.
        centre: f64,
        /// Their spread.
        width: f64,
        /// How many widths from the centre it begins to be straight.
        reach: f64,
    },
}

/// ((1 + t)ᵖ − 1)/p, and its limit ln(1 + t) at 0, for t between 0 and r; beyond, a line of the slope at r.
fn power(t: f64, p: f64, r: f64) -> f64 {
    if t > r {
        return power(r, p, r) + (t - r) * ((p - 1.0) * r.ln_1p()).exp();
    }
    if p == 0.0 { t.ln_1p() } else { (p * t.ln_1p()).exp_m1() / p }
}

/// The t ≥ 0 of which [`power`] is z.
fn root(z: f64, p: f64, r: f64) -> f64 {
    if r.is_finite() {
        let most = power(r, p, r);
        if z > most {
            return r + (z - most) * ((1.0 - p) * r.ln_1p()).exp();
        }
    }
    if p == 0.0 { z.exp_m1() } else { ((p * z).ln_1p() / p).exp_m1() }
}

impl Link {
    /// From the target's units to those in which it is normal.
    pub fn apply(self, y: f64) -> f64 {
        match self {
            Self::Identity => y,
            Self::Log => y.ln(),
            Self::BoxCox { power: p } => (p * y.ln()).exp_m1() / p,
            Self::YeoJohnson { power: p, centre, width, reach } => match (y - centre) / width {
                t if t >= 0.0 => power(t, p, reach),
                t => -power(-t, 2.0 - p, reach),
            },
        }
    }

    /// The dataset of the linked target.
    pub(crate) fn of(self, data: &Dataset) -> Result<Dataset> {
        match self {
            Self::Identity => Ok(data.clone()),
            _ => data.clone().map_target(|y| self.apply(y)),
        }
    }

    /// Back to the target's units.
    pub fn undo(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Log => z.exp(),
            Self::BoxCox { power: p } if p * z <= -1.0 => 0.0,
            Self::BoxCox { power: p } => ((p * z).ln_1p() / p).exp(),
            Self::YeoJohnson { power: p, centre, width, reach } => {
                centre + width * if z >= 0.0 { root(z, p, reach) } else { -root(-z, 2.0 - p, reach) }
            }
        }
    }

    /// Mean and variance in the target's units of what is normal with these: for a logarithm those of the log-normal
    /// distribution, exp(m + v/2) and (exp(v) − 1) exp(2m + v); for powers by quadrature.
    pub fn moments(self, mean: f64, variance: f64) -> (f64, f64) {
        match self {
            Self::Identity => (mean, variance),
            Self::Log => {
                let centre = (mean + 0.5 * variance).exp();
                (centre, variance.exp_m1() * centre * centre)
            }
            _ => {
                // The trapezium rule under a normal density: far beyond double precision for smooth functions.
                let (sd, middle) = (variance.sqrt(), self.undo(mean));
                let nodes = (-STEPS..=STEPS).map(|i| f64::from(i) * STEP);
                let (mut first, mut second) = (0.0, 0.0);
                for u in nodes {
                    let (weight, off) = (STEP * normal::density(u), self.undo(mean + sd * u) - middle);
                    first += weight * off;
                    second += weight * off * off;
                }
                let variance = second - first * first;
                (middle + first, if variance.is_nan() { f64::INFINITY } else { variance.max(0.0) })
            }
        }
    }

    /// What variance the mean in the target's units is taken over: all of it, but for Yeo and Johnson's that of the noise alone.
    /// Where f itself may be anything, the mean over f would be that of the longer tail, which nobody knows.
    pub(crate) fn mean_over(self, variance: f64, noise: f64) -> f64 {
        if matches!(self, Self::YeoJohnson { .. }) { noise } else { variance }
    }

    /// The end of an interval: z standard deviations above the mean, in the target's units.
    pub fn quantile(self, mean: f64, variance: f64, z: f64) -> f64 {
        self.undo(mean + z * variance.sqrt())
    }

    /// The probability of a value at or below y, where its linked value is normal with this mean and variance.
    pub fn cdf(self, y: f64, mean: f64, variance: f64) -> f64 {
        match self {
            Self::Log if y <= 0.0 => 0.0,
            Self::BoxCox { .. } if y < 0.0 => 0.0,
            _ => normal::cdf((self.apply(y) - mean) / variance.sqrt()),
        }
    }

    /// ln |dz/dy|: what a log density gains on the way back to the target's units.
    pub fn log_jacobian(self, y: f64) -> f64 {
        match self {
            Self::Identity => 0.0,
            Self::Log => -y.ln(),
            Self::BoxCox { power } => (power - 1.0) * y.ln(),
            Self::YeoJohnson { power, centre, width, reach } => {
                let t = (y - centre) / width;
                (power - 1.0) * t.signum() * t.abs().min(reach).ln_1p() - width.ln()
            }
        }
    }

    /// The log density of y, where its linked value is normal with this mean and variance.
    pub fn log_density(self, y: f64, mean: f64, variance: f64) -> f64 {
        if matches!(self, Self::BoxCox { .. }) && y <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let z = (self.apply(y) - mean) / variance.sqrt();
        -0.5 * (z * z + variance.ln() + (2.0 * std::f64::consts::PI).ln()) + self.log_jacobian(y)
    }

    /// The continuous ranked probability score of y: 0 is perfect, and it is in the target's units.
    pub fn crps(self, y: f64, mean: f64, variance: f64) -> f64 {
        if matches!(self, Self::BoxCox { .. }) && y < 0.0 {
            return self.crps(0.0, mean, variance) - y;
        }
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
            _ => {
                // ∫ Φ² below y and ∫ (1 − Φ)² above it, over the target's own units, by the midpoint rule.
                let reach = f64::from(STEPS) * STEP;
                let part = |from: f64, to: f64, sign: f64| -> f64 {
                    let h = (to - from) / f64::from(PARTS);
                    let end = |i: i32| self.undo(mean + sd * (from + h * f64::from(i)));
                    let share = |i: i32| normal::cdf(sign * (from + h * (f64::from(i) + 0.5))).powi(2);
                    (0..PARTS).map(|i| share(i) * (end(i + 1) - end(i))).sum()
                };
                part((-reach).min(z), z, 1.0) + part(z, reach.max(z), -1.0)
            }
        }
    }
}

/// Nodes of the quadrature on each side, and the distance between them in standard deviations.
const STEPS: i32 = 40;
const STEP: f64 = 0.2;
/// Parts of the integral of a score on each side of the value.
const PARTS: i32 = 200;

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => write!(f, "identity"),
            Self::Log => write!(f, "log"),
            Self::BoxCox { power } => write!(f, "box_cox({power})"),
            Self::YeoJohnson { power, centre, width, reach } => {
                write!(f, "yeo_johnson({power}, {centre}, {width}")?;
                if reach.is_finite() { write!(f, ", {reach})") } else { write!(f, ")") }
            }
        }
    }
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        link.to_string()
    }
}

impl TryFrom<String> for Link {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let unknown = || Error::option("transform", format!("not a transform: {text}"));
        let (name, rest) = text.split_once('(').unwrap_or((&text, ")"));
        let numbers = rest.strip_suffix(')').ok_or_else(unknown)?.split(',').filter(|s| !s.trim().is_empty());
        let numbers: Vec<f64> =
            numbers.map(|s| s.trim().parse().map_err(|_| unknown())).collect::<Result<Vec<f64>>>()?;
        let fine = |p: f64| (0.0..=2.0).contains(&p);
        match (name, &numbers[..]) {
            ("identity", []) => Ok(Self::Identity),
            ("log", []) => Ok(Self::Log),
            ("box_cox", &[power]) if fine(power) && power > 0.0 => Ok(Self::BoxCox { power }),
            ("yeo_johnson", &[power, centre, width, ref reach @ ..]) => {
                let reach = match reach {
                    [] => f64::INFINITY,
                    [reach] => *reach,
                    _ => return Err(unknown()),
                };
                let usable = fine(power) && centre.is_finite() && width > 0.0 && width.is_finite() && reach > 0.0;
                if usable { Ok(Self::YeoJohnson { power, centre, width, reach }) } else { Err(unknown()) }
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Densities integrate to one, and scores are ∫ (F(t) − [t ≥ y])² dt, by the trapezium rule.
    #[test]
    fn scores_are_their_integrals() {
        let skewed = |power| Link::YeoJohnson { power, centre: 0.7, width: 1.5, reach: f64::INFINITY };
        let straight = Link::YeoJohnson { power: 0.2, centre: 0.7, width: 1.5, reach: 0.5 };
        let cases: [(Link, f64, f64, f64); 8] = [
            (Link::Identity, 1.3, 0.4, 0.49),
            (Link::Log, 2.2, 0.5, 0.16),
            (Link::BoxCox { power: 0.5 }, 3.0, 2.5, 0.16),
            (skewed(0.0), 2.2, 0.5, 0.16),
            (skewed(0.4), -1.0, -0.3, 0.49),
            (skewed(1.3), 1.0, 0.3, 0.49),
            (skewed(2.0), 0.2, 0.1, 0.09),
            (straight, 2.0, 0.5, 0.16),
        ];
        for (link, y, mean, variance) in cases {
            let positive = matches!(link, Link::Log | Link::BoxCox { .. });
            let (low, high, n) = (if positive { 1e-9 } else { -20.0 }, 40.0, 400_000);
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
            assert!((mass - 1.0).abs() < 1e-6 && (first - link.moments(mean, variance).0).abs() < 1e-5, "{link:?}");
            let second: f64 = (0..n)
                .map(|i| low + (i as f64 + 0.5) * h)
                .map(|t| h * link.log_density(t, mean, variance).exp() * (t - first).powi(2))
                .sum();
            assert!((second - link.moments(mean, variance).1).abs() < 1e-4, "{link:?} {second}");
        }
    }

    #[test]
    fn what_is_done_is_undone() {
        for power in [0.0, 0.3, 1.0, 1.7, 2.0] {
            for reach in [0.3, 15.0, f64::INFINITY] {
                let link = Link::YeoJohnson { power, centre: -3.0, width: 0.2, reach };
                for y in [-40.0, -3.1, -3.0, -2.9, 0.0, 25.0] {
                    assert!((link.undo(link.apply(y)) - y).abs() < 1e-9 * (1.0 + y.abs()), "{power} {y}");
                    let slope = (link.apply(y + 1e-6) - link.apply(y - 1e-6)) / 2e-6;
                    let told = link.log_jacobian(y).exp();
                    assert!((slope / told - 1.0).abs() < 1e-4, "{power} {reach} {y}: {slope} {told}");
                }
                assert_eq!(Link::try_from(link.to_string()).unwrap(), link);
            }
        }
        // ln(1 + t) has slope ¼ at its reach of 3, and so back again it rises by 4 for each unit beyond.
        let link = Link::YeoJohnson { power: 0.0, centre: 0.0, width: 1.0, reach: 3.0 };
        assert!((link.undo(40.0) - link.undo(20.0) - 80.0).abs() < 1e-9);
        let root = Link::BoxCox { power: 0.5 };
        assert!((root.undo(root.apply(7.0)) - 7.0).abs() < 1e-12 && root.undo(-5.0) == 0.0);
        assert_eq!(serde_json::to_string(&root).unwrap(), "\"box_cox(0.5)\"");
        assert_eq!(serde_json::to_string(&Link::Log).unwrap(), "\"log\"");
        for bad in [
            "",
            "logs",
            "box_cox(3)",
            "box_cox(0)",
            "box_cox(0.5",
            "yeo_johnson(1, 2)",
            "log(2)",
            "yeo_johnson(1, 2, 3, 0)",
        ] {
            assert!(Link::try_from(bad.to_string()).is_err(), "{bad}");
        }
    }
}
