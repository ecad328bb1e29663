//! A report as one page: opens offline, in a browser or on paper, loads nothing else and runs no script.
//!
//! ```text
//! Chart (bars, dots, lines, sparks), Section → Page → HTML with its style, and the report's JSON document as data
//! ```
//!
//! Everything is drawn when the page is written, as HTML and SVG. So it looks the same without JavaScript, its content
//! policy forbids every script, and no name from a log can become one.

mod bars;
mod dots;
mod lines;
mod sparks;
mod tables;
mod text;
mod unit;

use std::io::{self, Write};

pub use bars::{Bar, BarRow, Bars, Paint, Series};
pub use dots::{DotRow, Dots};
pub use lines::{ChartLine, LineChart};
pub use sparks::{SparkRow, Sparks};
pub use unit::FigureUnit;

use crate::section::Section;
use crate::write::FigureFormat;
use text::{EscapedText, in_script};

const STYLE: &str = include_str!("page.css");

/// A report.
#[derive(Debug)]
pub struct Page<'a> {
    /// The page's title.
    pub title: &'a str,
    /// A line below it.
    pub subtitle: &'a str,
    /// The state that the page shows, as a tone and as a word; `None`: it shows none.
    pub state: Option<(Tone, &'a str)>,
    /// The conclusion, in a sentence.
    pub lead: &'a str,
    /// The reasons of the lead.
    pub reasons: &'a [String],
    /// The next steps.
    pub steps: &'a [PageStep],
    /// The figures that count most.
    pub tiles: &'a [Tile],
    /// The charts.
    pub charts: &'a [Card],
    /// Tables below the charts.
    pub tables: &'a [Section],
    /// All figures: the JSON document.
    pub figures: &'a [Section],
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tone {
    /// Nothing to do.
    Good,
    /// Neither; or not known.
    #[default]
    Neutral,
    /// To be watched.
    Warning,
    /// To be dealt with.
    Bad,
}

impl Tone {
    /// The tone as a word: good, neutral, warning, bad.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Neutral => "neutral",
            Tone::Warning => "warning",
            Tone::Bad => "bad",
        }
    }

    /// The tone of this name.
    pub fn of_name(name: &str) -> Option<Tone> {
        [Tone::Good, Tone::Neutral, Tone::Warning, Tone::Bad].into_iter().find(|tone| tone.name() == name)
    }

    /// A word on its colour, with a sign of its own: colour alone says nothing to some.
    fn badge(self, word: &str) -> String {
        let sign = match self {
            Tone::Good => "●",
            Tone::Neutral => "○",
            Tone::Warning => "▲",
            Tone::Bad => "■",
        };
        format!(
            "<span class=\"badge {}\"><i aria-hidden=\"true\">{sign}</i> {}</span>",
            self.name(),
            EscapedText(word)
        )
    }
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStep {
    /// The step in words.
    pub what: String,
    /// The text to paste; may be empty.
    pub paste: String,
}

/// A figure, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The figure.
    pub figure: String,
    /// The name of the thing.
    pub what: String,
    /// How good or bad the figure is.
    pub tone: Tone,
}

impl Tile {
    /// A figure that is neither good nor bad.
    pub fn new(figure: impl Into<String>, what: impl Into<String>) -> Tile {
        Tile { figure: figure.into(), what: what.into(), tone: Tone::Neutral }
    }
}

/// A chart with its heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The heading above it.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// Whether it takes the whole width.
    pub is_wide: bool,
    /// The chart.
    pub chart: Chart,
}

/// The kind of a chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Bars from nought.
    Bars(Bars),
    /// Dots on a logarithmic scale.
    Dots(Dots),
    /// Lines over an axis.
    Lines(LineChart),
    /// Small lines beside names and states.
    Sparks(Sparks),
}

/// More tiles stand in lines of four.
const TILES_OF_A_LINE: usize = 6;

