//! A report as one page: opens offline, in a browser or on paper, and loads nothing else.
//!
//! ```text
//! Section, Chart → Page → HTML with style, script, charting library and the report's JSON document inlined
//! ```
//!
//! Charts are drawn by the page from that very document, so what they show is what `--format json` says.

use std::fmt::{self, Display};
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::section::{Cell, Section};
use crate::write::Format;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const LIBRARY: &str = include_str!("../assets/chart.umd.min.js");

/// A report.
#[derive(Debug)]
pub struct Page<'a> {
    /// What it is about.
    pub title: &'a str,
    /// A line below it.
    pub subtitle: &'a str,
    /// The conclusion, in a sentence, and why.
    pub lead: &'a str,
    /// The reasons of the lead.
    pub reasons: &'a [String],
    /// The figures that count most: each with what it is.
    pub tiles: &'a [(String, String)],
    /// What is drawn.
    pub charts: &'a [Chart],
    /// Tables below the charts.
    pub tables: &'a [Section],
    /// All figures: the JSON document.
    pub figures: &'a [Section],
}

/// A chart of a table's rows.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The heading above it.
    pub title: &'static str,
    /// How to read it.
    pub note: String,
    /// The table, by its name in the JSON document.
    pub section: &'static str,
    /// Only rows of this level.
    pub level: Option<u8>,
    /// The columns that name a row, and what they are if they are numbers.
    pub x: &'static [&'static str],
    /// The unit of those.
    pub x_unit: Option<Unit>,
    /// What the left axis shows.
    pub axis: &'static str,
    /// What is drawn of each row.
    pub series: Vec<Series>,
    /// Rows to draw at the most.
    pub top: usize,
}

/// A column of a chart.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name.
    pub label: &'static str,
    /// The table's column.
    pub column: &'static str,
    /// How its numbers read.
    pub unit: Unit,
    /// A line instead of bars, with an axis of its own at the right.
    pub line: bool,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
}

impl Series {
    /// Bars of bytes.
    pub fn bytes(label: &'static str, column: &'static str) -> Series {
        Series { label, column, unit: Unit::Bytes, line: false, logarithmic: false }
    }

    /// The line of a column of that name.
    pub fn seconds() -> Series {
        Series { label: "seconds", column: "seconds", unit: Unit::Seconds, line: true, logarithmic: false }
    }
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown in kB, MB and so on.
    Bytes,
    /// Percent.
    Percent,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
    /// Anything else.
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Percent => "percent",
            Unit::Seconds => "seconds",
            Unit::Microseconds => "microseconds",
            Unit::Count => "none",
        }
    }
}

impl Page<'_> {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// What `out` fails with.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut figures = Vec::new();
        Format::Json.write(self.figures, &mut figures)?;
        let figures = String::from_utf8_lossy(&figures);
        let charts: Vec<Value> =
            self.charts.iter().enumerate().map(|(place, chart)| chart.spec(place)).collect();
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            Escaped(self.title)
        )?;
        self.write_head(out)?;
        writeln!(out, "<div class=\"grid\">")?;
        for (place, chart) in self.charts.iter().enumerate() {
            writeln!(
                out,
                "<section class=\"card\"><h2>{}</h2><p>{}</p><div class=\"chart\"><canvas id=\"chart{place}\" \
                 role=\"img\" aria-label=\"{}\"></canvas></div></section>",
                Escaped(chart.title),
                Escaped(&chart.note),
                Escaped(chart.title)
            )?;
        }
        writeln!(out, "</div>")?;
        for table in self.tables {
            write_table(table, out)?;
        }
        write!(
            out,
            "<footer>binlogz {} · all sizes in bytes, all times UTC · charts by Chart.js (MIT)</footer>\n</main>\n\
             <script type=\"application/json\" id=\"figures\">{}</script>\n\
             <script type=\"application/json\" id=\"charts\">{}</script>\n\
             <script>{LIBRARY}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            in_script(&figures),
            in_script(&Value::from(charts).to_string())
        )
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "<header><h1>{}</h1><p>{}</p></header>\n<section class=\"lead\"><strong>{}</strong><ul>",
            Escaped(self.title),
            Escaped(self.subtitle),
            Escaped(self.lead)
        )?;
        for reason in self.reasons {
            writeln!(out, "<li>{}</li>", Escaped(reason))?;
        }
        writeln!(out, "</ul></section>\n<div class=\"tiles\">")?;
        for (figure, what) in self.tiles {
            writeln!(out, "<div><b>{}</b><span>{}</span></div>", Escaped(figure), Escaped(what))?;
        }
        writeln!(out, "</div>")
    }
}

/// Nothing is fetched from anywhere: the browser would refuse.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'";

impl Chart {
    fn spec(&self, place: usize) -> Value {
        let series: Vec<Value> = self.series.iter().map(Series::spec).collect();
        json!({
            "id": format!("chart{place}"),
            "section": self.section,
            "level": self.level,
            "x": self.x,
            "x_unit": self.x_unit.map(Unit::name),
            "axis": self.axis,
            "series": series,
            "top": self.top,
        })
    }
}

impl Series {
    fn spec(&self) -> Value {
        json!({
            "label": self.label,
            "column": self.column,
            "unit": self.unit.name(),
            "line": self.line,
            "right": self.line,
            "logarithmic": self.logarithmic,
        })
    }
}

fn write_table(table: &Section, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<section class=\"card\"><h2>{}</h2><div class=\"wide\"><table><thead><tr>",
        Escaped(table.title)
    )?;
    let is_number = |cell: Option<&Cell>| matches!(cell, Some(Cell::Number(_) | Cell::Decimal(..)));
    for (place, column) in table.columns.iter().enumerate() {
        let number = table.rows.iter().any(|row| is_number(row.get(place)));
        let class = if number { " class=\"number\"" } else { "" };
        write!(out, "<th{class}>{}</th>", Escaped(&column.replace('_', " ")))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for cell in row {
            let class = if is_number(Some(cell)) { " class=\"number\"" } else { "" };
            write!(out, "<td{class}>{}</td>", Escaped(&cell.for_people()))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div></section>")
}

/// Text escaped for HTML.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                letter => write!(f, "{letter}")?,
            }
        }
        Ok(())
    }
}

/// JSON for a script element; no name in it may end the element.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_place() {
        let evil = "</script><script>alert(1)</script>&\"";
        let section =
            Section { name: "tables", title: "T", columns: &["table"], rows: vec![vec![evil.into()]] };
        let page = Page {
            title: evil,
            subtitle: evil,
            lead: evil,
            reasons: &[evil.to_owned()],
            tiles: &[(evil.to_owned(), evil.to_owned())],
            charts: &[],
            tables: std::slice::from_ref(&section),
            figures: std::slice::from_ref(&section),
        };
        let mut out = Vec::new();
        page.write(&mut out).unwrap();
        let html = String::from_utf8(out).unwrap();
        assert!(!html.contains("<script>alert"));
        let (_, figures) = html.split_once("id=\"figures\">").unwrap();
        let (figures, _) = figures.split_once("</script>").unwrap();
        let figures: Value = serde_json::from_str(figures).unwrap();
        assert_eq!(figures["tables"][0]["table"], evil);
    }
}
