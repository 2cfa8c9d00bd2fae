//! Pictures: well-formed whatever the data, of the size asked for, and written whole or not at all.

use covary::plot::{Axis, Band, Colour, Figure, ForecastPlot, Glyphs, Ink, Layer, Page, Panel, Shades, Terminal};

const HOSTILE: &str = "a<b>&\"c'\u{1}\u{1b}[31m\n\u{ffff}\u{202e}漢字 é</svg>";

fn forecast(times: &[f64], observed: &[f64], future: &[f64], mean: &[f64]) -> ForecastPlot {
    let band = |level: f64, width: f64| Band {
        level,
        lower: mean.iter().map(|m| m - width * m.abs()).collect(),
        upper: mean.iter().map(|m| m + width * m.abs()).collect(),
    };
    ForecastPlot {
        title: HOSTILE.into(),
        time_label: HOSTILE.into(),
        target_label: HOSTILE.into(),
        times: times.to_vec(),
        observed: observed.to_vec(),
        future: future.to_vec(),
        mean: mean.to_vec(),
        bands: vec![band(80.0, 0.1), band(95.0, 0.2)],
        ..ForecastPlot::default()
    }
}

/// Awkward series: empty, one point, constant, missing, infinite, huge, tiny, unordered, long.
fn awkward() -> Vec<ForecastPlot> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let long: Vec<f64> = (0..20_000).map(f64::from).collect();
    let waves: Vec<f64> = long.iter().map(|t| (t / 30.0).sin()).collect();
    let mut all = vec![
        forecast(&[], &[], &[], &[]),
        forecast(&[1.0], &[2.0], &[], &[]),
        forecast(&[], &[], &[1.0], &[2.0]),
        forecast(&[1.0], &[2.0], &[2.0], &[3.0]),
        forecast(&[1.0, 2.0, 3.0], &[5.0; 3], &[4.0, 5.0], &[5.0; 2]),
        forecast(&[0.0; 3], &[0.0; 3], &[0.0; 2], &[0.0; 2]),
        forecast(&[1.0, 2.0, 3.0], &[nan; 3], &[4.0, 5.0], &[nan, inf]),
        forecast(&[1.0, nan, inf, 4.0], &[1.0, 2.0, 3.0, -inf], &[5.0, nan], &[1.0, 2.0]),
        forecast(&[3.0, 1.0, 2.0], &[1.0, 2.0, 3.0], &[9.0, 8.0], &[1.0, 2.0]),
        forecast(&[1.0, 2.0], &[f64::MAX, f64::MIN], &[3.0, f64::MAX], &[f64::MAX, 1.0]),
        forecast(&[1.0, 2.0], &[5e-324, -5e-324], &[3.0, 4.0], &[5e-324, 1e-300]),
        forecast(&[1e18, 1e18 + 256.0], &[1.0, 2.0], &[1e18 + 512.0], &[3.0]),
        forecast(&long, &waves, &[20_000.0, 20_001.0], &[0.0, 1.0]),
    ];
    for size in [1e-12, 1e12, -1e12, 1e150, 1e149, 1e-150] {
        all.push(forecast(&[size, 2.0 * size], &[size, 3.0 * size], &[3.0 * size], &[2.0 * size]));
        all.push(forecast(&[0.0, 1.0], &[size, size], &[2.0], &[size * (1.0 + 1e-13)]));
    }
    all
}

/// Well-formed, and no number in it that is not one.
fn check_svg(svg: &str) {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg:.2000}"));
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            if attribute.name() != "aria-label" {
                assert!(!value.contains("NaN") && !value.contains("inf"), "{}: {value:.200}", attribute.name());
            }
            if ["x", "y", "width", "height", "font-size", "stroke-width", "opacity"].contains(&attribute.name()) {
                assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{}: {value}", attribute.name());
            }
            if attribute.name() == "d" {
                let numbers = value.split(|c: char| c == ' ' || c.is_ascii_alphabetic()).filter(|t| !t.is_empty());
                numbers.for_each(|t| assert!(t.parse::<f64>().is_ok_and(f64::is_finite), "{t} in {value:.200}"));
            }
        }
    }
}

/// Cells of a line, with wide characters counted twice and escape sequences not at all.
fn cells(line: &str) -> usize {
    let mut plain = line.to_string();
    while let Some(at) = plain.find('\u{1b}') {
        let end = at + plain[at..].find('m').unwrap() + 1;
        plain.replace_range(at..end, "");
    }
    plain.chars().map(|c| if ('\u{2e80}'..='\u{a4cf}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn any_forecast_gives_a_well_formed_picture() {
    for plot in awkward() {
        for (width, height) in [(900, 440), (50, 50), (0, 0), (3000, 60)] {
            check_svg(&plot.figure_of(width, height).unwrap().to_svg());
        }
    }
}

#[test]
fn a_terminal_chart_has_exactly_the_size_asked_for() {
    for plot in awkward() {
        for (width, height) in [(80, 20), (100, 30), (1, 1), (2, 5), (13, 6), (14, 7), (20, 8), (200, 3)] {
            let plain = Terminal::new(width, height);
            for terminal in [plain, plain.glyphs(Glyphs::Ascii), plain.colour(Colour::Ansi)] {
                let text = plot.to_text(&terminal).unwrap();
                let lines: Vec<&str> = text.split_terminator('\n').collect();
                assert_eq!(lines.len(), height);
                assert!(lines.iter().all(|line| cells(line) == width), "{width}×{height}\n{text}");
                assert!(!text.contains("\u{1b}[31m"), "a title must not steer the terminal");
                if terminal == plain.glyphs(Glyphs::Ascii) {
                    assert!(text.is_ascii());
                }
            }
        }
    }
}

#[test]
fn a_terminal_chart_shows_data_band_boundary_and_numbers() {
    let times: Vec<f64> = (0..40).map(f64::from).collect();
    let future: Vec<f64> = (40..60).map(f64::from).collect();
    let observed: Vec<f64> = times.iter().map(|t| 50.0 + 10.0 * (t / 3.0).sin()).collect();
    let plot = forecast(&times, &observed, &future, &[50.0; 20]);
    let text = plot.to_text(&Terminal::new(80, 20)).unwrap();
    for expected in ["░", "▒", "┊", "forecast begins", "observed", "40", "60", "└"] {
        assert!(text.contains(expected), "{expected} not in\n{text}");
    }
    assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)));
}

