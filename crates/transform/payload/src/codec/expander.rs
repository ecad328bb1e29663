//! Expands the zstd frames of a payload as a stream.
//!
//! Nothing the payload declares is trusted: neither the uncompressed size beside it nor the frame's own
//! content size decides how much memory is taken. Several frames, one after the other, are one stream, as for
//! the server. A frame may ask for a window of at most 128 MiB (levels 20 to 22).

use std::io::Cursor;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use crate::error::{Error, Result};

/// log2 of the largest window a frame may ask for: level 22 on the largest transactions.
const WINDOW_LOG_MAX: u32 = 27;

/// Bytes expanded before they are passed on. This holds most transactions whole, for which libzstd then needs
/// no window of its own.
const OUTPUT_SIZE: usize = 256 << 10;

/// A reusable decompression context.
pub struct Expander {
    context: DCtx<'static>,
    output: Vec<u8>,
    /// Whether the last frame is unfinished.
    inside_frame: bool,
}

impl std::fmt::Debug for Expander {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expander").finish_non_exhaustive()
    }
}

impl Expander {
    /// A context. More memory is allocated with the frames: their window.
    pub fn new() -> Result<Self> {
        let mut context = DCtx::try_create().ok_or(Error::Zstd("no memory for a decompression context"))?;
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(Error::zstd)?;
        Ok(Expander { context, output: Vec::with_capacity(OUTPUT_SIZE), inside_frame: false })
    }

    /// Begins a payload.
    pub fn begin(&mut self) -> Result<()> {
        self.inside_frame = false;
        self.output.clear();
        self.context.reset(ResetDirective::SessionOnly).map_err(Error::zstd).map(drop)
    }

    /// Expands the next bytes of the payload; `sink` receives the output, piece by piece.
    pub fn push<E: From<Error>>(
        &mut self,
        compressed: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut taken = 0;
        while let Some(piece) = self.next_piece(compressed, &mut taken)? {
            sink(piece)?;
        }
        Ok(())
    }

    /// Expands bytes of the payload from `taken` on, advancing it, until a piece is full or they are used up.
    /// `None` if they were used up and gave nothing more.
    pub fn next_piece(&mut self, compressed: &[u8], taken: &mut usize) -> Result<Option<&[u8]>> {
        let mut input = InBuffer::around(compressed);
        input.set_pos((*taken).min(compressed.len()));
        // A full output may hide more: only spare room shows that everything was returned. At the end of a
        // frame libzstd would take another call for the beginning of the next.
        let mut more_hidden = self.output.len() == self.output.capacity() && self.inside_frame;
        self.output.clear();
        while self.output.is_empty() && (more_hidden || input.pos() < compressed.len()) {
            let mut output = OutBuffer::around(&mut self.output);
            let hint = self.context.decompress_stream(&mut output, &mut input).map_err(Error::zstd)?;
            self.inside_frame = hint != 0;
            more_hidden = false;
        }
        *taken = input.pos();
        Ok((!self.output.is_empty()).then_some(&self.output))
    }

    /// Appends a payload held entirely in memory to `out`, expanded, without exceeding its capacity. Much
    /// faster than piece by piece for small payloads.
    pub fn expand_whole(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.begin()?;
        let held = out.len();
        let mut behind = Cursor::new(std::mem::take(out));
        behind.set_position(held as u64);
        let expanded = self.context.decompress(&mut behind, payload);
        *out = behind.into_inner();
        let Err(code) = expanded else { return Ok(()) };
        // libzstd's error for a bad frame depends on the capacity; expanding piece by piece avoids that.
        self.begin()?;
        self.push(payload, |_| Ok::<(), Error>(()))?;
        self.finish()?;
        Err(Error::zstd(code))
    }

    /// Ends the payload: a frame that was cut is an error.
    pub fn finish(&self) -> Result<()> {
        if self.inside_frame { Err(Error::Zstd("the payload ends inside a zstd frame")) } else { Ok(()) }
    }
}

