//! Writes tables of figures: as text, as a JSON document, as CSV.

use std::io::{self, Write};

use crate::grouped;
use crate::section::{Section, TableCell};
use crate::table::{self, TableLayout};

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureFormat {
    /// For people.
    Table(TableLayout),
    /// One JSON object: a list of objects under each table's name.
    Json,
    /// A line with the columns' names, then one for each row; several tables have an empty line
    /// between them.
    Csv,
}

impl FigureFormat {
    /// Writes the tables one after the other.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn write(self, sections: &[Section], out: &mut impl Write) -> io::Result<()> {
        match self {
            FigureFormat::Table(layout) => {
                write_all(sections, out, |section, out| table::write(section, layout, out))
            }
            FigureFormat::Json => json(sections, out),
            FigureFormat::Csv => write_all(sections, out, csv),
        }
    }
}

fn write_all<W: Write>(
    sections: &[Section],
    out: &mut W,
    write: impl Fn(&Section, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    for (number, section) in sections.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write(section, out)?;
    }
    Ok(())
}

fn json(sections: &[Section], out: &mut impl Write) -> io::Result<()> {
    let mut document = serde_json::Map::new();
    for section in sections {
        let rows = section.rows.iter().map(|row| {
            let names = section.columns.iter().map(|column| (*column).to_owned());
            serde_json::Value::Object(names.zip(row.iter().map(value)).collect())
        });
        document.insert(section.name.to_owned(), rows.collect());
    }
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn value(cell: &TableCell) -> serde_json::Value {
    match cell {
        TableCell::Number(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => u64::try_from(*number).unwrap_or(u64::MAX).into(),
        },
        // The number is the one that the text shows.
        TableCell::Decimal(..) => shown(cell, "").parse::<f64>().map_or(serde_json::Value::Null, Into::into),
        TableCell::Text(text) => text.as_str().into(),
        TableCell::Moment(microseconds, digits) => digits.utc(*microseconds).into(),
        TableCell::Null => serde_json::Value::Null,
    }
}

/// As RFC 4180 has it, with plain line ends. NULL is an empty field.
fn csv(section: &Section, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", section.columns.join(","))?;
    for row in &section.rows {
        let fields: Vec<_> = row.iter().map(|cell| quoted(shown(cell, ""))).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

fn quoted(field: String) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field
}

impl TableCell {
    /// The text itself, or all digits of the number.
    pub(crate) fn exact(&self) -> String {
        shown(self, "")
    }

    /// As on pages for people: with thousands apart, and moments in UTC, since a page is read anywhere.
    pub fn for_people(&self) -> String {
        match self {
            TableCell::Number(number) => {
                let sign = if *number < 0 { "-" } else { "" };
                format!("{sign}{}", grouped(number.unsigned_abs()))
            }
            TableCell::Moment(microseconds, digits) => format!("{} UTC", digits.utc(*microseconds)),
            other => shown(other, "–"),
        }
    }
}

fn shown(cell: &TableCell, null: &str) -> String {
    match cell {
        TableCell::Number(number) => number.to_string(),
        TableCell::Decimal(units, places) => {
            let places = usize::from(*places);
            let digits = format!("{:0width$}", units.unsigned_abs(), width = places + 1);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            let sign = if *units < 0 { "-" } else { "" };
            format!("{sign}{whole}.{fraction}")
        }
        TableCell::Text(text) => text.clone(),
        TableCell::Moment(microseconds, digits) => digits.utc(*microseconds),
        TableCell::Null => null.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: FigureFormat) -> String {
        let section = Section {
            name: "things",
            title: "Things",
            columns: &["name", "count"],
            rows: vec![
                vec!["a, \"b\"".into(), 12u64.into()],
                vec![TableCell::Null, (-3i64).into()],
                vec!["ü".into(), u64::MAX.into()],
            ],
        };
        let mut out = Vec::new();
        format.write(&[section], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text() {
        let expected = "Things
  name                         count
  a, \"b\"                          12
  -                               -3
  ü       18,446,744,073,709,551,615
";
        assert_eq!(written(FigureFormat::Table(TableLayout::default())), expected);
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        let rows = vec![vec!["shop.\u{1b}]0;owned\u{7}\n  total".into(), 1u64.into()]];
        let section = Section { name: "things", title: "Things", columns: &["name", "count"], rows };
        let mut out = Vec::new();
        FigureFormat::Table(TableLayout::default()).write(&[section], &mut out).unwrap();
        let expected = "Things
  name                               count
  shop.\\u{1b}]0;owned\\u{7}\\n  total      1
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn decimals_keep_their_places() {
        for (value, places, expected) in [
            (12.345, 2, "12.35"),
            (-0.04, 1, "0.0"),
            (-0.5, 1, "-0.5"),
            (0.05, 3, "0.050"),
            (1e9, 1, "1000000000.0"),
        ] {
            assert_eq!(shown(&TableCell::decimal(value, places), ""), expected);
        }
        assert_eq!(value(&TableCell::decimal(12.345, 2)), 12.35);
    }

    #[test]
    fn csv_quotes_where_it_must() {
        let expected = "name,count\n\"a, \"\"b\"\"\",12\n,-3\nü,18446744073709551615\n";
        assert_eq!(written(FigureFormat::Csv), expected);
    }

    #[test]
    fn json_keeps_numbers_and_nulls() {
        let document: serde_json::Value = serde_json::from_str(&written(FigureFormat::Json)).unwrap();
        assert_eq!(document["things"][1]["name"], serde_json::Value::Null);
        assert_eq!(document["things"][1]["count"], -3);
        assert_eq!(document["things"][2]["count"], u64::MAX);
    }
}
