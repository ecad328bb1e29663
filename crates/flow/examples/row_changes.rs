//! `row_changes FILE|-`: every row change of a binary log, inside payloads too, with its GTID, its table,
//! its values and its position (offset of the event, or of its payload and the event's place inside).

use std::io::Write;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::row::{RowDecoder, RowImage, Value};
use binlogz_flow::events::{self, Event, EventBatch, Item, TableEvent, Tables};
use binlogz_flow::{Error, Input};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: row_changes FILE|-")?;
    let input = if path == "-" { Input::stdin()? } else { Input::open(path.as_ref())? };
    let workers = std::thread::available_parallelism()?.get();
    let mut out = std::io::stdout().lock();
    let print = |lines: String| out.write_all(lines.as_bytes()).map_err(|error| Error::Output(error.into()));
    events::run(input, workers, || Ok((Tables::new(), RowDecoder::new())), row_changes, print, &mut |_| {})?;
    Ok(())
}

/// The lines of a batch. Whatever can't be read ends it, and the run with it.
fn row_changes(
    (tables, rows): &mut (Tables, RowDecoder),
    batch: &mut EventBatch<'_>,
) -> Result<String, Error> {
    let mut lines = String::new();
    tables.begin(batch)?;
    let mut gtid = batch.carried().gtid.as_ref().map_or(Ok(String::new()), |event| {
        let frame = batch.log().context.framing.next_frame(&event.bytes)?;
        frame.map_or(Ok(String::new()), |frame| gtid_of(&AnyGtidEvent::decode_frame(&frame.trust()?)?))
    })?;
    while let Some(item) = batch.next_item() {
        let Item::Event(event) = item else { continue };
        if let Some(frame) = event.frame.filter(|frame| frame.event_type().is_gtid()) {
            gtid = gtid_of(&AnyGtidEvent::decode_frame(&frame).map_err(|error| event.error(error))?)?;
        }
        if let Some(TableEvent::Rows(schema, rows_event)) = tables.event(&event)? {
            let mut rows = rows.rows(&schema, &rows_event).map_err(|error| event.error(error))?;
            while let Some(row) = rows.next_row().map_err(|error| event.error(error))? {
                let (database, table) = (&schema.database, &schema.table);
                let name = [String::from_utf8_lossy(database), String::from_utf8_lossy(table)].join(".");
                let [before, after] = [values(row.before), values(row.after)];
                let (before, after) =
                    (before.map_err(|e| event.error(e))?, after.map_err(|e| event.error(e))?);
                lines += &format!("{} {gtid} {name} {before:?} -> {after:?}\n", position(&event));
            }
        }
    }
    Ok(lines)
}

/// The values of an image, if there is one.
fn values<'a>(image: Option<RowImage<'_, 'a>>) -> Result<Option<Vec<Value<'a>>>, binlogz_binlog::Error> {
    image.map(|image| image.cells().map(|cell| cell.value()).collect()).transpose()
}

fn gtid_of(event: &Option<AnyGtidEvent<'_>>) -> Result<String, binlogz_binlog::Error> {
    let gtid = event.as_ref().and_then(AnyGtidEvent::gtid);
    Ok(gtid.map_or_else(|| "ANONYMOUS".to_owned(), |gtid| gtid.to_string()))
}

fn position(event: &Event<'_>) -> String {
    let inside = event.position.inside.map(|inside| format!("+{}", inside.index));
    format!("{}{}", event.position.offset, inside.unwrap_or_default())
}
