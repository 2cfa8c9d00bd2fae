//! Whatever is built is a kernel.

use crate::kit::{check_kernel, every_primitive, gram, random_kernel, rng, with_random_values};
use covary::program::{Inputs, Program, Scratch};
use covary::{Kernel, Points, Threads};
use rand::RngExt;

#[test]
fn every_primitive_is_a_kernel() {
    for d in [1, 3] {
        for kernel in every_primitive(d) {
            check_kernel(&kernel, d);
        }
    }
}

#[test]
fn whatever_is_built_is_a_kernel() {
    for seed in 0..220 {
        let kernel = random_kernel(seed);
        check_kernel(&kernel, 1 + (seed % 3) as usize);
    }
}

#[test]
fn the_paper_networks_are_kernels() {
    let series = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1").unwrap();
    check_kernel(&with_random_values(&series, 1, 5), 1);
    check_kernel(&with_random_values(&Kernel::paper_regression(), 3, 6), 3);
    let complex = Kernel::nkn("EXPI, RBF, EXPI, RBF", "Linear8-Product4-Linear4-Product2-Linear1").unwrap();
    check_kernel(&with_random_values(&complex, 2, 7), 2);
    let with_exp = Kernel::nkn("LIN, RBF", "Linear2-Exp-Linear1").unwrap();
    check_kernel(&with_random_values(&with_exp, 2, 8), 2);
}

#[test]
fn equal_bits_for_one_or_more_threads() {
    let kernel = with_random_values(&Kernel::paper_regression(), 3, 1);
    let program = Program::compile(&kernel, 3).unwrap();
    let mut rng = rng(4);
    let n = 331;
    let x = Points::from_values(n, 3, (0..3 * n).map(|_| rng.random_range(-2.0..2.0)).collect()).unwrap();
    let x = Inputs::new(x);
    let adjoint = |j: usize, i: usize, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(k, o)| *o = ((i + k) as f64 * 0.1 + j as f64).sin());
    };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let k = gram(&program, &kernel.values(), &x, Threads::All);
            let (mut g, mut dx) = (vec![0.0; program.parameters()], vec![0.0; 3 * n]);
            let scratch = &mut Scratch::default();
            program
                .pullback_gram(&kernel.values(), &x, adjoint, &mut g, Some(&mut dx), scratch, Threads::All)
                .unwrap();
            (k, g, dx)
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

/// On a regular grid, also with gaps, stationary parts are computed once a lag; the values and gradients are the same to rounding.
#[test]
fn shared_lags_change_nothing() {
    let at = |i: i32| -1.7 + 0.06 * f64::from(i);
    let whole: Vec<f64> = (0..57).map(at).collect();
    let gaps: Vec<f64> = (0..75).filter(|i| ![21, 22, 23].contains(i) && !(40..55).contains(i)).map(at).collect();
    let grids = [whole, gaps].map(|x| Points::from_column(&x).unwrap());
    let networks = [
        "nkn(2 LIN, 2 PER, 2 RBF, 2 RQ; Linear8-Product4-Linear4-Product2-Linear1)",
        "RBF * LIN + PER + WN",
        "nkn(EXPI, RBF, LIN; Linear4-Product2-Linear1)",
        "RBF + C",
        "exp(PER * COS) * LIN + MAT32 * PER",
        "LIN * LIN",
    ];
    let fixed = networks.iter().map(|t| with_random_values(&t.parse().unwrap(), 1, 9));
    let random = (0..60).map(|seed| random_kernel(3 * seed));
    let kernels: Vec<Kernel> = fixed.chain(random).collect();
    for (grid, kernel) in grids.iter().flat_map(|grid| kernels.iter().map(move |kernel| (grid, kernel))) {
        let theta = kernel.values();
        let program = Program::compile(kernel, 1).unwrap();
        let (with, without) = (Inputs::new(grid.clone()), Inputs::without_lags(grid.clone()));
        let (a, b) = (gram(&program, &theta, &with, Threads::One), gram(&program, &theta, &without, Threads::One));
        let size = (0..57).map(|i| a[(i, i)].abs()).fold(1.0, f64::max);
        for j in 0..57 {
            for (a, b) in a.column(j).iter().zip(b.column(j)) {
                // MAT12 and ARCCOS0 have a kink at the origin, where the lags' rounding shows as a square root.
                assert!((a - b).abs() <= 1e-11 * size, "{kernel}: {a} {b}");
            }
        }
        let adjoint = |j: usize, i: usize, out: &mut [f64]| {
            out.iter_mut().enumerate().for_each(|(k, o)| *o = ((i + k) as f64 + 3.0 * j as f64).cos());
        };
        let gradient = |x: &Inputs| {
            let mut g = vec![0.0; program.parameters()];
            let scratch = &mut Scratch::default();
            program.pullback_gram(&theta, x, adjoint, &mut g, None, scratch, Threads::One).unwrap();
            g
        };
        let (g, h) = (gradient(&with), gradient(&without));
        let size = h.iter().fold(size, |m, v| m.max(v.abs()));
        for (a, b) in g.iter().zip(&h) {
            assert!((a - b).abs() <= 1e-10 * size, "{kernel}: {g:?} {h:?}");
        }
    }
}
