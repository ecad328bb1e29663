//! `binlogz export`: tables as Parquet data sets, run after run.

use std::ffi::OsString;
use std::thread;

use binlogz_atomic_file::remove_unfinished;
use binlogz_cli_common::companions::export::{ExportArgs, ExportFormat, ExportPartition, LEVEL};
use binlogz_query::Error;
use binlogz_query::export::{LEVEL_DEFAULT, Partition, TableExport};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::progress::SqlProgress;
use crate::schema::SchemaPlace;
use crate::told::tell;
use crate::{follow, inputs, masked};

const COMMAND: &str = "export";
// The help says what the files have.
const _: () = assert!(LEVEL == LEVEL_DEFAULT);

/// The command line of `export`, if a whole one, program name included, asks for it.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    let program = command_line.next()?;
    (command_line.next()? == COMMAND).then(|| std::iter::once(program).chain(command_line).collect())
}

/// Runs `binlogz export`.
pub(crate) fn run(args: ExportArgs) -> Result<(), Error> {
    if args.to.is_file() {
        return Err(Error::Target(format!("{}: is a file, expected a folder", args.to.display())));
    }
    remove_unfinished_at_signals()?;
    let ExportFormat::Parquet = args.format;
    let export = TableExport {
        to: args.to,
        partition: args.partition.map(partition),
        tables: (!args.table.is_empty()).then_some(args.table),
        jobs: args.inputs.jobs(),
        is_dry: args.dry_run,
        plaintext: args.plaintext,
        level: args.level,
    };
    let schema = SchemaPlace::open(&args.inputs.schema, args.follow.is_asked())?;
    if !args.arguments.is_empty() {
        let progress = SqlProgress::begin(&args.progress, "exporting");
        let logs =
            inputs::logs_with(&args.inputs, args.arguments, schema.as_ref(), export.tables.as_deref())?;
        inputs::say_erased(&logs);
        let logs = logs.metered(progress.meter());
        let logs = match args.exits.as_deref() {
            Some(policy) => masked::logs(logs, policy)?,
            None => logs,
        };
        let exported = export.run(&logs)?;
        progress.make_way();
        tell(&exported, export.is_dry, args.bytes)?;
        masked::report(&logs);
    }
    match args.follow.is_asked() {
        true => follow::run(&args.follow, &export, args.bytes, &args.inputs.schema.server, schema.as_ref()),
        false => Ok(()),
    }
}

/// A run that a signal ends leaves no files that don't count.
fn remove_unfinished_at_signals() -> Result<(), Error> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| Error::Log(format!("handle signals: {error}")))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let _none_begins = remove_unfinished();
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// What an option means for the data sets.
fn partition(partition: ExportPartition) -> Partition {
    match partition {
        ExportPartition::Day => Partition::Day,
        ExportPartition::Month => Partition::Month,
        ExportPartition::None => Partition::None,
    }
}
