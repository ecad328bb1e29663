//! An older libzstd over pipes: makes again, byte for byte, the payloads that an older server made.
//!
//! A program can link one libzstd, and binlogz links the newest server's. `protocol` has the messages.

#[path = "../crates/transform/payload/src/codec/library/protocol.rs"]
mod protocol;

use std::env;
use std::io::{self, BufReader, BufWriter, Write};

use protocol::{BEGIN, DONE, END, FAILED, FLUSH, SIZE_UNKNOWN, WRITE, read_message, write_message};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, get_error_name};
use zstd_sys::ZSTD_EndDirective;

fn main() -> io::Result<()> {
    if env::args_os().len() > 1 {
        println!("{} {}", env!("CARGO_PKG_NAME"), zstd_safe::version_string());
        eprintln!("binlogz starts this program itself, where it needs libzstd {}", zstd_safe::version_string());
        return Ok(());
    }
    let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    write_message(&mut output, DONE, zstd_safe::version_string().as_bytes())?;
    output.flush()?;
    let mut compressor = Compressor { context: CCtx::create(), in_frame: false, made: Vec::new() };
    let mut request = Vec::new();
    while let Some(operation) = read_message(&mut input, &mut request)? {
        match compressor.answer(operation, &request) {
            Ok(()) => write_message(&mut output, DONE, &compressor.made)?,
            Err(wrong) => write_message(&mut output, FAILED, wrong.as_bytes())?,
        }
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

struct Compressor {
    context: CCtx<'static>,
    /// Whether a frame was begun and not ended.
    in_frame: bool,
    /// The output of the current request.
    made: Vec<u8>,
}

impl Compressor {
    fn answer(&mut self, operation: u8, bytes: &[u8]) -> Result<(), String> {
        self.made.clear();
        match operation {
            BEGIN => self.begin(bytes),
            WRITE => self.run(bytes, ZSTD_EndDirective::ZSTD_e_continue),
            FLUSH => self.run(&[], ZSTD_EndDirective::ZSTD_e_flush),
            END => {
                self.run(&[], ZSTD_EndDirective::ZSTD_e_end)?;
                self.in_frame = false;
                Ok(())
            }
            unknown => Err(format!("operation is {unknown}, expected 1 to 4")),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<(), String> {
        let wrong = || format!("begin has {} bytes, expected 10", bytes.len());
        let (&[level, checksum], size) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let size = u64::from_le_bytes(size.try_into().map_err(|_| wrong())?);
        // An abandoned frame goes with its context. Versions of zstd-safe differ in how a context is reset.
        if std::mem::replace(&mut self.in_frame, true) {
            self.context = CCtx::create();
        }
        let context = &mut self.context;
        context.set_parameter(CParameter::CompressionLevel(level.into())).map_err(told)?;
        context.set_parameter(CParameter::ChecksumFlag(checksum != 0)).map_err(told)?;
        // The message and libzstd have the same number for a size that is not known.
        const { assert!(SIZE_UNKNOWN == zstd_safe::CONTENTSIZE_UNKNOWN) };
        // Newer versions of zstd-safe take an Option.
        context.set_pledged_src_size(size.into()).map(drop).map_err(told)
    }

    fn run(&mut self, bytes: &[u8], directive: ZSTD_EndDirective) -> Result<(), String> {
        let all = matches!(directive, ZSTD_EndDirective::ZSTD_e_continue);
        let mut input = InBuffer::around(bytes);
        loop {
            self.made.reserve(CCtx::out_size());
            let held = self.made.len();
            let mut output = OutBuffer::around_pos(&mut self.made, held);
            let left = self.context.compress_stream2(&mut output, &mut input, directive).map_err(told)?;
            if if all { input.pos() == bytes.len() } else { left == 0 } {
                return Ok(());
            }
        }
    }
}

fn told(code: usize) -> String {
    get_error_name(code).to_owned()
}
