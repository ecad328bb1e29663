//! Adjusts transactions' logical clocks to their file: in a later part of a stored file, the clock counts from that
//! part's beginning.
//!
//! ```text
//! sequence_number   minus those before the part
//! last_committed    the same; 0 if that is before the part: a replica has all that by then
//! ```
//!
//! Numbers in a tagged GTID event have variable length, so its size changes, and so does the transaction's length.

use binlogz_binlog::event::{AnyGtidEvent, rewrite_transaction_length, transaction_length};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{EventFrame, VerifiedFrame};
use binlogz_payload::{PositionRule, RewrittenPiece, RewrittenSpan};
use binlogz_relay_log::{EventGroup, Result};

/// Replaces the GTID event at the beginning of a transaction; `frame`: as it is in the stored file.
pub(crate) fn set_back(
    frame: &VerifiedFrame<'_>,
    group: &EventGroup,
    by: i64,
    rewritten: &mut RewrittenPiece,
) -> Result<()> {
    let context = rewritten.context;
    let checksum = context.framing.checksum();
    let at = |error: binlogz_binlog::Error| error.at(group.begin, Some(group.first.event_type));
    let event = frame.bytes();
    let verified = frame.proof();
    let Some(decoded) = AnyGtidEvent::decode_frame(frame).map_err(at)? else { return Ok(()) };
    let Some(clock) = decoded.logical_clock() else { return Ok(()) };
    let body = decoded.with_logical_clock(clock.counted_after(by)).encode().map_err(at)?;
    let own = context.has_own_position(&group.first, group.begin + event.len() as u64);
    let length = |span: &RewrittenSpan| match span {
        RewrittenSpan::Plain(range) | RewrittenSpan::New { range, .. } => range.end - range.start,
    };
    let following = match rewritten.spans.split_first() {
        // A transaction that was never completed has the length that was announced for it.
        Some((RewrittenSpan::Plain(_), _)) => transaction_length(frame).map_err(at)?.unwrap_or_default(),
        Some((_, behind)) => behind.iter().map(length).sum::<u64>() + event.len() as u64,
        None => return Ok(()),
    };
    let following = following.saturating_sub(event.len() as u64);
    let changed = encode_event(*frame.header(), &body, checksum);
    let changed = EventFrame::from_bytes(&changed, checksum.size()).map_err(at)?.proven(verified);
    let mut made = Vec::new();
    rewrite_transaction_length(&changed, following, &mut made).map_err(at)?;
    let begin = rewritten.spool.size();
    rewritten.spool.append(&made).map_err(binlogz_payload::Error::from)?;
    let range = begin..rewritten.spool.size();
    let rest = match rewritten.spans.first_mut() {
        Some(RewrittenSpan::Plain(all)) => {
            all.start += event.len() as u64;
            let positions =
                if own { PositionRule::Own } else { PositionRule::Fixed(group.first.end_log_pos) };
            Some(RewrittenSpan::New { range, positions, verified })
        }
        Some(RewrittenSpan::New { range: old, .. }) => {
            *old = range;
            None
        }
        None => None,
    };
    rewritten.spans.splice(0..0, rest);
    Ok(())
}
