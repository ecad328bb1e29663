//! Facts about a transaction that are repeated in each of its lines.

use std::borrow::Cow;
use std::sync::Arc;

use binlogz_binlog::Result;
use binlogz_binlog::charset::Charset;
use binlogz_binlog::event::{
    AnyGtidEvent, QueryEvent, RowsQueryEvent, StatusVariable, TransactionPayloadHeader,
};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, EventType};
use binlogz_flow::events::Event;

use super::text::{push_bytes_as_text, push_name, push_number, push_text, push_text_or_bytes};

/// A transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonFrame {
    /// The transaction's GTID, if it has one.
    pub(super) gtid: Option<Gtid>,
    /// Fields of the object, from the GTID event.
    begin: Vec<u8>,
    pub(super) thread_id: Option<u32>,
    /// It began with XA START.
    pub(super) is_xa: bool,
    /// Where its BEGIN stands; in a payload, where that stands.
    pub(super) begin_position: Option<u64>,
    /// When it was committed first, in microseconds since 1970.
    pub(super) commit_time: Option<u64>,
    /// Where it begins.
    pub(super) position: u64,
    payload_size: Option<u64>,
    uncompressed_size: Option<u64>,
    statement: Option<Arc<[u8]>>,
    /// The whole field, as it is in lines; empty if it has to be rebuilt.
    text: Vec<u8>,
    is_open: bool,
}

impl JsonFrame {
    /// Takes an event at this position, in a transaction or between them.
    pub(super) fn pass(&mut self, event: &Event<'_>, position: u64, boundary: Boundary) -> Result<()> {
        match boundary {
            Boundary::Outside => *self = JsonFrame::default(),
            Boundary::Begin | Boundary::BeginAgain | Boundary::Single => self.begin(event, position)?,
            Boundary::Inside | Boundary::End => {}
        }
        match event.header.event_type {
            EventType::QUERY if self.is_open && self.thread_id.is_none() => {
                let query = QueryEvent::decode(event.body)?;
                self.thread_id = Some(query.thread_id);
                let kind = StatementKind::of(query.statement);
                self.is_xa = kind == StatementKind::XaStart;
                self.begin_position = (kind == StatementKind::Begin).then_some(position);
                self.text.clear();
            }
            EventType::ROWS_QUERY => {
                let statement = RowsQueryEvent::decode(event.body)?.statement;
                self.statement = Some(statement.into());
                self.text.clear();
            }
            EventType::TRANSACTION_PAYLOAD => {
                if let Some(header) = payload_header(event)? {
                    self.payload_size = Some(header.payload_size());
                    self.uncompressed_size = header.uncompressed_size();
                    self.text.clear();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>, position: u64) -> Result<()> {
        *self = JsonFrame {
            is_open: true,
            begin: std::mem::take(&mut self.begin),
            text: std::mem::take(&mut self.text),
            ..JsonFrame::default()
        };
        self.text.clear();
        let begin = &mut self.begin;
        begin.clear();
        begin.push(b'{');
        let gtid_event = match &event.frame {
            Some(frame) => AnyGtidEvent::decode_frame(frame)?,
            None => None,
        };
        self.gtid = gtid_event.as_ref().and_then(AnyGtidEvent::gtid);
        push_name(begin, "gtid");
        match &self.gtid {
            Some(gtid) => {
                begin.push(b'"');
                begin.extend_from_slice(gtid.to_string().as_bytes());
                begin.push(b'"');
            }
            None => begin.extend_from_slice(b"null"),
        }
        self.position = position;
        push_number(begin, "position", position);
        let Some(gtid_event) = gtid_event else { return Ok(()) };
        if let Some(clock) = gtid_event.logical_clock() {
            push_number(begin, "last_committed", clock.last_committed as u64);
            push_number(begin, "sequence_number", clock.sequence_number as u64);
        }
        if let Some(times) = gtid_event.commit_timestamps() {
            self.commit_time = Some(times.original.unwrap_or(times.immediate));
            push_number(begin, "original_commit_timestamp", times.original.unwrap_or(times.immediate));
            push_number(begin, "immediate_commit_timestamp", times.immediate);
        }
        if let Some(length) = gtid_event.transaction_length() {
            push_number(begin, "transaction_length", length);
        }
        Ok(())
    }

    /// Whether events are in a transaction.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The statement, if it was logged.
    pub(super) fn statement(&self) -> Option<&[u8]> {
        self.statement.as_deref()
    }

    /// Appends the field `transaction`, if inside one.
    pub(super) fn push(&mut self, out: &mut Vec<u8>) {
        if !self.is_open {
            return;
        }
        if self.text.is_empty() {
            self.write();
        }
        out.extend_from_slice(&self.text);
    }

    fn write(&mut self) {
        let text = &mut self.text;
        push_name(text, "transaction");
        text.extend_from_slice(&self.begin);
        if let Some(size) = self.payload_size {
            push_number(text, "payload_size", size);
        }
        if let Some(size) = self.uncompressed_size {
            push_number(text, "uncompressed_size", size);
        }
        if let Some(thread_id) = self.thread_id {
            push_number(text, "thread_id", u64::from(thread_id));
        }
        if let Some(statement) = &self.statement {
            push_bytes_as_text(text, "statement", statement);
        }
        text.push(b'}');
    }
}

/// Appends the fields of a statement.
pub(super) fn push_query(out: &mut Vec<u8>, query: &QueryEvent<'_>) {
    push_bytes_as_text(out, "database", query.database);
    push_name(out, "statement");
    push_text_or_bytes(out, statement_text(query), query.statement);
    push_number(out, "thread_id", u64::from(query.thread_id));
    push_number(out, "exec_time", u64::from(query.exec_time));
    push_number(out, "error_code", u64::from(query.error_code));
    if let Some(xid) = query.ddl_xid() {
        push_number(out, "xid", xid);
    }
}

/// A statement as text, in the character set of its session if the event gives it.
pub fn statement_text<'a>(query: &QueryEvent<'a>) -> Option<Cow<'a, str>> {
    let charset = query.status_variables.iter().find_map(|variable| match variable {
        Ok(StatusVariable::Charset { client, .. }) => Charset::of_collation(u64::from(client)),
        _ => None,
    });
    match charset {
        Some(charset) if charset != Charset::Binary => charset.decode(query.statement),
        _ => std::str::from_utf8(query.statement).ok().map(Cow::Borrowed),
    }
}

/// The fields of a payload event that describe its payload.
pub(super) fn payload_header<'a>(event: &Event<'a>) -> Result<Option<TransactionPayloadHeader<'a>>> {
    let around = HEADER_SIZE + event.log.context.framing.checksum().size();
    let body_size = u64::from(event.header.event_size).saturating_sub(around as u64);
    Ok(TransactionPayloadHeader::decode_front(event.body, body_size)?.map(|(header, _)| header))
}

/// Appends a payload's fields.
pub(super) fn push_payload(out: &mut Vec<u8>, header: &TransactionPayloadHeader<'_>) {
    push_text(out, "compression_type", &header.compression_type().to_string());
    push_number(out, "payload_size", header.payload_size());
    if let Some(size) = header.uncompressed_size() {
        push_number(out, "uncompressed_size", size);
    }
}
