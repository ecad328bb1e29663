//! Lays out a table as text for people: aligned, in words, and no wider than the terminal.
//!
//! ```text
//! Section → Columns (texts, widths) → as it is
//!                                   → headings on several lines
//!                                   → what all rows have in common, above it
//!                                   → a block of columns at a time, or of few rows a line for each cell
//! ```
//!
//! Each way is used only if the one before is too wide. Nothing is left out, so a narrow terminal shows everything that a
//! wide one does.

mod columns;
mod running;
pub(crate) mod words;

use std::io::{self, Write};

use crate::section::Section;
use crate::wrap::{folded, wrapped};
use columns::{FigureColumn, GAP, columns, width_of};
pub use running::RunningTable;

/// How a table for people is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableLayout {
    /// Columns of the terminal; `None`: as wide as it has to be.
    pub width: Option<usize>,
    /// Sizes as bytes, instead of in KiB, MiB and so on.
    pub exact_sizes: bool,
}

/// Tables with at most this many rows are turned when they are too wide.
const TURNED_ROWS_MAX: usize = 3;

/// Writes a table.
pub(crate) fn write(section: &Section, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", wrapped(section.title, "", GAP, layout.width))?;
    if section.rows.is_empty() {
        return writeln!(out, "  none");
    }
    let mut columns = columns(section, layout.exact_sizes);
    let Some(width) = layout.width.filter(|width| width_of(&columns) > *width) else {
        return block(&columns.iter().collect::<Vec<_>>(), out);
    };
    columns.iter_mut().for_each(FigureColumn::fold_heading);
    if width_of(&columns) > width && section.rows.len() > 1 {
        let common = columns::take_common(&mut columns);
        lines("in all rows: ", &common, width, out)?;
    }
    if width_of(&columns) <= width {
        return block(&columns.iter().collect::<Vec<_>>(), out);
    }
    let names_width = width_of(columns.get(..columns::names(&columns, width / 2)).unwrap_or_default());
    let is_too_wide = |column: &FigureColumn| names_width + column.full_width() > width;
    if section.rows.len() <= TURNED_ROWS_MAX || columns.iter().any(is_too_wide) {
        return turned(&columns, section.rows.len(), width, out);
    }
    blocks(&columns, width, out)
}

/// Writes words, as many as fit on each line.
fn lines(head: &str, parts: &[String], width: usize, out: &mut impl Write) -> io::Result<()> {
    let mut line = format!("{GAP}{head}");
    let indent = " ".repeat(line.len());
    let mut is_empty = true;
    for (part, number) in parts.iter().zip(1..) {
        let part = if number < parts.len() { format!("{part}, ") } else { part.clone() };
        if !is_empty && columns::width(&line) + columns::width(part.trim_end()) > width {
            writeln!(out, "{}", line.trim_end())?;
            line.clone_from(&indent);
        }
        // One part may be wider than the terminal.
        let mut folds = folded(&part, width.saturating_sub(indent.len()));
        let part = folds.pop().unwrap_or_default();
        for fold in folds {
            writeln!(out, "{line}{fold}")?;
            line.clone_from(&indent);
        }
        line.push_str(&part);
        is_empty = false;
    }
    match is_empty {
        true => Ok(()),
        false => writeln!(out, "{}", line.trim_end()),
    }
}

/// Writes columns beside one another.
fn block(columns: &[&FigureColumn], out: &mut impl Write) -> io::Result<()> {
    block_heading(columns, out)?;
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for number in 0..rows {
        row(columns, |column| column.cell(number), out)?;
    }
    Ok(())
}

fn block_heading(columns: &[&FigureColumn], out: &mut impl Write) -> io::Result<()> {
    let height = columns.iter().map(|column| column.heading.len()).max().unwrap_or(0);
    (0..height).try_for_each(|line| row(columns, |column| column.heading_line(line, height), out))
}

