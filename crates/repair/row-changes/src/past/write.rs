//! Rows as a server gives them, as SQL or CSV.
//!
//! ```text
//! column          is asked for as         SQL          CSV
//! numbers         itself; FLOAT as the    1.50         1.50
//!                 double that it is, BIT
//!                 as a number
//! text, times     itself, in utf8mb4      'a'          a
//! bytes           itself                  X'00ff'      0x00ff
//! text in other   SQL: its bytes          X'8ac0'      as text
//! character sets
//! NULL                                    NULL         nothing; an empty text is ""
//! ```

use std::io::{self, Write};

use crate::sql::CLIENT_CHARSET;
use crate::sql::text::{push, push_hex, push_quoted};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastFormat {
    /// A script for the mysql client that makes the table and fills it.
    Sql,
    /// A line of names, then a line a row, as RFC 4180 has it.
    Csv,
}

/// The form that a column's values are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Number,
    Text,
    Bytes,
}

/// A column that holds values of its own.
#[derive(Debug, Clone)]
pub(super) struct LiveColumn {
    pub(super) name: String,
    /// The column's name at the moment, by which it is written.
    pub(super) name_then: String,
    /// The type's name, in small letters.
    pub(super) data_type: String,
    /// Character set of a text column.
    pub(super) charset: Option<String>,
}

impl LiveColumn {
    /// A column whose values are spelled as SQL already.
    pub(super) fn named(name: &str) -> Self {
        LiveColumn {
            name: name.to_owned(),
            name_then: name.to_owned(),
            data_type: String::new(),
            charset: None,
        }
    }

    /// Character sets that utf8mb4 holds and gives back unchanged.
    const SAFE_CHARSETS: [&str; 5] = ["utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"];

    fn shape(&self, format: PastFormat) -> Shape {
        match (self.data_type.as_str(), &self.charset) {
            (
                "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
                | "bit" | "year",
                _,
            ) => Shape::Number,
            ("date" | "time" | "datetime" | "timestamp" | "json", _) => Shape::Text,
            (_, Some(charset)) if format == PastFormat::Csv || Self::SAFE_CHARSETS.contains(&&**charset) => {
                Shape::Text
            }
            _ => Shape::Bytes,
        }
    }

    /// The expression to select.
    pub(super) fn expression(&self, format: PastFormat) -> String {
        let name = quoted(&self.name);
        match (self.data_type.as_str(), self.shape(format)) {
            // All its digits; a sum with 0 would lose the sign of -0.
            ("float", _) => format!("{name} * 1e0"),
            ("bit", _) => format!("{name} + 0"),
            (_, Shape::Bytes) if self.charset.is_some() => format!("CAST({name} AS BINARY)"),
            _ => name,
        }
    }
}

/// A name in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Bytes of rows in a statement, unless a row has more.
const STATEMENT_SIZE_MAX: usize = 256 << 10;

/// Writes rows.
pub(super) struct RowWriter<'o> {
    format: PastFormat,
    shapes: Vec<Shape>,
    /// The beginning of an INSERT.
    insert: Vec<u8>,
    /// The statement, or the lines.
    text: Vec<u8>,
    out: &'o mut dyn Write,
    pub(super) rows: u64,
}

