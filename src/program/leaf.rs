//! Leaves: matrix products over squares or products of features that are never stored, forward and back.

use super::geometry::{self, FeatureAdjoints, Meeting, Segment};
use super::lanes::{Layer, Loops, Run, Start, Then, WIDEST, Weights};
use super::outer::Beside;
use super::pass::{Lists, Sinks, Tile, pointers, row_adjoints, start_of, then};
use super::places::Of;
use super::planes::Layout;
use super::step::{Base, LeafKind, Step};

/// # Safety
/// As the forward pass.
#[inline(always)]
pub(super) unsafe fn forward<S: Loops, const SLOPES: bool>(
    tile: &Tile,
    step: &Step,
    planes: &Layout,
    of: Of,
    lists: &mut Lists,
) {
    let Step::Leaf { kind, features, rows, coefficients, base, .. } = step else { return };
    if tile.sides.meeting == Meeting::Pairwise {
        return pairwise(tile, planes, step);
    }
    if let Base::Tables(first) = base {
        pointers((0..*rows).map(|r| tile.tables.feature(first + r).as_ptr()), &mut lists.tables);
    }
    let c = &tile.coefficients[*coefficients..coefficients + rows * features.len()];
    for segment in tile.segments {
        let Lists { features: from, fixed, scaled, tables, .. } = lists;
        places(tile, features, segment, from, fixed);
        let mut layer = Layer {
            weights: Weights { at: c.as_ptr(), row_step: features.len(), input_step: 1 },
            inputs: from,
            outputs: of.outputs,
            start: start_of(*base, tile.coefficients),
            then: then::<SLOPES>(of.products),
            run: run_of(segment),
        };
        if let Base::Tables(_) = base {
            layer.start = Start::Planes(tables, segment.lag as isize - segment.offset as isize);
        }
        // SAFETY: pointers are shifted so that pair k of the tile is entry k.
        unsafe {
            match kind {
                LeafKind::Square => S::squares(layer, fixed),
                LeafKind::Dot => {
                    // Σ c x x′ = Σ (c x′) x: one number for the whole segment
                    scaled.clear();
                    for row in c.chunks_exact(features.len()) {
                        scaled.extend(row.iter().zip(fixed.iter()).map(|(c, f)| c * f));
                    }
                    layer.weights.at = scaled.as_ptr();
                    S::affine(layer);
                }
            }
        }
    }
}

/// # Safety
/// As the reverse pass.
#[inline(always)]
pub(super) unsafe fn reverse<S: Loops>(
    tile: &Tile,
    step: &Step,
    planes: &Layout,
    of: Of,
    lists: &mut Lists,
    sinks: &mut Sinks,
) {
    let Step::Leaf { kind, features, out, rows, coefficients, base, products } = step else { return };
    let grad = sinks.coefficients.as_mut_ptr();
    let whole = Run { from: 0, to: tile.len };
    // SAFETY: as promised by the caller.
    unsafe {
        row_adjoints::<S>(planes, *out, products, *base, grad, tile.len, of.adjoints);
        let grad = grad.add(coefficients * WIDEST);
        // Sums over the pairs of a column serve coefficients and the column's features.
        let alone = match &mut sinks.features {
            Some(FeatureAdjoints::Columns(to)) if tile.sides.meeting == Meeting::Cross => {
                let c = &tile.coefficients[*coefficients..coefficients + rows * features.len()];
                columns_alone::<S>(tile, (*kind, features), (c, of.adjoints), lists, sinks.wanted, (grad, to));
                true
            }
            _ => false,
        };
        for segment in tile.segments.iter().filter(|_| !alone) {
            let (read, Lists { features: from, fixed, .. }) = (of.adjoints, &mut *lists);
            places(tile, features, segment, from, fixed);
            let run = run_of(segment);
            match (tile.sides.meeting, kind) {
                (Meeting::Pairwise, _) => pairwise_gradient(tile, *kind, features, segment, read, grad),
                (_, LeafKind::Square) => S::outer(read, from, Beside::Squared(fixed), grad, run),
                (_, LeafKind::Dot) => S::outer(read, from, Beside::Scaled(fixed), grad, run),
            }
        }
        if let Base::Tables(first) = base {
            for (r, adjoint) in of.adjoints.iter().enumerate() {
                add_to_table::<S>(tile, *adjoint, first + r, sinks.tables);
            }
        }
        let Some(to) = sinks.features.as_mut().filter(|_| !alone) else { return };
        for (k, &f) in features.iter().enumerate().filter(|&(_, &f)| sinks.wanted[f]) {
            // The adjoint of atom k: Σ c[r][k] adjoint[r]
            let at = tile.coefficients.as_ptr().add(coefficients + k);
            let spare = planes.spare();
            S::affine(Layer {
                weights: Weights { at, row_step: 1, input_step: features.len() },
                inputs: of.adjoints,
                outputs: &[spare],
                start: Start::Zero,
                then: Then::Store,
                run: whole,
            });
            geometry::backward::<S>(kind.atom(f), &tile.sides, tile.segments, spare, to);
        }
    }
}

/// Adds a plane's adjoint to that of the table it was read from, at the lag of each pair.
///
/// # Safety
/// As the reverse pass; `tables` has the shape of the tile's tables.
#[inline(always)]
pub(super) unsafe fn add_to_table<S: Loops>(tile: &Tile, adjoint: *const f64, table: usize, tables: &mut [f64]) {
    let to = tables[table * tile.tables.stride..].as_mut_ptr();
    for s in tile.segments {
        for k in (0..s.padded).step_by(S::LANES) {
            // SAFETY: tables are padded beyond their last lag.
            unsafe {
                let p = to.add(s.lag + k);
                S::store(p, S::add(S::load(p), S::load(adjoint.add(s.offset + k))));
            }
        }
    }
}

