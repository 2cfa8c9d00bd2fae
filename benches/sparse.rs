#![allow(clippy::unwrap_used)]
use covary::kernel::Task;
use covary::linalg::{Cholesky, Matrix, product};
use covary::program::{Inputs, Program, Scratch};
use covary::{Kernel, Points, Threads};
use rand::{RngExt, SeedableRng};
use std::time::Instant;
fn time(name: &str, flop: f64, mut f: impl FnMut()) {
    let mut v = vec![];
    for _ in 0..5 {
        let s = Instant::now();
        f();
        v.push(s.elapsed().as_secs_f64());
    }
    v.sort_by(f64::total_cmp);
    println!("{name}: median {:.1} ms min {:.1} ms, {:.1} GF/s", 1e3 * v[2], 1e3 * v[0], flop / v[2] * 1e-9);
}
fn main() {
    let (m, c, d) = (1000usize, 2153usize, 4usize);
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let mut pts = |n: usize| Points::from_values(n, d, (0..d * n).map(|_| rng.random_range(-1.7..1.7)).collect()).unwrap();
    let (x, z) = (Inputs::new(pts(c)), Inputs::new(pts(m)));
    let kernel = Kernel::default_network(Task::Table).bind_to(d).unwrap();
    let fan = kernel.fan_in();
    let theta: Vec<f64> = kernel.values().iter().zip(fan).map(|(v, f)| f.map_or(*v, |n| 1.0 / n as f64)).collect();
    let p = Program::compile(&kernel, d).unwrap();
    let mut k = Matrix::zeros(m, c);
    let mut kt = Matrix::zeros(c, m);
    let s = &mut Scratch::default();
    let t = Threads::All;
    let (st, stt) = (k.stride(), kt.stride());
    let nmm = (m * m * c) as f64;
    time("cross zx", 0.0, || p.cross(&theta, &z, &x, k.values_mut(), st, s, t).unwrap());
    time("cross xz", 0.0, || p.cross(&theta, &x, &z, kt.values_mut(), stt, s, t).unwrap());
    let mut g = vec![0.0; theta.len()];
    let mut dz = vec![0.0; m * d];
    let adj = |j: usize, i: usize, o: &mut [f64]| o.copy_from_slice(&k.column(j)[i..i + o.len()]);
    time("pull zx", 0.0, || p.pullback_cross(&theta, (&z, &x), adj, &mut g, (Some(&mut dz), None), s, t).unwrap());
    let adj = |j: usize, i: usize, o: &mut [f64]| o.copy_from_slice(&kt.column(j)[i..i + o.len()]);
    time("pull xz", 0.0, || p.pullback_cross(&theta, (&x, &z), adj, &mut g, (None, Some(&mut dz)), s, t).unwrap());
    let mut sq = Matrix::zeros(m, m);
    let f = Cholesky::factor(Matrix::zeros(m, m), |a| a.clone_from(&Matrix::from_fn(m, m, |i, j| if i == j { 2.0 } else { 1.0 / (1.0 + (i as f64 - j as f64).abs()) })), t).unwrap();
    let full = Matrix::from_fn(m, m, |i, j| (i * j % 7) as f64);
    let mut out = Matrix::zeros(m, c);

    let mut outt = Matrix::zeros(c, m);
    let c0 = sq.clone();
    for w in [64usize, 128, 192, 256, 512] {
        println!("width {w}");
        time("tsquare par", nmm, || product::tsquare_par(&mut sq, &kt, w, true));
        time("tsquare seq", nmm, || product::tsquare_par(&mut sq, &kt, w, false));
        time("tsquare own", nmm, || product::tsquare_own(&mut sq, &kt, w, t));
        unsafe { std::env::set_var("PANEL", w.to_string()) }
        time("tmultiply own", 2.0 * nmm, || product::multiply(&mut outt, &kt, &full, t));
    }
    time("tmultiply par", 2.0 * nmm, || product::multiply_par(&mut outt, &kt, &full));
    time("multiply par", 2.0 * nmm, || product::multiply_par(&mut out, &full, &k));
    time("tsolve par", nmm, || product::tsolve_par(&f, &mut outt));
    time("solve par", nmm, || product::solve_par(&f, &mut out));
    let (mut a, mut b, mut e) = (c0.clone(), c0.clone(), c0.clone());
    product::tsquare_par(&mut a, &kt, 192, true);
    product::tsquare_par(&mut b, &kt, 192, false);
    product::tsquare_own(&mut e, &kt, 64, Threads::One);
    let same = |a: &Matrix, b: &Matrix| (0..m).all(|j| (j..m).all(|i| a[(i, j)].to_bits() == b[(i, j)].to_bits()));
    println!("same bits: {} {}", same(&a, &b), same(&a, &e));
}