#[test]
fn thousands_of_points_make_a_small_file() {
    let x: Vec<f64> = (0..200_000).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| (x * 12.9898).sin() * 43.7).collect();
    let panel = Panel::new(Axis::new("x"), Axis::new("y"))
        .with(Layer::line(&x, &y))
        .with(Layer::band(&x, &y, &y).ink(Ink::Blue));
    let svg = Figure::new(900, 400).panel(panel).to_svg();
    check_svg(&svg);
    assert!(svg.len() < 300_000, "{}", svg.len());
}

#[test]
fn every_kind_of_layer_draws() {
    let bare = || Axis::new("").labels(Vec::new());
    let image: Vec<f64> = (0..600).map(|i| if i == 7 { f64::NAN } else { f64::from(i % 37) }).collect();
    let figure = Figure::new(800, 600)
        .columns(2)
        .panel(Panel::new(bare(), bare()).equal_scales().with(Layer::image(20, 30, &image).name("image")))
        .panel(Panel::new(bare(), bare()).with(Layer::image(9, 9, &[]).shades(Shades::Heat, Some((1.0, 0.0)))))
        .panel(
            Panel::new(Axis::new("a").range(0.0, 2.0), Axis::new("b").range(f64::NAN, 1.0))
                .title(HOSTILE)
                .with(Layer::bars(&[1.0, 2.0], &[3.0, -1.0], f64::INFINITY).name(HOSTILE))
                .with(Layer::horizontal_rule(f64::NAN))
                .with(Layer::vertical_rule(1e9, HOSTILE))
                .with(Layer::points(&[1.0], &[2.0, 3.0]).size(f64::NAN).opacity(f64::NAN)),
        );
    check_svg(&figure.to_svg());
    for panel in 0..3 {
        let one = Figure::new(10, 10).panel(figure_panel(panel));
        assert_eq!(one.to_text(&Terminal::new(40, 10)).lines().count(), 10);
    }
}

fn figure_panel(kind: usize) -> Panel {
    let panel = Panel::new(Axis::new("x"), Axis::new("y"));
    match kind {
        0 => panel.with(Layer::image(4, 4, &[1.0, 2.0, 3.0])),
        1 => panel.with(Layer::bars(&[1.0, 2.0], &[3.0, -1.0], 0.8)),
        _ => panel.with(Layer::horizontal_rule(1.0)).with(Layer::line(&[0.0, 1.0], &[0.0, 2.0])),
    }
}

#[test]
fn lists_of_different_length_are_refused() {
    let mut plot = forecast(&[1.0], &[2.0], &[2.0], &[3.0]);
    plot.bands[0].upper.push(1.0);
    assert!(plot.figure().unwrap_err().to_string().contains("band"));
    plot.observed.clear();
    assert!(plot.to_text(&Terminal::new(40, 10)).is_err());
    assert!(plot.save("never.svg").is_err());
}

#[test]
fn a_picture_is_saved_by_its_extension() {
    let directory = tempfile::tempdir().unwrap();
    let plot = forecast(&[1.0, 2.0], &[1.0, 2.0], &[3.0], &[3.0]);
    plot.save(directory.path().join("a.SVG")).unwrap();
    check_svg(&std::fs::read_to_string(directory.path().join("a.SVG")).unwrap());
    let png = directory.path().join("a.png");
    if cfg!(feature = "png") {
        plot.save(&png).unwrap();
        let bytes = std::fs::read(&png).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
        let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((side(16), side(20)), (1800, 880));
    } else {
        assert!(plot.save(&png).unwrap_err().hint().is_some_and(|hint| hint.contains("svg")));
    }
    for name in ["a.jpg", "a", "svg"] {
        assert!(plot.save(directory.path().join(name)).unwrap_err().to_string().contains(".svg or .png"));
    }
    assert!(plot.save(directory.path().join("none/a.svg")).is_err());
}

#[test]
fn a_page_escapes_everything_and_stands_alone() {
    let figure = forecast(&[1.0], &[2.0], &[2.0], &[3.0]).figure().unwrap();
    let page = Page::new(HOSTILE)
        .heading(HOSTILE)
        .paragraph(HOSTILE)
        .list([HOSTILE])
        .figure(&figure, HOSTILE)
        .table(&["name", HOSTILE], [vec![HOSTILE, "1,234.5"], vec!["short"], vec!["b", "−3", "more"]])
        .details(Page::new(HOSTILE).preformatted(HOSTILE));
    let html = page.to_html();
    let body = html[html.find("<body>").unwrap()..].replace("</html>", "");
    let document = roxmltree::Document::parse(&body).unwrap();
    let known = [
        "body",
        "h1",
        "h2",
        "p",
        "ul",
        "li",
        "figure",
        "figcaption",
        "svg",
        "rect",
        "path",
        "text",
        "tspan",
        "g",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "pre",
    ];
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        assert!(known.contains(&node.tag_name().name()), "{}", node.tag_name().name());
    }
    assert!(!html.contains("href") && !html.contains("src=") && !html.contains("<script"));
    assert!(html.contains("<td class=\"n\">1,234.5</td>"));
}
