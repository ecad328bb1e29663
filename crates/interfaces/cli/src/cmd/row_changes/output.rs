//! Where the statements or the binary log go.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use binlogz_archive::Scratch;
use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel};
use binlogz_row_changes::{Script, ScriptSummary};
use clap::Args;

use super::FormatArg;
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::output::{Destination, OpenOutput, OutputTarget};

/// The options that say where the statements or the binary log go.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Write to this file, which appears once it is whole [default: standard output]
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<Destination>,
    /// Replace a file that exists; never one that a server's *.index beside it lists
    #[arg(long, requires = "output", hide_short_help = true)]
    force: bool,
    /// With --format binlog: compress each transaction, as a server with binlog_transaction_compression=ON writes it
    ///
    /// The value is the zstd level, 1 to 22.
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3", hide_short_help = true)]
    compress: Option<CompressionLevel>,
}

/// A place that was checked.
pub(super) struct CheckedPlace {
    format: FormatArg,
    target: OutputTarget,
    compress: Option<CompressionLevel>,
}

impl OutputArgs {
    /// Checks it before anything is read.
    pub(super) fn check(&self, format: FormatArg, logs: &[LogPath]) -> Result<CheckedPlace> {
        let wrong = |line: &str| Err(CommandFailure::Line(line.to_owned()));
        if format != FormatArg::Binlog && self.compress.is_some() {
            return wrong("--compress is for --format binlog");
        }
        let target = match &self.output {
            None if format == FormatArg::Binlog => {
                return wrong("--format binlog needs --output, a file or - for a pipe");
            }
            None => OutputTarget::Stdout,
            Some(Destination::Stdout) if format == FormatArg::Sql => OutputTarget::Stdout,
            Some(destination) => destination.target(logs, self.force)?,
        };
        Ok(CheckedPlace { format, target, compress: self.compress })
    }
}

impl CheckedPlace {
    /// Writes the chosen changes.
    pub(super) fn write(&self, script: Script<'_>) -> Result<ScriptSummary> {
        let failure = |error: io::Error| CommandFailure::writing(&self.target, &error);
        let mut output = match self.format {
            FormatArg::Sql => self.target.create_printed()?,
            FormatArg::Binlog => self.target.create_log(None)?,
        };
        let summary = match (self.format, self.compress) {
            (FormatArg::Sql, _) => buffered(&mut output, |out| script.write(out)).map_err(failure)?,
            (FormatArg::Binlog, None) => {
                let mut report = self.report();
                buffered(&mut output, |out| script.write_log(out, &mut report)).map_err(failure)?
            }
            (FormatArg::Binlog, Some(level)) => self.write_compressed(script, level, &mut output)?,
        };
        output.finish()?;
        Ok(summary)
    }

    /// Where the changes that were left out are named: the log itself may take standard output.
    fn report(&self) -> Box<dyn Write> {
        if self.target == OutputTarget::Stdout { Box::new(io::stderr()) } else { Box::new(io::stdout()) }
    }

    /// The log goes to a temporary file first, and through the compressor to its place.
    fn write_compressed(
        &self,
        script: Script<'_>,
        level: CompressionLevel,
        output: &mut OpenOutput<'_>,
    ) -> Result<ScriptSummary> {
        let temporary = |error: io::Error| CommandFailure::of(&"temporary file", error);
        let mut plain = Scratch::new().map_err(temporary)?;
        let mut report = self.report();
        let summary = buffered(&mut plain, |out| script.write_log(out, &mut report)).map_err(temporary)?;
        let options = CompressOptions { level, ..CompressOptions::default() };
        let input = Input::Places(Arc::new(plain));
        let rewritten = Rewriter::new(Rewrite::Compress(options)).run(input, BufWriter::new(output));
        rewritten.map_err(|error| CommandFailure::rewriting(&"temporary file", &self.target, &error))?;
        Ok(summary)
    }
}

fn buffered(
    out: &mut impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<ScriptSummary>,
) -> io::Result<ScriptSummary> {
    let mut out = BufWriter::new(out);
    let summary = write(&mut out)?;
    out.flush()?;
    Ok(summary)
}
