//! The rows of one statement, of which a client is to have those of some tables only.
//!
//! ```text
//! the log                                     the client
//! Table_map a · Table_map b                   Table_map a · filler
//! Rows a · Rows a · Rows b                    Rows a · Rows a (ends the statement) · filler
//! Rows b (ends the statement)                 filler
//! ```
//!
//! The last rows event of a statement has a flag by which a server applies what it has and closes its tables. If that
//! event is left out, the last one before it that is sent gets the flag: so each is held until the next one tells. If no
//! rows event of a statement is sent, its table maps aren't either.
//!
//! MariaDB gets a rows event without rows in each one's place instead, if the statement has rows for it as well.

use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader};

/// Bytes of a row event's or table map's body that tell table and flags: 6 and 2.
pub(crate) const HEAD_SIZE: usize = 8;
/// A rows event whose successor must be known is held: no larger than this.
const HELD_SIZE_MAX: u32 = 64 << 20;
/// The flag of the last rows event of a statement.
const STATEMENT_END: u8 = 0x01;

/// An event whose turn comes when a later one was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueuedEvent {
    TableMap(Vec<u8>),
    Rows(Vec<u8>),
    /// To be filled.
    LeftOut(EventHeader),
}

/// The way in which a rows event is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsCare {
    Send,
    /// It is queued as a whole.
    Hold,
    Fill,
    /// The event's place is queued, to be filled.
    QueueFiller,
    /// A rows event without rows is sent in its place.
    Blank,
}

/// A statement whose rows are being sent.
#[derive(Debug, Default)]
pub(super) struct RowStatement {
    /// Whether the client takes nothing but rows events from a statement's first one to its last.
    takes_rows_alone: bool,
    /// Tables whose rows are left out.
    left_out: Vec<u64>,
    /// Whether other tables were mapped as well.
    has_others: bool,
    queue: Vec<QueuedEvent>,
    /// Whether a rows event was sent for good that does not end the statement.
    is_open: bool,
}

/// The table and the flags of a row event or table map, from the beginning of its body.
fn table_and_flags(head: &[u8]) -> Option<(u64, u8)> {
    let [a, b, c, d, e, f, flags, ..] = *head.first_chunk::<HEAD_SIZE>()?;
    Some((u64::from_le_bytes([a, b, c, d, e, f, 0, 0]), flags))
}

impl RowStatement {
    /// For a client that takes nothing but rows events from a statement's first one to its last, or for others.
    pub(super) fn new(takes_rows_alone: bool) -> Self {
        RowStatement { takes_rows_alone, ..RowStatement::default() }
    }

    /// The next statement begins.
    fn reset(&mut self) {
        *self = RowStatement::new(self.takes_rows_alone);
    }

    /// Takes a table map: whether it is to be filled at once. If not, it is queued.
    pub(super) fn table_map(&mut self, frame: &EventFrame<'_>, is_chosen: bool) -> bool {
        self.passed_map(frame, is_chosen);
        if !is_chosen && self.queue.is_empty() {
            return true;
        }
        self.queue.push(match is_chosen {
            true => QueuedEvent::TableMap(frame.bytes().to_vec()),
            false => QueuedEvent::LeftOut(*frame.header()),
        });
        false
    }

    /// Takes a table map that the client has already.
    pub(super) fn passed_map(&mut self, frame: &EventFrame<'_>, is_chosen: bool) {
        match table_and_flags(frame.body()) {
            Some((table, _)) if !is_chosen => self.left_out.push(table),
            _ => self.has_others |= is_chosen,
        }
    }

    /// Takes a rows event that the client has already.
    pub(super) fn passed_rows(&mut self, head: &[u8]) {
        if table_and_flags(head).is_some_and(|(_, flags)| flags & STATEMENT_END != 0) {
            self.reset();
        }
    }

