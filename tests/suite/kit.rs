//! What a kernel *is*: `check_kernel` holds it to the slow formula, to differences, to symmetry and to its text.

use covary::kernel::{Activation, Column, Columns, Kind, Param, Side, Unit};
use covary::linalg::{Matrix, symmetric_eigen};
use covary::program::{Inputs, Level, Program, Scratch};
use covary::{Kernel, Points, Threads};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::f64::consts::PI;

/// A generator with a seed.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// n points of d coordinates between −2 and 2.
pub fn random_points(n: usize, d: usize, seed: u64) -> Points {
    let mut rng = rng(seed);
    Points::from_values(n, d, (0..n * d).map(|_| rng.random_range(-2.0..2.0)).collect()).unwrap()
}

/// The kernel by its formula, one pair at a time: complex, as (re, im). `same` says that both are the same row.
pub fn slow(kernel: &Kernel, x: &[f64], z: &[f64], same: bool) -> (f64, f64) {
    let mut known: HashMap<*const Unit, (f64, f64)> = HashMap::new();
    for unit in kernel.units() {
        let of = |k: &Kernel| known[&std::ptr::from_ref(k.unit())];
        let value = match unit.unit() {
            Unit::Primitive(p) => primitive(p, x, z, same),
            Unit::Linear { of: inputs, weights, bias } => {
                let mut sum = (bias.as_ref().map_or(0.0, Param::value_or_default), 0.0);
                for (i, k) in inputs.iter().enumerate() {
                    let w = weights.get(i).map_or(1.0, Param::value_or_default);
                    sum = (sum.0 + w * of(k).0, sum.1 + w * of(k).1);
                }
                sum
            }
            Unit::Product { of: inputs } => inputs.iter().fold((1.0, 0.0), |(a, b), k| {
                let (c, d) = of(k);
                (a * c - b * d, a * d + b * c)
            }),
            Unit::Activation { of: k, f: Activation::Exp } => {
                let (a, b) = of(k);
                (a.exp() * b.cos(), a.exp() * b.sin())
            }
            Unit::Real { of: k } => (of(k).0, 0.0),
            other => panic!("no formula for {other:?}"),
        };
        known.insert(std::ptr::from_ref(unit.unit()), value);
    }
    known[&std::ptr::from_ref(kernel.unit())]
}

fn primitive(p: &covary::kernel::Primitive, x: &[f64], z: &[f64], same: bool) -> (f64, f64) {
    let columns: Vec<usize> = match p.columns() {
        Columns::All => (0..x.len()).collect(),
        Columns::These(list) => list
            .iter()
            .map(|c| match c {
                Column::Number(n) => *n,
                Column::Name(n) => panic!("unbound column {n}"),
            })
            .collect(),
    };
    let get = |name: &str, k: usize| {
        let g = p.group(name).unwrap();
        g[if g.len() == 1 { 0 } else { k }].value_or_default()
    };
    let (a, b): (Vec<f64>, Vec<f64>) = columns.iter().map(|&c| (x[c], z[c])).unzip();
    let d = columns.len();
    let sum = |f: &dyn Fn(usize) -> f64| (0..d).map(f).sum::<f64>();
    let r2 = || sum(&|k| ((a[k] - b[k]) / get("l", k)).powi(2));
    let real = match p.kind() {
        Kind::Rbf => get("v", 0) * (-0.5 * r2()).exp(),
        Kind::Rq => get("v", 0) * (1.0 + r2() / (2.0 * get("a", 0))).powf(-get("a", 0)),
        Kind::Per => {
            get("v", 0) * (-2.0 * sum(&|k| ((PI * (a[k] - b[k]) / get("p", k)).sin() / get("l", k)).powi(2))).exp()
        }
        Kind::Lin => sum(&|k| get("v", k) * a[k] * b[k]),
        Kind::Cos => get("v", 0) * sum(&|k| get("f", k) * (a[k] - b[k])).cos(),
        Kind::Expi => {
            let angle = sum(&|k| get("f", k) * (a[k] - b[k]));
            return (get("v", 0) * angle.cos(), get("v", 0) * angle.sin());
        }
        Kind::Mat12 => get("v", 0) * (-r2().sqrt()).exp(),
        Kind::Mat32 => {
            let q = (3.0 * r2()).sqrt();
            get("v", 0) * (1.0 + q) * (-q).exp()
        }
        Kind::Mat52 => {
            let q = (5.0 * r2()).sqrt();
            get("v", 0) * (1.0 + q + q * q / 3.0) * (-q).exp()
        }
        Kind::Arccos(order) => {
            let inner = |u: &[f64], v: &[f64]| (0..d).map(|k| get("w", k) * u[k] * v[k]).sum::<f64>() + get("b", 0);
            let (xx, zz, xz) = (inner(&a, &a).sqrt(), inner(&b, &b).sqrt(), inner(&a, &b));
            let cos = (xz / (xx * zz)).clamp(-1.0, 1.0);
            let theta = if same { 0.0 } else { cos.acos() };
            let j = match order {
                0 => PI - theta,
                1 => theta.sin() + (PI - theta) * theta.cos(),
                _ => 3.0 * theta.sin() * theta.cos() + (PI - theta) * (1.0 + 2.0 * theta.cos().powi(2)),
            };
            get("v", 0) / PI * (xx * zz).powi(i32::from(order)) * j
        }
        Kind::Poly(q) => get("v", 0) * (sum(&|k| a[k] * b[k]) + get("c", 0)).powi(i32::from(q)),
        Kind::C => get("v", 0),
        Kind::Wn => get("v", 0) * f64::from(u8::from(same)),
        Kind::Gsk => {
            // The expansion, not the product of features.
            let fx = |u: &[f64]| sum(&|k| get("f", k) * u[k]);
            let gx = |u: &[f64]| sum(&|k| get("g", k) * u[k]);
            let sum =
                (fx(&a) - fx(&b)).cos() + (gx(&a) - gx(&b)).cos() + (fx(&a) - gx(&b)).cos() + (gx(&a) - fx(&b)).cos();
            get("v", 0) * sum
        }
        Kind::Gate(side) => {
            let sign = if side == Side::After { 1.0 } else { -1.0 };
            let gate = |v: f64| 1.0 / (1.0 + (-sign * (v - get("t", 0)) / get("w", 0)).exp());
            gate(a[0]) * gate(b[0])
        }
        other => panic!("no formula for {other:?}"),
    };
    (real, 0.0)
}

