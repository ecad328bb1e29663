//! A log with some tables only: what `archive create --table` puts into an archive, which is then a selection.
//!
//! ```text
//! binlog.000007             GTID · BEGIN · Table_map a · Table_map b · Rows a · Rows b · XID    GTID · DROP TABLE b
//! binlog-selected.000007    GTID · BEGIN · Table_map a · filler      · Rows a · filler · XID    GTID · BEGIN · filler · COMMIT
//! ```
//!
//! First payloads are expanded. Then fillers take the place of what is about other tables, byte for byte as large, so positions and
//! lengths are those of the log as `expand` writes it: of a log without payloads, its own. All transactions stay, with their GTIDs.
//! The log has a name of its own, since it is not the server's: nothing that compares it with the server's logs, or purges them, takes
//! one for the other. And the fillers of table maps and statements name their tables, so readers tell what was there.
//!
//! * `choice`: which tables;
//! * `statement_fate`: which statements are about them;
//! * `doubts`: what isn't known for certain;
//! * `filler`: what stands in the place of an event;
//! * `empty_xa`: prepared transactions of which no rows stay;
//! * `selected_log`: the events.

mod choice;
mod doubts;
mod empty_xa;
mod filler;
mod selected_log;
mod statement_fate;

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_flow::{Error as FlowError, Input, ReadAt, Rewrite, Rewriter};

pub use choice::{TableChoice, UnfitPattern};
pub use doubts::SelectionDoubts;

use crate::error::{Error, Result};
use crate::log::framing::LogFraming;
use selected_log::SelectedLogWriter;

/// What follows the base name of a log.
const SUFFIX: &str = "-selected";
/// Bytes of a log that are read at once.
const PIECE_SIZE: usize = 256 << 10;

/// A log with some tables only.
pub struct SelectedLog {
    /// Its bytes.
    pub log: Arc<dyn ReadAt>,
    /// Events with rows of other tables, or with a statement's text beside rows, that were left out.
    pub events_left_out: u64,
    /// Statements that were left out.
    pub statements_left_out: u64,
    /// Tables with rows, of those that the choice [names](TableChoice::named).
    pub met: BTreeSet<String>,
    /// What isn't known about it.
    pub doubts: SelectionDoubts,
}

/// The name of a log as a selection: `binlog-selected.000007`.
pub fn selected_name(log: &str) -> String {
    match log.rsplit_once('.') {
        Some((base, number)) => format!("{base}{SUFFIX}.{number}"),
        None => format!("{log}{SUFFIX}"),
    }
}

/// Whether a log has the name of a selection.
pub fn is_selected_name(log: &str) -> bool {
    log.rsplit_once('.').map_or(log, |(base, _)| base).ends_with(SUFFIX)
}

/// Leaves out of a closed log what is about tables that are not chosen.
///
/// # Errors
///
/// A log that is torn or damaged, or has events that nobody can read; payloads that can't be expanded; a full disk.
pub fn select(log: &Arc<dyn ReadAt>, choice: &TableChoice, workers: usize) -> Result<SelectedLog> {
    check_whole(log.as_ref())?;
    let mut writer = SelectedLogWriter::new(choice)?;
    let rewritten =
        Rewriter::new(Rewrite::Expand).workers(workers).run(Input::Places(log.clone()), &mut writer);
    if let Some(error) = writer.take_error() {
        return Err(error);
    }
    rewritten.map_err(unexpanded)?;
    writer.finish()
}

/// Refuses a log that doesn't end with an event, or has a damaged one: which tables' rows are missing isn't known.
fn check_whole(log: &dyn ReadAt) -> Result<()> {
    let mut framing = LogFraming::default();
    let mut piece = vec![0; PIECE_SIZE];
    let mut offset = 0;
    loop {
        let count = log.fill_at(&mut piece, offset).map_err(Error::io("read"))?;
        framing.feed(piece.get(..count).unwrap_or_default());
        offset += count as u64;
        if count < piece.len() {
            break;
        }
    }
    framing.torn().map_or(Ok(()), |torn| Err(Error::Torn(torn)))
}

fn unexpanded(error: FlowError) -> Error {
    Error::io("expand payloads, to leave out rows of other tables")(std::io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_has_a_name_of_its_own() {
        assert_eq!(selected_name("binlog.000007"), "binlog-selected.000007");
        assert_eq!(selected_name("my.log.000007"), "my.log-selected.000007");
        assert_eq!(selected_name("copy"), "copy-selected");
        for name in ["binlog.000007", "my.log.000007", "copy"] {
            assert!(is_selected_name(&selected_name(name)) && !is_selected_name(name), "{name}");
        }
    }
}
