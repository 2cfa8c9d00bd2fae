//! Bad data is refused before any work starts, with file, row and column; nothing panics and nothing is silent.

use std::io::Write;
use std::time::Instant;

use covary::data::{Choice, Missing, ReadOptions, Stream, Table};
use covary::{Dataset, Error, ErrorKind};

fn read(text: impl Into<Vec<u8>>) -> Result<Table, Error> {
    Table::read(std::io::Cursor::new(text.into()), "t.csv", &ReadOptions::default())
}

fn learn(text: &str) -> Result<Dataset, Error> {
    Dataset::from_table(&read(text)?, &Choice::new("y"))
}

fn message(result: Result<impl std::fmt::Debug, Error>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn a_table_without_content_is_refused() {
    assert_eq!(message(read("")), "t.csv: the file is empty");
    assert_eq!(message(read(" \n\n")), "t.csv: the file is empty");
    assert_eq!(message(read("\u{feff}")), "t.csv: the file is empty");
    assert_eq!(message(read("x,y\n")), "t.csv: a header and no rows");
    assert_eq!(message(read("1,2\n3,4\n")), "t.csv, line 1: names of columns expected, found numbers: 1, 2");
    assert_eq!(message(read("x,y,x\n1,2,3\n")), "t.csv: columns 1 and 3 have the same name: x");
}

#[test]
fn a_bad_row_is_named_by_its_line() {
    assert_eq!(message(read("x,y\n1,2\n3\n")), "t.csv, line 3: cells found: 1, columns of the header: 2");
    assert_eq!(message(read("x,y\r\n1,2\r\n3,4,5\r\n")), "t.csv, line 3: cells found: 3, columns of the header: 2");
    assert_eq!(message(read("x,y\n\"a\nb\",2\n3\n")), "t.csv, line 4: cells found: 1, columns of the header: 2");
    assert_eq!(message(read("x,y\n\"1,2\n3,4\n")), "t.csv, line 2: cells found: 1, columns of the header: 2");
    assert_eq!(message(read(b"x,y\n1,2\n3,\xE9t\xE9\n".to_vec())), "t.csv, line 3: not UTF-8 text");
    assert_eq!(message(read(b"x,\xFF\n1,2\n".to_vec())), "t.csv, line 1: not UTF-8 text");
}

#[test]
fn a_bad_cell_is_named_by_line_and_column() {
    assert_eq!(message(learn("x,y\n1,2\n3,oops\n5,6\n")), "t.csv, line 3, column `y`: not a number: oops");
    assert_eq!(message(learn("x,y\n1,2\nabc,4\n5,6\n")), "t.csv, line 3, column `x`: not a number: abc");
    assert_eq!(message(learn("x,y\n1,2\n3,inf\n")), "t.csv, line 3, column `y`: not a finite number: inf");
    assert_eq!(message(learn("x,y\n1,2\n1e999,4\n")), "t.csv, line 3, column `x`: not a finite number: inf");
    for word in ["", "NA", "NaN", "n/a", "null", "-", "None", "?"] {
        assert_eq!(
            message(learn(&format!("x,y\n1,2\n{word},4\n"))),
            "t.csv, line 3, column `x`: the cell is missing"
        );
    }
    let error = learn("x,y\n1,2\nNaN,4\n").unwrap_err();
    assert!(error.hint().unwrap().contains("dropped or imputed"));
}

#[test]
fn missing_cells_are_dropped_or_filled_and_counted() {
    let table = read("x,c,y\n1,a,2\n,a,4\n3,,6\n4,b,\n5,b,8\n").unwrap();
    let with = |missing| Dataset::from_table(&table, &Choice { missing, ..Choice::new("y") }).unwrap();
    let dropped = with(Missing::Drop);
    assert_eq!(dropped.y(), [2.0, 8.0]);
    assert!(dropped.notes().iter().any(|n| n == "1 row with missing cells dropped, the first at line 5"));
    assert!(dropped.notes().iter().any(|n| n == "2 rows with missing cells dropped, the first at line 3"));
    let filled = with(Missing::Impute);
    assert_eq!(filled.y(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(filled.x().column(0), [1.0, 3.0, 3.0, 5.0]);
    assert_eq!(filled.inputs(), ["x", "c=a", "c=b"]);
    assert!(filled.notes().iter().any(|n| n == "1 missing cell of column `x` filled with the median 3"));
}

#[test]
fn columns_nobody_uses_do_no_harm() {
    let table = read("x,junk,y\n1,NA,2\n3,inf,4\n5,what,6\n").unwrap();
    let choice = Choice { exclude: vec!["junk".into()], ..Choice::new("y") };
    assert_eq!(Dataset::from_table(&table, &choice).unwrap().d(), 1);
}

#[test]
fn choices_that_cannot_be_met_are_errors() {
    let table = read("id,x,y\nu1,1,2\nu2,3,4\nu3,5,6\n").unwrap();
    let with = |choice: Choice| message(Dataset::from_table(&table, &choice));
    assert_eq!(with(Choice::new("z")), "no column `z`");
    assert_eq!(
        with(Choice { inputs: vec!["y".into()], ..Choice::new("y") }),
        "inputs: the target `y` cannot be an input"
    );
    assert_eq!(
        with(Choice { exclude: vec!["id".into(), "x".into()], ..Choice::new("y") }),
        "inputs: no column is left beside the target `y`"
    );
    assert_eq!(
        with(Choice { categories: 2, ..Choice::new("y") }),
        "t.csv, column `id`: text with 3 different values, at most 2 can be used"
    );
    assert_eq!(message(learn("x,y\n1,2\n")), "too few rows: 1, at least 2 needed");
}

#[test]
fn the_same_time_twice_names_both_rows() {
    let text = "month,y\n2020-01,1\n2020-02,2\n2020-01,3\n";
    assert_eq!(message(learn(text)), "t.csv, line 2 and line 4, column `month`: the same time twice: 2020-01");
    let error = learn("month,y\n2020-01,1\n2020-13,2\n").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TooManyCategories { .. } | ErrorKind::NotATime { .. }), "{error}");
}

#[test]
fn what_is_no_table_is_called_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let options = ReadOptions::default();
    assert!(message(Table::open(directory.path(), &options)).ends_with("not a table: a directory"));
    assert!(matches!(Table::open(directory.path().join("no"), &options).unwrap_err().kind(), ErrorKind::Io { .. }));
    assert_eq!(message(read(b"PK\x03\x04rest".to_vec())), "t.csv: not a table: a zip archive or spreadsheet");
    assert_eq!(message(read(b"\xFF\xFEx\0,\0".to_vec())), "t.csv: not a table: UTF-16 text");
    assert_eq!(message(read(b"x,\0y\n".to_vec())), "t.csv: not a table: binary data");
    for bytes in
        [b"PAR1xxxx".to_vec(), b"ARROW1\0\0".to_vec(), b"\xFF\xFF\xFF\xFF\x10\0\0\0".to_vec(), b"PAR1".to_vec()]
    {
        assert!(matches!(read(bytes).unwrap_err().kind(), ErrorKind::NotATable { .. }));
    }
}

