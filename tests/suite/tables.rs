//! Tables of every format come out the same, and an encoding applied again gives the same columns.

use std::io::{Cursor, Write};
use std::path::Path;

use covary::data::{Cells, Choice, Encoding, Missing, ReadOptions, Split, Stream, Table};
use covary::{Dataset, Error};

fn read(text: impl Into<Vec<u8>>) -> Table {
    Table::read(Cursor::new(text.into()), "t.csv", &ReadOptions::default()).unwrap()
}

/// The shared data, or nothing and a line that says so.
fn shared(path: &str) -> Option<std::path::PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(path);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn delimiters_quotes_marks_and_line_ends_do_not_matter() {
    let expected = read("name,size,day\na b,1.5,2020-01-01\nc,-2,2020-01-02\n");
    let gzip = {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"name,size,day\na b,1.5,2020-01-01\nc,-2,2020-01-02\n").unwrap();
        packed.finish().unwrap()
    };
    for text in [
        b"\xEF\xBB\xBFname,size,day\r\na b,1.5,2020-01-01\r\nc,-2,2020-01-02\r\n".to_vec(),
        b"name\tsize\tday\na b\t1.5\t2020-01-01\nc\t-2\t2020-01-02".to_vec(),
        b"name;size;day\n\"a b\";1,5;2020-01-01\nc;-2;2020-01-02\n\n".to_vec(),
        b"'name','size','day'\n'a b','1.5','2020-01-01'\n'c','-2','2020-01-02'\n".to_vec(),
        b"name| size |day\na b| 1.5|2020-01-01\nc|-2 |2020-01-02\n".to_vec(),
        gzip,
    ] {
        let table = read(text);
        assert_eq!(table.columns(), expected.columns());
    }
}

#[test]
fn a_row_limit_is_kept_and_said() {
    let options = ReadOptions { rows: Some(2), ..ReadOptions::default() };
    let table = Table::read(&b"x\n1\n2\n3\n"[..], "t", &options).unwrap();
    assert_eq!(table.n(), 2);
    assert_eq!(table.notes(), ["only the first 2 rows were read"]);
    assert!(Table::read(&b"x\n1\n2\n"[..], "t", &options).unwrap().notes().is_empty());
}

#[test]
fn an_encoding_gives_the_same_columns_again() {
    let train = read("colour,size,y\nred,1,1\nblue,2,2\nred,3,3\n");
    let data = Dataset::from_table(&train, &Choice::new("y")).unwrap();
    assert_eq!(data.inputs(), ["colour=blue", "colour=red", "size"]);
    let stored = serde_json::to_string(data.encoding()).unwrap();
    let encoding: Encoding = serde_json::from_str(&stored).unwrap();
    assert_eq!(&encoding, data.encoding());
    assert_eq!(&encoding.apply(&train, Missing::Error).unwrap().x, data.x());

    let other = read("extra,size,colour\n9,5,green\n9,6,blue\n");
    let encoded = encoding.apply(&other, Missing::Error).unwrap();
    assert_eq!(encoded.x.row(0), [0.0, 0.0, 5.0]);
    assert_eq!(encoded.x.row(1), [1.0, 0.0, 6.0]);
    assert_eq!(encoded.notes, ["column `colour`: 1 cell not seen in training, such as `green`"]);
    let missing = encoding.apply(&read("extra\n1\n2\n"), Missing::Error).unwrap_err();
    assert_eq!(missing.to_string(), "t.csv: columns missing: colour, size");
    let partly = encoding.apply(&read("size,colour\n5,red\n,red\n"), Missing::Impute).unwrap();
    assert_eq!(partly.x.row(1), [0.0, 1.0, 2.0]);
    let dropped = encoding.apply(&read("size,colour\n,red\n5,red\n"), Missing::Drop).unwrap();
    assert_eq!((dropped.x.n(), dropped.rows), (1, vec![1]));
}

