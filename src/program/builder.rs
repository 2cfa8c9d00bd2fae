//! Collects features, coefficients and steps of one piece of code, and finishes it: drops what nothing needs, and works
//! out where the reverse pass writes an adjoint for the first time.

use super::Code;
use super::planes::Slots;
use super::profile::keeps_slope;
use super::step::{Atom, Base, Coefficient, LeafKind, MapKind, Part, PointMap, Step};
use crate::kernel::Profile;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Builder {
    maps: Vec<PointMap>,
    features: usize,
    coefficients: Vec<Coefficient>,
    steps: Vec<Step>,
    planes: usize,
    slopes: usize,
    atoms: HashMap<Atom, usize>,
}

impl Builder {
    /// The first feature of a map, shared where it is the same map.
    pub fn feature(&mut self, kind: MapKind) -> usize {
        if let Some(map) = self.maps.iter().find(|m| m.kind == kind) {
            return map.first;
        }
        let first = self.features;
        self.features += kind.width();
        self.maps.push(PointMap { first, kind });
        first
    }

    /// The plane of an atom, shared where it is the same atom.
    pub fn atom(&mut self, atom: Atom) -> usize {
        if let Some(&out) = self.atoms.get(&atom) {
            return out;
        }
        let out = self.plane();
        self.steps.push(Step::Atom { atom, out });
        self.atoms.insert(atom, out);
        out
    }

    pub fn plane(&mut self) -> usize {
        self.planes(1)
    }

    /// Planes next to each other; the first.
    pub fn planes(&mut self, count: usize) -> usize {
        self.planes += count;
        self.planes - count
    }

    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub fn coefficient(&mut self, c: Coefficient) -> usize {
        self.coefficients.push(c);
        self.coefficients.len() - 1
    }

    /// New planes from a matrix (row after row) times inputs; the first.
    pub fn affine(
        &mut self,
        inputs: Vec<usize>,
        rows: usize,
        entries: Vec<Coefficient>,
        bias: Option<Vec<Coefficient>>,
        base: Base,
    ) -> usize {
        let out = self.planes(rows);
        self.affine_into(inputs, out, rows, entries, bias, base);
        out
    }

    /// The same into planes that exist.
    pub fn affine_into(
        &mut self,
        inputs: Vec<usize>,
        out: usize,
        rows: usize,
        entries: Vec<Coefficient>,
        bias: Option<Vec<Coefficient>>,
        base: Base,
    ) {
        debug_assert_eq!(entries.len(), rows * inputs.len());
        let coefficients = self.coefficients.len();
        self.coefficients.extend(entries);
        let base = match bias {
            Some(bias) => {
                let at = self.coefficients.len();
                self.coefficients.extend(bias);
                Base::Bias(at)
            }
            None => base,
        };
        let fresh = vec![false; inputs.len()];
        self.steps.push(Step::Affine { inputs, fresh, out, rows, coefficients, base, products: vec![] });
    }

    pub fn profile(&mut self, profile: Profile, shape: Option<usize>, input: usize) -> usize {
        let (out, slope) = (self.plane(), self.slopes);
        self.slopes += usize::from(keeps_slope(profile)) + usize::from(shape.is_some());
        self.steps.push(Step::Profile { profile, shape, input, fresh: false, out, slope });
        out
    }

    pub fn product(&mut self, a: usize, b: usize) -> usize {
        let out = self.plane();
        self.steps.push(Step::Product { a, b, fresh: [false; 2], out });
        out
    }

    pub fn complex(&mut self, part: Part, inputs: [usize; 4]) -> usize {
        let out = self.plane();
        self.steps.push(Step::Complex { part, inputs, fresh: [false; 4], out });
        out
    }

    pub fn exp(&mut self, input: usize) -> usize {
        let out = self.plane();
        self.steps.push(Step::Exp { input, fresh: false, out });
        out
    }

    pub fn complex_exp(&mut self, part: Part, inputs: [usize; 2]) -> usize {
        let out = self.plane();
        self.steps.push(Step::ComplexExp { part, inputs, fresh: [false; 2], out });
        out
    }

