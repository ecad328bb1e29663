//! `binlogz compress`: transactions into payloads, as a server with compression would have written.

use std::path::PathBuf;

use binlogz_flow::Rewrite;
use binlogz_payload::{CompressOptions, CompressionLevel};
use clap::Args;

use super::rewrite::RewriteArgs;
use crate::Exit;
use crate::failure::Result;
use crate::report::Verb;

/// Compress the transactions of binary logs
///
/// Each eligible transaction becomes a Transaction_payload event, byte for byte as MySQL 9.7 with
/// binlog_transaction_compression=ON writes it. Everything else stays as it is, and `expand` brings
/// the original back.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compress {
    /// zstd level, 1 (fast) to 22 (small)
    ///
    /// Memory for each job is about 1 MiB at level 3, 81 MiB at 19 and 641 MiB at 22.
    #[arg(long, value_name = "1..22", default_value_t = CompressionLevel::DEFAULT)]
    level: CompressionLevel,
    /// Compress what is compressed already again, at this level
    #[arg(long)]
    recompress: bool,
    /// Write where each transaction was and is: a TSV file
    #[arg(long, value_name = "FILE", conflicts_with = "recompress")]
    positions: Option<PathBuf>,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz compress --output small/ binlog.0000*
  binlogz compress --level 19 --output binlog.000042.small binlog.000042
  ssh db1 cat /var/lib/mysql/binlog.000042 | binlogz compress --output - - > binlog.000042

A file that fails is reported and left out; the others are done, and the exit code is 2.";

impl Compress {
    pub(super) fn run(self) -> Result<Exit> {
        let Compress { level, recompress, positions, rewrite } = self;
        let options = CompressOptions { level, marks: positions.is_some(), ..CompressOptions::default() };
        let how = if recompress { Rewrite::Recompress(options) } else { Rewrite::Compress(options) };
        rewrite.run(Verb::Compress, how, positions)
    }
}
