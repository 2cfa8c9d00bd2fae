//! Text tables: delimiter and quotes are detected, the header is required, and every complaint names the line. A cell
//! is a number, a missing value or text; what a whole column is follows from its cells.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};

use super::choice::counted;
use super::source::first_bytes;
use super::table::{Cells, Column, ReadOptions, Table, check_names};
use super::texts::Texts;
use super::time::{are_times, looks_like_epoch_nanoseconds};
use crate::error::{Error, ErrorKind, Result, Row};

const MISSING: [&str; 13] = ["", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "-", ".", "?"];

/// Reads a text table piece by piece.
pub(super) struct CsvReader {
    reader: csv::Reader<Box<dyn Read + Send>>,
    file: PathBuf,
    names: Vec<String>,
    notes: Vec<String>,
    options: ReadOptions,
    decimal_comma: bool,
}

/// The cells of some rows as text, row after row in one string.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raw {
    cells: Texts,
    width: usize,
}

impl Raw {
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        self.cells[row * self.width + column].trim()
    }
}

impl CsvReader {
    pub(super) fn new(mut from: Box<dyn Read + Send>, file: &Path, options: &ReadOptions) -> Result<Self> {
        let io = |source| Error::new(ErrorKind::Io { path: file.into(), source });
        let head = first_bytes(&mut from, 1 << 16).map_err(io)?;
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err(ErrorKind::EmptyFile { file: file.into() }.into());
        }
        if head.contains(&0) {
            return Err(ErrorKind::NotATable { file: file.into(), found: "binary data".into() }.into());
        }
        let quote = options.quote.unwrap_or_else(|| detect_quote(&head));
        let delimiter = options.delimiter.unwrap_or_else(|| detect_delimiter(&head, quote));
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .quote(quote)
            .buffer_capacity(1 << 17)
            .from_reader(Box::new(Cursor::new(head).chain(from)) as Box<dyn Read + Send>);
        let decimal_comma = delimiter == b';';
        let (file, options) = (file.to_path_buf(), options.clone());
        let mut table = Self { reader, file, names: Vec::new(), notes: Vec::new(), options, decimal_comma };
        table.read_header()?;
        Ok(table)
    }

    fn read_header(&mut self) -> Result<()> {
        let mut record = ByteRecord::new();
        let Some(row) = self.next(&mut record)? else {
            return Err(ErrorKind::EmptyFile { file: self.file.clone() }.into());
        };
        let mut blank = 0;
        for (i, cell) in record.iter().enumerate() {
            let name = self.utf8(cell, row)?.trim().to_string();
            blank += usize::from(name.is_empty());
            self.names.push(if name.is_empty() { format!("column_{}", i + 1) } else { name });
        }
        if self.names.iter().all(|n| self.number(n).is_some()) {
            let found = self.names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let kind = ErrorKind::NoHeader { file: self.file.clone(), found };
            return Err(Error::new(kind).with_hint("add a first line with a name for each column"));
        }
        if blank > 0 {
            self.notes
                .push(format!("{} without a name, called `column_` and their position", counted(blank, "column")));
        }
        check_names(self.names.iter().map(String::as_str), &self.file)
    }

    /// The next rows, at most `most` of them and no more once they have so many bytes; nothing at the end.
    pub(super) fn chunk(&mut self, most: usize, bytes: usize) -> Result<Option<Table>> {
        let width = self.names.len();
        let mut raw = Raw { cells: Texts::default(), width };
        let (mut rows, mut record) = (Vec::new(), ByteRecord::new());
        while rows.len() < most && raw.cells.bytes() < bytes {
            let Some(row) = self.next(&mut record)? else { break };
            if record.len() != width {
                let (expected, found) = (width, record.len());
                let error = Error::new(ErrorKind::Ragged { file: self.file.clone(), row, expected, found });
                return Err(error.with_hint("look for a missing delimiter or an unclosed quote there"));
            }
            for cell in &record {
                raw.cells.push(self.utf8(cell, row)?);
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let only = &self.options.only;
        let read = |c: &usize| only.is_empty() || only.contains(&self.names[*c]);
        let columns = (0..width).filter(read).map(|c| self.column(&raw, rows.len(), c)).collect();
        let table = Table::assemble(&self.file, rows, columns, self.notes.clone());
        Ok(Some(if only.is_empty() { table } else { table.with_written(self.names.clone(), raw) }))
    }

    /// Reads one record that is not blank, and says where it stands.
    fn next(&mut self, record: &mut ByteRecord) -> Result<Option<Row>> {
        let more = self.reader.read_byte_record(record).map_err(|e| {
            let source = if e.is_io_error() { io::Error::from(e) } else { io::Error::other(e) };
            let cut = source.kind() == io::ErrorKind::UnexpectedEof;
            let error = Error::new(ErrorKind::Io { path: self.file.clone(), source });
            if cut { error.with_hint("the file is cut short") } else { error }
        })?;
        // Every record ends with one line feed, so its first line follows from where it ended; where it was looked for
        // is no guide, for blank lines may come between.
        let inside = record.as_slice().iter().filter(|b| **b == b'\n').count() as u64;
        let line = self.reader.position().line().saturating_sub(1 + inside);
        let sought = record.position().map_or(1, csv::Position::line);
        Ok(more.then_some(Row::Line(line.max(sought))))
    }

    fn utf8<'a>(&self, cell: &'a [u8], row: Row) -> Result<&'a str> {
        std::str::from_utf8(cell).map_err(|_| {
            let error = Error::new(ErrorKind::NotUtf8 { file: self.file.clone(), row });
            error.with_hint("save the file as UTF-8")
        })
    }

    fn is_missing(&self, cell: &str) -> bool {
        cell.len() <= 4 && MISSING.iter().any(|w| w.eq_ignore_ascii_case(cell))
            || self.options.missing_words.iter().any(|w| w == cell)
    }

    /// The number a cell holds, infinite ones included; with semicolons between cells a comma may be the point.
    fn number(&self, cell: &str) -> Option<f64> {
        let dotted =
            if self.decimal_comma && !cell.contains('.') { cell.replacen(',', ".", 1) } else { String::new() };
        let text = if dotted.is_empty() { cell } else { &dotted };
        text.parse::<f64>().ok().filter(|v| !v.is_nan())
    }

    /// The numbers of a column, up to the first cell that holds neither a number nor nothing.
    fn numbers(&self, raw: &Raw, n: usize, c: usize) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(n);
        for cell in (0..n).map(|i| raw.cell(i, c)) {
            // Most cells are numbers; only a word of the user's own can be one and mean nothing.
            match self.number(cell) {
                Some(value) if self.options.missing_words.is_empty() || !self.is_missing(cell) => numbers.push(value),
                _ if self.is_missing(cell) => numbers.push(f64::NAN),
                _ => break,
            }
        }
        numbers
    }

    fn column(&self, raw: &Raw, n: usize, c: usize) -> Column {
        let name = self.names[c].clone();
        let forced = self.options.text.contains(&name);
        let numbers = if forced { Vec::new() } else { self.numbers(raw, n, c) };
        let first = (0..n).find(|&i| numbers.get(i).is_some_and(|v| !v.is_nan()));
        let long = first.is_some_and(|i| looks_like_epoch_nanoseconds(raw.cell(i, c)));
        if numbers.len() == n && !long && !forced {
            return Column::new(name, Cells::Numbers(numbers));
        }
        let present: Texts =
            (0..n).map(|i| raw.cell(i, c)).map(|s| if self.is_missing(s) { "" } else { s }).collect();
        if forced {
            return Column::forced_text(name, present);
        }
        let filled: Vec<&str> = present.iter().filter(|s| !s.is_empty()).collect();
        if numbers.len() == n && !filled.iter().all(|s| looks_like_epoch_nanoseconds(s)) {
            return Column::new(name, Cells::Numbers(numbers));
        }
        Column::new(name, if are_times(&filled) { Cells::Times(present) } else { Cells::Text(present) })
    }
}