fn run_of(segment: &Segment) -> Run {
    Run { from: segment.offset, to: segment.offset + segment.padded }
}

/// Adjoints of the columns' features where nobody asks for the rows', and the gradient of coefficients: every segment has one
/// column, so that sums over its pairs are enough, Σ adjoint (x − x′) or Σ adjoint x for every row of the leaf, and no atom's
/// adjoint is needed. The gradient has Σ adjoint (x − x′)² or x′ Σ adjoint x.
///
/// # Safety
/// As the reverse pass.
#[inline(always)]
unsafe fn columns_alone<S: Loops>(
    tile: &Tile,
    (kind, features): (LeafKind, &[usize]),
    (coefficients, read): (&[f64], &[*const f64]),
    lists: &mut Lists,
    wanted: &[bool],
    (gradient, to): (*mut f64, &mut [f64]),
) {
    let (width, stride) = (features.len(), tile.sides.columns.stride);
    for segment in tile.segments {
        let Lists { features: from, fixed, sums, .. } = lists;
        places(tile, features, segment, from, fixed);
        sums.clear();
        sums.resize(coefficients.len() * WIDEST, 0.0);
        let (run, at) = (run_of(segment), sums.as_mut_ptr());
        // SAFETY: as promised by the caller; there are WIDEST sums a coefficient, there and here.
        unsafe {
            let slope = match kind {
                LeafKind::Square => {
                    S::moments(read, from, fixed, [at, gradient], run);
                    -2.0
                }
                LeafKind::Dot => {
                    S::outer(read, from, Beside::Planes, at, run);
                    for c in 0..coefficients.len() {
                        let scale = S::splat(fixed[c % width]);
                        for k in (c * WIDEST..(c + 1) * WIDEST).step_by(S::LANES) {
                            let sum = S::fma(S::load(at.add(k)), scale, S::load(gradient.add(k)));
                            S::store(gradient.add(k), sum);
                        }
                    }
                    1.0
                }
            };
            for (i, &f) in features.iter().enumerate().filter(|&(_, &f)| wanted[f]) {
                let mut sum = [S::splat(0.0); 2];
                for c in (i..coefficients.len()).step_by(width) {
                    let (sums, weight) = (at.add(c * WIDEST), S::splat(coefficients[c]));
                    for (v, sum) in sum[..WIDEST / S::LANES].iter_mut().enumerate() {
                        *sum = S::fma(weight, S::load(sums.add(v * S::LANES)), *sum);
                    }
                }
                to[f * stride + segment.column] += slope * S::sum(S::add(sum[0], sum[1]));
            }
        }
    }
}

/// Where the rows of a leaf's features lie, pair k of the tile at entry k, and their values at the segment's column.
#[inline(always)]
fn places(tile: &Tile, features: &[usize], segment: &Segment, from: &mut Vec<*const f64>, fixed: &mut Vec<f64>) {
    let (rows, columns) = (tile.sides.rows, tile.sides.columns);
    assert!(segment.row < rows.stride && segment.column < columns.stride, "a segment beyond the features");
    let at = |f: usize| rows.values[f * rows.stride + segment.row..].as_ptr().wrapping_sub(segment.offset);
    pointers(features.iter().map(|&f| at(f)), from);
    pointers(features.iter().map(|&f| columns.values[f * columns.stride + segment.column]), fixed);
}

/// The atom of a leaf for one pair: diagonals are short, so plainly.
fn atom(kind: LeafKind, row: f64, column: f64) -> f64 {
    match kind {
        LeafKind::Square => (row - column) * (row - column),
        LeafKind::Dot => row * column,
    }
}

/// A leaf over pairs that go along together.
fn pairwise(tile: &Tile, planes: &Layout, step: &Step) {
    let Step::Leaf { kind, features, out, rows, coefficients, base, products } = step else { return };
    let mut planes = *planes;
    for r in 0..*rows {
        let values = planes.values(out + r, tile.len);
        let c = &tile.coefficients[coefficients + r * features.len()..][..features.len()];
        for segment in tile.segments {
            for k in 0..segment.padded {
                let term = |(c, &f): (&f64, &usize)| {
                    let (row, column) = (tile.sides.rows.feature(f), tile.sides.columns.feature(f));
                    c * atom(*kind, row[segment.row + k], column[segment.column + k])
                };
                let value = &mut values[segment.offset + k];
                let first = match base {
                    Base::Zero => 0.0,
                    Base::Bias(b) => tile.coefficients[b + r],
                    Base::Planes => *value,
                    Base::Tables(t) => tile.tables.feature(t + r)[0],
                };
                *value = first + c.iter().zip(features).map(term).sum::<f64>();
            }
        }
    }
    for (p, &product) in products.iter().enumerate() {
        for k in 0..tile.len {
            let [a, b] = [2 * p, 2 * p + 1].map(|r| planes.values(out + r, tile.len)[k]);
            planes.values(product, tile.len)[k] = a * b;
        }
    }
}

/// The gradient of a leaf's coefficients over pairs that go along together.
///
/// # Safety
/// Adjoints have the pairs of the tile, the gradient WIDEST lanes a coefficient.
unsafe fn pairwise_gradient(
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
                    let value = atom(kind, row[segment.row + k], column[segment.column + k]);
                    *gradient.add((r * features.len() + i) * WIDEST) += *adjoint.add(segment.offset + k) * value;
                }
            }
        }
    }
}
