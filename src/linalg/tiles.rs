//! How a triangular matrix is cut for the blocked factor and inverse: into square tiles that stay in cache, these into
//! panels of a few rows, and the rows into chunks, the unit of parallel work. Cuts depend on the size alone.

use super::Matrix;
use super::level::Level;

/// The largest side of a tile: a panel of it stays in the innermost cache beside a sliver, a tile in the second. A
/// multiple of a panel.
pub(super) const LARGEST: usize = 192;
/// Rows of a chunk: whole panels, but for the last.
const CHUNK: usize = 48;

/// The cuts of a matrix of n rows. Rows beyond the last are those of the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub level: Level,
    pub n: usize,
    /// Rows of a tile, but for the last one.
    pub side: usize,
    /// Tiles of a row.
    pub tiles: usize,
}

/// Some rows of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub tile: usize,
    pub from: usize,
    pub to: usize,
    /// Rows of a panel.
    panel: usize,
}

impl Chunk {
    /// The first rows of its panels.
    pub fn panels(self) -> impl Iterator<Item = usize> {
        (self.from..self.to).step_by(self.panel)
    }
}

impl Cut {
    pub fn new(level: Level, n: usize) -> Self {
        let tiles = n.div_ceil(LARGEST).max(1);
        Self { level, n, side: n.div_ceil(tiles).next_multiple_of(level.panel()), tiles }
    }

    /// Rows with padding.
    pub fn padded(self) -> usize {
        self.side * self.tiles
    }

    /// Entries of the tiles on and below the diagonal.
    pub fn triangle(self) -> usize {
        self.side * self.side * self.tiles * (self.tiles + 1) / 2
    }

    /// Where tile (i, j) begins, j ≤ i.
    pub fn tile(self, i: usize, j: usize) -> usize {
        (i * (i + 1) / 2 + j) * self.side * self.side
    }

    /// Entries from one sliver to the next.
    pub fn stride(self) -> usize {
        self.level.lanes() * self.side
    }

    /// Rows of tile i, in whole slivers.
    pub fn height(self, i: usize) -> usize {
        self.side.min((self.n - i * self.side).next_multiple_of(self.level.lanes()))
    }

    /// Slivers of the panel from this row of tile i on.
    pub fn slivers(self, i: usize, row: usize) -> usize {
        (self.height(i) - row).div_ceil(self.level.lanes()).min(3)
    }

    /// The chunks of the tiles from this one on.
    pub fn chunks(self, from: usize) -> Vec<Chunk> {
        let of = |tile: usize| {
            let (height, panel) = (self.height(tile), self.level.panel());
            (0..height).step_by(CHUNK).map(move |from| Chunk { tile, from, to: height.min(from + CHUNK), panel })
        };
        (from..self.tiles).flat_map(of).collect()
    }
}

/// Memory for tiles. Not to be cloned: where they begin depends on where the memory lies.
#[derive(Debug)]
pub(super) struct Tiles {
    pub cut: Cut,
    memory: Matrix,
}

impl Tiles {
    /// Two triangles of tiles for n rows in the memory of a matrix; what they hold means nothing.
    pub fn new(level: Level, n: usize, memory: Matrix) -> Self {
        let cut = Cut::new(level, n);
        Self::with_room(cut, 2 * cut.triangle(), memory)
    }

    /// Entries that two triangles for n rows need.
    pub fn room(level: Level, n: usize) -> usize {
        2 * Cut::new(level, n).triangle() + 8
    }

    /// Tiles of this many entries in all.
    pub fn with_room(cut: Cut, entries: usize, mut memory: Matrix) -> Self {
        // What is larger stays so: to grow again it would be cleared.
        if memory.values_mut().len() < entries + 8 {
            memory.reshape(entries + 8, 1);
        }
        Self { cut, memory }
    }

    pub fn into_memory(self) -> Matrix {
        self.memory
    }

    /// Where the tiles begin, on a cache line.
    pub fn first(&mut self) -> Place {
        let values = self.memory.values_mut();
        let skip = values.as_ptr().align_offset(64);
        assert!(skip <= 8, "a vector of numbers can be aligned");
        Place(values[skip..].as_mut_ptr())
    }

    /// Two triangles.
    pub fn places(&mut self) -> [Place; 2] {
        let first = self.first();
        [first, first.after(self.cut.triangle())]
    }
}

/// Where something lies that several threads work on, each on entries of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(pub *mut f64);

// SAFETY: whoever writes through it writes entries that nobody else reads or writes at the time.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The pointer; by a method, so that closures take all of the place.
    pub fn at(self) -> *mut f64 {
        self.0
    }

    /// The place so many entries further on.
    pub fn after(self, entries: usize) -> Self {
        Self(self.0.wrapping_add(entries))
    }
}
