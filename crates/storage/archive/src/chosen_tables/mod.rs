//! A log with the rows of some tables only: what `archive create --table` puts into an archive, which is then a selection.
//!
//! ```text
//! binlog.000007             GTID · BEGIN · Table_map a · Table_map b · Rows a · Rows b · XID
//! binlog-selected.000007    GTID · BEGIN · Table_map a · filler      · Rows a · filler · XID
//! ```
//!
//! First payloads are expanded. Then a filler of its size takes the place of each event with rows of another table, so positions and
//! lengths are those of the log as `expand` writes it: of a log without payloads, its own. All transactions stay, with their GTIDs.
//! The log has a name of its own, since it is not the server's: nothing that compares it with the server's logs, or purges them, takes
//! one for the other.
//!
//! Statements stay, whatever tables they change; the texts of statements beside rows don't.
//!
//! * `choice`: which tables;
//! * `selected_log`: the events.

mod choice;
mod selected_log;

use std::sync::Arc;

use binlogz_flow::{Error as FlowError, Input, ReadAt, Rewrite, Rewriter};

pub use choice::{TableChoice, UnfitPattern};

use crate::error::{Error, Result};
use crate::log::framing::LogFraming;
use selected_log::SelectedLogWriter;

/// What follows the base name of a log.
const SUFFIX: &str = "-selected";
/// Bytes of a log that are read at once.
const PIECE_SIZE: usize = 256 << 10;

/// A log without the rows of other tables.
pub struct SelectedLog {
    /// Its bytes.
    pub log: Arc<dyn ReadAt>,
    /// The events in whose places fillers stand.
    pub events_left_out: u64,
}

/// The name of a log as a selection: `binlog-selected.000007`.
pub fn selected_name(log: &str) -> String {
    match log.rsplit_once('.') {
        Some((base, number)) => format!("{base}{SUFFIX}.{number}"),
        None => format!("{log}{SUFFIX}"),
    }
}

/// Leaves the rows of tables out of a closed log that are not chosen.
///
/// # Errors
///
/// A log that is torn or damaged, or MariaDB's; payloads that can't be expanded; a full disk.
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
    }
}
