//! A page of HTML in one file: headings, words, tables, figures. No script, no outside reference; everything that
//! comes from outside is escaped. It knows nothing of what it reports.

use std::fmt::Write;
use std::path::Path;

use super::figure::Figure;
use super::style::clean;
use super::svg::escape;
use crate::error::Result;
use crate::file::write_atomically;

/// A page under construction: each method adds a block below the last.
///
/// ```
/// use covary::plot::Page;
///
/// let html = Page::new("Airline passengers")
///     .heading("Forecast")
///     .paragraph("Two years ahead, in thousands.")
///     .table(&["month", "mean"], [["1961-01", "447"], ["1961-02", "421"]])
///     .to_html();
/// assert!(html.contains("<td class=\"n\">447</td>"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    title: String,
    body: String,
}

const STYLE: &str = "\
:root{color-scheme:light}\
body{font:16px/1.5 'Noto Sans','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;color:#222;background:#fff;\
max-width:58rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.7rem;font-weight:500;margin:0 0 1rem}h2{font-size:1.25rem;font-weight:500;margin:2rem 0 .5rem}\
p,ul{max-width:44rem}figure{margin:1rem 0}figure svg{max-width:100%;height:auto}\
figcaption{color:#555;font-size:.9rem}\
.t{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;margin:.5rem 0}\
th,td{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}\
th{font-weight:500;border-bottom:1px solid #777}\
.n{text-align:right;font-variant-numeric:tabular-nums}\
pre{background:#f5f5f5;padding:.6rem;overflow-x:auto;font-size:.85rem}\
summary{cursor:pointer;margin:.8rem 0 .3rem}\
@media print{body{margin:0;max-width:none;font-size:11pt}figure,tr{break-inside:avoid}h2{break-after:avoid}\
thead{display:table-header-group}details::details-content{content-visibility:visible;block-size:auto}}";

impl Page {
    /// An empty page with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), body: String::new() }
    }

    /// A heading.
    #[must_use]
    pub fn heading(self, text: &str) -> Self {
        self.block("h2", text)
    }

    /// A paragraph.
    #[must_use]
    pub fn paragraph(self, text: &str) -> Self {
        self.block("p", text)
    }

    /// Text with its line breaks and spaces kept, in letters of one width.
    #[must_use]
    pub fn preformatted(self, text: &str) -> Self {
        self.block("pre", text)
    }

    fn block(mut self, tag: &str, text: &str) -> Self {
        let _ = writeln!(self.body, "<{tag}>{}</{tag}>", escape(text));
        self
    }

    /// A list with a bullet for each item.
    #[must_use]
    pub fn list<T: AsRef<str>>(mut self, items: impl IntoIterator<Item = T>) -> Self {
        self.body.push_str("<ul>");
        for item in items {
            let _ = write!(self.body, "<li>{}</li>", escape(item.as_ref()));
        }
        self.body.push_str("</ul>\n");
        self
    }

    /// A figure with a caption (which may be empty).
    #[must_use]
    pub fn figure(mut self, figure: &Figure, caption: &str) -> Self {
        let _ = write!(self.body, "<figure>{}", figure.to_svg());
        if !caption.is_empty() {
            let _ = write!(self.body, "<figcaption>{}</figcaption>", escape(caption));
        }
        self.body.push_str("</figure>\n");
        self
    }

    /// A table. Columns in which every cell is a number or empty stand to the right; short rows are filled up.
    #[must_use]
    pub fn table<R, C>(mut self, header: &[&str], rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = C>,
        C: AsRef<str>,
    {
        let mut rows: Vec<Vec<String>> =
            rows.into_iter().map(|row| row.into_iter().map(|cell| cell.as_ref().to_string()).collect()).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(header.len());
        rows.iter_mut().for_each(|row| row.resize(columns, String::new()));
        let class: Vec<&str> = (0..columns)
            .map(|j| {
                let numeric = rows.iter().all(|row| row[j].is_empty() || is_number(&row[j]));
                if numeric && !rows.is_empty() { " class=\"n\"" } else { "" }
            })
            .collect();
        self.body.push_str("<div class=\"t\"><table><thead><tr>");
        for (j, class) in class.iter().enumerate() {
            let _ = write!(self.body, "<th{class}>{}</th>", escape(header.get(j).unwrap_or(&"")));
        }
        self.body.push_str("</tr></thead><tbody>\n");
        for row in &rows {
            self.body.push_str("<tr>");
            for (cell, class) in row.iter().zip(&class) {
                let _ = write!(self.body, "<td{class}>{}</td>", escape(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
        self
    }

    /// Blocks behind a line to click on: the title of `inside` is that line.
    #[must_use]
    pub fn details(mut self, inside: Page) -> Self {
        let summary = escape(&clean(&inside.title, 500));
        let _ = writeln!(self.body, "<details><summary>{summary}</summary>\n{}</details>", inside.body);
        self
    }

    /// The page as a document.
    pub fn to_html(&self) -> String {
        let title = escape(&clean(&self.title, 500));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en-GB\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{}</body></html>\n",
            self.body
        )
    }

    /// Writes the page to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path.as_ref(), self.to_html().as_bytes())
    }
}

fn is_number(cell: &str) -> bool {
    let plain: String = cell.chars().filter(|c| *c != ',').map(|c| if c == '−' { '-' } else { c }).collect();
    let plain = plain.trim().trim_end_matches('%').trim_end();
    plain.parse::<f64>().is_ok()
}
