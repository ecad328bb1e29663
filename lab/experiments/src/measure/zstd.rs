//! Compresses the binary log's files as `zstd FILE` does; they are read from the server as a replica reads them.

use std::io::{self, Read};
use std::time::Instant;

use binlogz_payload::{CompressionLevel, Compressor};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteFiles};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::safety::stop::RunStopper;

/// Where a binary log's events begin.
const FIRST_EVENT: u64 = 4;
const BUFFER_SIZE: usize = 128 << 10;

/// Whole files by zstd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeFiles {
    /// zstd's level.
    pub level: u8,
    /// The compressed size.
    pub bytes: u64,
    /// Approximate processor seconds here, without reading the log from the server.
    pub seconds: f64,
}

/// Compresses these files, each up to its size, at a level.
pub(crate) fn whole_files(
    connect: &ConnectOptions,
    logs: &[(String, u64)],
    level: u8,
    stopper: &RunStopper,
) -> Result<WholeFiles> {
    let failed = |error| Error::Load(format!("zstd: {error}"));
    let mut compressor = Compressor::new(CompressionLevel::clamped(level.into())).map_err(failed)?;
    // As the zstd program does.
    compressor.mark_frames(true).map_err(failed)?;
    let mut whole = WholeFiles { level, bytes: 0, seconds: 0.0 };
    let mut buffer = vec![0; BUFFER_SIZE];
    for (name, size) in logs {
        let mut files = RemoteFiles::open(connect, DumpOptions::to_the_end(name, FIRST_EVENT))?;
        let Some(file) = files.next_file()? else { continue };
        // The current file may have grown meanwhile.
        let mut file = file.take(*size);
        compressor.begin(*size).map_err(failed)?;
        loop {
            if stopper.is_stopped() {
                return Err(Error::Interrupted);
            }
            let count = file.read(&mut buffer).map_err(|source| reading(name, source))?;
            let begin = Instant::now();
            match buffer.get(..count) {
                Some([]) | None => break,
                Some(bytes) => compressor.write(bytes, &mut io::sink()).map_err(failed)?,
            }
            whole.seconds += begin.elapsed().as_secs_f64();
        }
        let begin = Instant::now();
        whole.bytes += compressor.finish(&mut io::sink()).map_err(failed)?;
        whole.seconds += begin.elapsed().as_secs_f64();
    }
    Ok(whole)
}

fn reading(name: &str, source: io::Error) -> Error {
    Error::Io { what: format!("read {name} from the server"), source }
}
