//! Parquet and Arrow IPC: batches of typed columns become the same [`Table`] that text does. Times become ISO text, so
//! there is one way to read a time.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::source::Seekable;
use super::table::{Cells, Column, Table, check_names};
use super::texts::Texts;
use crate::error::{Error, ErrorKind, Result, Row};

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Reads batches of columns piece by piece.
pub(super) struct ColumnarReader {
    batches: Batches,
    file: PathBuf,
    row: u64,
    /// What is left of a batch that was larger than the piece asked for.
    rest: Option<RecordBatch>,
}

/// Anything that both readers can seek in.
trait Bytes: Read + Seek + Send {}
impl<T: Read + Seek + Send> Bytes for T {}

impl ColumnarReader {
    pub(super) fn parquet(from: Seekable<File>, file: &Path) -> Result<Self> {
        guarded(file, || Self::parquet_unguarded(from, file))
    }

    fn parquet_unguarded(from: Seekable<File>, file: &Path) -> Result<Self> {
        let damaged =
            |e: &dyn std::fmt::Display| not_a_table(file, format!("a Parquet file that cannot be read: {e}"));
        const ROWS: usize = 16_384;
        let batches: Batches = match from {
            Seekable::File(f) => {
                let builder = ParquetRecordBatchReaderBuilder::try_new(f).map_err(|e| damaged(&e))?;
                Box::new(builder.with_batch_size(ROWS).build().map_err(|e| damaged(&e))?)
            }
            Seekable::Memory(bytes) => {
                let bytes = bytes::Bytes::from(bytes);
                let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| damaged(&e))?;
                Box::new(builder.with_batch_size(ROWS).build().map_err(|e| damaged(&e))?)
            }
        };
        Ok(Self { batches, file: file.into(), row: 0, rest: None })
    }

    pub(super) fn arrow(from: Seekable<File>, file: &Path) -> Result<Self> {
        guarded(file, || Self::arrow_unguarded(from, file))
    }

    fn arrow_unguarded(from: Seekable<File>, file: &Path) -> Result<Self> {
        let damaged =
            |e: &dyn std::fmt::Display| not_a_table(file, format!("an Arrow file that cannot be read: {e}"));
        let mut bytes: Box<dyn Bytes> = match from {
            Seekable::File(f) => Box::new(BufReader::new(f)),
            Seekable::Memory(bytes) => Box::new(Cursor::new(bytes)),
        };
        let mut head = Vec::new();
        let rewound = bytes.rewind().and_then(|()| bytes.by_ref().take(6).read_to_end(&mut head));
        rewound.and_then(|_| bytes.seek(SeekFrom::Start(0))).map_err(|e| damaged(&e))?;
        let batches: Batches = if head == b"ARROW1" {
            Box::new(FileReader::try_new(bytes, None).map_err(|e| damaged(&e))?)
        } else {
            Box::new(StreamReader::try_new(bytes, None).map_err(|e| damaged(&e))?)
        };
        Ok(Self { batches, file: file.into(), row: 0, rest: None })
    }

    /// The next rows, at most `most` of them; nothing at the end.
    pub(super) fn chunk(&mut self, most: usize) -> Result<Option<Table>> {
        let file = self.file.clone();
        guarded(&file, || self.chunk_unguarded(most))
    }

    fn chunk_unguarded(&mut self, most: usize) -> Result<Option<Table>> {
        let (mut parts, mut n) = (Vec::new(), 0);
        while n < most {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match self.batches.next() {
                    Some(batch) => {
                        batch.map_err(|e| not_a_table(&self.file, format!("damaged after row {}: {e}", self.row)))?
                    }
                    None => break,
                },
            };
            let take = batch.num_rows().min(most - n);
            if take < batch.num_rows() {
                self.rest = Some(batch.slice(take, batch.num_rows() - take));
            }
            n += take;
            parts.push(batch.slice(0, take));
        }
        let Some(first) = parts.first().filter(|_| n > 0) else { return Ok(None) };
        let schema = first.schema();
        check_names(schema.fields().iter().map(|f| f.name().as_str()), &self.file)?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (c, field) in schema.fields().iter().enumerate() {
            let arrays = parts.iter().map(|p| p.column(c));
            columns.push(Column::new(field.name().clone(), self.cells(field.name(), arrays)?));
        }
        let rows = (self.row + 1..=self.row + n as u64).map(Row::Row).collect();
        self.row += n as u64;
        Ok(Some(Table::assemble(&self.file, rows, columns, Vec::new())))
    }

    fn cells<'a>(&self, name: &str, arrays: impl Iterator<Item = &'a ArrayRef>) -> Result<Cells> {
        let (mut numbers, mut text, mut times) = (Vec::new(), Texts::default(), false);
        for array in arrays {
            let bad = |e: ArrowError| not_a_table(&self.file, format!("column `{name}`: {e}"));
            match values_of(array.data_type()) {
                DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                    times = true;
                    text.extend(written_times(array).map_err(bad)?);
                }
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
                    let cells = cast(array, &DataType::Utf8).map_err(bad)?;
                    text.extend(cells.as_string::<i32>().iter().map(|v| v.unwrap_or_default().trim()));
                }
                kind if kind.is_numeric() || *kind == DataType::Null => {
                    let cells = cast(array, &DataType::Float64).map_err(bad)?;
                    numbers.extend(cells.as_primitive::<Float64Type>().iter().map(|v| v.unwrap_or(f64::NAN)));
                }
                // A column of lists or structs does no harm until it is used.
                kind => text.extend(vec![format!("({kind})"); array.len()]),
            }
        }
        Ok(match (text.is_empty(), times) {
            (true, _) => Cells::Numbers(numbers),
            (false, true) => Cells::Times(text),
            (false, false) => Cells::Text(text),
        })
    }
}

