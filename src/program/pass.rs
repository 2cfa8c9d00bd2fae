//! Forward and reverse over one tile: the interpreter of the steps.

use super::features::Features;
use super::geometry::{self, FeatureAdjoints, Meeting, Segment, Sides};
use super::lanes::{self, Beside, Loops, Start, WIDEST, Weights};
use super::profile;
use super::step::{Base, LeafKind, Part, Step};

/// The longest tile, in pairs. Short enough that its planes stay in the innermost caches.
pub(super) const TILE: usize = 128;
/// From one plane to the next: a cache line more, so that planes do not fight for the same cache sets.
const PLANE: usize = TILE + 8;

/// Eight numbers on a cache line of their own.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f64; 8]);

/// Planes of one tile: values, adjoints and slopes of every unit. One a thread, used again and again.
#[derive(Debug, Default)]
pub(super) struct Planes {
    lines: Vec<Line>,
    values: usize,
}

impl Planes {
    /// Room for this many planes of values (and as many adjoints) and of slopes.
    pub fn reserve(&mut self, planes: usize, slopes: usize) {
        self.values = planes;
        // Two more: a profile without slopes still points at where they would be.
        self.lines.resize((2 * planes + slopes + 2) * PLANE / 8, Line([0.0; 8]));
    }

    fn at(&mut self, plane: usize) -> *mut f64 {
        debug_assert!((plane + 1) * PLANE <= self.lines.len() * 8);
        // SAFETY: within the allocation, as asserted.
        unsafe { self.lines.as_mut_ptr().cast::<f64>().add(plane * PLANE) }
    }

    fn value(&mut self, plane: usize) -> *mut f64 {
        self.at(plane)
    }

    fn adjoint(&mut self, plane: usize) -> *mut f64 {
        let plane = plane + self.values;
        self.at(plane)
    }

    fn slope(&mut self, plane: usize) -> *mut f64 {
        let plane = plane + 2 * self.values;
        self.at(plane)
    }

    /// A plane for passing use: the very last.
    fn spare(&mut self) -> *mut f64 {
        let plane = self.lines.len() * 8 / PLANE - 1;
        self.at(plane)
    }

    /// The values of a plane.
    pub fn values(&mut self, plane: usize, len: usize) -> &mut [f64] {
        // SAFETY: a plane has TILE entries.
        unsafe { std::slice::from_raw_parts_mut(self.value(plane), len.min(TILE)) }
    }

    /// The adjoint of a plane.
    pub fn adjoints(&mut self, plane: usize, len: usize) -> &mut [f64] {
        // SAFETY: a plane has TILE entries.
        unsafe { std::slice::from_raw_parts_mut(self.adjoint(plane), len.min(TILE)) }
    }
}

/// What a tile is computed from.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub steps: &'a [Step],
    /// Values of the coefficients.
    pub coefficients: &'a [f64],
    pub sides: Sides<'a>,
    pub segments: &'a [Segment],
    /// Pairs in all, with padding.
    pub len: usize,
    /// Values by lag, a feature a table.
    pub tables: &'a Features,
}

/// What the reverse pass adds to.
pub(super) struct Sinks<'a> {
    /// WIDEST lanes for each coefficient.
    pub coefficients: &'a mut [f64],
    /// Which features want adjoints, and where they go.
    pub wanted: &'a [bool],
    pub features: Option<FeatureAdjoints<'a>>,
    /// Adjoints of the tables, of the same shape.
    pub tables: &'a mut [f64],
}

/// As many planes as an affine step may read or write.
fn pointers<T>(planes: impl Iterator<Item = T>, into: &mut Vec<T>) {
    into.clear();
    into.extend(planes);
}

/// Lists of planes, kept between steps so that nothing is allocated in the loop.
#[derive(Default)]
pub(super) struct Lists {
    read: Vec<*const f64>,
    write: Vec<*mut f64>,
    features: Vec<*const f64>,
    fixed: Vec<f64>,
    scaled: Vec<f64>,
}

// SAFETY: the pointers are rewritten before each use and never outlive a call.
unsafe impl Send for Lists {}

