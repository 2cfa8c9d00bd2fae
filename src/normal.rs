//! The standard normal distribution: density, distribution function, quantiles. Seen by every module, sees none.

/// φ(z)
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Φ(z) = erfc(−z/√2)/2
pub fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The z at which Φ(z) = p; infinite at 0 and 1, NaN outside.
///
/// ```
/// assert!((covary::normal::quantile(0.975) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    // A first guess (Abramowitz and Stegun 26.2.23, wrong by less than 5e-4), then Halley's steps.
    let t = (-2.0 * p.ln()).sqrt();
    let up = 2.515517 + t * (0.802853 + t * 0.010328);
    let down = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut z = up / down - t;
    for _ in 0..3 {
        let e = (cdf(z) - p) / density(z);
        z -= e / (1.0 + 0.5 * z * e);
    }
    z
}

/// How many standard deviations a central interval of this probability reaches to each side: 1.96 for 0.95.
pub fn reach(probability: f64) -> f64 {
    -quantile(0.5 * (1.0 - probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_undo_the_distribution() {
        for p in [1e-300, 1e-20, 1e-5, 0.01, 0.2, 0.5, 0.7, 0.99, 1.0 - 1e-12] {
            // What the difference 1 − p rounds off is lost before we see it.
            let tolerance = if p > 0.5 { 1e-15 / (1.0 - p) } else { 1e-11 };
            assert!((cdf(quantile(p)) / p - 1.0).abs() < tolerance.max(1e-11), "{p}");
        }
        assert!((reach(0.8) - 1.2815515655446004).abs() < 1e-12);
        assert!(quantile(1.0) == f64::INFINITY && quantile(2.0).is_nan());
    }
}
