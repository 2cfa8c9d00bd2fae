//! The table of primitives. A primitive is a sentence of three words: a map of each point, a geometry of each pair, a
//! profile of the result. Parameters, printing, starting values and tests come from the words; the arithmetic of each
//! word is in `program/`.

use super::param::{Param, Role};
use crate::error::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// What is done to each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// Nothing.
    Plain,
    /// x_d / ℓ_d
    Scale,
    /// √σ²_d · x_d
    Weigh,
    /// (cos 2πx_d/p_d, sin 2πx_d/p_d) / ℓ_d
    Circle,
    /// (cos μᵀx, sin μᵀx)
    Phase,
    /// (√w_d x_d, √b), brought to length one; the length is kept
    Sphere,
    /// (cos w₁ᵀx + cos w₂ᵀx, sin w₁ᵀx + sin w₂ᵀx)
    Wave,
    /// 1/(1 + exp(∓(x − t)/w))
    Gate(Side),
}

/// The side of a change-point on which a gate is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Open before the change.
    Before,
    /// Open after the change.
    After,
}

/// What is made of each pair of mapped points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geometry {
    /// The squared distance.
    Distance,
    /// The inner product.
    Dot,
    /// The complex number exp(i(a − b)) of two phases.
    Turn,
    /// 1 where both are the same row, else 0.
    Same,
    /// 1.
    One,
}

/// The function that turns the geometry's number into the value of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// s
    Identity,
    /// exp(−s/2)
    Gauss,
    /// (1 + s/2α)^(−α)
    RationalQuadratic,
    /// exp(−√s)
    Matern12,
    /// (1 + √3s) exp(−√3s)
    Matern32,
    /// (1 + √5s + 5s/3) exp(−√5s)
    Matern52,
    /// The arc-cosine kernel's angular function of this order (0, 1, 2), of the squared chord.
    Arc(u8),
    /// (s + c)^q
    Power(u8),
}

/// The kinds of primitives: the rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Kind {
    Rbf,
    Rq,
    Per,
    Lin,
    Cos,
    Expi,
    Mat12,
    Mat32,
    Mat52,
    Arccos(u8),
    Poly(u8),
    C,
    Wn,
    Gsk,
    Gate(Side),
}

/// One lengthscale for every column, or one for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// One value a column (automatic relevance determination).
    Ard,
    /// One value for all columns.
    Iso,
}

/// How many parameters a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// One.
    One,
    /// One a column, or one in all if the primitive is isotropic.
    Columns,
    /// One a column, always (directions have no isotropic form).
    EachColumn,
}

/// One row of the table: what a kind is made of.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name in kernel text.
    pub name: Cow<'static, str>,
    /// What is done to each point.
    pub map: Map,
    /// What is made of each pair.
    pub geometry: Geometry,
    /// What becomes of it.
    pub profile: Profile,
    /// Names, roles and sizes of the parameter groups, in the order of the flat vector.
    pub groups: &'static [(&'static str, Role, Size)],
    /// The formula, for people.
    pub formula: &'static str,
}

impl Kind {
    /// Every kind, small orders of those that have one.
    pub fn all() -> Vec<Kind> {
        use Kind::*;
        let (before, after) = (Gate(Side::Before), Gate(Side::After));
        vec![
            Rbf,
            Rq,
            Per,
            Lin,
            Cos,
            Expi,
            Mat12,
            Mat32,
            Mat52,
            Arccos(0),
            Arccos(1),
            Arccos(2),
            Poly(2),
            Poly(3),
            C,
            Wn,
            Gsk,
            before,
            after,
        ]
    }

