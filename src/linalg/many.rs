//! Conjugate gradients for many right-hand sides beside each other, and what their coefficients tell of the logarithm of
//! the matrix (stochastic Lanczos quadrature). A block of vectors is stored with the numbers of one place together:
//! column i holds entry i of every vector.

use super::{ConjugateGradients, Matrix, symmetric_eigen};
use crate::threads::Threads;

/// Solutions, and the tridiagonal matrix that each right-hand side has seen.
#[derive(Debug, Clone)]
pub struct SolvedMany {
    /// Entry i of every solution in column i.
    pub x: Matrix,
    /// Steps taken.
    pub steps: usize,
    /// The largest residual, relative to its right-hand side.
    pub residual: f64,
    /// bᵀP⁻¹b for each right-hand side.
    pub squares: Vec<f64>,
    /// Steps αₖ and turns βₖ of each right-hand side.
    coefficients: Vec<Vec<(f64, f64)>>,
}

/// Solves A X = B for a positive definite A: `apply(v, out)` computes A V, `precondition(r, out)` P⁻¹R. A right-hand side
/// that has reached the tolerance rests while the others go on.
///
/// # Errors
/// The first one of `apply`.
pub fn conjugate_gradients_many<E>(
    mut apply: impl FnMut(&Matrix, &mut Matrix) -> Result<(), E>,
    mut precondition: impl FnMut(&Matrix, &mut Matrix),
    b: &Matrix,
    limits: ConjugateGradients,
) -> Result<SolvedMany, E> {
    let (k, n) = (b.rows(), b.columns());
    let (mut x, mut r, mut z, mut ap) = (Matrix::zeros(k, n), b.clone(), Matrix::zeros(k, n), Matrix::zeros(k, n));
    precondition(&r, &mut z);
    let mut p = z.clone();
    let mut rz = dots(&r, &z);
    let (scale, squares) = (dots(b, b), rz.clone());
    let mut resting: Vec<bool> = scale.iter().zip(&rz).map(|(s, rz)| *s == 0.0 || *rz <= 0.0).collect();
    let mut coefficients = vec![Vec::new(); k];
    let mut left: Vec<f64> = resting.iter().map(|rests| if *rests { 0.0 } else { 1.0 }).collect();
    let mut steps = 0;
    while steps < limits.steps && resting.contains(&false) {
        apply(&p, &mut ap)?;
        let curvature = dots(&p, &ap);
        let mut step = vec![0.0; k];
        for v in 0..k {
            // Not a number, or a direction in which the matrix is not positive: no further.
            resting[v] |= curvature[v].is_nan() || curvature[v] <= 0.0;
            step[v] = if resting[v] { 0.0 } else { rz[v] / curvature[v] };
        }
        for i in 0..n {
            let (p, ap) = (p.column(i), ap.column(i));
            x.column_mut(i).iter_mut().zip(p).zip(&step).for_each(|((x, p), s)| *x += s * p);
            r.column_mut(i).iter_mut().zip(ap).zip(&step).for_each(|((r, a), s)| *r -= s * a);
        }
        steps += 1;
        precondition(&r, &mut z);
        let (next, norms) = (dots(&r, &z), dots(&r, &r));
        let mut turn = vec![0.0; k];
        for v in 0..k {
            if resting[v] {
                continue;
            }
            left[v] = (norms[v] / scale[v]).sqrt();
            turn[v] = next[v] / rz[v];
            coefficients[v].push((step[v], turn[v]));
            rz[v] = next[v];
            resting[v] = left[v] <= limits.tolerance || rz[v] <= 0.0 || !turn[v].is_finite();
        }
        for i in 0..n {
            p.column_mut(i).iter_mut().zip(z.column(i)).zip(&turn).for_each(|((p, z), t)| *p = z + t * *p);
        }
    }
    let residual = left.into_iter().fold(0.0, f64::max);
    Ok(SolvedMany { x, steps, residual, squares, coefficients })
}

impl SolvedMany {
    /// bᵀP^{-½} log(P^{-½} A P^{-½}) P^{-½}b of one right-hand side: |P^{-½}b|² e₁ᵀ log(T) e₁ with the tridiagonal T of
    /// Lanczos' method, Tₖₖ = 1/αₖ + βₖ₋₁/αₖ₋₁ and Tₖₖ₊₁ = √βₖ/αₖ.
    pub fn log_quadrature(&self, which: usize) -> f64 {
        let c = &self.coefficients[which];
        let size = c.len();
        if size == 0 {
            return 0.0;
        }
        let mut t = Matrix::zeros(size, size);
        for k in 0..size {
            t[(k, k)] = 1.0 / c[k].0 + if k > 0 { c[k - 1].1 / c[k - 1].0 } else { 0.0 };
            if k + 1 < size {
                t[(k + 1, k)] = c[k].1.max(0.0).sqrt() / c[k].0;
            }
        }
        let Some(eigen) = symmetric_eigen(&t, Threads::One) else { return f64::NAN };
        let each = |(j, value): (usize, &f64)| eigen.vectors[(0, j)].powi(2) * value.max(f64::MIN_POSITIVE).ln();
        self.squares[which] * eigen.values.iter().enumerate().map(each).sum::<f64>()
    }
}

/// Σᵢ aᵥᵢ bᵥᵢ for every vector v.
fn dots(a: &Matrix, b: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; a.rows()];
    for i in 0..a.columns() {
        sums.iter_mut().zip(a.column(i)).zip(b.column(i)).for_each(|((s, a), b)| *s += a * b);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A = diag(λ), P = I: solutions are b/λ, and the quadrature of a unit vector's sum is Σ b² log λ.
    #[test]
    fn a_diagonal_matrix_is_solved_and_its_logarithm_found() {
        let n = 12;
        let values: Vec<f64> = (0..n).map(|i| 0.5 + i as f64).collect();
        let b = Matrix::from_fn(2, n, |v, i| if v == 0 { 1.0 } else { (i as f64).sin() });
        let apply = |v: &Matrix, out: &mut Matrix| {
            (0..n).for_each(|i| {
                let scaled: Vec<f64> = v.column(i).iter().map(|v| v * values[i]).collect();
                out.column_mut(i).copy_from_slice(&scaled);
            });
            Ok::<(), ()>(())
        };
        let limits = ConjugateGradients { tolerance: 1e-12, steps: 50 };
        let solved = conjugate_gradients_many(apply, |r, z| z.clone_from(r), &b, limits).unwrap();
        assert!(solved.residual <= 1e-12 && solved.steps <= n + 1, "{} {}", solved.residual, solved.steps);
        for v in 0..2 {
            let log: f64 = (0..n).map(|i| b[(v, i)].powi(2) * values[i].ln()).sum();
            assert!((solved.log_quadrature(v) - log).abs() < 1e-8, "{} {log}", solved.log_quadrature(v));
            (0..n).for_each(|i| assert!((solved.x[(v, i)] - b[(v, i)] / values[i]).abs() < 1e-10));
        }
    }
}
