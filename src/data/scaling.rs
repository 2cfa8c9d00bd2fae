//! Standardise and undo: every input column and the target get mean 0 and standard deviation 1 before fitting, and
//! results go back to the user's units here. Knows columns and the target only, nothing of what a parameter means.

use serde::{Deserialize, Serialize};

use super::{Dataset, Points, Stream};
use crate::error::{Error, ErrorKind, Result};

/// Centre and width of each input column and of the target. Widths are never 0: what is constant keeps width 1.
///
/// The width is the population standard deviation √(Σ(v − mean)²/n).
///
/// ```
/// use covary::{Dataset, Points, Scaling};
///
/// let data = Dataset::new(Points::from_column(&[10.0, 20.0, 30.0])?, vec![1.0, 3.0, 5.0])?;
/// let scaling = Scaling::of(&data)?;
/// let (x, y) = (scaling.points(data.x())?, scaling.target(data.y()));
/// assert_eq!(x.column(0)[1], 0.0);
/// assert!((scaling.mean(y[2]) - 5.0).abs() < 1e-12);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Scaling {
    centres: Vec<f64>,
    widths: Vec<f64>,
    target_centre: f64,
    target_width: f64,
}

/// What a file holds, before it is known to make sense.
#[derive(Deserialize)]
struct Stored {
    centres: Vec<f64>,
    widths: Vec<f64>,
    target_centre: f64,
    target_width: f64,
}

impl TryFrom<Stored> for Scaling {
    type Error = String;

    fn try_from(s: Stored) -> Result<Self, String> {
        let centres = s.centres.iter().chain([&s.target_centre]).all(|v| v.is_finite());
        let widths = s.widths.iter().chain([&s.target_width]).all(|v| v.is_finite() && *v > 0.0);
        if !centres || !widths || s.centres.len() != s.widths.len() {
            return Err("a scaling needs one finite centre and one positive width for each column".into());
        }
        let Stored { centres, widths, target_centre, target_width } = s;
        Ok(Self { centres, widths, target_centre, target_width })
    }
}

impl Scaling {
    /// The scaling that gives the inputs and the target of this dataset mean 0 and standard deviation 1.
    ///
    /// # Errors
    /// When a column spans more than a double can hold.
    pub fn of(data: &Dataset) -> Result<Self> {
        let mut scaling = Self::identity(data.d());
        for c in 0..data.d() {
            (scaling.centres[c], scaling.widths[c]) = centre_and_width(data.x().column(c), &data.inputs()[c])?;
        }
        (scaling.target_centre, scaling.target_width) = centre_and_width(data.y(), data.target())?;
        check_square(scaling.target_width, data.target())?;
        Ok(scaling)
    }

    /// The scaling that gives the rows of a stream mean 0 and standard deviation 1, in one pass over the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a column spans more than a double can hold.
    pub fn of_stream(stream: &Stream) -> Result<Self> {
        let names = stream.encoding().names();
        let mut columns = vec![Moments::default(); names.len()];
        let mut target = Moments::default();
        for piece in stream.pass()? {
            let piece = piece?;
            for (c, moments) in columns.iter_mut().enumerate() {
                moments.add(piece.x.column(c), &names[c])?;
            }
            target.add(&piece.y, "target")?;
        }
        let mut scaling = Self::identity(names.len());
        for (c, moments) in columns.iter().enumerate() {
            (scaling.centres[c], scaling.widths[c]) = moments.centre_and_width();
        }
        (scaling.target_centre, scaling.target_width) = target.centre_and_width();
        check_square(scaling.target_width, "target")?;
        Ok(scaling)
    }

    /// The scaling that changes nothing, for d columns.
    pub fn identity(d: usize) -> Self {
        Self { centres: vec![0.0; d], widths: vec![1.0; d], target_centre: 0.0, target_width: 1.0 }
    }

    /// The same scaling of the target, with inputs measured as in another one.
    #[must_use]
    pub fn with_inputs_of(mut self, other: &Scaling) -> Self {
        (self.centres, self.widths) = (other.centres.clone(), other.widths.clone());
        self
    }

