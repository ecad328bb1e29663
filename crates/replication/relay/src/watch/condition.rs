//! The condition of a source as a word and a colour: its page, JSON and the page of `binlogz fleet` show the same.

use binlogz_figures::Tone;

use super::status::SourceReport;
use crate::receive::control::Phase;

/// Further behind than this, the relay or a replica is shown as behind.
pub(crate) const BEHIND_SECONDS: u64 = 60;
/// The state of a source whose log could not be opened.
pub(crate) const NOT_SERVED: (Tone, &str) = (Tone::Bad, "Not served");

pub(crate) fn of(status: &SourceReport) -> (Tone, &'static str) {
    match (status.source.phase, status.source.lag_seconds) {
        (Phase::Failed, _) => (Tone::Bad, "Failed"),
        _ if !status.is_healthy() => (Tone::Bad, "Needs attention"),
        (Phase::Waiting, _) => (Tone::Bad, "Source down"),
        (Phase::Stopped, _) => (Tone::Warning, "Stopped"),
        (Phase::Connecting, _) => (Tone::Warning, "Connecting"),
        (Phase::Receiving, None) => (Tone::Neutral, "Beginning"),
        (Phase::Receiving, Some(lag)) if lag >= BEHIND_SECONDS => (Tone::Warning, "Behind"),
        (Phase::Receiving, Some(_)) => (Tone::Good, "Live"),
    }
}