/// The kernel bound to d columns, every open parameter at a random sensible value.
pub fn with_random_values(kernel: &Kernel, d: usize, seed: u64) -> Kernel {
    let bound = kernel.bind_to(d).unwrap();
    let mut rng = rng(seed);
    let draw = |p: &Param| {
        use covary::kernel::Role::*;
        match p.role() {
            Lengthscale { .. } | Period { .. } => rng.random_range(0.7..2.5),
            Frequency { .. } | Location { .. } => rng.random_range(-1.5..1.5),
            Weight | Bias => rng.random_range(0.05..0.6),
            _ => rng.random_range(0.3..1.5),
        }
    };
    let values: Vec<f64> = bound.params().iter().map(draw).collect();
    bound.with_values(&values).unwrap()
}

/// Every kind, over all columns with a value each, over all with one value, and over some of them.
pub fn every_primitive(d: usize) -> impl Iterator<Item = Kernel> {
    Kind::all().into_iter().enumerate().flat_map(move |(i, kind)| {
        let k = Kernel::primitive(kind);
        let forms = if matches!(kind, Kind::Gate(_)) {
            vec![k.clone().on(&[0]), k.on(&[d - 1])]
        } else {
            vec![k.clone(), k.clone().iso(), k.on(&[d - 1])]
        };
        forms.into_iter().enumerate().map(move |(j, k)| with_random_values(&k, d, (10 * i + j) as u64))
    })
}

/// A random graph with sharing, complex units, activations, weighted layers and held parameters.
pub fn random_kernel(seed: u64) -> Kernel {
    let mut rng = rng(1000 + seed);
    let d = 1 + (seed % 3) as usize;
    let kinds = Kind::all();
    let mut pool: Vec<Kernel> = Vec::new();
    for _ in 0..rng.random_range(2..6) {
        let kind = kinds[rng.random_range(0..kinds.len())];
        let k = Kernel::primitive(kind);
        let gate = matches!(kind, Kind::Gate(_));
        pool.push(match rng.random_range(0..4) {
            _ if gate => k.on(&[rng.random_range(0..d)]),
            0 => k.iso(),
            1 => k.on(&[rng.random_range(0..d)]),
            _ => k,
        });
    }
    for _ in 0..rng.random_range(1..5) {
        let mut pick = || pool[rng.random_range(0..pool.len())].clone();
        let (a, b, c) = (pick(), pick(), pick());
        let made = match rng.random_range(0..9) {
            0 => a + b,
            1 => a * b,
            2 => Kernel::sum([a, b, c]),
            3 => Kernel::product([a, b]) + c,
            4 => Kernel::linear(vec![a, b, c]),
            // Held small, so that exp of exp stays a number.
            5 if complexity(&a) < 30.0 => (Kernel::held_constant(0.1) * a).exp() + b,
            6 => Kernel::change_point(a, b, 0),
            7 => a.real() * b,
            _ => Kernel::network(
                vec![a, b],
                &[
                    covary::kernel::Layer::Linear(4),
                    covary::kernel::Layer::Product(2),
                    covary::kernel::Layer::Linear(1),
                ],
            )
            .unwrap(),
        };
        pool.push(made);
    }
    let top = pool.pop().unwrap();
    with_random_values(&top, d, seed)
}

