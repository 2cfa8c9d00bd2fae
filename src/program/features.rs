//! Features of points: what depends on one point only is done here once a point, not once a pair; and the way back,
//! from adjoints of features to parameters and inputs.

use super::planes::Aligned;
use super::step::{MapKind, PointMap, Value};
use crate::data::Points;
use crate::kernel::Side;
use std::f64::consts::TAU;

/// Extra entries behind each feature, so that the last vector of lanes can be read whole.
pub(super) const PADDING: usize = 8;

/// Features of a set of points, one after another, each padded with copies of its last value.
#[derive(Debug, Clone, Default)]
pub(super) struct Features {
    pub n: usize,
    /// From one feature to the next: whole cache lines.
    pub stride: usize,
    pub values: Aligned,
}

impl Features {
    pub fn feature(&self, f: usize) -> &[f64] {
        &self.values[f * self.stride..(f + 1) * self.stride]
    }

    /// Computes every feature of every point.
    pub fn compute(&mut self, maps: &[PointMap], count: usize, x: &Points, theta: &[f64]) {
        let n = x.n();
        self.n = n;
        self.stride = (n + PADDING).next_multiple_of(PADDING);
        self.values.clear_to(count * self.stride);
        let stride = self.stride;
        for map in maps {
            let width = map.kind.width();
            let out = &mut self.values[map.first * stride..(map.first + width) * stride];
            forward(&map.kind, x, theta, out, stride);
        }
        for feature in self.values.chunks_exact_mut(stride.max(1)) {
            let last = if n == 0 { 0.0 } else { feature[n - 1] };
            feature[n..].fill(last);
        }
    }
}

fn forward(kind: &MapKind, x: &Points, theta: &[f64], out: &mut [f64], stride: usize) {
    let n = x.n();
    match kind {
        MapKind::Column(c) => out[..n].copy_from_slice(x.column(*c)),
        MapKind::Circle { column, period } => {
            let p = period.of(theta);
            for (i, &v) in x.column(*column).iter().enumerate() {
                let (s, c) = sin_cos_turns(v / p);
                (out[i], out[stride + i]) = (c, s);
            }
        }
        MapKind::Phase { columns, frequency } => {
            for i in 0..n {
                let (s, c) = phase(x, columns, frequency, theta, i).sin_cos();
                (out[i], out[stride + i]) = (c, s);
            }
        }
        MapKind::Wave { columns, f, g } => {
            for i in 0..n {
                let (s1, c1) = phase(x, columns, f, theta, i).sin_cos();
                let (s2, c2) = phase(x, columns, g, theta, i).sin_cos();
                (out[i], out[stride + i]) = (c1 + c2, s1 + s2);
            }
        }
        MapKind::Sphere { columns, weight, bias, order } => {
            let (d, b) = (columns.len(), bias.of(theta));
            for i in 0..n {
                let square =
                    columns.iter().zip(weight).fold(b, |s, (&c, w)| s + w.of(theta) * x.column(c)[i].powi(2));
                // A point at the origin without bias has no direction; any will do, its length is zero.
                let length = square.sqrt().max(1e-150);
                for (k, (&c, w)) in columns.iter().zip(weight).enumerate() {
                    out[k * stride + i] = w.of(theta).sqrt() * x.column(c)[i] / length;
                }
                out[d * stride + i] = b.sqrt() / length;
                out[(d + 1) * stride + i] = length.powi(*order);
            }
        }
        MapKind::Gate { column, place, width, side } => {
            let (t, w) = (place.of(theta), width.of(theta));
            for (i, &v) in x.column(*column).iter().enumerate() {
                out[i] = logistic(sign(*side) * (v - t) / w);
            }
        }
    }
}