/// The single quote if cells are wrapped in it and no double quote is in sight.
fn detect_quote(head: &[u8]) -> u8 {
    let edge = |b: Option<&u8>| b.is_none_or(|b| matches!(b, b',' | b';' | b'\t' | b'|' | b'\r' | b'\n'));
    let opens = head.iter().enumerate().any(|(i, b)| *b == b'\'' && edge(i.checked_sub(1).and_then(|j| head.get(j))));
    let closes = head.iter().enumerate().any(|(i, b)| *b == b'\'' && edge(head.get(i + 1)));
    if opens && closes && !head.contains(&b'"') { b'\'' } else { b'"' }
}

/// The delimiter that occurs equally often in every line, else the most frequent of the first line, else a comma.
fn detect_delimiter(head: &[u8], quote: u8) -> u8 {
    const CANDIDATES: [u8; 4] = [b',', b'\t', b';', b'|'];
    let (mut lines, mut counts, mut quoted, mut blank) = (Vec::new(), [0_usize; 4], false, true);
    for &b in head {
        quoted ^= b == quote;
        if b == b'\n' && !quoted {
            if !blank {
                lines.push(counts);
            }
            (counts, blank) = ([0; 4], true);
            if lines.len() == 50 {
                break;
            }
            continue;
        }
        blank &= b.is_ascii_whitespace();
        if let Some(c) = CANDIDATES.iter().position(|d| *d == b).filter(|_| !quoted) {
            counts[c] += 1;
        }
    }
    if lines.is_empty() {
        lines.push(counts);
    }
    let steady = |c: &usize| lines.iter().all(|l| l[*c] == lines[0][*c]);
    let best = |of: Vec<usize>| of.into_iter().filter(|c| lines[0][*c] > 0).max_by_key(|c| (lines[0][*c], 4 - c));
    let found = best((0..4).filter(steady).collect()).or_else(|| best((0..4).collect()));
    found.map_or(b',', |c| CANDIDATES[c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_and_quotes_are_detected() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("a\tb\n1\t2\n", b'\t'),
            ("a|b\n", b'|'),
            ("\"x;y\",b\n1,2\n", b','),
            ("alone\n1\n", b','),
            ("a,b;c\n1,2;3\n", b','),
        ] {
            assert_eq!(detect_delimiter(text.as_bytes(), b'"') as char, expected as char, "{text}");
        }
        assert_eq!(detect_quote(b"'a','b'\n"), b'\'');
        assert_eq!(detect_quote(b"it's,b\n"), b'"');
    }

    #[test]
    fn blank_lines_do_not_shift_line_numbers() {
        let text = b"a,b\n\n1,2\n\n\n\"3\n\",4,5\n".to_vec();
        let mut reader =
            CsvReader::new(Box::new(Cursor::new(text)), Path::new("t"), &ReadOptions::default()).unwrap();
        let error = reader.chunk(10, 100).unwrap_err();
        assert_eq!(error.to_string(), "t, line 6: cells found: 3, columns of the header: 2");
    }
}
