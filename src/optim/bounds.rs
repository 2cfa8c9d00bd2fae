//! A box that the search stays inside. Coordinates at a wall with the gradient pushing outward are held; all others
//! are free.

use serde::{Deserialize, Serialize};

use super::Point;
use crate::error::{Error, ErrorKind, Result};

/// The box that theta stays in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum Bounds {
    /// None.
    #[default]
    Free,
    /// The same lowest and highest value for every coordinate.
    All(f64, f64),
    /// Lowest and highest value of each coordinate.
    Each(Vec<(f64, f64)>),
}

impl Bounds {
    fn of(&self, i: usize) -> (f64, f64) {
        match self {
            Self::Free => (f64::NEG_INFINITY, f64::INFINITY),
            Self::All(low, high) => (*low, *high),
            Self::Each(each) => each[i],
        }
    }

    pub(super) fn check(&self, n: usize) -> Result<()> {
        if let Self::Each(each) = self
            && each.len() != n
        {
            return Err(ErrorKind::Size { what: "bounds", expected: n, found: each.len() }.into());
        }
        match (0..n).map(|i| self.of(i)).find(|(low, high)| low.is_nan() || high.is_nan() || low > high) {
            Some((low, high)) => Err(Error::option("bounds", format!("no room between {low} and {high}"))),
            None => Ok(()),
        }
    }

    /// Moves theta to the nearest point of the box.
    pub(super) fn project(&self, theta: &mut [f64]) {
        for (i, v) in theta.iter_mut().enumerate() {
            let (low, high) = self.of(i);
            *v = v.clamp(low, high);
        }
    }

    /// d ← P(θ + d) − θ, so that θ + s·d is inside for every s in 0..=1.
    pub(super) fn shorten(&self, theta: &[f64], direction: &mut [f64]) {
        if *self == Self::Free {
            return;
        }
        for (i, d) in direction.iter_mut().enumerate() {
            let (low, high) = self.of(i);
            *d = (theta[i] + *d).clamp(low, high) - theta[i];
        }
    }

    /// The largest s for which θ + s·d is inside.
    pub(super) fn reach(&self, theta: &[f64], direction: &[f64]) -> f64 {
        let to_wall = |(i, &d): (usize, &f64)| {
            let (low, high) = self.of(i);
            let wall = if d > 0.0 { high } else { low };
            if d == 0.0 { f64::INFINITY } else { (wall - theta[i]) / d }
        };
        direction.iter().enumerate().map(to_wall).fold(f64::INFINITY, f64::min)
    }

    /// Which coordinates a wall holds back.
    pub(super) fn held(&self, at: &Point) -> Vec<bool> {
        let held = |(i, &g): (usize, &f64)| {
            let (low, high) = self.of(i);
            let x = at.theta[i];
            // A step that ends at a wall may miss it by rounding.
            let touch = 1e-12 * (1.0 + x.abs());
            (g > 0.0 && x - low <= touch) || (g < 0.0 && high - x <= touch)
        };
        at.gradient.iter().enumerate().map(held).collect()
    }

    /// The largest free entry of the gradient.
    pub(super) fn gradient_norm(&self, at: &Point) -> f64 {
        at.gradient.iter().zip(self.held(at)).filter(|(_, held)| !held).fold(0.0, |m, (g, _)| g.abs().max(m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_cut_to_the_box() {
        let bounds = Bounds::Each(vec![(0.0, 1.0), (f64::NEG_INFINITY, 2.0), (-4.0, f64::INFINITY)]);
        let theta = [0.5, 0.0, 0.0];
        let mut direction = [3.0, 0.5, -1.0];
        assert_eq!(bounds.reach(&theta, &direction), 0.5 / 3.0);
        bounds.shorten(&theta, &mut direction);
        assert_eq!(direction, [0.5, 0.5, -1.0]);
        assert_eq!(bounds.reach(&theta, &direction), 1.0);
        assert_eq!(bounds.reach(&theta, &[0.0, 0.5, -1.0]), 4.0);
        assert_eq!(Bounds::Free.reach(&theta, &direction), f64::INFINITY);
    }
}
