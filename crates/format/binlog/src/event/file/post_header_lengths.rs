//! Bytes of each type's post-header, as the last format description announced them, and the family of the server that wrote it: the
//! only things needed to read a body besides its bytes.

use super::{FormatDescription, POST_HEADER_LENGTHS, ServerFamily};
use crate::error::{Error, Result};
use crate::event_type::{EventClass, EventType};

/// Post-header lengths by type. Small and `Copy`: it travels with a batch of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostHeaderLengths {
    lengths: [u8; POST_HEADER_LENGTHS.len()],
    family: ServerFamily,
}

impl Default for PostHeaderLengths {
    /// The post-header lengths of MySQL 9.7, for streams without a format description.
    fn default() -> Self {
        PostHeaderLengths { lengths: POST_HEADER_LENGTHS, family: ServerFamily::Unknown }
    }
}

impl From<&FormatDescription> for PostHeaderLengths {
    fn from(description: &FormatDescription) -> Self {
        Self { family: description.into(), ..Self::new(&description.post_header_lengths) }
    }
}

impl PostHeaderLengths {
    /// Takes the lengths announced for types from 1 on, by a server of any family; types that are not announced have 0.
    pub fn new(announced: &[u8]) -> Self {
        let mut lengths = [0; POST_HEADER_LENGTHS.len()];
        for (length, &announced) in lengths.iter_mut().zip(announced) {
            *length = announced;
        }
        PostHeaderLengths { lengths, family: ServerFamily::Unknown }
    }

    /// The post-header length of a type, in bytes; 0 for types beyond those of MySQL 9.7.
    #[inline]
    pub fn of(&self, event_type: EventType) -> u8 {
        length_of(&self.lengths, event_type)
    }

    /// The family of the server that announced them.
    pub fn family(&self) -> ServerFamily {
        self.family
    }

    /// Refuses a length that would make us misread the type.
    ///
    /// Most post-headers have had the same length since 5.0. Row events and table maps check their own, GTID
    /// events grew, a payload has none whatever is announced, a format description gives its own, and nothing
    /// reads the types that were dropped before 5.0.
    #[inline]
    pub(in crate::event) fn check(&self, event_type: EventType) -> Result<()> {
        let has_one_length = match event_type.class() {
            EventClass::File => event_type != EventType::FORMAT_DESCRIPTION,
            EventClass::Gtid => event_type == EventType::GTID_TAGGED,
            EventClass::Statement
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::Commit
            | EventClass::Incident
            | EventClass::Heartbeat
            | EventClass::GroupContext
            | EventClass::GroupView => true,
            EventClass::TableMap | EventClass::Rows | EventClass::Payload => false,
            EventClass::Ignorable | EventClass::Dead | EventClass::Unknown => false,
            // No format description gives a length for these.
            EventClass::FileNote
            | EventClass::MariadbGtid
            | EventClass::CompressedStatement
            | EventClass::CompressedRows => false,
        };
        let found = self.of(event_type);
        if has_one_length && found != length_of(&POST_HEADER_LENGTHS, event_type) {
            return Err(Error::invalid(
                "format description event",
                "post-header length of this type",
                found,
                "the length that every server of 5.0 to 9.7 announces",
            ));
        }
        Ok(())
    }
}

fn length_of(lengths: &[u8], event_type: EventType) -> u8 {
    let index = usize::from(event_type.0).checked_sub(1);
    index.and_then(|index| lengths.get(index)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_announced_have_no_post_header() {
        let lengths = PostHeaderLengths::new(&POST_HEADER_LENGTHS[..4]);
        assert_eq!(lengths.of(EventType::ROTATE), 8);
        assert_eq!(lengths.of(EventType::APPEND_BLOCK), 0);
        assert_eq!(lengths.of(EventType::UNKNOWN), 0);
        assert_eq!(lengths.of(EventType(255)), 0);
        let many = PostHeaderLengths::new(&[7; 255]);
        assert_eq!((many.of(EventType(42)), many.of(EventType(43))), (7, 0));
    }

    #[test]
    fn a_type_with_one_length_is_checked() {
        assert!(PostHeaderLengths::default().check(EventType::QUERY).is_ok());
        let lengths = PostHeaderLengths::new(&[0x38, 11]);
        assert!(lengths.check(EventType::QUERY).is_err());
        assert!(lengths.check(EventType::XID).is_ok());
        assert!(lengths.check(EventType::GTID).is_ok());
    }
}
