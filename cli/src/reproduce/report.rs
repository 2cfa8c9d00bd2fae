//! What an experiment found: a table, with remarks; printed, and kept as CSV and JSON.

use super::Setup;
use crate::failure::Failure;
use crate::output::{columns, csv_line, write_file};
use serde_json::{Value, json};

/// A table with remarks.
pub struct Report {
    pub name: String,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub remarks: Vec<String>,
    /// Whatever else belongs into the JSON.
    pub details: Value,
}

impl Report {
    pub fn new(name: &str, header: &[&'static str]) -> Self {
        Self { name: name.into(), header: header.to_vec(), rows: vec![], remarks: vec![], details: Value::Null }
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.name, columns(&self.header, &self.rows));
        for remark in &self.remarks {
            text.push_str(&format!("\n{remark}"));
        }
        text.push('\n');
        text
    }

    pub fn to_json(&self) -> Value {
        let row = |cells: &Vec<String>| {
            let pairs = self.header.iter().zip(cells);
            Value::Object(pairs.map(|(name, cell)| ((*name).to_string(), number(cell))).collect())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({"name": self.name, "rows": rows, "remarks": self.remarks, "details": self.details})
    }

    /// NAME.csv and NAME.json in the output folder.
    pub fn save(&self, setup: &Setup) -> Result<(), Failure> {
        let mut csv = String::new();
        csv_line(&mut csv, &self.header);
        self.rows.iter().for_each(|row| csv_line(&mut csv, row));
        write_file(&setup.out.join(format!("{}.csv", self.name)), csv.as_bytes())?;
        let text = format!("{:#}\n", self.to_json());
        write_file(&setup.out.join(format!("{}.json", self.name)), text.as_bytes())
    }
}

/// A cell as a number, where it is one.
fn number(cell: &str) -> Value {
    cell.parse::<f64>().map_or_else(|_| json!(cell), |v| json!(v))
}

/// Three digits after the point, or a dash for what there is none of.
pub fn cell(value: Option<f64>, digits: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| "-".into(), |v| format!("{v:.digits$}"))
}

/// Mean and standard error of some values.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}
