//! How wide the terminal is that answers go to.

use std::env;
use std::io::{self, IsTerminal};

/// On narrower ones lines are broken all the same.
const WIDTH_MIN: usize = 40;

/// Columns of the terminal that is standard output; `None`: it is none. COLUMNS comes first, as for other programs.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let given = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    Some(given.or_else(of_terminal)?.max(WIDTH_MIN))
}
