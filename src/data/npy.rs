//! NumPy `.npy` files become grids: float or byte arrays of two or more dimensions, in C order. Missing cells are NaN.

use std::path::Path;

use super::Grid;
use crate::error::{Error, ErrorKind, Result};

/// The most bytes a header may have; NumPy's own are below a hundred.
const HEADER: usize = 1 << 16;

impl Grid {
    /// A grid from a `.npy` file of two or more dimensions; the axes are the indices 0, 1, …, NaN is a missing cell.
    ///
    /// # Errors
    /// When the file cannot be read or is no array of f4, f8 or u1 in C order; as [`Grid::new`].
    pub fn from_npy(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| ErrorKind::Io { path: path.into(), source })?;
        let array = |found: String| {
            let kind = ErrorKind::Unreadable { file: path.into(), what: "an array this program reads", found };
            Error::new(kind).with_hint("numpy.save(file, numpy.ascontiguousarray(a, dtype=float)) writes one")
        };
        let (shape, values) = parse(&bytes).map_err(array)?;
        let axes = shape.iter().map(|&n| (0..n).map(|i| i as f64).collect()).collect();
        Self::new(axes, vec![values])
    }
}

/// Shape and values, or what is wrong.
fn parse(bytes: &[u8]) -> Result<(Vec<usize>, Vec<f64>), String> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("it does not begin as .npy files do")?;
    let (length, body) = match rest {
        [1, _, a, b, body @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), body),
        [2 | 3, _, a, b, c, d, body @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, body),
        [version, ..] => return Err(format!("version {version} of the format")),
        [] => return Err("it ends in its header".into()),
    };
    if length > HEADER || body.len() < length {
        return Err("it ends in its header".into());
    }
    let (header, data) = body.split_at(length);
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    if field(header, "fortran_order")?.starts_with("True") {
        return Err("in Fortran order".into());
    }
    let kind = field(header, "descr")?;
    let kind: String = kind.trim_start_matches(['\'', '"']).chars().take_while(|c| !"'\"".contains(*c)).collect();
    let inside = field(header, "shape")?.strip_prefix('(').and_then(|s| s.split(')').next());
    let inside = inside.ok_or("its header has no shape")?;
    let mut shape = Vec::new();
    for part in inside.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        shape.push(part.parse::<usize>().map_err(|_| format!("its shape is no list of numbers: {inside}"))?);
    }
    let cells = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k)).ok_or("its shape is too large")?;
    let width = match kind.as_str() {
        "<f8" | ">f8" => 8,
        "<f4" | ">f4" => 4,
        "|u1" | "<u1" => 1,
        other => return Err(format!("numbers of type {other}")),
    };
    if cells.checked_mul(width) != Some(data.len()) {
        return Err(format!("{} bytes of values for shape ({inside})", data.len()));
    }
    let big = kind.starts_with('>');
    let values = data.chunks_exact(width).map(|c| match (c, big) {
        (&[a], _) => f64::from(a),
        (&[a, b, c, d], false) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (&[a, b, c, d], true) => f64::from(f32::from_be_bytes([a, b, c, d])),
        (c, big) => {
            let mut all = [0; 8];
            all.copy_from_slice(c);
            if big { f64::from_be_bytes(all) } else { f64::from_le_bytes(all) }
        }
    });
    Ok((shape, values.collect()))
}

/// What stands after a key of the header's dictionary.
fn field<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let missing = || format!("its header has no {key}");
    let at = header.find(&format!("'{key}'")).ok_or_else(missing)?;
    let after = &header[at + key.len() + 2..];
    Ok(after.trim_start().strip_prefix(':').ok_or_else(missing)?.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::to_le_bytes(header.len() as u16));
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn arrays_of_every_kind_are_read() {
        let floats: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let bytes = file("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }\n", &floats);
        assert_eq!(parse(&bytes).unwrap(), (vec![2, 1], vec![1.5, -2.0]));
        let floats: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let bytes = file("{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), }\n", &floats);
        assert_eq!(parse(&bytes).unwrap(), (vec![1, 2], vec![1.5, -2.0]));
        let bytes = file("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", &[0, 7, 255]);
        assert_eq!(parse(&bytes).unwrap(), (vec![3], vec![0.0, 7.0, 255.0]));
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let good = file("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", &[0, 7, 255, 1]);
        for end in 0..good.len() {
            assert!(parse(&good[..end]).is_err(), "cut at {end}");
        }
        for (header, says) in [
            ("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }", "type <i8"),
            ("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "Fortran"),
            ("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", "too large"),
            ("{'descr': '|u1', 'fortran_order': False, 'shape': 4, }", "no shape"),
            ("{'descr': '|u1', 'fortran_order': False}", "no shape"),
        ] {
            let error = parse(&file(header, &[0, 7, 255, 1])).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
