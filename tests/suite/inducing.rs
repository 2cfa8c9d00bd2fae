//! Where inducing points are placed: different rows or clusters, the same for the same seed.

use crate::kit::random_points;
use crate::sparse::{network, targets};
use covary::Points;
use covary::gp::{InMemory, Placing, check_inducing, place_inducing, sample_rows};
use covary::program::Program;

#[test]
fn placed_points_are_different_rows_or_clusters_and_repeat_with_the_seed() {
    let (x, kernel) = (random_points(300, 2, 4), network(2));
    let program = Program::compile(&kernel, 2).unwrap();
    let theta = kernel.values();
    let rows: Vec<Vec<f64>> = (0..300).map(|i| x.row(i % 40)).collect();
    let repeated = Points::from_rows(&rows).unwrap();
    for placing in [Placing::KMeans, Placing::GreedyVariance(&program, &theta)] {
        let z = place_inducing(&x, 25, placing, 7).unwrap();
        assert_eq!((z.n(), z.d()), (25, 2));
        assert_eq!(z, place_inducing(&x, 25, placing, 7).unwrap());
        check_inducing(&z, 300).unwrap();
        // Duplicate rows count once.
        for m in [1, 39, 40] {
            let z = place_inducing(&repeated, m, placing, 0).unwrap();
            assert_eq!(z.n(), m);
            check_inducing(&z, 300).unwrap();
        }
        let error = place_inducing(&repeated, 41, placing, 0).unwrap_err();
        assert_eq!(error.to_string(), "inducing: more inducing points than different rows: 41 points, 40 rows");
    }
    let sample = sample_rows(&InMemory::new(&x, &targets(300, 1)).unwrap().in_chunks_of(70), 50, 1).unwrap();
    assert_eq!(sample.n(), 50);
    assert_eq!(sample, sample_rows(&InMemory::new(&x, &targets(300, 1)).unwrap(), 50, 1).unwrap());
}
