//! `binlogz rows`: the life of rows, change by change.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;

use binlogz_recover::{Life, LifeFormat};
use binlogz_report::met::Unmet;
use clap::{Args, ValueEnum};

use super::choose::{ChooseArgs, table};
use super::looked_for::LookedFor;
use super::schema::SchemaFileArg;
use super::{failure, file_name};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{Failure, Result, complain, warn, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::mariadb;
use crate::progress::Progress;
use crate::units;

/// Show the life of rows: each change, when, by which transaction and thread, before and after
///
/// Reads binary logs and shows every change of the rows that were chosen, in the order of the logs. Of an archive only the
/// blocks are read that can have such rows. Changes logged as statements have no rows and are not shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rows {
    #[command(flatten)]
    choose: ChooseArgs,
    #[command(flatten)]
    schema: SchemaFileArg,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    /// The table; --table names further ones
    #[arg(value_name = "DB.TABLE", value_parser = table)]
    of: (String, String),
    /// Binary logs or relay logs, in their order; an archive; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

const EXAMPLES: &str = "Examples:
  binlogz rows shop.orders --where 'id = 42' binlog.0000*
  binlogz rows shop.orders --where 'id = 42' --operation delete /backup/db1
  binlogz rows shop.orders --where 'before.status != after.status' --format json binlog.000042 | jq -r .gtid

Exit codes: 0 there are such changes, 1 there are none, 2 trouble.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A paragraph for each change
    Text,
    /// One object a line for each change; its fields are stable
    Json,
    /// A line for each column of each change
    Csv,
}

impl Rows {
    pub(in crate::cmd) fn run(mut self) -> Result<Exit> {
        let mut selection = self.choose.selection()?;
        selection.tables.push(self.of.clone());
        let schema = self.schema.read()?;
        resolve(&mut self.files)?;
        let keyring = self.keyring.open()?;
        let format = match self.format {
            FormatArg::Text => LifeFormat::Text,
            FormatArg::Json => LifeFormat::Json,
            FormatArg::Csv => LifeFormat::Csv,
        };
        let writing = |error: io::Error| Failure::writing(&"standard output", &error);
        let mut out = Output { out: BufWriter::new(io::stdout().lock()), failed: None };
        let mut life = Life::new(&selection, schema.as_ref(), format, &mut out).map_err(writing)?;
        let count = self.files.len();
        let (mut unmet, mut has_ended) = (Vec::new(), false);
        for (number, log) in self.files.iter().enumerate() {
            let range = self.choose.range(number, count);
            let mut looked_for = LookedFor::new(&selection, schema.as_ref(), range, false);
            let input = log.open_part(keyring.as_ref(), &mut |run| looked_for.may_be_in(run))?;
            mariadb::warn_of(log);
            let progress = Progress::of(log, log.size()?, (number + 1, count));
            let input = progress.watch(input);
            let name = file_name(log);
            let read = life.read(input, &name, range, workers(self.jobs), &mut |bytes| progress.at(bytes));
            let (summary, goes_on) = match read {
                Ok(read) => read,
                Err(error) => {
                    drop(life);
                    return Err(match out.failed {
                        Some(kind) => writing(kind.into()),
                        None => failure(log, error),
                    });
                }
            };
            if let Some(cut) = summary.cut {
                warn_cut(log, cut, "; they are left out");
            }
            if !goes_on {
                has_ended = true;
                break;
            }
            unmet.extend(self.choose.unmet_positions((number, count), summary.bytes_read));
        }
        let written = life.finish().map_err(writing)?;
        if let Some(gtid) = selection.stop_before_gtid.filter(|_| !has_ended) {
            unmet.push(Unmet::stop_before_gtid(&gtid));
        }
        if !unmet.is_empty() {
            unmet.iter().for_each(|unmet| complain(&unmet.line));
            return Ok(Exit::Negative);
        }
        if written == 0 {
            warn("no such row was changed in these logs");
            return Ok(Exit::Negative);
        }
        Ok(Exit::Done)
    }
}

/// Standard output, which tells its own failures from those of temporary files.
struct Output<W> {
    out: W,
    failed: Option<io::ErrorKind>,
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|error| self.failed = Some(error.kind()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().inspect_err(|error| self.failed = Some(error.kind()))
    }
}
