//! `binlogz bench compare`: two results side by side.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use binlogz_cli_common::Exit;
use binlogz_cli_common::companions::bench::CompareArgs;
use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::terminal::SizesArg;
use binlogz_experiments::{Results, compare};

pub(super) fn run(args: CompareArgs) -> Result<Exit> {
    let section = compare(&read(&args.a)?, &read(&args.b)?);
    if section.rows.is_empty() {
        return Err(CommandFailure::Line("the two have no experiment in common".to_owned()));
    }
    let format = args.format.writer(SizesArg::default().layout());
    let mut out = BufWriter::new(io::stdout().lock());
    let written = format.write(&[section], &mut out).and_then(|()| out.flush());
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
    Ok(Exit::Done)
}

fn read(folder: &Path) -> Result<Results> {
    let results = Results::read(folder).map_err(|error| CommandFailure::Line(error.to_string()))?;
    results.ok_or_else(|| CommandFailure::of(&folder.display(), "no results.json in it"))
}