    /// Takes a rows event that is to be sent or left out. What has to be sent before it goes to `ready`.
    ///
    /// # Errors
    ///
    /// Why it can be neither.
    pub(super) fn rows(
        &mut self,
        header: &EventHeader,
        head: &[u8],
        checksum: ChecksumAlgorithm,
        ready: &mut Vec<QueuedEvent>,
    ) -> Result<RowsCare, String> {
        let Some((table, flags)) = table_and_flags(head) else { return Ok(RowsCare::Send) };
        let ends = flags & STATEMENT_END != 0;
        let is_left_out = self.left_out.contains(&table);
        if self.takes_rows_alone && self.has_others {
            ready.append(&mut self.queue);
            if ends {
                self.reset();
            }
            return Ok(if is_left_out { RowsCare::Blank } else { RowsCare::Send });
        }
        if is_left_out && !ends {
            if self.queue.is_empty() {
                return Ok(RowsCare::Fill);
            }
            self.queue.push(QueuedEvent::LeftOut(*header));
            return Ok(RowsCare::QueueFiller);
        }
        if is_left_out {
            self.end_before(checksum)?;
        }
        ready.append(&mut self.queue);
        if ends {
            self.reset();
            return Ok(if is_left_out { RowsCare::Fill } else { RowsCare::Send });
        }
        if self.left_out.is_empty() {
            self.is_open = true;
            return Ok(RowsCare::Send);
        }
        match header.event_size > HELD_SIZE_MAX {
            true => Err(format!(
                "{} bytes of rows are too many to hold, in a statement that also changed tables which are left out",
                header.event_size
            )),
            false => Ok(RowsCare::Hold),
        }
    }

    /// Takes a rows event that [`RowStatement::rows`] wanted to be held.
    pub(super) fn hold(&mut self, event: Vec<u8>) {
        self.queue.push(QueuedEvent::Rows(event));
    }

    /// The statement is over, with all of its rows events or without any.
    pub(super) fn end(&mut self, ready: &mut Vec<QueuedEvent>) {
        ready.append(&mut self.queue);
        self.reset();
    }

    /// The event that ends the statement is left out.
    fn end_before(&mut self, checksum: ChecksumAlgorithm) -> Result<(), String> {
        if self.is_open {
            return Err("a table that is left out appears after rows of the same statement were sent".into());
        }
        let is_rows = |event: &QueuedEvent| matches!(event, QueuedEvent::Rows(_));
        if let Some(QueuedEvent::Rows(last)) = self.queue.iter_mut().rev().find(|event| is_rows(event)) {
            if let Some(ended) = with_end(last, checksum) {
                *last = ended;
            }
            return Ok(());
        }
        for event in &mut self.queue {
            if let QueuedEvent::TableMap(map) = event {
                let header = EventHeader::decode(map).map_err(|error| error.to_string())?;
                *event = QueuedEvent::LeftOut(header);
            }
        }
        Ok(())
    }
}

