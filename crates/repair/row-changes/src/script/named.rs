//! The bytes of a row's name, which stands before the row's other bytes, for messages.
//!
//! ```text
//! size field
//!    2 size       of the name
//!    n name
//!      content    the rest
//! ```

use std::borrow::Cow;

/// A row's name, and the bytes written about the row after it.
pub(super) struct NamedTransactions<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) content: &'b [u8],
}

impl<'b> NamedTransactions<'b> {
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk()?;
        let (name, content) = rest.split_at_checked(usize::from(u16::from_le_bytes(*size)))?;
        Some(NamedTransactions { name: String::from_utf8_lossy(name), content })
    }

    /// Appends a name; the content follows.
    pub(super) fn push(out: &mut Vec<u8>, push_name: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; 2]);
        push_name(out);
        let size = (out.len() - start - 2).min(usize::from(u16::MAX));
        out.truncate(start + 2 + size);
        if let Some(place) = out.get_mut(start..start + 2) {
            place.copy_from_slice(&(size as u16).to_le_bytes());
        }
    }
}
