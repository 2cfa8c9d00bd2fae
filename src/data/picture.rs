//! Pictures in and out as PNG: pixels become grids of one or three channels between 0 and 1. The only file that names
//! the `png` crate.

use std::io::Cursor;
use std::path::Path;

use super::Grid;
use crate::error::{Error, ErrorKind, Result};

/// The most bytes of pixels a picture may have.
const MOST: usize = 1 << 30;

/// Rows by columns of pixels: one channel if grey, three if coloured, values between 0 and 1.
///
/// ```
/// use covary::data::Picture;
/// let picture = Picture::new(2, 3, vec![vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]])?;
/// let again = Picture::from_png(&picture.to_png()?, "a picture")?;
/// assert_eq!(again.channels()[0][5], 1.0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    height: usize,
    width: usize,
    channels: Vec<Vec<f64>>,
    transparent: Vec<bool>,
}

fn unreadable(file: &Path, found: impl ToString) -> Error {
    let kind = ErrorKind::Unreadable { file: file.into(), what: "a PNG picture", found: found.to_string() };
    Error::new(kind).with_hint("save it as PNG, 8 or 16 bits, grey or coloured")
}

impl Picture {
    /// A picture of these channels, one or three, without transparent pixels.
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn new(height: usize, width: usize, channels: Vec<Vec<f64>>) -> Result<Self> {
        if channels.len() != 1 && channels.len() != 3 {
            return Err(ErrorKind::Size { what: "channels of a picture", expected: 3, found: channels.len() }.into());
        }
        let pixels = height.saturating_mul(width);
        if let Some(other) = channels.iter().find(|c| c.len() != pixels) {
            return Err(ErrorKind::Size { what: "pixels", expected: pixels, found: other.len() }.into());
        }
        Ok(Self { height, width, channels, transparent: vec![false; pixels] })
    }

    /// Reads a PNG file.
    ///
    /// # Errors
    /// When it cannot be read or is no PNG picture.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| ErrorKind::Io { path: path.into(), source })?;
        Self::from_png(&bytes, path)
    }

    /// A picture from the bytes of a PNG file, called `name` in messages.
    ///
    /// # Errors
    /// When they are no PNG picture.
    pub fn from_png(bytes: &[u8], name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref();
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MOST });
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().map_err(|e| unreadable(name, e))?;
        let size = reader.output_buffer_size().filter(|&n| n <= MOST);
        let mut buffer = vec![0; size.ok_or_else(|| unreadable(name, "it is too large"))?];
        let info = reader.next_frame(&mut buffer).map_err(|e| unreadable(name, e))?;
        let (height, width) = (info.height as usize, info.width as usize);
        let samples: Vec<f64> = match info.bit_depth {
            png::BitDepth::Sixteen => buffer[..info.buffer_size()]
                .chunks_exact(2)
                .map(|b| f64::from(u16::from_be_bytes([b[0], b[1]])) / 65535.0)
                .collect(),
            _ => buffer[..info.buffer_size()].iter().map(|&b| f64::from(b) / 255.0).collect(),
        };
        let (colours, alpha) = match info.color_type {
            png::ColorType::Grayscale => (1, false),
            png::ColorType::GrayscaleAlpha => (1, true),
            png::ColorType::Rgb => (3, false),
            png::ColorType::Rgba => (3, true),
            png::ColorType::Indexed => return Err(unreadable(name, "its palette is missing")),
        };
        let each = colours + usize::from(alpha);
        if samples.len() != height * width * each {
            return Err(unreadable(name, "it ends too early"));
        }
        let channel = |c: usize| samples.iter().skip(c).step_by(each).copied().collect::<Vec<f64>>();
        let transparent =
            if alpha { channel(colours).iter().map(|a| *a < 0.5).collect() } else { vec![false; height * width] };
        Ok(Self { height, width, channels: (0..colours).map(channel).collect(), transparent })
    }

    /// The picture as a PNG file of 8 bits a channel; values beyond 0 and 1 are cut off.
    ///
    /// # Errors
    /// When it is too large for the format.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let failed = |e: &dyn std::fmt::Display| Error::option("picture", format!("it cannot be written: {e}"));
        let side = |n: usize| u32::try_from(n).map_err(|e| failed(&e));
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side(self.width)?, side(self.height)?);
        encoder.set_color(if self.channels.len() == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
        encoder.set_depth(png::BitDepth::Eight);
        let mut data = Vec::with_capacity(self.height * self.width * self.channels.len());
        for i in 0..self.height * self.width {
            data.extend(self.channels.iter().map(|c| (c[i].clamp(0.0, 1.0) * 255.0).round() as u8));
        }
        let mut writer = encoder.write_header().map_err(|e| failed(&e))?;
        writer.write_image_data(&data).map_err(|e| failed(&e))?;
        writer.finish().map_err(|e| failed(&e))?;
        Ok(bytes)
    }

    /// Rows of pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns of pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One channel if grey, three (red, green, blue) if coloured; row by row.
    pub fn channels(&self) -> &[Vec<f64>] {
        &self.channels
    }

    /// Which pixels are more transparent than not.
    pub fn transparent(&self) -> &[bool] {
        &self.transparent
    }

    /// How light each pixel is: 0.299 red + 0.587 green + 0.114 blue.
    pub fn grey(&self) -> Vec<f64> {
        match &self.channels[..] {
            [r, g, b] => (0..r.len()).map(|i| 0.299 * r[i] + 0.587 * g[i] + 0.114 * b[i]).collect(),
            channels => channels[0].clone(),
        }
    }

    /// The same picture without colour.
    #[must_use]
    pub fn to_grey(&self) -> Self {
        Self { channels: vec![self.grey()], ..self.clone() }
    }

    /// The grid of its pixels, of which the hidden and the transparent ones are missing. Channels that are the same
    /// everywhere count once.
    ///
    /// # Errors
    /// When the mask has another size; as [`Grid::new`].
    pub fn grid(&self, hidden: &[bool]) -> Result<Grid> {
        if hidden.len() != self.transparent.len() {
            let (expected, found) = (self.transparent.len(), hidden.len());
            return Err(ErrorKind::Size { what: "pixels of the mask", expected, found }.into());
        }
        let observed = hidden.iter().zip(&self.transparent).map(|(h, t)| !h && !t).collect();
        let same = self.channels.iter().all(|c| *c == self.channels[0]);
        let channels = if same { self.channels[..1].to_vec() } else { self.channels.clone() };
        Grid::picture(self.height, self.width, channels, observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_back_as_they_went() {
        for colours in [1, 3] {
            let channels: Vec<Vec<f64>> =
                (0..colours).map(|c| (0..12).map(|i| f64::from(20 * i + c) / 255.0).collect()).collect();
            let picture = Picture::new(3, 4, channels).unwrap();
            assert_eq!(Picture::from_png(&picture.to_png().unwrap(), "p").unwrap(), picture);
        }
        let grey = Picture::new(1, 1, vec![vec![1.0], vec![0.5], vec![0.0]]).unwrap().grey()[0];
        assert!((grey - 0.5925).abs() < 1e-12);
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = Picture::new(3, 4, vec![vec![0.3; 12]]).unwrap().to_png().unwrap();
        for end in 0..good.len() - 12 {
            assert!(Picture::from_png(&good[..end], "p").is_err(), "cut at {end}");
        }
        let error = Picture::from_png(b"hello", "p.png").unwrap_err();
        assert!(error.to_string().starts_with("p.png: not a PNG picture"), "{error}");
    }
}
