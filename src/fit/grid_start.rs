//! What the lines of a grid say about where to start: the periods of each axis, from the spectra of all its lines, and
//! the noise, from differences of neighbours.

use crate::data::Grid;
use std::f64::consts::TAU;

/// Frequencies tried for each independent one.
const OVERSAMPLING: usize = 4;
/// The most periods of an axis.
const MOST: usize = 6;

/// Periods along an axis with the most power, strongest first, in the axis's own units; empty where nothing stands out.
/// The power of a frequency is the mean over all lines of what a sinusoid explains, missing cells left out.
pub(super) fn periods(grid: &Grid, y: &[Vec<f64>], axis: usize) -> Vec<f64> {
    let (shape, x) = (grid.shape(), &grid.axes()[axis]);
    let n = shape[axis];
    let right: usize = shape[axis + 1..].iter().product();
    let span = x[n - 1] - x[0];
    if n < 12 {
        return vec![];
    }
    // From one and a half repetitions to two places a repetition.
    let count = (n - 1) / 2 * OVERSAMPLING;
    let frequency = |i: usize| i as f64 / (OVERSAMPLING as f64 * span);
    let first = OVERSAMPLING * 3 / 2;
    let waves: Vec<Vec<(f64, f64)>> =
        (0..count).map(|i| x.iter().map(|v| (TAU * frequency(i) * (v - x[0])).sin_cos()).collect()).collect();
    let lines = grid.observed().len() / n;
    let mut power = vec![0.0; count];
    let step = lines.div_ceil(512);
    for line in (0..lines).step_by(step) {
        let at = |i: usize| (line / right * n + i) * right + line % right;
        let seen: Vec<usize> = (0..n).filter(|&i| grid.observed()[at(i)]).collect();
        if seen.len() < n / 2 {
            continue;
        }
        for channel in y {
            let mean = seen.iter().map(|&i| channel[at(i)]).sum::<f64>() / seen.len() as f64;
            let values: Vec<f64> = seen.iter().map(|&i| channel[at(i)] - mean).collect();
            for (power, wave) in power.iter_mut().zip(&waves).skip(first) {
                let (mut s, mut c) = (0.0, 0.0);
                for (&i, v) in seen.iter().zip(&values) {
                    s += v * wave[i].0;
                    c += v * wave[i].1;
                }
                *power += (s * s + c * c) / seen.len() as f64;
            }
        }
    }
    peaks(&power, first).iter().map(|&f| 1.0 / (f / (OVERSAMPLING as f64 * span))).collect()
}

/// Tops of the peaks, in steps of the list, that stand above their neighbourhood; the strongest first.
fn peaks(power: &[f64], first: usize) -> Vec<f64> {
    let n = power.len();
    if n < first + 3 {
        return vec![];
    }
    let mut found: Vec<(f64, f64)> = Vec::new();
    for i in first + 1..n - 1 {
        if power[i] <= power[i - 1] || power[i] < power[i + 1] {
            continue;
        }
        let near = &power[i.saturating_sub(6 * OVERSAMPLING).max(first)..(i + 6 * OVERSAMPLING).min(n)];
        let mut sorted = near.to_vec();
        sorted.sort_by(f64::total_cmp);
        let floor = sorted[sorted.len() / 2];
        // The top of the parabola through three points.
        let bend = power[i - 1] - 2.0 * power[i] + power[i + 1];
        let shift = if bend < 0.0 { 0.5 * (power[i - 1] - power[i + 1]) / bend } else { 0.0 };
        if power[i] > 1.5 * floor {
            found.push((i as f64 + shift, power[i]));
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (f, p) in found {
        if kept.iter().all(|(g, _)| (f - g).abs() > 1.2 * OVERSAMPLING as f64) && kept.len() < MOST {
            kept.push((f, p));
        }
    }
    kept.iter().map(|k| k.0).collect()
}

/// Noise variance from second differences of neighbours along the last axis.
pub(super) fn noise(grid: &Grid, y: &[Vec<f64>]) -> f64 {
    let n = grid.shape().last().copied().unwrap_or(1);
    let mut squares: Vec<f64> = Vec::new();
    for channel in y {
        for (line, seen) in channel.chunks(n).zip(grid.observed().chunks(n)) {
            for (w, s) in line.windows(3).zip(seen.windows(3)) {
                if s.iter().all(|s| *s) {
                    squares.push((w[1] - 0.5 * (w[0] + w[2])).powi(2));
                }
            }
        }
    }
    if squares.is_empty() {
        return 0.1;
    }
    let middle = squares.len() / 2;
    // The median of χ²₁ is 0.455; the second difference of noise has variance 3/2 σ².
    let median = *squares.select_nth_unstable_by(middle, f64::total_cmp).1 / 0.455;
    (median / 1.5).clamp(1e-4, 0.5)
}
