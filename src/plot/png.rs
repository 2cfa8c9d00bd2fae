//! A figure to PNG, through its SVG. The font travels with the program (Noto Sans, SIL Open Font Licence), so that texts
//! are there on a machine without fonts and a picture is the same everywhere. The only file that names `resvg`.

use std::sync::{Arc, OnceLock};

use resvg::{tiny_skia, usvg};
use usvg::fontdb::Database;

use super::figure::Figure;
use crate::error::{Error, Result};

impl Figure {
    /// The figure as a PNG file, with `scale` pixels for each of the figure's.
    ///
    /// # Errors
    ///
    /// A scale that is not positive, or a picture with more than 20,000 pixels a side or 200 million in all.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        let side = |length: u32| (f64::from(length) * scale).round();
        let (width, height) = (side(self.width), side(self.height));
        let limit = f64::from(Self::LIMIT);
        if !(width >= 1.0 && height >= 1.0 && width <= limit && height <= limit && width * height <= 2e8) {
            let message = format!("{} × {} at scale {scale} is no size for a picture", self.width, self.height);
            return Err(Error::option("plot", message));
        }
        let svg = self.to_svg();
        let options =
            usvg::Options { font_family: "Noto Sans".to_string(), fontdb: fonts(&svg), ..usvg::Options::default() };
        let tree = usvg::Tree::from_str(&svg, &options).map_err(|error| failed(&error))?;
        let mut pixels =
            tiny_skia::Pixmap::new(width as u32, height as u32).ok_or_else(|| failed(&"no memory for its pixels"))?;
        let scale = tiny_skia::Transform::from_scale(
            (width / f64::from(self.width)) as f32,
            (height / f64::from(self.height)) as f32,
        );
        resvg::render(&tree, scale, &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::option("plot", format!("the picture could not be drawn: {error}"))
}

/// The embedded font; with the machine's own behind it for scripts that it lacks.
fn fonts(svg: &str) -> Arc<Database> {
    static OWN: OnceLock<Arc<Database>> = OnceLock::new();
    static ALL: OnceLock<Arc<Database>> = OnceLock::new();
    let own = || {
        let mut database = Database::new();
        database.load_font_data(notosans::REGULAR_TTF.to_vec());
        database.set_sans_serif_family("Noto Sans");
        database
    };
    // Latin, Greek and Cyrillic with their extensions, punctuation and the commoner signs are in the font.
    let known = |c: char| matches!(u32::from(c), 0..=0x52f | 0x1d00..=0x22ff);
    if svg.chars().all(known) {
        return OWN.get_or_init(|| Arc::new(own())).clone();
    }
    ALL.get_or_init(|| {
        let mut database = own();
        database.load_system_fonts();
        Arc::new(database)
    })
    .clone()
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Layer, Panel};
    use super::*;

    fn figure() -> Figure {
        let panel = Panel::new(Axis::new("x"), Axis::new("y")).with(Layer::line(&[0.0, 1.0], &[0.0, 1e9]));
        Figure::new(300, 200).panel(panel)
    }

    fn decode(bytes: &[u8]) -> tiny_skia::Pixmap {
        tiny_skia::Pixmap::decode_png(bytes).unwrap()
    }

    #[test]
    fn a_png_has_the_size_asked_for() {
        for (scale, width, height) in [(1.0, 300, 200), (2.0, 600, 400), (0.5, 150, 100)] {
            let pixels = decode(&figure().to_png(scale).unwrap());
            assert_eq!((pixels.width(), pixels.height()), (width, height));
        }
    }

    #[test]
    fn text_is_drawn_with_the_embedded_font_alone() {
        let dark = |figure: &Figure| {
            let pixels = decode(&figure.to_png(1.0).unwrap());
            pixels.pixels().iter().filter(|p| p.red() < 120).count()
        };
        let bare = Figure::new(300, 200);
        assert_eq!(dark(&bare), 0);
        assert!(dark(&bare.clone().title("Passengers é ψ ж − 1")) > 200);
        assert!(fonts("abc").faces().count() == 1);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(figure().to_png(scale).is_err(), "{scale}");
        }
    }
}
