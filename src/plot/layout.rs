//! Where everything of a panel stands, in pixels: the plot area, ticks that do not touch, and a legend in rows above
//! the plot, where it covers nothing. Nothing is drawn here.

use super::axis::{Axis, Ticks};
use super::figure::{Mark, Panel};
use super::style::{TEXT, clean, fit, text_width};

/// Height of a row of labels.
pub(crate) const ROW: f64 = 20.0;
/// Width of a sample in the legend, and the gaps beside it and between entries.
pub(crate) const SAMPLE: f64 = 24.0;
pub(crate) const BESIDE: f64 = 6.0;
const BETWEEN: f64 = 18.0;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// A text with its place: the left, middle or right end of its base line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Label {
    pub x: f64,
    pub y: f64,
    pub anchor: Anchor,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Label {
    fn new(x: f64, y: f64, anchor: Anchor, text: impl Into<String>) -> Self {
        Self { x, y, anchor, text: text.into() }
    }

    /// From where to where the text reaches at most.
    #[cfg(test)]
    pub(crate) fn span(&self, size: f64) -> (f64, f64) {
        let width = text_width(&self.text, size);
        let left = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - width / 2.0,
            Anchor::End => self.x - width,
        };
        (left, left + width)
    }
}

/// An entry of the legend: which layer, where its sample begins, and its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub layer: usize,
    pub label: Label,
}

/// A panel's places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub plot: Area,
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub x_ticks: Ticks,
    pub y_ticks: Ticks,
    pub title: Option<Label>,
    pub labels: Vec<Label>,
    pub legend: Vec<Entry>,
}

impl Layout {
    /// The layout of a panel within a cell of the figure.
    pub(crate) fn new(panel: &Panel, cell: Area) -> Self {
        let (x, y) = panel.ranges();
        let mut top = cell.y;
        let title = (!panel.title.is_empty()).then(|| {
            top += ROW + 2.0;
            Label::new(cell.x, top - 7.0, Anchor::Start, fit(&panel.title, TEXT + 1.0, cell.width))
        });

        // The legend shares a row with the label of y where both have room; else it begins in a row of its own.
        let entries = entries(panel, cell.width);
        let legend_width: f64 = entries.iter().map(|e| e.2).sum();
        let y_label_width = text_width(&clean(&panel.y.label, 200), TEXT) + 70.0;
        let shares = !panel.y.label.is_empty() && legend_width + y_label_width <= cell.width;
        let begin = if shares { cell.x + cell.width - legend_width } else { cell.x };
        let mut legend = Vec::new();
        let (mut left, mut base) = (begin, top + 14.0);
        for (layer, name, width) in entries {
            if left > begin && left + width - BETWEEN > cell.x + cell.width {
                (left, base) = (cell.x, base + ROW);
            }
            let label = Label::new(left + SAMPLE + BESIDE, base, Anchor::Start, name);
            legend.push(Entry { layer, label });
            left += width;
        }
        let y_label_at = match (legend.last(), shares) {
            (Some(last), false) => last.label.y + ROW,
            _ => top + 14.0,
        };
        let heads =
            panel.layers.iter().any(|l| matches!(&l.mark, Mark::VerticalRule { text, .. } if !text.is_empty()));
        let head_at = if panel.y.label.is_empty() && legend.is_empty() { top + 14.0 } else { y_label_at + ROW + 1.0 };
        let y_row = !panel.y.label.is_empty() || needs_note(&panel.y, y);
        let used = if heads {
            head_at
        } else if y_row {
            y_label_at
        } else {
            legend.last().map_or(top, |last| last.label.y)
        };
        let plot_top = used + 8.0;

        let x_row = if panel.x.label.is_empty() && !needs_note(&panel.x, x) { 0.0 } else { ROW };
        let x_tick_row = if panel.x.labels.as_ref().is_some_and(Vec::is_empty) { 6.0 } else { ROW + 4.0 };
        let plot_height = (cell.y + cell.height - plot_top - x_tick_row - x_row).max(10.0);
        let y_ticks = panel.y.ticks(y, |marks| spaced(marks, y, plot_height, |_| 1.5 * TEXT, 0.6 * TEXT));
        let widest = y_ticks.marks.iter().map(|m| text_width(&clean(&m.1, 30), TEXT)).fold(0.0, f64::max);
        let margin = if y_ticks.marks.is_empty() { 2.0 } else { (widest + 10.0).min(0.4 * cell.width) };
        let mut plot = Area {
            x: cell.x + margin,
            y: plot_top,
            width: (cell.width - margin - 8.0).max(10.0),
            height: plot_height,
        };
        if panel.equal_scales {
            plot = equal(plot, x, y);
        }
        let x_ticks = panel.x.ticks(x, |marks| spaced(marks, x, plot.width, |t| text_width(t, TEXT), 1.1 * TEXT));

        let mut layout = Self { plot, x, y, x_ticks, y_ticks, title, labels: Vec::new(), legend };
        layout.place_labels(panel, cell, y_label_at, head_at);
        layout
    }

