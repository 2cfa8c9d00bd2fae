//! What a fitted series is made of, in words: the largest terms of the kernel, with periods and lengthscales in the
//! units of the calendar. A first account; it speaks of the prior variance of terms, not of what each explains.

use super::Fitted;
use super::rows::one_of_each;
use crate::error::Result;
use crate::fit::Link;
use crate::kernel::{Kernel, Kind, Unit};
use crate::program::{Inputs, Program, Scratch};
use crate::threads::Threads;
use serde::Serialize;
use std::collections::HashMap;

/// The most times at which terms are measured.
const TIMES: usize = 120;

/// Terms that say the same in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Their share of the prior variance of values about their mean over the times of the data.
    pub share: f64,
    /// What they are, in words.
    pub words: String,
    /// The largest of them: names of its primitives.
    pub term: String,
    /// How many terms.
    pub terms: usize,
}

/// The terms of a fitted kernel, those that read alike together, the largest first.
///
/// # Errors
/// When the kernel has too many terms to be multiplied out.
pub fn findings(fitted: &Fitted) -> Result<Vec<Finding>> {
    // Some of the times tell. About the mean over them, for a level that walks may be anywhere, and is yet calm.
    let n = fitted.data().n();
    let rows = one_of_each(0, n, TIMES);
    let x = Inputs::without_lags(fitted.model.scaling().points(fitted.data().select(&rows).x())?);
    let n = x.n();
    let mut grams: HashMap<String, Vec<f64>> = HashMap::new();
    let mut found: Vec<(Finding, f64)> = Vec::new();
    let mut total = 0.0;
    for term in fitted.model.kernel().terms()? {
        let mut product = vec![term.coefficient; n * n];
        for factor in &term.factors {
            let key = factor.to_string();
            if !grams.contains_key(&key) {
                let program = Program::compile(factor, 1)?;
                let mut gram = vec![0.0; n * n];
                program.gram(&factor.values(), &x, &mut gram, n, &mut Scratch::default(), Threads::One)?;
                grams.insert(key.clone(), gram);
            }
            product.iter_mut().zip(&grams[&key]).for_each(|(p, k)| *p *= k);
        }
        let size = about_mean(&product, n).max(0.0);
        total += size;
        let words = words(&term.factors, fitted);
        let name = names(&term.factors);
        match found.iter_mut().find(|f| f.0.words == words) {
            Some((known, largest)) => {
                known.share += size;
                known.terms += 1;
                if size > *largest {
                    (known.term, *largest) = (name, size);
                }
            }
            None => found.push((Finding { share: size, words, term: name, terms: 1 }, size)),
        }
    }
    let mut found: Vec<Finding> = found.into_iter().map(|f| f.0).collect();
    if total > 0.0 {
        found.iter_mut().for_each(|f| f.share /= total);
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(found)
}

/// The mean variance of values about their own mean, from the lower triangle of their covariance.
fn about_mean(covariance: &[f64], n: usize) -> f64 {
    let (mut diagonal, mut below) = (0.0, 0.0);
    for j in 0..n {
        diagonal += covariance[j * n + j];
        below += covariance[j * n + j + 1..(j + 1) * n].iter().sum::<f64>();
    }
    let n = n as f64;
    diagonal / n - (diagonal + 2.0 * below) / (n * n)
}

fn names(factors: &[Kernel]) -> String {
    let name = |k: &Kernel| match k.unit() {
        Unit::Primitive(p) => p.kind().row().name.into_owned(),
        _ => k.to_string(),
    };
    let names: Vec<String> = factors.iter().map(name).collect();
    if names.is_empty() { "1".into() } else { names.join(" * ") }
}

/// A product in words: what repeats, what it follows, how fast it changes.
fn words(factors: &[Kernel], fitted: &Fitted) -> String {
    let (axis, scaling) = (fitted.axis(), fitted.model.scaling());
    let times = fitted.data().x().column(0);
    let span = times[times.len() - 1] - times[0];
    let (mut periods, mut lengths, mut trends) = (Vec::<f64>::new(), Vec::<f64>::new(), 0);
    let mut other = Vec::new();
    for factor in factors {
        let Unit::Primitive(p) = factor.unit() else {
            other.push("another pattern".to_string());
            continue;
        };
        let value =
            |group: &str| p.group(group).and_then(|g| g.first()).map(|v| v.value_or_default() * scaling.width(0));
        match p.kind() {
            Kind::Lin | Kind::Poly(_) => trends += 1,
            Kind::Per => periods.extend(value("p")),
            Kind::Cos => {
                let turn = p.group("f").and_then(|g| g.first()).map(|f| f.value_or_default().abs());
                periods.extend(turn.map(|f| 2.0 * std::f64::consts::PI / f * scaling.width(0)));
            }
            Kind::Rbf | Kind::Rq | Kind::Mat12 | Kind::Mat32 | Kind::Mat52 => lengths.extend(value("l")),
            Kind::C => {}
            Kind::Wn => other.push("noise from one time to the next".into()),
            kind => other.push(kind.row().name.into_owned()),
        }
    }
    // Equal in words is equal; what repeats less than once within the record is a slow change.
    periods.retain(|p| {
        if *p > span {
            lengths.push(*p);
            false
        } else {
            true
        }
    });
    periods.sort_by(f64::total_cmp);
    let mut cycles: Vec<String> = periods.iter().map(|p| axis.in_words(*p)).collect();
    cycles.dedup();
    let quickest = lengths.into_iter().fold(f64::INFINITY, f64::min);
    let speed = match quickest {
        l if l.is_infinite() => None,
        l if l > 2.0 * span => Some("very slowly".to_string()),
        l => Some(format!("over {}", axis.in_words(l))),
    };
    let growth = match (trends, fitted.model.link()) {
        (0, _) => None,
        (1, Link::Log) => Some("growth at a steady rate"),
        (1, Link::Identity) => Some("a straight trend"),
        _ => Some("a curved trend"),
    };
    let mut text = match (cycles.is_empty(), growth) {
        (false, None) => format!("a pattern repeating every {}", cycles.join(" and ")),
        (false, Some(_)) => {
            format!("a pattern repeating every {} that grows or shrinks with time", cycles.join(" and "))
        }
        (true, Some(growth)) => growth.to_string(),
        (true, None) if speed.is_some() => String::new(),
        (true, None) if other.is_empty() => "a constant level".to_string(),
        (true, None) => String::new(),
    };
    if let Some(speed) = speed {
        text = match text.is_empty() {
            true if quickest > 2.0 * span => "a very slow change".to_string(),
            true => format!("a smooth change {speed}"),
            false => format!("{text}, changing {speed}"),
        };
    }
    for word in other {
        text = if text.is_empty() { word } else { format!("{text}, times {word}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of four values z = B e, e of variance one, the mean square about their mean is that of B with means taken out.
    #[test]
    fn variance_about_the_mean_is_that_of_centred_values() {
        let b = [[2.0, 0.5], [1.0, -1.0], [3.0, 0.25], [-0.5, 4.0]];
        let n = b.len();
        let covariance: Vec<f64> =
            (0..n * n).map(|ij| b[ij / n].iter().zip(&b[ij % n]).map(|(a, b)| a * b).sum()).collect();
        let mean = |c: usize| b.iter().map(|row| row[c]).sum::<f64>() / n as f64;
        let centred: f64 = b.iter().flat_map(|row| (0..2).map(|c| (row[c] - mean(c)).powi(2))).sum();
        assert!((about_mean(&covariance, n) - centred / n as f64).abs() < 1e-12);
    }
}
