//! `--format jsonl`: logs as JSON, one object a line.

use binlogz_print::jsonl::JsonPrinter;

use super::exits;
use super::line_run::{self, LineJob, open_keyring, open_output};
use super::options::DumpSettings;
use super::print_options::print_options;
use crate::failure::Result;

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &DumpSettings) -> Result<u8> {
    let selection = &print_options(options).selection;
    let keyring = options.keyring.as_deref().map(open_keyring).transpose()?;
    let exits = exits::gate(options, keyring.as_ref())?;
    let tables = &exits::printed_tables(options, keyring.as_ref(), exits.as_ref())?;
    line_run::run(LineJob {
        options,
        selection,
        tables,
        exits,
        asked: selection,
        out: open_output(options.result_file.as_deref())?,
        offsets: None,
        new_printer: |name: &str, positions, workers| {
            JsonPrinter::new(selection, tables, name, positions, workers)
        },
    })
}