/// The most bytes a payload can expand to: the size that its frames state or, if they state none (servers up to 8.0), the
/// most that their blocks can hold. libzstd refuses frames that give more. `None` if it is damaged.
pub fn expanded_size_max(payload: &[u8]) -> Option<u64> {
    zstd_safe::decompress_bound(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::compressor::Compressor;
    use crate::codec::level::CompressionLevel;

    fn expand(payload: &[u8], piece: usize) -> Result<Vec<u8>> {
        let mut expander = Expander::new()?;
        let mut all = Vec::new();
        expander.begin()?;
        for piece in payload.chunks(piece) {
            expander.push(piece, |bytes| {
                all.extend_from_slice(bytes);
                Ok::<(), Error>(())
            })?;
        }
        expander.finish()?;
        Ok(all)
    }

    fn compressed(input: &[u8], level: i64) -> Vec<u8> {
        let mut out = Vec::new();
        Compressor::new(CompressionLevel::clamped(level)).unwrap().compress(input, &mut out).unwrap();
        out
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let input: Vec<u8> = (0..700_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let payload = compressed(&input, 3);
        for piece in [1, 1000, payload.len()] {
            assert!(expand(&payload, piece).unwrap() == input);
        }
    }

    #[test]
    fn several_frames_are_one_stream() {
        let payload = [compressed(b"first ", 3), compressed(b"second", 1)].concat();
        assert_eq!(expand(&payload, payload.len()).unwrap(), b"first second");
    }

    #[test]
    fn a_cut_or_damaged_frame_is_an_error() {
        let payload = compressed(&[7; 1000], 3);
        for length in 1..payload.len() {
            assert!(expand(&payload[..length], length).is_err(), "cut at {length}");
        }
        let mut bad = payload.clone();
        bad[0] ^= 1;
        assert_eq!(expand(&bad, bad.len()).unwrap_err().to_string(), "zstd: Unknown frame descriptor");
    }

    #[test]
    fn pieces_and_the_whole_are_the_same() {
        let input: Vec<u8> = (0..700_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let payload = compressed(&input, 3);
        assert!(expanded_size_max(&payload).unwrap() >= input.len() as u64);
        let mut expander = Expander::new().unwrap();
        let mut whole = Vec::with_capacity(input.len());
        expander.expand_whole(&payload, &mut whole).unwrap();
        assert!(whole == input);
        whole.reserve(input.len());
        expander.expand_whole(&payload, &mut whole).unwrap();
        assert!(whole[..input.len()] == input && whole[input.len()..] == input);
        assert!(expand(&payload, 999).unwrap() == input);
    }

    #[test]
    fn a_payload_gives_no_more_than_its_bound() {
        let payload = compressed(&[7; 100_000], 3);
        let mut out = Vec::with_capacity(99_999);
        assert!(Expander::new().unwrap().expand_whole(&payload, &mut out).is_err());
        assert_eq!(expanded_size_max(&payload), Some(100_000));
        assert_eq!(expanded_size_max(&payload[..payload.len() - 1]), None);
    }

    #[test]
    fn the_largest_window_of_level_22_is_read() {
        // 130 MB of zeros: a window of 128 MiB, a payload of a few KB.
        let mut compressor = Compressor::new(CompressionLevel::MAX).unwrap();
        let chunk = vec![0u8; 1 << 20];
        let count = 130;
        let mut payload = Vec::new();
        compressor.begin((chunk.len() * count) as u64).unwrap();
        for _ in 0..count {
            compressor.write(&chunk, &mut payload).unwrap();
        }
        compressor.finish(&mut payload).unwrap();
        let mut expander = Expander::new().unwrap();
        let mut size = 0;
        expander.begin().unwrap();
        expander
            .push(&payload, |bytes| {
                size += bytes.len();
                Ok::<(), Error>(())
            })
            .unwrap();
        expander.finish().unwrap();
        assert_eq!(size, chunk.len() * count);
    }
}
