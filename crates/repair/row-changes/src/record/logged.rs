//! A row's images as a row event has them.
//!
//! ```text
//! size field
//!    2+n name      the row, as messages name it
//!   16 keys        the digest of its keys' values; 0: that isn't known
//!    1 event type
//!    2 size        of the bitmaps, together
//!    4 before      bytes of the image before, of an UPDATE of a table whose key isn't known; otherwise 0
//!    n bitmaps     one, of an update two
//!    n images      likewise
//! ```

use std::borrow::Cow;
use std::io;

use binlogz_binlog::EventType;
use binlogz_binlog::put::PutFields;

use super::fields::{RecordFields, push_name};

/// The images of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedImages<'b> {
    pub(crate) event_type: EventType,
    pub(crate) bitmaps: &'b [u8],
    pub(crate) images: &'b [u8],
    /// Bytes of the image before, of an UPDATE of a table whose key isn't known; otherwise 0.
    pub(crate) before_size: usize,
}

impl<'b> LoggedImages<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(bytes);
        let event_type = EventType(fields.u8()?);
        let size = fields.u16()?;
        let before_size = fields.u32()? as usize;
        let bitmaps = fields.bytes(size.into())?;
        Ok(LoggedImages { event_type, bitmaps, images: fields.rest(), before_size })
    }

    /// Appends them.
    ///
    /// # Errors
    ///
    /// Bitmaps or images that are too large.
    pub(crate) fn push(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let size = u16::try_from(self.bitmaps.len()).map_err(|error| error.to_string())?;
        let before_size = u32::try_from(self.before_size).map_err(|error| error.to_string())?;
        out.put_u8(self.event_type.0);
        out.put_u16(size);
        out.put_u32(before_size);
        out.put(self.bitmaps);
        out.put(self.images);
        Ok(())
    }

    /// The images of an UPDATE of a table whose key isn't known, before and after; the latter is `None` if it lacks columns that the one
    /// before has.
    pub(crate) fn without_key(&self) -> Option<(&'b [u8], Option<&'b [u8]>)> {
        let (before, after) =
            self.images.split_at_checked(self.before_size).filter(|(before, _)| !before.is_empty())?;
        let (bitmap_before, bitmap_after) = self.bitmaps.split_at_checked(self.bitmaps.len() / 2)?;
        Some((before, (bitmap_before == bitmap_after).then_some(after)))
    }
}

/// A row that goes into a log: its name, the digest of its keys, its images as bytes.
pub(crate) struct LoggedChange<'b> {
    pub(crate) name: Cow<'b, str>,
    pub(crate) keys: u128,
    pub(crate) images: &'b [u8],
}

impl<'b> LoggedChange<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(bytes);
        Ok(LoggedChange { name: fields.name()?, keys: fields.u128()?, images: fields.rest() })
    }

    /// Appends what stands before the images.
    pub(crate) fn push_front(out: &mut Vec<u8>, push_text: impl FnOnce(&mut Vec<u8>), keys: u128) {
        push_name(out, push_text);
        out.put(&keys.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_come_back_after_their_name() {
        let event_type = EventType::UPDATE_ROWS;
        let bitmaps = &b"\x01\x01"[..];
        let images = &b"ab"[..];
        let logged = LoggedImages { event_type, bitmaps, images, before_size: 1 };
        let mut bytes = Vec::new();
        LoggedChange::push_front(&mut bytes, |out| out.put(b"a row"), 1 << 100);
        logged.push(&mut bytes).unwrap();
        let change = LoggedChange::read(&bytes).unwrap();
        assert_eq!((&*change.name, change.keys), ("a row", 1 << 100));
        let read = LoggedImages::read(change.images).unwrap();
        assert_eq!((read, read.without_key()), (logged, Some((&b"a"[..], Some(&b"b"[..])))));
        LoggedImages::read(&change.images[..8]).unwrap_err();
    }
}
