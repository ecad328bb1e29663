//! Streams of zlib in MariaDB's events and columns, expanded to a size that is known and not trusted.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::error::{Error, Result};

const WHAT: &str = "zlib stream";
/// The most bytes that one byte of a deflate stream expands to (zlib's technical notes give 1032:1).
const RATIO_MAX: u64 = 1032;
/// Memory that is taken on trust for an expanded stream; beyond it, as much again as has come out.
const TRUSTED: usize = 64 << 10;

/// The bytes before and after a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// zlib's header and checksum.
    Zlib,
    /// Nothing.
    Raw,
}

/// The most bytes that a stream of this many bytes can expand to.
pub(crate) fn expanded_size_max(size: usize) -> u64 {
    (size as u64).saturating_mul(RATIO_MAX)
}

/// Appends the expansion of a stream that fills `bytes`. Its size must be `size`.
///
/// # Errors
///
/// Bytes that are no such stream, one that is cut or goes on; another size.
pub(crate) fn expand(bytes: &[u8], size: usize, wrap: Wrap, out: &mut Vec<u8>) -> Result<()> {
    let bad = |found: &str| Error::invalid(WHAT, "content", found, "a whole stream of the size given");
    if size as u64 > expanded_size_max(bytes.len()) {
        return Err(bad("too short for its size"));
    }
    let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF | wrap.flags();
    let begin = out.len();
    let mut decompressor = Box::<DecompressorOxide>::default();
    let mut taken = 0;
    let mut made = 0;
    out.resize(begin + size.min(TRUSTED), 0);
    loop {
        let room = out.get_mut(begin..).unwrap_or_default();
        let rest = bytes.get(taken..).unwrap_or_default();
        let (status, read, written) = decompress(&mut decompressor, rest, room, made, flags);
        taken += read;
        made += written;
        match status {
            TINFLStatus::Done if taken == bytes.len() && made == size => {
                out.truncate(begin + made);
                return Ok(());
            }
            TINFLStatus::Done if made != size => return Err(bad("of another size")),
            TINFLStatus::Done => return Err(bad("followed by other bytes")),
            TINFLStatus::HasMoreOutput if made < size => out.resize(begin + size.min(2 * made), 0),
            TINFLStatus::HasMoreOutput => return Err(bad("longer than its size")),
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                return Err(bad("cut off"));
            }
            TINFLStatus::Adler32Mismatch => return Err(bad("of another checksum")),
            TINFLStatus::Failed | TINFLStatus::BadParam => return Err(bad("damaged")),
        }
    }
}

/// Fills `start` with the first bytes of a stream's expansion and says how many there are. The stream may be cut
/// after them. `None`: bytes that are no stream.
pub(crate) fn expand_start(bytes: &[u8], start: &mut [u8]) -> Option<usize> {
    let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF | Wrap::Zlib.flags();
    let mut decompressor = Box::<DecompressorOxide>::default();
    let (status, _, made) = decompress(&mut decompressor, bytes, start, 0, flags);
    match status {
        TINFLStatus::Done | TINFLStatus::HasMoreOutput => Some(made),
        _ => None,
    }
}

impl Wrap {
    fn flags(self) -> u32 {
        match self {
            Wrap::Zlib => TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_COMPUTE_ADLER32,
            Wrap::Raw => 0,
        }
    }
}
