//! The plain kernels that compete with a network over a series.

/// The kernels that compete with a network: levels that drift or hold, straight and bending trends, seasons that stay
/// or change, one period or two. Lengths and variances are those of standardised data, to start from. Those that are held
/// are so long that levels and seasons walk at random: a length that is fitted is found too short, and forecasts then
/// return to the mean of the past.
const RIVALS: [&str; 19] = [
    "RBF",
    "MAT12",
    "LIN + MAT12",
    "MAT32(l=8, v=60)",
    "LIN + MAT12 + PER",
    "LIN + MAT32 + PER * RBF(l=4)",
    "MAT32 + PER * MAT32",
    "MAT12(l=10, v=10) + PER * MAT32(l=4)",
    "LIN + RQ + PER * RBF",
    "RBF(l=3, v=8) + PER * RBF(l=4) + MAT12(l=0.3)",
    "LIN + MAT12 + PER + PER",
    "MAT12(l=100!, v=50)",
    STRAIGHT,
    "MAT12(l=100!, v=50) + PER",
    "LIN + MAT12(l=100!, v=50) + PER",
    "LIN + MAT12(l=100!, v=50) + PER * MAT12(l=30!)",
    "LIN + MAT12 + PER * MAT12(l=30!)",
    "MAT12(l=100!, v=50) + PER * MAT12(l=30!)",
    "MAT12(l=100!, v=50) + MAT32 + PER * MAT32(l=4)",
];
/// Kernels for series in which nothing repeats for certain: the level walks, and so does its slope. Lengths are held, one
/// and a half to three times that of the series: fitted ones are found too short, and slopes then return to nought too soon.
const BENDING: [&str; 5] = [
    "MAT12(l=100!, v=50) + MAT32(l=10!, v=50)",
    "MAT12(l=100!, v=50) + MAT52(l=5!, v=10)",
    "MAT32(l=10!, v=50)",
    "LIN + MAT12(l=100!, v=50) + MAT32(l=10!, v=50)",
    "MAT12 + MAT32(l=10!, v=50)",
];
/// What all others have less there, as a logarithm: they often say more of the past than of the future.
pub(super) const HANDICAP: f64 = 1.0;
/// A level that walks and drifts: of the target as it is, the one kernel that goes straight on. It has at least this share there,
/// for fits of the past agree on bends that the future does not have.
pub(super) const STRAIGHT: &str = "LIN + MAT12(l=100!, v=50)";
pub(super) const LEAST_STRAIGHT: f64 = 0.35;
/// Handicap and share fade as the evidence speaks against them, for a kernel that has a handicap and against the one that has
/// the share, and are gone by so much.
pub(super) const FADED: f64 = 20.0;
/// Those that tell, after a few iterations, whether the logarithm is worth a try.
pub(super) const SCOUTS: [&str; 2] = ["LIN + MAT12 + PER", "LIN + MAT32 + PER * RBF(l=4)"];
/// Those of a quick search.
const QUICK: [&str; 4] = ["MAT12", "LIN + MAT12", "LIN + MAT12 + PER", "LIN + MAT32 + PER * RBF(l=4)"];
/// The most seasons of a plain kernel: a day, a week and a year.
const MOST_SEASONS: usize = 3;

/// The plain kernels for a series with so many certain seasons, and how many of the last are for one that has none.
pub(super) fn plain(quick: bool, seasons: usize) -> (Vec<String>, usize) {
    let mut all = with_seasons(if quick { &QUICK } else { &RIVALS }, seasons);
    let bending = match (seasons, quick) {
        (0, true) => &BENDING[..1],
        (0, false) => &BENDING,
        _ => &[],
    };
    all.extend(bending.iter().map(|text| text.to_string()));
    (all, bending.len())
}

/// Kernels with a season get one more for each further one that a series has; none comes twice.
pub(super) fn with_seasons(texts: &[&str], count: usize) -> Vec<String> {
    let count = count.clamp(1, MOST_SEASONS);
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        let has = text.matches("PER").count();
        let text =
            if has == 0 { text.to_string() } else { text.to_string() + &" + PER".repeat(count.saturating_sub(has)) };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    #[test]
    fn rivals_are_kernels_with_any_number_of_seasons() {
        for count in 0..5 {
            for quick in [false, true] {
                let (texts, bending) = plain(quick, count);
                texts.iter().for_each(|text| assert!(text.parse::<Kernel>().is_ok(), "{text}"));
                assert_eq!(bending > 0, count == 0);
                assert!(texts[texts.len() - bending..].iter().all(|text| !text.contains("PER")));
            }
        }
    }

    #[test]
    fn what_has_a_season_has_all_of_them_and_none_comes_twice() {
        let texts = ["RBF", "LIN + PER", "MAT12 + PER * RBF", "LIN + PER + PER"];
        assert_eq!(with_seasons(&texts, 0), texts);
        assert_eq!(with_seasons(&texts, 1), texts);
        assert_eq!(with_seasons(&texts, 2), ["RBF", "LIN + PER + PER", "MAT12 + PER * RBF + PER"]);
        assert_eq!(with_seasons(&texts, 9)[1], "LIN + PER + PER + PER");
    }
}
