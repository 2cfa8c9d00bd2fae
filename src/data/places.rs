//! Where the values of a column stand that ascends in equal steps, some of which may be left out: months of which a few are
//! missing, say.

/// The places of values, counted in steps from the first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Places {
    at: Vec<usize>,
    /// The row after the last that follows without a gap.
    ends: Vec<usize>,
    step: f64,
    runs: usize,
}

/// The most places: what is further apart is no series.
const MOST: usize = 1 << 20;
/// How far a distance between neighbours may be from a multiple of the shortest, as a part of it.
const OFF: f64 = 1e-6;

impl Places {
    /// By the shortest step; none where other steps are not multiples of it. How well that fits, [`Places::off`] says.
    pub fn of(x: &[f64]) -> Option<Self> {
        let n = x.len();
        let steps = || x.windows(2).map(|w| w[1] - w[0]);
        let shortest = steps().fold(f64::INFINITY, f64::min);
        if !(shortest > 0.0 && shortest.is_finite()) {
            return None;
        }
        let (mut at, mut ends) = (vec![0usize], vec![n; n]);
        let (mut begin, mut runs) = (0, 1);
        for (row, step) in (1..n).zip(steps()) {
            let wide = step / shortest;
            let place = at[row - 1].saturating_add(wide.round() as usize);
            if (wide - wide.round()).abs() > OFF * wide || place >= MOST {
                return None;
            }
            at.push(place);
            if wide > 1.5 {
                ends[begin..row].fill(row);
                (begin, runs) = (row, runs + 1);
            }
        }
        let step = (x[n - 1] - x[0]) / at[n - 1] as f64;
        Some(Self { at, ends, step, runs })
    }

    /// The distance between places.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Runs without a gap.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The last place.
    pub fn last(&self) -> usize {
        self.at.last().copied().unwrap_or(0)
    }

    /// How far the values are from their places at most.
    pub fn off(&self, x: &[f64]) -> f64 {
        self.values(x[0], self.step).zip(x).map(|(place, v)| (v - place).abs()).fold(0.0, f64::max)
    }

    /// The same places from another first one, with another step.
    pub fn values(&self, first: f64, step: f64) -> impl Iterator<Item = f64> {
        self.at.iter().map(move |&at| first + step * at as f64)
    }

    /// Places from a column to a row that does not come before it.
    #[inline(always)]
    pub fn lag(&self, row: usize, column: usize) -> usize {
        self.at[row] - self.at[column]
    }

    /// The row after the last whose lags follow that of this one.
    #[inline(always)]
    pub fn end(&self, row: usize) -> usize {
        self.ends[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_with_gaps_have_their_places() {
        // As decimal years of eleven digits after the point, three of them missing.
        let months: Vec<usize> = (0..90).filter(|m| ![20, 21, 60].contains(m)).collect();
        let written: Vec<f64> = months.iter().map(|&m| ((1958.0 + m as f64 / 12.0) * 1e11).round() / 1e11).collect();
        let places = Places::of(&written).unwrap();
        assert_eq!((&places.at, places.last(), places.runs()), (&months, 89, 3));
        assert!((places.step() * 12.0 - 1.0).abs() < 1e-10 && places.off(&written) < 1e-10);
        assert_eq!([0, 19, 20, 57, 58, 86].map(|row| places.end(row)), [20, 20, 58, 58, 87, 87]);
        assert_eq!((places.lag(20, 19), places.lag(86, 0), places.lag(5, 5)), (3, 89, 0));
    }

    #[test]
    fn what_has_no_step_in_common_has_no_places() {
        assert!(Places::of(&[0.0, 1.0, 2.0, 4.5]).is_none());
        assert!(Places::of(&[0.0, 1.0, 2.0, 2.0]).is_none());
        assert!(Places::of(&[2.0, 1.0, 0.0]).is_none());
        assert!(Places::of(&[]).is_none() && Places::of(&[1.0]).is_none());
        assert!(Places::of(&[0.0, 1.0, 2e6]).is_none());
        assert!(Places::of(&[-f64::MAX, 0.0, 1.0, f64::MAX]).is_none());
        assert!(
            Places::of(&[0.0, 1.0, 2.0 + 1e-9, 4.0]).is_some_and(|p| p.off(&[0.0, 1.0, 2.0 + 1e-9, 4.0]) > 5e-10)
        );
    }
}
