//! Where the planes of each step lie, looked up once for all tiles of a group: for every tile anew it would be a tenth of
//! the work.

use super::planes::Layout;
use super::step::Step;
use std::ops::Range;

/// Lists of planes, one after another, used again from one group to the next.
#[derive(Default)]
pub(super) struct Places {
    read: Vec<*const f64>,
    write: Vec<*mut f64>,
    steps: Vec<Ranges>,
}

// SAFETY: the pointers are rewritten before each use and never outlive a call.
unsafe impl Send for Places {}

struct Ranges {
    inputs: Range<usize>,
    adjoints: Range<usize>,
    outputs: Range<usize>,
    products: Range<usize>,
    into: Range<usize>,
}

/// The planes of one matrix product.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    /// Values of its inputs.
    pub inputs: &'a [*const f64],
    /// Adjoints of its rows.
    pub adjoints: &'a [*const f64],
    /// Values of its rows.
    pub outputs: &'a [*mut f64],
    /// Values of products of its rows.
    pub products: &'a [*mut f64],
    /// Adjoints of its inputs.
    pub into: &'a [*mut f64],
}

/// Adds planes to a list, and tells where.
fn list<T>(planes: impl Iterator<Item = T>, to: &mut Vec<T>) -> Range<usize> {
    let first = to.len();
    to.extend(planes);
    first..to.len()
}

impl Places {
    /// Looks up the planes of every step.
    pub fn find(&mut self, steps: &[Step], planes: &Layout) {
        let Self { read, write, steps: found } = self;
        read.clear();
        write.clear();
        found.clear();
        for step in steps {
            let inputs: &[usize] = if let Step::Affine { inputs, .. } = step { inputs } else { &[] };
            let rows = if matches!(step, Step::Affine { .. } | Step::Leaf { .. }) { step.outputs() } else { 0..0 };
            found.push(Ranges {
                inputs: list(inputs.iter().map(|&i| planes.value(i).cast_const()), read),
                adjoints: list(rows.clone().map(|r| planes.adjoint(r).cast_const()), read),
                outputs: list(rows.map(|r| planes.value(r)), write),
                products: list(step.products().iter().map(|&p| planes.value(p)), write),
                into: list(inputs.iter().map(|&i| planes.adjoint(i)), write),
            });
        }
    }

    /// The planes of a step.
    #[inline(always)]
    pub fn of(&self, step: usize) -> Of<'_> {
        let Self { read, write, steps } = self;
        let at = &steps[step];
        Of {
            inputs: &read[at.inputs.clone()],
            adjoints: &read[at.adjoints.clone()],
            outputs: &write[at.outputs.clone()],
            products: &write[at.products.clone()],
            into: &write[at.into.clone()],
        }
    }
}
