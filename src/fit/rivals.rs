//! The plain kernels that compete with a network over a table. They cost little, and where a network has too many ways to
//! go on beyond the data, straight lines, parabolas and sums of curves of one column each go on sensibly.

use super::LARGE;
use crate::kernel::{Kernel, Kind};

/// Beyond this many columns there is no sum of one curve a column: it would cost more than a network.
const MOST_CURVES: usize = 20;

/// The rivals for a table of this many rows and columns; fewer where a fit takes long.
pub(super) fn rivals(n: usize, d: usize) -> Vec<Kernel> {
    let (lin, rbf) = (Kernel::lin, Kernel::rbf);
    let mut all = vec![rbf(), Kernel::matern52(), lin() + Kernel::matern52()];
    if n < LARGE {
        all.push(lin() + rbf());
        all.push(lin() + Kernel::primitive(Kind::Mat32));
        all.push(Kernel::sum([lin(), lin() * lin(), rbf()]));
        if (2..=MOST_CURVES).contains(&d) {
            let columns: Vec<Vec<usize>> = (0..d).map(|c| vec![c]).collect();
            all.push(lin() + Kernel::additive(&columns));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_differ_and_fit_the_columns() {
        for (n, d) in [(2, 1), (50, 1), (50, 2), (50, 20), (50, 21), (5000, 3)] {
            let all = rivals(n, d);
            assert!(all.iter().all(|k| k.bind_to(d).is_ok()), "{n} {d}");
            assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])), "{n} {d}");
        }
        assert_eq!(rivals(50, 2)[6], "LIN + RBF[0] + RBF[1]".parse().unwrap());
        assert_eq!(rivals(50, 2)[5], "LIN + LIN * LIN + RBF".parse().unwrap());
    }
}