    fn place_labels(&mut self, panel: &Panel, cell: Area, y_label_at: f64, head_at: f64) {
        let plot = self.plot;
        let with_note = |label: &str, note: &str| match (clean(label, 200), note) {
            (label, "") => label,
            (label, note) if label.is_empty() => note.to_string(),
            (label, note) => format!("{label} ({note})"),
        };
        let y_label = with_note(&panel.y.label, &self.y_ticks.note);
        self.labels.push(Label::new(cell.x, y_label_at, Anchor::Start, fit(&y_label, TEXT, cell.width)));
        let below = plot.y + plot.height + ROW + 4.0 + 14.0;
        let x_label = with_note(&panel.x.label, &self.x_ticks.note);
        let right = plot.x + plot.width;
        self.labels.push(Label::new(right, below, Anchor::End, fit(&x_label, TEXT, plot.width + plot.x - cell.x)));
        // Heads of rules: to the right of the rule where there is room, and none that would touch the one before.
        let mut until = f64::NEG_INFINITY;
        for layer in &panel.layers {
            let Mark::VerticalRule { x, text } = &layer.mark else { continue };
            let at = plot.x + self.across(*x);
            if text.is_empty() || !(plot.x..=right).contains(&at) {
                continue;
            }
            let text = fit(text, TEXT, plot.width);
            let width = text_width(&text, TEXT);
            let from = (at - 4.0).min(right - width).max(cell.x);
            if from >= until {
                until = from + width + 8.0;
                self.labels.push(Label::new(from, head_at, Anchor::Start, text));
            }
        }
        self.labels.retain(|label| !label.text.is_empty());
    }

    /// Pixels from the left of the plot area.
    pub(crate) fn across(&self, x: f64) -> f64 {
        (x - self.x.0) / (self.x.1 - self.x.0) * self.plot.width
    }

    /// Pixels from the top of the plot area.
    pub(crate) fn down(&self, y: f64) -> f64 {
        (self.y.1 - y) / (self.y.1 - self.y.0) * self.plot.height
    }

    /// The texts of the ticks, in place.
    pub(crate) fn tick_labels(&self) -> Vec<Label> {
        let plot = self.plot;
        let below = self.x_ticks.marks.iter().map(|(x, text)| {
            let text = fit(text, TEXT, plot.width);
            Label::new(plot.x + self.across(*x), plot.y + plot.height + ROW - 1.0, Anchor::Middle, text)
        });
        let beside = self.y_ticks.marks.iter().map(|(y, text)| {
            let text = fit(text, TEXT, plot.x);
            Label::new(plot.x - 8.0, plot.y + self.down(*y) + 0.35 * TEXT, Anchor::End, text)
        });
        below.chain(beside).collect()
    }
}

/// The named layers, with their names cut to fit and the room they take.
fn entries(panel: &Panel, room: f64) -> Vec<(usize, String, f64)> {
    let named = panel.layers.iter().enumerate().filter(|(_, layer)| !layer.name.is_empty());
    named
        .map(|(i, layer)| {
            let name = fit(&layer.name, TEXT, (room - SAMPLE - BESIDE).max(0.0));
            let width = SAMPLE + BESIDE + text_width(&name, TEXT) + BETWEEN;
            (i, name, width)
        })
        .collect()
}

/// Whether the numbers of an axis come with a note, which needs a row; judged before their room is known.
fn needs_note(axis: &Axis, range: (f64, f64)) -> bool {
    !axis.ticks(range, |marks| marks.len() <= 8).note.is_empty()
}