/// A bound on the size of values over points within 2 of the origin: exp of large values tests overflow, not kernels.
fn complexity(kernel: &Kernel) -> f64 {
    let bound = with_random_values(kernel, 3, 0);
    let corner = [2.0, 2.0, 2.0];
    slow(&bound, &corner, &corner, true).0.abs()
}

/// The lower triangle of k(x, x), mirrored.
pub fn gram(program: &Program, theta: &[f64], x: &Inputs, threads: Threads) -> Matrix {
    let mut k = Matrix::zeros(x.n(), x.n());
    let stride = k.stride();
    program.gram(theta, x, k.values_mut(), stride, &mut Scratch::default(), threads).unwrap();
    k.mirror();
    k
}

/// Everything a kernel must be.
pub fn check_kernel(kernel: &Kernel, d: usize) {
    let what = kernel.to_string();
    let theta = kernel.values();
    let program = Program::compile(kernel, d).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(program.parameters(), theta.len(), "{what}");
    let (n, m) = (23, 9);
    let (px, pz) = (random_points(n, d, 1), random_points(m, d, 2));
    let (x, z) = (Inputs::new(px.clone()), Inputs::new(pz.clone()));
    let scratch = &mut Scratch::default();

    // The slow formula; k(x, x) is symmetric and its diagonal is `diag`.
    let k = gram(&program, &theta, &x, Threads::One);
    let scale = (0..n).map(|i| k[(i, i)].abs()).fold(1.0, f64::max);
    // The slow ARCCOS takes acos of a rounded cosine: only √ε is to be had near 1.
    let loose = what.contains("ARCCOS");
    let tolerance = if loose { 1e-7 } else { 1e-12 } * scale;
    let mut diag = vec![0.0; n];
    program.diag(&theta, &x, &mut diag, scratch).unwrap();
    for i in 0..n {
        for j in 0..=i {
            let expected = slow(kernel, &px.row(i), &px.row(j), i == j).0;
            assert!((k[(i, j)] - expected).abs() <= tolerance, "{what}: k({i},{j}) {} {expected}", k[(i, j)]);
            let transposed = slow(kernel, &px.row(j), &px.row(i), i == j).0;
            assert!((expected - transposed).abs() <= 1e-12 * scale, "{what}: not symmetric");
        }
        assert!((diag[i] - k[(i, i)]).abs() <= 1e-13 * scale, "{what}: diag {i}");
    }
    let mut cross = Matrix::zeros(n, m);
    let stride = cross.stride();
    program.cross(&theta, &x, &z, cross.values_mut(), stride, scratch, Threads::One).unwrap();
    for i in 0..n {
        for j in 0..m {
            let expected = slow(kernel, &px.row(i), &pz.row(j), false).0;
            assert!((cross[(i, j)] - expected).abs() <= tolerance, "{what}: cross({i},{j})");
        }
    }

    // Positive semi-definite.
    let smallest = symmetric_eigen(&k, Threads::One).unwrap().values[0];
    assert!(smallest >= -1e-11 * scale * n as f64, "{what}: smallest eigenvalue {smallest}");

    // The same on every instruction set.
    for level in Level::supported() {
        let other = gram(&program.clone().at_level(level).unwrap(), &theta, &x, Threads::One);
        for j in 0..n {
            for (a, b) in k.column(j).iter().zip(other.column(j)) {
                assert!((a - b).abs() <= 1e-12 * scale, "{what}: {level:?} differs: {a} {b}");
            }
        }
    }
    check_tiles(kernel, &program, &theta, &x);
    check_long(kernel, d, &program, &theta);
    check_pullbacks(kernel, d, &program, &theta, (&x, &z));
    assert_eq!(kernel, &what.parse().unwrap_or_else(|e| panic!("{what}: {e}")), "{what}: text");
}