/// Values of every plane; slopes too where a reverse pass follows.
///
/// # Safety
/// Instructions of `S` are enabled; planes are reserved for the program; segments lie within the sides.
#[inline(always)]
pub(super) unsafe fn forward<S: Loops, const SLOPES: bool>(tile: &Tile, planes: &mut Planes, lists: &mut Lists) {
    let len = tile.len;
    for step in tile.steps {
        // SAFETY: plane numbers come from the compiler; outputs are never inputs.
        unsafe {
            match step {
                Step::Atom { atom, out } => {
                    geometry::forward::<S>(*atom, &tile.sides, tile.segments, planes.value(*out))
                }
                Step::Affine { inputs, out, rows, coefficients, base, .. } => {
                    pointers(inputs.iter().map(|&i| planes.value(i).cast_const()), &mut lists.read);
                    pointers((*out..out + rows).map(|r| planes.value(r)), &mut lists.write);
                    let at = tile.coefficients.as_ptr();
                    let start = start_of(*base, tile.coefficients);
                    let weights = Weights { at: at.add(*coefficients), row_step: inputs.len(), input_step: 1 };
                    S::affine(weights, &lists.read, &lists.write, start, len);
                }
                Step::Leaf { kind, features, out, rows, coefficients, base } => {
                    if tile.sides.meeting == Meeting::Pairwise {
                        leaf_pairwise(tile, planes, step);
                        continue;
                    }
                    for segment in tile.segments {
                        pointers((*out..out + rows).map(|r| planes.value(r).add(segment.offset)), &mut lists.write);
                        let Lists { write, features: from, fixed, scaled, .. } = lists;
                        leaf_features(tile, features, segment, from, fixed);
                        let c = &tile.coefficients[*coefficients..coefficients + rows * features.len()];
                        let start = start_of(*base, tile.coefficients);
                        let (row_step, input_step) = (features.len(), 1);
                        match kind {
                            LeafKind::Square => {
                                let weights = Weights { at: c.as_ptr(), row_step, input_step };
                                S::squares(weights, from, fixed, write, start, segment.padded);
                            }
                            LeafKind::Dot => {
                                // Σ c x x′ = Σ (c x′) x: one number for the whole segment
                                scaled.clear();
                                for row in c.chunks_exact(features.len()) {
                                    scaled.extend(row.iter().zip(fixed.iter()).map(|(c, f)| c * f));
                                }
                                let weights = Weights { at: scaled.as_ptr(), row_step, input_step };
                                S::affine(weights, from, write, start, segment.padded);
                            }
                        }
                    }
                }
                Step::Profile { profile, shape, input, out, slope, .. } => {
                    let p = profile::Planes {
                        s: planes.value(*input),
                        value: planes.value(*out),
                        slope: planes.slope(*slope),
                        in_shape: planes.slope(slope + usize::from(shape.is_some())),
                        len,
                    };
                    let shape = shape.map_or(0.0, |s| tile.coefficients[s]);
                    if SLOPES {
                        S::values_and_slopes(*profile, shape, p);
                    } else {
                        S::values(*profile, shape, p);
                    }
                }
                Step::Product { a, b, out, .. } => {
                    let (a, b, out) = (planes.value(*a), planes.value(*b), planes.value(*out));
                    for k in (0..len).step_by(S::LANES) {
                        S::store(out.add(k), S::mul(S::load(a.add(k)), S::load(b.add(k))));
                    }
                }
                Step::Complex { part, inputs, out, .. } => {
                    let [a, b, c, d] = inputs.map(|i| planes.value(i));
                    let out = planes.value(*out);
                    for k in (0..len).step_by(S::LANES) {
                        let [a, b, c, d] = [a, b, c, d].map(|p| S::load(p.add(k)));
                        let value = match part {
                            Part::Re => S::fnma(b, d, S::mul(a, c)),
                            Part::Im => S::fma(a, d, S::mul(b, c)),
                        };
                        S::store(out.add(k), value);
                    }
                }
                Step::Exp { input, out, .. } => {
                    let (input, out) = (planes.value(*input), planes.value(*out));
                    for k in (0..len).step_by(S::LANES) {
                        let [e] = S::exp([S::load(input.add(k))]);
                        S::store(out.add(k), e);
                    }
                }
                Step::ComplexExp { part, inputs: [a, b], out, .. } => {
                    // Not vectorised: sine and cosine of each pair are the standard library's.
                    let (a, b, out) = (planes.value(*a), planes.value(*b), planes.value(*out));
                    for k in 0..len {
                        let (sin, cos) = (*b.add(k)).sin_cos();
                        *out.add(k) = (*a.add(k)).exp() * if *part == Part::Re { cos } else { sin };
                    }
                }
                Step::Lag { table, out, rows } => {
                    for r in 0..*rows {
                        let (table, out) = (tile.tables.feature(table + r).as_ptr(), planes.value(out + r));
                        for s in tile.segments {
                            let from = table.add(s.row - s.column);
                            for k in (0..s.padded).step_by(S::LANES) {
                                S::store(out.add(s.offset + k), S::load(from.add(k)));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// target = or += the vector computed by `f`.
macro_rules! give {
    ($fresh:expr, $target:expr, $len:expr, |$k:ident| $f:expr) => {
        if $fresh {
            for $k in (0..$len).step_by(S::LANES) {
                S::store($target.add($k), $f);
            }
        } else {
            for $k in (0..$len).step_by(S::LANES) {
                let p = $target.add($k);
                S::store(p, S::add(S::load(p), $f));
            }
        }
    };
}

/// From the adjoints of the output planes to coefficients, features and tables. The forward pass with slopes of the
/// same tile must have gone before, and the adjoint of padding must be zero.
///
/// # Safety
/// As [`forward`].
#[inline(always)]
pub(super) unsafe fn reverse<S: Loops>(tile: &Tile, planes: &mut Planes, lists: &mut Lists, sinks: &mut Sinks) {
    let len = tile.len;
    let grad = sinks.coefficients.as_mut_ptr();
    for step in tile.steps.iter().rev() {
        // SAFETY: as in forward.
        unsafe {
            match step {
                Step::Atom { atom, out } => {
                    if let Some(to) = &mut sinks.features
                        && wants(*atom, sinks.wanted)
                    {
                        geometry::backward::<S>(*atom, &tile.sides, tile.segments, planes.adjoint(*out), to);
                    }
                }
                Step::Affine { inputs, fresh, out, rows, coefficients, base } => {
                    // ∂c = adjoint · inputᵀ
                    pointers((*out..out + rows).map(|r| planes.adjoint(r).cast_const()), &mut lists.read);
                    let adjoints = lists.read.len();
                    lists.read.extend(inputs.iter().map(|&i| planes.value(i).cast_const()));
                    let (a, b) = lists.read.split_at(adjoints);
                    S::outer(a, b, Beside::Planes, grad.add(coefficients * WIDEST), len);
                    if let Base::Bias(bias) = base {
                        for (r, a) in a.iter().enumerate() {
                            lanes::total::<S>(*a, grad.add((bias + r) * WIDEST), len);
                        }
                    }
                    // ∂input = cᵀ · adjoint, in runs of inputs that are all fresh or all not
                    pointers(inputs.iter().map(|&i| planes.adjoint(i)), &mut lists.write);
                    let at = tile.coefficients.as_ptr().add(*coefficients);
                    let mut i = 0;
                    while i < inputs.len() {
                        let run = fresh[i..].iter().take_while(|&&f| f == fresh[i]).count();
                        let start = if fresh[i] { Start::Zero } else { Start::Keep };
                        let weights = Weights { at: at.add(i), row_step: 1, input_step: inputs.len() };
                        S::affine(weights, a, &lists.write[i..i + run], start, len);
                        i += run;
                    }
                }
                Step::Leaf { kind, features, out, rows, coefficients, base } => {
                    for segment in tile.segments {
                        pointers(
                            (*out..out + rows).map(|r| planes.adjoint(r).add(segment.offset).cast_const()),
                            &mut lists.read,
                        );
                        let Lists { read, features: from, fixed, .. } = lists;
                        leaf_features(tile, features, segment, from, fixed);
                        let grad = grad.add(coefficients * WIDEST);
                        match (tile.sides.meeting, kind) {
                            (Meeting::Pairwise, _) => {
                                leaf_gradient_pairwise(tile, *kind, features, segment, read, grad)
                            }
                            (_, LeafKind::Square) => {
                                S::outer(read, from, Beside::Squared(fixed), grad, segment.padded);
                            }
                            (_, LeafKind::Dot) => {
                                S::outer(read, from, Beside::Scaled(fixed), grad, segment.padded);
                            }
                        }
                    }
                    pointers((*out..out + rows).map(|r| planes.adjoint(r).cast_const()), &mut lists.read);
                    if let Base::Bias(bias) = base {
                        for (r, a) in lists.read.iter().enumerate() {
                            lanes::total::<S>(*a, grad.add((bias + r) * WIDEST), len);
                        }
                    }
                    let Some(to) = &mut sinks.features else { continue };
                    for (k, &f) in features.iter().enumerate().filter(|&(_, &f)| sinks.wanted[f]) {
                        // The adjoint of atom k: Σ c[r][k] adjoint[r]
                        let at = tile.coefficients.as_ptr().add(coefficients + k);
                        let weights = Weights { at, row_step: 1, input_step: features.len() };
                        let spare = planes.spare();
                        S::affine(weights, &lists.read, &[spare], Start::Zero, len);
                        geometry::backward::<S>(kind.atom(f), &tile.sides, tile.segments, spare, to);
                    }
                }
                Step::Profile { profile, shape, input, fresh, out, slope } => {
                    let (adjoint, target) = (planes.adjoint(*out), planes.adjoint(*input));
                    if profile::keeps_slope(*profile) {
                        let slope_at = planes.slope(*slope);
                        give!(*fresh, target, len, |k| S::mul(S::load(adjoint.add(k)), S::load(slope_at.add(k))));
                        if let Some(shape) = shape {
                            lanes::inner::<S>(adjoint, planes.slope(slope + 1), grad.add(shape * WIDEST), len);
                        }
                    } else {
                        let (value, half) = (planes.value(*out), S::splat(-0.5));
                        give!(*fresh, target, len, |k| {
                            S::mul(S::mul(S::load(adjoint.add(k)), S::load(value.add(k))), half)
                        });
                    }
                }
                Step::Product { a, b, fresh, out } => {
                    let adjoint = planes.adjoint(*out);
                    let (va, vb) = (planes.value(*a), planes.value(*b));
                    let (ta, tb) = (planes.adjoint(*a), planes.adjoint(*b));
                    give!(fresh[0], ta, len, |k| S::mul(S::load(adjoint.add(k)), S::load(vb.add(k))));
                    give!(fresh[1], tb, len, |k| S::mul(S::load(adjoint.add(k)), S::load(va.add(k))));
                }
                Step::Complex { part, inputs, fresh, out } => {
                    let adjoint = planes.adjoint(*out);
                    // Re = ac − bd: (c, −d, a, −b);   Im = ad + bc: (d, c, b, a)
                    let (partner, sign) = match part {
                        Part::Re => ([2, 3, 0, 1], [1.0, -1.0, 1.0, -1.0]),
                        Part::Im => ([3, 2, 1, 0], [1.0; 4]),
                    };
                    for i in 0..4 {
                        let (other, target) = (planes.value(inputs[partner[i]]), planes.adjoint(inputs[i]));
                        let sign = S::splat(sign[i]);
                        give!(fresh[i], target, len, |k| {
                            S::mul(S::mul(S::load(adjoint.add(k)), S::load(other.add(k))), sign)
                        });
                    }
                }
                Step::Exp { input, fresh, out } => {
                    let (adjoint, value, target) = (planes.adjoint(*out), planes.value(*out), planes.adjoint(*input));
                    give!(*fresh, target, len, |k| S::mul(S::load(adjoint.add(k)), S::load(value.add(k))));
                }
                Step::ComplexExp { part, inputs: [a, b], fresh, out } => {
                    let (adjoint, value) = (planes.adjoint(*out), planes.value(*out));
                    let (va, vb) = (planes.value(*a), planes.value(*b));
                    let (ta, tb) = (planes.adjoint(*a), planes.adjoint(*b));
                    for k in 0..len {
                        // Re: ∂a = Re, ∂b = −Im;   Im: ∂a = Im, ∂b = Re
                        let (sin, cos) = (*vb.add(k)).sin_cos();
                        let other = (*va.add(k)).exp() * if *part == Part::Re { -sin } else { cos };
                        let (da, db) = (*adjoint.add(k) * *value.add(k), *adjoint.add(k) * other);
                        *ta.add(k) = if fresh[0] { da } else { *ta.add(k) + da };
                        *tb.add(k) = if fresh[1] { db } else { *tb.add(k) + db };
                    }
                }
                Step::Lag { table, out, rows } => {
                    for r in 0..*rows {
                        let to = sinks.tables.as_mut_ptr().add((table + r) * tile.tables.stride);
                        let adjoint = planes.adjoint(out + r);
                        for s in tile.segments {
                            let to = to.add(s.row - s.column);
                            for k in (0..s.padded).step_by(S::LANES) {
                                let p = to.add(k);
                                S::store(p, S::add(S::load(p), S::load(adjoint.add(s.offset + k))));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where the rows of a leaf's features begin in this segment, and their values at its column.
#[inline(always)]
fn leaf_features(
    tile: &Tile,
    features: &[usize],
    segment: &Segment,
    from: &mut Vec<*const f64>,
    fixed: &mut Vec<f64>,
) {
    from.clear();
    fixed.clear();
    for &f in features {
        from.push(tile.sides.rows.feature(f)[segment.row..].as_ptr());
        fixed.push(tile.sides.columns.feature(f)[segment.column]);
    }
}

#[inline(always)]
fn start_of(base: Base, coefficients: &[f64]) -> Start {
    match base {
        Base::Zero => Start::Zero,
        Base::Bias(b) => Start::Bias(coefficients[b..].as_ptr()),
        Base::Planes => Start::Keep,
    }
}

/// The atom of a leaf for the pair (i, i + shift): diagonals are short, so plainly.
fn leaf_atom(kind: LeafKind, row: f64, column: f64) -> f64 {
    match kind {
        LeafKind::Square => (row - column) * (row - column),
        LeafKind::Dot => row * column,
    }
}

/// A leaf over pairs that go along together.
fn leaf_pairwise(tile: &Tile, planes: &mut Planes, step: &Step) {
    let Step::Leaf { kind, features, out, rows, coefficients, base } = step else { return };
    for r in 0..*rows {
        let values = planes.values(out + r, tile.len);
        let c = &tile.coefficients[coefficients + r * features.len()..][..features.len()];
        for segment in tile.segments {
            for k in 0..segment.padded {
                let atom = |(c, &f): (&f64, &usize)| {
                    let (row, column) = (tile.sides.rows.feature(f), tile.sides.columns.feature(f));
                    c * leaf_atom(*kind, row[segment.row + k], column[segment.column + k])
                };
                let value = &mut values[segment.offset + k];
                let first = match base {
                    Base::Zero => 0.0,
                    Base::Bias(b) => tile.coefficients[b + r],
                    Base::Planes => *value,
                };
                *value = first + c.iter().zip(features).map(atom).sum::<f64>();
            }
        }
    }
}

/// The gradient of a leaf's coefficients over pairs that go along together.
///
/// # Safety
/// Adjoints have the pairs of the segment, the gradient WIDEST lanes a coefficient.
unsafe fn leaf_gradient_pairwise(
    tile: &Tile,
    kind: LeafKind,
    features: &[usize],
    segment: &Segment,
    adjoints: &[*const f64],
    gradient: *mut f64,
) {
    for (r, adjoint) in adjoints.iter().enumerate() {
        for (i, &f) in features.iter().enumerate() {
            let (row, column) = (tile.sides.rows.feature(f), tile.sides.columns.feature(f));
            for k in 0..segment.len {
                // SAFETY: as promised by the caller.
                unsafe {
                    let atom = leaf_atom(kind, row[segment.row + k], column[segment.column + k]);
                    *gradient.add((r * features.len() + i) * WIDEST) += *adjoint.add(k) * atom;
                }
            }
        }
    }
}

fn wants(atom: super::step::Atom, wanted: &[bool]) -> bool {
    use super::step::Atom;
    match atom {
        Atom::Square(f) | Atom::Chord(f) | Atom::Dot(f) | Atom::TurnRe(f) | Atom::TurnIm(f) => wanted[f],
        Atom::Same => false,
    }
}
