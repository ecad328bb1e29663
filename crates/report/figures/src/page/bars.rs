//! A chart of horizontal bars, each with its value beside it: names of any length have room, on a phone too.

use std::io::{self, Write};

use super::text::{EscapedText, Share};
use super::unit::FigureUnit;

/// Rows of bars on one scale that begins at nought.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The unit of all values.
    pub unit: FigureUnit,
    /// The meaning of the colours; a single one is not explained.
    pub series: Vec<Series>,
    /// The rows.
    pub rows: Vec<BarRow>,
    /// The value that the whole width stands for, at least.
    pub full: f64,
}

/// A colour's meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Name of the series.
    pub label: String,
    /// Colour of the series.
    pub paint: Paint,
}

/// Colours by their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The others are compared with it: off, plain.
    Quiet,
    /// The subject of the chart.
    First,
    /// A second subject.
    Second,
    /// A third subject.
    Third,
    /// A fourth subject.
    Fourth,
    /// Figures that others measured elsewhere: hatched.
    Elsewhere,
}

impl Paint {
    /// The colours of measurements, in the order in which they are given.
    pub const ALL: [Paint; 4] = [Paint::First, Paint::Second, Paint::Third, Paint::Fourth];

    pub(super) fn class(self) -> &'static str {
        match self {
            Paint::Quiet => "p0",
            Paint::First => "p1",
            Paint::Second => "p2",
            Paint::Third => "p3",
            Paint::Fourth => "p4",
            Paint::Elsewhere => "p5",
        }
    }
}

impl Series {
    /// A series of this name and colour.
    pub fn new(label: impl Into<String>, paint: Paint) -> Series {
        Series { label: label.into(), paint }
    }
}

/// A row about one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct BarRow {
    /// The row's name.
    pub label: String,
    /// Smaller, below it.
    pub detail: String,
    /// Whether it is the one that counts.
    pub is_chosen: bool,
    /// The bars of the row.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The place of its series.
    pub series: usize,
    /// The value that the bar's length shows.
    pub value: f64,
    /// Between which values the true one lies.
    pub interval: Option<(f64, f64)>,
    /// The text beside it, after its value.
    pub more: String,
}

impl Bar {
    /// A bar of a value that is known exactly.
    pub fn new(series: usize, value: f64) -> Bar {
        Bar { series, value, interval: None, more: String::new() }
    }
}

impl Bars {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write_legend(&self.series, out)?;
        let bars = self.rows.iter().flat_map(|row| &row.bars);
        let ends = bars.flat_map(|bar| [Some(bar.value), bar.interval.map(|(_, high)| high)]).flatten();
        let full = ends.filter(|end| end.is_finite()).fold(self.full.max(f64::MIN_POSITIVE), f64::max);
        writeln!(out, "<div class=\"bars\" role=\"list\">")?;
        for row in &self.rows {
            let chosen = if row.is_chosen { " chosen" } else { "" };
            write!(
                out,
                "<div class=\"row{chosen}\" role=\"listitem\"><div class=\"name\">{}",
                EscapedText(&row.label)
            )?;
            if !row.detail.is_empty() {
                write!(out, " <small>{}</small>", EscapedText(&row.detail))?;
            }
            write!(out, "</div><div class=\"lines\">")?;
            for bar in &row.bars {
                self.write_bar(bar, full, out)?;
            }
            writeln!(out, "</div></div>")?;
        }
        writeln!(out, "</div>")
    }

    fn write_bar(&self, bar: &Bar, full: f64, out: &mut impl Write) -> io::Result<()> {
        let (label, paint) = match self.series.get(bar.series) {
            Some(series) => (series.label.as_str(), series.paint),
            None => ("", Paint::First),
        };
        let said = if self.series.len() > 1 { label } else { "" };
        // A value above nought has a bar that can be seen.
        let some = if bar.value > 0.0 { " some" } else { "" };
        write!(
            out,
            "<div class=\"line\"><div class=\"track\"><span class=\"bar {}{some}\" style=\"width:{}\" data-value=\"{}\" \
             title=\"{}\"></span>",
            paint.class(),
            Share(bar.value / full),
            bar.value,
            EscapedText(said),
        )?;
        if let Some((low, high)) = bar.interval {
            let low = low.max(0.0) / full;
            let high = high / full;
            let title = EscapedText("how far it may be off").to_string();
            write!(
                out,
                "<span class=\"interval\" style=\"left:{};width:{}\" title=\"{title}\"></span>",
                Share(low),
                Share(high - low)
            )?;
        }
        write!(out, "</div><div class=\"value\"><b>{}</b>", EscapedText(&self.unit.text(bar.value)))?;
        if !bar.more.is_empty() {
            write!(out, " <small>{}</small>", EscapedText(&bar.more))?;
        }
        writeln!(out, "</div></div>")
    }
}

/// The meaning of the colours.
pub(super) fn write_legend(series: &[Series], out: &mut impl Write) -> io::Result<()> {
    if series.len() < 2 {
        return Ok(());
    }
    write!(out, "<ul class=\"legend\">")?;
    for one in series {
        write!(out, "<li><i class=\"{}\"></i>{}</li>", one.paint.class(), EscapedText(&one.label))?;
    }
    writeln!(out, "</ul>")
}