/// Values and gradient are the same to rounding for any tile size.
fn check_tiles(kernel: &Kernel, program: &Program, theta: &[f64], x: &Inputs) {
    let adjoint = |j: usize, i: usize, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(k, o)| *o = ((7 * j + 3 * (i + k)) as f64).sin());
    };
    let both = |program: &Program| {
        let (k, mut g) = (gram(program, theta, x, Threads::One), vec![0.0; theta.len()]);
        let scratch = &mut Scratch::default();
        program.pullback_gram(theta, x, adjoint, &mut g, None, scratch, Threads::One).unwrap();
        (k, g)
    };
    let (k, g) = both(program);
    let largest = |v: &[f64]| v.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for pairs in [8, 24, 64] {
        let (other, h) = both(&program.clone().in_tiles_of(pairs).unwrap());
        for j in 0..x.n() {
            for (a, b) in k.column(j).iter().zip(other.column(j)) {
                assert!((a - b).abs() <= 1e-13 * largest(k.column(j)), "{kernel}: tiles of {pairs}: {a} {b}");
            }
        }
        for (a, b) in g.iter().zip(&h) {
            assert!((a - b).abs() <= 1e-11 * largest(&g), "{kernel}: gradient in tiles of {pairs}: {a} {b}");
        }
    }
}

/// More rows than one tile holds: diagonal, columns and their pullbacks are cut, and nothing changes.
fn check_long(kernel: &Kernel, d: usize, program: &Program, theta: &[f64]) {
    let what = kernel.to_string();
    let n = 300;
    let points = random_points(n, d, 11);
    let x = Inputs::new(points.clone());
    let scratch = &mut Scratch::default();
    let mut diag = vec![0.0; n];
    program.diag(theta, &x, &mut diag, scratch).unwrap();
    let k = gram(program, theta, &x, Threads::All);
    let scale = diag.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let tolerance = if what.contains("ARCCOS") { 1e-7 } else { 1e-12 } * scale;
    for i in (0..n).step_by(7) {
        assert!((diag[i] - k[(i, i)]).abs() <= 1e-12 * scale, "{what}: diag {i}");
        for j in (0..=i).step_by(11) {
            let expected = slow(kernel, &points.row(i), &points.row(j), i == j).0;
            assert!((k[(i, j)] - expected).abs() <= tolerance, "{what}: k({i},{j})");
        }
    }
    // Σ of the pullbacks of both halves of the diagonal is the pullback of the whole.
    let weights: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
    let pull = |rows: std::ops::Range<usize>, scratch: &mut Scratch| {
        let mut g = vec![0.0; theta.len()];
        let part = Inputs::new(points.slice(rows.clone()));
        program.pullback_diag(theta, &part, &weights[rows], &mut g, None, scratch).unwrap();
        g
    };
    let (whole, a, b) = (pull(0..n, scratch), pull(0..100, scratch), pull(100..n, scratch));
    let size = whole.iter().fold(scale, |m, v| m.max(v.abs()));
    for p in 0..theta.len() {
        assert!((whole[p] - a[p] - b[p]).abs() <= 1e-9 * size, "{what}: diagonal pullback of parameter {p}");
    }
}

