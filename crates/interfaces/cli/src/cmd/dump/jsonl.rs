//! `--format jsonl`: logs as JSON, one object a line.

use binlogz_print::jsonl::JsonPrinter;

use super::line_run::{self, LineJob};
use super::lines::LineOutput;
use super::options::DumpSettings;
use super::print_options::print_options;
use crate::failure::Result;

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &DumpSettings) -> Result<u8> {
    let selection = &print_options(options).selection;
    line_run::run(LineJob {
        options,
        selection,
        asked: selection,
        out: LineOutput::open(options.result_file.as_deref())?,
        offsets: None,
        new_printer: |name: &str, positions, workers| JsonPrinter::new(selection, name, positions, workers),
    })
}