impl<'o> RowWriter<'o> {
    pub(super) fn new(
        format: PastFormat,
        table: &str,
        columns: &[LiveColumn],
        out: &'o mut dyn Write,
    ) -> RowWriter<'o> {
        let names: Vec<_> = columns.iter().map(|column| quoted(&column.name_then)).collect();
        let insert = format!("INSERT INTO {} ({}) VALUES\n", quoted(table), names.join(", ")).into_bytes();
        let shapes = columns.iter().map(|column| column.shape(format)).collect();
        RowWriter { format, shapes, insert, text: Vec::new(), out, rows: 0 }
    }

    /// Writes the text before the rows.
    pub(super) fn begin(&mut self, create: &str, columns: &[LiveColumn]) -> io::Result<()> {
        match self.format {
            PastFormat::Sql => writeln!(self.out, "\n{create};\n"),
            PastFormat::Csv => {
                for (number, column) in columns.iter().enumerate() {
                    if number > 0 {
                        self.text.push(b',');
                    }
                    push_field(&mut self.text, column.name_then.as_bytes());
                }
                self.text.push(b'\n');
                Ok(())
            }
        }
    }

    pub(super) fn row(&mut self, row: &[Option<Vec<u8>>]) -> io::Result<()> {
        if self.format == PastFormat::Sql {
            match self.text.is_empty() {
                true => self.text.extend_from_slice(&self.insert),
                false => self.text.extend_from_slice(b",\n"),
            }
            self.text.push(b'(');
        }
        for (number, (shape, value)) in self.shapes.iter().zip(row).enumerate() {
            let text = &mut self.text;
            let comma: &[u8] = if self.format == PastFormat::Sql { b", " } else { b"," };
            text.extend_from_slice(if number > 0 { comma } else { b"" });
            match (self.format, shape, value) {
                (PastFormat::Sql, _, None) => text.extend_from_slice(b"NULL"),
                (PastFormat::Csv, _, None) => {}
                (PastFormat::Sql, Shape::Number, Some(value)) if value == b"-0" => push(text, "-0e0"),
                (_, Shape::Number, Some(value)) => text.extend_from_slice(value),
                (PastFormat::Sql, Shape::Text, Some(value)) => push_quoted(text, value),
                (PastFormat::Sql, Shape::Bytes, Some(value)) => push_hex(text, value),
                (PastFormat::Csv, Shape::Text, Some(value)) => push_field(text, value),
                (PastFormat::Csv, Shape::Bytes, Some(value)) => {
                    push(text, "0x");
                    value.iter().for_each(|byte| push(text, format_args!("{byte:02x}")));
                }
            }
        }
        self.text.push(if self.format == PastFormat::Sql { b')' } else { b'\n' });
        self.rows += 1;
        if self.text.len() > STATEMENT_SIZE_MAX { self.flush() } else { Ok(()) }
    }

    /// A row as SQL, each value spelled already.
    pub(super) fn spelled(&mut self, values: &[&[u8]]) -> io::Result<()> {
        self.text.extend_from_slice(if self.text.is_empty() { &self.insert } else { b",\n" });
        self.text.push(b'(');
        for (number, value) in values.iter().enumerate() {
            self.text.extend_from_slice(if number > 0 { b", " } else { b"" });
            // A -0 of FLOAT or DOUBLE, as mysqldump spells it: a whole number has none.
            self.text.extend_from_slice(if *value == b"-0" { b"-0e0" } else { value });
        }
        self.text.push(b')');
        self.rows += 1;
        if self.text.len() > STATEMENT_SIZE_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes what is left; returns how many rows there were.
    pub(super) fn end(&mut self) -> io::Result<u64> {
        self.flush()?;
        Ok(self.rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            if self.format == PastFormat::Sql {
                self.text.extend_from_slice(b";\n");
            }
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// Writes the begin of a script, before its tables.
pub(super) fn begin_script(title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "-- {}", title.replace('\n', " "))?;
    writeln!(out, "{CLIENT_CHARSET}")?;
    let names = ["time_zone", "sql_mode", "foreign_key_checks"];
    let saved = names.map(|name| format!("@binlogz_{name} = @@session.{name}"));
    writeln!(out, "SET {};", saved.join(", "))?;
    writeln!(out, "SET {SETTINGS};")
}

/// Writes the end of a script, after its tables; of several each with its name.
pub(super) fn end_script(tables: &[(&str, u64)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nSET time_zone = @binlogz_time_zone, sql_mode = @binlogz_sql_mode, foreign_key_checks = @binlogz_foreign_key_checks;"
    )?;
    match tables {
        [(_, rows)] => writeln!(out, "-- {rows} rows")?,
        tables => {
            for (name, rows) in tables {
                writeln!(out, "-- {}: {rows} rows", name.replace('\n', " "))?;
            }
        }
    }
    out.flush()
}

/// Values were stored already: none is refused, and none changed by a session's zone.
pub(super) const SETTINGS: &str = "time_zone = '+00:00', foreign_key_checks = 0, \
     sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'";

/// Appends a text as a field; an empty one is not NULL.
fn push_field(out: &mut Vec<u8>, text: &[u8]) {
    let is_plain = !text.is_empty() && !text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'));
    if is_plain {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &byte in text {
        out.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) });
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_sql_and_as_csv() {
        let column = |name: &str, data_type: &str, charset: Option<&str>| LiveColumn {
            data_type: data_type.to_owned(),
            charset: charset.map(str::to_owned),
            ..LiveColumn::named(name)
        };
        let columns = [
            column("id", "int", None),
            column("a,b", "varchar", Some("utf8mb4")),
            column("g", "char", Some("gbk")),
            column("x", "blob", None),
        ];
        let expressions = |format| columns.each_ref().map(|column| column.expression(format));
        assert_eq!(expressions(PastFormat::Sql), ["`id`", "`a,b`", "CAST(`g` AS BINARY)", "`x`"]);
        assert_eq!(expressions(PastFormat::Csv), ["`id`", "`a,b`", "`g`", "`x`"]);
        let rows = [
            [Some(b"1".to_vec()), Some(b"it's \"x\"\n".to_vec()), Some(b"g".to_vec()), Some(vec![0, 255])],
            [Some(b"2".to_vec()), Some(Vec::new()), None, Some(Vec::new())],
        ];
        let written = |format| {
            let mut out = Vec::new();
            begin_script("title", &mut out).unwrap();
            let begin = out.len();
            let mut writer = RowWriter::new(format, "t", &columns, &mut out);
            writer.begin("CREATE TABLE `t` (…)", &columns).unwrap();
            rows.iter().for_each(|row| writer.row(row).unwrap());
            let count = writer.end().unwrap();
            match format {
                PastFormat::Sql => end_script(&[("t", count)], &mut out).unwrap(),
                PastFormat::Csv => drop(out.drain(..begin)),
            }
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(PastFormat::Csv), "id,\"a,b\",g,x\n1,\"it's \"\"x\"\"\n\",g,0x00ff\n2,\"\",,0x\n");
        let sql = written(PastFormat::Sql);
        let expected = "INSERT INTO `t` (`id`, `a,b`, `g`, `x`) VALUES\n(1, 'it''s \"x\"\\n', X'67', X'00ff'),\n\
                        (2, '', NULL, X'');\n";
        assert!(
            sql.starts_with("-- title\n/*!\\C utf8mb4 */;\nSET NAMES utf8mb4;\n") && sql.contains(expected),
            "{sql}"
        );
        assert!(sql.ends_with("-- 2 rows\n"), "{sql}");
    }
}