/// A rows event as the last of its statement; `None`: it is damaged, and stays so.
fn with_end(event: &[u8], checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    const FLAGS_AT: usize = HEAD_SIZE - 2;
    let frame = EventFrame::from_bytes(event, checksum.size()).ok()?;
    if frame.stored_checksum().is_some_and(|stored| stored != frame.computed_checksum()) {
        return None;
    }
    let mut body = frame.body().to_vec();
    *body.get_mut(FLAGS_AT)? |= STATEMENT_END;
    Some(encode_event(*frame.header(), &body, checksum))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::EventType;

    use super::*;
    use crate::serve::events::event_in_tests::event_with;

    const CRC32: ChecksumAlgorithm = ChecksumAlgorithm::CRC32;

    fn event(event_type: EventType, table: u8, flags: u8) -> Vec<u8> {
        event_with(event_type, &[table, 0, 0, 0, 0, 0, flags, 0, 9, 9, 9], CRC32)
    }

    /// What a client is sent of a statement: `m` and `r` with the table's number for maps and rows, `!` after the last
    /// of a statement, `_` for each filler.
    fn sent(statement: &str, left_out: &[u8]) -> Result<String, String> {
        sent_to(RowStatement::default(), statement, left_out)
    }

    fn sent_to(mut rows: RowStatement, statement: &str, left_out: &[u8]) -> Result<String, String> {
        let mut ready = Vec::new();
        let mut all = String::new();
        for word in statement.split(' ') {
            let table = word.as_bytes()[1] - b'0';
            let is_map = word.starts_with('m');
            let ends = word.ends_with('!');
            let event_type = if is_map { EventType::TABLE_MAP } else { EventType::WRITE_ROWS };
            let event = event(event_type, table, u8::from(ends));
            let frame = EventFrame::from_bytes(&event, 4).unwrap();
            let care = match is_map {
                true if rows.table_map(&frame, !left_out.contains(&table)) => RowsCare::Fill,
                true => RowsCare::QueueFiller,
                false => rows.rows(frame.header(), frame.body(), CRC32, &mut ready)?,
            };
            ready.drain(..).for_each(|event| all += &shown(&event));
            match care {
                RowsCare::Send => all += &format!(" {word}"),
                RowsCare::Fill => all += " _",
                RowsCare::Hold => rows.hold(event),
                RowsCare::Blank => all += if ends { " b!" } else { " b" },
                RowsCare::QueueFiller => {}
            }
        }
        rows.end(&mut ready);
        ready.drain(..).for_each(|event| all += &shown(&event));
        Ok(all.trim_start().to_owned())
    }

    fn shown(event: &QueuedEvent) -> String {
        match event {
            QueuedEvent::LeftOut(_) => " _".to_owned(),
            QueuedEvent::TableMap(event) | QueuedEvent::Rows(event) => {
                let frame = EventFrame::from_bytes(event, 4).unwrap();
                assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()));
                let (table, flags) = table_and_flags(frame.body()).unwrap();
                let letter = if frame.event_type() == EventType::TABLE_MAP { 'm' } else { 'r' };
                format!(" {letter}{table}{}", if flags & STATEMENT_END != 0 { "!" } else { "" })
            }
        }
    }

    #[test]
    fn every_statement_that_a_client_is_sent_rows_of_ends() {
        for (statement, expected) in [
            ("m1 r1 r1!", "m1 r1 r1!"),
            ("m2 r2 r2!", "_ _ _"),
            ("m1 m2 r1 r1 r2!", "m1 _ r1 r1! _"),
            ("m1 m2 r1 r2 r2 r1 r2 r2!", "m1 _ r1 _ _ r1! _ _"),
            ("m1 m2 r1 r2 r1!", "m1 _ r1 _ r1!"),
            ("m2 m1 r2 r1!", "_ m1 _ r1!"),
            // No rows of table 1: its map would leave an open statement.
            ("m1 m2 r2 r2!", "_ _ _ _"),
            ("m1 m2 r2!", "_ _ _"),
            ("m1 m3 m2 r3 r2!", "m1 m3 _ r3! _"),
            // The next statement is another one.
            ("m1 m2 r1 r2! m2 r2! m1 r1!", "m1 _ r1! _ _ _ m1 r1!"),
            // A table whose map was not seen.
            ("r7 r7!", "r7 r7!"),
            // Not a whole statement.
            ("m1 m2 r1 r2", "m1 _ r1 _"),
        ] {
            assert_eq!(sent(statement, &[2]), Ok(expected.to_owned()), "{statement}");
        }
        let error = sent("m1 r1 m2 r2!", &[2]).unwrap_err();
        assert!(error.starts_with("a table that is left out appears after rows"), "{error}");
    }

    #[test]
    fn a_client_that_takes_rows_alone_gets_rows_events_from_the_first_to_the_last() {
        for (statement, expected) in [
            ("m1 r1 r1!", "m1 r1 r1!"),
            ("m2 r2 r2!", "_ _ _"),
            ("m2 m1 r2 r1 r2 r1!", "_ m1 b r1 b r1!"),
            ("m1 m2 r1 r2 r1 r2! m2 r2! m1 r1!", "m1 _ r1 b r1 b! _ _ m1 r1!"),
            ("m1 m2 r2 r2!", "m1 _ b b!"),
        ] {
            assert_eq!(
                sent_to(RowStatement::new(true), statement, &[2]),
                Ok(expected.to_owned()),
                "{statement}"
            );
        }
    }

    #[test]
    fn a_client_that_begins_within_a_statement_gets_the_rest_of_it() {
        let mut rows = RowStatement::default();
        let mut ready = Vec::new();
        let map = |table| event(EventType::TABLE_MAP, table, 0);
        for table in [1, 2] {
            rows.passed_map(&EventFrame::from_bytes(&map(table), 4).unwrap(), table == 1);
        }
        rows.passed_rows(&event(EventType::WRITE_ROWS, 1, 0)[19..]);
        let last = event(EventType::WRITE_ROWS, 2, 1);
        let frame = EventFrame::from_bytes(&last, 4).unwrap();
        assert_eq!(rows.rows(frame.header(), frame.body(), CRC32, &mut ready), Ok(RowsCare::Fill));
        assert!(ready.is_empty());
    }
}
