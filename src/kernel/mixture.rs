//! Kernels with names of their own that are plain expressions: spectral mixtures, the heuristic sum, additive sets.

use super::{Kernel, Kind, Param, Primitive, Role, Unit};

impl Kernel {
    /// The spectral mixture of q components, Σ w exp(−½ Σ τ²v) cos(μᵀτ): each is `RBF * COS` with the variance of the
    /// RBF held at one, so that a component has 2d + 1 parameters.
    pub fn spectral_mixture(q: usize) -> Kernel {
        let unit_rbf = || {
            let mut rbf = Primitive::new(Kind::Rbf);
            rbf.groups[0] = vec![Param::fixed(Role::Variance, 1.0)];
            Kernel::from_unit(Unit::Primitive(rbf))
        };
        Kernel::sum((0..q.max(1)).map(|_| unit_rbf() * Kernel::primitive(Kind::Cos)))
    }

    /// The sum people write by hand for a series: LIN + PER + RBF + C.
    pub fn heuristic() -> Kernel {
        Kernel::sum([Kernel::lin(), Kernel::per(), Kernel::rbf(), Kernel::constant()])
    }

    /// A sum of one RBF for each set of columns.
    pub fn additive(sets: &[Vec<usize>]) -> Kernel {
        Kernel::sum(sets.iter().map(|set| Kernel::rbf().on(set)))
    }

    /// What rows nearer to one another than this width have in common, and no others: an RBF whose lengthscale is held, and whose
    /// variance starts at this value.
    pub fn place(width: f64, variance: f64) -> Kernel {
        let mut rbf = Primitive::new(Kind::Rbf);
        rbf.groups[0] = vec![Param::at(Role::Variance, variance)];
        rbf.groups[1] = vec![Param::fixed(Role::Lengthscale { column: None }, width)];
        Kernel::from_unit(Unit::Primitive(rbf))
    }

    /// A constant that is not trained.
    pub fn held_constant(value: f64) -> Kernel {
        let mut constant = Primitive::new(Kind::C);
        constant.groups[0] = vec![Param::fixed(Role::Variance, value)];
        Kernel::from_unit(Unit::Primitive(constant))
    }
}
