//! Geometry of pairs: each atom fills one plane of a tile from the features of its points, and hands adjoints back to
//! the features.

use super::features::Features;
use super::simd::Simd;
use super::step::Atom;

/// A run of pairs within a tile: rows `row..row + len` against one column, or pairwise against as many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Place of the first pair in the tile.
    pub offset: usize,
    /// Pairs, without padding.
    pub len: usize,
    /// Pairs, with padding to whole vectors.
    pub padded: usize,
    pub row: usize,
    pub column: usize,
    /// The lag of the first pair, where lags are shared.
    pub lag: usize,
}

/// How rows meet columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Every row of a segment with its one column.
    Cross,
    /// Row by row: the pairs (i, i).
    Pairwise,
}

/// The two sets of points of a tile and how they meet.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub rows: &'a Features,
    pub columns: &'a Features,
    pub meeting: Meeting,
    /// Row number + shift = column number where both sides are the same set; none where they are not.
    pub same: Option<isize>,
}

/// Where adjoints of features go.
pub(super) enum FeatureAdjoints<'a> {
    /// Both sides are the same set.
    Same(&'a mut [f64]),
    /// Those of the rows, those of the columns.
    Both(&'a mut [f64], &'a mut [f64]),
    /// Nobody asks for those of the rows.
    Columns(&'a mut [f64]),
}

/// Fills the plane of an atom.
///
/// # Safety
/// `plane` has room for the padded pairs of every segment; instructions of `S` are enabled.
#[inline(always)]
pub(super) unsafe fn forward<S: Simd>(atom: Atom, sides: &Sides, segments: &[Segment], plane: *mut f64) {
    if let Atom::Same = atom {
        return same(sides, segments, plane);
    }
    let pairwise = sides.meeting == Meeting::Pairwise;
    for segment in segments {
        // SAFETY: features are padded beyond their last row, planes beyond the last segment.
        unsafe {
            let out = plane.add(segment.offset);
            let row = |f: usize| sides.rows.feature(f).as_ptr().add(segment.row);
            let column = |f: usize| sides.columns.feature(f).as_ptr().add(segment.column);
            // One loop for each atom, so that what stays the same along the segment stays in a register.
            macro_rules! run {
                ($($f:expr),*; |$($a:ident, $b:ident),*| $value:expr) => {{
                    let (rows, columns) = ([$(row($f)),*], [$(column($f)),*]);
                    let fixed = [$(S::splat(*column($f))),*];
                    macro_rules! each {
                        (|$g:ident, $l:ident| $second:expr) => {
                            for k in (0..segment.padded).step_by(S::LANES) {
                                let mut _place = 0;
                                $(
                                    let ($g, $l) = (_place, k);
                                    let ($a, $b) = (S::load(rows[_place].add(k)), $second);
                                    _place += 1;
                                )*
                                S::store(out.add(k), $value);
                            }
                        };
                    }
                    if pairwise {
                        each!(|g, l| S::load(columns[g].add(l)));
                    } else {
                        each!(|g, _l| fixed[g]);
                    }
                }};
            }
            match atom {
                Atom::Square(f) => run!(f; |a, b| { let t = S::sub(a, b); S::mul(t, t) }),
                Atom::Dot(f) => run!(f; |a, b| S::mul(a, b)),
                Atom::Chord(f) => run!(f, f + 1; |a, b, c, d| {
                    let (t, u) = (S::sub(a, b), S::sub(c, d));
                    S::fma(t, t, S::mul(u, u))
                }),
                Atom::TurnRe(f) => run!(f, f + 1; |a, b, c, d| S::fma(a, b, S::mul(c, d))),
                Atom::TurnIm(f) => run!(f, f + 1; |a, b, c, d| S::fnma(a, d, S::mul(c, b))),
                Atom::Same => {}
            }
        }
    }
}

fn same(sides: &Sides, segments: &[Segment], plane: *mut f64) {
    for segment in segments {
        // SAFETY: planes have room for the padded pairs of every segment.
        let out = unsafe { std::slice::from_raw_parts_mut(plane.add(segment.offset), segment.padded) };
        out.fill(0.0);
        if sides.meeting == Meeting::Pairwise {
            out.fill(if sides.same.is_some() { 1.0 } else { 0.0 });
        } else if let Some(shift) = sides.same {
            let row = segment.column as isize - shift - segment.row as isize;
            if let Ok(k) = usize::try_from(row)
                && k < segment.len
            {
                out[k] = 1.0;
            }
        }
    }
}

/// Hands the adjoint of an atom's plane to the features.
///
/// # Safety
/// As [`forward`]; adjoints have the shape of the features.
#[inline(always)]
pub(super) unsafe fn backward<S: Simd>(
    atom: Atom,
    sides: &Sides,
    segments: &[Segment],
    adjoint: *const f64,
    to: &mut FeatureAdjoints,
) {
    let pairwise = sides.meeting == Meeting::Pairwise;
    let (row_stride, column_stride) = (sides.rows.stride, sides.columns.stride);
    let (rows_to, columns_to) = match to {
        FeatureAdjoints::Same(all) => (all.as_mut_ptr(), all.as_mut_ptr()),
        FeatureAdjoints::Both(rows, columns) => (rows.as_mut_ptr(), columns.as_mut_ptr()),
        FeatureAdjoints::Columns(columns) => (std::ptr::null_mut(), columns.as_mut_ptr()),
    };
    for segment in segments {
        // SAFETY: as in forward; the adjoint of padding is zero, so that padded rows get nothing.
        unsafe {
            let a = adjoint.add(segment.offset);
            let row = |f: usize| sides.rows.feature(f).as_ptr().add(segment.row);
            let column = |f: usize| sides.columns.feature(f).as_ptr().add(segment.column);
            let to_row = |f: usize| rows_to.wrapping_add(f * row_stride + segment.row);
            let to_column = |f: usize| columns_to.add(f * column_stride + segment.column);
            // value(a, x, y) gives what goes to the row's and to the column's feature.
            macro_rules! run {
                ($f:expr, $g:expr; |$s:ident, $x:ident, $y:ident| ($r:expr, $c:expr)) => {{
                    let (rows, columns, to_rows, to_columns) = (row($f), column($g), to_row($f), to_column($g));
                    if pairwise {
                        for k in (0..segment.padded).step_by(S::LANES) {
                            let ($s, $x, $y) = (S::load(a.add(k)), S::load(rows.add(k)), S::load(columns.add(k)));
                            S::store(to_rows.add(k), S::add(S::load(to_rows.add(k)), $r));
                            S::store(to_columns.add(k), S::add(S::load(to_columns.add(k)), $c));
                        }
                    } else if rows_to.is_null() {
                        #[allow(unused_variables)]
                        let $y = S::splat(*columns);
                        let mut total = S::splat(0.0);
                        for k in (0..segment.padded).step_by(S::LANES) {
                            let ($s, $x) = (S::load(a.add(k)), S::load(rows.add(k)));
                            total = S::add(total, $c);
                        }
                        *to_columns += S::sum(total);
                    } else {
                        let $y = S::splat(*columns);
                        let mut total = S::splat(0.0);
                        for k in (0..segment.padded).step_by(S::LANES) {
                            let ($s, $x) = (S::load(a.add(k)), S::load(rows.add(k)));
                            S::store(to_rows.add(k), S::add(S::load(to_rows.add(k)), $r));
                            total = S::add(total, $c);
                        }
                        *to_columns += S::sum(total);
                    }
                }};
            }
            macro_rules! square {
                ($f:expr) => {
                    run!($f, $f; |s, x, y| ({
                        let t = S::mul(s, S::sub(x, y));
                        S::add(t, t)
                    }, {
                        let t = S::mul(s, S::sub(y, x));
                        S::add(t, t)
                    }))
                };
            }
            match atom {
                Atom::Square(f) => square!(f),
                Atom::Chord(f) => {
                    square!(f);
                    square!(f + 1);
                }
                Atom::Dot(f) => run!(f, f; |s, x, y| (S::mul(s, y), S::mul(s, x))),
                Atom::TurnRe(f) => {
                    run!(f, f; |s, x, y| (S::mul(s, y), S::mul(s, x)));
                    run!(f + 1, f + 1; |s, x, y| (S::mul(s, y), S::mul(s, x)));
                }
                Atom::TurnIm(f) => {
                    // sin a cos a′ − cos a sin a′
                    run!(f + 1, f; |s, x, y| (S::mul(s, y), S::mul(s, x)));
                    run!(f, f + 1; |s, x, y| (S::fnma(s, y, S::splat(0.0)), S::fnma(s, x, S::splat(0.0))));
                }
                Atom::Same => {}
            }
        }
    }
}