    /// The row of the table.
    pub fn row(self) -> Row {
        const V: (&str, Role, Size) = ("v", Role::Variance, Size::One);
        const L: (&str, Role, Size) = ("l", Role::Lengthscale { column: None }, Size::Columns);
        const F: (&str, Role, Size) = ("f", Role::Frequency { column: None }, Size::EachColumn);
        const G: (&str, Role, Size) = ("g", F.1, F.2);
        let row = |name: &'static str, map, geometry, profile, groups, formula| {
            let name = match self {
                Kind::Arccos(number) | Kind::Poly(number) => format!("{name}{number}").into(),
                _ => name.into(),
            };
            Row { name, map, geometry, profile, groups, formula }
        };
        use Geometry::{Distance, Dot, One, Same, Turn};
        match self {
            Kind::Rbf => row("RBF", Map::Scale, Distance, Profile::Gauss, &[V, L], "v exp(-1/2 sum (t/l)^2)"),
            Kind::Rq => row(
                "RQ",
                Map::Scale,
                Distance,
                Profile::RationalQuadratic,
                &[V, L, ("a", Role::Shape, Size::One)],
                "v (1 + sum (t/l)^2 / 2a)^-a",
            ),
            Kind::Per => row(
                "PER",
                Map::Circle,
                Distance,
                Profile::Gauss,
                &[V, ("l", Role::Smoothness, Size::Columns), ("p", Role::Period { column: None }, Size::Columns)],
                "v exp(-2 sum sin^2(pi t/p) / l^2)",
            ),
            Kind::Lin => row(
                "LIN",
                Map::Weigh,
                Dot,
                Profile::Identity,
                &[("v", Role::Slope { column: None }, Size::Columns)],
                "sum v x x'",
            ),
            Kind::Cos => row("COS", Map::Phase, Turn, Profile::Identity, &[V, F], "v cos(sum f t)"),
            Kind::Expi => row("EXPI", Map::Phase, Turn, Profile::Identity, &[V, F], "v exp(i sum f t), complex"),
            Kind::Mat12 => {
                row("MAT12", Map::Scale, Distance, Profile::Matern12, &[V, L], "v exp(-r), r^2 = sum (t/l)^2")
            }
            Kind::Mat32 => {
                row("MAT32", Map::Scale, Distance, Profile::Matern32, &[V, L], "v (1 + sqrt3 r) exp(-sqrt3 r)")
            }
            Kind::Mat52 => row(
                "MAT52",
                Map::Scale,
                Distance,
                Profile::Matern52,
                &[V, L],
                "v (1 + sqrt5 r + 5 r^2/3) exp(-sqrt5 r)",
            ),
            Kind::Arccos(order) => row(
                "ARCCOS",
                Map::Sphere,
                Distance,
                Profile::Arc(order),
                &[V, ("w", Role::Slope { column: None }, Size::Columns), ("b", Role::Offset, Size::One)],
                "v/pi (|z||z'|)^order J(angle(z, z')), z = (sqrt w x, sqrt b)",
            ),
            Kind::Poly(degree) => row(
                "POLY",
                Map::Plain,
                Dot,
                Profile::Power(degree),
                &[V, ("c", Role::Offset, Size::One)],
                "v (sum x x' + c)^degree",
            ),
            Kind::C => row("C", Map::Plain, One, Profile::Identity, &[V], "v"),
            Kind::Wn => row("WN", Map::Plain, Same, Profile::Identity, &[V], "v where both are the same row, else 0"),
            Kind::Gsk => row(
                "GSK",
                Map::Wave,
                Dot,
                Profile::Identity,
                &[V, F, G],
                "v P(x).P(x'), P = (cos fx + cos gx, sin fx + sin gx)",
            ),
            Kind::Gate(side) => row(
                if side == Side::Before { "BEFORE" } else { "AFTER" },
                Map::Gate(side),
                Dot,
                Profile::Identity,
                &[
                    ("t", Role::Location { column: None }, Size::One),
                    ("w", Role::Lengthscale { column: None }, Size::One),
                ],
                "g(x) g(x'), g = 1/(1 + exp(+-(x - t)/w)), one column",
            ),
        }
    }

    /// The kind of a name in kernel text.
    pub fn from_name(name: &str) -> Option<Kind> {
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse::<u8>().ok());
        match (number("ARCCOS"), number("POLY")) {
            (Some(order), _) => (order <= 2).then_some(Kind::Arccos(order)),
            (_, Some(degree)) => (1..=9).contains(&degree).then_some(Kind::Poly(degree)),
            _ => Kind::all().into_iter().find(|kind| kind.row().name == name),
        }
    }

    /// Does the value depend on x − x' alone?
    pub fn is_stationary(self) -> bool {
        matches!(
            self,
            Kind::Rbf
                | Kind::Rq
                | Kind::Per
                | Kind::Cos
                | Kind::Expi
                | Kind::Mat12
                | Kind::Mat32
                | Kind::Mat52
                | Kind::C
                | Kind::Wn
        )
    }

    /// Does it look at the columns at all?
    pub fn uses_columns(self) -> bool {
        !matches!(self, Kind::C | Kind::Wn)
    }
}

/// The columns a primitive looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// All there are.
    All,
    /// These, by number or name.
    These(Vec<Column>),
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By number, from 0.
    Number(usize),
    /// By name, to be found in the data.
    Name(String),
}

/// One primitive of a kernel: a kind, the columns it looks at, and its parameters.
#[derive(Debug, Clone)]
pub struct Primitive {
    pub(crate) kind: Kind,
    pub(crate) columns: Columns,
    pub(crate) sharing: Sharing,
    /// One list a group of the row; empty where the number of columns is not known yet and no value was given.
    pub(crate) groups: Vec<Vec<Param>>,
}

