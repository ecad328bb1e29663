//! zstd for bytes that no better code is known for: long window, one level for little, another for much.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter};

use crate::error::{Error, Result};

/// Up to so many bytes the highest sensible level is worth its time.
const SMALL_MAX: usize = 64 << 10;
const LEVEL_SMALL: i32 = 19;
const LEVEL_LARGE: i32 = 12;
/// Matches reach back over a whole block.
const WINDOW_LOG: u32 = 25;

const LEVEL_SAMPLE: i32 = 3;

/// What the result is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only its size, to choose.
    Sample,
    /// To be kept.
    Full,
}

/// Packs bytes.
pub(crate) fn pack(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let level = match effort {
        Effort::Sample => LEVEL_SAMPLE,
        Effort::Full if bytes.len() <= SMALL_MAX => LEVEL_SMALL,
        Effort::Full => LEVEL_LARGE,
    };
    let mut context = CCtx::create();
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::WindowLog(WINDOW_LOG.min(bytes.len().max(1024).ilog2() + 1)),
        CParameter::ContentSizeFlag(false),
    ] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    context.compress2(&mut out, bytes).map_err(failed)?;
    Ok(out)
}

/// Unpacks bytes whose number is known.
pub(crate) fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(failed)?;
    let mut out = Vec::new();
    out.try_reserve_exact(size).map_err(|_| Error::damaged("size", "is more than there is memory for"))?;
    context.decompress(&mut out, packed).map_err(failed)?;
    if out.len() == size { Ok(out) } else { Err(Error::damaged("zstd frame", "has another size")) }
}

fn failed(code: usize) -> Error {
    Error::damaged("zstd frame", zstd_safe::get_error_name(code))
}
