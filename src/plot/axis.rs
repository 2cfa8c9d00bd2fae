//! Axes: the range that is shown, where the ticks stand, and what they say. Positions are in the data's own numbers;
//! pixels and terminal cells belong to those who draw.

use super::calendar;

/// An axis of a panel: its label, and where its ticks come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) labels: Option<Vec<(f64, String)>>,
    pub(crate) range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis with a label (which may be empty) and round numbers for ticks.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Ticks at these positions with these texts, in any number: as many are shown as there is room for. Texts that
    /// are ISO times (`1949`, `1949-01`, `2024-05-06T12:00`) give ticks where years, months, days or hours turn. An
    /// empty list gives an axis without ticks.
    #[must_use]
    pub fn labels(mut self, labels: Vec<(f64, String)>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// Shows this range, whatever the data. A range that is empty or not finite is ignored.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The range to show for data of this extent, widened at each end by a share of itself.
    pub(crate) fn domain(&self, extent: Option<(f64, f64)>, pad: (f64, f64)) -> (f64, f64) {
        match self.range {
            Some((low, high)) if usable(low) && usable(high) && low < high && !constant(low, high) => (low, high),
            _ => domain(extent, pad),
        }
    }

    /// The ticks for a range: the most that `fits` accepts.
    pub(crate) fn ticks(&self, range: (f64, f64), fits: impl Fn(&[(f64, String)]) -> bool) -> Ticks {
        match &self.labels {
            None => numbers(range, fits),
            Some(labels) => Ticks { marks: given(labels, range, fits), note: String::new() },
        }
    }
}

/// Ticks, and what their numbers are to be multiplied with or added to (`×10⁶`), where it would make them too long.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ticks {
    pub marks: Vec<(f64, String)>,
    pub note: String,
}

/// Whether a value can be drawn: finite, and far enough from overflow for differences and products of two.
pub(crate) fn usable(value: f64) -> bool {
    value.abs() <= 1e150
}

/// Whether a range is a point, as far as doubles can tell.
fn constant(low: f64, high: f64) -> bool {
    let size = low.abs().max(high.abs());
    high - low <= size * 1e-12 || size < 1e-150
}

fn domain(extent: Option<(f64, f64)>, pad: (f64, f64)) -> (f64, f64) {
    let Some((low, high)) = extent else { return (0.0, 1.0) };
    if constant(low, high) {
        let size = low.abs().max(high.abs());
        let around = if size < 1e-150 { 1.0 } else { 0.1 * size };
        return (low - around, high + around);
    }
    let width = high - low;
    (low - pad.0 * width, high + pad.1 * width)
}

/// The smallest and largest usable value.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| usable(*v)).fold(None, |seen, v| match seen {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

/// Round numbers, as many as fit and ten at most.
fn numbers(range: (f64, f64), fits: impl Fn(&[(f64, String)]) -> bool) -> Ticks {
    for count in (1..=10).rev() {
        let step = round_step((range.1 - range.0) / f64::from(count));
        let first = (range.0 / step).ceil();
        let values: Vec<f64> =
            (0..12).map(|k| (first + f64::from(k)) * step).take_while(|v| *v <= range.1 + 1e-9 * step).collect();
        let ticks = written(&values, step);
        if !ticks.marks.is_empty() && fits(&ticks.marks) {
            return ticks;
        }
    }
    Ticks::default()
}

/// 1, 2 or 5 times a power of ten, the first that is not below `raw`.
fn round_step(raw: f64) -> f64 {
    let power = raw.log10().floor().clamp(-300.0, 300.0) as i32;
    let unit = 10f64.powi(power);
    [1.0, 2.0, 5.0].into_iter().find(|m| m * unit >= raw * (1.0 - 1e-9)).unwrap_or(10.0) * unit
}

/// Values with texts of a common form: value = offset + text · 10^exponent.
fn written(values: &[f64], step: f64) -> Ticks {
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Ticks::default() };
    let size = low.abs().max(high.abs());
    // Numbers that agree in their first five digits: the common part goes into the note.
    let offset = if size / step > 1e5 {
        let unit = 10f64.powi(((high - low).max(step)).log10().ceil() as i32);
        (low / unit).floor() * unit
    } else {
        0.0
    };
    let size = (low - offset).abs().max((high - offset).abs()).max(step);
    let exponent = if (1e-3..1e6).contains(&size) { 0 } else { (size.log10() / 3.0).floor() as i32 * 3 };
    let unit = 10f64.powi(exponent);
    let decimals = (0..9).find(|d| near_whole(step / unit * 10f64.powi(*d))).unwrap_or(9) as usize;
    let marks = values.iter().map(|v| (*v, number((v - offset) / unit, decimals))).collect();
    let mut note = String::new();
    if exponent != 0 {
        note = format!("×10{}", superscript(exponent));
    }
    if offset != 0.0 {
        let (sign, size) = if offset < 0.0 { ('−', -offset) } else { ('+', offset) };
        let text = if size < 1e15 { number(size, if size < 1.0 { 9 } else { 0 }) } else { format!("{size:e}") };
        note = format!("{note} {sign} {text}").trim().to_string();
    }
    Ticks { marks, note }
}

