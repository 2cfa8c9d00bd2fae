//! A figure to SVG: one self-contained element without scripts, identifiers or outside references, so that several can
//! stand in one page. Light ground, texts escaped, coordinates to a tenth of a pixel.

use std::fmt::Write;

use super::figure::{Figure, Layer, Mark, Panel};
use super::layout::{Anchor, Area, BESIDE, Label, Layout, SAMPLE};
use super::marks::{draw, num};
use super::style::{AXIS_COLOUR, FONTS, TEXT, TEXT_COLOUR, TITLE, clean, fit};

const EDGE: f64 = 14.0;
const GUTTER: f64 = 22.0;

impl Figure {
    /// The figure as an SVG document.
    pub fn to_svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\" font-family=\"{FONTS}\" font-size=\"{TEXT}\" \
             fill=\"{TEXT_COLOUR}\"><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
            escape(&clean(&self.title, 500))
        );
        let (width, height) = (f64::from(width), f64::from(height));
        let mut top = EDGE;
        if !self.title.is_empty() {
            let title = fit(&self.title, TITLE, width - 2.0 * EDGE);
            let _ = write!(
                out,
                "<text x=\"{EDGE}\" y=\"{}\" font-size=\"{TITLE}\" fill=\"#111\">{}</text>",
                num(top + 15.0),
                escape(&title)
            );
            top += 30.0;
        }
        let columns = self.columns.min(self.panels.len()).max(1);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let cell_width = (width - 2.0 * EDGE - GUTTER * (columns - 1) as f64) / columns as f64;
        let cell_height = (height - top - EDGE - GUTTER * (rows - 1) as f64) / rows as f64;
        for (i, panel) in self.panels.iter().enumerate() {
            let cell = Area {
                x: EDGE + (i % columns) as f64 * (cell_width + GUTTER),
                y: top + (i / columns) as f64 * (cell_height + GUTTER),
                width: cell_width.max(20.0),
                height: cell_height.max(20.0),
            };
            draw_panel(&mut out, panel, &Layout::new(panel, cell));
        }
        out.push_str("</svg>\n");
        out
    }
}

fn draw_panel(out: &mut String, panel: &Panel, layout: &Layout) {
    let Area { x, y, width, height } = layout.plot;
    // An inner <svg> clips what leaves the plot area; a clip path would need an identifier.
    let _ = write!(
        out,
        "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" overflow=\"hidden\">",
        num(x),
        num(y),
        num(width),
        num(height)
    );
    let below = |layer: &&Layer| matches!(layer.mark, Mark::Band { .. } | Mark::Image(_));
    panel.layers.iter().filter(below).for_each(|layer| draw(out, layer, layout));
    let image = panel.layers.iter().any(|layer| matches!(layer.mark, Mark::Image(_)));
    if !image {
        draw_grid(out, layout);
    }
    panel.layers.iter().filter(|layer| !below(layer)).for_each(|layer| draw(out, layer, layout));
    out.push_str("</svg>");

    let mut axes = format!("M{} {}h{}", num(x), num(y + height), num(width));
    for (at, _) in &layout.x_ticks.marks {
        let _ = write!(axes, "M{} {}v5", num(x + layout.across(*at)), num(y + height));
    }
    if image {
        let _ = write!(axes, "M{} {}h{}v{}h{}z", num(x), num(y), num(width), num(height), num(-width));
    }
    let _ = write!(out, "<path d=\"{axes}\" fill=\"none\" stroke=\"{AXIS_COLOUR}\"/>");
    if let Some(title) = &layout.title {
        draw_label(out, title, " fill=\"#111\" font-size=\"14\"");
    }
    layout.labels.iter().chain(&layout.tick_labels()).for_each(|label| draw_label(out, label, ""));
    draw_legend(out, panel, layout);
}

/// Faint lines at the ticks, dark on light: they show through bands too.
fn draw_grid(out: &mut String, layout: &Layout) {
    let mut path = String::new();
    for (at, _) in &layout.y_ticks.marks {
        let _ = write!(path, "M0 {}h{}", num(layout.down(*at)), num(layout.plot.width));
    }
    for (at, _) in &layout.x_ticks.marks {
        let _ = write!(path, "M{} 0v{}", num(layout.across(*at)), num(layout.plot.height));
    }
    if !path.is_empty() {
        let _ = write!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#000\" opacity=\"0.09\"/>");
    }
}

