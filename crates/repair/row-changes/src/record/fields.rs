//! The fields of a record. Numbers are little-endian.

use std::borrow::Cow;
use std::io;

use binlogz_binlog::put::PutFields;

/// Stands for no number.
const NONE: u64 = u64::MAX;

/// Takes the fields of a record, one after the other.
pub(crate) struct RecordFields<'b>(&'b [u8]);

impl<'b> RecordFields<'b> {
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        RecordFields(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn u8(&mut self) -> io::Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> io::Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> io::Result<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// A number that may be missing, as [`or_none`] writes it.
    pub(crate) fn number(&mut self) -> io::Result<Option<u64>> {
        self.u64().map(|number| (number != NONE).then_some(number))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) fn bytes(&mut self, size: usize) -> io::Result<&'b [u8]> {
        let (field, rest) = self.0.split_at_checked(size).ok_or_else(broken)?;
        self.0 = rest;
        Ok(field)
    }

    /// Bytes after their size, as [`put_sized`] writes them.
    pub(crate) fn sized(&mut self) -> io::Result<&'b [u8]> {
        let size = self.u32()?;
        self.bytes(size as usize)
    }

    /// A text for messages, as [`push_name`] writes it.
    pub(crate) fn name(&mut self) -> io::Result<Cow<'b, str>> {
        let size = self.u16()?;
        self.bytes(size.into()).map(String::from_utf8_lossy)
    }

    /// The bytes up to a NUL, which is taken too.
    pub(crate) fn until_nul(&mut self) -> io::Result<&'b [u8]> {
        let size = self.0.iter().position(|byte| *byte == 0).ok_or_else(broken)?;
        let field = self.bytes(size)?;
        self.u8()?;
        Ok(field)
    }

    /// The bytes that were not read yet.
    pub(crate) fn rest(self) -> &'b [u8] {
        self.0
    }

    /// Ends reading; bytes that are left are an error.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(broken()) }
    }
}

/// A number that may be missing, in eight bytes.
pub(crate) fn or_none(number: Option<u64>) -> [u8; 8] {
    number.unwrap_or(NONE).to_le_bytes()
}

/// Appends bytes after their size.
pub(crate) fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put(bytes);
}

/// Appends a text for messages after its size, in two bytes: what exceeds that is cut off.
pub(crate) fn push_name(out: &mut Vec<u8>, push_text: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u16(0);
    push_text(out);
    let size = (out.len() - start - 2).min(usize::from(u16::MAX));
    out.truncate(start + 2 + size);
    if let Some(place) = out.get_mut(start..start + 2) {
        place.copy_from_slice(&(size as u16).to_le_bytes());
    }
}

/// Our own bytes came back otherwise: a temporary file was changed.
pub(crate) fn broken() -> io::Error {
    io::Error::other("a temporary file does not hold what was written to it")
}