    /// Number of input columns.
    pub fn d(&self) -> usize {
        self.centres.len()
    }

    /// What was found constant, and so only centred, in sentences.
    pub fn notes(&self, data: &Dataset) -> Vec<String> {
        let mut notes = Vec::new();
        for (c, name) in data.inputs().iter().enumerate().take(data.d()) {
            if is_constant(data.x().column(c)) {
                notes.push(format!("column `{name}` is constant: it tells nothing and keeps its scale"));
            }
        }
        if is_constant(data.y()) {
            notes.push(format!("the target `{}` is constant: it keeps its scale", data.target()));
        }
        notes
    }

    /// The centre of an input column.
    pub fn centre(&self, column: usize) -> f64 {
        self.centres[column]
    }

    /// The width of an input column: a length of 1 in standardised units is this long in the user's.
    pub fn width(&self, column: usize) -> f64 {
        self.widths[column]
    }

    /// The centre of the target.
    pub fn target_centre(&self) -> f64 {
        self.target_centre
    }

    /// The width of the target.
    pub fn target_width(&self) -> f64 {
        self.target_width
    }

    /// The square of the target's width.
    pub fn target_variance(&self) -> f64 {
        self.target_width * self.target_width
    }

    /// The points in standardised units: (x − centre)/width.
    ///
    /// # Errors
    /// When the points have another number of columns, or lie so far out that a standardised value overflows.
    pub fn points(&self, x: &Points) -> Result<Points> {
        self.each_column(x, |v, centre, width| (v - centre) / width)
    }

    /// The points in the user's units again.
    ///
    /// # Errors
    /// When the points have another number of columns, or a value overflows.
    pub fn undo_points(&self, x: &Points) -> Result<Points> {
        self.each_column(x, |v, centre, width| v * width + centre)
    }

    fn each_column(&self, x: &Points, map: impl Fn(f64, f64, f64) -> f64) -> Result<Points> {
        if x.d() != self.d() {
            return Err(ErrorKind::Size { what: "input columns", expected: self.d(), found: x.d() }.into());
        }
        let mut values = Vec::with_capacity(x.values().len());
        for c in 0..x.d() {
            values.extend(x.column(c).iter().map(|&v| map(v, self.centres[c], self.widths[c])));
        }
        Points::from_values(x.n(), x.d(), values)
    }

    /// Target values in standardised units: (y − centre)/width.
    pub fn target(&self, y: &[f64]) -> Vec<f64> {
        y.iter().map(|v| (v - self.target_centre) / self.target_width).collect()
    }

    /// A noise variance of the target in standardised units.
    pub fn noise(&self, variance: f64) -> f64 {
        variance / self.target_width / self.target_width
    }

    /// A standardised mean in the user's units.
    pub fn mean(&self, mean: f64) -> f64 {
        mean * self.target_width + self.target_centre
    }

    /// A standardised standard deviation in the user's units.
    pub fn sd(&self, sd: f64) -> f64 {
        sd * self.target_width
    }

    /// A standardised variance in the user's units.
    pub fn variance(&self, variance: f64) -> f64 {
        variance * self.target_width * self.target_width
    }
}

/// Number, mean and sum of squared deviations of the values so far.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    n: f64,
    mean: f64,
    square: f64,
}

impl Moments {
    fn add(&mut self, values: &[f64], name: &str) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let n = values.len() as f64;
        let (mean, width) = centre_and_width(values, name)?;
        let square = if is_constant(values) { 0.0 } else { n * width * width };
        let (gap, total) = (mean - self.mean, self.n + n);
        // Σ(v − mean)² of both together: each about its own mean, and the means about the common one.
        self.square += square + gap * gap * (self.n / total) * n;
        self.mean += gap * (n / total);
        self.n = total;
        Ok(())
    }

    fn centre_and_width(&self) -> (f64, f64) {
        let width = if self.n > 0.0 { (self.square / self.n).sqrt() } else { 0.0 };
        (self.mean, if width >= f64::MIN_POSITIVE && width.is_finite() { width } else { 1.0 })
    }
}

