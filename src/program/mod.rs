//! The same kernel, compiled: values and pullbacks over tiles of pairs. One forward and one reverse pass serve every
//! model. A program is immutable and shared; scratch is passed in. It knows kernels and points, not models.

mod area;
mod builder;
mod compile;
mod features;
mod geometry;
mod lag;
mod lanes;
mod leaf;
mod outer;
mod pass;
mod places;
mod planes;
mod portable;
mod primitives;
mod profile;
mod simd;
mod step;
mod tile;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use simd::Level;
pub use tile::Scratch;

use crate::data::Points;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Kernel;
use crate::threads::Threads;
use area::Area;
use features::Features;
use geometry::{Meeting, Sides};
use lag::{Lags, next_id};
use step::{Coefficient, PointMap, Step};
use tile::{Adjoint, Asking, How, Output};

/// Steps over planes with what they need.
#[derive(Debug, Clone)]
struct Code {
    maps: Vec<PointMap>,
    features: usize,
    /// Features in which a trained parameter enters.
    trained: Vec<bool>,
    coefficients: Vec<Coefficient>,
    steps: Vec<Step>,
    /// How many of them a reverse pass needs: not the last, whose values nothing reads.
    needed: usize,
    /// Multiplications a pair, roughly.
    work: usize,
    slots: planes::Slots,
    outputs: Vec<usize>,
}

/// Code for pairs, and for lags where those are shared.
#[derive(Debug, Clone)]
struct Parts {
    pairs: Code,
    lags: Option<Code>,
}

/// A compiled kernel: values and pullbacks for given parameter values.
#[derive(Debug, Clone)]
pub struct Program {
    id: u64,
    d: usize,
    parameters: usize,
    how: How,
    code: Code,
    lagged: Option<Parts>,
}

/// Points as a program reads them, with the lags between them where those repeat.
#[derive(Debug, Clone)]
pub struct Inputs {
    points: Points,
    lags: Option<Lags>,
}

impl Inputs {
    /// Prepares points; a single column that ascends in equal steps, some left out, is recognised, and its lags are shared.
    pub fn new(points: Points) -> Self {
        let lags = Lags::of(&points);
        Self { points, lags }
    }

    /// The same points, with every pair computed by itself.
    pub fn without_lags(points: Points) -> Self {
        Self { points, lags: None }
    }

    /// The points.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Number of points.
    pub fn n(&self) -> usize {
        self.points.n()
    }
}

impl Program {
    /// Compiles a kernel for points with d coordinates.
    ///
    /// # Errors
    /// When the kernel looks at a column that is not there.
    pub fn compile(kernel: &Kernel, d: usize) -> Result<Program> {
        let kernel = kernel.bind_to(d)?;
        let (units, params) = (kernel.units(), kernel.params());
        let slots = params.iter().enumerate().map(|(i, p)| (p.id(), i)).collect();
        let code = compile::compile(&units, &slots, d, false)?.pairs;
        let lagged = match d {
            1 => Some(compile::compile(&units, &slots, d, true)?).filter(|p| p.lags.is_some()),
            _ => None,
        };
        Ok(Program { id: next_id(), d, parameters: params.len(), how: How::best(), code, lagged })
    }

    /// The same program on other instructions, to compare them.
    ///
    /// # Errors
    /// When this machine does not have them.
    pub fn at_level(mut self, level: Level) -> Result<Program> {
        if !Level::supported().contains(&level) {
            return Err(Error::option("level", format!("{level:?} is not supported by this machine")));
        }
        (self.how.level, self.id) = (level, next_id());
        Ok(self)
    }

