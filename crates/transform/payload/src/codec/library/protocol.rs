//! The protocol between binlogz and a helper that holds another libzstd, over pipes.
//!
//! ```text
//! request  operation (1) | size (4, little-endian) | bytes
//! reply    0 done, 1 failed (1) | size (4, little-endian) | bytes: what the compressor gave, or what is wrong
//! ```
//!
//! The helper begins with a reply that holds its library's version, then answers each request with one reply, until
//! its input ends. This file is compiled into both programs.

use std::io::{self, Read, Write};

/// Begins a frame: level (1), content checksum 0 or 1 (1), content size (8, little-endian; all bits set: unknown).
pub(crate) const BEGIN: u8 = 1;
/// Takes the next bytes of the frame.
pub(crate) const WRITE: u8 = 2;
/// Ends the block.
pub(crate) const FLUSH: u8 = 3;
/// Ends the frame.
pub(crate) const END: u8 = 4;

/// The content size of a frame that does not tell it.
pub(crate) const SIZE_UNKNOWN: u64 = u64::MAX;

/// The first byte of a reply to a request that succeeded.
pub(crate) const DONE: u8 = 0;
/// The first byte of a reply to a request that failed.
pub(crate) const FAILED: u8 = 1;

/// Bytes of a message, at most.
pub(crate) const MESSAGE_SIZE_MAX: usize = 64 << 20;

/// Writes a request or a reply.
///
/// # Errors
///
/// A pipe that is broken.
pub(crate) fn write_message(out: &mut impl Write, first: u8, bytes: &[u8]) -> io::Result<()> {
    let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&[first])?;
    out.write_all(&size.to_le_bytes())?;
    out.write_all(bytes)
}

/// Reads a request or a reply into `bytes`; `None` if the other side has ended.
///
/// # Errors
///
/// A pipe that is broken, or ends inside a message; a message that is larger than any.
pub(crate) fn read_message(input: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut first = [0];
    if input.read(&mut first)? == 0 {
        return Ok(None);
    }
    let mut size = [0; 4];
    input.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size) as usize;
    if size > MESSAGE_SIZE_MAX {
        let wrong = format!("message of {size} bytes, expected at most {MESSAGE_SIZE_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
    }
    bytes.resize(size, 0);
    input.read_exact(bytes)?;
    let [first] = first;
    Ok(Some(first))
}
