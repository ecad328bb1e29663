//! The rows as one document for programs.

use binlogz_figures::Tone;
use serde::Serialize;

use super::row::FleetRow;

/// All rows, and whether they are well; the names in JSON are stable.
#[derive(Debug, Serialize)]
pub(super) struct FleetDocument<'a> {
    /// Whether nothing is red.
    pub(super) healthy: bool,
    /// The rows, the worst first.
    pub(super) rows: &'a [FleetRow],
}

impl FleetDocument<'_> {
    /// The document of these rows.
    pub(super) fn of(rows: &[FleetRow]) -> FleetDocument<'_> {
        FleetDocument { healthy: rows.iter().all(|row| row.tone < Tone::Bad), rows }
    }
}