    /// The code that computes these planes and nothing else.
    pub fn finish(mut self, outputs: &[usize]) -> Code {
        self.fuse_leaves();
        self.fuse_tables();
        let mut live = vec![false; self.planes];
        outputs.iter().for_each(|&p| live[p] = true);
        let mut kept = Vec::new();
        for mut step in std::mem::take(&mut self.steps).into_iter().rev() {
            if step.outputs().any(|p| live[p]) {
                step.inputs_mut().iter().for_each(|(p, _)| live[*p] = true);
                kept.push(step);
            }
        }
        fuse_products(&mut kept, self.planes, outputs);
        // In the order of the reverse pass: who meets a plane's adjoint first writes it. Outputs are met already. Rows of
        // a layer that nothing reads still take part in its reverse pass: their adjoint is nought.
        let mut met = vec![false; self.planes];
        outputs.iter().for_each(|&p| met[p] = true);
        for step in &mut kept {
            for (plane, fresh) in step.inputs_mut() {
                *fresh = !met[plane];
                met[plane] = true;
            }
        }
        kept.reverse();
        let slots = Slots::new(&mut kept, self.planes, self.slopes, outputs);
        let mut trained = vec![false; self.features];
        for map in self.maps.iter().filter(|m| m.kind.is_trained()) {
            trained[map.first..map.first + map.kind.width()].fill(true);
        }
        let mut read = vec![false; self.planes];
        kept.iter_mut().for_each(|step| step.inputs_mut().iter().for_each(|(p, _)| read[*p] = true));
        let needed = |step: &Step| step.is_read_back() || step.outputs().any(|p| read[p]);
        let needed = kept.iter().rposition(needed).map_or(0, |last| last + 1);
        Code {
            maps: self.maps,
            features: self.features,
            trained,
            coefficients: self.coefficients,
            needed,
            work: kept.iter().map(Step::work).sum(),
            steps: kept,
            slots,
            outputs: outputs.to_vec(),
        }
    }

    /// A matrix product over squares or over products of features becomes one step that never stores them.
    fn fuse_leaves(&mut self) {
        let makers: HashMap<usize, Atom> = self.atoms.iter().map(|(&atom, &plane)| (plane, atom)).collect();
        for step in &mut self.steps {
            let Step::Affine { inputs, out, rows, coefficients, base, .. } = step else { continue };
            let of = |kind: LeafKind| -> Option<Vec<usize>> {
                let feature = |plane: &usize| match (kind, makers.get(plane)?) {
                    (LeafKind::Square, Atom::Square(f)) | (LeafKind::Dot, Atom::Dot(f)) => Some(*f),
                    _ => None,
                };
                inputs.iter().map(feature).collect()
            };
            let (out, rows, coefficients, base) = (*out, *rows, *coefficients, *base);
            for kind in [LeafKind::Square, LeafKind::Dot] {
                if let Some(features) = of(kind).filter(|f| !f.is_empty()) {
                    *step = Step::Leaf { kind, features, out, rows, coefficients, base, products: vec![] };
                    break;
                }
            }
        }
    }

    /// A leaf on top of tables reads them itself.
    fn fuse_tables(&mut self) {
        let mut at = 1;
        while at < self.steps.len() {
            if let (Step::Lag { table, out: below, rows: 1.. }, Step::Leaf { out, base: base @ Base::Planes, .. }) =
                split_pair(&mut self.steps, at)
                && below == out
            {
                *base = Base::Tables(*table);
                self.steps.remove(at - 1);
            }
            at += 1;
        }
    }
}

/// A step and the one before it.
fn split_pair(steps: &mut [Step], at: usize) -> (&mut Step, &mut Step) {
    let (before, after) = steps.split_at_mut(at);
    (&mut before[at - 1], &mut after[0])
}

/// Where all that becomes of a layer's rows is that neighbours are multiplied, the layer does it. Steps are given last
/// first.
fn fuse_products(steps: &mut Vec<Step>, planes: usize, outputs: &[usize]) {
    let (mut readers, mut product) = (vec![0usize; planes], vec![None; planes]);
    outputs.iter().for_each(|&p| readers[p] += 1);
    for step in steps.iter_mut() {
        step.inputs_mut().iter().for_each(|(p, _)| readers[*p] += 1);
        if let Step::Product { a, b, out, .. } = *step
            && a.abs_diff(b) == 1
        {
            product[a.min(b)] = Some((a.max(b), out));
        }
    }
    let mut gone = vec![false; planes];
    for step in steps.iter_mut() {
        let Some((rows, into)) = step.products_mut() else { continue };
        if rows.len() % 2 != 0 || rows.clone().any(|p| readers[p] != 1) {
            continue;
        }
        let of = |p: usize| product[p].filter(|(other, _)| *other == p + 1).map(|(_, out)| out);
        if let Some(list) = rows.step_by(2).map(of).collect::<Option<Vec<_>>>() {
            list.iter().for_each(|&p| gone[p] = true);
            *into = list;
        }
    }
    steps.retain(|step| !matches!(step, Step::Product { out, .. } if gone[*out]));
}
