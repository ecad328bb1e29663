//! Decodes every value of uncompressed binary logs and tells how long that takes, one core, best of
//! five, the files in memory: `cargo run --release --package binlogz-bench-programs --bin decode-values -- binlog.000001`

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags};
use binlogz_binlog::row::{RowDecoder, TableSchemas};
use binlogz_binlog::{EventType, Framing, MAGIC};

const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1) {
        let log = std::fs::read(&path)?;
        let mut best = f64::MAX;
        let mut values = 0;
        for _ in 0..RUNS {
            let start = Instant::now();
            values = decode_values(&log)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{:32} {:7.1} ms {:8.0} MB/s {values:9} values {:6.1} ns each",
            Path::new(&path).file_name().unwrap_or_default().to_string_lossy(),
            best * 1e3,
            log.len() as f64 / 1e6 / best,
            best * 1e9 / values.max(1) as f64,
        );
    }
    Ok(())
}

/// Decodes every value of a log; gives how many there are.
fn decode_values(log: &[u8]) -> binlogz_binlog::Result<u64> {
    let mut framing = Framing::new();
    let mut lengths = PostHeaderLengths::default();
    let mut schemas = TableSchemas::new();
    let mut decoder = RowDecoder::new();
    let mut values = 0;
    let mut rest = log.strip_prefix(&MAGIC).unwrap_or_default();
    while let Some(frame) = framing.next_frame(rest)? {
        let frame = frame.verify()?;
        rest = rest.get(frame.bytes().len()..).unwrap_or_default();
        let event_type = frame.event_type();
        let body = frame.body();
        if event_type == EventType::FORMAT_DESCRIPTION {
            let description = FormatDescription::decode_frame(&frame)?;
            framing = Framing::of(&description);
            lengths = PostHeaderLengths::from(&description);
        } else if event_type == EventType::TABLE_MAP {
            schemas.note(body, &lengths)?;
        } else if event_type.is_rows() {
            let event = RowsEvent::decode(event_type, body, lengths.of(event_type))?;
            let mut rows = decoder.rows(schemas.get(event.table_id)?, &event)?;
            while let Some(row) = rows.next_row()? {
                for image in [row.before, row.after].into_iter().flatten() {
                    for cell in image.cells() {
                        black_box(cell.value()?);
                        values += 1;
                    }
                }
            }
            if event.flags.contains(RowsFlags::STMT_END) {
                schemas.end_statement();
            }
        }
    }
    Ok(values)
}