#[test]
fn known_noise_is_a_column_of_standard_deviations() {
    let choice = Choice { noise: Some("error".into()), ..Choice::new("y") };
    let data = Dataset::from_table(&read("x,y,error\n1,2,0.5\n2,3,2\n"), &choice).unwrap();
    assert_eq!((data.d(), data.noise()), (1, Some(&[0.25, 4.0][..])));
}

#[test]
fn groups_are_the_series_of_a_long_table() {
    let table = read("id,month,y\nb,2020-01,1\na,2020-01,2\nb,2020-02,3\n");
    let groups = table.groups("id").unwrap();
    assert_eq!(groups, [("b".to_string(), vec![0, 2]), ("a".to_string(), vec![1])]);
    let (choice, _) = Choice::series(&table, None, None, Some("id")).unwrap();
    let data = Dataset::from_table(&table.select(&groups[0].1), &choice).unwrap();
    assert_eq!(data.y(), [1.0, 3.0]);
    assert_eq!(table.select(&[2]).place(0, "y").to_string(), "t.csv, line 4, column `y`");
}

#[test]
fn a_stream_gives_the_rows_of_the_table() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut text = String::from("c,x,y\n");
    for i in 0..1000 {
        // The second half has codes that look like numbers, and a category the first piece has not.
        let code = if i < 500 { ["a", "007"][i % 2] } else { ["007", "8"][i % 2] };
        text += &format!("{code},{},{}\n", i, i * i);
    }
    file.write_all(text.as_bytes()).unwrap();
    let options = ReadOptions { text: vec!["c".into()], ..ReadOptions::default() };
    let whole = Dataset::from_table(&Table::open(file.path(), &options).unwrap(), &Choice::new("y")).unwrap();
    let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 64).unwrap();
    assert_eq!(stream.encoding().names(), whole.inputs());
    for _ in 0..2 {
        let mut at = 0;
        for piece in stream.pass().unwrap() {
            let piece = piece.unwrap();
            assert_eq!(piece.x, whole.x().slice(at..at + piece.x.n()));
            assert_eq!(piece.y, whole.y()[at..at + piece.x.n()]);
            at += piece.x.n();
        }
        assert_eq!(at, 1000);
    }
    let predict = Stream::with(file.path(), &ReadOptions::default(), whole.encoding().clone(), 300).unwrap();
    let sizes: Vec<usize> = predict.pass().unwrap().map(|p| p.unwrap().x.n()).collect();
    assert_eq!(sizes, [300, 300, 300, 100]);
}

#[test]
fn the_example_is_the_published_series() -> Result<(), Error> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/airline.csv");
    let data = Dataset::from_csv(&here, "passengers")?;
    assert_eq!((data.n(), data.y()[0], data.y()[143], data.y().iter().sum::<f64>()), (144, 112.0, 432.0, 40363.0));
    assert_eq!(data.ahead_to(&"24".parse()?)?[23].1, "1962-12");
    if let Some(path) = shared("series/airline.csv") {
        assert_eq!(Dataset::from_csv(path, "passengers")?.y(), data.y());
    }
    Ok(())
}

#[test]
fn the_shared_tables_are_read() {
    for (name, n, d) in [
        ("boston", 506, 13),
        ("concrete", 1030, 8),
        ("energy", 768, 8),
        ("kin8nm", 8192, 8),
        ("naval", 11934, 17),
        ("power_plant", 9568, 4),
        ("wine", 1599, 11),
        ("yacht", 308, 6),
    ] {
        let Some(path) = shared(&format!("uci/{name}.csv")) else { return };
        let table = Table::open(path, &ReadOptions::default()).unwrap();
        let target = table.columns().last().unwrap().name().to_string();
        let data = Dataset::from_table(&table, &Choice::new(target)).unwrap();
        assert_eq!((data.n(), data.d()), (n, d), "{name}");
        let split = Split::pca(data.x()).unwrap();
        assert_eq!(split.test.len(), n / 15 + n.div_ceil(15));
    }
    for (name, step) in [("mauna", 1.0 / 12.0), ("solar", 1.0)] {
        let Some(path) = shared(&format!("series/{name}.csv")) else { return };
        let table = Table::open(path, &ReadOptions::default()).unwrap();
        let (choice, _) = Choice::series(&table, None, None, None).unwrap();
        let data = Dataset::from_table(&table, &choice).unwrap();
        assert_eq!(data.axis(0).unwrap().step(), step, "{name}");
        assert_eq!(data.axis(0).unwrap().in_words(11.0), "11 years");
    }
}