/// Adjoints of features go back to parameters (`gradient`) and, where asked for, to inputs (`dx`, column by column).
pub(super) fn backward(
    maps: &[PointMap],
    x: &Points,
    theta: &[f64],
    features: &Features,
    adjoint: &[f64],
    gradient: &mut [f64],
    mut dx: Option<&mut [f64]>,
) {
    let (n, stride) = (x.n(), features.stride);
    let mut add = |value: Value, g: f64| {
        if let Value::Slot(s) = value {
            gradient[s] += g;
        }
    };
    for map in maps {
        let at = |k: usize| (map.first + k) * stride;
        let (f, a) = (&features.values, adjoint);
        let mut to_x = |c: usize, i: usize, g: f64| {
            if let Some(dx) = dx.as_deref_mut() {
                dx[c * n + i] += g;
            }
        };
        match &map.kind {
            MapKind::Column(c) => (0..n).for_each(|i| to_x(*c, i, a[at(0) + i])),
            MapKind::Circle { column, period } => {
                let p = period.of(theta);
                let mut dp = 0.0;
                for (i, &v) in x.column(*column).iter().enumerate() {
                    // c' = −s, s' = c in the angle 2πx/p
                    let turn = f[at(0) + i] * a[at(1) + i] - f[at(1) + i] * a[at(0) + i];
                    dp -= turn * TAU * v / (p * p);
                    to_x(*column, i, turn * TAU / p);
                }
                add(*period, dp);
            }
            MapKind::Phase { columns, frequency } => {
                for i in 0..n {
                    let turn = f[at(0) + i] * a[at(1) + i] - f[at(1) + i] * a[at(0) + i];
                    for (&c, &m) in columns.iter().zip(frequency) {
                        add(m, turn * x.column(c)[i]);
                        to_x(c, i, turn * m.of(theta));
                    }
                }
            }
            MapKind::Wave { columns, f, g } => {
                for i in 0..n {
                    for list in [f, g] {
                        let (s, c) = phase(x, columns, list, theta, i).sin_cos();
                        let turn = c * a[at(1) + i] - s * a[at(0) + i];
                        for (&c, &m) in columns.iter().zip(list) {
                            add(m, turn * x.column(c)[i]);
                            to_x(c, i, turn * m.of(theta));
                        }
                    }
                }
            }
            MapKind::Sphere { columns, weight, bias, order } => {
                let d = columns.len();
                for i in 0..n {
                    let b = bias.of(theta);
                    let square =
                        columns.iter().zip(weight).fold(b, |s, (&c, w)| s + w.of(theta) * x.column(c)[i].powi(2));
                    let length = square.sqrt().max(1e-150);
                    // u = z/|z|: ∂/∂z = (a − u (u·a))/|z| + order |z|^(order−1) u ∂/∂|z|^order
                    let along: f64 = (0..=d).map(|k| f[at(k) + i] * a[at(k) + i]).sum();
                    let lengthen = a[at(d + 1) + i] * f64::from(*order) * length.powi(order - 1);
                    let dz = |k: usize| (a[at(k) + i] - f[at(k) + i] * along) / length + f[at(k) + i] * lengthen;
                    for (k, (&c, &w)) in columns.iter().zip(weight).enumerate() {
                        let (v, root) = (x.column(c)[i], w.of(theta).sqrt());
                        add(w, dz(k) * v * 0.5 / root);
                        to_x(c, i, dz(k) * root);
                    }
                    if b > 0.0 {
                        add(*bias, dz(d) * 0.5 / b.sqrt());
                    }
                }
            }
            MapKind::Gate { column, place, width, side } => {
                let (t, w) = (place.of(theta), width.of(theta));
                for (i, &v) in x.column(*column).iter().enumerate() {
                    let g = f[at(0) + i];
                    let slope = a[at(0) + i] * g * (1.0 - g) * sign(*side) / w;
                    add(*place, -slope);
                    add(*width, -slope * (v - t) / w);
                    to_x(*column, i, slope);
                }
            }
        }
    }
}

fn sign(side: Side) -> f64 {
    if side == Side::After { 1.0 } else { -1.0 }
}

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn phase(x: &Points, columns: &[usize], frequency: &[Value], theta: &[f64], i: usize) -> f64 {
    columns.iter().zip(frequency).map(|(&c, m)| m.of(theta) * x.column(c)[i]).sum()
}

/// sin and cos of a number of whole turns; the turns are dropped first, so that far from the origin nothing is lost.
fn sin_cos_turns(turns: f64) -> (f64, f64) {
    (TAU * (turns - turns.round())).sin_cos()
}
