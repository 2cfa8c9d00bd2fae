//! Primitives become atoms, a matrix product of their weights and profiles: all of them at once, so that those with the
//! same atoms share them and one matrix product.

use super::compile::{Compiler, Node};
use super::step::{Atom, Base, Coefficient, MapKind, Monomial, Value};
use crate::error::{Error, Result};
use crate::kernel::{Geometry, Kernel, Kind, Map, Primitive, Profile, Unit};
use std::collections::HashMap;

/// A primitive whose atoms are known and whose planes are not laid out yet.
struct Waiting {
    id: usize,
    scale: Monomial,
    profile: Profile,
    shape: Option<Value>,
    weights: Vec<Monomial>,
    offset: Option<Value>,
}

/// What primitives share: the program they belong to, and their atoms.
type Shared = (bool, Vec<Atom>);

impl Compiler<'_> {
    /// Nodes for all primitives among the units.
    pub(super) fn primitives(&mut self, units: &[Kernel]) -> Result<()> {
        let mut order: Vec<Shared> = Vec::new();
        let mut groups: HashMap<Shared, Vec<Waiting>> = HashMap::new();
        for unit in units {
            let Unit::Primitive(p) = unit.unit() else { continue };
            let Some((key, waiting)) = self.primitive(unit.id(), p)? else { continue };
            if !groups.contains_key(&key) {
                order.push(key.clone());
            }
            groups.entry(key).or_default().push(waiting);
        }
        for key in order {
            let waiting = groups.remove(&key).unwrap_or_default();
            self.lay_out(key, waiting);
        }
        Ok(())
    }

    /// What a primitive is made of; nothing where it is a node already.
    fn primitive(&mut self, id: usize, p: &Primitive) -> Result<Option<(Shared, Waiting)>> {
        let lag = self.lags.is_some() && p.kind.is_stationary();
        let row = p.kind.row();
        let columns = p.column_numbers(self.d)?;
        if p.group("v").is_none_or(<[_]>::is_empty) && !matches!(p.kind, Kind::Gate(_)) {
            return Err(Error::kernel("the kernel is not bound to its columns"));
        }
        let scale = match (row.map, p.group("v")) {
            (Map::Weigh | Map::Gate(_), _) | (_, None) => Monomial::one(),
            (_, Some(v)) => Monomial::power(self.value(&v[0]), 1),
        };
        if row.geometry == Geometry::One {
            self.nodes.insert(id, Node { scale, re: None, im: None, lag });
            return Ok(None);
        }
        if row.map == Map::Phase {
            self.phase(id, p, &columns, scale, lag);
            return Ok(None);
        }
        let (atoms, weights) = self.atoms(p, columns, lag)?;
        let shape = p.group("a").map(|a| self.value(&a[0]));
        let offset = p.group("c").map(|c| self.value(&c[0]));
        Ok(Some(((lag, atoms), Waiting { id, scale, profile: row.profile, shape, weights, offset })))
    }

    /// The atoms whose weighted sum is a primitive's argument, and the weights.
    fn atoms(&mut self, p: &Primitive, columns: Vec<usize>, lag: bool) -> Result<(Vec<Atom>, Vec<Monomial>)> {
        let row = p.kind.row();
        let count = columns.len();
        let group = |name: &str| p.group(name).unwrap_or(&[]);
        let ones = |count| vec![Monomial::one(); count];
        let powers = |of: Vec<Value>, power| of.into_iter().map(|v| Monomial::power(v, power)).collect();
        if row.geometry == Geometry::Same {
            return Ok((vec![Atom::Same], ones(1)));
        }
        Ok(match row.map {
            Map::Plain => (self.of_columns(&columns, Atom::Dot, lag), ones(count)),
            Map::Weigh => (self.of_columns(&columns, Atom::Dot, lag), powers(self.values(group("v"), count), 1)),
            Map::Scale => (self.of_columns(&columns, Atom::Square, lag), powers(self.values(group("l"), count), -2)),
            Map::Circle => {
                // |circle − circle′|² = 4 sin²(πτ/p): exp(−½ · that/ℓ²) is the formula
                let circles = columns.into_iter().zip(self.values(group("p"), count));
                let map = |(column, period)| MapKind::Circle { column, period };
                let atoms = circles.map(|circle| Atom::Chord(self.builder(lag).feature(map(circle)))).collect();
                (atoms, powers(self.values(group("l"), count), -2))
            }
            Map::Sphere => {
                let weight = self.values(group("w"), count);
                let bias = self.value(&group("b")[0]);
                let Profile::Arc(order) = row.profile else {
                    return Err(Error::kernel("the sphere goes with an arc profile"));
                };
                let map = MapKind::Sphere { columns, weight, bias, order: i32::from(order) };
                let first = self.builder(lag).feature(map);
                // (|z||z′|)^order is a factor of its own, taken up again in `lay_out`.
                ((0..=count).map(|k| Atom::Square(first + k)).collect(), ones(count + 1))
            }
            Map::Wave => {
                let (f, g) = (self.values(group("f"), count), self.values(group("g"), count));
                let first = self.builder(lag).feature(MapKind::Wave { columns, f, g });
                (vec![Atom::Dot(first), Atom::Dot(first + 1)], ones(2))
            }
            Map::Gate(side) => {
                let (place, width) = (self.value(&group("t")[0]), self.value(&group("w")[0]));
                let map = MapKind::Gate { column: columns[0], place, width, side };
                (vec![Atom::Dot(self.builder(lag).feature(map))], ones(1))
            }
            Map::Phase => return Err(Error::kernel("a phase has no weighted sum of atoms")),
        })
    }

    /// An atom of each column as it is.
    fn of_columns(&mut self, columns: &[usize], atom: fn(usize) -> Atom, lag: bool) -> Vec<Atom> {
        columns.iter().map(|&c| atom(self.builder(lag).feature(MapKind::Column(c)))).collect()
    }

    /// One matrix product for primitives of the same atoms, then each one's profile.
    fn lay_out(&mut self, (lag, atoms): Shared, waiting: Vec<Waiting>) {
        let inputs: Vec<usize> = atoms.iter().map(|&atom| self.builder(lag).atom(atom)).collect();
        // A single atom under the identity needs no step: its weight joins the scale.
        let (direct, rows): (Vec<Waiting>, Vec<Waiting>) =
            waiting.into_iter().partition(|w| w.profile == Profile::Identity && inputs.len() == 1);
        for w in direct {
            let scale = w.scale.times(&w.weights[0]);
            self.nodes.insert(w.id, Node { scale, re: Some(inputs[0]), im: None, lag });
        }
        if rows.is_empty() {
            return;
        }
        let matrix: Vec<Coefficient> =
            rows.iter().flat_map(|w| w.weights.iter().map(|m| Coefficient(vec![m.clone()]))).collect();
        let any_offset = rows.iter().any(|w| w.offset.is_some());
        let bias = any_offset.then(|| {
            let of = |w: &Waiting| Coefficient(w.offset.map(|o| Monomial::power(o, 1)).into_iter().collect());
            rows.iter().map(of).collect::<Vec<_>>()
        });
        let first = self.builder(lag).affine(inputs, rows.len(), matrix, bias, Base::Zero);
        for (r, w) in rows.into_iter().enumerate() {
            let builder = self.builder(lag);
            let mut plane = first + r;
            if w.profile != Profile::Identity {
                let shape = w.shape.map(|a| builder.coefficient(Coefficient(vec![Monomial::power(a, 1)])));
                plane = builder.profile(w.profile, shape, plane);
            }
            if let (Profile::Arc(1..), Some(&Atom::Square(feature))) = (w.profile, atoms.first()) {
                // (|z||z′|)^order: the last feature of the sphere
                let lengths = builder.atom(Atom::Dot(feature + atoms.len()));
                plane = builder.product(plane, lengths);
            }
            self.nodes.insert(w.id, Node { scale: w.scale, re: Some(plane), im: None, lag });
        }
    }

    /// The sine and cosine of a phase are atoms of their own.
    fn phase(&mut self, id: usize, p: &Primitive, columns: &[usize], scale: Monomial, lag: bool) {
        let frequency = self.values(p.group("f").unwrap_or(&[]), columns.len());
        let builder = self.builder(lag);
        let first = builder.feature(MapKind::Phase { columns: columns.to_vec(), frequency });
        let re = Some(builder.atom(Atom::TurnRe(first)));
        let im = (p.kind == Kind::Expi).then(|| builder.atom(Atom::TurnIm(first)));
        self.nodes.insert(id, Node { scale, re, im, lag });
    }
}