/// Variances of the target are squares of its deviation.
fn check_square(width: f64, name: &str) -> Result<()> {
    if (1e-150..=1e150).contains(&width) {
        return Ok(());
    }
    let message = format!("column `{name}` deviates by {width:e}, whose square no double can hold");
    Err(Error::option("scaling", message).with_hint("divide the target by a constant"))
}

fn is_constant(values: &[f64]) -> bool {
    values.iter().all(|v| *v == values[0])
}

/// Mean and standard deviation in two passes. Values are first centred roughly and divided by their largest distance,
/// so that neither a large offset nor a scale of 1e±150 costs digits or overflows.
fn centre_and_width(values: &[f64], name: &str) -> Result<(f64, f64)> {
    let Some(&first) = values.first() else { return Ok((0.0, 1.0)) };
    if is_constant(values) {
        return Ok((first, 1.0));
    }
    let n = values.len() as f64;
    let rough: f64 = values.iter().map(|v| v / n).sum();
    let reach = values.iter().fold(0.0_f64, |m, v| m.max((v - rough).abs()));
    if !reach.is_finite() {
        let message = format!("column `{name}` spans more than a double can hold");
        return Err(Error::option("scaling", message).with_hint("divide the column by a constant"));
    }
    // shift = Σ(v − rough)/(n·reach) corrects the rounding of the first mean.
    let shift = values.iter().map(|v| (v - rough) / reach).sum::<f64>() / n;
    let square = values.iter().map(|v| ((v - rough) / reach - shift).powi(2)).sum::<f64>() / n;
    let width = reach * square.sqrt();
    Ok((rough + reach * shift, if width >= f64::MIN_POSITIVE { width } else { 1.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> (f64, f64) {
        centre_and_width(values, "v").unwrap()
    }

    #[test]
    fn scale_and_offset_change_nothing_but_units() {
        let y: Vec<f64> = (0..50).map(|i| (i as f64 * 0.7).sin()).collect();
        let (centre, width) = of(&y);
        for (a, b) in [(1e12, 0.0), (1e-12, 0.0), (1.0, 1e6), (1e150, 0.0), (1e-150, 0.0), (3.0, -1e3)] {
            let scaled: Vec<f64> = y.iter().map(|v| a * v + b).collect();
            let (c, w) = of(&scaled);
            // What the offset b costs is what rounding a·y + b already lost.
            let tolerance = 1e-14 + 1e-15 * (b / a).abs();
            assert!((w / a - width).abs() < tolerance && ((c - b) / a - centre).abs() < tolerance, "{a} {b}");
        }
    }

    #[test]
    fn constant_columns_keep_width_one_and_are_noted() {
        let x = Points::from_column(&[4.0, 4.0, 4.0]).unwrap();
        let data = Dataset::new(x, vec![0.1, 0.1, 0.1]).unwrap();
        let scaling = Scaling::of(&data).unwrap();
        assert_eq!((scaling.width(0), scaling.target_width(), scaling.target_centre()), (1.0, 1.0, 0.1));
        assert_eq!(scaling.notes(&data).len(), 2);
    }

    #[test]
    fn a_span_beyond_doubles_is_an_error_and_tiny_ones_are_not() {
        assert!(centre_and_width(&[-1.7e308, 1.7e308, 1.7e308], "v").is_err());
        assert_eq!(of(&[0.0, 5e-324]).1, 1.0);
    }

    #[test]
    fn a_target_whose_variance_no_double_can_hold_is_refused_by_name() {
        for size in [1e160, 1e-160] {
            let x = Points::from_column(&[1.0, 2.0, 3.0]).unwrap();
            let data = Dataset::new(x, vec![size, 2.0 * size, 4.0 * size]).unwrap();
            let error = Scaling::of(&data).unwrap_err().to_string();
            assert!(error.contains("column `y` deviates by"), "{error}");
        }
    }

    #[test]
    fn a_stored_scaling_with_width_zero_is_refused() {
        let good = Scaling::identity(2);
        let text = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Scaling>(&text).unwrap(), good);
        assert!(
            serde_json::from_str::<Scaling>(&text.replace("\"target_width\":1.0", "\"target_width\":0.0")).is_err()
        );
    }
}
