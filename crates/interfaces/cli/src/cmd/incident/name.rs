//! How one transaction is asked for: by its GTID, or where there is none by its log and the offset there.

use std::fmt;

use binlogz_binlog::gtid::Gtid;

use crate::cmd::row_changes::LogOffset;
use crate::log_path::LogPath;

/// The transaction that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IncidentName {
    Gtid(Gtid),
    Place(LogOffset),
}

impl IncidentName {
    /// The transaction that an argument names; `None`: the argument is a log.
    pub(super) fn of(argument: &LogPath) -> Option<Self> {
        let LogPath::File(path) = argument else { return None };
        let text = path.to_str().filter(|_| !path.exists())?;
        let gtid = text.parse().ok().map(IncidentName::Gtid);
        gtid.or_else(|| text.parse().ok().map(IncidentName::Place))
    }

    /// The option of `rows` and `undo` for it.
    pub(super) fn option(&self) -> &'static str {
        match self {
            IncidentName::Gtid(_) => "--gtids",
            IncidentName::Place(_) => "--transaction-at",
        }
    }
}

impl fmt::Display for IncidentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IncidentName::Gtid(gtid) => gtid.fmt(f),
            IncidentName::Place(place) => place.fmt(f),
        }
    }
}
