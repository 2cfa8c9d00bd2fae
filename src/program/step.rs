//! The vocabulary of a compiled program: coefficients, features of points, atoms of pairs, steps over planes.

use super::profile::keeps_slope;
use crate::kernel::{Profile, Side};

/// A parameter's place in the flat vector, or a number that is held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Slot(usize),
    Held(f64),
}

impl Value {
    pub fn of(self, theta: &[f64]) -> f64 {
        match self {
            Value::Slot(s) => theta[s],
            Value::Held(v) => v,
        }
    }

    pub fn is_trained(self) -> bool {
        matches!(self, Value::Slot(_))
    }
}

/// number · Π θ_s^power
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Monomial {
    pub number: f64,
    pub factors: Vec<(usize, i32)>,
}

impl Monomial {
    pub fn one() -> Self {
        Self { number: 1.0, factors: vec![] }
    }

    pub fn is_one(&self) -> bool {
        self.number == 1.0 && self.factors.is_empty()
    }

    /// value^power
    pub fn power(value: Value, power: i32) -> Self {
        match value {
            Value::Slot(s) => Self { number: 1.0, factors: vec![(s, power)] },
            Value::Held(v) => Self { number: v.powi(power), factors: vec![] },
        }
    }

    pub fn times(&self, other: &Monomial) -> Self {
        let factors = [self.factors.as_slice(), other.factors.as_slice()].concat();
        Self { number: self.number * other.number, factors }
    }

    pub fn of(&self, theta: &[f64]) -> f64 {
        self.factors.iter().fold(self.number, |p, &(s, power)| p * theta[s].powi(power))
    }

    /// Adds `adjoint` · ∂/∂θ to the gradient.
    fn pull(&self, theta: &[f64], adjoint: f64, gradient: &mut [f64]) {
        for (k, &(s, power)) in self.factors.iter().enumerate() {
            let others = self.factors.iter().enumerate().filter(|&(i, _)| i != k);
            let rest = others.fold(self.number, |p, (_, &(s, power))| p * theta[s].powi(power));
            gradient[s] += adjoint * rest * f64::from(power) * theta[s].powi(power - 1);
        }
    }
}

/// A number of the program that follows from the parameters: a sum of monomials.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coefficient(pub Vec<Monomial>);

impl Coefficient {
    pub fn of(&self, theta: &[f64]) -> f64 {
        self.0.iter().map(|m| m.of(theta)).sum()
    }

    pub fn pull(&self, theta: &[f64], adjoint: f64, gradient: &mut [f64]) {
        for m in &self.0 {
            m.pull(theta, adjoint, gradient);
        }
    }
}

/// What is made of each point: one or more features, the first at `first`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PointMap {
    pub first: usize,
    pub kind: MapKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum MapKind {
    /// x_c
    Column(usize),
    /// cos 2πx_c/p, sin 2πx_c/p
    Circle { column: usize, period: Value },
    /// cos μᵀx, sin μᵀx
    Phase { columns: Vec<usize>, frequency: Vec<Value> },
    /// cos fᵀx + cos gᵀx, sin fᵀx + sin gᵀx
    Wave { columns: Vec<usize>, f: Vec<Value>, g: Vec<Value> },
    /// z/|z| (one more than columns), |z|^order with z = (√w_d x_d, √b)
    Sphere { columns: Vec<usize>, weight: Vec<Value>, bias: Value, order: i32 },
    /// 1/(1 + exp(∓(x_c − t)/w))
    Gate { column: usize, place: Value, width: Value, side: Side },
}

impl MapKind {
    /// How many features it makes.
    pub fn width(&self) -> usize {
        match self {
            MapKind::Column(_) | MapKind::Gate { .. } => 1,
            MapKind::Circle { .. } | MapKind::Phase { .. } | MapKind::Wave { .. } => 2,
            MapKind::Sphere { columns, .. } => columns.len() + 2,
        }
    }

    /// Does a trained parameter enter?
    pub fn is_trained(&self) -> bool {
        let any = |list: &[Value]| list.iter().any(|v| v.is_trained());
        match self {
            MapKind::Column(_) => false,
            MapKind::Circle { period, .. } => period.is_trained(),
            MapKind::Phase { frequency, .. } => any(frequency),
            MapKind::Wave { f, g, .. } => any(f) || any(g),
            MapKind::Sphere { weight, bias, .. } => any(weight) || bias.is_trained(),
            MapKind::Gate { place, width, .. } => place.is_trained() || width.is_trained(),
        }
    }
}

/// What is made of each pair: one plane. Numbers are features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// (f − f′)²
    Square(usize),
    /// (f − f′)² + (g − g′)², g next to f
    Chord(usize),
    /// f f′
    Dot(usize),
    /// Re exp(i(a − a′)) = cos a cos a′ + sin a sin a′, sine next to cosine
    TurnRe(usize),
    /// Im exp(i(a − a′)) = sin a cos a′ − cos a sin a′
    TurnIm(usize),
    /// 1 where both are the same row
    Same,
}

