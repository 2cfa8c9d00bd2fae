//! Marks to SVG paths: numbers with one decimal, lines with thousands of points reduced to what a screen can show.

use std::collections::HashSet;
use std::fmt::Write;

use super::axis::usable;
use super::figure::{Image, Layer, Mark, pairs};
use super::layout::Layout;

/// Points of one line or layer beyond which those are left out that could not be seen.
const MANY: usize = 5000;

/// A pixel position with at most one decimal, kept within bounds that every SVG reader can handle.
pub(crate) fn num(value: f64) -> String {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-99_999.0, 99_999.0) };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => "0".to_string(),
        short => short.to_string(),
    }
}

/// Draws the marks of a layer in the coordinates of the plot area.
pub(crate) fn draw(out: &mut String, layer: &Layer, layout: &Layout) {
    let colour = layer.ink.hex();
    let faint = match layer.opacity {
        o if o < 1.0 => format!(" opacity=\"{o:.2}\""),
        _ => String::new(),
    };
    let dash = if layer.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    let place = |(x, y): (f64, f64)| (layout.across(x), layout.down(y));
    match &layer.mark {
        Mark::Points { x, y } => {
            let dots: Vec<(f64, f64)> = pairs(x, y).map(place).collect();
            let path = dots_path(&dots);
            if !path.is_empty() {
                let size = 4.2 * layer.size;
                let _ = write!(
                    out,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linecap=\"round\"{faint}/>",
                    num(size)
                );
            }
        }
        Mark::Line { x, y } => {
            let mut path = String::new();
            for run in runs(x.iter().zip(y).map(|(x, y)| (*x, *y)), |p| usable(p.0) && usable(p.1)) {
                line_path(&mut path, &thin(run.into_iter().map(place).collect()));
            }
            if !path.is_empty() {
                let width = num(1.8 * layer.size);
                let _ = write!(
                    out,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}{faint}/>"
                );
            }
        }
        Mark::Band { x, lower, upper } => {
            let all = x.iter().zip(lower).zip(upper).map(|((x, l), u)| (*x, *l, *u));
            let mut path = String::new();
            for run in runs(all, |t| usable(t.0) && usable(t.1) && usable(t.2)) {
                let mut edge = thin(run.iter().map(|t| place((t.0, t.2))).collect());
                edge.extend(thin(run.iter().map(|t| place((t.0, t.1))).collect()).into_iter().rev());
                if run.len() == 1 {
                    // One time only: a thin bar instead of an area without width.
                    edge = [(-2.0, edge[0].1), (2.0, edge[0].1), (2.0, edge[1].1), (-2.0, edge[1].1)]
                        .map(|(dx, y)| (edge[0].0 + dx, y))
                        .to_vec();
                }
                line_path(&mut path, &edge);
                path.push('z');
            }
            if !path.is_empty() {
                let _ = write!(out, "<path d=\"{path}\" fill=\"{colour}\"{faint}/>");
            }
        }
        Mark::Bars { x, y, width } => {
            let mut path = String::new();
            for (x, y) in pairs(x, y) {
                let (left, top) = place((x - width / 2.0, y.max(0.0)));
                let (right, bottom) = place((x + width / 2.0, y.min(0.0)));
                let (across, down) = ((right - left).max(0.5), bottom - top);
                let _ = write!(path, "M{} {}h{}v{}h{}z", num(left), num(top), num(across), num(down), num(-across));
            }
            if !path.is_empty() {
                let _ = write!(out, "<path d=\"{path}\" fill=\"{colour}\"{faint}/>");
            }
        }
        Mark::VerticalRule { x, .. } if usable(*x) => {
            let path = format!("M{} 0V{}", num(layout.across(*x)), num(layout.plot.height));
            let _ = write!(out, "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.2\"{dash}/>");
        }
        Mark::HorizontalRule { y } if usable(*y) => {
            let path = format!("M0 {}H{}", num(layout.down(*y)), num(layout.plot.width));
            let _ = write!(out, "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.2\"{dash}/>");
        }
        Mark::VerticalRule { .. } | Mark::HorizontalRule { .. } => {}
        Mark::Image(image) => draw_image(out, image, layout),
    }
}

