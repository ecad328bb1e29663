//! The terminal that a table goes to: how wide it is.

use std::env;
use std::io::{self, IsTerminal};

use binlogz_figures::Layout;
use clap::Args;

/// Narrower tables read worse than broken lines.
const WIDTH_MIN: usize = 40;

/// How sizes are shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct SizesArg {
    /// Show sizes in bytes, not in KiB, MiB and so on; JSON and CSV always have bytes
    #[arg(long)]
    bytes: bool,
}

impl SizesArg {
    /// How tables on standard output are laid out.
    pub(crate) fn layout(self) -> Layout {
        Layout { width: width(), exact_sizes: self.bytes }
    }

    /// Whether they are shown in bytes.
    pub(crate) fn are_exact(self) -> bool {
        self.bytes
    }

    /// A size in a sentence.
    pub(crate) fn in_words(self, bytes: u64) -> String {
        match self.bytes {
            true => format!("{} bytes", binlogz_figures::grouped(bytes)),
            false => binlogz_figures::human_size(bytes),
        }
    }

    /// A size below a heading.
    pub(crate) fn show(self, bytes: u64) -> String {
        match self.bytes {
            true => binlogz_figures::grouped(bytes),
            false => binlogz_figures::human_size(bytes),
        }
    }
}

/// Columns of the terminal that is standard output; `None`: it is none, and lines may have any length. COLUMNS comes first,
/// as for other programs.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let given = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = given.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))?;
    Some(width.max(WIDTH_MIN))
}
