//! The one representation of a kernel: a value to write, edit, print, explain and store. A kernel is a small graph of
//! units, each of which is a kernel itself; a whole network is no exception. Knows nothing of data or matrices:
//! `program/` compiles it.

mod graph;
mod mixture;
mod network;
mod param;
mod primitive;
mod print;
mod structure;
mod terms;
mod text;

pub(crate) use graph::ById;
pub use network::{Layer, Task, weight_range};
pub use param::{Param, Role, Transform};
pub use primitive::{Column, Columns, Geometry, Kind, Map, Primitive, Profile, Row, Sharing, Side, Size};
pub use terms::Term;

use std::sync::Arc;

/// A kernel: a shared graph of units. A clone is the same kernel; used twice in a sum or product, it is trained as one.
///
/// ```
/// use covary::Kernel;
/// let k = Kernel::lin() * (Kernel::per() + Kernel::rbf());
/// assert_eq!(k, "LIN * (PER + RBF)".parse()?);
/// assert_eq!(k.terms()?.len(), 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Clone)]
pub struct Kernel(Arc<Unit>);

/// One unit of the graph: one kernel.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Unit {
    /// σ² · profile(geometry(map(x), map(x′)))
    Primitive(Primitive),
    /// Σ wᵢ kᵢ + b, with w, b ≥ 0. Without weights: the plain sum.
    Linear {
        /// The inputs.
        of: Vec<Kernel>,
        /// One weight an input, or none.
        weights: Vec<Param>,
        /// The constant.
        bias: Option<Param>,
    },
    /// Π kᵢ
    Product {
        /// The factors.
        of: Vec<Kernel>,
    },
    /// f(k), for an f under which kernels stay kernels.
    Activation {
        /// The input.
        of: Kernel,
        /// The function.
        f: Activation,
    },
    /// Re k
    Real {
        /// The input.
        of: Kernel,
    },
}

/// A function under which kernels stay kernels: a power series with nonnegative coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// exp(k)
    Exp,
}

impl Kernel {
    pub(crate) fn from_unit(unit: Unit) -> Self {
        Self(Arc::new(unit))
    }

    /// The topmost unit.
    pub fn unit(&self) -> &Unit {
        &self.0
    }

    /// The same unit in two places has the same identity.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const () as usize
    }

    /// A primitive over all columns, with open parameters.
    pub fn primitive(kind: Kind) -> Self {
        Self::from_unit(Unit::Primitive(Primitive::new(kind)))
    }

    /// Squared exponential.
    pub fn rbf() -> Self {
        Self::primitive(Kind::Rbf)
    }

    /// Rational quadratic.
    pub fn rq() -> Self {
        Self::primitive(Kind::Rq)
    }

    /// Periodic.
    pub fn per() -> Self {
        Self::primitive(Kind::Per)
    }

    /// Linear.
    pub fn lin() -> Self {
        Self::primitive(Kind::Lin)
    }

    /// Constant.
    pub fn constant() -> Self {
        Self::primitive(Kind::C)
    }

    /// White noise.
    pub fn white() -> Self {
        Self::primitive(Kind::Wn)
    }

    /// Matérn 5/2.
    pub fn matern52() -> Self {
        Self::primitive(Kind::Mat52)
    }

    /// Another kernel on each side of a change-point in a column, which both gates share:
    /// `BEFORE * before + AFTER * after`.
    ///
    /// ```
    /// use covary::Kernel;
    /// let k = Kernel::change_point(Kernel::rbf(), Kernel::per(), 0);
    /// assert_eq!(k.to_string(), "let a = ?; let b = ?; BEFORE[0](t=a, w=b) * RBF + AFTER[0](t=a, w=b) * PER");
    /// ```
    pub fn change_point(before: Kernel, after: Kernel, column: usize) -> Self {
        let place = Param::open(Role::Location { column: Some(column) });
        let width = Param::open(Role::Lengthscale { column: Some(column) });
        let gate = |side| {
            Self::from_unit(Unit::Primitive(Primitive {
                kind: Kind::Gate(side),
                columns: Columns::These(vec![Column::Number(column)]),
                sharing: Sharing::Ard,
                groups: vec![vec![place.clone()], vec![width.clone()]],
            }))
        };
        gate(Side::Before) * before + gate(Side::After) * after
    }

    /// The plain sum of kernels. Sums within sums become one.
    pub fn sum(kernels: impl IntoIterator<Item = Kernel>) -> Self {
        let mut kernels: Vec<Kernel> = kernels.into_iter().collect();
        if kernels.len() == 1 {
            return kernels.remove(0);
        }
        let mut of = Vec::new();
        for kernel in kernels {
            match kernel.unit() {
                Unit::Linear { of: inner, weights, bias: None } if weights.is_empty() => of.extend(inner.clone()),
                _ => of.push(kernel),
            }
        }
        Self::from_unit(Unit::Linear { of, weights: vec![], bias: None })
    }

    /// The product of kernels. Products within products become one.
    pub fn product(kernels: impl IntoIterator<Item = Kernel>) -> Self {
        let mut kernels: Vec<Kernel> = kernels.into_iter().collect();
        if kernels.len() == 1 {
            return kernels.remove(0);
        }
        let mut of = Vec::new();
        for kernel in kernels {
            match kernel.unit() {
                Unit::Product { of: inner } => of.extend(inner.clone()),
                _ => of.push(kernel),
            }
        }
        Self::from_unit(Unit::Product { of })
    }

    /// Σ wᵢ kᵢ + b with open weights and bias: one unit of a Linear layer.
    pub fn linear(of: Vec<Kernel>) -> Self {
        let weights = of.iter().map(|_| Param::open(Role::Weight)).collect();
        Self::from_unit(Unit::Linear { of, weights, bias: Some(Param::open(Role::Bias)) })
    }

    /// exp(k)
    #[must_use]
    pub fn exp(self) -> Self {
        Self::from_unit(Unit::Activation { of: self, f: Activation::Exp })
    }

    /// Re k
    #[must_use]
    pub fn real(self) -> Self {
        match self.unit() {
            Unit::Real { .. } => self,
            _ => Self::from_unit(Unit::Real { of: self }),
        }
    }

    /// The same kernel with every primitive looking only at these columns.
    #[must_use]
    pub fn on(self, columns: &[usize]) -> Self {
        let list = Columns::These(columns.iter().map(|&c| Column::Number(c)).collect());
        self.map_primitives(|p| match p.kind.uses_columns() {
            true => Primitive { columns: list.clone(), ..p.clone() },
            false => p.clone(),
        })
    }

    /// The same kernel with one lengthscale for all columns in each primitive.
    #[must_use]
    pub fn iso(self) -> Self {
        self.map_primitives(|p| match p.kind.row().groups.iter().any(|g| g.2 == Size::Columns) {
            true => Primitive { sharing: Sharing::Iso, ..p.clone() },
            false => p.clone(),
        })
    }
}

impl std::ops::Add for Kernel {
    type Output = Kernel;
    fn add(self, other: Kernel) -> Kernel {
        Kernel::sum([self, other])
    }
}

impl std::ops::Mul for Kernel {
    type Output = Kernel;
    fn mul(self, other: Kernel) -> Kernel {
        Kernel::product([self, other])
    }
}
