//! zstd for bytes that have no better code: a long window, and a level that depends on their number.

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, DParameter};

use crate::error::{Error, Result};

/// Up to this many bytes, the highest sensible level is worth its time.
const SMALL_MAX: usize = 64 << 10;
const LEVEL_SMALL: i32 = 19;
const LEVEL_LARGE: i32 = 12;
const LEVEL_MOST: i32 = 22;
/// Matches reach back over a whole block.
const WINDOW_LOG: u32 = 25;

const LEVEL_QUICK: i32 = 3;
const LEVEL_MEDIUM: i32 = 9;

/// How much effort compression takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only the size is needed, to choose a code.
    Sample,
    /// The result is kept, and there is much of it.
    Quick,
    /// The result is kept, and time counts.
    Medium,
    /// The result is kept.
    Full,
    /// The result is kept, and may take its time.
    Most,
}

/// Packs bytes.
pub(crate) fn pack(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let level = match effort {
        Effort::Sample | Effort::Quick => LEVEL_QUICK,
        Effort::Medium if bytes.len() > SMALL_MAX => LEVEL_MEDIUM,
        Effort::Full if bytes.len() <= SMALL_MAX => LEVEL_SMALL,
        Effort::Medium | Effort::Full => LEVEL_LARGE,
        Effort::Most => LEVEL_MOST,
    };
    if bytes.len() > SHARED_MAX {
        return pack_by(&mut CCtx::create(), bytes, level);
    }
    PACKING.with_borrow_mut(|context| pack_by(context, bytes, level))
}

fn pack_by(context: &mut CCtx<'_>, bytes: &[u8], level: i32) -> Result<Vec<u8>> {
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

/// More bytes have a context of their own, since one keeps the memory that the largest frame took.
const SHARED_MAX: usize = 256 << 10;

thread_local! {
    /// For small frames: a context takes longer to make than such a frame to pack.
    static PACKING: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    /// A block has hundreds of small frames, and a context takes longer to make than such a frame to unpack.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Unpacks bytes whose unpacked size is known.
pub(crate) fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.try_reserve_exact(size)
        .map_err(|_| Error::damaged("size", format!("{size} bytes"), "a size that there is memory for"))?;
    CONTEXT.with_borrow_mut(|context| {
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(failed)?;
        context.decompress(&mut out, packed).map_err(failed)
    })?;
    match out.len() == size {
        true => Ok(out),
        false => Err(Error::unexpected("size of a zstd frame", out.len(), size)),
    }
}

fn failed(code: usize) -> Error {
    Error::damaged("zstd frame", zstd_safe::get_error_name(code), "a whole frame")
}
