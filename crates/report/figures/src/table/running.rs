//! A table whose rows are printed as they come, before all of them are known. Its last column is text of any length, which
//! is folded on a terminal.

use std::io::{self, Write};

use super::columns::{self, FigureColumn, GAP, width_of};
use super::{TableLayout, block_heading};
use crate::section::TableCell;
use crate::wrap::{folded, front};

/// With less room than this, a long text stands on lines of its own.
const TEXT_WIDTH_MIN: usize = 20;
/// After a text that is cut.
const ELLIPSIS: &str = " …";
/// The columns of a terminal that it takes.
const ELLIPSIS_WIDTH: usize = 2;
/// Before such a line.
const INDENT: &str = "      ";

/// A table that is printed row by row.
#[derive(Debug)]
pub struct RunningTable {
    columns: Vec<FigureColumn>,
    text: FigureColumn,
    width: Option<usize>,
}

impl RunningTable {
    /// A table with columns as wide as the cells of `widest`, and a last one for text.
    pub fn new(columns: &[&str], text: &str, widest: &[TableCell], layout: TableLayout) -> Self {
        let column = |(name, cell): (&&str, &TableCell)| {
            FigureColumn::of(name, || [cell].into_iter(), layout.exact_sizes)
        };
        RunningTable {
            columns: columns.iter().zip(widest).map(column).collect(),
            text: FigureColumn::of(text, || [].into_iter(), false),
            width: layout.width,
        }
    }

    /// Writes the headings.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        block_heading(&self.columns.iter().chain([&self.text]).collect::<Vec<_>>(), out)
    }

    /// Writes a row on one line of at most this width, if the cells leave room for a text at all: it ends with an ellipsis where
    /// it is longer.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn cut_row(
        &self,
        cells: &[TableCell],
        text: &str,
        width: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let room = width.saturating_sub(width_of(&self.columns) + GAP.len());
        let text = self.text.later(&TableCell::from(text));
        if columns::width(&text) <= room {
            return self.line(cells, &text, out);
        }
        self.line(cells, &format!("{}{ELLIPSIS}", front(&text, room.saturating_sub(ELLIPSIS_WIDTH))), out)
    }

    /// Writes cells and a text on a line.
    fn line(&self, cells: &[TableCell], text: &str, out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            line.push_str(GAP);
            column.put(&column.later(cell), &mut line);
        }
        line.extend([GAP, text]);
        writeln!(out, "{}", line.trim_end())
    }

    /// Writes a row: as many cells as columns, and its text.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn row(&self, cells: &[TableCell], text: &str, out: &mut impl Write) -> io::Result<()> {
        let text = self.text.later(&TableCell::from(text));
        let beside = self.width.map(|width| width.saturating_sub(width_of(&self.columns) + GAP.len()));
        let (first, rest, indent) = match (self.width, beside) {
            (Some(width), Some(room)) if columns::width(&text) > room && room < TEXT_WIDTH_MIN => {
                (String::new(), folded(&text, width.saturating_sub(INDENT.len())), INDENT.to_owned())
            }
            (Some(_), Some(room)) => {
                let mut lines = folded(&text, room).into_iter();
                let indent = " ".repeat(width_of(&self.columns) + GAP.len());
                (lines.next().unwrap_or_default(), lines.collect(), indent)
            }
            _ => (text, Vec::new(), String::new()),
        };
        self.line(cells, &first, out)?;
        rest.iter().try_for_each(|text| writeln!(out, "{indent}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: Option<usize>, text: &str) -> String {
        let layout = TableLayout { width, ..TableLayout::default() };
        let table = RunningTable::new(
            &["Log_name", "Pos"],
            "Info",
            &["binlog.000001".into(), 999_999u64.into()],
            layout,
        );
        let mut out = Vec::new();
        table.heading(&mut out).unwrap();
        table.row(&["binlog.000001".into(), 4u64.into()], text, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_folded_on_a_terminal_alone() {
        let text = "use `shop`; INSERT INTO orders VALUES (1, 'customer')";
        assert_eq!(
            written(None, text),
            "  Log_name          Pos  Info\n  binlog.000001       4  use `shop`; INSERT INTO orders VALUES (1, \
             'customer')\n"
        );
        assert_eq!(
            written(Some(50), text),
            "  Log_name          Pos  Info\n  binlog.000001       4  use `shop`; INSERT INTO\n                         \
             orders VALUES (1,\n                         'customer')\n"
        );
        assert_eq!(
            written(Some(40), text),
            "  Log_name          Pos  Info\n  binlog.000001       4\n      use `shop`; INSERT INTO orders\n      VALUES (1, \
             'customer')\n"
        );
    }

    #[test]
    fn text_is_cut_where_a_row_is_one_line() {
        let layout = TableLayout::default();
        let table = RunningTable::new(&["Pos"], "Info", &[999_999u64.into()], layout);
        let cut = |text: &str, width| {
            let mut out = Vec::new();
            table.cut_row(&[4u64.into()], text, width, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(cut("use shop; INSERT INTO", 31), "       4  use shop; INSERT INTO\n");
        assert_eq!(cut("use shop; INSERT INTO", 30), "       4  use shop; INSERT I …\n");
        for width in 12..31 {
            let line = cut("use shop; INSERT INTO", width);
            assert!(
                line.trim_end().ends_with('…') && columns::width(line.trim_end()) <= width,
                "{width}: {line}"
            );
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "x".repeat(300);
        for width in 30..100 {
            let text = written(Some(width), &format!("{long} and {long}"));
            assert!(text.lines().all(|line| columns::width(line) <= width), "{width}:\n{text}");
            assert_eq!(text.matches('x').count(), 600);
        }
    }
}
