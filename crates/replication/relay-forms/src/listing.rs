//! SHOW BINLOG EVENTS: the events of a file in the form that its name says, with payloads opened, as the server lists
//! them.

use std::io::{self, Write};

use binlogz_binlog::event::{AnyEvent, PostHeaderLengths, TransactionPayloadEvent};
use binlogz_binlog::show_events::{event_type_name, write_info};
use binlogz_binlog::{
    EventFrame, EventHeader, EventParser, EventType, EventVisitor, Framing, MAGIC, StoredChecksum,
};
use binlogz_payload::{Error, Expander, PayloadStream};
use binlogz_relay_log::StoredHead;
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::EventsWanted;

use crate::translate::FormSink;

/// How much of an event we read: its Info may be a statement.
const EVENT_SIZE_MAX: usize = 1 << 20;
/// An answer is built in memory: a client that wants more uses LIMIT.
const ANSWER_SIZE_MAX: usize = 16 << 20;
/// Memory of a row, besides its name and Info: six allocations and short texts.
const ROW_SIZE: usize = 256;

/// Collects rows.
pub(crate) struct Listing {
    parser: EventParser<StoredChecksum>,
    list: List,
}

struct List {
    name: String,
    framing: Framing,
    lengths: PostHeaderLengths,
    from: u64,
    skip: u64,
    left: u64,
    rows: Vec<ResultRow>,
    size: usize,
    /// The reason why the request is refused.
    refused: Option<String>,
    /// The current event: its offset, and as many of its bytes as are held.
    offset: u64,
    header: Option<EventHeader>,
    event: Vec<u8>,
    payload: Option<PayloadStream>,
    /// The current event of a payload, in as many pieces as it arrives in.
    inner: Option<EventHeader>,
    expander: Option<Expander>,
}

/// The error with which [`Listing`] ends a walk once it has everything.
const ENOUGH: &str = "enough";

impl Listing {
    /// For a file of this name, starting at its format description.
    pub(crate) fn new(name: String, head: &StoredHead, wanted: &EventsWanted) -> Self {
        let mut info = Vec::new();
        write_info(&AnyEvent::FormatDescription(head.description.clone()), head.header.flags, &mut info);
        let mut list = List {
            name,
            framing: head.framing(),
            lengths: PostHeaderLengths::from(&head.description),
            from: wanted.from.unwrap_or(0).max(MAGIC.len() as u64),
            skip: wanted.skip,
            left: wanted.count.unwrap_or(u64::MAX),
            rows: Vec::new(),
            size: 0,
            refused: None,
            offset: MAGIC.len() as u64,
            header: None,
            event: Vec::new(),
            payload: None,
            inner: None,
            expander: None,
        };
        if list.from <= list.offset {
            list.row(list.offset, head.header.end_log_pos, &head.header, info);
        } else if list.from < head.end() {
            list.refuse_place();
        }
        Listing { parser: EventParser::unverified(head.framing(), head.end()), list }
    }

    /// Whether the listing is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.list.left == 0 || self.list.refused.is_some()
    }

    /// Events before this offset are not listed.
    pub(crate) fn from(&self) -> u64 {
        self.list.from
    }

    /// The rows, or why there are none.
    pub(crate) fn finish(&mut self) -> Result<Vec<ResultRow>, String> {
        match self.list.refused.take() {
            Some(refused) => Err(refused),
            None => Ok(std::mem::take(&mut self.list.rows)),
        }
    }
}

impl FormSink for Listing {
    fn skip_to(&mut self, position: u64) {
        self.parser = EventParser::unverified(self.list.framing, position);
    }
}

