//! Parameters: one positive or free number each, with the role it plays. The role alone decides transform, starting
//! value, unit and wording. Parameters are shared by identity: a clone is the same parameter.

use std::sync::Arc;

/// What a parameter means. Columns are numbers of input columns; `None` means all columns of the primitive alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Prior variance of a primitive.
    Variance,
    /// Prior variance of the slope in a column (LIN), or of a hidden weight (ARCCOS).
    Slope {
        /// The input column.
        column: Option<usize>,
    },
    /// Distance over which values stay alike.
    Lengthscale {
        /// The input column.
        column: Option<usize>,
    },
    /// Length of one repetition.
    Period {
        /// The input column.
        column: Option<usize>,
    },
    /// Angular frequency, of any sign.
    Frequency {
        /// The input column.
        column: Option<usize>,
    },
    /// A place on the axis of a column, of any sign.
    Location {
        /// The input column.
        column: Option<usize>,
    },
    /// A pure number that shapes a profile (α of RQ).
    Shape,
    /// How smooth one repetition is: the lengthscale of PER, a pure number.
    Smoothness,
    /// A nonnegative constant added inside a primitive (POLY, ARCCOS).
    Offset,
    /// Weight of an input of a Linear unit.
    Weight,
    /// Constant of a Linear unit.
    Bias,
    /// Variance of the observation noise.
    Noise,
}

/// How a parameter becomes a number without bounds, for the optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// The value itself: any sign.
    Identity,
    /// value = exp(raw): positive, scale-free.
    Log,
    /// value = ln(1 + exp(raw)): positive, linear when large.
    Softplus,
}

impl Transform {
    /// The value of a raw number.
    pub fn value(self, raw: f64) -> f64 {
        match self {
            Self::Identity => raw,
            Self::Log => raw.exp(),
            Self::Softplus => raw.max(0.0) + (-raw.abs()).exp().ln_1p(),
        }
    }

    /// The raw number of a value. Positive transforms take a value of zero to a very small one.
    pub fn raw(self, value: f64) -> f64 {
        match self {
            Self::Identity => value,
            Self::Log => value.max(1e-300).ln(),
            // ln(e^v − 1) = v + ln(1 − e^−v)
            Self::Softplus => {
                let v = value.max(1e-300);
                v + (-(-v).exp_m1()).ln()
            }
        }
    }

    /// d value / d raw.
    pub fn slope(self, raw: f64) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Log => raw.exp(),
            Self::Softplus => 1.0 / (1.0 + (-raw).exp()),
        }
    }
}

impl Role {
    /// The transform of parameters of this role.
    pub fn transform(self) -> Transform {
        match self {
            Self::Frequency { .. } | Self::Location { .. } => Transform::Identity,
            Self::Weight | Self::Bias => Transform::Softplus,
            _ => Transform::Log,
        }
    }

    /// The value taken where nothing is known of the data.
    pub fn default_value(self) -> f64 {
        match self {
            Self::Bias => 0.01,
            Self::Noise => 0.1,
            Self::Location { .. } => 0.0,
            _ => 1.0,
        }
    }

    /// The word for it in messages and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variance => "variance",
            Self::Slope { .. } => "slope variance",
            Self::Lengthscale { .. } => "lengthscale",
            Self::Period { .. } => "period",
            Self::Frequency { .. } => "frequency",
            Self::Location { .. } => "location",
            Self::Shape => "shape",
            Self::Smoothness => "smoothness",
            Self::Offset => "offset",
            Self::Weight => "weight",
            Self::Bias => "bias",
            Self::Noise => "noise variance",
        }
    }

    /// The input column it belongs to, if it belongs to one.
    pub fn column(self) -> Option<usize> {
        match self {
            Self::Slope { column }
            | Self::Lengthscale { column }
            | Self::Period { column }
            | Self::Frequency { column }
            | Self::Location { column } => column,
            _ => None,
        }
    }

    /// The same role for a column.
    pub(crate) fn of_column(self, column: Option<usize>) -> Self {
        match self {
            Self::Slope { .. } => Self::Slope { column },
            Self::Lengthscale { .. } => Self::Lengthscale { column },
            Self::Period { .. } => Self::Period { column },
            Self::Frequency { .. } => Self::Frequency { column },
            Self::Location { .. } => Self::Location { column },
            other => other,
        }
    }
}

/// One parameter of a kernel. A clone is the same parameter: where it occurs twice, it is trained as one.
#[derive(Debug, Clone)]
pub struct Param(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    role: Role,
    value: Option<f64>,
    fixed: bool,
}

impl Param {
    /// A parameter whose value is still to be chosen.
    pub fn open(role: Role) -> Self {
        Self(Arc::new(Inner { role, value: None, fixed: false }))
    }

    /// A parameter that starts at a value.
    pub fn at(role: Role, value: f64) -> Self {
        Self(Arc::new(Inner { role, value: Some(value), fixed: false }))
    }

    /// A parameter that is held at a value.
    pub fn fixed(role: Role, value: f64) -> Self {
        Self(Arc::new(Inner { role, value: Some(value), fixed: true }))
    }

    /// What it means.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// Its value, where one was given or learned.
    pub fn value(&self) -> Option<f64> {
        self.0.value
    }

    /// Its value, or the one its role starts from.
    pub fn value_or_default(&self) -> f64 {
        self.0.value.unwrap_or_else(|| self.0.role.default_value())
    }

    /// Is it held at its value?
    pub fn is_fixed(&self) -> bool {
        self.0.fixed
    }

    /// The same parameter in another place of the same kernel has the same identity.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// A fresh parameter with another role or value.
    pub(crate) fn with(&self, role: Role, value: Option<f64>) -> Self {
        Self(Arc::new(Inner { role, value, fixed: self.0.fixed }))
    }
}
