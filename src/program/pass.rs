//! Forward and reverse over one tile: the interpreter of the steps.

use super::features::Features;
use super::geometry::{self, FeatureAdjoints, Segment, Sides};
use super::lanes::{self, Layer, Loops, Run, Start, Then, WIDEST, Weights};
use super::leaf;
use super::outer::Beside;
use super::places::Places;
use super::planes::Layout;
use super::profile;
use super::step::{Base, Part, Step};

/// What a tile is computed from.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub steps: &'a [Step],
    /// Steps that come before a reverse pass.
    pub needed: usize,
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

/// Writes a list of planes.
#[inline(always)]
pub(super) fn pointers<T>(planes: impl Iterator<Item = T>, into: &mut Vec<T>) {
    into.clear();
    into.extend(planes);
}

/// Lists of what a segment needs, kept between steps so that nothing is allocated in the loop.
#[derive(Default)]
pub(super) struct Lists {
    pub features: Vec<*const f64>,
    pub tables: Vec<*const f64>,
    pub fixed: Vec<f64>,
    pub scaled: Vec<f64>,
    pub sums: Vec<f64>,
}

// SAFETY: the pointers are rewritten before each use and never outlive a call.
unsafe impl Send for Lists {}

/// Values of every plane; slopes too where a reverse pass follows.
///
/// # Safety
/// Instructions of `S` are enabled; planes are reserved for the program; segments lie within the sides.
#[inline(always)]
pub(super) unsafe fn forward<S: Loops, const SLOPES: bool>(
    tile: &Tile,
    planes: &Layout,
    places: &Places,
    lists: &mut Lists,
) {
    let len = tile.len;
    let whole = Run { from: 0, to: len };
    let steps = if SLOPES { &tile.steps[..tile.needed] } else { tile.steps };
    for (i, step) in steps.iter().enumerate() {
        // SAFETY: plane numbers come from the compiler; outputs are never inputs.
        unsafe {
            match step {
                Step::Atom { atom, out } => {
                    geometry::forward::<S>(*atom, &tile.sides, tile.segments, planes.value(*out))
                }
                Step::Affine { coefficients, base, .. } => {
                    let (at, of) = (tile.coefficients.as_ptr(), places.of(i));
                    S::affine(Layer {
                        weights: Weights { at: at.add(*coefficients), row_step: of.inputs.len(), input_step: 1 },
                        inputs: of.inputs,
                        outputs: of.outputs,
                        start: start_of(*base, tile.coefficients),
                        then: then::<SLOPES>(of.products),
                        run: whole,
                    });
                }
                Step::Leaf { .. } => leaf::forward::<S, SLOPES>(tile, step, planes, places.of(i), lists),
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
                            let from = table.add(s.lag);
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
pub(super) unsafe fn reverse<S: Loops>(
    tile: &Tile,
    planes: &Layout,
    places: &Places,
    lists: &mut Lists,
    sinks: &mut Sinks,
) {
    let len = tile.len;
    let whole = Run { from: 0, to: len };
    let grad = sinks.coefficients.as_mut_ptr();
    for (at, step) in tile.steps.iter().enumerate().rev() {
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
                Step::Affine { inputs, fresh, out, coefficients, base, products, .. } => {
                    // ∂c = adjoint · inputᵀ
                    let of = places.of(at);
                    row_adjoints::<S>(planes, *out, products, *base, grad, len, of.adjoints);
                    S::outer(of.adjoints, of.inputs, Beside::Planes, grad.add(coefficients * WIDEST), whole);
                    // ∂input = cᵀ · adjoint, in runs of inputs that are all fresh or all not
                    let at = tile.coefficients.as_ptr().add(*coefficients);
                    let mut i = 0;
                    while i < inputs.len() {
                        let run = fresh[i..].iter().take_while(|&&f| f == fresh[i]).count();
                        S::affine(Layer {
                            weights: Weights { at: at.add(i), row_step: 1, input_step: inputs.len() },
                            inputs: of.adjoints,
                            outputs: &of.into[i..i + run],
                            start: if fresh[i] { Start::Zero } else { Start::Keep },
                            then: Then::Store,
                            run: whole,
                        });
                        i += run;
                    }
                }
                Step::Leaf { .. } => leaf::reverse::<S>(tile, step, planes, places.of(at), lists, sinks),
                Step::Profile { profile, shape, input, fresh, out, slope } => {
                    let (adjoint, target) = (planes.adjoint(*out), planes.adjoint(*input));
                    if let (Some(shape), true) = (shape, *fresh) {
                        let slopes = [planes.slope(*slope).cast_const(), planes.slope(slope + 1)];
                        lanes::two_slopes::<S>(adjoint, slopes, target, grad.add(shape * WIDEST), len);
                    } else if profile::keeps_slope(*profile) {
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
                        leaf::add_to_table::<S>(tile, planes.adjoint(out + r), table + r, sinks.tables);
                    }
                }
            }
        }
    }
}

/// What becomes of rows: stored where a reverse pass will read them or nothing else is made of them.
#[inline(always)]
pub(super) fn then<const SLOPES: bool>(products: &[*mut f64]) -> Then<'_> {
    match (products.is_empty(), SLOPES) {
        (true, _) => Then::Store,
        (false, true) => Then::Multiply(products),
        (false, false) => Then::Products(products),
    }
}

/// From the adjoints of products to those of the rows they are made of, ∂a = b ∂(ab), ∂b = a ∂(ab), and to the rows'
/// biases.
///
/// # Safety
/// As [`forward`].
#[inline(always)]
unsafe fn split_products<S: Loops>(
    planes: &Layout,
    out: usize,
    products: &[usize],
    base: Base,
    gradient: *mut f64,
    len: usize,
) {
    for (p, &product) in products.iter().enumerate() {
        let (a, b) = (out + 2 * p, out + 2 * p + 1);
        let (adjoint, va, vb) = (planes.adjoint(product), planes.value(a), planes.value(b));
        let (ta, tb) = (planes.adjoint(a), planes.adjoint(b));
        // SAFETY: as promised by the caller.
        unsafe {
            let mut sums = [[S::splat(0.0); 2]; 2];
            macro_rules! one {
                ($u:literal, $k:expr) => {{
                    let adjoint = S::load(adjoint.add($k));
                    let (da, db) = (S::mul(adjoint, S::load(vb.add($k))), S::mul(adjoint, S::load(va.add($k))));
                    S::store(ta.add($k), da);
                    S::store(tb.add($k), db);
                    sums[$u] = [S::add(sums[$u][0], da), S::add(sums[$u][1], db)];
                }};
            }
            let mut k = 0;
            while k + 2 * S::LANES <= len {
                one!(0, k);
                one!(1, k + S::LANES);
                k += 2 * S::LANES;
            }
            if k < len {
                one!(0, k);
            }
            if let Base::Bias(bias) = base {
                let [[a, b], [c, d]] = sums;
                for (r, sum) in [S::add(a, c), S::add(b, d)].into_iter().enumerate() {
                    let to = gradient.add((bias + 2 * p + r) * WIDEST);
                    S::store(to, S::add(S::load(to), sum));
                }
            }
        }
    }
}

/// The adjoints of a matrix product's rows, and the gradient of its biases.
///
/// # Safety
/// As [`forward`].
#[inline(always)]
pub(super) unsafe fn row_adjoints<S: Loops>(
    planes: &Layout,
    out: usize,
    products: &[usize],
    base: Base,
    gradient: *mut f64,
    len: usize,
    adjoints: &[*const f64],
) {
    // SAFETY: as promised by the caller.
    unsafe {
        if !products.is_empty() {
            split_products::<S>(planes, out, products, base, gradient, len);
        } else if let Base::Bias(bias) = base {
            for (r, a) in adjoints.iter().enumerate() {
                lanes::total::<S>(*a, gradient.add((bias + r) * WIDEST), len);
            }
        }
    }
}

#[inline(always)]
pub(super) fn start_of(base: Base, coefficients: &[f64]) -> Start<'_> {
    match base {
        Base::Zero => Start::Zero,
        Base::Bias(b) => Start::Bias(coefficients[b..].as_ptr()),
        Base::Planes | Base::Tables(_) => Start::Keep,
    }
}

fn wants(atom: super::step::Atom, wanted: &[bool]) -> bool {
    use super::step::Atom;
    match atom {
        Atom::Square(f) | Atom::Chord(f) | Atom::Dot(f) | Atom::TurnRe(f) | Atom::TurnIm(f) => wanted[f],
        Atom::Same => false,
    }
}
