//! From a path or a stream to bytes of a known format, told by their first bytes and not by the file's name.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::{Error, ErrorKind, Result};

/// Bytes whose format is known.
pub(super) enum Source<F> {
    /// Text, unpacked, from its first character, every line ended by one line feed.
    Text(Box<dyn Read + Send>),
    /// A Parquet file.
    Parquet(Seekable<F>),
    /// An Arrow IPC file or stream.
    Arrow(Seekable<F>),
}

/// Bytes that can be read from any place: a file, or what a stream gave.
#[cfg_attr(not(feature = "columnar"), allow(dead_code, reason = "only columnar formats look inside"))]
pub(super) enum Seekable<F> {
    File(F),
    Memory(Vec<u8>),
}

/// First bytes of things that people take for tables, and what to say about them.
const FOREIGN: [(&[u8], &str, &str); 7] = [
    (b"PK\x03\x04", "a zip archive or spreadsheet", "save the sheet as CSV"),
    (b"\xD0\xCF\x11\xE0", "an old spreadsheet", "save the sheet as CSV"),
    (b"\x28\xB5\x2F\xFD", "compressed with zstd", "unpack it first"),
    (b"BZh", "compressed with bzip2", "unpack it first"),
    (b"\xFD7zXZ", "compressed with xz", "unpack it first"),
    (b"\xFF\xFE", "UTF-16 text", "save it as UTF-8"),
    (b"\xFE\xFF", "UTF-16 text", "save it as UTF-8"),
];

pub(super) fn open_file(path: &Path) -> Result<Source<File>> {
    let io = |source| Error::new(ErrorKind::Io { path: path.into(), source });
    let mut file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        let kind = ErrorKind::NotATable { file: path.into(), found: "a directory".into() };
        return Err(Error::new(kind).with_hint("give the path of a file inside it"));
    }
    let head = first_bytes(&mut file, 8).map_err(io)?;
    match () {
        () if head.starts_with(b"PAR1") => Ok(Source::Parquet(Seekable::File(file))),
        () if is_arrow(&head) => Ok(Source::Arrow(Seekable::File(file))),
        () => text(Box::new(Cursor::new(head).chain(file)), path),
    }
}

pub(super) fn open_reader(mut reader: Box<dyn Read + Send>, name: &Path) -> Result<Source<File>> {
    let io = |source| Error::new(ErrorKind::Io { path: name.into(), source });
    let mut head = first_bytes(&mut reader, 8).map_err(io)?;
    let parquet = head.starts_with(b"PAR1");
    if parquet || is_arrow(&head) {
        reader.read_to_end(&mut head).map_err(io)?;
        let memory = Seekable::Memory(head);
        return Ok(if parquet { Source::Parquet(memory) } else { Source::Arrow(memory) });
    }
    text(Box::new(Cursor::new(head).chain(reader)), name)
}

/// A file begins with its name; a stream with the mark of a message and its length, which is never text.
fn is_arrow(head: &[u8]) -> bool {
    head.starts_with(b"ARROW1") || head.starts_with(b"\xFF\xFF\xFF\xFF")
}

fn text(mut reader: Box<dyn Read + Send>, name: &Path) -> Result<Source<File>> {
    let io = |source| Error::new(ErrorKind::Io { path: name.into(), source });
    let mut head = first_bytes(&mut reader, 8).map_err(io)?;
    if head.starts_with(b"\x1F\x8B") {
        let damaged = |source| {
            Error::new(ErrorKind::Io { path: name.into(), source }).with_hint("the gzip file is damaged or cut short")
        };
        reader = Box::new(MultiGzDecoder::new(Cursor::new(head).chain(reader)));
        head = first_bytes(&mut reader, 8).map_err(damaged)?;
    }
    for (magic, what, hint) in FOREIGN {
        if head.starts_with(magic) {
            let kind = ErrorKind::NotATable { file: name.into(), found: what.into() };
            return Err(Error::new(kind).with_hint(hint));
        }
    }
    if head.starts_with(b"\xEF\xBB\xBF") {
        head.drain(..3);
    }
    let inner = Cursor::new(head).chain(reader);
    Ok(Source::Text(Box::new(LineFeeds { inner, after_return: false, last: b'\n' })))
}

/// Text in which every line ends with one line feed, the last one too, however they ended before: so that lines can be
/// counted.
struct LineFeeds<R> {
    inner: R,
    after_return: bool,
    last: u8,
}

impl<R: Read> Read for LineFeeds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let n = self.inner.read(buffer)?;
            if n == 0 {
                let open = self.last != b'\n';
                (self.last, buffer[0]) = (b'\n', b'\n');
                return Ok(usize::from(open));
            }
            let mut kept = 0;
            for i in 0..n {
                let byte = buffer[i];
                let second = byte == b'\n' && self.after_return;
                self.after_return = byte == b'\r';
                if !second {
                    buffer[kept] = if byte == b'\r' { b'\n' } else { byte };
                    self.last = buffer[kept];
                    kept += 1;
                }
            }
            if kept > 0 {
                return Ok(kept);
            }
        }
    }
}

/// Up to `most` bytes, fewer only at the end.
pub(super) fn first_bytes(reader: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(most).read_to_end(&mut head)?;
    Ok(head)
}
