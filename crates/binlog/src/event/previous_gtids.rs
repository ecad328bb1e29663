//! The GTIDs of all files before this one: the second event of each file.
//!
//! The body is a GTID set in binary form, tagged or untagged; see `gtid/encoding.rs` for its table.

use crate::error::{Error, Result};
use crate::frame::EventFrame;
use crate::gtid::{GtidSet, GtidSetFormat};

const WHAT: &str = "previous GTIDs event";

/// A decoded previous-GTIDs event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousGtidsEvent {
    /// The GTIDs of the files before.
    pub gtid_set: GtidSet,
    /// The form it was written in: tagged sets without a tag exist.
    pub format: GtidSetFormat,
}

impl PreviousGtidsEvent {
    /// Reads the event.
    pub fn decode_frame(frame: &EventFrame<'_>) -> Result<Self> {
        Self::decode(frame.body())
    }

    /// Reads a body without its checksum. Takes only what a server writes, sorted and without
    /// empty entries, so that the event is written back as it was.
    pub fn decode(body: &[u8]) -> Result<Self> {
        let (gtid_set, format) = GtidSet::decode(body)?;
        let event = PreviousGtidsEvent { gtid_set, format };
        if event.encode() != body {
            return Err(Error::invalid(WHAT, "GTID set", "unsorted or padded", "the order of the server"));
        }
        Ok(event)
    }

    /// The body as it stands in a log, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.gtid_set.encode(self.format, &mut body);
        body
    }
}
