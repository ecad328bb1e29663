//! The rows as one document for programs.

use binlogz_figures::Tone;
use serde::Serialize;

use crate::row::FleetRow;

/// All rows, and whether they are well; the names in JSON are stable.
#[derive(Debug, Serialize)]
pub struct FleetDocument<'a> {
    /// Whether nothing is red.
    pub healthy: bool,
    /// The rows, the worst first.
    pub rows: &'a [FleetRow],
}

impl FleetDocument<'_> {
    /// The document of these rows.
    pub fn of(rows: &[FleetRow]) -> FleetDocument<'_> {
        FleetDocument { healthy: rows.iter().all(|row| row.tone < Tone::Bad), rows }
    }
}
