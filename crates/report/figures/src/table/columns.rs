//! The columns of a table as texts, with their widths.

use binlogz_binlog::printable;
use unicode_width::UnicodeWidthStr;

use super::words::{self, NumberKind};
use crate::section::{Section, TableCell};
use crate::{grouped, human_size};

/// Between columns, and before the first.
pub(super) const GAP: &str = "  ";

/// A column.
#[derive(Debug)]
pub(super) struct FigureColumn {
    /// Lines, the last just above the cells.
    pub(super) heading: Vec<String>,
    pub(super) cells: Vec<String>,
    /// To the right.
    is_number: bool,
    kind: NumberKind,
    width: usize,
}

/// Columns of a terminal that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The columns of a section.
pub(super) fn columns(section: &Section, exact_sizes: bool) -> Vec<FigureColumn> {
    let cells = |place| section.rows.iter().filter_map(move |row| row.get(place));
    let column = |(place, name): (usize, &&str)| FigureColumn::of(name, || cells(place), exact_sizes);
    section.columns.iter().enumerate().map(column).collect()
}

/// Columns of a terminal that all of them take.
pub(super) fn width_of(columns: &[FigureColumn]) -> usize {
    columns.iter().map(FigureColumn::full_width).sum()
}

/// On one line, whatever a table is called.
fn text(cell: &TableCell, kind: NumberKind) -> String {
    match (cell, kind) {
        (TableCell::Text(text), _) => printable(text).into_owned(),
        (TableCell::Moment(microseconds, digits), _) => digits.local(*microseconds),
        (TableCell::Null, _) => "-".to_owned(),
        (TableCell::Number(number), NumberKind::Size) if u64::try_from(*number).is_ok() => {
            human_size(number.unsigned_abs() as u64)
        }
        (TableCell::Number(number), NumberKind::Size | NumberKind::Count) => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", grouped(number.unsigned_abs()))
        }
        (cell, _) => cell.exact(),
    }
}

impl FigureColumn {
    /// The column of this name with these cells.
    pub(super) fn of<'c, C: Iterator<Item = &'c TableCell>>(
        name: &str,
        cells: impl Fn() -> C,
        exact_sizes: bool,
    ) -> Self {
        let kind = match words::kind(name) {
            NumberKind::Size if exact_sizes => NumberKind::Count,
            kind => kind,
        };
        let mut column = FigureColumn {
            heading: vec![words::heading(name)],
            cells: cells().map(|cell| text(cell, kind)).collect(),
            is_number: cells().any(|cell| matches!(cell, TableCell::Number(_) | TableCell::Decimal(..))),
            kind,
            width: 0,
        };
        column.measure();
        column
    }

    /// A cell that comes later.
    pub(super) fn later(&self, cell: &TableCell) -> String {
        text(cell, self.kind)
    }

    fn measure(&mut self) {
        self.width = self.heading.iter().chain(&self.cells).map(|text| width(text)).max().unwrap_or(0);
    }

    /// With the gap before it.
    pub(super) fn full_width(&self) -> usize {
        GAP.len() + self.width
    }

    pub(super) fn cell(&self, row: usize) -> &str {
        self.cells.get(row).map_or("", String::as_str)
    }

    /// A line of a heading among headings of this height, which end together.
    pub(super) fn heading_line(&self, line: usize, height: usize) -> &str {
        let line = (line + self.heading.len()).checked_sub(height);
        line.and_then(|line| self.heading.get(line)).map_or("", String::as_str)
    }

    /// Adds a text in the column's width.
    pub(super) fn put(&self, text: &str, line: &mut String) {
        let padding = " ".repeat(self.width.saturating_sub(width(text)));
        match self.is_number {
            true => line.extend([padding.as_str(), text]),
            false => line.extend([text, padding.as_str()]),
        }
    }

    /// Breaks the heading into lines that are no wider than the cells, or than its longest word.
    pub(super) fn fold_heading(&mut self) {
        let words: Vec<_> = self.heading.iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect();
        let room = words.iter().chain(&self.cells).map(|text| width(text)).max().unwrap_or(0);
        let mut lines: Vec<String> = Vec::new();
        for word in words {
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(&word) <= room => line.extend([" ", &word]),
                _ => lines.push(word),
            }
        }
        self.heading = lines;
        self.measure();
    }
}

/// How many of the first columns name the rows: the first, and texts after it up to this width in all.
pub(super) fn names(columns: &[FigureColumn], width_max: usize) -> usize {
    let mut used = 0;
    let texts = columns.iter().take_while(|column| {
        used += column.full_width();
        !column.is_number && used <= width_max
    });
    texts.count().max(1).min(columns.len())
}

/// Takes out what all rows have in common, and says it: columns with one value, and the folder of the names in the first.
pub(super) fn take_common(columns: &mut Vec<FigureColumn>) -> Vec<String> {
    let mut common = Vec::new();
    if let Some(names) = columns.first_mut() {
        let folder = folder_of(&names.cells).to_owned();
        if !folder.is_empty() {
            common.push(format!("{}s below {folder}", names.heading.join(" ")));
            names.cells.iter_mut().for_each(|cell| drop(cell.drain(..folder.len())));
            names.fold_heading();
        }
    }
    let mut is_first = true;
    columns.retain(|column| {
        let of_one = column.cells.windows(2).all(|pair| pair.first() == pair.last());
        if std::mem::take(&mut is_first) || !of_one {
            return true;
        }
        common.push(format!("{} {}", column.heading.join(" "), column.cell(0)));
        false
    });
    common
}

/// The common beginning of all of these paths, up to a slash.
fn folder_of(paths: &[String]) -> &str {
    let Some(first) = paths.first() else { return "" };
    let mut of_first = first.rmatch_indices('/').map(|(slash, _)| first.get(..=slash).unwrap_or_default());
    of_first.find(|folder| paths.iter().all(|path| path.starts_with(folder))).unwrap_or("")
}