fn draw_legend(out: &mut String, panel: &Panel, layout: &Layout) {
    for entry in &layout.legend {
        let Some(layer) = panel.layers.get(entry.layer) else { continue };
        let left = entry.label.x - SAMPLE - BESIDE;
        let middle = entry.label.y - 0.35 * TEXT;
        let colour = layer.ink.hex();
        let dash = if layer.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let (x, y) = (num(left), num(middle));
        let _ = match &layer.mark {
            Mark::Points { .. } => {
                // A line of the same ink just below the dots, without a name of its own, belongs to them.
                let under = entry.layer.checked_sub(1).and_then(|i| panel.layers.get(i));
                let joined = under
                    .is_some_and(|l| matches!(l.mark, Mark::Line { .. }) && l.ink == layer.ink && l.name.is_empty());
                let line = if joined {
                    format!("<path d=\"M{x} {y}h{SAMPLE}\" stroke=\"{colour}\" opacity=\"0.55\"/>")
                } else {
                    String::new()
                };
                write!(
                    out,
                    "{line}<path d=\"M{} {y}h0\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linecap=\"round\"/>",
                    num(left + SAMPLE / 2.0),
                    num((4.2 * layer.size).max(3.0))
                )
            }
            Mark::Band { .. } | Mark::Bars { .. } | Mark::Image(_) => write!(
                out,
                "<rect x=\"{x}\" y=\"{}\" width=\"{SAMPLE}\" height=\"12\" fill=\"{colour}\" opacity=\"{:.2}\"/>",
                num(middle - 6.0),
                seen_opacity(panel, entry.layer)
            ),
            Mark::Line { .. } | Mark::VerticalRule { .. } | Mark::HorizontalRule { .. } => write!(
                out,
                "<path d=\"M{x} {y}h{SAMPLE}\" stroke=\"{colour}\" stroke-width=\"{}\" opacity=\"{:.2}\"{dash}/>",
                num((1.8 * layer.size).max(1.0)),
                layer.opacity
            ),
        };
        draw_label(out, &entry.label, "");
    }
}

/// How dark a band looks: it lies upon the earlier bands of its ink.
fn seen_opacity(panel: &Panel, index: usize) -> f64 {
    let Some(layer) = panel.layers.get(index) else { return 1.0 };
    let under = panel.layers.iter().take(index).filter(|other| {
        matches!(other.mark, Mark::Band { .. }) && matches!(layer.mark, Mark::Band { .. }) && other.ink == layer.ink
    });
    1.0 - under.map(|other| 1.0 - other.opacity).product::<f64>() * (1.0 - layer.opacity)
}

fn draw_label(out: &mut String, label: &Label, more: &str) {
    let anchor = match label.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (x, y) = (num(label.x), num(label.y));
    let _ = write!(out, "<text x=\"{x}\" y=\"{y}\"{anchor}{more}>{}</text>", raise(&escape(&label.text)));
}

/// Raised digits by position and size, for fonts that lack some of those characters.
fn raise(text: &str) -> String {
    let plain = |c: char| match c {
        '⁻' => Some('−'),
        '¹' => Some('1'),
        '²' => Some('2'),
        '³' => Some('3'),
        '⁰' | '⁴'..='⁹' => char::from_digit(u32::from(c) - 0x2070, 10),
        _ => None,
    };
    let mut out = String::with_capacity(text.len());
    let mut raised = false;
    for (i, c) in text.chars().enumerate() {
        match (plain(c), raised) {
            (Some(_), false) if i > 0 => out.push_str("</tspan><tspan dy=\"-5\" font-size=\"9.5\">"),
            (None, true) => out.push_str("</tspan><tspan dy=\"5\">"),
            _ => {}
        }
        raised = plain(c).is_some() && i > 0;
        out.push(plain(c).unwrap_or(c));
    }
    if out.contains("</tspan>") { format!("<tspan>{out}</tspan>") } else { out }
}

/// Text for XML and HTML, in content and in attributes. Characters that XML does not allow become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