fn draw_image(out: &mut String, image: &Image, layout: &Layout) {
    let corners = [image.x.0, image.x.1, image.y.0, image.y.1];
    let shaded = image.shaded();
    if shaded.colours.is_empty() || !corners.into_iter().all(usable) {
        return;
    }
    let (left, top) = (layout.across(image.x.0), layout.down(image.y.1));
    let across = (layout.across(image.x.1) - left) / shaded.columns as f64;
    let down = (layout.down(image.y.0) - top) / shaded.rows as f64;
    // In units of cells, so that runs are whole numbers; without smoothing, so that neighbours meet without a seam.
    let _ = write!(
        out,
        "<g transform=\"translate({left:.2} {top:.2}) scale({across:.5} {down:.5})\" shape-rendering=\"crispEdges\">"
    );
    for ((r, g, b), runs) in &shaded.colours {
        let _ = write!(out, "<path fill=\"#{r:02x}{g:02x}{b:02x}\" d=\"");
        for (row, first, end) in runs {
            let n = end - first;
            let _ = write!(out, "M{first} {row}h{n}v1h-{n}z");
        }
        out.push_str("\"/>");
    }
    out.push_str("</g>");
}

/// Splits into stretches without a gap.
fn runs<T: Copy>(all: impl Iterator<Item = T>, good: impl Fn(&T) -> bool) -> Vec<Vec<T>> {
    let mut out = vec![Vec::new()];
    for item in all {
        match (good(&item), out.last_mut()) {
            (true, Some(run)) => run.push(item),
            (false, Some(run)) if !run.is_empty() => out.push(Vec::new()),
            _ => {}
        }
    }
    out.retain(|run| !run.is_empty());
    out
}

fn line_path(path: &mut String, points: &[(f64, f64)]) {
    let mut before = (String::new(), String::new());
    for (i, (x, y)) in points.iter().enumerate() {
        let at = (num(*x), num(*y));
        if i > 0 && at == before {
            continue;
        }
        // After M the pairs that follow are lines, without a letter.
        let _ = write!(path, "{}{} {}", if i == 0 { "M" } else { " " }, at.0, at.1);
        before = at;
    }
    if points.len() == 1 {
        path.push_str("h0");
    }
}

/// One dot each: lines without length, whose round ends are circles. Dots on top of each other are drawn once.
fn dots_path(dots: &[(f64, f64)]) -> String {
    let grain = if dots.len() > MANY { 1.0 } else { 10.0 };
    let mut seen = HashSet::with_capacity(dots.len().min(100_000));
    let mut path = String::new();
    for (x, y) in dots {
        if seen.insert(((x * grain).round() as i64, (y * grain).round() as i64)) {
            let _ = write!(path, "M{} {}h0", num(*x), num(*y));
        }
    }
    path
}

/// Of a line with very many points, the first, lowest, highest and last in every half pixel across.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MANY {
        return points;
    }
    let column = |p: &(f64, f64)| (p.0 * 2.0).floor() as i64;
    let mut out = Vec::with_capacity(MANY);
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        let key = |i: &usize, j: &usize| group[*i].1.total_cmp(&group[*j].1);
        let low = (0..group.len()).min_by(key).unwrap_or(0);
        let high = (0..group.len()).max_by(key).unwrap_or(0);
        let mut kept = [0, low, high, group.len() - 1];
        kept.sort_unstable();
        for (i, k) in kept.into_iter().enumerate() {
            if i == 0 || k != kept[i - 1] {
                out.push(group[k]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(num(1.0), "1");
        assert_eq!(num(-0.01), "0");
        assert_eq!(num(2.349), "2.3");
        assert_eq!(num(f64::NAN), "0");
        assert_eq!(num(f64::INFINITY), "99999");
    }

    #[test]
    fn a_long_line_keeps_its_extremes() {
        let points: Vec<(f64, f64)> =
            (0..200_000).map(|i| (f64::from(i) / 250.0, if i == 77_777 { 9.0 } else { 0.0 })).collect();
        let thinned = thin(points.clone());
        assert!(thinned.len() < 7000);
        assert!(thinned.contains(&points[77_777]));
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
    }

    #[test]
    fn gaps_split_lines() {
        let found = runs([1.0, f64::NAN, f64::NAN, 2.0, 3.0].into_iter(), |v| usable(*v));
        assert_eq!(found, [vec![1.0], vec![2.0, 3.0]]);
        assert!(runs([f64::NAN].into_iter(), |v| usable(*v)).is_empty());
    }
}
