//! Networks: `Linear8-Product4-Linear4-Product2-Linear1` over a list of kernels becomes units, and units that stand in
//! layers are recognised again. A layer is a row of units that share their inputs; it is not a type of its own.

use super::{Activation, Kernel, Kind, Param, Primitive, Role, Sharing, Unit};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// One layer of a network; the number is its width out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Every unit a weighted sum of all inputs and a constant.
    Linear(usize),
    /// Every unit the product of a group of adjacent inputs.
    Product(usize),
    /// The exponential of every input.
    Exp,
}

/// What a kernel is for: decides the network that `nkn` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// One ordered input.
    Series,
    /// Several inputs.
    Table,
    /// One axis of a grid.
    Axis,
    /// The objective of an optimisation with this many inputs.
    Optimisation {
        /// Number of inputs.
        d: usize,
    },
}

/// The layers of every network of the paper.
const PAPER: [Layer; 5] =
    [Layer::Linear(8), Layer::Product(4), Layer::Linear(4), Layer::Product(2), Layer::Linear(1)];

impl Kernel {
    /// A Neural Kernel Network: primitives as a list (`2 LIN, 2 PER`), layers as `Linear8-Product4-…`.
    ///
    /// # Errors
    /// When either text cannot be read, the widths do not fit, or the last layer is wider than one.
    ///
    /// ```
    /// use covary::Kernel;
    /// let k = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1")?;
    /// assert_eq!(k.bind_to(1)?.params().len(), 113);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn nkn(primitives: &str, layers: &str) -> Result<Kernel> {
        format!("nkn({primitives}; {layers})").parse()
    }

    /// A network over kernels.
    ///
    /// # Errors
    /// When the widths do not fit or the last layer is wider than one.
    pub fn network(inputs: Vec<Kernel>, layers: &[Layer]) -> Result<Kernel> {
        let open = layers.iter().map(|&layer| (layer, None)).collect::<Vec<_>>();
        Self::network_with(inputs, &open)
    }

    /// A network whose Linear layers may bring their weights (row by row) and biases.
    pub(crate) fn network_with(inputs: Vec<Kernel>, layers: &[LayerParams]) -> Result<Kernel> {
        let mut row = inputs;
        for (layer, params) in layers {
            let n = row.len();
            row = match *layer {
                Layer::Linear(0) | Layer::Product(0) => return Err(Error::kernel("a layer of width 0")),
                Layer::Linear(width) => {
                    let unit = |o: usize| match params {
                        None => Ok(Kernel::linear(row.clone())),
                        Some((w, b)) if w.len() == n * width && b.len() == width => {
                            Ok(Kernel::from_unit(Unit::Linear {
                                of: row.clone(),
                                weights: w[o * n..(o + 1) * n].to_vec(),
                                bias: Some(b[o].clone()),
                            }))
                        }
                        Some((w, b)) => Err(Error::kernel(format!(
                            "Linear{width} over {n} inputs needs {} weights and {width} biases, not {} and {}",
                            n * width,
                            w.len(),
                            b.len()
                        ))),
                    };
                    (0..width).map(unit).collect::<Result<_>>()?
                }
                Layer::Product(width) if n.is_multiple_of(width) => {
                    row.chunks(n / width).map(|group| Kernel::product(group.iter().cloned())).collect()
                }
                Layer::Product(width) => {
                    return Err(Error::kernel(format!("Product{width} cannot group {n} inputs evenly")));
                }
                Layer::Exp => row.into_iter().map(Kernel::exp).collect(),
            };
        }
        match row.len() {
            1 => Ok(row.remove(0)),
            0 => Err(Error::kernel("a network needs at least one input")),
            width => Err(Error::kernel(format!("the last layer has width {width}, not 1"))),
        }
    }

    /// The network that `nkn` means for a task, as the paper builds it.
    pub fn default_network(task: Task) -> Kernel {
        let open = |kinds: &[Kind]| kinds.iter().map(|&k| Kernel::primitive(k)).collect::<Vec<_>>();
        use Kind::{Lin, Per, Rbf, Rq};
        let inputs = match task {
            Task::Series => open(&[Lin, Lin, Per, Per, Rbf, Rbf, Rq, Rq]),
            Task::Table => open(&[Lin, Lin, Rbf, Rbf, Rq, Rq]),
            Task::Axis => open(&[Lin, Rbf, Rq, Per]),
            Task::Optimisation { d } => (0..d.max(1)).map(|c| Kernel::rbf().on(&[c])).collect(),
        };
        Self::network(inputs, &PAPER).expect("eight units make four pairs, four make two")
    }

    /// The default network of a table with two cosines among its inputs, for targets that rise and fall along many
    /// columns, as those of angles do.
    pub fn network_with_waves() -> Kernel {
        use Kind::{Cos, Lin, Rbf, Rq};
        let inputs = [Lin, Lin, Rbf, Rbf, Rq, Rq, Cos, Cos].map(Kernel::primitive);
        Self::network(inputs.to_vec(), &PAPER).expect("eight units make four pairs, four make two")
    }

    /// The default network for d columns with isotropic LIN, as the paper counts its parameters.
    pub fn paper_regression() -> Kernel {
        Self::default_network(Task::Table).map_primitives(|p| match p.kind {
            Kind::Lin => Primitive { sharing: Sharing::Iso, ..p.clone() },
            _ => p.clone(),
        })
    }
}

