//! What the blocked factor, inverse and products do to a few rows at a time, written once for every instruction set.
//!
//! A *sliver* holds a vector's rows, column after column, so that a column of it is one vector; a *panel* is three slivers,
//! or what is left of them at an edge, each on a multiple of a vector. A *block* is as many columns of a panel as a sliver
//! has rows. SAFETY throughout: the
//! caller has the instructions, panels and slivers have the columns named.

/// The most rows of a panel.
pub(super) const LARGEST_PANEL: usize = 24;
/// The most rows of a sliver.
pub(super) const LARGEST_SLIVER: usize = 8;

/// Up to three slivers, from some column on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    pub at: *mut f64,
    /// Entries from one sliver to the next.
    pub stride: usize,
    pub slivers: usize,
    /// Does it begin at the diagonal of an upper triangle? Every sliver then has a block of noughts more than the one before,
    /// of which products need not take notice.
    pub stairs: bool,
}

impl Panel {
    /// The same from a later column on.
    #[inline]
    pub fn from<S: Vectors>(self, column: usize) -> Self {
        Self { at: self.at.wrapping_add(column * S::LANES), ..self }
    }

    /// Its first slivers, of these at most so many.
    pub fn first(self, slivers: usize) -> Self {
        Self { slivers: self.slivers.min(slivers), ..self }
    }

    /// The same without its first slivers.
    pub fn below(self, slivers: usize) -> Self {
        Self { at: self.at.wrapping_add(slivers * self.stride), slivers: self.slivers - slivers, ..self }
    }

    /// Where an entry lies.
    pub fn entry<S: Vectors>(self, row: usize, column: usize) -> *mut f64 {
        self.at.wrapping_add(row / S::LANES * self.stride + column * S::LANES + row % S::LANES)
    }
}

/// What a block is before products are added or taken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    Nought,
    /// What is there.
    There,
    /// Columns of the identity, from this one on.
    Unit(usize),
}

/// The vectors of an instruction set. Everything is `inline(always)`, to be reached from a function that enables it.
pub(super) trait Vectors: Copy + Send + Sync + 'static {
    type V: Copy;
    /// `LANES` columns of a panel.
    type Block: Copy + AsRef<[[Self::V; 3]]> + AsMut<[[Self::V; 3]]>;
    /// Rows of a sliver, and columns of a block.
    const LANES: usize;
    /// Rows of a panel.
    const PANEL: usize = 3 * Self::LANES;

    unsafe fn splat(a: f64) -> Self::V;
    unsafe fn load(from: *const f64) -> Self::V;
    unsafe fn store(to: *mut f64, a: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c − a·b
    unsafe fn fnma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The sum of the lanes, always in the same order.
    unsafe fn sum(a: Self::V) -> f64;
    unsafe fn nought() -> Self::Block;
    /// acc[c] + Σₚ a[p] b[p][c], for a panel a and a sliver b over `len` columns.
    unsafe fn plus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block;
    /// acc[c] − Σₚ a[p] b[p][c]
    unsafe fn minus(acc: Self::Block, a: Panel, b: *const f64, len: usize) -> Self::Block;
    /// The first `LANES` of the columns as a sliver of their rows: entry (r, c) of the sliver is entry r of column c. Whole
    /// vectors of rows only; the number done.
    unsafe fn interleave(columns: &[*const f64; LARGEST_SLIVER], len: usize, to: *mut f64) -> usize;
}

/// Declares the steps, and has them compiled for each of the instruction sets.
macro_rules! steps {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {
        /// The steps of an instruction set.
        pub(super) trait Steps: Vectors {
            $($(#[$doc])* unsafe fn $name($($arg: $type),*) $(-> $out)?;)*
        }
        steps!(super::x86::Avx2, "avx2,fma", [$(fn $name($($arg: $type),*) $(-> $out)?;)*]);
        steps!(super::x86::Avx512, "avx512f", [$(fn $name($($arg: $type),*) $(-> $out)?;)*]);
    };
    ($set:ty, $features:literal, [$(fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*]) => {
        impl Steps for $set {
            $(
                #[target_feature(enable = $features)]
                unsafe fn $name($($arg: $type),*) $(-> $out)? {
                    // SAFETY: the instructions are enabled here; the rest is the caller's promise.
                    unsafe { super::body::$name::<Self>($($arg),*) }
                }
            )*
        }
    };
}

steps! {
    /// X + A Bᵀ in a block, for `len` columns of a panel A and of a sliver B.
    fn add_product(to: Panel, start: Start, a: Panel, b: *const f64, len: usize);
    /// X − A Bᵀ
    fn take_product(to: Panel, start: Start, a: Panel, b: *const f64, len: usize);
    /// (X − A Bᵀ) T⁻ᵀ for the lower triangular T that is the next block of the sliver B, with the reciprocals of its
    /// diagonal.
    fn solve(to: Panel, start: Start, a: Panel, b: *const f64, len: usize, reciprocals: *const f64);
    /// The same to columns c.. of a panel whose first sliver is B, of which T is factorised first; or the failing pivot.
    fn factor(panel: Panel, c: usize, reciprocals: &mut [f64]) -> Result<(), usize>;
    /// total[k] += Σ of a panel's column k times y.
    fn rows_times(panel: Panel, y: &[f64; LARGEST_PANEL], total: &mut [f64]);
    /// total += Σₖ of a panel's column k times z[k].
    fn columns_times(panel: Panel, z: &[f64], total: &mut [f64; LARGEST_PANEL]);
    /// Columns of a matrix, `stride` entries apart, to the slivers of a panel, if there are any.
    fn pack(from: *const f64, stride: usize, to: Panel, columns: usize);
    /// And back.
    fn unpack(from: Panel, to: *mut f64, stride: usize, columns: usize);
    /// S₁ = A₂₁ + A₂₂, S₂ = S₁ − A₁₁, S₄ = A₁₂ − S₂ and, in the place of A₂₁, S₃ = A₁₁ − A₂₁: the left sides of a product by
    /// halves, from A₁₁, A₁₂, A₂₂ and A₂₁.
    fn left_sums(a: [*const f64; 3], a21: *mut f64, s: [*mut f64; 3], len: usize);
    /// A + f B, entry by entry.
    fn combine(to: *mut f64, a: *const f64, factor: f64, b: *const f64, len: usize);
    /// Columns as a sliver of their rows.
    fn slice(columns: &[*const f64; LARGEST_SLIVER], len: usize, to: *mut f64);
}
