//! The outermost rows of the data. How a candidate predicts them from all other rows says how it extrapolates, which
//! leaving out single rows does not.

use crate::data::Points;
use crate::linalg::{Matrix, symmetric_eigen};
use crate::threads::Threads;

/// Rows are looked at along so many principal components.
const COMPONENTS: usize = 3;
/// One of so many rows is at an end.
const SHARE: usize = 10;
/// Ends of fewer rows tell nothing.
const FEWEST: usize = 3;

/// The first and the last tenth of the rows along each of the leading principal components of standardised inputs.
pub(super) fn ends(x: &Points) -> Vec<Vec<usize>> {
    let (n, d, m) = (x.n(), x.d(), x.n() / SHARE);
    if m < FEWEST {
        return vec![];
    }
    let mean: Vec<f64> = (0..d).map(|c| x.column(c).iter().sum::<f64>() / n as f64).collect();
    let mut covariance = Matrix::zeros(d, d);
    for j in 0..d {
        for i in j..d {
            let pairs = x.column(i).iter().zip(x.column(j));
            covariance[(i, j)] = pairs.map(|(a, b)| (a - mean[i]) * (b - mean[j])).sum::<f64>() / n as f64;
        }
    }
    let Some(eigen) = symmetric_eigen(&covariance, Threads::One) else { return vec![] };
    let mut blocks = vec![];
    for component in (d - COMPONENTS.min(d)..d).rev() {
        let mut along = vec![0.0; n];
        for c in 0..d {
            let weight = eigen.vectors[(c, component)];
            along.iter_mut().zip(x.column(c)).for_each(|(a, v)| *a += weight * v);
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| along[a].total_cmp(&along[b]));
        blocks.push(order[..m].to_vec());
        blocks.push(order[n - m..].to_vec());
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_rows_are_at_the_ends() {
        // Long along (1, 1), short across; rows in no order.
        let row = |i: usize| {
            let t = ((i * 37) % 100) as f64;
            [t + (t * 1.3).sin(), t - (t * 1.3).sin()]
        };
        let x = Points::from_rows(&(0..100).map(row).collect::<Vec<_>>()).unwrap();
        let blocks = ends(&x);
        assert_eq!(blocks.len(), 4);
        let place = |i: &usize| (i * 37) % 100;
        let (a, b): (Vec<usize>, Vec<usize>) =
            (blocks[0].iter().map(place).collect(), blocks[1].iter().map(place).collect());
        let (low, high) = if a[0] < 50 { (a, b) } else { (b, a) };
        assert!(low.len() == 10 && low.iter().all(|&t| t < 10), "{low:?}");
        assert!(high.len() == 10 && high.iter().all(|&t| t >= 90), "{high:?}");
    }

    #[test]
    fn few_rows_have_no_ends() {
        let x = Points::from_column(&(0..29).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert!(ends(&x).is_empty());
    }
}
