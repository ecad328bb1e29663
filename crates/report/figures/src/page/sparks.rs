//! A chart of things that are watched: each with its state as a word and a colour, and a small line for the last hour.

use std::io::{self, Write};

use super::Tone;
use super::lines::write_spark;
use super::text::{EscapedText, WrappableText};

/// A list of the watched things.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sparks {
    /// The quantity that the lines show.
    pub of: String,
    /// The text if there is none.
    pub none: String,
    /// The value that a line's height stands for, at least.
    pub full: f64,
    /// The things watched.
    pub rows: Vec<SparkRow>,
}

/// A thing that is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct SparkRow {
    /// The row's name.
    pub label: String,
    /// Smaller, below it.
    pub detail: String,
    /// How good or bad its state is.
    pub tone: Tone,
    /// The state as a word, shown in the tone's colour.
    pub word: String,
    /// The present value.
    pub now: String,
    /// Smaller, below that.
    pub more: String,
    /// The values of the last hour; empty: nothing is drawn.
    pub values: Vec<Option<f64>>,
}

/// More rows are only counted: nobody reads on, and tables have them all.
const ROWS_SHOWN: usize = 100;

impl Sparks {
    /// How many are well.
    pub fn well(&self) -> usize {
        self.rows.iter().filter(|row| row.tone == Tone::Good).count()
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return writeln!(out, "<p class=\"none\">{}</p>", EscapedText(&self.none));
        }
        writeln!(out, "<div class=\"sparks\" role=\"list\">")?;
        for row in self.rows.iter().take(ROWS_SHOWN) {
            write!(
                out,
                "<div class=\"row {}\" role=\"listitem\"><div class=\"name\"><b>{}</b> <small>{}</small></div>",
                row.tone.name(),
                WrappableText(&row.label),
                WrappableText(&row.detail)
            )?;
            write!(out, "<div class=\"state\">{}</div><div class=\"drawn\">", row.tone.badge(&row.word))?;
            if !row.values.is_empty() {
                write_spark(&row.values, self.full, &format!("{} of {}", self.of, row.label), out)?;
            }
            writeln!(
                out,
                "</div><div class=\"now\"><b>{}</b> <small>{}</small></div></div>",
                EscapedText(&row.now),
                EscapedText(&row.more)
            )?;
        }
        writeln!(out, "</div>")?;
        match self.rows.len().saturating_sub(ROWS_SHOWN) {
            0 => Ok(()),
            more => writeln!(out, "<p class=\"note\">And {more} more.</p>"),
        }
    }
}
