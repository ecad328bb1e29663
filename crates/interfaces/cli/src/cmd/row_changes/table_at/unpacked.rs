//! The text of a dump that may be compressed with gzip or zstd, as its first bytes tell.
//!
//! ```text
//! gzip member    1f 8b 08, flags, 6 bytes; [2 size, n extra] [name, NUL] [comment, NUL] [2 checksum]; deflate; CRC-32, size mod 2³²
//! zstd frame     28 b5 2f fd …
//! ```
//!
//! A file may have several members or frames, one after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use crc32fast::Hasher;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes read at a time, from the file and of its text.
const BUFFER_SIZE: usize = 1 << 20;
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const HEADER_CHECKSUM: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;

/// The text of a file.
pub(super) fn unpacked(file: File) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::with_capacity(BUFFER_SIZE, file);
    let begin = input.fill_buf()?;
    Ok(if begin.starts_with(&GZIP) {
        Box::new(BufReader::with_capacity(BUFFER_SIZE, Gunzip::new(input)))
    } else if begin.starts_with(&ZSTD) {
        let unzstd = Unzstd { input, context: DCtx::create(), is_in_frame: false };
        Box::new(BufReader::with_capacity(BUFFER_SIZE, unzstd))
    } else {
        Box::new(input)
    })
}

fn cut() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the compressed file is cut off")
}

fn bad(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

struct Gunzip<R> {
    input: R,
    state: Box<InflateState>,
    is_in_member: bool,
    checksum: Hasher,
    size: u32,
}

impl<R: BufRead> Gunzip<R> {
    fn new(input: R) -> Self {
        let state = InflateState::new_boxed(DataFormat::Raw);
        Gunzip { input, state, is_in_member: false, checksum: Hasher::new(), size: 0 }
    }

    fn begin(&mut self) -> io::Result<()> {
        let [first, second, method, flags, ..] = self.take::<10>()?;
        if [first, second, method] != GZIP {
            return Err(bad("the gzip file is followed by other bytes"));
        }
        if flags & EXTRA != 0 {
            let size = u16::from_le_bytes(self.take()?);
            io::copy(&mut (&mut self.input).take(size.into()), &mut io::sink())?;
        }
        for text in [NAME, COMMENT] {
            while flags & text != 0 && self.take::<1>()? != [0] {}
        }
        if flags & HEADER_CHECKSUM != 0 {
            self.take::<2>()?;
        }
        self.state.reset(DataFormat::Raw);
        (self.checksum, self.size, self.is_in_member) = (Hasher::new(), 0, true);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let checksum = u32::from_le_bytes(self.take()?);
        let size = u32::from_le_bytes(self.take()?);
        if checksum != self.checksum.clone().finalize() || size != self.size {
            return Err(bad("the gzip file is damaged: its checksum differs"));
        }
        self.is_in_member = false;
        Ok(())
    }

    fn take<const SIZE: usize>(&mut self) -> io::Result<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        let read = self.input.read_exact(&mut bytes);
        read.map_err(|error| if error.kind() == ErrorKind::UnexpectedEof { cut() } else { error })?;
        Ok(bytes)
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if !self.is_in_member {
                if self.input.fill_buf()?.is_empty() {
                    break;
                }
                self.begin()?;
            }
            let input = self.input.fill_buf()?;
            let is_end = input.is_empty();
            let step = inflate(&mut self.state, input, buffer, MZFlush::None);
            self.input.consume(step.bytes_consumed);
            let text = buffer.get(..step.bytes_written).unwrap_or_default();
            self.checksum.update(text);
            self.size = self.size.wrapping_add(text.len() as u32);
            match step.status {
                Ok(MZStatus::StreamEnd) => self.end()?,
                _ if step.bytes_consumed + step.bytes_written > 0 => {}
                _ if is_end => return Err(cut()),
                _ => return Err(bad("the gzip file is damaged")),
            }
            if step.bytes_written > 0 {
                return Ok(step.bytes_written);
            }
        }
        Ok(0)
    }
}

struct Unzstd<R> {
    input: R,
    context: DCtx<'static>,
    is_in_frame: bool,
}

impl<R: BufRead> Read for Unzstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            let input = self.input.fill_buf()?;
            let is_end = input.is_empty();
            if is_end && !self.is_in_frame {
                break;
            }
            let mut source = InBuffer::around(input);
            let mut text = OutBuffer::around(&mut *buffer);
            let step = self.context.decompress_stream(&mut text, &mut source);
            let hint =
                step.map_err(|code| bad(&format!("the zstd file: {}", zstd_safe::get_error_name(code))))?;
            let consumed = source.pos();
            let written = text.pos();
            self.input.consume(consumed);
            self.is_in_frame = hint != 0;
            if written > 0 {
                return Ok(written);
            }
            if is_end && self.is_in_frame {
                return Err(cut());
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use miniz_oxide::deflate::compress_to_vec;

    use super::*;

    fn gzip(text: &[u8], name: bool) -> Vec<u8> {
        let mut bytes = GZIP.to_vec();
        bytes.push(if name { NAME } else { 0 });
        bytes.extend([0; 6]);
        bytes.extend_from_slice(if name { b"dump.sql\0" } else { b"" });
        bytes.extend(compress_to_vec(text, 6));
        bytes.extend(crc32fast::hash(text).to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; zstd_safe::compress_bound(text.len())];
        let size = zstd_safe::compress(&mut bytes[..], text, 3).unwrap();
        bytes.truncate(size);
        bytes
    }

    fn text(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let mut text = Vec::new();
        unpacked(file)?.read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn members_and_frames_give_their_text_and_cuts_are_told() {
        let (one, other): (Vec<u8>, Vec<u8>) =
            ((0..3_000_000u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect(), b"INSERT".to_vec());
        let whole = [&one[..], &other].concat();
        assert_eq!(text(&other).unwrap(), other);
        for (first, second) in [(gzip(&one, true), gzip(&other, false)), (zstd(&one), zstd(&other))] {
            let packed = [&first[..], &second].concat();
            assert!(text(&packed).unwrap() == whole);
            for size in [5, first.len() / 2, first.len() - 1, packed.len() - 1] {
                let error = text(&packed[..size]).unwrap_err().to_string();
                assert!(error.contains("cut off"), "{size}: {error}");
            }
            let mut damaged = packed.clone();
            damaged[first.len() / 2] ^= 0x55;
            assert!(text(&damaged).map_or(true, |text| text != whole));
        }
        let mut damaged = gzip(&other, false);
        let at = damaged.len() - 6;
        damaged[at] ^= 1;
        assert!(text(&damaged).unwrap_err().to_string().contains("checksum differs"));
        let followed = [&gzip(&other, false)[..], b"other bytes"].concat();
        assert!(text(&followed).unwrap_err().to_string().contains("followed by other bytes"));
    }
}
