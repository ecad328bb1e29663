//! A cursor over a borrowed slice that can't run past its end.
//!
//! Each take names its field, so that an error says which one was cut. All integers are little-endian. `LEI`
//! is MySQL's length-encoded integer (`net_store_length`), `VLI` the variable length integer of
//! `mysql::serialization` (see [`crate::event::GtidTaggedEvent`]):
//!
//! ```text
//! LEI  first byte 0..=250 the value · 252 +2 bytes · 253 +3 bytes · 254 +8 bytes · 251, 255 refused
//! VLI  n trailing one-bits in the first byte = n more bytes; the value stands above the zero bit
//!      that ends the run; 0xff = 8 raw bytes follow
//! ```

use crate::error::{Error, Result};

/// Takes fields from the front of a slice.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`; `what` names them in errors.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Cursor { bytes, what }
    }

    /// The name that errors use for the bytes being read.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Bytes not yet taken.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes not yet taken, without taking them.
    pub fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// Takes `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8]> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => Err(self.short(field, count as u64)),
        }
    }

    /// Takes `count` bytes; the count comes from the wire.
    #[inline]
    pub fn bytes_u64(&mut self, count: u64, field: &'static str) -> Result<&'a [u8]> {
        match usize::try_from(count) {
            Ok(count) => self.bytes(count, field),
            Err(_) => Err(self.short(field, count)),
        }
    }

    /// Takes `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        match self.bytes.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(*taken)
            }
            None => Err(self.short(field, N as u64)),
        }
    }

    /// Takes all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    /// Takes two bytes.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Takes three bytes.
    #[inline]
    pub(crate) fn u24(&mut self, field: &'static str) -> Result<u32> {
        Ok(self.uint(3, field)? as u32)
    }

    /// Takes four bytes.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Takes eight bytes.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// Takes eight bytes as a signed number.
    #[inline]
    pub fn i64(&mut self, field: &'static str) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array(field)?))
    }

    /// Takes an unsigned number of `width` bytes, at most 8.
    #[inline]
    pub(crate) fn uint(&mut self, width: usize, field: &'static str) -> Result<u64> {
        debug_assert!(width <= 8, "a u64 has eight bytes");
        let taken = self.bytes(width, field)?;
        Ok(taken.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte)))
    }

    /// Takes a length-encoded integer. NULL (251) and 255 are refused: no field may contain them.
    #[inline]
    pub fn lei(&mut self, field: &'static str) -> Result<u64> {
        match self.u8(field)? {
            value @ 0..=250 => Ok(u64::from(value)),
            252 => self.uint(2, field),
            253 => self.uint(3, field),
            254 => self.uint(8, field),
            other => Err(Error::invalid(
                self.what,
                field,
                format!("the length prefix {other:#04x}"),
                "a length-encoded integer",
            )),
        }
    }

    /// Takes an unsigned variable-length integer of `mysql::serialization`.
    pub(crate) fn vli(&mut self, field: &'static str) -> Result<u64> {
        let first = self.u8(field)?;
        let extra = first.trailing_ones() as usize;
        match extra {
            8 => self.uint(8, field),
            7 => self.uint(7, field),
            _ => {
                let high = self.uint(extra, field)?;
                Ok(u64::from(first >> (extra + 1)) | high << (7 - extra))
            }
        }
    }

    /// Takes a signed variable-length integer (zig-zag, sign in bit 0).
    pub(crate) fn vli_signed(&mut self, field: &'static str) -> Result<i64> {
        let raw = self.vli(field)?;
        let magnitude = (raw >> 1) as i64;
        Ok(if raw & 1 == 0 { magnitude } else { !magnitude })
    }

    /// Takes a name as events store it: a length-encoded length, the bytes, a NUL.
    pub(crate) fn name_nul(&mut self, field: &'static str) -> Result<&'a [u8]> {
        let length = self.lei(field)?;
        let name = self.bytes_u64(length, field)?;
        match self.u8(field)? {
            0 => Ok(name),
            other => Err(Error::invalid(self.what, field, format!("ended by {other:#04x}"), "a closing NUL")),
        }
    }

    /// Ends the reading: leftover bytes are an error.
    pub fn finish(&self) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            count => Err(Error::LeftOver { what: self.what, count: count as u64 }),
        }
    }

    #[cold]
    fn short(&self, field: &'static str, needed: u64) -> Error {
        Error::Short { what: self.what, field, needed, left: self.bytes.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put::PutFields;

    #[test]
    fn lei_round_trips_at_every_width() {
        for value in [0, 250, 251, 252, 65_535, 65_536, 16_777_215, 16_777_216, u64::MAX] {
            let mut bytes = Vec::new();
            bytes.put_lei(value);
            assert_eq!(bytes.len(), crate::put::lei_size(value));
            let mut cursor = Cursor::new(&bytes, "test");
            assert_eq!(cursor.lei("value").unwrap(), value);
            cursor.finish().unwrap();
            assert!(Cursor::new(&bytes[..bytes.len() - 1], "test").lei("value").is_err());
        }
        assert!(Cursor::new(&[251], "test").lei("value").is_err());
        assert!(Cursor::new(&[255, 0, 0], "test").lei("value").is_err());
    }

    #[test]
    fn vli_round_trips_at_every_width() {
        let mut values = vec![0, u64::MAX];
        values.extend((0..64).flat_map(|bit| [1 << bit, (1u64 << bit) - 1]));
        for value in values {
            let mut bytes = Vec::new();
            bytes.put_vli(value);
            assert_eq!(bytes.len(), crate::put::vli_size(value), "{value}");
            let mut cursor = Cursor::new(&bytes, "test");
            assert_eq!(cursor.vli("value").unwrap(), value);
            cursor.finish().unwrap();
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            bytes.put_vli_signed(value);
            assert_eq!(Cursor::new(&bytes, "test").vli_signed("value").unwrap(), value);
        }
    }

    #[test]
    fn a_short_field_is_named() {
        let error = Cursor::new(&[1, 2], "rotate event").u64("position").unwrap_err();
        assert_eq!(error.to_string(), "rotate event: position needs 8 bytes, 2 are left");
    }

    #[test]
    fn left_over_bytes_are_an_error() {
        let error = Cursor::new(&[0], "stop event").finish().unwrap_err();
        assert_eq!(error.to_string(), "stop event: 1 bytes left over after the last field");
    }
}
