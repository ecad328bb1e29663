//! Prints the rows of binary logs as `mysqlbinlog -vv --base64-output=decode-rows` does, without the
//! events around them: `cargo run --example row_lines -- binlog.000001`

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a tool of ours: a panic tells enough

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;

use binlogz_binlog::event::{
    CompressionType, FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags, TableId,
    TransactionPayloadEvent,
};
use binlogz_binlog::row::{RowDecoder, TableSchemas};
use binlogz_binlog::{EventFrame, EventReader, EventType, Framing};
use binlogz_payload::Expander;
use binlogz_print::LineRoom;
use binlogz_print::mysqlbinlog::{RowsPrinter, Verbosity};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[allow(dead_code, reason = "tests use the rest of the file")]
fn main() -> Result<()> {
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        each_event(File::open(&path)?, Verbosity::Types, |lines| Ok(output.write_all(lines)?))?;
    }
    Ok(output.flush()?)
}

/// Passes on the lines of each row event of a log, including those inside payloads.
pub(crate) fn each_event(
    log: impl Read,
    verbosity: Verbosity,
    mut sink: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut reader = EventReader::new(log);
    let mut lines = RowLines {
        verbosity,
        text: Vec::new(),
        lengths: PostHeaderLengths::default(),
        schemas: TableSchemas::new(),
        decoder: RowDecoder::new(),
        printers: HashMap::new(),
        room: LineRoom::default(),
    };
    let mut expander = Expander::new()?;
    let mut transaction = Vec::new();
    while let Some((offset, frame)) = reader.next_event()? {
        let at = |error: binlogz_binlog::Error| error.at(offset, Some(frame.event_type()));
        if frame.event_type() != EventType::TRANSACTION_PAYLOAD {
            sink(lines.event(&frame).map_err(at)?)?;
            continue;
        }
        expand(&mut expander, &frame, &mut transaction)?;
        let mut rest = &transaction[..];
        while let Some(inner) = Framing::new().next_frame(rest).map_err(at)? {
            let inner = inner.verify().map_err(at)?;
            rest = &rest[inner.bytes().len()..];
            sink(lines.event(&inner).map_err(at)?)?;
        }
    }
    Ok(())
}

/// Expands the payload of a frame.
fn expand(expander: &mut Expander, frame: &EventFrame<'_>, transaction: &mut Vec<u8>) -> Result<()> {
    let event = TransactionPayloadEvent::decode(frame.body())?;
    transaction.clear();
    if event.header.compression_type() == CompressionType::NONE {
        transaction.extend_from_slice(event.payload);
        return Ok(());
    }
    expander.begin()?;
    expander.push(event.payload, |bytes| {
        transaction.extend_from_slice(bytes);
        Ok::<(), binlogz_payload::Error>(())
    })?;
    Ok(expander.finish()?)
}

struct RowLines {
    verbosity: Verbosity,
    text: Vec<u8>,
    lengths: PostHeaderLengths,
    schemas: TableSchemas,
    decoder: RowDecoder,
    printers: HashMap<TableId, RowsPrinter>,
    room: LineRoom,
}

impl RowLines {
    /// The lines of an event; none unless it is a row event.
    fn event(&mut self, frame: &EventFrame<'_>) -> binlogz_binlog::Result<&[u8]> {
        self.text.clear();
        let event_type = frame.event_type();
        let length = self.lengths.of(event_type);
        if event_type == EventType::FORMAT_DESCRIPTION {
            self.lengths = PostHeaderLengths::from(&FormatDescription::decode_frame(frame)?);
        } else if event_type == EventType::TABLE_MAP {
            self.schemas.note(frame.body(), &self.lengths)?;
        } else if event_type.is_rows() {
            let event = RowsEvent::decode(event_type, frame.body(), length)?;
            let schema = self.schemas.get(event.table_id)?;
            let printer = match self.printers.entry(event.table_id) {
                Entry::Occupied(known) if Arc::ptr_eq(known.get().schema(), schema) => known.into_mut(),
                entry => entry.insert_entry(RowsPrinter::new(Arc::clone(schema), self.verbosity)).into_mut(),
            };
            printer.print(&mut self.room, &mut self.text, &mut self.decoder, &event)?;
            if event.flags.contains(RowsFlags::STMT_END) {
                self.schemas.end_statement();
            }
        }
        Ok(&self.text)
    }
}
