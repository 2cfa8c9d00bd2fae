//! Units become instructions: shared units once, layers as one matrix product, a complex unit as two planes, variances
//! folded into the weights that use them. Where lags are shared, what is stationary goes to a program of its own that
//! is run once a lag.

use super::builder::Builder;
use super::step::{Base, Coefficient, Monomial, Part, Step, Value};
use super::{Code, Parts};
use crate::error::{Error, Result};
use crate::kernel::{ById, Kernel, Param, Unit};
use std::collections::HashMap;

/// The value of a unit while compiling: scale · (re + i im), each a plane; no plane means the number one (re).
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub scale: Monomial,
    pub re: Option<usize>,
    pub im: Option<usize>,
    /// In the program of lags rather than of pairs?
    pub lag: bool,
}

pub(super) struct Compiler<'a> {
    pub d: usize,
    /// Places of the parameters in the flat vector.
    slots: &'a ById<usize>,
    pairs: Builder,
    /// Present where lags are shared.
    pub lags: Option<Builder>,
    pub nodes: ById<Node>,
    /// Planes of the lag program that the pair program reads, in the order of the tables.
    tables: Vec<usize>,
    imported: HashMap<usize, usize>,
}

/// Compiles a kernel that is bound to d columns, given its units and the places of its parameters.
pub(super) fn compile(units: &[Kernel], slots: &ById<usize>, d: usize, share_lags: bool) -> Result<Parts> {
    let lags = share_lags.then(Builder::default);
    let mut c = Compiler {
        d,
        slots,
        pairs: Builder::default(),
        lags,
        nodes: ById::default(),
        tables: vec![],
        imported: HashMap::new(),
    };
    c.primitives(units)?;
    for (i, unit) in units.iter().enumerate() {
        if !c.nodes.contains_key(&unit.id()) {
            c.unit(unit, &units[i..])?;
        }
    }
    c.finish(units)
}

