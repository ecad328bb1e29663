//! The transaction around rows, as its GTID event tells it.

/// The facts about a transaction; everything is `None` where no GTID event stands before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeFrame {
    pub(crate) gtid: Option<String>,
    /// Where its GTID event begins.
    pub(crate) position: Option<u64>,
    /// When it was committed first, in microseconds since 1970.
    pub(crate) committed_at: Option<i64>,
    /// When it was committed on the server that wrote the log, in microseconds since 1970.
    pub(crate) applied_at: Option<i64>,
}

impl ChangeFrame {
    /// Times are microseconds since 1970.
    pub(crate) fn new(
        gtid: Option<String>,
        position: u64,
        original: Option<u64>,
        immediate: Option<u64>,
    ) -> Self {
        ChangeFrame {
            gtid,
            position: Some(position),
            committed_at: known_time(original),
            applied_at: known_time(immediate),
        }
    }
}

/// 0 is unknown: a server before 8.0.1 committed it first.
fn known_time(micros: Option<u64>) -> Option<i64> {
    i64::try_from(micros?).ok().filter(|time| *time > 0)
}
