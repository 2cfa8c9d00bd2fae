//! The missing cells of a grid. With A = K + σ²I over all cells and B = A⁻¹, which is diagonal in the basis of the
//! factors' eigenvectors, the observed cells' system A_oo α = y becomes one over the missing cells alone:
//!
//! ```text
//! B_mm z = B_mo y,    ŷ = (y, −z),    α = B ŷ  (nought on the missing cells),    yᵀ A_oo⁻¹ y = ŷᵀ B ŷ
//! ```
//!
//! It is solved by conjugate gradients. B_mm acts through the places that occur in the holes only, so a small hole is
//! cheap; its inverse is the covariance of the missing values given the observed ones. Missing cells that are imaginary
//! observations of noise ν instead add 1/ν to its diagonal.

use super::grid::Spectrum;
use crate::linalg::{ConjugateGradients, KronScratch, Matrix, Side, conjugate_gradients, dot, kron_apply};
use crate::threads::Threads;

#[derive(Debug, Clone)]
pub(super) struct Holes {
    /// For every axis, the places that occur in missing cells.
    places: Vec<Vec<usize>>,
    /// Where each missing cell stands in the tensor of those places.
    inside: Vec<usize>,
    /// Where each missing cell stands in the grid.
    pub cells: Vec<usize>,
    /// 1/ν, nought where missing cells are not observed at all.
    pub imaginary: f64,
    /// The eigenvectors' rows at those places.
    rows: Vec<Matrix>,
    /// 1/(λ + σ²)
    pub inverse: Vec<f64>,
}

/// A solution in the basis of the eigenvectors.
pub(super) struct Filled {
    /// α = B ŷ
    pub alpha: Vec<f64>,
    /// yᵀ A_oo⁻¹ y
    pub quadratic: f64,
    /// The missing values are −z.
    pub z: Vec<f64>,
    pub steps: usize,
    pub residual: f64,
}

impl Holes {
    pub fn new(shape: &[usize], observed: &[bool]) -> Self {
        let cells: Vec<usize> = (0..observed.len()).filter(|&i| !observed[i]).collect();
        let right = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let mut places = Vec::new();
        let mut inside = vec![0; cells.len()];
        for (axis, &n) in shape.iter().enumerate() {
            let mut used = vec![false; n];
            cells.iter().for_each(|&cell| used[cell / right(axis) % n] = true);
            let list: Vec<usize> = (0..n).filter(|&i| used[i]).collect();
            let mut rank = vec![0; n];
            list.iter().enumerate().for_each(|(r, &i)| rank[i] = r);
            for (at, &cell) in inside.iter_mut().zip(&cells) {
                *at = *at * list.len() + rank[cell / right(axis) % n];
            }
            places.push(list);
        }
        Self { places, inside, cells, imaginary: 0.0, rows: vec![], inverse: vec![] }
    }

    /// Number of missing cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Makes ready for a spectrum.
    pub fn prepare(&mut self, spectrum: &Spectrum) {
        self.inverse = spectrum.lambda.iter().map(|l| 1.0 / (l + spectrum.noise)).collect();
        let row = |(list, eigen): (&Vec<usize>, &crate::linalg::Eigen)| {
            Matrix::from_fn(list.len(), eigen.vectors.columns(), |i, j| eigen.vectors[(list[i], j)])
        };
        self.rows = self.places.iter().zip(&spectrum.axes).map(row).collect();
    }

    /// Values at the missing cells, turned into the basis of the eigenvectors.
    pub fn turn(&self, values: &[f64], room: &mut Room, threads: Threads) {
        room.box_.clear();
        room.box_.resize(self.places.iter().map(Vec::len).product(), 0.0);
        self.inside.iter().zip(values).for_each(|(&at, v)| room.box_[at] = *v);
        let rows: Vec<&Matrix> = self.rows.iter().collect();
        kron_apply(&rows, Side::Transposed, &room.box_, &mut room.turned, &mut room.kron, threads);
    }

    /// Back from the basis of the eigenvectors, at the missing cells.
    pub fn turn_back(&self, room: &mut Room, out: &mut [f64], threads: Threads) {
        let rows: Vec<&Matrix> = self.rows.iter().collect();
        let (turned, to) = (&room.turned, &mut room.box_);
        kron_apply(&rows, Side::Plain, turned, to, &mut room.kron, threads);
        out.iter_mut().zip(&self.inside).for_each(|(o, &at)| *o = room.box_[at]);
    }

