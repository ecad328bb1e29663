//! Prints a log as mysqlbinlog does: `dump-text JOBS rows|base64|both FILE`. For profiles of the printing alone.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a tool of ours: a panic tells enough

use std::ops::ControlFlow;

use binlogz_flow::events::run_in_turns;
use binlogz_flow::{Error, Input};
use binlogz_print::LogBounds;
use binlogz_print::mysqlbinlog::{
    Assembler, Base64Output, MysqlbinlogPrinter, MysqlbinlogState, PrintOptions, PrintedBatch, TextMemory,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let jobs: usize = arguments[1].parse().unwrap();
    let options = PrintOptions {
        base64_output: if arguments[2] == "rows" { Base64Output::DecodeRows } else { Base64Output::Auto },
        verbose: if arguments[2] == "base64" { 0 } else { 1 },
        ..PrintOptions::default()
    };
    let positions = LogBounds::default();
    let memory = TextMemory::default();
    let mut assembler = Assembler::new(&options, jobs);
    let mut out = std::fs::OpenOptions::new().append(true).open("/dev/stdout").unwrap();
    let input = Input::open(arguments[3].as_ref()).unwrap();
    let ran = run_in_turns(
        input,
        jobs,
        false,
        MysqlbinlogState::new(),
        || Ok::<_, Error>(MysqlbinlogPrinter::new(&options, positions, jobs)),
        |printer, turn, batch| Ok(printer.print(turn, batch, &memory).unwrap()),
        |printed| {
            let Some(PrintedBatch { text, .. }) = printed else { return Ok(ControlFlow::Break(())) };
            assert!(assembler.write(text, &memory, &mut out).unwrap().is_none());
            Ok(ControlFlow::Continue(()))
        },
    )
    .unwrap();
    assert!(ran.failed.is_none() && ran.unread.is_empty());
}