/// Nothing is fetched from anywhere and nothing runs: the browser would refuse.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

impl Page<'_> {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{}{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            self.state.map_or_else(String::new, |(_, word)| format!("{} · ", EscapedText(word))),
            EscapedText(self.title)
        )?;
        self.write_head(out)?;
        // People deal with trouble before they look at anything else.
        if self.state.is_some() {
            self.write_steps(out)?;
            self.write_tiles(out)?;
        } else {
            self.write_tiles(out)?;
            self.write_steps(out)?;
        }
        if !self.charts.is_empty() {
            writeln!(out, "<div class=\"grid\">")?;
            self.charts.iter().try_for_each(|card| card.write(out))?;
            writeln!(out, "</div>")?;
        }
        self.tables.iter().try_for_each(|table| tables::write_table(table, out))?;
        let mut figures = Vec::new();
        FigureFormat::Json.write(self.figures, &mut figures)?;
        // The same without white space, which is half of it.
        let figures = serde_json::from_slice::<serde_json::Value>(&figures)?.to_string();
        write!(
            out,
            "<footer>binlogz {} · sizes in powers of 1024 · all times UTC</footer>\n</main>\n\
             <script type=\"application/json\" id=\"figures\">{}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            in_script(&figures)
        )
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let tone = self.state.map_or("", |(tone, _)| tone.name());
        writeln!(
            out,
            "<header><h1>{}</h1><p>{}</p></header>\n<section class=\"lead {tone}\">",
            EscapedText(self.title),
            EscapedText(self.subtitle)
        )?;
        if let Some((tone, word)) = self.state {
            writeln!(out, "{}", tone.badge(word))?;
        }
        writeln!(out, "<strong>{}</strong>", EscapedText(self.lead))?;
        if !self.reasons.is_empty() {
            write!(out, "<ul>")?;
            self.reasons.iter().try_for_each(|reason| write!(out, "<li>{}</li>", EscapedText(reason)))?;
            write!(out, "</ul>")?;
        }
        writeln!(out, "</section>")
    }

    fn write_steps(&self, out: &mut impl Write) -> io::Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }
        writeln!(out, "<section class=\"card steps\"><h2>What to do</h2><ol>")?;
        for step in self.steps {
            write!(out, "<li>{}", EscapedText(&step.what))?;
            if !step.paste.is_empty() {
                let lines: Vec<_> = step.paste.lines().map(|line| EscapedText(line).to_string()).collect();
                write!(out, "<pre tabindex=\"0\"><code>{}</code></pre>", lines.join("\n"))?;
            }
            writeln!(out, "</li>")?;
        }
        writeln!(out, "</ol></section>")
    }

    fn write_tiles(&self, out: &mut impl Write) -> io::Result<()> {
        if self.tiles.is_empty() {
            return Ok(());
        }
        let many = if self.tiles.len() > TILES_OF_A_LINE { " many" } else { "" };
        write!(out, "<div class=\"tiles{many}\">")?;
        for Tile { figure, what, tone } in self.tiles {
            write!(
                out,
                "<div class=\"{}\"><b>{}</b><span>{}</span></div>",
                tone.name(),
                EscapedText(figure),
                EscapedText(what)
            )?;
        }
        writeln!(out, "</div>")
    }
}

impl Card {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let wide = if self.is_wide { " broad" } else { "" };
        write!(out, "<section class=\"card{wide}\"><h2>{}</h2>", EscapedText(&self.title))?;
        if !self.note.is_empty() {
            write!(out, "<p>{}</p>", EscapedText(&self.note))?;
        }
        match &self.chart {
            Chart::Bars(bars) => bars.write(out)?,
            Chart::Dots(dots) => dots.write(out)?,
            Chart::Lines(lines) => lines.write(&self.title, out)?,
            Chart::Sparks(sparks) => sparks.write(out)?,
        }
        writeln!(out, "</section>")
    }
}

#[cfg(test)]
mod tests;
