//! `--format debezium|maxwell|canal`: row changes in the formats of other programs.

use std::path::PathBuf;
use std::time::Duration;

use binlogz_change_formats::{ChangePrinter, ChangeSettings, Resolver};
use binlogz_print::EventSelection;
use binlogz_print::line_run::{LineCompletion, Offsets, OffsetsError};

use super::exits;
use super::line_run::{self, LineJob, open_keyring, open_output};
use super::options::{DumpFormat, DumpSettings, RemoteSource};
use super::print_options::print_options;
use super::tell_line;
use crate::failure::{CommandFailure, Result};

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &DumpSettings) -> Result<u8> {
    let Some(format) = options.format.of_changes() else { return Ok(0) };
    if options.with_key && options.format == DumpFormat::Canal {
        return Err(CommandFailure::Line(
            "--with-key can't be used with --format=canal: its messages have no keys".into(),
        ));
    }
    let keyring = options.keyring.as_deref().map(open_keyring).transpose()?;
    let exits = exits::gate(options, keyring.as_ref())?;
    let tables = &exits::printed_tables(options, keyring.as_ref(), exits.as_ref())?;
    let settings = ChangeSettings {
        format,
        topic_prefix: options.topic_prefix.clone(),
        decimals: options.decimal_handling_mode,
        bigint_unsigned: options.bigint_unsigned_handling_mode,
        transaction_metadata: options.provide_transaction_metadata,
        with_key: options.with_key,
        tables,
    };
    let asked = print_options(options).selection;
    let (out, out_name) = open_output(options.result_file.as_deref())?;
    let resolver = Resolver::new(&settings).map(|resolver| Box::new(resolver) as Box<dyn LineCompletion>);
    let out = out.completed_by(resolver);
    let mut options = options.clone();
    let offsets = match options.offsets.take() {
        None => None,
        Some(path) => {
            let delay = Duration::from_secs(options.offsets_delay);
            let opened = Offsets::open(&path, delay, &out, |error| tell_line("ERROR", &error.to_string()));
            Some(opened.map_err(|error| match error {
                OffsetsError::Output(error) => CommandFailure::of(&out_name, error),
                error => line_run::offsets_failure(&error),
            })?)
        }
    };
    let mut selection = asked.clone();
    if let Some(offsets) = &offsets {
        go_on(&mut options, &mut selection, offsets);
    }
    let settings = &settings;
    let selection = &selection;
    line_run::run(LineJob {
        options: &options,
        selection,
        asked: &asked,
        tables,
        exits,
        out: (out, out_name),
        offsets,
        new_printer: |name: &str, positions, workers| {
            ChangePrinter::new(selection, settings, name, positions, workers)
        },
    })
}

/// Leaves out the transactions that were handed over.
fn go_on(options: &mut DumpSettings, selection: &mut EventSelection, offsets: &Offsets) {
    let begun = offsets.begun();
    let mut excluded = options.exclude_gtids.take().unwrap_or_default();
    excluded.union(&begun);
    selection.exclude_gtids = Some(excluded.clone()).filter(|set| !set.is_empty());
    // The server looks for them. Without a name it begins with the first log that has others.
    if options.is_remote() && (options.logs.is_empty() || !begun.is_empty()) {
        options.remote_source = Some(RemoteSource::Gtids);
        options.logs = vec![PathBuf::new()];
        options.to_last_log = true;
    }
    options.exclude_gtids = Some(excluded);
}
