//! Questions to a kernel: which columns it looks at, whether it is stationary, complex, separable. Models ask these and
//! never look at what a kernel is made of.

use super::network::{Network, parents};
use super::{Columns, Kernel, Kind, Unit};
use std::collections::{BTreeSet, HashMap};

impl Kernel {
    /// Folds a fact over the graph, inputs first, each unit once.
    pub(crate) fn fold<T: Clone>(&self, mut f: impl FnMut(&Unit, &[T]) -> T) -> T {
        let mut known: HashMap<usize, T> = HashMap::new();
        let mut last = None;
        for kernel in self.units() {
            let inputs: Vec<T> = kernel.inputs().iter().map(|k| known[&k.id()].clone()).collect();
            let fact = f(kernel.unit(), &inputs);
            last = Some(fact.clone());
            known.insert(kernel.id(), fact);
        }
        last.expect("a graph has at least one unit")
    }

    /// Does the value depend on x − x' alone? (Sufficient: a sum of gates could be constant by chance.)
    pub fn is_stationary(&self) -> bool {
        self.fold(|unit, inputs| match unit {
            Unit::Primitive(p) => p.kind.is_stationary(),
            _ => inputs.iter().all(|&s| s),
        })
    }

    /// Does a unit of it have an imaginary part before the real part of the whole is taken?
    pub fn is_complex(&self) -> bool {
        self.fold(|unit, inputs| match unit {
            Unit::Primitive(p) => p.kind == Kind::Expi,
            Unit::Real { .. } => false,
            _ => inputs.iter().any(|&c| c),
        })
    }

    /// Does it end in layers of weighted units?
    pub fn is_network(&self) -> bool {
        Network::ending_in(self, &parents(self)).is_some()
    }

    /// Can it tell two rows with equal inputs apart? White noise does.
    pub fn tells_rows_apart(&self) -> bool {
        self.fold(|unit, inputs| match unit {
            Unit::Primitive(p) => p.kind == Kind::Wn,
            _ => inputs.iter().any(|&apart| apart),
        })
    }

    /// The numbers of the columns it looks at, of d in all. Columns known only by name count as all of them.
    pub fn columns(&self, d: usize) -> BTreeSet<usize> {
        self.fold(|unit, inputs: &[BTreeSet<usize>]| match unit {
            Unit::Primitive(p) if !p.kind.uses_columns() => BTreeSet::new(),
            Unit::Primitive(p) => match (&p.columns, p.column_numbers(d)) {
                (Columns::These(_), Ok(list)) => list.into_iter().collect(),
                _ => (0..d).collect(),
            },
            _ => inputs.iter().flatten().copied().collect(),
        })
    }

    /// Writes the kernel as a product of kernels that look at disjoint columns, if it is one: the factors with their
    /// columns. A kernel that is not a product is one factor.
    pub fn factors(&self, d: usize) -> Vec<(BTreeSet<usize>, Kernel)> {
        let of = match self.unit() {
            Unit::Product { of } => of.clone(),
            _ => vec![self.clone()],
        };
        let mut groups: Vec<(BTreeSet<usize>, Vec<Kernel>)> = Vec::new();
        for kernel in of {
            let mut columns = kernel.columns(d);
            let mut members = vec![kernel];
            // Whatever shares a column (or looks at none) joins.
            let (joined, rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|(c, _)| columns.is_empty() || !c.is_disjoint(&columns));
            groups = rest;
            for (c, m) in joined.into_iter().rev() {
                columns.extend(c);
                members.splice(0..0, m);
            }
            groups.push((columns, members));
        }
        groups.into_iter().map(|(c, members)| (c, Kernel::product(members))).collect()
    }

    /// Is it a product of kernels over disjoint sets of columns, every one of d columns on its own?
    pub fn is_separable(&self, d: usize) -> bool {
        let factors = self.factors(d);
        factors.len() == d && factors.iter().all(|(columns, _)| columns.len() == 1)
    }
}