    /// The same program over tiles of another size, to compare them: pairs, a multiple of 8.
    ///
    /// # Errors
    /// When there is no such tile.
    pub fn in_tiles_of(mut self, pairs: usize) -> Result<Program> {
        if pairs == 0 || pairs > planes::TILE || !pairs.is_multiple_of(lanes::WIDEST) {
            return Err(Error::option("pairs", format!("no tile of {pairs}: 8, 16, … {}", planes::TILE)));
        }
        (self.how.values, self.how.pullback, self.id) = (pairs, pairs, next_id());
        Ok(self)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Number of input columns.
    pub fn d(&self) -> usize {
        self.d
    }

    fn check(&self, theta: &[f64], sides: &[&Inputs]) -> Result<()> {
        let size = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(Error::new(ErrorKind::Size { what, expected, found })) }
        };
        size("kernel parameters", self.parameters, theta.len())?;
        sides.iter().try_for_each(|x| size("input columns", self.d, x.points.d()))
    }

    /// k(x, x): the lower triangle of an n×n matrix stored by columns, each `stride` apart.
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn gram(
        &self,
        theta: &[f64],
        x: &Inputs,
        k: &mut [f64],
        stride: usize,
        scratch: &mut Scratch,
        threads: Threads,
    ) -> Result<()> {
        self.check(theta, &[x])?;
        check_matrix(k, x.n(), x.n(), stride)?;
        let (output, mut code, mut places) = (Output::matrix(k, stride), &self.code, None);
        if let (Some(parts), Some(lags)) = (&self.lagged, &x.lags) {
            lag::values(parts, self.how, theta, (self.id, lags), scratch);
            (code, places) = (&parts.pairs, Some(&lags.places));
        }
        scratch.rows.compute(&code.maps, code.features, &x.points, theta);
        tile::values(code, self.how, theta, Area::lower(x.n(), places), Both::Same, &output, scratch, threads);
        Ok(())
    }

    /// k(x, z): an n×m matrix stored by columns, each `stride` apart. Rows of x and z are never the same row.
    ///
    /// # Errors
    /// When sizes do not fit.
    #[allow(clippy::too_many_arguments)]
    pub fn cross(
        &self,
        theta: &[f64],
        x: &Inputs,
        z: &Inputs,
        k: &mut [f64],
        stride: usize,
        scratch: &mut Scratch,
        threads: Threads,
    ) -> Result<()> {
        self.check(theta, &[x, z])?;
        check_matrix(k, x.n(), z.n(), stride)?;
        scratch.rows.compute(&self.code.maps, self.code.features, &x.points, theta);
        scratch.columns.compute(&self.code.maps, self.code.features, &z.points, theta);
        let output = Output::matrix(k, stride);
        let area = Area::all(x.n(), z.n());
        tile::values(&self.code, self.how, theta, area, Both::Different, &output, scratch, threads);
        Ok(())
    }

    /// k(xᵢ, xᵢ) for every point.
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn diag(&self, theta: &[f64], x: &Inputs, k: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        self.check(theta, &[x])?;
        check_matrix(k, x.n(), 1, x.n())?;
        scratch.rows.compute(&self.code.maps, self.code.features, &x.points, theta);
        // Row and column go along together: the place is the row alone.
        let output = Output::matrix(k, 0);
        tile::values(
            &self.code,
            self.how,
            theta,
            Area::diagonal(x.n()),
            Both::Paired,
            &output,
            scratch,
            Threads::One,
        );
        Ok(())
    }

    /// Adds Σ aᵢⱼ ∂kᵢⱼ/∂θ to the gradient, over the pairs i ≥ j of [`Program::gram`]; `adjoint(j, i, out)` fills aᵢⱼ
    /// for a run of rows of column j, the first being i. Where `dx` is given (column by column), adds the gradient of
    /// the points.
    ///
    /// # Errors
    /// When sizes do not fit.
    #[allow(clippy::too_many_arguments)]
    pub fn pullback_gram(
        &self,
        theta: &[f64],
        x: &Inputs,
        adjoint: impl Fn(usize, usize, &mut [f64]) + Sync,
        gradient: &mut [f64],
        dx: Option<&mut [f64]>,
        scratch: &mut Scratch,
        threads: Threads,
    ) -> Result<()> {
        self.check(theta, &[x])?;
        check_gradients(self, gradient, &[(dx.as_deref(), x)])?;
        let (job, points) = (Adjoint::Given(&adjoint), dx.is_some());
        let lagged = match (&self.lagged, &x.lags) {
            (Some(parts), Some(lags)) if !points => Some((parts, lags)),
            _ => None,
        };
        let code = lagged.map_or(&self.code, |(parts, _)| &parts.pairs);
        let area = Area::lower(x.n(), lagged.map(|(_, lags)| &lags.places));
        if let Some((parts, lags)) = lagged {
            lag::values(parts, self.how, theta, (self.id, lags), scratch);
        }
        scratch.rows.compute(&code.maps, code.features, &x.points, theta);
        let points = Asking::both(points);
        tile::pullback(code, self.how, theta, area, Both::Same, job, gradient, points, scratch, threads);
        let (rows, to) = (&scratch.rows, &scratch.row_adjoint);
        features::backward(&code.maps, &x.points, theta, rows, to, gradient, dx);
        if let Some((parts, lags)) = lagged {
            lag::pullback(parts, self.how, theta, &lags.points, gradient, scratch);
        }
        Ok(())
    }

    /// Adds Σ aᵢⱼ ∂k(xᵢ, zⱼ)/∂θ to the gradient, and where asked for the gradients of both sets of points.
    ///
    /// # Errors
    /// When sizes do not fit.
    #[allow(clippy::too_many_arguments)]
    pub fn pullback_cross(
        &self,
        theta: &[f64],
        (x, z): (&Inputs, &Inputs),
        adjoint: impl Fn(usize, usize, &mut [f64]) + Sync,
        gradient: &mut [f64],
        (dx, dz): (Option<&mut [f64]>, Option<&mut [f64]>),
        scratch: &mut Scratch,
        threads: Threads,
    ) -> Result<()> {
        self.check(theta, &[x, z])?;
        check_gradients(self, gradient, &[(dx.as_deref(), x), (dz.as_deref(), z)])?;
        let code = &self.code;
        scratch.rows.compute(&code.maps, code.features, &x.points, theta);
        scratch.columns.compute(&code.maps, code.features, &z.points, theta);
        let (area, points) = (Area::all(x.n(), z.n()), Asking { rows: dx.is_some(), columns: dz.is_some() });
        let job = Adjoint::Given(&adjoint);
        tile::pullback(code, self.how, theta, area, Both::Different, job, gradient, points, scratch, threads);
        let (rows, columns) = (&scratch.rows, &scratch.columns);
        features::backward(&code.maps, &x.points, theta, rows, &scratch.row_adjoint, gradient, dx);
        features::backward(&code.maps, &z.points, theta, columns, &scratch.column_adjoint, gradient, dz);
        Ok(())
    }

    /// Adds Σ aᵢ ∂k(xᵢ, xᵢ)/∂θ to the gradient, and where asked for the gradient of the points.
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn pullback_diag(
        &self,
        theta: &[f64],
        x: &Inputs,
        adjoint: &[f64],
        gradient: &mut [f64],
        dx: Option<&mut [f64]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.check(theta, &[x])?;
        check_gradients(self, gradient, &[(dx.as_deref(), x)])?;
        check_matrix(adjoint, x.n(), 1, x.n())?;
        let code = &self.code;
        scratch.rows.compute(&code.maps, code.features, &x.points, theta);
        let fill = |_: usize, i: usize, out: &mut [f64]| out.copy_from_slice(&adjoint[i..i + out.len()]);
        let (area, points, job) = (Area::diagonal(x.n()), Asking::both(dx.is_some()), Adjoint::Given(&fill));
        tile::pullback(code, self.how, theta, area, Both::Paired, job, gradient, points, scratch, Threads::One);
        features::backward(&code.maps, &x.points, theta, &scratch.rows, &scratch.row_adjoint, gradient, dx);
        Ok(())
    }
}