    /// B_mm v
    pub fn precision(&self, v: &[f64], out: &mut [f64], room: &mut Room, threads: Threads) {
        self.turn(v, room, threads);
        room.turned.iter_mut().zip(&self.inverse).for_each(|(t, i)| *t *= i);
        self.turn_back(room, out, threads);
        if self.imaginary != 0.0 {
            out.iter_mut().zip(v).for_each(|(o, v)| *o += self.imaginary * v);
        }
    }

    /// Solves for one channel, with room to work in; a guess of z saves steps.
    pub fn solve(
        &self,
        spectrum: &Spectrum,
        y: &[f64],
        guess: Option<&[f64]>,
        limits: ConjugateGradients,
        room: &mut Room,
        threads: Threads,
    ) -> Filled {
        let mut turned = Vec::new();
        kron_apply(&spectrum.vectors(), Side::Transposed, y, &mut turned, &mut room.kron, threads);
        let scaled = |mut t: Vec<f64>| {
            let quadratic = t.iter().zip(&self.inverse).map(|(t, i)| t * t * i).sum::<f64>();
            t.iter_mut().zip(&self.inverse).for_each(|(t, i)| *t *= i);
            (t, quadratic)
        };
        if self.len() == 0 {
            let (alpha, quadratic) = scaled(turned);
            return Filled { alpha, quadratic, z: vec![], steps: 0, residual: 0.0 };
        }
        let mut b = vec![0.0; self.len()];
        room.turned.clear();
        room.turned.extend(turned.iter().zip(&self.inverse).map(|(t, i)| t * i));
        self.turn_back(room, &mut b, threads);
        let mut limits = limits;
        if let Some(guess) = guess {
            // What the guess leaves, to the same residual relative to all of b.
            let whole = dot(&b, &b).sqrt();
            let mut own = vec![0.0; b.len()];
            self.precision(guess, &mut own, room, threads);
            b.iter_mut().zip(&own).for_each(|(b, own)| *b -= own);
            limits.tolerance *= whole / dot(&b, &b).sqrt().max(f64::MIN_POSITIVE);
        }
        let (mut z, mut steps) = (vec![0.0; b.len()], 0);
        if limits.tolerance < 1.0 {
            let found = conjugate_gradients(
                |v, out| self.precision(v, out, room, threads),
                |r, out| out.copy_from_slice(r),
                &b,
                limits,
            );
            (z, steps) = (found.x, found.steps);
        }
        if let Some(guess) = guess {
            z.iter_mut().zip(guess).for_each(|(z, g)| *z += g);
        }
        self.turn(&z, room, threads);
        turned.iter_mut().zip(&room.turned).for_each(|(y, z)| *y -= z);
        let (alpha, quadratic) = scaled(turned);
        let quadratic = quadratic + self.imaginary * dot(&z, &z);
        let residual = self.residual(spectrum, &alpha, y, &z, room, threads);
        Filled { alpha, quadratic, z, steps, residual }
    }

    /// How far the observed cells' own equations are from holding, relative to the values: since A α = ŷ holds exactly
    /// over all cells, what is wrong is what A takes from the part of α on the missing cells, −A_om α_m.
    fn residual(
        &self,
        spectrum: &Spectrum,
        alpha: &[f64],
        y: &[f64],
        z: &[f64],
        room: &mut Room,
        threads: Threads,
    ) -> f64 {
        room.turned.clear();
        room.turned.extend_from_slice(alpha);
        let mut left = vec![0.0; self.len()];
        self.turn_back(room, &mut left, threads);
        left.iter_mut().zip(z).for_each(|(l, z)| *l -= self.imaginary * z);
        self.turn(&left, room, threads);
        room.turned.iter_mut().zip(&spectrum.lambda).for_each(|(t, l)| *t *= l);
        // Over all cells: a bound for the observed ones, and no further product.
        (dot(&room.turned, &room.turned) / dot(y, y).max(f64::MIN_POSITIVE)).sqrt()
    }
}

/// Room to work in.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    box_: Vec<f64>,
    pub turned: Vec<f64>,
    kron: KronScratch,
}
