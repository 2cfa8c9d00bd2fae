//! The negative log marginal likelihood as a function of raw numbers: transforms by role, weak priors, noise floor.

use super::problem::{NOISE_FLOOR, Problem};
use crate::error::Result;
use crate::kernel::{Kernel, Role, Transform};
use crate::optim::{Bounds, Objective};
use crate::program::Program;
use crate::threads::Threads;

/// How strongly parameters are held near sensible values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priors {
    /// Weak ones by role: weights are drawn towards zero, short lengthscales and values that no data could support are
    /// held back.
    #[default]
    Weak,
    /// None: the marginal likelihood alone.
    Off,
}

/// Everything an evaluation needs; one objective is made of it for each restart.
#[derive(Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub problem: &'a Problem,
    pub kernel: &'a Kernel,
    pub program: &'a Program,
    pub priors: Priors,
    pub threads: Threads,
}

impl<'a> Evidence<'a> {
    pub fn roles(&self) -> Vec<Role> {
        self.kernel.params().iter().map(|p| p.role()).collect()
    }

    /// Raw numbers of parameter values and noise variance.
    pub fn raw(&self, (theta, noise): (Vec<f64>, f64)) -> Vec<f64> {
        let mut raw: Vec<f64> = self.roles().iter().zip(&theta).map(|(r, &v)| r.transform().raw(v)).collect();
        if self.problem.fixed_noise.is_none() {
            raw.push(Transform::Log.raw((noise - NOISE_FLOOR).max(NOISE_FLOOR)));
        }
        raw
    }

    /// Parameter values and noise variance of raw numbers.
    pub fn values(&self, raw: &[f64]) -> (Vec<f64>, f64) {
        let theta: Vec<f64> = self.roles().iter().zip(raw).map(|(r, &v)| r.transform().value(v)).collect();
        let noise = match self.problem.fixed_noise {
            Some(noise) => noise,
            None => NOISE_FLOOR + Transform::Log.value(raw[theta.len()]),
        };
        (theta, noise)
    }

    /// Bounds on raw numbers: beyond them an exponential overflows or nothing changes any more.
    pub fn bounds(&self) -> Bounds {
        let of = |role: &Role| match role.transform() {
            Transform::Identity => (-1e6, 1e6),
            _ => (-25.0, 25.0),
        };
        let mut list: Vec<(f64, f64)> = self.roles().iter().map(of).collect();
        if self.problem.fixed_noise.is_none() {
            list.push((-25.0, 25.0));
        }
        Bounds::Each(list)
    }

    /// The objective from the log likelihood, and its gradient from the slopes: by transforms, with priors.
    pub fn finish(
        &self,
        roles: &[Role],
        raw: &[f64],
        (value, noise, noise_slope): (f64, f64, f64),
        gradient: &[f64],
        out: &mut [f64],
    ) -> f64 {
        for ((out, role), (raw, g)) in out.iter_mut().zip(roles).zip(raw.iter().zip(gradient)) {
            *out = -g * role.transform().slope(*raw);
        }
        if self.problem.fixed_noise.is_none() {
            out[roles.len()] = -noise_slope * (noise - NOISE_FLOOR);
        }
        let mut prior = 0.0;
        if self.priors == Priors::Weak {
            let noise = self.problem.fixed_noise.is_none().then_some(Role::Noise);
            for ((role, &raw), out) in roles.iter().copied().chain(noise).zip(raw).zip(out.iter_mut()) {
                let (value, slope) = weak_prior(role, raw);
                prior += value;
                *out += slope;
            }
        }
        -value + prior
    }

    /// The function to minimise.
    pub fn objective(self) -> Result<impl Objective + use<'a>> {
        let roles = self.roles();
        let mut exact = self.problem.exact(self.program, self.threads)?;
        let mut gradient = vec![0.0; roles.len()];
        Ok(move |raw: &[f64], out: &mut [f64]| {
            let (theta, noise) = self.values(raw);
            let Ok((value, noise_slope)) = exact.gradient(&theta, noise, &mut gradient) else {
                return f64::INFINITY;
            };
            self.finish(&roles, raw, (value, noise, noise_slope), &gradient, out)
        })
    }
}

/// −log density (up to a constant) of a raw number, and its slope, by role, on standardised data. What makes a unit or a
/// column drop out costs nothing: weights are drawn towards zero, lengthscales held back only where they are short.
pub(super) fn weak_prior(role: Role, raw: f64) -> (f64, f64) {
    let normal = |centre: f64, sd: f64| {
        let z = (raw - centre) / sd;
        (0.5 * z * z, z / sd)
    };
    match role {
        // Exponential in the weight itself.
        Role::Weight | Role::Bias => {
            let transform = role.transform();
            (transform.value(raw), transform.slope(raw))
        }
        // Exponential in 1/ℓ.
        Role::Lengthscale { .. } => {
            let inverse = 0.1 * (-raw).exp();
            (inverse, -inverse)
        }
        Role::Period { .. } => normal(0.0, 4.0),
        Role::Smoothness => normal(0.3, 1.0),
        Role::Shape => normal(0.0, 3.0),
        Role::Variance | Role::Slope { .. } | Role::Offset => normal(0.0, 6.0),
        Role::Noise => normal(-4.0, 4.0),
        Role::Frequency { .. } | Role::Location { .. } => (0.0, 0.0),
    }
}
