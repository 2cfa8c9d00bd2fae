//! The library's product of two matrices and its solution by a triangle, with what they leave undone.

use faer::{Accum, MatMut, MatRef, Par};

/// C ← A B times a factor, or C + that.
pub(super) fn matmul(
    c: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    factor: f64,
    par: Par,
) {
    faer::linalg::matmul::matmul(c, accum, a, b, factor, par);
    leave_wide_registers();
}

/// B ← L⁻¹ B for a lower triangular L
pub(super) fn solve_lower(l: MatRef<'_, f64>, b: MatMut<'_, f64>, par: Par) {
    faer::linalg::triangular_solve::solve_lower_triangular_in_place(l, b, par);
    leave_wide_registers();
}

/// Says that the wide registers are done with. The library's loops end without, and on some processors every narrow instruction
/// after that waits for the wide register it is a part of: a logarithm then takes ten times as long.
pub fn leave_wide_registers() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        #[target_feature(enable = "avx")]
        fn leave() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        // SAFETY: the processor was asked.
        unsafe { leave() }
    }
}
