//! Conjugate gradients with a preconditioner, for matrices known only by what they do to a vector.

use super::dot;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConjugateGradients {
    /// The residual's norm, relative to that of the right-hand side.
    pub tolerance: f64,
    /// The most steps.
    pub steps: usize,
}

/// A solution with an honest account.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    /// The solution.
    pub x: Vec<f64>,
    /// Steps taken.
    pub steps: usize,
    /// The residual's norm, relative to that of the right-hand side.
    pub residual: f64,
    /// Did it reach the tolerance?
    pub converged: bool,
}

/// Solves A x = b for a positive definite A: `apply(v, out)` computes A v, `precondition(r, out)` approximates A⁻¹ r.
pub fn conjugate_gradients(
    mut apply: impl FnMut(&[f64], &mut [f64]),
    mut precondition: impl FnMut(&[f64], &mut [f64]),
    b: &[f64],
    limits: ConjugateGradients,
) -> Solved {
    let n = b.len();
    let scale = dot(b, b).sqrt();
    let mut solved = Solved { x: vec![0.0; n], steps: 0, residual: 0.0, converged: true };
    if scale == 0.0 {
        return solved;
    }
    let (mut r, mut z, mut ap) = (b.to_vec(), vec![0.0; n], vec![0.0; n]);
    precondition(&r, &mut z);
    let mut p = z.clone();
    let mut rz = dot(&r, &z);
    solved.residual = 1.0;
    solved.converged = false;
    while solved.steps < limits.steps {
        apply(&p, &mut ap);
        let curvature = dot(&p, &ap);
        // Not a number, or a direction in which the matrix is not positive: no further.
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let step = rz / curvature;
        for i in 0..n {
            solved.x[i] += step * p[i];
            r[i] -= step * ap[i];
        }
        solved.steps += 1;
        solved.residual = dot(&r, &r).sqrt() / scale;
        if solved.residual <= limits.tolerance {
            solved.converged = true;
            break;
        }
        precondition(&r, &mut z);
        let next = dot(&r, &z);
        let turn = next / rz;
        rz = next;
        for i in 0..n {
            p[i] = z[i] + turn * p[i];
        }
    }
    solved
}
