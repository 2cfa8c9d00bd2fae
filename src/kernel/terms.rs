//! The kernel multiplied out: a positive polynomial of its primitives, like terms collected.

use super::{Kernel, Param, Unit};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// One term of the polynomial: a coefficient times a product of primitives (each with its own variance).
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The coefficient, from the weights of the Linear units.
    pub coefficient: f64,
    /// The factors, one as often as its power; none for the constant term.
    pub factors: Vec<Kernel>,
}

impl Term {
    /// The term as a kernel: the product of its factors, scaled by a held constant unless that is one.
    pub fn kernel(&self) -> Kernel {
        let scale =
            (self.coefficient != 1.0 || self.factors.is_empty()).then(|| Kernel::held_constant(self.coefficient));
        Kernel::product(scale.into_iter().chain(self.factors.iter().cloned()))
    }
}

/// A polynomial: powers as a sorted list of factor numbers, and the coefficient.
type Polynomial = BTreeMap<Vec<usize>, f64>;

/// More terms than this are of no use to anybody.
const MOST_TERMS: usize = 200_000;

impl Kernel {
    /// Multiplies out sums and products into terms, in the order of their factors. What is not a sum or product
    /// (primitives, exp, the real part of something complex) stays a factor.
    ///
    /// # Errors
    /// When there would be more than 200,000 terms.
    pub fn terms(&self) -> Result<Vec<Term>> {
        let mut factors: Vec<Kernel> = Vec::new();
        let mut known: HashMap<usize, Polynomial> = HashMap::new();
        for kernel in self.units() {
            let polynomial = match kernel.unit() {
                Unit::Linear { of, weights, bias } => {
                    let mut sum = Polynomial::new();
                    for (i, k) in of.iter().enumerate() {
                        let w = weights.get(i).map_or(1.0, Param::value_or_default);
                        for (powers, c) in &known[&k.id()] {
                            *sum.entry(powers.clone()).or_default() += w * c;
                        }
                    }
                    if let Some(b) = bias {
                        *sum.entry(vec![]).or_default() += b.value_or_default();
                    }
                    sum
                }
                Unit::Product { of } => {
                    let mut product = Polynomial::from([(vec![], 1.0)]);
                    for k in of {
                        product = multiply(&product, &known[&k.id()])?;
                    }
                    product
                }
                Unit::Primitive(_) | Unit::Activation { .. } | Unit::Real { .. } => {
                    factors.push(kernel.clone());
                    Polynomial::from([(vec![factors.len() - 1], 1.0)])
                }
            };
            known.insert(kernel.id(), polynomial);
        }
        let term = |(powers, &coefficient): (&Vec<usize>, &f64)| Term {
            coefficient,
            factors: powers.iter().map(|&i| factors[i].clone()).collect(),
        };
        Ok(known[&self.id()].iter().map(term).collect())
    }
}

fn multiply(a: &Polynomial, b: &Polynomial) -> Result<Polynomial> {
    let mut product = Polynomial::new();
    for (p, x) in a {
        for (q, y) in b {
            let mut powers = [p.as_slice(), q.as_slice()].concat();
            powers.sort_unstable();
            *product.entry(powers).or_default() += x * y;
        }
        if product.len() > MOST_TERMS {
            return Err(Error::kernel(format!("more than {MOST_TERMS} terms when multiplied out")));
        }
    }
    Ok(product)
}