/// Whether texts of these sizes along an axis of this length keep a gap between them.
pub(crate) fn spaced(
    marks: &[(f64, String)],
    range: (f64, f64),
    length: f64,
    size: impl Fn(&str) -> f64,
    gap: f64,
) -> bool {
    let at = |value: f64| (value - range.0) / (range.1 - range.0) * length;
    marks.windows(2).all(|w| at(w[1].0) - at(w[0].0) >= (size(&w[0].1) + size(&w[1].1)) / 2.0 + gap)
}

/// The largest area inside `plot`, at its top left, in which both axes have the same scale.
fn equal(plot: Area, x: (f64, f64), y: (f64, f64)) -> Area {
    let unit = (plot.width / (x.1 - x.0)).min(plot.height / (y.1 - y.0));
    let (width, height) = ((x.1 - x.0) * unit, (y.1 - y.0) * unit);
    if width >= 4.0 && height >= 4.0 { Area { width, height, ..plot } } else { plot }
}

#[cfg(test)]
mod tests {
    use super::super::{Ink, Layer};
    use super::*;

    fn disjoint(mut spans: Vec<(f64, f64)>) -> bool {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        spans.windows(2).all(|w| w[0].1 <= w[1].0)
    }

    /// Labels of one row (of the same height) must not touch, whatever the size and the data.
    #[test]
    fn labels_do_not_touch() {
        let months: Vec<(f64, String)> =
            (0..300).map(|i| (f64::from(i), format!("{}-{:02}", 1990 + i / 12, i % 12 + 1))).collect();
        let words: Vec<(f64, String)> = (0..300).map(|i| (f64::from(i), format!("experiment number {i}"))).collect();
        for (width, height) in [(900.0, 440.0), (420.0, 280.0), (150.0, 120.0), (60.0, 60.0), (5000.0, 300.0)] {
            for top in [1e-12, 1e-3, 1.0, 777.0, 123_456.0, 1e12] {
                for axis in
                    [Axis::new("t"), Axis::new("t").labels(months.clone()), Axis::new("t").labels(words.clone())]
                {
                    let panel = Panel::new(axis, Axis::new("a rather long name of a quantity"))
                        .with(Layer::line(&[0.0, 299.0], &[-top, top]).name("first of the names"))
                        .with(Layer::line(&[0.0, 299.0], &[top, top]).name("second").ink(Ink::Blue))
                        .with(Layer::vertical_rule(250.0, "forecast begins"))
                        .with(Layer::vertical_rule(251.0, "another"));
                    let cell = Area { x: 0.0, y: 0.0, width, height };
                    let layout = Layout::new(&panel, cell);
                    let legend = layout.legend.iter().map(|e| &e.label);
                    let ticks = layout.tick_labels();
                    let mut rows: Vec<(i64, Vec<(f64, f64)>)> = Vec::new();
                    for label in layout.labels.iter().chain(legend).chain(&ticks) {
                        let row = (label.y * 10.0) as i64;
                        let at = rows.iter().position(|r| r.0 == row).unwrap_or_else(|| {
                            rows.push((row, Vec::new()));
                            rows.len() - 1
                        });
                        rows[at].1.push(label.span(TEXT));
                    }
                    for (row, spans) in rows {
                        assert!(disjoint(spans.clone()), "{width}×{height}, {top}, row {row}: {spans:?}");
                    }
                    let mut beside: Vec<f64> =
                        ticks.iter().filter(|t| t.anchor == Anchor::End).map(|t| t.y).collect();
                    beside.sort_by(f64::total_cmp);
                    assert!(beside.windows(2).all(|w| w[1] - w[0] >= TEXT));
                }
            }
        }
    }

    #[test]
    fn the_legend_stands_above_the_plot() {
        let panel = (0..12).fold(Panel::new(Axis::new("x"), Axis::new("y")), |panel, i| {
            panel.with(Layer::line(&[0.0, 1.0], &[0.0, 1.0]).name(format!("layer {i}")))
        });
        let layout = Layout::new(&panel, Area { x: 0.0, y: 0.0, width: 500.0, height: 400.0 });
        assert_eq!(layout.legend.len(), 12);
        assert!(layout.legend.iter().all(|e| e.label.y < layout.plot.y && e.label.span(TEXT).1 <= 500.0));
    }
}