impl Primitive {
    /// A primitive of this kind over all columns, with open parameters.
    pub fn new(kind: Kind) -> Self {
        let open = |&(_, role, size): &(&str, Role, Size)| match size {
            Size::One => vec![Param::open(role)],
            Size::Columns | Size::EachColumn => vec![],
        };
        let groups = kind.row().groups.iter().map(open).collect();
        Self { kind, columns: Columns::All, sharing: Sharing::Ard, groups }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The columns it looks at.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// One lengthscale a column, or one for all.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Its parameters, group by group.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.groups.iter().flatten()
    }

    /// The parameters of the group with this name.
    pub fn group(&self, name: &str) -> Option<&[Param]> {
        let at = self.kind.row().groups.iter().position(|g| g.0 == name)?;
        Some(&self.groups[at])
    }

    /// The numbers of its columns among d, once names are resolved.
    pub(crate) fn column_numbers(&self, d: usize) -> Result<Vec<usize>> {
        let Columns::These(list) = &self.columns else {
            return Ok((0..d).collect());
        };
        let number = |column: &Column| match column {
            Column::Number(c) if *c < d => Ok(*c),
            Column::Number(c) => {
                Err(no_such_column(c.to_string(), &(0..d).map(|c| c.to_string()).collect::<Vec<_>>()))
            }
            Column::Name(name) => Err(no_such_column(name.clone(), &[])),
        };
        list.iter().map(number).collect()
    }

    /// The same primitive for data with these columns: names become numbers, every group gets its full length.
    /// `renamed` remembers what became of each parameter, so that one shared by two primitives stays one.
    pub(crate) fn bind(&self, names: &[String], renamed: &mut HashMap<(usize, Option<Role>), Param>) -> Result<Self> {
        let columns = match &self.columns {
            Columns::All => Columns::All,
            Columns::These(list) => {
                let number = |column: &Column| match column {
                    Column::Name(name) => match names.iter().position(|n| n == name) {
                        Some(c) => Ok(Column::Number(c)),
                        None => Err(no_such_column(name.clone(), names)),
                    },
                    Column::Number(c) if *c < names.len() => Ok(Column::Number(*c)),
                    Column::Number(c) => Err(no_such_column(c.to_string(), names)),
                };
                Columns::These(list.iter().map(number).collect::<Result<_>>()?)
            }
        };
        let mut bound = Self { columns, ..self.clone() };
        let numbers = bound.column_numbers(names.len())?;
        let row = self.kind.row();
        if self.kind.uses_columns() && numbers.is_empty() {
            return Err(Error::kernel(format!("{}: there is no input column for it", row.name)));
        }
        if matches!(self.kind, Kind::Gate(_)) && numbers.len() != 1 {
            let message = format!("{}: a gate looks at one column, not {}", row.name, numbers.len());
            return Err(Error::kernel(message).with_hint(format!("name the column: {}[0]", row.name)));
        }
        for (group, &(name, role, size)) in bound.groups.iter_mut().zip(row.groups) {
            let one = numbers.first().copied().filter(|_| numbers.len() == 1);
            let roles: Vec<Role> = match (size, self.sharing) {
                (Size::One, _) => vec![role.of_column(one)],
                (Size::Columns, Sharing::Iso) => vec![role.of_column(one)],
                _ => numbers.iter().map(|&c| role.of_column(Some(c))).collect(),
            };
            // One value for each: a shared parameter stays one, with the role of its first use. One value for all
            // columns: it becomes one parameter a column.
            let spread = group.len() != roles.len();
            let mut become_role = |param: &Param, role: Role| {
                let same = param.role() == role;
                let fresh = || if same { param.clone() } else { param.with(role, param.value()) };
                renamed.entry((param.id(), spread.then_some(role))).or_insert_with(fresh).clone()
            };
            *group = match group.len() {
                0 => roles.iter().map(|&r| Param::open(r)).collect(),
                given if given == roles.len() => group.iter().zip(&roles).map(|(p, &r)| become_role(p, r)).collect(),
                // One value stands for all columns.
                1 => roles.iter().map(|&r| become_role(&group[0], r)).collect(),
                given => {
                    let message = format!("{}: {given} values of {name} for {} columns", row.name, roles.len());
                    return Err(Error::kernel(message));
                }
            };
        }
        Ok(bound)
    }
}

fn no_such_column(name: String, known: &[String]) -> Error {
    let hint = if known.is_empty() {
        "bind the kernel to the data's column names first".to_string()
    } else {
        format!("the input columns are: {}", known.join(", "))
    };
    Error::new(ErrorKind::NoSuchColumn { name, known: known.to_vec() }).with_hint(hint)
}
