//! Values of MariaDB's COMPRESSED columns, each compressed by itself, and rows with such values expanded.
//!
//! ```text
//! size field
//!    1 method      bits 4 to 7: 0 stored as it is, 8 zlib; bit 3: without zlib's header and checksum;
//!                  bits 0 to 2: bytes of the size, with zlib
//!    n size        of the value, big-endian
//!      bytes
//! ```
//!
//! An empty value has no bytes at all. (Facts of MariaDB 10.11's `sql/field_comp.cc` and
//! `Field_longstr::uncompress`.)

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::put::PutFields;
use crate::zlib::{self, Wrap};

const WHAT: &str = "compressed value";
const STORED: u8 = 0;
const ZLIB: u8 = 8;
const RAW: u8 = 0x08;
const SIZE_OF_SIZE: u8 = 0x07;

/// The bytes before a value that is stored as it is; none if it is empty.
pub(super) fn front_of_uncompressed(value: &[u8]) -> Option<&'static [u8]> {
    (!value.is_empty()).then_some(&[STORED])
}

/// Appends the value, its length in four bytes before it.
pub(super) fn expand(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let begin = out.len();
    out.put_u32(0);
    let mut cursor = Cursor::new(stored, WHAT);
    if !cursor.is_empty() {
        let method = cursor.u8("method")?;
        match method >> 4 {
            STORED => out.put(cursor.rest()),
            ZLIB => {
                let size = cursor.bytes(usize::from(method & SIZE_OF_SIZE), "size")?;
                let size =
                    size.iter().try_fold(0u32, |size, &byte| Some(size.checked_mul(256)? | u32::from(byte)));
                let size =
                    size.ok_or_else(|| Error::invalid(WHAT, "size", "above 4 GiB", "one that a row has"))?;
                let wrap = if method & RAW == 0 { Wrap::Zlib } else { Wrap::Raw };
                zlib::expand(cursor.rest(), size as usize, wrap, out)?;
            }
            other => return Err(Error::invalid(WHAT, "method", other, "0 (stored) or 8 (zlib)")),
        }
    }
    // Sizes have at most 32 bits, see above; what is stored as it is stands in an event.
    let length = (out.len() - begin - 4) as u32;
    if let Some(front) = out.get_mut(begin..begin + 4) {
        front.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

    fn expanded(stored: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        expand(stored, &mut out)?;
        let (length, value) = out.split_first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, value.len());
        Ok(value.to_vec())
    }

    #[test]
    fn every_method_gives_the_value() {
        let value = [b'x'; 300];
        assert_eq!(expanded(b"").unwrap(), b"");
        assert_eq!(expanded(b"\0abc").unwrap(), b"abc");
        let zlib = [&[0x82, 1, 44], &compress_to_vec_zlib(&value, 6)[..]].concat();
        assert_eq!(expanded(&zlib).unwrap(), value);
        let raw = [&[0x8a, 1, 44], &compress_to_vec(&value, 6)[..]].concat();
        assert_eq!(expanded(&raw).unwrap(), value);
    }

    #[test]
    fn damaged_values_are_refused() {
        let value = [b'x'; 300];
        let stream = compress_to_vec_zlib(&value, 6);
        for front in [&[0x82, 1, 43][..], &[0x82, 1, 45], &[0x8a, 1, 44], &[0x92, 1, 44], &[0x80], &[0x87]] {
            assert!(expanded(&[front, &stream].concat()).is_err(), "{front:x?}");
        }
        let whole = [&[0x82, 1, 44], &stream[..]].concat();
        for cut in 1..whole.len() {
            assert!(expanded(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
