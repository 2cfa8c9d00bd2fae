//! Planes of a tile: where the values and adjoints of every unit lie while a tile is computed. Planes that are never
//! needed at the same time share a slot, so that a tile stays in the innermost cache.

use super::lanes::WIDEST;
use super::profile::TOGETHER;
use super::step::Step;

/// The longest tile, in pairs.
pub(super) const TILE: usize = 384;
/// Planes are whole blocks of this many pairs: the vectors that profiles take together, however wide.
const BLOCK: usize = TOGETHER * WIDEST;

/// Eight numbers on a cache line of their own.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f64; 8]);

/// Numbers on cache lines of their own: what is added to by whole vectors should not lie across two of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    /// So many noughts.
    pub fn clear_to(&mut self, len: usize) {
        self.lines.clear();
        self.lines.resize(len.div_ceil(8), Line([0.0; 8]));
        self.len = len;
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        // SAFETY: lines are eight numbers each, and there are enough.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Memory for the planes of one tile. One a thread, used again and again.
#[derive(Debug, Default)]
pub(super) struct Planes {
    lines: Vec<Line>,
}

impl Planes {
    /// The planes of a program for tiles of at most so many pairs: for values alone, or for a reverse pass too.
    pub fn layout<'a>(&mut self, slots: &'a Slots, reverse: bool, tile: usize) -> Layout<'a> {
        let values = if reverse { &slots.kept } else { &slots.passing };
        // Slopes, and two more: a profile without slopes still points at where they would be.
        let most = slots.first_slope + slots.slopes + 3;
        // A cache line more, so that planes do not fight for the same cache sets.
        let plane = tile.next_multiple_of(BLOCK) + 8;
        if self.lines.len() < most * plane / 8 {
            self.lines = vec![Line([0.0; 8]); most * plane / 8];
        }
        let at = self.lines.as_mut_ptr().cast::<f64>();
        Layout {
            at,
            plane,
            values,
            adjoints: &slots.adjoints,
            silent: slots.silent,
            first_slope: slots.first_slope,
            last: most - 1,
        }
    }
}

/// Where each plane lies.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    at: *mut f64,
    /// Entries from one plane to the next.
    plane: usize,
    values: &'a [usize],
    adjoints: &'a [usize],
    silent: usize,
    first_slope: usize,
    last: usize,
}

impl Layout<'_> {
    #[inline(always)]
    fn slot(&self, slot: usize) -> *mut f64 {
        debug_assert!(slot <= self.last, "a plane beyond the last");
        // SAFETY: within the allocation: slots are counted when they are given out.
        unsafe { self.at.add(slot * self.plane) }
    }

    #[inline(always)]
    pub fn value(&self, plane: usize) -> *mut f64 {
        self.slot(self.values[plane])
    }

    #[inline(always)]
    pub fn adjoint(&self, plane: usize) -> *mut f64 {
        self.slot(self.adjoints[plane])
    }

    #[inline(always)]
    pub fn slope(&self, plane: usize) -> *mut f64 {
        self.slot(self.first_slope + plane)
    }

    /// A plane for passing use: the very last.
    pub fn spare(&self) -> *mut f64 {
        self.slot(self.last)
    }

    /// Adjoints that nobody writes are nought.
    pub fn silence(&mut self) {
        // SAFETY: a plane has so many entries.
        unsafe { std::slice::from_raw_parts_mut(self.slot(self.silent), self.plane) }.fill(0.0);
    }

    /// The values of a plane.
    pub fn values(&mut self, plane: usize, len: usize) -> &mut [f64] {
        // SAFETY: a plane has so many entries.
        unsafe { std::slice::from_raw_parts_mut(self.value(plane), len.min(self.plane)) }
    }

    /// The adjoint of a plane.
    pub fn adjoints(&mut self, plane: usize, len: usize) -> &mut [f64] {
        // SAFETY: a plane has so many entries.
        unsafe { std::slice::from_raw_parts_mut(self.adjoint(plane), len.min(self.plane)) }
    }
}

/// The slot of every plane.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    /// Values, where nothing but the outputs is wanted afterwards.
    passing: Vec<usize>,
    /// Values, where a reverse pass follows.
    kept: Vec<usize>,
    adjoints: Vec<usize>,
    /// The slot of adjoints that are nought.
    silent: usize,
    first_slope: usize,
    slopes: usize,
}

/// Gives out slots and takes them back.
#[derive(Default)]
struct Pool {
    free: Vec<usize>,
    count: usize,
}

impl Pool {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }
}

const NONE: usize = usize::MAX;

