//! Tables of a page: headings in words, sizes in KiB and so on. A table that is wider than the screen can be scrolled.

use std::io::{self, Write};

use super::text::{EscapedText, WrappableText};
use crate::section::{Section, TableCell};
use crate::table::words::{NumberKind, heading, kind};
use crate::{grouped, human_size};

/// The columns of a table that is a list.
const NAMES_AND_VALUES: [&str; 2] = ["what", "value"];
/// Single rows of more columns are turned.
const TURNED_COLUMNS_MIN: usize = 4;
/// Text longer than this is broken into lines.
const LINE_MAX: usize = 36;

/// A table in a card of its own. Columns in which nothing is known are left out, as are empty tables. A single row is
/// turned: there would be much to scroll, and nothing to compare.
pub(super) fn write_table(table: &Section, out: &mut impl Write) -> io::Result<()> {
    match table.rows.as_slice() {
        [] => return Ok(()),
        [row] if table.columns.len() > TURNED_COLUMNS_MIN => return write_turned(table, row, out),
        _ if table.columns == NAMES_AND_VALUES => return write_list(table, out),
        _ => {}
    }
    let (columns, notes): (Vec<usize>, Vec<usize>) = shown(table).partition(|place| !is_note(table, *place));
    write!(
        out,
        "<section class=\"card table\"><h2>{title}</h2><p class=\"hint\">Wider than the screen: scroll it sideways →</p>\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table><thead><tr>",
        title = EscapedText(table.title)
    )?;
    for &place in &columns {
        let name = table.columns.get(place).copied().unwrap_or_default();
        let class = if is_number(table, place) { " class=\"number\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}>{}</th>", EscapedText(&heading(name)))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    let mut said = Vec::new();
    for row in &table.rows {
        write!(out, "<tr>")?;
        let mut mark = mark_of(row, &notes, &mut said);
        for &place in &columns {
            let name = table.columns.get(place).copied().unwrap_or_default();
            write_cell(
                row.get(place).unwrap_or(&TableCell::Null),
                name,
                is_number(table, place),
                &mark,
                out,
            )?;
            mark.clear();
        }
        writeln!(out, "</tr>")?;
    }
    write!(out, "</tbody></table></div>")?;
    for (number, note) in said.iter().enumerate() {
        write!(out, "<p class=\"note\"><sup>{}</sup> {}</p>", number + 1, EscapedText(note))?;
    }
    writeln!(out, "</section>")
}

/// A row as a list of names and values.
fn write_turned(table: &Section, row: &[TableCell], out: &mut impl Write) -> io::Result<()> {
    write!(out, "<section class=\"card\"><h2>{}</h2><dl>", EscapedText(table.title))?;
    for (name, cell) in table.columns.iter().zip(row).filter(|(_, cell)| **cell != TableCell::Null) {
        let (text, exact) = texts(cell, name);
        write!(
            out,
            "<div><dt>{}</dt><dd title=\"{}\">{}</dd></div>",
            EscapedText(&heading(name)),
            EscapedText(&exact),
            WrappableText(&text)
        )?;
    }
    writeln!(out, "</dl></section>")
}

/// Names and values, in lines as long as there is room.
fn write_list(table: &Section, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<section class=\"card\"><h2>{}</h2><dl class=\"list\">", EscapedText(table.title))?;
    for row in &table.rows {
        let [name, value] = [0, 1].map(|place| row.get(place).unwrap_or(&TableCell::Null).for_people());
        write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", EscapedText(&name), WrappableText(&value))?;
    }
    writeln!(out, "</dl></section>")
}

/// The places of columns with known values.
fn shown(table: &Section) -> impl Iterator<Item = usize> {
    let known = |place: &usize| {
        table.rows.iter().any(|row| row.get(*place).is_some_and(|cell| *cell != TableCell::Null))
    };
    (0..table.columns.len()).filter(known)
}

/// Notes of few rows stand below the table, not in a column that is mostly empty.
fn is_note(table: &Section, place: usize) -> bool {
    table.columns.get(place) == Some(&"note")
}