#[test]
fn a_cut_gzip_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"x,y\n1,2\n3,4\n").unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(read(packed.clone()).unwrap().n(), 2);
    for end in [3, 12, packed.len() - 4] {
        assert!(read(packed[..end].to_vec()).is_err(), "{end}");
    }
}

#[test]
fn a_million_columns_take_seconds() {
    let start = Instant::now();
    let names: Vec<String> = (0..1_000_000).map(|i| format!("c{i}")).collect();
    assert_eq!(message(read(names.join(","))), "t.csv: a header and no rows");
    let row = vec!["1"; 1_000_000].join(",");
    let table = read(format!("{}\n{row}\n{row}\n", names.join(","))).unwrap();
    let data = Dataset::from_table(&table, &Choice::new("c7")).unwrap();
    assert_eq!(data.d(), 999_999);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn a_file_that_changes_between_passes_is_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"x,y\n1,2\n3,4\n5,6\n").unwrap();
    let stream = Stream::open(file.path(), &ReadOptions::default(), &Choice::new("y"), 2).unwrap();
    assert_eq!(stream.rows(), Some(3));
    let mut pass = stream.pass().unwrap();
    assert_eq!(pass.next().unwrap().unwrap().y, [2.0, 4.0]);
    file.write_all(b"7,8\n").unwrap();
    file.flush().unwrap();
    let error = pass.next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::FileChanged { .. }), "{error}");
    assert!(pass.next().is_none());
    assert!(stream.pass().is_err());
    file.as_file().set_len(5).unwrap();
    assert!(matches!(stream.pass().err().unwrap().kind(), ErrorKind::FileChanged { .. }));
}

#[test]
fn no_bytes_make_the_reader_panic() {
    // A generator of its own: 2000 random mixtures of what tables are made of.
    let parts: [&[u8]; 16] = [
        b",",
        b"\n",
        b"\"",
        b"1",
        b"2020-01-31",
        b"x",
        b";",
        b"\t",
        b"NA",
        b"\r\n",
        b"\xFF",
        b"'",
        b"1e308",
        b"-",
        b"|",
        b"2020-01-31T10:00:00+01:00[Europe/London]",
    ];
    let mut state = 1_u64;
    for _ in 0..2000 {
        let mut text = b"a,y\n".to_vec();
        for _ in 0..(state % 40) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.extend(parts[(state >> 60) as usize]);
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        if let Ok(table) = read(text) {
            for name in table.columns().iter().map(|c| c.name().to_string()) {
                let _ = Dataset::from_table(&table, &Choice { missing: Missing::Impute, ..Choice::new(name) });
            }
        }
    }
}
