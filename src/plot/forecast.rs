//! The picture of a forecast: what was seen, what is expected, how sure that is, and where one ends and the other begins.

use std::path::Path;

use super::axis::{Axis, usable};
use super::figure::{Figure, Layer, Panel};
use super::style::Ink;
use super::terminal::Terminal;
use crate::error::{Error, ErrorKind, Result};

/// An interval at every future time that holds the value with a probability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Band {
    /// The probability in per cent: 80, 95.
    pub level: f64,
    /// Lower ends, one for each future time.
    pub lower: Vec<f64>,
    /// Upper ends, one for each future time.
    pub upper: Vec<f64>,
}

/// What a forecast plot shows. Fields that are left empty are not drawn.
///
/// ```
/// use covary::plot::{Band, ForecastPlot, Terminal};
///
/// let plot = ForecastPlot {
///     title: "Sales".into(),
///     times: vec![0.0, 1.0, 2.0],
///     observed: vec![3.0, 4.0, 5.0],
///     future: vec![3.0, 4.0],
///     mean: vec![6.0, 7.0],
///     bands: vec![Band { level: 95.0, lower: vec![5.0, 5.5], upper: vec![7.0, 8.5] }],
///     ..ForecastPlot::default()
/// };
/// print!("{}", plot.figure()?.to_text(&Terminal::new(80, 20)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForecastPlot {
    /// The title.
    pub title: String,
    /// What time is called.
    pub time_label: String,
    /// What is forecast, with its unit.
    pub target_label: String,
    /// Times of the observations.
    pub times: Vec<f64>,
    /// The observations; one that is not finite is missing.
    pub observed: Vec<f64>,
    /// Times of the forecast.
    pub future: Vec<f64>,
    /// The forecast.
    pub mean: Vec<f64>,
    /// Intervals around it, in any order.
    pub bands: Vec<Band>,
    /// What came later, where that is known: one value for each future time, or none.
    pub later: Vec<f64>,
    /// Texts for times, in any number (see [`Axis::labels`]); without any, times are shown as numbers.
    pub labels: Vec<(f64, String)>,
    /// Where the forecast begins; by default halfway from the last observation to the first future time.
    pub boundary: Option<f64>,
}

impl ForecastPlot {
    /// Keeps the last observations only, where a long past would leave no room for the future.
    #[must_use]
    pub fn recent(mut self, rows: usize) -> Self {
        let skip = self.times.len().min(self.observed.len()).saturating_sub(rows);
        self.times.drain(..skip);
        self.observed.drain(..skip);
        self
    }

    /// The figure, 900 by 440 pixels.
    ///
    /// # Errors
    ///
    /// Lists that belong together and differ in length.
    pub fn figure(&self) -> Result<Figure> {
        self.figure_of(900, 440)
    }

    /// The figure in a size of your own.
    ///
    /// # Errors
    ///
    /// Lists that belong together and differ in length.
    pub fn figure_of(&self, width: u32, height: u32) -> Result<Figure> {
        self.check()?;
        let mut x = Axis::new(&self.time_label);
        if !self.labels.is_empty() {
            x = x.labels(self.labels.clone());
        }
        let mut panel = Panel::new(x, Axis::new(&self.target_label));
        panel = self.add_observed(panel, f64::from(width));
        if !self.mean.is_empty() {
            panel = panel.with(Layer::line(&self.future, &self.mean).ink(Ink::Blue).name("forecast").size(1.2));
            if self.mean.len() == 1 {
                panel = panel.with(Layer::points(&self.future, &self.mean).ink(Ink::Blue));
            }
        }
        // Outer bands first: an inner one is drawn upon them, and so is darker.
        let mut bands: Vec<&Band> = self.bands.iter().collect();
        bands.sort_by(|a, b| b.level.total_cmp(&a.level));
        for band in bands {
            let layer = Layer::band(&self.future, &band.lower, &band.upper).ink(Ink::Blue);
            panel = panel.with(layer.name(format!("{}%", band.level)).opacity(0.22));
        }
        if !self.later.is_empty() {
            panel = panel.with(Layer::points(&self.future, &self.later).ink(Ink::Vermilion).name("seen later"));
        }
        if let Some(boundary) = self.boundary() {
            panel = panel.with(Layer::vertical_rule(boundary, "forecast begins"));
        }
        Ok(Figure::new(width, height).title(&self.title).panel(panel))
    }

    /// The plot as text; see [`Figure::to_text`]. Of a long past the last part is drawn, so that the future has at
    /// least a quarter of the width: a terminal has few columns.
    ///
    /// # Errors
    ///
    /// Lists that belong together and differ in length.
    pub fn to_text(&self, terminal: &Terminal) -> Result<String> {
        self.check()?;
        let rows = (3 * self.future.len()).max(40);
        let shown = if self.future.is_empty() { self.clone() } else { self.clone().recent(rows) };
        Ok(shown.figure()?.to_text(terminal))
    }

    /// Writes the plot to an SVG or PNG file; see [`Figure::save`].
    ///
    /// # Errors
    ///
    /// As for [`ForecastPlot::figure`] and [`Figure::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.figure()?.save(path)
    }

    fn check(&self) -> Result<()> {
        let same = |what: &'static str, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Size { what, expected, found })),
        };
        same("observations of a forecast plot", self.observed.len(), self.times.len())?;
        same("means of a forecast plot", self.mean.len(), self.future.len())?;
        for band in &self.bands {
            same("lower ends of a band", band.lower.len(), self.future.len())?;
            same("upper ends of a band", band.upper.len(), self.future.len())?;
        }
        if self.later.is_empty() { Ok(()) } else { same("later values", self.later.len(), self.future.len()) }
    }

    /// Dots joined by a thin line, broken where observations are missing; dots alone would hide the order, the line
    /// alone the gaps. Where there are more than the eye can tell apart, only the line.
    fn add_observed(&self, panel: Panel, width: f64) -> Panel {
        if self.times.is_empty() {
            return panel;
        }
        let n = self.times.len() as f64;
        let (x, y) = with_gaps(&self.times, &self.observed);
        let crowded = n > width;
        let line = Layer::line(&x, &y).size(if crowded { 0.55 } else { 0.6 });
        if crowded {
            return panel.with(line.name("observed"));
        }
        let size = (0.35 * width / n / 4.2).clamp(0.6, 1.0);
        let points = Layer::points(&self.times, &self.observed).size(size);
        panel.with(line.opacity(0.55)).with(points.name("observed"))
    }

    fn boundary(&self) -> Option<f64> {
        if self.boundary.is_some() {
            return self.boundary.filter(|b| usable(*b));
        }
        let last = self.times.iter().copied().filter(|t| usable(*t)).reduce(f64::max)?;
        let first = self.future.iter().copied().filter(|t| usable(*t)).reduce(f64::min)?;
        Some(last + (first - last) / 2.0)
    }
}

/// The series with a missing value wherever two times are further apart than two and a half usual steps.
fn with_gaps(times: &[f64], values: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut steps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).filter(|s| usable(*s)).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(f64::INFINITY);
    let (mut x, mut y) = (Vec::with_capacity(times.len()), Vec::with_capacity(times.len()));
    for (i, (time, value)) in times.iter().zip(values).enumerate() {
        if i > 0 && time - times[i - 1] > 2.5 * usual {
            x.push(*time);
            y.push(f64::NAN);
        }
        x.push(*time);
        y.push(*value);
    }
    (x, y)
}
