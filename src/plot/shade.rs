//! Values of an image to colours, and the image to few paths: one path for each shade, of runs of equal cells. So an
//! image is vector data like the rest, needs no decoder, and shows no seams.

use super::axis::{extent, usable};
use super::figure::{Image, Shades};

/// Shades that an image is rounded to.
const LEVELS: usize = 128;
/// Cells along a side beyond which neighbours are averaged.
const MOST: usize = 512;

/// What a missing cell looks like: a pale tint that no scale has.
const BLANK: (u8, u8, u8) = (250, 225, 205);

impl Shades {
    /// The colour of a value between 0 and 1.
    pub(crate) fn colour(self, value: f64) -> (u8, u8, u8) {
        let stops: &[(u8, u8, u8)] = match self {
            Shades::Grey => &[(0, 0, 0), (255, 255, 255)],
            // Viridis at five points.
            Shades::Heat => &[(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)],
            Shades::Signed => &[(0, 72, 130), (110, 175, 215), (248, 248, 248), (240, 150, 90), (165, 60, 0)],
        };
        let at = value.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let i = (at as usize).min(stops.len() - 2);
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * (at - i as f64)).round() as u8;
        let (a, b) = (stops[i], stops[i + 1]);
        (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
    }
}

/// A run of equal cells: row, first column, and the column after the last.
pub(crate) type Run = (usize, usize, usize);

/// An image made ready to draw: its size in cells, and for every colour the runs that have it.
pub(crate) struct Shaded {
    pub rows: usize,
    pub columns: usize,
    pub colours: Vec<((u8, u8, u8), Vec<Run>)>,
}

impl Image {
    /// Averages down to at most 512 cells a side, rounds to shades, and gathers runs.
    pub(crate) fn shaded(&self) -> Shaded {
        let (rows, columns, values) = self.reduced(MOST, MOST);
        let (low, high) = self.shade_range();
        let level = |v: &f64| match usable(*v) {
            false => LEVELS,
            true if high > low => (((v - low) / (high - low)).clamp(0.0, 1.0) * (LEVELS - 1) as f64).round() as usize,
            true => LEVELS / 2,
        };
        let levels: Vec<usize> = values.iter().map(level).collect();
        let mut colours: Vec<((u8, u8, u8), Vec<Run>)> =
            (0..LEVELS).map(|i| (self.shades.colour(i as f64 / (LEVELS - 1) as f64), Vec::new())).collect();
        colours.push((BLANK, Vec::new()));
        for (row, line) in levels.chunks(columns.max(1)).enumerate() {
            let mut first = 0;
            for column in 1..=line.len() {
                if line.get(column) != line.get(first) {
                    colours[line[first]].1.push((row, first, column));
                    first = column;
                }
            }
        }
        colours.retain(|(_, runs)| !runs.is_empty());
        Shaded { rows, columns, colours }
    }

    /// The values that get the first and the last shade.
    pub(crate) fn shade_range(&self) -> (f64, f64) {
        let given = self.range.filter(|r| usable(r.0) && usable(r.1) && r.0 < r.1);
        let found = || extent(self.values.iter().copied()).unwrap_or((0.0, 1.0));
        match (given, self.shades) {
            (Some(range), _) => range,
            (None, Shades::Signed) => {
                let (low, high) = found();
                let size = low.abs().max(high.abs());
                (-size, size)
            }
            (None, _) => found(),
        }
    }

    /// The image with at most so many rows and columns, each cell the mean of those it covers.
    pub(crate) fn reduced(&self, most_rows: usize, most_columns: usize) -> (usize, usize, Vec<f64>) {
        // A list shorter than the image shows what there is, without reserving room for what is not.
        let columns = self.columns.min(self.values.len());
        let rows = self.rows.min(self.values.len().div_ceil(columns.max(1)));
        let (tall, wide) = (rows.div_ceil(most_rows.max(1)).max(1), columns.div_ceil(most_columns.max(1)).max(1));
        let (out_rows, out_columns) = (rows.div_ceil(tall), columns.div_ceil(wide));
        let mut out = Vec::with_capacity(out_rows * out_columns);
        for row in 0..out_rows {
            for column in 0..out_columns {
                let (mut sum, mut count) = (0.0, 0.0);
                for i in row * tall..((row + 1) * tall).min(rows) {
                    for j in column * wide..((column + 1) * wide).min(columns) {
                        let value = self.values.get(i * self.columns + j).copied().unwrap_or(f64::NAN);
                        if usable(value) {
                            sum += value;
                            count += 1.0;
                        }
                    }
                }
                out.push(if count > 0.0 { sum / count } else { f64::NAN });
            }
        }
        (out_rows, out_columns, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::{Layer, Mark};
    use super::*;

    fn image(rows: usize, columns: usize, values: &[f64]) -> Image {
        match Layer::image(rows, columns, values).mark {
            Mark::Image(image) => image,
            _ => unreachable!(),
        }
    }

    #[test]
    fn every_cell_is_in_one_run() {
        let values: Vec<f64> = (0..12).map(|i| if i == 5 { f64::NAN } else { f64::from(i % 3) }).collect();
        let shaded = image(3, 4, &values).shaded();
        let mut seen = [0; 12];
        for (_, runs) in &shaded.colours {
            for &(row, first, end) in runs {
                (first..end).for_each(|c| seen[row * 4 + c] += 1);
            }
        }
        assert!(seen.iter().all(|n| *n == 1));
        assert_eq!(shaded.colours.len(), 4);
    }

    #[test]
    fn odd_images_do_not_panic() {
        for (rows, columns) in [(0, 0), (0, 5), (5, 0), (usize::MAX, usize::MAX), (1, 1), (600, 700)] {
            for values in [vec![], vec![1.0; 7], vec![f64::NAN; 3]] {
                image(rows, columns, &values).shaded();
            }
        }
        let (rows, columns, values) = image(1000, 600, &vec![2.0; 600_000]).reduced(512, 512);
        assert_eq!((rows, columns), (500, 300));
        assert!(values.iter().all(|v| *v == 2.0));
    }
}