fn near_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6 * value.abs().max(1.0) && value.round() != 0.0
}

fn superscript(exponent: i32) -> String {
    let raised = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(0x2070 + (u32::from(digit) - 48)).unwrap_or(digit),
    };
    exponent.to_string().chars().map(raised).collect()
}

/// A number with so many decimals, a true minus sign, and commas between thousands from five digits on.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// Labels given by the caller: calendar ticks where they are times, otherwise every k-th of them for a round k.
fn given(labels: &[(f64, String)], range: (f64, f64), fits: impl Fn(&[(f64, String)]) -> bool) -> Vec<(f64, String)> {
    let mut labels: Vec<(f64, String)> = labels.iter().filter(|(p, _)| usable(*p)).cloned().collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    labels.dedup_by(|a, b| a.0 == b.0);
    if let Some(found) = calendar::ticks(&labels, range, &fits) {
        return found;
    }
    labels.retain(|(p, _)| *p >= range.0 && *p <= range.1);
    let mut k = 1;
    while k <= labels.len() {
        let kept: Vec<(f64, String)> = labels.iter().step_by(k).cloned().collect();
        if fits(&kept) {
            return kept;
        }
        // 1, 2, 5, 10, …; calendar steps are not ours to guess where the texts are no times.
        k = round_step(k as f64 + 1.0) as usize;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_most(n: usize) -> impl Fn(&[(f64, String)]) -> bool {
        move |marks| marks.len() <= n
    }

    fn texts(low: f64, high: f64) -> (Vec<String>, String) {
        let ticks = numbers((low, high), at_most(6));
        (ticks.marks.into_iter().map(|m| m.1).collect(), ticks.note)
    }

    #[test]
    fn numbers_are_round_and_short() {
        assert_eq!(texts(0.0, 1.0).0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(-3.0, 3.0).0, ["−2", "0", "2"]);
        assert_eq!(texts(90.0, 650.0).0, ["100", "200", "300", "400", "500", "600"]);
        assert_eq!(texts(0.0, 5e5).0.last().unwrap(), "500,000");
        assert_eq!(
            texts(0.0, 4e12),
            (vec!["0", "1", "2", "3", "4"].into_iter().map(String::from).collect(), "×10¹²".into())
        );
        assert_eq!(texts(0.0, 4e-12).1, "×10⁻¹²");
        assert_eq!(
            texts(1e9, 1e9 + 4.0),
            (vec!["0", "1", "2", "3", "4"].into_iter().map(String::from).collect(), "+ 1,000,000,000".into())
        );
    }

    #[test]
    fn any_range_has_short_ticks() {
        for size in -150..=150 {
            for (a, b) in [(0.0, 1.0), (-1.0, 1.0), (1.0, 1.001), (0.999, 1.0), (-1.0, -1.0), (1.0, 1.0 + 1e-11)] {
                let unit = 10f64.powi(size);
                let (low, high) = domain(Some((a * unit, b * unit)), (0.05, 0.05));
                assert!(low < high);
                let ticks = numbers((low, high), at_most(10));
                assert!(ticks.marks.len() >= 2, "{a} {b} {size}: {ticks:?}");
                for (position, text) in &ticks.marks {
                    assert!(*position >= low && *position <= high + 1e-6 * (high - low));
                    assert!(text.chars().count() <= 9, "{a} {b} {size}: {ticks:?}");
                }
                let mut distinct: Vec<&String> = ticks.marks.iter().map(|m| &m.1).collect();
                distinct.dedup();
                assert_eq!(distinct.len(), ticks.marks.len(), "{a} {b} {size}: {ticks:?}");
            }
        }
    }

    #[test]
    fn nothing_to_show_shows_the_unit_interval() {
        assert_eq!(domain(extent([f64::NAN, f64::INFINITY].into_iter()), (0.1, 0.1)), (0.0, 1.0));
        assert_eq!(domain(Some((0.0, 0.0)), (0.1, 0.1)), (-1.0, 1.0));
        let axis = Axis::new("x").range(f64::NAN, 1.0);
        assert_eq!(axis.domain(Some((0.0, 1.0)), (0.0, 0.0)), (0.0, 1.0));
    }

    #[test]
    fn given_labels_are_thinned_evenly() {
        let labels: Vec<(f64, String)> = (0..100).map(|i| (f64::from(i), format!("run {i}"))).collect();
        let kept = given(&labels, (0.0, 99.0), at_most(8));
        assert_eq!(kept.iter().map(|m| m.0).collect::<Vec<_>>(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!(given(&labels, (0.0, 99.0), |_| false).is_empty());
        assert!(given(&[(f64::NAN, "x".into())], (0.0, 1.0), |_| true).is_empty());
    }
}
