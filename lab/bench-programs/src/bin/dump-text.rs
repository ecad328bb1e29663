//! Prints a log as mysqlbinlog does: `dump-text JOBS rows|base64|both FILE`. For profiles of the printing alone.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a tool of ours: a panic tells enough

use binlogz_flow::Input;
use binlogz_print::LogBounds;
use binlogz_print::mysqlbinlog::{Base64Output, MysqlbinlogState, PrintOptions, TextRun, TextRunSettings};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let print = PrintOptions {
        base64_output: if arguments[2] == "rows" { Base64Output::DecodeRows } else { Base64Output::Auto },
        verbose: if arguments[2] == "base64" { 0 } else { 1 },
        ..PrintOptions::default()
    };
    let out = std::fs::OpenOptions::new().append(true).open("/dev/stdout").unwrap();
    let workers = arguments[1].parse().unwrap();
    let settings = TextRunSettings {
        print: &print,
        workers,
        verify_checksums: false,
        lost_output: &|error| panic!("{error}"),
    };
    let input = Input::open(arguments[3].as_ref()).unwrap();
    let mut run = TextRun::new(settings, out);
    let log = run.log(input, LogBounds::default(), MysqlbinlogState::new(), &mut |_| ()).unwrap();
    assert!(log.state.stopped().is_none() && log.failed.is_none() && log.unread.is_empty());
}
