//! Values and gradients on which independent programs agree. The files lie beside the project, not in it; without
//! them these tests say so and pass.

use covary::gp::{Exact, Posterior};
use covary::program::{Inputs, Program};
use covary::{Kernel, Points, Threads};
use serde_json::Value;
use std::path::PathBuf;

/// A file of the shared folder, if it is there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    println!("skipped: {} is not here", file.display());
    None
}

pub fn numbers(v: &Value) -> Vec<f64> {
    match v {
        Value::Array(list) => list.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

pub fn points(v: &Value) -> Points {
    Points::from_rows(&v.as_array().unwrap().iter().map(numbers).collect::<Vec<_>>()).unwrap()
}

fn list(v: &[f64]) -> String {
    format!("[{}]", v.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join(", "))
}

/// The text of a golden kernel, and the names of its gradient entries in the order of our parameters, each with the
/// factor from their parameterisation to ours (their PER has half our lengthscale).
pub fn kernel(v: &Value) -> (String, Vec<(String, usize, f64)>) {
    let mut names = Vec::new();
    let mut entry = |name: String, count: usize, factor: f64| {
        names.extend((0..count).map(|k| (name.clone(), k, factor)));
    };
    let mut primitives = Vec::new();
    for (i, p) in v["primitives"].as_array().unwrap().iter().enumerate() {
        let kind = p["type"].as_str().unwrap();
        let get = |name: &str| numbers(&p[name]);
        let name = |what: &str| format!("prim{i}.{kind}.{what}");
        match kind {
            "SM" => {
                let (l, mu) = (p["lengthscale"].as_array().unwrap(), p["mu"].as_array().unwrap());
                let mut sum = Vec::new();
                for (q, w) in get("w").iter().enumerate() {
                    let (l, mu) = (numbers(&l[q]), numbers(&mu[q]));
                    let d = l.len();
                    names.extend((0..d).map(|k| (name("lengthscale"), q * d + k, 1.0)));
                    names.push((name("w"), q, 1.0));
                    names.extend((0..d).map(|k| (name("mu"), q * d + k, 1.0)));
                    sum.push(format!("RBF(v=1!, l={}) * COS(v={w:e}, f={})", list(&l), list(&mu)));
                }
                return (sum.join(" + "), names);
            }
            "LIN" => {
                let v = get("variance");
                entry(name("variance"), v.len(), 1.0);
                primitives.push(format!("LIN(v={})", list(&v)));
            }
            "CEXP" => {
                entry(name("variance"), 1, 1.0);
                entry(name("mu"), get("mu").len(), 1.0);
                primitives.push(format!("EXPI(v={:e}, f={})", get("variance")[0], list(&get("mu"))));
            }
            _ => {
                let mut l = get("lengthscale");
                let factor = if kind == "PER" { 2.0 } else { 1.0 };
                l.iter_mut().for_each(|l| *l *= factor);
                entry(name("variance"), 1, 1.0);
                entry(name("lengthscale"), l.len(), factor);
                let mut text = format!("{kind}(v={:e}, l={}", get("variance")[0], list(&l));
                if kind == "RQ" {
                    entry(name("alpha"), 1, 1.0);
                    text += &format!(", a={:e}", get("alpha")[0]);
                }
                if kind == "PER" {
                    entry(name("period"), 1, 1.0);
                    text += &format!(", p={:e}", get("period")[0]);
                }
                primitives.push(text + ")");
            }
        }
    }
    let mut layers = Vec::new();
    let mut width = primitives.len();
    for (j, layer) in v["layers"].as_array().unwrap().iter().enumerate() {
        if layer["type"] == "Product" {
            width /= 2;
            layers.push(format!("Product{width}"));
            continue;
        }
        let (w, b) = (numbers(&layer["weights"]), numbers(&layer["bias"]));
        for o in 0..b.len() {
            names.extend((0..width).map(|i| (format!("layer{j}.weights"), o * width + i, 1.0)));
            names.push((format!("layer{j}.bias"), o, 1.0));
        }
        width = b.len();
        layers.push(format!("Linear{width}(w={}, b={})", list(&w), list(&b)));
    }
    (format!("nkn({}; {})", primitives.join(", "), layers.join("-")), names)
}

fn check(file: &str) {
    let Some(path) = shared(&format!("golden/{file}.json")) else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (text, names) = kernel(&golden["kernel"]);
    let (x, y) = (points(&golden["X"]), numbers(&golden["y"]));
    let kernel = text.parse::<Kernel>().unwrap().bind_to(x.d()).unwrap();
    let (theta, noise) = (kernel.values(), golden["noise_variance"].as_f64().unwrap());
    assert_eq!(theta.len(), names.len());
    let program = Program::compile(&kernel, x.d()).unwrap();
    for inputs in [Inputs::new(x.clone()), Inputs::without_lags(x.clone())] {
        let mut exact = Exact::new(&program, &inputs, &y, Threads::All).unwrap();
        let mut gradient = vec![0.0; theta.len()];
        let (value, noise_slope) = exact.gradient(&theta, noise, &mut gradient).unwrap();
        let expected = golden["value"].as_f64().unwrap();
        // Agreement to 1e-9 is asked for; what we see is rounding.
        assert!((value + expected).abs() <= 1e-11 * expected.abs(), "{file}: {value} {expected}");
        assert!((exact.evidence(&theta, noise).unwrap() - value).abs() <= 1e-12 * expected.abs());
        for ((name, k, factor), ours) in names.iter().zip(&gradient) {
            // Theirs is the gradient of −log p with respect to their own parameter.
            let theirs = numbers(&golden["gradient"][name])[*k];
            let ours = -ours * factor;
            // An entry near nought is the difference of large ones: it is held to its layer's size as well.
            let size = numbers(&golden["gradient"][name]).iter().fold(0.0f64, |m, v| m.max(v.abs()));
            assert!((ours - theirs).abs() <= 1e-6 * theirs.abs(), "{file}: {name}[{k}]: {ours} {theirs}");
            assert!((ours - theirs).abs() <= 1e-9 * size.max(1e-3), "{file}: {name}[{k}]: {ours} {theirs}");
        }
        let theirs = golden["gradient"]["noise_variance"].as_f64().unwrap();
        assert!((noise_slope + theirs).abs() <= 1e-9 * theirs.abs(), "{file}: noise {noise_slope} {theirs}");
    }
    let posterior = Posterior::new(program, theta, noise, x, y, None).unwrap();
    let at = points(&golden["predict"]["X"]);
    let prediction = posterior.predict(&at).unwrap();
    let close = |ours: &[f64], theirs: &str| {
        for (a, b) in ours.iter().zip(numbers(&golden["predict"][theirs])) {
            assert!((a - b).abs() <= 1e-8 * b.abs().max(1e-3), "{file}: {theirs}: {a} {b}");
        }
    };
    close(&prediction.mean, "mean");
    close(&posterior.mean(&at).unwrap(), "mean");
    close(&prediction.variance_f, "latent_variance");
    close(&prediction.variance_y, "observation_variance");
}

#[test]
fn the_airline_network_agrees() {
    check("airline_nkn8");
}

#[test]
fn the_ard_network_agrees() {
    check("nkn6_ard_d3_n50");
}

#[test]
fn the_complex_network_agrees() {
    check("complex_nkn4_d2_n30");
}

#[test]
fn the_spectral_mixture_agrees() {
    check("sm4_d2_n40");
}