/// The number of a row's note below the table.
fn mark_of<'a>(row: &'a [TableCell], notes: &[usize], said: &mut Vec<&'a str>) -> String {
    let mut notes = notes.iter().filter_map(|place| match row.get(*place) {
        Some(TableCell::Text(text)) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    let Some(note) = notes.next() else { return String::new() };
    let place = said.iter().position(|known| *known == note).unwrap_or_else(|| {
        said.push(note);
        said.len() - 1
    });
    format!("<sup>{}</sup>", place + 1)
}

fn is_number(table: &Section, place: usize) -> bool {
    let of =
        |row: &Vec<TableCell>| matches!(row.get(place), Some(TableCell::Number(_) | TableCell::Decimal(..)));
    table.rows.iter().any(of)
        && !table
            .rows
            .iter()
            .any(|row| matches!(row.get(place), Some(TableCell::Text(_) | TableCell::Moment(..))))
}

fn write_cell(
    cell: &TableCell,
    column: &str,
    is_number: bool,
    mark: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let (text, exact) = texts(cell, column);
    let class = match is_number {
        true => " class=\"number\"",
        false if text.chars().count() > LINE_MAX => " class=\"long\"",
        false => "",
    };
    write!(out, "<td{class}")?;
    if !exact.is_empty() {
        write!(out, " title=\"{}\"", EscapedText(&exact))?;
    }
    write!(out, ">{}{mark}</td>", WrappableText(&text))
}

/// A cell's text, and the exact figure if that is shorter.
fn texts(cell: &TableCell, column: &str) -> (String, String) {
    match (cell, kind(column)) {
        (TableCell::Number(number), NumberKind::Size) if number.unsigned_abs() >= 1024 => {
            let size = human_size(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX));
            let sign = if *number < 0 { "-" } else { "" };
            (format!("{sign}{size}"), format!("{sign}{} bytes", grouped(number.unsigned_abs())))
        }
        (TableCell::Number(number), NumberKind::Size) => (format!("{number} B"), String::new()),
        (TableCell::Number(_), NumberKind::Plain) => (cell.exact(), String::new()),
        _ => (cell.for_people(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(columns: &'static [&'static str], rows: Vec<Vec<TableCell>>) -> String {
        let mut out = Vec::new();
        write_table(&Section { name: "t", title: "T", columns, rows }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_table_is_for_people() {
        let html = written(
            &["server_id", "bytes", "position", "never", "note"],
            vec![
                vec![
                    4_294_967_295u64.into(),
                    1_448_785u64.into(),
                    1_234_567u64.into(),
                    TableCell::Null,
                    "slip".into(),
                ],
                vec![1u64.into(), 999u64.into(), 4u64.into(), TableCell::Null, TableCell::Null],
            ],
        );
        // Names that are numbers have no commas, sizes a unit, notes a place of their own.
        assert!(html.contains("<th scope=\"col\" class=\"number\">server id</th>"), "{html}");
        assert!(html.contains("<td class=\"number\">4294967295<sup>1</sup></td>"), "{html}");
        assert!(html.contains("<td class=\"number\" title=\"1,448,785 bytes\">1.4 MiB</td>"), "{html}");
        assert!(html.contains(">999 B<") && html.contains(">1234567<"), "{html}");
        assert!(!html.contains("never") && html.contains("<sup>1</sup> slip</p>"), "{html}");
        assert_eq!(written(&["bytes"], vec![]), "");
        let html = written(&["what", "value"], vec![vec!["<name>".into(), "<value>".into()]]);
        assert!(html.contains("<div><dt>&lt;name&gt;</dt><dd>&lt;value&gt;</dd></div>"), "{html}");
        let row: Vec<TableCell> = vec!["a".into(), 1u64.into(), 2u64.into(), TableCell::Null, 2048u64.into()];
        let html = written(&["name", "files", "level", "never", "bytes"], vec![row]);
        assert!(html.contains("<div><dt>bytes</dt><dd title=\"2,048 bytes\">2.0 KiB</dd></div>"), "{html}");
        assert!(!html.contains("<table>") && !html.contains("never"), "{html}");
    }
}
