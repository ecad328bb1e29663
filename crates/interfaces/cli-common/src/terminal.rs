//! How wide the terminal is that a table goes to.

use std::env;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use binlogz_figures::{TableLayout, wrapped};
use clap::Args;

/// Narrower tables read worse than broken lines.
const WIDTH_MIN: usize = 40;

/// The width of tables in files and pipes: what a terminal window of a laptop shows in one line, and a mail.
pub const PIPE_WIDTH: usize = 120;

/// How sizes are shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct SizesArg {
    /// Show sizes in bytes, not in KiB, MiB and so on; JSON and CSV always have bytes
    #[arg(long)]
    bytes: bool,
}

impl SizesArg {
    /// How tables on standard output are laid out, as wide as they have to be where it is no terminal.
    pub fn layout(self) -> TableLayout {
        TableLayout { width: width(), exact_sizes: self.bytes }
    }

    /// A size in a sentence.
    pub fn in_words(self, bytes: u64) -> String {
        match self.bytes {
            true => format!("{} bytes", binlogz_figures::grouped(bytes)),
            false => binlogz_figures::human_size(bytes),
        }
    }
}

/// How tables for people are shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct TableArgs {
    #[command(flatten)]
    sizes: SizesArg,
    /// Lines as long as they have to be: otherwise no longer than the terminal, in files and pipes than 120 characters
    #[arg(long)]
    wide: bool,
}

impl TableArgs {
    /// How tables on standard output are laid out.
    pub fn layout(self) -> TableLayout {
        self.layout_on(&io::stdout())
    }

    /// How tables on this stream are laid out.
    pub fn layout_on(self, stream: &(impl IsTerminal + AsFd)) -> TableLayout {
        let width = (!self.wide).then(|| width_of(stream).unwrap_or(PIPE_WIDTH));
        TableLayout { width, exact_sizes: self.sizes.bytes }
    }

    /// Whether columns that people seldom need are shown too.
    pub fn is_wide(self) -> bool {
        self.wide
    }

    /// How sizes are shown.
    pub fn sizes(self) -> SizesArg {
        self.sizes
    }
}

/// Columns of the terminal that is standard output; `None`: it is none, and lines may have any length. COLUMNS comes first,
/// as for other programs.
pub fn width() -> Option<usize> {
    width_of(&io::stdout())
}

/// Lines of a text, none wider than the terminal that is standard output: continued lines are indented.
pub fn within_width(text: &str) -> String {
    text.lines().map(|line| wrapped(line, "", "  ", width()) + "\n").collect()
}

/// A line, broken where it is wider than the terminal that this stream is: continued lines are indented.
pub(crate) fn within_width_of(stream: &(impl IsTerminal + AsFd), line: &str) -> String {
    wrapped(line, "", "  ", width_of(stream))
}

/// Columns of the terminal that this stream is.
fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let given = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    Some(given.or_else(of_terminal)?.max(WIDTH_MIN))
}
