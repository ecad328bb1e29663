//! An event as mysqlbinlog shows it: one inside a payload, or compressed by MariaDB, looks as if it were plain in the log,
//! with a checksum of its own; with `--rewrite-db`, it has its new name.

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, Result};
use binlogz_flow::events::Event;

use super::rename::renamed_body;

/// The event; see the module docs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownEvent<'a> {
    pub(super) header: EventHeader,
    pub(super) end_log_pos: u32,
    /// The position in `# at`.
    pub(super) position: u64,
    /// The whole event with its checksum; empty if its bytes are not needed.
    pub(super) bytes: &'a [u8],
    pub(super) body: &'a [u8],
    /// The checksum, if the log has checksums.
    pub(super) checksum: Option<u32>,
    pub(super) inside_payload: bool,
}

/// Memory for events that are not shown as they are in the log.
#[derive(Debug, Default)]
pub(super) struct ShownBuffer {
    bytes: Vec<u8>,
}

impl ShownBuffer {
    /// Shows an event; returns the place of the renaming rule that applied too. `emit`: checksum and bytes are needed.
    #[inline]
    pub(super) fn show<'a>(
        &'a mut self,
        event: &Event<'a>,
        renames: &[(Vec<u8>, Vec<u8>)],
        emit: bool,
    ) -> Result<(ShownEvent<'a>, Option<usize>)> {
        let algorithm = event.log.context.framing.checksum();
        let event_type = event.header.event_type;
        let renamed = match renames.is_empty() {
            true => None,
            false => renamed_body(event_type, event.body, event.log.lengths.of(event_type), renames)?,
        };
        let (rule, renamed) = renamed.unzip();
        let position = match event.position.inside {
            None => event.position.offset,
            Some(inside) => inside.end_log_pos.into(),
        };
        let mut shown = ShownEvent {
            header: event.header,
            end_log_pos: event.end_log_pos(),
            position,
            bytes: event.frame.map_or(&[][..], |frame| frame.bytes()),
            body: event.body,
            checksum: event.stored_checksum().filter(|_| algorithm.size() > 0),
            inside_payload: event.is_inside_payload(),
        };
        let is_stored = !shown.inside_payload && !event.is_expanded();
        if is_stored && renamed.is_none() || !emit && renamed.is_none() {
            return Ok((shown, rule));
        }
        let frame = event.frame.map_or(&[][..], |frame| frame.without_checksum());
        self.bytes.clear();
        self.bytes.extend_from_slice(frame.get(..HEADER_SIZE).unwrap_or_default());
        self.bytes.extend_from_slice(renamed.as_deref().unwrap_or(event.body));
        let checksum = append_checksum(&mut self.bytes, algorithm);
        shown.bytes = &self.bytes;
        // One that was compressed keeps its place in the log, as MariaDB's mysqlbinlog shows it.
        if !event.is_expanded() {
            shown.checksum = checksum;
            shown.header = EventHeader::decode(&self.bytes)?;
        }
        let end = self.bytes.len() - algorithm.size();
        shown.body = self.bytes.get(HEADER_SIZE..end).unwrap_or_default();
        Ok((shown, rule))
    }
}

/// Completes an event: its size in the header, its checksum after it.
fn append_checksum(bytes: &mut Vec<u8>, algorithm: ChecksumAlgorithm) -> Option<u32> {
    let size = (bytes.len() + algorithm.size()) as u32;
    if let Some(place) = bytes.get_mut(EVENT_SIZE_OFFSET..EVENT_SIZE_OFFSET + 4) {
        place.copy_from_slice(&size.to_le_bytes());
    }
    if algorithm.size() != CHECKSUM_SIZE {
        return None;
    }
    let mut crc = Crc32::new();
    crc.update(bytes);
    let checksum = crc.finish();
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Some(checksum)
}