impl Write for Listing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.parser.push(bytes, &mut self.list) {
            Ok(()) => Ok(bytes.len()),
            Err(_) if self.is_done() => Err(io::Error::other(ENOUGH)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl List {
    /// Adds a row for the held event.
    fn show(&mut self, pos: u64, end_log_pos: u32, header: &EventHeader) {
        let mut info = Vec::new();
        let frame = EventFrame::without_checksum_behind(&self.event);
        // An unreadable event has no Info; verify reports the damage.
        if let Ok(event) = frame.and_then(|frame| AnyEvent::decode(&frame, &self.lengths)) {
            write_info(&event, header.flags, &mut info);
        }
        self.row(pos, end_log_pos, header, info);
    }

    /// Adds a row, if it is in the requested range.
    fn row(&mut self, pos: u64, end_log_pos: u32, header: &EventHeader, info: Vec<u8>) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.left == 0 || self.refused.is_some() {
            return;
        }
        self.size += info.len() + self.name.len() + ROW_SIZE;
        if self.size > ANSWER_SIZE_MAX {
            self.refused =
                Some("the answer would be larger than 16 MiB: ask for fewer events with LIMIT".into());
            return;
        }
        let text = |value: String| Some(value.into_bytes());
        self.rows.push(vec![
            text(self.name.clone()),
            text(pos.to_string()),
            text(event_type_name(header.event_type).to_owned()),
            text(header.server_id.to_string()),
            text(end_log_pos.to_string()),
            Some(info),
        ]);
        self.left -= 1;
    }

    fn refuse_place(&mut self) {
        self.refused = Some(format!("Wrong offset or I/O error: no event begins at {}", self.from));
    }

    fn enough(&self) -> Result<(), Error> {
        match self.left == 0 || self.refused.is_some() {
            true => Err(Error::Io(io::Error::other(ENOUGH))),
            false => Ok(()),
        }
    }
}

impl EventVisitor<StoredChecksum> for List {
    type Error = Error;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<(), Error> {
        (self.offset, self.header) = (offset, Some(*header));
        self.event = header.encode().to_vec();
        if offset < self.from {
            self.header = None;
            if offset + u64::from(header.event_size) > self.from {
                self.refuse_place();
            }
        } else if header.event_type == EventType::TRANSACTION_PAYLOAD {
            self.payload = Some(PayloadStream::begin(offset, header, self.framing));
            if self.expander.is_none() {
                self.expander = Some(Expander::new()?);
            }
        }
        self.enough()
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(header) = self.header else { return Ok(()) };
        let (Some(mut payload), Some(mut expander)) = (self.payload.take(), self.expander.take()) else {
            let room = EVENT_SIZE_MAX.saturating_sub(self.event.len());
            self.event.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            return Ok(());
        };
        let told = payload.fields().is_some();
        // The payload's own row comes first, as soon as its fields are complete.
        let rest = payload.front(bytes, &mut expander)?;
        let end = (self.offset + u64::from(header.event_size)) as u32;
        if let Some(fields) = payload.fields().filter(|_| !told) {
            let mut info = Vec::new();
            let event = TransactionPayloadEvent { header: fields, payload: &[], trailing: &[] };
            write_info(&AnyEvent::TransactionPayload(event), header.flags, &mut info);
            self.row(self.offset, end, &header, info);
        }
        let mut inside = ListedPayload { list: self, end };
        let done = payload.body(rest, &mut expander, &mut inside);
        (self.payload, self.expander) = (Some(payload), Some(expander));
        done?;
        self.enough()
    }

    fn end(&mut self, _: StoredChecksum) -> Result<(), Error> {
        if self.payload.take().is_some() {
            return self.enough();
        }
        if let Some(header) = self.header.take() {
            self.show(self.offset, header.end_log_pos, &header);
        }
        self.enough()
    }
}

/// The events of a payload: each is listed at the payload's end position.
struct ListedPayload<'a> {
    list: &'a mut List,
    end: u32,
}

impl EventVisitor<StoredChecksum> for ListedPayload<'_> {
    type Error = Error;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<(), Error> {
        self.list.inner = Some(*header);
        self.list.event = header.encode().to_vec();
        self.list.enough()
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let room = EVENT_SIZE_MAX.saturating_sub(self.list.event.len());
        self.list.event.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(())
    }

    fn end(&mut self, _: StoredChecksum) -> Result<(), Error> {
        if let Some(header) = self.list.inner.take() {
            self.list.show(u64::from(self.end), self.end, &header);
        }
        self.list.enough()
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};

    use super::*;

    #[test]
    fn events_of_a_payload_are_listed_however_its_bytes_come() {
        // More than two zstd blocks, so that events cross their borders.
        let values: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; 4000]).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.payload(&PayloadBody::zstd(&inner_transaction(&values)));
        let log = log.take();
        let head = StoredHead::decode(&log[MAGIC.len()..]).unwrap();
        let wanted = EventsWanted { file: None, from: None, skip: 0, count: None };
        let rows = |size: usize| {
            let mut listing = Listing::new("binlog.000001".into(), &head, &wanted);
            for piece in log[head.end() as usize..].chunks(size) {
                listing.write_all(piece).unwrap();
            }
            listing.finish().unwrap()
        };
        let whole = rows(log.len());
        assert!(whole.len() > values.len(), "{}", whole.len());
        for size in [1, 10, 100] {
            assert_eq!(rows(size).len(), whole.len(), "pieces of {size}");
            assert_eq!(rows(size), whole, "pieces of {size}");
        }
    }
}
