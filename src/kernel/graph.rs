//! Walking and rebuilding the graph: its units once each, its parameters once each, equality, binding to columns, new
//! values. Sharing is kept: what was one unit or one parameter stays one.

use super::{Kernel, Param, Primitive, Unit};
use crate::error::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from units or parameters by identity. Keys are addresses, which nobody chooses: one multiplication mixes them
/// well enough.
pub(crate) type ById<V> = HashMap<usize, V, BuildHasherDefault<IdHasher>>;

/// The hasher of [`ById`].
#[derive(Debug, Clone, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(usize::from(b)));
    }

    fn write_usize(&mut self, id: usize) {
        self.0 = (self.0 ^ id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

impl Kernel {
    /// The inputs of the topmost unit.
    pub fn inputs(&self) -> &[Kernel] {
        match self.unit() {
            Unit::Primitive(_) => &[],
            Unit::Linear { of, .. } | Unit::Product { of } => of,
            Unit::Activation { of, .. } | Unit::Real { of } => std::slice::from_ref(of),
        }
    }

    /// Every unit once, inputs before what uses them.
    pub fn units(&self) -> Vec<Kernel> {
        // An explicit stack: a graph may be deeper than the call stack.
        let (mut order, mut seen) = (Vec::new(), ById::default());
        let mut stack = vec![(self, false)];
        while let Some((kernel, ready)) = stack.pop() {
            if ready {
                order.push(kernel.clone());
            } else if seen.insert(kernel.id(), ()).is_none() {
                stack.push((kernel, true));
                stack.extend(kernel.inputs().iter().rev().map(|k| (k, false)));
            }
        }
        order
    }

    /// The parameters of the topmost unit, in the order of the flat vector.
    pub(crate) fn own_params(&self) -> Vec<&Param> {
        match self.unit() {
            Unit::Primitive(p) => p.params().collect(),
            Unit::Linear { weights, bias, .. } => weights.iter().chain(bias).collect(),
            _ => vec![],
        }
    }

    /// Every parameter once, held ones too, in the order of the units.
    pub(crate) fn all_params(&self) -> Vec<Param> {
        let (mut list, mut seen) = (Vec::new(), ById::default());
        for unit in self.units() {
            for param in unit.own_params() {
                if seen.insert(param.id(), ()).is_none() {
                    list.push(param.clone());
                }
            }
        }
        list
    }

    /// The parameters that are trained, once each: the meaning of each entry of the flat vector.
    pub fn params(&self) -> Vec<Param> {
        self.all_params().into_iter().filter(|p| !p.is_fixed()).collect()
    }

    /// The values of [`Kernel::params`], those still open at the values their roles start from.
    pub fn values(&self) -> Vec<f64> {
        self.params().iter().map(Param::value_or_default).collect()
    }

    /// The same kernel with these values for [`Kernel::params`].
    ///
    /// # Errors
    /// When there are more or fewer values than parameters.
    pub fn with_values(&self, values: &[f64]) -> Result<Kernel> {
        let params = self.params();
        if params.len() != values.len() {
            let (expected, found) = (params.len(), values.len());
            return Err(ErrorKind::Size { what: "kernel parameters", expected, found }.into());
        }
        let fresh: ById<Param> =
            params.iter().zip(values).map(|(p, &v)| (p.id(), p.with(p.role(), Some(v)))).collect();
        Ok(self.map_params(|p| fresh.get(&p.id()).unwrap_or(p).clone()))
    }

    /// The same graph with other parameters; `f` must answer the same for the same parameter.
    pub(crate) fn map_params(&self, mut f: impl FnMut(&Param) -> Param) -> Kernel {
        let rebuilt = self.rebuild(|unit| {
            Ok(match unit {
                Unit::Primitive(p) => {
                    let groups = p.groups.iter().map(|g| g.iter().map(&mut f).collect()).collect();
                    Unit::Primitive(Primitive { groups, ..p })
                }
                Unit::Linear { of, weights, bias } => Unit::Linear {
                    of,
                    weights: weights.iter().map(&mut f).collect(),
                    bias: bias.as_ref().map(&mut f),
                },
                other => other,
            })
        });
        rebuilt.expect("renaming parameters does not fail")
    }

    /// The same graph with other primitives.
    pub(crate) fn map_primitives(&self, mut f: impl FnMut(&Primitive) -> Primitive) -> Kernel {
        let rebuilt = self.rebuild(|unit| {
            Ok(match unit {
                Unit::Primitive(p) => Unit::Primitive(f(&p)),
                other => other,
            })
        });
        rebuilt.expect("replacing primitives does not fail")
    }

    /// The same kernel for data with these input columns: names become numbers, every parameter exists.
    ///
    /// # Errors
    /// When the kernel names a column that is not there, or has a number of values that does not fit the columns.
    pub fn bind(&self, names: &[String]) -> Result<Kernel> {
        let mut renamed = HashMap::new();
        self.rebuild(|unit| {
            Ok(match unit {
                Unit::Primitive(p) => Unit::Primitive(p.bind(names, &mut renamed)?),
                other => other,
            })
        })
    }

    /// [`Kernel::bind`] to d columns named by their numbers.
    ///
    /// # Errors
    /// As [`Kernel::bind`].
    pub fn bind_to(&self, d: usize) -> Result<Kernel> {
        self.bind(&(0..d).map(|c| c.to_string()).collect::<Vec<_>>())
    }

    /// Rebuilds every unit once, inputs first; sharing is kept.
    fn rebuild(&self, mut f: impl FnMut(Unit) -> Result<Unit>) -> Result<Kernel> {
        let mut done: ById<Kernel> = ById::default();
        for old in self.units() {
            let get = |k: &Kernel| done[&k.id()].clone();
            let unit = match old.unit() {
                Unit::Primitive(p) => Unit::Primitive(p.clone()),
                Unit::Linear { of, weights, bias } => {
                    Unit::Linear { of: of.iter().map(get).collect(), weights: weights.clone(), bias: bias.clone() }
                }
                Unit::Product { of } => Unit::Product { of: of.iter().map(get).collect() },
                Unit::Activation { of, f } => Unit::Activation { of: get(of), f: *f },
                Unit::Real { of } => Unit::Real { of: get(of) },
            };
            done.insert(old.id(), Kernel::from_unit(f(unit)?));
        }
        done.remove(&self.id()).ok_or_else(|| Error::kernel("empty graph"))
    }

    /// The graph as a list in which inputs and parameters are numbers: equal lists, equal kernels.
    fn canonical(&self) -> Vec<Canonical> {
        let units = self.units();
        let place: ById<usize> = units.iter().enumerate().map(|(i, k)| (k.id(), i)).collect();
        let params: ById<usize> = self.all_params().iter().enumerate().map(|(i, p)| (p.id(), i)).collect();
        let describe = |k: &Kernel| {
            let head = match k.unit() {
                Unit::Primitive(p) => {
                    let sizes: Vec<usize> = p.groups.iter().map(Vec::len).collect();
                    format!("{:?} {:?} {:?} {sizes:?}", p.kind, p.columns, p.sharing)
                }
                Unit::Linear { weights, bias, .. } => format!("Linear {} {}", weights.len(), bias.is_some()),
                Unit::Product { .. } => "Product".to_string(),
                Unit::Activation { f, .. } => format!("{f:?}"),
                Unit::Real { .. } => "Real".to_string(),
            };
            let inputs = k.inputs().iter().map(|k| place[&k.id()]).collect();
            let param = |p: &&Param| (params[&p.id()], p.value().map(f64::to_bits), p.is_fixed());
            (head, inputs, k.own_params().iter().map(param).collect())
        };
        units.iter().map(describe).collect()
    }
}

type Canonical = (String, Vec<usize>, Vec<(usize, Option<u64>, bool)>);

/// Equal when they are written the same: the same units on the same columns, shared alike, with the same values.
impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id() || self.canonical() == other.canonical()
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({self})")
    }
}
