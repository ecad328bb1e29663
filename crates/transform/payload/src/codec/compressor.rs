//! libzstd as mysqld drives it, so that the same transaction gives the same bytes; [`Recipe`] names other ways.
//!
//! The server (since 8.0.35) keeps one context for each session, pledges the size of the transaction, feeds
//! its cache with `ZSTD_e_continue` and ends the frame with `ZSTD_e_end`. Input up to [`ONE_BLOCK_SIZE`]
//! makes a single block; passing all of it at once gives the same bytes with less copying. Above that size a
//! one-shot compression would cut its blocks elsewhere, so we feed the input as the server does.

use std::io::Write;

use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, zstd_sys::ZSTD_EndDirective};

use crate::codec::level::CompressionLevel;
use crate::codec::library::{Library, LibraryHelper};
use crate::codec::recipe::Recipe;
use crate::error::{Error, Result};

/// Input up to this size is one zstd block (`ZSTD_BLOCKSIZE_MAX`), in bytes.
pub(crate) const ONE_BLOCK_SIZE: usize = 128 << 10;

/// Bytes of output collected before they are passed on.
const OUTPUT_SIZE: usize = 128 << 10;

/// A reusable compression context.
pub struct Compressor {
    context: CCtx<'static>,
    /// Another library that compresses instead of the context.
    helper: Option<LibraryHelper>,
    level: CompressionLevel,
    recipe: Recipe,
    mark_frames: bool,
    output: Vec<u8>,
    /// Bytes that the current frame has produced so far.
    produced: u64,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A context for `level`. Its memory is allocated with the first frame: about 1 MiB at level 3, 81 at 19,
    /// 641 at 22.
    pub fn new(level: CompressionLevel) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or(Error::Zstd("no memory for a compression context"))?;
        context.set_parameter(CParameter::CompressionLevel(i32::from(level.get()))).map_err(Error::zstd)?;
        let helper = None;
        let recipe = Recipe::default();
        let mark_frames = false;
        Ok(Compressor { context, helper, level, recipe, mark_frames, output: Vec::new(), produced: 0 })
    }

    /// The level of all frames.
    pub fn level(&self) -> CompressionLevel {
        self.level
    }

    /// Marks frames as made by binlogz: they carry zstd's content checksum, the server's never do.
    pub fn mark_frames(&mut self, mark: bool) -> Result<()> {
        self.mark_frames = mark;
        self.context.set_parameter(CParameter::ChecksumFlag(mark)).map_err(Error::zstd).map(drop)
    }

    /// Uses another recipe for all further frames.
    pub fn use_recipe(&mut self, recipe: Recipe) {
        self.recipe = recipe;
    }

    /// Makes all further frames with another version of libzstd.
    ///
    /// # Errors
    ///
    /// A helper program that is not there, or has another library than it should.
    pub fn use_library(&mut self, library: Library) -> Result<()> {
        self.helper = LibraryHelper::start(library)?;
        Ok(())
    }

    /// Appends to `out` the frame of a transaction held entirely in memory.
    pub fn compress(&mut self, transaction: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if transaction.len() > ONE_BLOCK_SIZE || self.recipe != Recipe::Sized || self.helper.is_some() {
            self.begin(transaction.len() as u64)?;
            self.write(transaction, out)?;
            return self.finish(out).map(drop);
        }
        let start = out.len();
        out.reserve(zstd_safe::compress_bound(transaction.len()));
        let mut output = OutBuffer::around_pos(out, start);
        self.context.reset(ResetDirective::SessionOnly).map_err(Error::zstd)?;
        let mut input = InBuffer::around(transaction);
        let left = self
            .context
            .compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end)
            .map_err(Error::zstd)?;
        // The output has room for ZSTD_compressBound bytes, so one call ends the frame.
        if left == 0 { Ok(()) } else { Err(Error::Zstd("a frame outgrew its bound")) }
    }

    /// Begins a frame whose input has exactly `size` bytes; the recipe decides whether the frame records
    /// that.
    pub fn begin(&mut self, size: u64) -> Result<()> {
        self.begin_frame((self.recipe == Recipe::Sized).then_some(size))
    }

    /// Begins a frame whose input size is not known yet, as mysqlbinlog does: the frame does not record it.
    pub fn begin_unsized(&mut self) -> Result<()> {
        self.begin_frame(None)
    }

    fn begin_frame(&mut self, size: Option<u64>) -> Result<()> {
        self.produced = 0;
        self.output.clear();
        self.output.reserve(OUTPUT_SIZE);
        if let Some(helper) = &mut self.helper {
            return helper.begin(self.level, self.mark_frames, size);
        }
        self.context.reset(ResetDirective::SessionOnly).map_err(Error::zstd)?;
        self.context.set_pledged_src_size(size).map_err(Error::zstd).map(drop)
    }

    /// Takes the next input, in pieces of any size.
    pub fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> Result<()> {
        let mut input = InBuffer::around(bytes);
        while input.pos() < bytes.len() {
            self.step(&mut input, ZSTD_EndDirective::ZSTD_e_continue, out)?;
        }
        Ok(())
    }

    /// Ends the frame; its size in bytes.
    pub fn finish(&mut self, out: &mut impl Write) -> Result<u64> {
        let mut input = InBuffer::around(&[]);
        if self.recipe == Recipe::UnsizedFlushed {
            while self.step(&mut input, ZSTD_EndDirective::ZSTD_e_flush, out)? != 0 {}
        }
        while self.step(&mut input, ZSTD_EndDirective::ZSTD_e_end, out)? != 0 {}
        self.flush(out)?;
        Ok(self.produced)
    }

    /// Bytes that the current frame has produced so far.
    pub fn produced(&self) -> u64 {
        self.produced + self.output.len() as u64
    }

    fn step(
        &mut self,
        input: &mut InBuffer<'_>,
        directive: ZSTD_EndDirective,
        out: &mut impl Write,
    ) -> Result<usize> {
        let position = self.output.len();
        if let Some(helper) = &mut self.helper {
            helper.run(input.src.get(input.pos()..).unwrap_or_default(), directive, &mut self.output)?;
            input.set_pos(input.src.len());
            if self.output.len() >= OUTPUT_SIZE {
                self.flush(out)?;
            }
            return Ok(0);
        }
        let mut output = OutBuffer::around_pos(&mut self.output, position);
        let left = self.context.compress_stream2(&mut output, input, directive).map_err(Error::zstd)?;
        if self.output.len() == self.output.capacity() {
            self.flush(out)?;
        }
        Ok(left)
    }

    fn flush(&mut self, out: &mut impl Write) -> Result<()> {
        out.write_all(&self.output)?;
        self.produced += self.output.len() as u64;
        self.output.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that compress somewhat: words of a small vocabulary.
    fn text(size: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut bytes = Vec::with_capacity(size + 16);
        while bytes.len() < size {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(format!("{:x},", state % 5000).as_bytes());
        }
        bytes.truncate(size);
        bytes
    }

    fn as_the_server(level: CompressionLevel, input: &[u8], piece: usize) -> Vec<u8> {
        let mut compressor = Compressor::new(level).unwrap();
        let mut out = Vec::new();
        compressor.begin(input.len() as u64).unwrap();
        for piece in input.chunks(piece) {
            compressor.write(piece, &mut out).unwrap();
        }
        assert_eq!(compressor.finish(&mut out).unwrap(), out.len() as u64);
        out
    }

    #[test]
    fn one_call_gives_the_bytes_of_the_servers_pieces() {
        for level in [1, 3, 9, 19, 22].map(CompressionLevel::clamped) {
            let mut reused = Compressor::new(level).unwrap();
            for size in [
                1,
                19,
                188,
                4096,
                20_000,
                65_537,
                ONE_BLOCK_SIZE - 1,
                ONE_BLOCK_SIZE,
                ONE_BLOCK_SIZE + 1,
                400_000,
            ] {
                let input = text(size, size as u64);
                let mut out = Vec::new();
                reused.compress(&input, &mut out).unwrap();
                for piece in [1000, 4096, 32 << 10, size] {
                    assert!(
                        out == as_the_server(level, &input, piece),
                        "level {level}, {size} bytes in pieces of {piece}"
                    );
                }
            }
        }
    }

    #[test]
    fn marked_frames_carry_a_content_checksum() {
        let mut compressor = Compressor::new(CompressionLevel::DEFAULT).unwrap();
        let mut plain = Vec::new();
        compressor.compress(b"a transaction", &mut plain).unwrap();
        compressor.mark_frames(true).unwrap();
        let mut marked = Vec::new();
        compressor.compress(b"a transaction", &mut marked).unwrap();
        assert_eq!(marked.len(), plain.len() + 4);
        assert_eq!(plain[4] & 4, 0);
        assert_eq!(marked[4] & 4, 4);
    }
}
