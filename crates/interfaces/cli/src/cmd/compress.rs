//! `binlogz compress`: puts transactions into payloads, as a server with compression would have written them.

use std::path::PathBuf;

use binlogz_flow::Rewrite;
use binlogz_payload::{CompressOptions, CompressionLevel, Library, Recipe};
use clap::{Args, ValueEnum};

use super::rewrite::RewriteArgs;
use crate::Exit;
use crate::failure::{CommandFailure, Result};
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
    /// Write what this server writes
    ///
    /// MySQL 8.0.33 always compresses at level 3, with libzstd 1.5.0: the program binlogz-zstd-1-5-0 must be installed.
    #[arg(long = "as", value_name = "SERVER", default_value = "mysql-9.7")]
    server: Server,
    /// Recompress compressed transactions at this level
    #[arg(long)]
    recompress: bool,
    /// Write the old and the new position of each transaction to a TSV file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recompress", "exits"])]
    positions: Option<PathBuf>,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

/// Servers whose payloads differ for the same transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    #[value(name = "mysql-9.7")]
    Mysql97,
    #[value(name = "mysql-8.0.33")]
    Mysql8033,
}

const EXAMPLES: &str = "Examples:
  binlogz compress --output small/ binlog.0000*
  binlogz compress --level 19 --output binlog.000042.small binlog.000042
  ssh db1 cat /var/lib/mysql/binlog.000042 | binlogz compress --output - - > binlog.000042

A file that fails is reported and left out; the others are done, and the exit code is 2.";

impl Compress {
    pub(super) fn run(self) -> Result<Exit> {
        let Compress { level, server, recompress, positions, rewrite } = self;
        let (library, recipe) = match server {
            Server::Mysql97 => (Library::Linked, Recipe::Sized),
            Server::Mysql8033 => (Library::Helper("1.5.0"), Recipe::UnsizedFlushed),
        };
        if server == Server::Mysql8033 && level != CompressionLevel::DEFAULT {
            return Err(CommandFailure::Line(format!(
                "--level is {level}, but mysql-8.0.33 always compresses at level 3"
            )));
        }
        let marks = positions.is_some();
        let options = CompressOptions { level, library, recipe, marks, ..CompressOptions::default() };
        let how = if recompress { Rewrite::Recompress(options) } else { Rewrite::Compress(options) };
        rewrite.run(Verb::Compress, how, positions)
    }
}
