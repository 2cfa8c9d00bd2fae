//! Room for a factorisation and the inverse after it, and the choice of who computes them: the blocked ones where the
//! machine has the instructions, else the library.

use super::{Matrix, library};
#[cfg(target_arch = "x86_64")]
use super::{blocked, level::Level, tiles::Tiles};
use crate::threads::Threads;

/// Below this size a second thread costs more than it brings.
#[cfg(target_arch = "x86_64")]
const LEAST: usize = 300;

/// Memory, and what a factorisation left there.
#[derive(Debug)]
pub(super) enum Workspace {
    /// Nothing of interest.
    Empty(Matrix),
    /// A packed copy of the factor.
    #[cfg(target_arch = "x86_64")]
    Packed(Tiles),
}

impl Default for Workspace {
    fn default() -> Self {
        Self::Empty(Matrix::default())
    }
}

impl Clone for Workspace {
    /// An empty one: what is packed can be packed again.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Workspace {
    pub fn new(memory: Matrix) -> Self {
        Self::Empty(memory)
    }

    /// Entries of memory that n rows need.
    pub fn room(n: usize) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(n) {
            return Tiles::room(level, n);
        }
        n * n
    }

    pub fn into_memory(self) -> Matrix {
        match self {
            Self::Empty(memory) => memory,
            #[cfg(target_arch = "x86_64")]
            Self::Packed(tiles) => tiles.into_memory(),
        }
    }

    /// This one, or where it has no memory, another.
    pub fn or(self, memory: Matrix) -> Self {
        match self {
            Self::Empty(own) if own.columns() == 0 => Self::Empty(memory),
            other => other,
        }
    }

    /// Overwrites the lower triangle with the factor, or tells the failing pivot.
    pub fn factor(&mut self, a: &mut Matrix, threads: Threads) -> Result<(), usize> {
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(a.rows()) {
            let mut tiles = Tiles::new(level, a.rows(), std::mem::take(self).into_memory());
            let done = blocked::factor(a, &mut tiles, parallel(a.rows(), threads));
            *self = Self::Packed(tiles);
            return done.and_then(|()| finite(a));
        }
        library::factor(a, threads).and_then(|()| finite(a))
    }

    /// W = L⁻¹; its upper triangle is nought.
    pub fn inverse_factor(&mut self, l: &Matrix, w: &mut Matrix, threads: Threads) {
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(l.rows()) {
            let parallel = parallel(l.rows(), threads);
            let mut tiles = self.packed(level, l, parallel);
            blocked::inverse_factor(l, &mut tiles, w, parallel);
            *self = Self::Packed(tiles);
            return;
        }
        library::inverse_factor(l, w, threads);
    }

    /// The packed copy of a factor.
    #[cfg(target_arch = "x86_64")]
    fn packed(&mut self, level: Level, l: &Matrix, parallel: bool) -> Tiles {
        match std::mem::take(self) {
            Self::Packed(tiles) => tiles,
            Self::Empty(memory) => {
                let mut tiles = Tiles::new(level, l.rows(), memory);
                blocked::pack_factor(l, &mut tiles, parallel);
                tiles
            }
        }
    }

    /// Overwrites a factor with the lower triangle of the inverse; L⁻¹b and A⁻¹b too, where there is a b.
    pub fn inverse(&mut self, l: &mut Matrix, b: &[f64], threads: Threads) -> (Vec<f64>, Vec<f64>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(level) = Level::of(l.rows()) {
            let parallel = parallel(l.rows(), threads);
            let mut tiles = self.packed(level, l, parallel);
            let solved = blocked::inverse(l, &mut tiles, b, parallel);
            *self = Self::Empty(tiles.into_memory());
            return solved;
        }
        let mut room = std::mem::take(self).into_memory();
        let solved = library::inverse(l, &mut room, b, threads);
        *self = Self::Empty(room);
        solved
    }
}

/// An infinite pivot is no pivot.
fn finite(l: &Matrix) -> Result<(), usize> {
    if (0..l.rows()).all(|i| l[(i, i)].is_finite()) { Ok(()) } else { Err(0) }
}

#[cfg(target_arch = "x86_64")]
fn parallel(n: usize, threads: Threads) -> bool {
    threads == Threads::All && n >= LEAST && rayon::current_num_threads() > 1
}