fn row<'c>(
    columns: &[&'c FigureColumn],
    text: impl Fn(&'c FigureColumn) -> &'c str,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut line = String::new();
    for column in columns {
        line.push_str(GAP);
        column.put(text(column), &mut line);
    }
    writeln!(out, "{}", line.trim_end())
}

/// Writes as many columns at a time as fit, each time after the first ones, which name the rows.
fn blocks(columns: &[FigureColumn], width: usize, out: &mut impl Write) -> io::Result<()> {
    let (names, mut rest) = columns.split_at(columns::names(columns, width / 2));
    while !rest.is_empty() {
        let mut used = width_of(names);
        let fitting = rest.iter().take_while(|column| {
            used += column.full_width();
            used <= width
        });
        // One at the least, though it may not fit.
        let (now, later) = rest.split_at(fitting.count().max(1).min(rest.len()));
        let shown: Vec<_> = names.iter().chain(now).collect();
        block(&shown, out)?;
        if !later.is_empty() {
            writeln!(out)?;
        }
        rest = later;
    }
    Ok(())
}

/// Writes a line for each cell, row after row; lines wider than the terminal are folded.
fn turned(columns: &[FigureColumn], rows: usize, width: usize, out: &mut impl Write) -> io::Result<()> {
    let headings: Vec<_> = columns.iter().map(|column| column.heading.join(" ")).collect();
    let widest = headings.iter().map(|heading| columns::width(heading)).max().unwrap_or(0);
    for number in 0..rows {
        if number > 0 {
            writeln!(out)?;
        }
        for (column, heading) in columns.iter().zip(&headings) {
            let padding = " ".repeat(widest - columns::width(heading));
            let room = width.saturating_sub(widest + 2 * GAP.len());
            let mut lines = folded(column.cell(number), room).into_iter();
            writeln!(out, "{GAP}{heading}{padding}{GAP}{}", lines.next().unwrap_or_default())?;
            let indent = " ".repeat(widest + 2 * GAP.len());
            lines.try_for_each(|line| writeln!(out, "{indent}{line}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::TableCell;

    fn section(rows: usize) -> Section {
        let row = |number: usize| -> Vec<TableCell> {
            vec![
                format!("/var/lib/mysql/binlog.{number:06}").into(),
                "BINARY".into(),
                (190_137 * number as u64).into(),
                (1234 * number as u64).into(),
                TableCell::Null,
                TableCell::decimal(12.5 * number as f64, 1),
            ]
        };
        Section {
            name: "files",
            title: "Files",
            columns: &[
                "file",
                "log_type",
                "transaction_bytes",
                "compressed_transactions",
                "commit",
                "saved_percent",
            ],
            rows: (1..=rows).map(row).collect(),
        }
    }

    fn written(section: &Section, layout: TableLayout) -> String {
        let mut out = Vec::new();
        write(section, layout, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_wide_as_it_has_to_be() {
        let expected = "\
Files
  file                          log type  transaction bytes  compressed transactions  commit  saved %
  /var/lib/mysql/binlog.000001  BINARY            185.7 KiB                    1,234  -          12.5
  /var/lib/mysql/binlog.000002  BINARY            371.4 KiB                    2,468  -          25.0
";
        assert_eq!(written(&section(2), TableLayout::default()), expected);
        let exact = written(&section(2), TableLayout { exact_sizes: true, width: None });
        assert!(exact.contains("            380,274 "), "{exact}");
    }

    #[test]
    fn headings_take_several_lines_first() {
        let expected = "\
Files
                                log     transaction    compressed          saved
  file                          type          bytes  transactions  commit      %
  /var/lib/mysql/binlog.000001  BINARY    185.7 KiB         1,234  -        12.5
  /var/lib/mysql/binlog.000002  BINARY    371.4 KiB         2,468  -        25.0
";
        assert_eq!(written(&section(2), TableLayout { width: Some(90), ..TableLayout::default() }), expected);
    }

    #[test]
    fn what_all_rows_have_is_said_once() {
        let expected = "\
Files
  in all rows: files below /var/lib/mysql/, log type BINARY, commit -
                 transaction    compressed  saved
  file                 bytes  transactions      %
  binlog.000001    185.7 KiB         1,234   12.5
  binlog.000002    371.4 KiB         2,468   25.0
";
        assert_eq!(written(&section(2), TableLayout { width: Some(70), ..TableLayout::default() }), expected);
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let long = format!("/{}", "a long folder/".repeat(20));
        let title = "The files as a whole, by zstd, and what is lost by compressing each transaction alone";
        for rows in [0, 1, 2, 3, 4, 20] {
            for width in [60, 80, 90, 120] {
                let mut section = Section { title, ..section(rows) };
                if width == 60 {
                    section.rows.iter_mut().for_each(|row| row[4] = TableCell::from(long.clone()));
                    section
                        .rows
                        .iter_mut()
                        .skip(1)
                        .for_each(|row| row[1] = TableCell::from(long.clone() + "x"));
                }
                let text = written(&section, TableLayout { width: Some(width), ..TableLayout::default() });
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width), "{rows} rows, {width}:\n{text}");
                let cells: &[&str] = if rows == 0 { &["none"] } else { &["185.7 KiB", "1,234", "12.5"] };
                for cell in cells {
                    assert!(text.contains(cell), "{rows} rows, {width}:\n{text}");
                }
            }
        }
    }
}
