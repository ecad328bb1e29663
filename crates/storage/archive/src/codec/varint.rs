//! Numbers in as few bytes as they need: seven bits a byte, low bits first, the high bit set on all bytes but
//! the last. Signed numbers have the sign in the lowest bit.

use crate::error::{Error, Result};

const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= u64::from(MORE) {
        out.push(value as u8 | MORE);
        value >>= BITS;
    }
    out.push(value as u8);
}

/// Appends a signed number.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends the length of some bytes, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads packed bytes from the start; never runs past their end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taker<'a> {
    bytes: &'a [u8],
}

impl<'a> Taker<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Taker { bytes }
    }

    /// Bytes left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Takes a byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.bytes.split_first().ok_or_else(short)?;
        self.bytes = rest;
        Ok(first)
    }

    /// Takes a number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(BITS as usize) {
            let byte = self.byte()?;
            value |= u64::from(byte & !MORE) << shift;
            if byte < MORE {
                return Ok(value);
            }
        }
        Err(Error::damaged("number", "more than 64 bits", "at most 64"))
    }

    /// Takes a signed number.
    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Takes a number that may be at most `max`.
    pub(crate) fn at_most(&mut self, max: u64, what: &'static str) -> Result<usize> {
        match self.number()? {
            value if value <= max => Ok(value as usize),
            value => Err(Error::unexpected(what, value, format_args!("at most {max}"))),
        }
    }

    /// Takes `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count).ok_or_else(short)?;
        self.bytes = rest;
        Ok(front)
    }

    /// Passes these bytes, if they come next.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> bool {
        let rest = self.bytes.strip_prefix(bytes);
        self.bytes = rest.unwrap_or(self.bytes);
        rest.is_some()
    }

    /// Takes bytes preceded by their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.at_most(self.bytes.len() as u64, "length")?;
        self.take(count)
    }
}

fn short() -> Error {
    Error::damaged("packed bytes", "their end", "more bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_cut_ones_are_errors() {
        for value in [0, 1, -1, 63, 64, -64, -65, 300, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, value);
            put(&mut bytes, value as u64);
            let mut taker = Taker::new(&bytes);
            assert_eq!((taker.signed().unwrap(), taker.number().unwrap()), (value, value as u64));
            assert_eq!(taker.left(), 0);
            assert!(taker.byte().is_err());
            assert!(Taker::new(&bytes[..0]).number().is_err());
        }
        assert!(Taker::new(&[0xff; 11]).number().is_err());
        assert!(Taker::new(&[200, 1, 0]).bytes().is_err());
    }
}
