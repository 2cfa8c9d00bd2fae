//! What a model says of one value: normal distributions, each under its link, with weights that add up to one.

use super::link::Link;
use crate::normal;

/// One part of a [`Mixture`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Its weight.
    pub weight: f64,
    /// What was done to the target before it was taken as normal.
    pub link: Link,
    /// The mean under the link.
    pub mean: f64,
    /// The variance under the link.
    pub variance: f64,
    /// The variance under the link that the mean in the target's units is taken over: all of it, but for Yeo and Johnson's powers that of the noise alone. Not what was
    /// added where tests have shown the variance too small: a wider distribution of a logarithm has a higher mean, but is no
    /// reason to expect more.
    pub mean_over: f64,
}

impl Part {
    /// Mean and variance in the target's units.
    fn moments(&self) -> (f64, f64) {
        let variance = self.link.moments(self.mean, self.variance).1;
        (self.link.moments(self.mean, self.mean_over).0, variance)
    }
}

/// A mixture of normal distributions, each under its link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mixture {
    /// The parts; their weights add up to one.
    pub parts: Vec<Part>,
}

impl Mixture {
    /// Mean and variance in the target's units.
    pub fn moments(&self) -> (f64, f64) {
        let each = || self.parts.iter().map(|p| (p.weight, p.moments()));
        let mean = each().map(|(w, (m, _))| w * m).sum::<f64>();
        // Variances within the parts, and of their means.
        let variance = each().map(|(w, (m, v))| w * (v + (m - mean).powi(2))).sum();
        (mean, variance)
    }

    /// The probability of a value at or below y.
    pub fn cdf(&self, y: f64) -> f64 {
        self.parts.iter().map(|p| p.weight * p.link.cdf(y, p.mean, p.variance)).sum()
    }

    /// The value below which a share p of the probability lies.
    pub fn quantile(&self, p: f64) -> f64 {
        let z = normal::quantile(p);
        if let [part] = &self.parts[..] {
            return part.link.quantile(part.mean, part.variance, z);
        }
        let ends = || self.parts.iter().map(|part| part.link.quantile(part.mean, part.variance, z));
        // The quantile of a mixture lies between those of its parts.
        let (mut low, mut high) = ends().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), e| (l.min(e), h.max(e)));
        // Parts that hardly count may lie 300 decimal powers away: it takes some two thousand halvings at most.
        loop {
            let middle = 0.5 * low + 0.5 * high;
            if middle.is_nan() || middle <= low || middle >= high {
                break;
            }
            if self.cdf(middle) < p { low = middle } else { high = middle }
        }
        if high.is_finite() && low.is_finite() { 0.5 * (low + high) } else { high }
    }

    /// The log density of y.
    pub fn log_density(&self, y: f64) -> f64 {
        let each: Vec<f64> =
            self.parts.iter().map(|p| p.weight.ln() + p.link.log_density(y, p.mean, p.variance)).collect();
        let largest = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !largest.is_finite() {
            return largest;
        }
        largest + each.iter().map(|l| (l - largest).exp()).sum::<f64>().ln()
    }

    /// The continuous ranked probability score of y: 0 is perfect, and it is in the target's units.
    pub fn crps(&self, y: f64) -> f64 {
        if let [p] = self.parts[..] {
            return p.link.crps(y, p.mean, p.variance);
        }
        // 2 ∫ ([y ≤ q] − τ)(q − y) dτ over quantiles q at τ, by the midpoint rule.
        const LEVELS: usize = 200;
        let at = |i: usize| {
            let level = (i as f64 + 0.5) / LEVELS as f64;
            let q = self.quantile(level);
            (f64::from(y <= q) - level) * (q - y)
        };
        2.0 * (0..LEVELS).map(at).sum::<f64>() / LEVELS as f64
    }

    /// The score of a central interval (share inside, such as 0.95): its width, and 2/(1 − share) times the distance
    /// of a value outside.
    pub fn interval_score(&self, y: f64, share: f64) -> f64 {
        let (low, high) = (self.quantile(0.5 - 0.5 * share), self.quantile(0.5 + 0.5 * share));
        high - low + 2.0 / (1.0 - share) * ((low - y).max(0.0) + (y - high).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Mixture {
        let one = Part { weight: 0.3, link: Link::Identity, mean: 2.0, variance: 0.25, mean_over: 0.25 };
        Mixture {
            parts: vec![one, Part { weight: 0.7, link: Link::Log, mean: 1.0, variance: 0.04, mean_over: 0.04 }],
        }
    }

    /// Mass, moments, quantiles and scores are integrals of the density, by the midpoint rule.
    #[test]
    fn a_mixture_is_its_density() {
        let (m, n, high, y) = (two(), 100_000, 12.0, 2.4);
        let h = high / n as f64;
        let (mut mass, mut first, mut second, mut score) = (0.0, 0.0, 0.0, 0.0);
        for i in 0..n {
            let t = (i as f64 + 0.5) * h;
            let p = h * m.log_density(t).exp();
            (mass, first, second) = (mass + p, first + p * t, second + p * t * t);
            score += h * (m.cdf(t) - f64::from(t >= y)).powi(2);
        }
        let (mean, variance) = m.moments();
        assert!((mass - 1.0).abs() < 1e-4, "{mass}");
        assert!((first - mean).abs() < 1e-3 && (second - first * first - variance).abs() < 1e-3);
        assert!((m.crps(y) - score).abs() < 2e-3, "{} {score}", m.crps(y));
        for p in [0.01, 0.3, 0.5, 0.975] {
            assert!((m.cdf(m.quantile(p)) - p).abs() < 1e-9);
        }
    }

    #[test]
    fn a_part_that_hardly_counts_does_not_move_quantiles_however_far_it_lies() {
        let part =
            |weight, mean, variance| Part { weight, link: Link::Identity, mean, variance, mean_over: variance };
        let m = Mixture { parts: vec![part(1.0 - 1e-15, 2.0, 0.25), part(1e-15, -1e150, 1e290)] };
        for p in [0.025, 0.5, 0.975] {
            let plain = 2.0 + 0.5 * normal::quantile(p);
            assert!((m.quantile(p) - plain).abs() < 1e-9, "{} {plain}", m.quantile(p));
        }
    }

    #[test]
    fn one_part_is_the_plain_distribution() {
        let part = Part { weight: 1.0, link: Link::Log, mean: 1.0, variance: 0.09, mean_over: 0.09 };
        let m = Mixture { parts: vec![part] };
        let direct = Link::Log.quantile(1.0, 0.09, normal::quantile(0.9));
        assert!((m.quantile(0.9) / direct - 1.0).abs() < 1e-12);
        assert!((m.log_density(2.0) - Link::Log.log_density(2.0, 1.0, 0.09)).abs() < 1e-12);
    }
}