impl Compiler<'_> {
    pub fn builder(&mut self, lag: bool) -> &mut Builder {
        match &mut self.lags {
            Some(lags) if lag => lags,
            _ => &mut self.pairs,
        }
    }

    pub fn value(&self, param: &Param) -> Value {
        match self.slots.get(&param.id()) {
            Some(&slot) => Value::Slot(slot),
            None => Value::Held(param.value_or_default()),
        }
    }

    pub fn values(&self, params: &[Param], count: usize) -> Vec<Value> {
        // An isotropic group has one value for all columns.
        (0..count).map(|k| self.value(&params[if params.len() == 1 { 0 } else { k }])).collect()
    }

    /// The planes of a node as the pair program sees them (or the lag program, if that is where we are).
    fn bring(&mut self, node: &Node, lag: bool) -> Node {
        if node.lag == lag || self.lags.is_none() {
            return Node { lag, ..node.clone() };
        }
        let (re, im) = (node.re.map(|p| self.import(p)), node.im.map(|p| self.import(p)));
        Node { scale: node.scale.clone(), re, im, lag }
    }

    /// A plane of the lag program, read from its table.
    fn import(&mut self, plane: usize) -> usize {
        if let Some(&out) = self.imported.get(&plane) {
            return out;
        }
        self.tables.push(plane);
        let out = self.pairs.plane();
        self.pairs.push(Step::Lag { table: self.tables.len() - 1, out, rows: 1 });
        self.imported.insert(plane, out);
        out
    }

    /// A node's factor applied: a node of scale one.
    fn unscaled(&mut self, node: &Node) -> Node {
        if node.scale.is_one() && node.re.is_some() {
            return node.clone();
        }
        let builder = self.builder(node.lag);
        let coefficient = || vec![Coefficient(vec![node.scale.clone()])];
        let re = match node.re {
            Some(plane) => builder.affine(vec![plane], 1, coefficient(), None, Base::Zero),
            None => builder.affine(vec![], 1, vec![], Some(coefficient()), Base::Zero),
        };
        let im = node.im.map(|plane| builder.affine(vec![plane], 1, coefficient(), None, Base::Zero));
        Node { scale: Monomial::one(), re: Some(re), im, lag: node.lag }
    }

    fn unit(&mut self, unit: &Kernel, later: &[Kernel]) -> Result<()> {
        let node = match unit.unit() {
            Unit::Primitive(_) => return Err(Error::kernel("a primitive was not compiled")),
            Unit::Linear { of, weights, .. } => {
                // Every unit over the same inputs joins: one matrix product for the whole layer.
                let same = |other: &&Kernel| match other.unit() {
                    Unit::Linear { of: inputs, weights: w, .. } => {
                        w.is_empty() == weights.is_empty()
                            && inputs.iter().map(Kernel::id).eq(of.iter().map(Kernel::id))
                    }
                    _ => false,
                };
                let layer: Vec<Kernel> = later.iter().filter(same).cloned().collect();
                return self.layer(of, &layer);
            }
            Unit::Product { of } => {
                let nodes: Vec<Node> = of.iter().map(|k| self.nodes[&k.id()].clone()).collect();
                let lag = nodes.iter().all(|n| n.lag);
                // What is stationary is multiplied once a lag.
                let (mut still, mut rest): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(|n| n.lag && !lag);
                let mut factors = Vec::new();
                if !still.is_empty() {
                    let first = still.remove(0);
                    factors.push(still.into_iter().fold(first, |a, b| self.multiply(&a, &b, true)));
                }
                factors.append(&mut rest);
                let mut factors = factors.iter().map(|n| self.bring(n, lag)).collect::<Vec<_>>().into_iter();
                let one = Node { scale: Monomial::one(), re: None, im: None, lag };
                let first = factors.next().unwrap_or(one);
                factors.fold(first, |a, b| self.multiply(&a, &b, lag))
            }
            Unit::Activation { of, .. } => {
                let node = self.nodes[&of.id()].clone();
                let node = self.unscaled(&node);
                let builder = self.builder(node.lag);
                let a = node.re.unwrap_or_default();
                let (re, im) = match node.im {
                    None => (builder.exp(a), None),
                    Some(b) => (builder.complex_exp(Part::Re, [a, b]), Some(builder.complex_exp(Part::Im, [a, b]))),
                };
                Node { re: Some(re), im, ..node }
            }
            Unit::Real { of } => Node { im: None, ..self.nodes[&of.id()].clone() },
        };
        self.nodes.insert(unit.id(), node);
        Ok(())
    }

    fn multiply(&mut self, a: &Node, b: &Node, lag: bool) -> Node {
        let scale = a.scale.times(&b.scale);
        let builder = self.builder(lag);
        let product = |builder: &mut Builder, x: Option<usize>, y: Option<usize>| match (x, y) {
            (Some(x), Some(y)) => Some(builder.product(x, y)),
            (x, y) => x.or(y),
        };
        let (re, im) = match (a.im, b.im) {
            (None, None) => (product(builder, a.re, b.re), None),
            // A real factor multiplies both parts; a constant one is in the scale.
            (Some(im), None) => (product(builder, a.re, b.re), product(builder, Some(im), b.re)),
            (None, Some(im)) => (product(builder, a.re, b.re), product(builder, a.re, Some(im))),
            (Some(ai), Some(bi)) => {
                let inputs = [a.re.unwrap_or_default(), ai, b.re.unwrap_or_default(), bi];
                (Some(builder.complex(Part::Re, inputs)), Some(builder.complex(Part::Im, inputs)))
            }
        };
        Node { scale, re, im, lag }
    }

    /// Linear units over the same inputs.
    fn layer(&mut self, of: &[Kernel], layer: &[Kernel]) -> Result<()> {
        let nodes: Vec<Node> = of.iter().map(|k| self.nodes[&k.id()].clone()).collect();
        let all_lag = nodes.iter().all(|n| n.lag);
        // For each unit of the layer, the factor of each input.
        let factor = |unit: &Kernel, i: usize| match unit.unit() {
            Unit::Linear { weights, .. } => match weights.get(i) {
                Some(w) => Monomial::power(self.value(w), 1).times(&nodes[i].scale),
                None => nodes[i].scale.clone(),
            },
            _ => Monomial::one(),
        };
        let factors: Vec<Vec<Monomial>> =
            layer.iter().map(|unit| (0..of.len()).map(|i| factor(unit, i)).collect()).collect();
        let bias: Vec<Coefficient> = layer
            .iter()
            .zip(&factors)
            .map(|(unit, factors)| {
                let own = match unit.unit() {
                    Unit::Linear { bias: Some(b), .. } => Some(Monomial::power(self.value(b), 1)),
                    _ => None,
                };
                let constant = (0..of.len()).filter(|&i| nodes[i].re.is_none()).map(|i| factors[i].clone());
                Coefficient(own.into_iter().chain(constant).collect())
            })
            .collect();
        let real = |n: &Node| n.re;
        let imaginary = |n: &Node| n.im;
        let split = |lag: bool, part: &dyn Fn(&Node) -> Option<usize>| {
            let chosen = (0..of.len()).filter(|&i| nodes[i].lag == lag || self.lags.is_none());
            columns(&nodes, &factors, chosen, part)
        };
        let (re_pairs, re_lags) =
            (split(all_lag, &real), (self.lags.is_some() && !all_lag).then(|| split(true, &real)));
        let (im_pairs, im_lags) =
            (split(all_lag, &imaginary), (self.lags.is_some() && !all_lag).then(|| split(true, &imaginary)));
        let rows = layer.len();
        let has_bias = bias.iter().any(|b| !b.0.is_empty());
        let re = self.mixed(re_pairs, re_lags, has_bias.then_some(bias), rows, all_lag);
        let any_im = !im_pairs.inputs.is_empty() || im_lags.as_ref().is_some_and(|m| !m.inputs.is_empty());
        let im = any_im.then(|| self.mixed(im_pairs, im_lags, None, rows, all_lag));
        for (r, unit) in layer.iter().enumerate() {
            let node = Node { scale: Monomial::one(), re: Some(re + r), im: im.map(|im| im + r), lag: all_lag };
            self.nodes.insert(unit.id(), node);
        }
        Ok(())
    }

    /// One matrix product over inputs of pairs, on top of one over inputs of lags if there are any.
    fn mixed(
        &mut self,
        pairs: Matrix,
        lags: Option<Matrix>,
        bias: Option<Vec<Coefficient>>,
        rows: usize,
        all_lag: bool,
    ) -> usize {
        let Some(lags) = lags.filter(|m| !m.inputs.is_empty()) else {
            return self.builder(all_lag).affine(pairs.inputs, rows, pairs.entries, bias, Base::Zero);
        };
        let first = self.builder(true).affine(lags.inputs, rows, lags.entries, bias, Base::Zero);
        let table = self.tables.len();
        self.tables.extend(first..first + rows);
        let out = self.pairs.planes(rows);
        self.pairs.push(Step::Lag { table, out, rows });
        if !pairs.inputs.is_empty() {
            self.pairs.affine_into(pairs.inputs, out, rows, pairs.entries, None, Base::Planes);
        }
        out
    }

    fn finish(mut self, units: &[Kernel]) -> Result<Parts> {
        // Inputs come before what uses them: the last unit is the kernel itself.
        let last = units.last().ok_or_else(|| Error::kernel("a kernel without units"))?;
        let mut root = self.nodes[&last.id()].clone();
        root.im = None;
        let root = self.unscaled(&root);
        let root = self.bring(&root, false);
        let out = root.re.unwrap_or_default();
        let pairs = self.pairs.finish(&[out]);
        let lags: Option<Code> = match self.lags {
            Some(builder) if !self.tables.is_empty() => Some(builder.finish(&self.tables)),
            _ => None,
        };
        Ok(Parts { pairs, lags })
    }
}

/// Inputs of a layer and its entries, row after row.
struct Matrix {
    inputs: Vec<usize>,
    entries: Vec<Coefficient>,
}

/// The columns of a layer's matrix: inputs on the same plane become one.
fn columns(
    nodes: &[Node],
    factors: &[Vec<Monomial>],
    chosen: impl Iterator<Item = usize>,
    part: &dyn Fn(&Node) -> Option<usize>,
) -> Matrix {
    let mut inputs: Vec<usize> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for i in chosen {
        let Some(plane) = part(&nodes[i]) else { continue };
        match inputs.iter().position(|&p| p == plane) {
            Some(at) => members[at].push(i),
            None => {
                inputs.push(plane);
                members.push(vec![i]);
            }
        }
    }
    let entry = |row: &Vec<Monomial>, m: &Vec<usize>| Coefficient(m.iter().map(|&i| row[i].clone()).collect());
    let entries = factors.iter().flat_map(|row| members.iter().map(move |m| entry(row, m))).collect();
    Matrix { inputs, entries }
}
