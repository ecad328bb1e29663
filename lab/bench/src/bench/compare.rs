//! `binlogz bench compare`: two results side by side.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use binlogz_cli_common::Exit;
use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::format::TableFormat;
use binlogz_cli_common::terminal::SizesArg;
use binlogz_experiments::{Results, compare};
use clap::Args;

/// Compare the results of two runs: other servers, settings or releases
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compare {
    /// The folder of the first run
    a: PathBuf,
    /// The folder of the second run
    b: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
}

const EXAMPLES: &str = "Examples:
  binlogz bench compare before after
  binlogz bench compare --format csv db1 db2 > differences.csv";

impl Compare {
    pub(super) fn run(self) -> Result<Exit> {
        let section = compare(&read(&self.a)?, &read(&self.b)?);
        if section.rows.is_empty() {
            return Err(CommandFailure::Line("the two have no experiment in common".to_owned()));
        }
        let format = self.format.writer(SizesArg::default().layout());
        let mut out = BufWriter::new(io::stdout().lock());
        let written = format.write(&[section], &mut out).and_then(|()| out.flush());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}

fn read(folder: &Path) -> Result<Results> {
    let results = Results::read(folder).map_err(|error| CommandFailure::Line(error.to_string()))?;
    results.ok_or_else(|| CommandFailure::of(&folder.display(), "no results.json in it"))
}