/// The type of the values, also where they stand in a dictionary.
fn values_of(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Dates and timestamps as ISO text, empty where missing.
fn written_times(array: &ArrayRef) -> Result<Vec<String>, ArrowError> {
    let kind = values_of(array.data_type()).clone();
    let array = cast(array, &kind)?;
    let days = kind == DataType::Date32;
    let whole = if days {
        cast(&cast(&array, &DataType::Int32)?, &DataType::Int64)?
    } else {
        cast(&array, &DataType::Int64)?
    };
    let (scale, zone) = match &kind {
        DataType::Date32 => (86_400_000_000_000, None),
        DataType::Timestamp(TimeUnit::Second, zone) => (1_000_000_000, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => (1_000, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => (1, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => (1_000_000, zone.as_ref()),
        _ => (1_000_000, None),
    };
    let dates = matches!(kind, DataType::Date32 | DataType::Date64);
    let beyond = |v: i64| ArrowError::CastError(format!("a time beyond the calendar: {v}"));
    let write = |value: i64| -> Result<String, ArrowError> {
        let t = Timestamp::from_nanosecond(i128::from(value) * scale).map_err(|_| beyond(value))?;
        let pattern = match zone {
            _ if dates => "%Y-%m-%d",
            None => "%Y-%m-%dT%H:%M:%S%.f",
            Some(name) if name.contains('/') => "%Y-%m-%dT%H:%M:%S%.f%:z[%Q]",
            Some(_) => "%Y-%m-%dT%H:%M:%S%.f%:z",
        };
        let zone = zone.map_or(Ok(TimeZone::UTC), |name| time_zone(name))?;
        Ok(t.to_zoned(zone).strftime(pattern).to_string())
    };
    whole.as_primitive::<Int64Type>().iter().map(|v| v.map_or(Ok(String::new()), write)).collect()
}

/// A zone by name or offset, as Arrow writes it.
fn time_zone(name: &str) -> Result<TimeZone, ArrowError> {
    let offset = || jiff::fmt::strtime::parse("%:z", name).ok().and_then(|t| t.offset()).map(TimeZone::fixed);
    let unknown = || ArrowError::CastError(format!("unknown time zone: {name}"));
    TimeZone::get(name).ok().or_else(offset).ok_or_else(unknown)
}

/// The readers of these formats panic on some damaged files; that is an error like any other.
fn guarded<T>(file: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(not_a_table(file, "a damaged file".into())))
}

fn not_a_table(file: &Path, found: String) -> Error {
    ErrorKind::NotATable { file: file.into(), found }.into()
}
