//! A report as one page: opens offline, in a browser or on paper, and loads nothing else.
//!
//! ```text
//! Chart (bars, dots, lines, sparks), Section → Page → HTML with its style, and the report's JSON document as data
//! ```
//!
//! Everything is drawn when the page is written, as HTML and SVG, so it is complete without JavaScript. Its content policy forbids every
//! script, and no name from a log can become one. On a page with times it names one by its hash, which adds the reader's own time beside
//! UTC (`clock.rs`).

mod axis;
mod bars;
mod clock;
mod dots;
mod lines;
mod sparks;
mod tables;
mod text;
mod tiles;
mod unit;

use std::io::{self, Write};

pub use axis::ChartAxis;
pub use bars::{Bar, BarRow, Bars, Paint, Series};
pub use dots::{DotRow, Dots};
pub use lines::{ChartLine, LineChart};
pub use sparks::{SparkRow, Sparks};
pub use tiles::Tile;
pub use unit::FigureUnit;

use crate::section::Section;
use crate::write::FigureFormat;
use clock::ClockDigits;
use text::{EscapedText, WrappableText, in_script};

const STYLE: &str = include_str!("page.css");

/// A report.
#[derive(Debug)]
pub struct Page<'a> {
    /// The page's title.
    pub title: &'a str,
    /// A line below it.
    pub subtitle: &'a str,
    /// Of when the figures are, in seconds since 1970, if the page says so.
    pub as_of: Option<u64>,
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

/// Nothing is fetched from anywhere and nothing runs: the browser would refuse.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

impl Chart {
    /// Whether it shows times.
    fn has_times(&self) -> bool {
        match self {
            Chart::Lines(lines) => lines.at.has_times(),
            Chart::Bars(_) | Chart::Dots(_) | Chart::Sparks(_) => false,
        }
    }
}

impl Page<'_> {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let has_times = self.as_of.is_some() || self.charts.iter().any(|card| card.chart.has_times());
        let script =
            if has_times { format!("; script-src 'sha256-{}'", clock::SCRIPT_HASH) } else { String::new() };
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}{script}\">\n\
             <title>{}{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            self.state.map_or_else(String::new, |(_, word)| format!("{} · ", EscapedText(word))),
            EscapedText(self.title)
        )?;
        self.write_head(out)?;
        // People deal with trouble before they look at anything else.
        if self.state.is_some() {
            self.write_steps(out)?;
            tiles::write_tiles(self.tiles, out)?;
        } else {
            tiles::write_tiles(self.tiles, out)?;
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
             <script type=\"application/json\" id=\"figures\">{}</script>\n",
            env!("CARGO_PKG_VERSION"),
            in_script(&figures)
        )?;
        if has_times {
            // Nothing around it: the hash is that of the whole element.
            writeln!(out, "<script id=\"zone\">{}</script>", clock::SCRIPT)?;
        }
        write!(out, "</body>\n</html>\n")
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let tone = self.state.map_or("", |(tone, _)| tone.name());
        write!(out, "<header><h1>{}</h1><p>{}", WrappableText(self.title), WrappableText(self.subtitle))?;
        if let Some(time) = self.as_of {
            write!(out, "{}as of ", if self.subtitle.is_empty() { "" } else { "; " })?;
            clock::write_time(time, ClockDigits::Date, out)?;
        }
        writeln!(out, "</p></header>\n<section class=\"lead {tone}\">")?;
        if let Some((tone, word)) = self.state {
            writeln!(out, "{}", tone.badge(word))?;
        }
        writeln!(out, "<strong>{}</strong>", WrappableText(self.lead))?;
        if !self.reasons.is_empty() {
            write!(out, "<ul>")?;
            self.reasons.iter().try_for_each(|reason| write!(out, "<li>{}</li>", WrappableText(reason)))?;
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
            write!(out, "<li>{}", WrappableText(&step.what))?;
            if !step.paste.is_empty() {
                let lines: Vec<_> = step.paste.lines().map(|line| EscapedText(line).to_string()).collect();
                write!(out, "<pre tabindex=\"0\"><code>{}</code></pre>", lines.join("\n"))?;
            }
            writeln!(out, "</li>")?;
        }
        writeln!(out, "</ol></section>")
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
