//! A new view of a Group Replication group: its members are agreed from here on.
//!
//! ```text
//! offset size field
//!      0   40 view_id                   NUL padded
//!     40    8 sequence_number
//!     48    4 certification_info_count
//!     52      certification_info        each: key_length u16, key, value_length u32, value
//! ```
//!
//! (Facts of MySQL 9.7.4's `View_change_event`.)

use crate::cursor::Cursor;
use crate::error::Result;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "view change event";
/// Bytes of a view's name.
pub(crate) const VIEW_ID_SIZE: usize = 40;

/// A decoded view change event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewChangeEvent<'a> {
    /// Name of the view, NUL padded.
    pub view_id: &'a [u8],
    /// Sequence number of the view among the group's transactions.
    pub sequence_number: u64,
    certification_info_count: u32,
    certification_info: &'a [u8],
}

impl<'a> ViewChangeEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let view_id = cursor.bytes(VIEW_ID_SIZE, "view id")?;
            let sequence_number = cursor.u64("sequence number")?;
            let certification_info_count = cursor.u32("certification info count")?;
            let certification_info = cursor.peek();
            for _ in 0..certification_info_count {
                read_entry(cursor)?;
            }
            Ok(ViewChangeEvent { view_id, sequence_number, certification_info_count, certification_info })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(VIEW_ID_SIZE + 12 + self.certification_info.len());
        body.put(self.view_id);
        body.put_u64(self.sequence_number);
        body.put_u32(self.certification_info_count);
        body.put(self.certification_info);
        body
    }

    /// Name of the view without its padding.
    pub fn view_name(&self) -> &'a [u8] {
        self.view_id.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Keys and values of the certification database, where the event carries it.
    pub fn certification_info(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut cursor = Cursor::new(self.certification_info, WHAT);
        // Every entry was read once when the event was decoded.
        std::iter::from_fn(move || read_entry(&mut cursor).ok())
    }
}

fn read_entry<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], &'a [u8])> {
    let key_length = cursor.u16("key length")?;
    let key = cursor.bytes(usize::from(key_length), "key")?;
    let value_length = cursor.u32("value length")?;
    let value = cursor.bytes_u64(u64::from(value_length), "value")?;
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let mut body = b"16370000000000000:3".to_vec();
        body.resize(VIEW_ID_SIZE, 0);
        body.extend_from_slice(b"\x07\0\0\0\0\0\0\0\x02\0\0\0\x01\0k\x02\0\0\0vw\0\0\0\0\0\0");
        let event = ViewChangeEvent::decode(&body).unwrap();
        assert_eq!((event.view_name(), event.sequence_number), (b"16370000000000000:3".as_slice(), 7));
        let entries: Vec<_> = event.certification_info().collect();
        assert_eq!(entries, [(b"k".as_slice(), b"vw".as_slice()), (b"", b"")]);
        assert_eq!(event.encode(), body);
        for length in 0..body.len() {
            assert!(ViewChangeEvent::decode(&body[..length]).is_err(), "{length}");
        }
        assert!(ViewChangeEvent::decode(&[&body[..], b"x"].concat()).is_err());
        body[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(ViewChangeEvent::decode(&body).is_err());
    }
}