/// Gradients of random combinations of values, against central differences of the program itself.
fn check_pullbacks(kernel: &Kernel, d: usize, program: &Program, theta: &[f64], (x, z): (&Inputs, &Inputs)) {
    let what = kernel.to_string();
    let (n, m) = (x.n(), z.n());
    let mut rng = rng(3);
    let a = Matrix::from_fn(n, n.max(m), |_, _| 0.0);
    let mut weights = a;
    weights.values_mut().iter_mut().for_each(|w| *w = rng.random_range(-1.0..1.0));
    let w = |i: usize, j: usize| weights[(i, j)];
    let fill = |j: usize, i: usize, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(k, o)| *o = w(i + k, j));
    };
    let diagonal: Vec<f64> = (0..n).map(|i| w(i, 0)).collect();

    // Three scalar functions of everything: over the Gram triangle, the cross matrix, the diagonal.
    let value = |theta: &[f64], x: &Inputs, z: &Inputs| {
        let k = gram(program, theta, x, Threads::One);
        let scratch = &mut Scratch::default();
        let mut cross = Matrix::zeros(n, m);
        let stride = cross.stride();
        program.cross(theta, x, z, cross.values_mut(), stride, scratch, Threads::One).unwrap();
        let mut diag = vec![0.0; n];
        program.diag(theta, x, &mut diag, scratch).unwrap();
        let sum = |f: &dyn Fn(usize, usize) -> f64, pairs: &dyn Fn(usize, usize) -> bool, columns: usize| {
            (0..columns)
                .flat_map(|j| (0..n).map(move |i| (i, j)))
                .filter(|&(i, j)| pairs(i, j))
                .map(|(i, j)| f(i, j))
                .sum()
        };
        let lower: f64 = sum(&|i, j| w(i, j) * k[(i, j)], &|i, j| i >= j, n);
        let all: f64 = sum(&|i, j| w(i, j) * cross[(i, j)], &|_, _| true, m);
        [lower, all, diagonal.iter().zip(&diag).map(|(a, b)| a * b).sum()]
    };
    let scratch = &mut Scratch::default();
    let mut gradients = [vec![0.0; theta.len()], vec![0.0; theta.len()], vec![0.0; theta.len()]];
    let mut dx = [vec![0.0; n * d], vec![0.0; n * d], vec![0.0; n * d]];
    let mut dz = vec![0.0; m * d];
    {
        let [g0, g1, g2] = &mut gradients;
        let [x0, x1, x2] = &mut dx;
        program.pullback_gram(theta, x, fill, g0, Some(x0), scratch, Threads::One).unwrap();
        program.pullback_cross(theta, (x, z), fill, g1, (Some(x1), Some(&mut dz)), scratch, Threads::One).unwrap();
        program.pullback_diag(theta, x, &diagonal, g2, Some(x2), scratch).unwrap();
        // Without gradients of points the parameters' are the same.
        let mut again = vec![0.0; theta.len()];
        program.pullback_gram(theta, x, fill, &mut again, None, scratch, Threads::One).unwrap();
        let size = g0.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (a, b) in again.iter().zip(g0.iter()) {
            assert!((a - b).abs() <= 1e-10 * size, "{what}: gradient depends on what else is asked: {a} {b}");
        }
        // And the columns' gradient is the same where nobody asks for the rows'.
        let (mut again, mut alone) = (vec![0.0; theta.len()], vec![0.0; m * d]);
        program
            .pullback_cross(theta, (x, z), fill, &mut again, (None, Some(&mut alone)), scratch, Threads::One)
            .unwrap();
        let size = g1.iter().chain(&dz).fold(1.0f64, |m, v| m.max(v.abs()));
        for (a, b) in again.iter().chain(&alone).zip(g1.iter().chain(&dz)) {
            assert!((a - b).abs() <= 1e-10 * size, "{what}: gradient of columns alone: {a} {b}");
        }
    }
    let size = value(theta, x, z).iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let compare = |ours: f64, plus: f64, minus: f64, h: f64, name: String| {
        let difference = (plus - minus) / (2.0 * h);
        // Rounding of the difference, and its own curvature error.
        let tolerance = 1e-6 * (ours.abs() + difference.abs()) + 2e-9 * size / h * 1e-6 + 2e-8 * size;
        assert!((ours - difference).abs() <= tolerance, "{what}: {name}: {ours} against {difference}");
    };
    for p in 0..theta.len() {
        let h = 1e-6 * theta[p].abs().max(0.1);
        let at = |v: f64| {
            let mut t = theta.to_vec();
            t[p] = v;
            value(&t, x, z)
        };
        let (plus, minus) = (at(theta[p] + h), at(theta[p] - h));
        for f in 0..3 {
            compare(gradients[f][p], plus[f], minus[f], h, format!("parameter {p} of function {f}"));
        }
    }
    let moved = |points: &Points, at: usize, by: f64| {
        let mut values = points.values().to_vec();
        values[at] += by;
        Inputs::new(Points::from_values(points.n(), d, values).unwrap())
    };
    let h = 1e-6;
    for at in (0..n * d).step_by(5) {
        let (plus, minus) = (value(theta, &moved(x.points(), at, h), z), value(theta, &moved(x.points(), at, -h), z));
        for f in 0..3 {
            compare(dx[f][at], plus[f], minus[f], h, format!("x entry {at} of function {f}"));
        }
    }
    for (at, &dz) in dz.iter().enumerate() {
        let (plus, minus) = (value(theta, x, &moved(z.points(), at, h)), value(theta, x, &moved(z.points(), at, -h)));
        compare(dz, plus[1], minus[1], h, format!("z entry {at}"));
    }
}