/// One instruction over planes. Planes are numbers; `fresh` says, for each input, that the reverse pass meets it here
/// first and writes its adjoint instead of adding to it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Atom {
        atom: Atom,
        out: usize,
    },
    /// out[r] = Σ c[r][i] in[i] + base, r < rows; then products[p] = out[2p] out[2p + 1], where there are any, and
    /// nothing else reads the rows
    Affine {
        inputs: Vec<usize>,
        fresh: Vec<bool>,
        out: usize,
        rows: usize,
        coefficients: usize,
        base: Base,
        products: Vec<usize>,
    },
    /// The same over atoms that nothing else reads and that are never stored: squares or products of features
    Leaf {
        kind: LeafKind,
        features: Vec<usize>,
        out: usize,
        rows: usize,
        coefficients: usize,
        base: Base,
        products: Vec<usize>,
    },
    /// out = profile(in); slopes kept for the reverse pass in planes of their own
    Profile {
        profile: Profile,
        shape: Option<usize>,
        input: usize,
        fresh: bool,
        out: usize,
        slope: usize,
    },
    /// out = a b
    Product {
        a: usize,
        b: usize,
        fresh: [bool; 2],
        out: usize,
    },
    /// out = Re or Im of (a + ib)(c + id), inputs a, b, c, d
    Complex {
        part: Part,
        inputs: [usize; 4],
        fresh: [bool; 4],
        out: usize,
    },
    /// out = exp(in)
    Exp {
        input: usize,
        fresh: bool,
        out: usize,
    },
    /// out = Re or Im of exp(a + ib)
    ComplexExp {
        part: Part,
        inputs: [usize; 2],
        fresh: [bool; 2],
        out: usize,
    },
    /// out[r] = table[r] at the lag of the pair, r < rows
    Lag {
        table: usize,
        out: usize,
        rows: usize,
    },
}

/// The atoms of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    Square,
    Dot,
}

impl LeafKind {
    pub fn atom(self, feature: usize) -> Atom {
        match self {
            LeafKind::Square => Atom::Square(feature),
            LeafKind::Dot => Atom::Dot(feature),
        }
    }
}

/// What an affine step starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Zero,
    /// One coefficient a row, the first at this place.
    Bias(usize),
    /// What the planes hold already.
    Planes,
    /// One table a row, at the lag of the pair, the first at this place.
    Tables(usize),
}

/// Real or imaginary part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Re,
    Im,
}

impl Step {
    /// Multiplications a pair, roughly: so that work can be cut into equal pieces.
    pub fn work(&self) -> usize {
        let tables = |base: &Base| if matches!(base, Base::Tables(_)) { 4 } else { 1 };
        match self {
            Step::Affine { inputs, rows, base, .. } => rows * (inputs.len() + tables(base)),
            Step::Leaf { features, rows, base, .. } => rows * (features.len() + tables(base)),
            Step::Profile { shape: None, .. } | Step::Exp { .. } => 20,
            Step::Profile { shape: Some(_), .. } => 40,
            Step::ComplexExp { .. } => 200,
            Step::Lag { rows, .. } => 4 * rows,
            Step::Atom { .. } | Step::Product { .. } | Step::Complex { .. } => 4,
        }
    }

    /// Does a reverse pass read what the step has written, even where no other step does?
    pub fn is_read_back(&self) -> bool {
        match self {
            Step::Affine { products, .. } | Step::Leaf { products, .. } => !products.is_empty(),
            _ => true,
        }
    }

    /// The planes it reads, each with its place for `fresh`, in the order in which the reverse pass writes adjoints.
    pub fn inputs_mut(&mut self) -> Vec<(usize, &mut bool)> {
        match self {
            Step::Atom { .. } | Step::Leaf { .. } | Step::Lag { .. } => vec![],
            Step::Affine { inputs, fresh, .. } => inputs.iter().copied().zip(fresh.iter_mut()).collect(),
            Step::Profile { input, fresh, .. } | Step::Exp { input, fresh, .. } => vec![(*input, fresh)],
            Step::Product { a, b, fresh: [fa, fb], .. } => vec![(*a, fa), (*b, fb)],
            Step::Complex { inputs, fresh, .. } => inputs.iter().copied().zip(fresh.iter_mut()).collect(),
            Step::ComplexExp { inputs, fresh, .. } => inputs.iter().copied().zip(fresh.iter_mut()).collect(),
        }
    }

    /// The rows of a matrix product, of which products may be made.
    pub fn products_mut(&mut self) -> Option<(std::ops::Range<usize>, &mut Vec<usize>)> {
        match self {
            Step::Affine { out, rows, products, .. } | Step::Leaf { out, rows, products, .. } => {
                Some((*out..*out + *rows, products))
            }
            _ => None,
        }
    }

    /// Does the way back through it read what it made?
    pub fn reads_own_value(&self) -> bool {
        match self {
            Step::Profile { profile, .. } => !keeps_slope(*profile),
            Step::Exp { .. } | Step::ComplexExp { .. } => true,
            _ => false,
        }
    }

    /// The products of rows it makes.
    pub fn products(&self) -> &[usize] {
        match self {
            Step::Affine { products, .. } | Step::Leaf { products, .. } => products,
            _ => &[],
        }
    }

    /// The planes it writes, products aside.
    pub fn outputs(&self) -> std::ops::Range<usize> {
        match *self {
            Step::Affine { out, rows, .. } | Step::Leaf { out, rows, .. } | Step::Lag { out, rows, .. } => {
                out..out + rows
            }
            Step::Atom { out, .. }
            | Step::Profile { out, .. }
            | Step::Product { out, .. }
            | Step::Complex { out, .. }
            | Step::Exp { out, .. }
            | Step::ComplexExp { out, .. } => out..out + 1,
        }
    }
}