/// What the two sides of a tile are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Both {
    /// One set, every pair.
    Same,
    /// Two sets.
    Different,
    /// One set, every point with itself.
    Paired,
}

impl Both {
    fn sides<'a>(self, rows: &'a Features, columns: &'a Features) -> Sides<'a> {
        match self {
            Both::Same => Sides { rows, columns: rows, meeting: Meeting::Cross, same: Some(0) },
            Both::Different => Sides { rows, columns, meeting: Meeting::Cross, same: None },
            Both::Paired => Sides { rows, columns: rows, meeting: Meeting::Pairwise, same: Some(0) },
        }
    }
}

fn check_matrix(k: &[f64], rows: usize, columns: usize, stride: usize) -> Result<()> {
    let needed = if columns == 0 { 0 } else { stride * (columns - 1) + rows };
    if stride < rows || k.len() < needed {
        return Err(ErrorKind::Size { what: "entries of the matrix", expected: needed, found: k.len() }.into());
    }
    Ok(())
}

fn check_gradients(program: &Program, gradient: &[f64], points: &[(Option<&[f64]>, &Inputs)]) -> Result<()> {
    if gradient.len() != program.parameters {
        let (expected, found) = (program.parameters, gradient.len());
        return Err(ErrorKind::Size { what: "entries of the gradient", expected, found }.into());
    }
    for (dx, x) in points {
        if let Some(dx) = dx
            && dx.len() != x.n() * program.d
        {
            let (expected, found) = (x.n() * program.d, dx.len());
            return Err(ErrorKind::Size { what: "entries of the points' gradient", expected, found }.into());
        }
    }
    Ok(())
}