impl Slots {
    /// Slots for these steps, whose `fresh` marks are set.
    pub fn new(steps: &mut [Step], planes: usize, slopes: usize, outputs: &[usize]) -> Self {
        // The first and the last step that has to do with a plane's value, and how many read it.
        let (mut maker, mut last, mut readers) = (vec![NONE; planes], vec![0; planes], vec![0usize; planes]);
        for (i, step) in steps.iter_mut().enumerate() {
            for (p, _) in step.inputs_mut() {
                last[p] = i;
                readers[p] += 1;
            }
            for p in step.outputs().chain(step.products().iter().copied()) {
                last[p] = i;
                maker[p] = maker[p].min(i);
            }
        }
        for &p in outputs {
            last[p] = NONE;
            readers[p] += 1;
        }
        let (passing, passing_count) = Self::passing(steps, &maker, &last);
        let (kept, kept_count) = Self::kept(steps, &maker, &readers);
        let silent = passing_count.max(kept_count);
        let (adjoints, first_slope) = Self::adjoints(steps, (&maker, &readers), outputs, &kept, silent);
        Self { passing, kept, adjoints, silent, first_slope, slopes }
    }

    /// A plane's slot is free again after its last reader.
    fn passing(steps: &mut [Step], maker: &[usize], last: &[usize]) -> (Vec<usize>, usize) {
        let (mut slots, mut pool) = (vec![0; maker.len()], Pool::default());
        for (i, step) in steps.iter_mut().enumerate() {
            let made: Vec<usize> = step.outputs().chain(step.products().iter().copied()).collect();
            made.iter().filter(|&&p| maker[p] == i).for_each(|&p| slots[p] = pool.take());
            let mut over: Vec<usize> = step.inputs_mut().iter().map(|(p, _)| *p).chain(made).collect();
            over.retain(|&p| last[p] == i);
            over.sort_unstable();
            over.dedup();
            pool.free.extend(over.iter().map(|&p| slots[p]));
        }
        (slots, pool.count)
    }

    /// The reverse pass reads what went into a step. A profile reads its own value and slope instead: it may be written
    /// over the matrix product below it.
    fn kept(steps: &[Step], maker: &[usize], readers: &[usize]) -> (Vec<usize>, usize) {
        let (mut slots, mut pool) = (vec![0; maker.len()], Pool::default());
        for (i, step) in steps.iter().enumerate() {
            if let Step::Profile { input, out, .. } | Step::Exp { input, out, .. } = step
                && readers[*input] == 1
                && matches!(steps[maker[*input]], Step::Affine { .. } | Step::Leaf { .. })
            {
                slots[*out] = slots[*input];
                continue;
            }
            for p in step.outputs().chain(step.products().iter().copied()).filter(|&p| maker[p] == i) {
                slots[p] = pool.take();
            }
        }
        (slots, pool.count)
    }

    /// Backwards: an adjoint's slot is taken by who writes it first, and free again after the step that made the plane. Where
    /// the value is not read any more, or the adjoint it is made from, it takes their place, which is in the innermost cache.
    fn adjoints(
        steps: &mut [Step],
        (maker, readers): (&[usize], &[usize]),
        outputs: &[usize],
        values: &[usize],
        silent: usize,
    ) -> (Vec<usize>, usize) {
        let mut pool = Pool { free: vec![], count: silent + 1 };
        let mut slots = vec![silent; maker.len()];
        outputs.iter().for_each(|&p| slots[p] = pool.take());
        let reads_own_value: Vec<bool> = steps.iter().map(Step::reads_own_value).collect();
        for (i, step) in steps.iter_mut().enumerate().rev() {
            // What products are made of is read by nobody else: ∂a = b ∂(ab) and ∂b = a ∂(ab) change places with a and b.
            if !step.products().is_empty() {
                step.outputs().for_each(|p| slots[p] = values[p]);
            }
            let made: Vec<usize> = step.outputs().chain(step.products().iter().copied()).collect();
            let own = match step {
                Step::Profile { out, .. } | Step::Exp { out, .. } => Some(slots[*out]),
                _ => None,
            };
            let weighs = matches!(step, Step::Affine { .. });
            let mut handed_on = false;
            for (p, fresh) in step.inputs_mut() {
                if !*fresh {
                    continue;
                }
                slots[p] = match own {
                    Some(own) if own != silent => {
                        handed_on = true;
                        own
                    }
                    _ if weighs && readers[p] == 1 && !reads_own_value[maker[p]] => values[p],
                    _ => pool.take(),
                };
            }
            let over = made.iter().filter(|&&p| maker[p] == i && slots[p] > silent && !handed_on);
            pool.free.extend(over.map(|&p| slots[p]));
        }
        (slots, pool.count)
    }
}