/// A layer with the weights (row by row) and biases of its units, where it has any.
pub(crate) type LayerParams = (Layer, Option<(Vec<Param>, Vec<Param>)>);

/// A network found in a graph.
pub(crate) struct Network {
    pub inputs: Vec<Kernel>,
    /// From the inputs to the output; Linear layers with weights and biases.
    pub layers: Vec<LayerParams>,
}

/// For every unit of a graph, the units that use it.
pub(crate) fn parents(root: &Kernel) -> HashMap<usize, HashSet<usize>> {
    let mut parents: HashMap<usize, HashSet<usize>> = HashMap::new();
    for unit in root.units() {
        for input in unit.inputs() {
            parents.entry(input.id()).or_default().insert(unit.id());
        }
    }
    parents
}

impl Network {
    /// The network that ends in this unit, if it does. Units used from outside the network are its inputs at best,
    /// so that printing it does not lose their sharing.
    pub fn ending_in(unit: &Kernel, parents: &HashMap<usize, HashSet<usize>>) -> Option<Network> {
        let mut layers = Vec::new();
        let mut row = vec![unit.clone()];
        // The deepest Linear layer seen so far is where the network starts.
        let mut found: Option<Network> = None;
        while let Some((layer, params, inputs)) = peel(&row) {
            layers.push((layer, params));
            if matches!(layer, Layer::Linear(_)) {
                let layers = layers.iter().rev().cloned().collect();
                found = Some(Network { inputs: inputs.clone(), layers });
            }
            let above: HashSet<usize> = row.iter().map(Kernel::id).collect();
            let ids: HashSet<usize> = inputs.iter().map(Kernel::id).collect();
            if ids.len() != inputs.len() || ids.iter().any(|id| !parents[id].is_subset(&above)) {
                break;
            }
            row = inputs;
        }
        found
    }
}

type Peeled = (Layer, Option<(Vec<Param>, Vec<Param>)>, Vec<Kernel>);

/// The layer that a row of units is, and its inputs.
fn peel(row: &[Kernel]) -> Option<Peeled> {
    let first = row.first()?;
    match first.unit() {
        Unit::Linear { of, weights, .. } if !weights.is_empty() => {
            let ids: Vec<usize> = of.iter().map(Kernel::id).collect();
            let (mut w, mut b) = (Vec::new(), Vec::new());
            for unit in row {
                match unit.unit() {
                    Unit::Linear { of, weights, bias: Some(bias) }
                        if of.iter().map(Kernel::id).eq(ids.iter().copied()) =>
                    {
                        w.extend(weights.iter().cloned());
                        b.push(bias.clone());
                    }
                    _ => return None,
                }
            }
            Some((Layer::Linear(row.len()), Some((w, b)), of.clone()))
        }
        Unit::Product { of } => {
            let size = of.len();
            let mut inputs = Vec::new();
            for unit in row {
                match unit.unit() {
                    Unit::Product { of } if of.len() == size => inputs.extend(of.iter().cloned()),
                    _ => return None,
                }
            }
            Some((Layer::Product(row.len()), None, inputs))
        }
        Unit::Activation { f: Activation::Exp, .. } => {
            let all = row.iter().all(|u| matches!(u.unit(), Unit::Activation { f: Activation::Exp, .. }));
            all.then(|| (Layer::Exp, None, row.iter().map(|u| u.inputs()[0].clone()).collect()))
        }
        _ => None,
    }
}

/// The starting weights of a Linear unit over n inputs are drawn between these (DESIGN: 1/2n and 3/2n).
pub fn weight_range(n: usize) -> (f64, f64) {
    (0.5 / n as f64, 1.5 / n as f64)
}

impl Kernel {
    /// For every weight among [`Kernel::params`], the number of inputs of its unit.
    pub fn fan_in(&self) -> Vec<Option<usize>> {
        let mut fan: HashMap<usize, usize> = HashMap::new();
        for kernel in self.units() {
            if let Unit::Linear { of, weights, .. } = kernel.unit() {
                fan.extend(weights.iter().map(|w| (w.id(), of.len())));
            }
        }
        let of = |p: &Param| if p.role() == Role::Weight { fan.get(&p.id()).copied() } else { None };
        self.params().iter().map(of).collect()
    }
}
