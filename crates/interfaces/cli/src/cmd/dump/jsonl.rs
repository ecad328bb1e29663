//! `--format jsonl`: logs as JSON, one object a line.

use binlogz_report::jsonl::Printer;

use super::line_run::{self, Job};
use super::lines::Out;
use super::options::Options;
use super::print_options::print_options;
use crate::failure::Result;

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &Options) -> Result<u8> {
    let selection = &print_options(options).selection;
    line_run::run(Job {
        options,
        selection,
        asked: selection,
        out: Out::open(options.result_file.as_deref())?,
        offsets: None,
        new_printer: |name: &str, positions, workers| Printer::new(selection, name, positions, workers),
    })
}
