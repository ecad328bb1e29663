//! The table `events`: a row for each event, as SHOW BINLOG EVENTS lists them, those in payloads too.

use std::sync::Arc;

use binlogz_binlog::event::{AnyEvent as Decoded, TransactionPayloadEvent, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::show_events::{event_type_name, write_info};
use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_flow::events::{self, BatchItem, Event, EventBatch, RunSummary};
use binlogz_flow::{Error, Input};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};

use super::columns::{Builder, FieldKind, FieldValue};
use super::frame::TransactionFrame;
use super::{BatchSink, ROWS_MAX, ReadJob, TableReader, arrow_error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Log,
    Position,
    Gtid,
    LoggedAt,
    ServerId,
    Offset,
    Inside,
    EventType,
    EndLogPos,
    Size,
    Info,
}

const COLUMNS: [(&str, FieldKind, Source); 11] = [
    ("log", FieldKind::Text, Source::Log),
    ("position", FieldKind::Number, Source::Position),
    ("gtid", FieldKind::Text, Source::Gtid),
    ("logged_at", FieldKind::Moment, Source::LoggedAt),
    ("server_id", FieldKind::Small, Source::ServerId),
    ("offset", FieldKind::Number, Source::Offset),
    ("inside", FieldKind::Number, Source::Inside),
    ("event_type", FieldKind::Text, Source::EventType),
    ("end_log_pos", FieldKind::Small, Source::EndLogPos),
    ("size", FieldKind::Number, Source::Size),
    ("info", FieldKind::Text, Source::Info),
];

/// The table.
#[derive(Debug)]
pub(crate) struct EventsTable;

impl TableReader for EventsTable {
    fn schema(&self) -> SchemaRef {
        let fields: Fields = COLUMNS.iter().map(|(name, kind, _)| kind.field(name)).collect();
        Arc::new(Schema::new(fields))
    }

    fn row_size(&self) -> u64 {
        60
    }

    fn is_of_rows(&self) -> bool {
        false
    }

    fn read(&self, job: ReadJob<'_>, input: Input, sink: BatchSink<'_>) -> Result<RunSummary, Error> {
        let ReadJob { log, outputs, schema, workers, .. } = job;
        let new_worker = || {
            let columns = outputs
                .iter()
                .filter_map(|output| COLUMNS.get(output.column()))
                .map(|&(_, kind, source)| (source, kind.builder()))
                .collect();
            Ok(Worker {
                log,
                schema: Arc::clone(schema),
                columns,
                rows: 0,
                done: Vec::new(),
                info: Vec::new(),
            })
        };
        let work = |worker: &mut Worker<'_>, batch: &mut EventBatch<'_>| Ok(worker.batch(batch));
        let sink = |batches: Vec<RecordBatch>| batches.into_iter().try_for_each(&mut *sink);
        events::run(input, workers, new_worker, work, sink, &mut |_| {})
    }
}

struct Worker<'a> {
    log: &'a str,
    schema: SchemaRef,
    columns: Vec<(Source, Builder)>,
    rows: usize,
    done: Vec<RecordBatch>,
    info: Vec<u8>,
}

impl Worker<'_> {
    /// The rows of a batch; bytes that can't be read fail it.
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> Vec<RecordBatch> {
        if let Err(error) = self.events(batch).and_then(|()| self.pass_on()) {
            batch.fail(error);
        }
        std::mem::take(&mut self.done)
    }

    fn events(&mut self, batch: &mut EventBatch<'_>) -> Result<(), Error> {
        let mut frame = TransactionFrame::begin(batch)?;
        while let Some(item) = batch.next_item() {
            let BatchItem::Event(event) = item else { continue };
            frame
                .pass(&event)
                .and_then(|()| self.event(&frame, &event))
                .map_err(|error| event.error(error))?;
            self.rows += 1;
            if self.rows == ROWS_MAX {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn event(&mut self, frame: &TransactionFrame, event: &Event<'_>) -> Result<(), BinlogError> {
        let header = &event.header;
        let mut info = None;
        if self.columns.iter().any(|(source, _)| *source == Source::Info) {
            self.info.clear();
            describe(event, &mut self.info)?;
            info = Some(String::from_utf8_lossy(&self.info));
        }
        for (source, builder) in &mut self.columns {
            builder.push(match source {
                Source::Log => FieldValue::Text(self.log),
                Source::Position => FieldValue::number(frame.position),
                Source::Gtid => FieldValue::text(frame.gtid.as_deref()),
                Source::LoggedAt => FieldValue::seconds(header.timestamp),
                Source::ServerId => FieldValue::Number(header.server_id.into()),
                Source::Offset => FieldValue::Number(event.position.offset),
                Source::Inside => FieldValue::number(event.position.inside.map(|inside| inside.index)),
                Source::EventType => FieldValue::Text(event_type_name(header.event_type)),
                Source::EndLogPos => FieldValue::Number(event.end_log_pos().into()),
                Source::Size => FieldValue::Number(header.event_size.into()),
                Source::Info => FieldValue::text(info.as_deref()),
            });
        }
        Ok(())
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let arrays = self.columns.iter_mut().map(|(_, builder)| builder.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        self.done.push(batch.map_err(arrow_error)?);
        Ok(())
    }
}

/// Writes the Info of an event.
fn describe(event: &Event<'_>, info: &mut Vec<u8>) -> Result<(), BinlogError> {
    let flags = event.header.flags;
    if event.header.event_type == EventType::TRANSACTION_PAYLOAD {
        let around = HEADER_SIZE + event.log.context.framing.checksum().size();
        let body_size = u64::from(event.header.event_size).saturating_sub(around as u64);
        if let Some((header, _)) = TransactionPayloadHeader::decode_front(event.body, body_size)? {
            let payload = TransactionPayloadEvent { header, payload: &[], trailing: &[] };
            write_info(&Decoded::TransactionPayload(payload), flags, info);
        }
        return Ok(());
    }
    if let Some(frame) = &event.frame {
        write_info(&Decoded::decode(frame, &event.log.lengths)?, flags, info);
    }
    Ok(())
}