#[cfg(feature = "columnar")]
mod columnar {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, RecordBatch, StringArray,
        TimestampMillisecondArray,
    };
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("x", Arc::new(Float64Array::from(vec![Some(1.5), None, Some(3.0)]))),
            ("k", Arc::new(Int32Array::from(vec![1, 2, 3]))),
            ("c", Arc::new(StringArray::from(vec![Some("a"), Some("b"), None]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
            ("day", Arc::new(Date32Array::from(vec![0, 1, 2]))),
            ("at", Arc::new(TimestampMillisecondArray::from(vec![0, 3_600_000, 7_200_500]))),
            ("zoned", Arc::new(TimestampMillisecondArray::from(vec![0, 1000, 2000]).with_timezone("Europe/Paris"))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn written(batch: &RecordBatch) -> [Vec<u8>; 3] {
        let mut parquet = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut parquet, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let mut file = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        file.write(batch).unwrap();
        let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        stream.write(batch).unwrap();
        [parquet, file.into_inner().unwrap(), stream.into_inner().unwrap()]
    }

    #[test]
    fn parquet_and_arrow_give_the_table_that_text_gives() {
        let text = "x,k,c,b,day,at,zoned\n\
            1.5,1,a,true,1970-01-01,1970-01-01T00:00:00,1970-01-01T01:00:00+01:00[Europe/Paris]\n\
            ,2,b,false,1970-01-02,1970-01-01T01:00:00,1970-01-01T01:00:01+01:00[Europe/Paris]\n\
            3,3,,true,1970-01-03,1970-01-01T02:00:00.5,1970-01-01T01:00:02+01:00[Europe/Paris]\n";
        let expected = read(text);
        for bytes in written(&batch()) {
            let table = read(bytes.clone());
            for (a, b) in table.columns().iter().zip(expected.columns()) {
                // NaN is not equal to itself: what is shown is.
                assert_eq!(format!("{a:?}"), format!("{b:?}"));
            }
            assert_eq!(table.place(1, "x").to_string(), "t.csv, row 2, column `x`");
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let opened = Table::open(file.path(), &ReadOptions::default()).unwrap();
            assert_eq!(opened.n(), 3);
            assert!(matches!(opened.column("day").unwrap().cells(), Cells::Times(_)));
            let choice = Choice { inputs: vec!["k".into()], ..Choice::new("k2") };
            assert!(Stream::open(file.path(), &ReadOptions::default(), &choice, 2).is_err());
            let choice = Choice { inputs: vec!["day".into()], ..Choice::new("k") };
            let stream = Stream::open(file.path(), &ReadOptions::default(), &choice, 2).unwrap();
            let sizes: Vec<usize> = stream.pass().unwrap().map(|p| p.unwrap().y.len()).collect();
            assert_eq!(sizes, [2, 1]);
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        for bytes in written(&batch()) {
            for end in (0..bytes.len()).step_by(7) {
                let _ = Table::read(Cursor::new(bytes[..end].to_vec()), "t", &ReadOptions::default());
            }
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x55;
                let _ = Table::read(Cursor::new(flipped), "t", &ReadOptions::default());
            }
        }
    }
}

#[cfg(not(feature = "columnar"))]
#[test]
fn without_the_feature_parquet_says_so() {
    let error = Table::read(&b"PAR1...."[..], "t.parquet", &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("Parquet"), "{error}");
    assert!(error.hint().unwrap().contains("columnar"));
    assert!(matches!(read("x\n1\n").columns()[0].cells(), Cells::Numbers(_)));
}
