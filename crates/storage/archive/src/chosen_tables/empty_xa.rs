//! Prepared XA transactions of which no rows stay. Servers don't end such ones as they ended the source's: MariaDB rolls one back when it is
//! prepared, and refuses its COMMIT and ROLLBACK (error 1402); MySQL, given its ROLLBACK, has no GTID of it. So one that ends in the log
//! that prepares it becomes two empty transactions.
//!
//! ```text
//! MySQL      GTID · XA START       · fillers · XA END · XA_prepare      GTID · XA COMMIT or XA ROLLBACK
//!            GTID · BEGIN          · fillers · filler  ·  COMMIT        GTID · BEGIN · filler · COMMIT
//! MariaDB    GTID, which prepares  · fillers · XA END · XA_prepare      GTID, which completes · XA COMMIT or XA ROLLBACK
//!            GTID, which begins    · fillers · filler  ·  COMMIT        GTID, which begins · filler · COMMIT
//! ```

use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader};

use super::filler;
use crate::error::Result;

/// An identifier of more bytes, as statements spell it, is no server's: two parts of at most 64 bytes, in hexadecimal digits, and a number.
const ID_SIZE_MAX: usize = 300;
/// Where the flags are in the body of MariaDB's GTID event, after sequence number and domain.
const MARIADB_FLAGS_OFFSET: usize = 12;
/// The flag of MariaDB's GTID event by which it takes the place of XA START.
const PREPARES_XA: u8 = 0x40;

/// What begins an XA transaction, and where.
#[derive(Debug)]
enum XaBeginning {
    /// The statement XA START.
    Statement(u64, EventHeader),
    /// MariaDB's GTID event.
    Gtid(u64, Vec<u8>),
}

/// The events around an XA transaction's rows, as they come.
#[derive(Debug, Default)]
pub(super) struct XaFrame {
    begin: Option<XaBeginning>,
    /// The statement XA END, and the transaction that it names.
    end: Option<(u64, EventHeader, Vec<u8>)>,
}

/// A prepared transaction of which no rows stay.
#[derive(Debug)]
pub(super) struct EmptyXa {
    begin: XaBeginning,
    /// Where XA END stands.
    pub(super) end_at: u64,
    /// XA END and the prepare event, taken together.
    end: EventHeader,
}

impl XaFrame {
    /// MariaDB's GTID event, which begins the transaction if its flags say so.
    pub(super) fn note_gtid(&mut self, at: u64, event: &[u8], checksum: ChecksumAlgorithm) -> Result<()> {
        let frame = EventFrame::from_bytes(event, checksum.size())?;
        let prepares = frame.body().get(MARIADB_FLAGS_OFFSET).is_some_and(|flags| flags & PREPARES_XA != 0);
        *self = XaFrame { begin: prepares.then(|| XaBeginning::Gtid(at, event.to_vec())), end: None };
        Ok(())
    }

    /// XA START.
    pub(super) fn note_start(&mut self, at: u64, header: EventHeader) {
        *self = XaFrame { begin: Some(XaBeginning::Statement(at, header)), end: None };
    }

    /// XA END of the transaction with this identifier.
    pub(super) fn note_end(&mut self, at: u64, header: EventHeader, id: Vec<u8>) {
        self.end = (id.len() <= ID_SIZE_MAX).then_some((at, header, id));
    }

    /// The transaction that an event at this place prepares, and its identifier; `None`: other events are around its rows.
    pub(super) fn prepared(self, at: u64, prepare: &EventHeader) -> Option<(Vec<u8>, EmptyXa)> {
        let (end_at, end, id) = self.end?;
        if end_at + u64::from(end.event_size) != at {
            return None;
        }
        let event_size = end.event_size.checked_add(prepare.event_size)?;
        let both = EventHeader { event_size, end_log_pos: prepare.end_log_pos, ..end };
        Some((id, EmptyXa { begin: self.begin?, end_at, end: both }))
    }
}

/// Events, and where in the log they begin.
pub(super) type PlacedEvents = (u64, Vec<u8>);

impl EmptyXa {
    /// What takes the places of its first and last events, and where; `None`: there is no room.
    pub(super) fn emptied(&self, checksum: ChecksumAlgorithm) -> Result<Option<[PlacedEvents; 2]>> {
        let begin = match &self.begin {
            XaBeginning::Statement(at, header) => filler::begin(header, checksum).map(|events| (*at, events)),
            XaBeginning::Gtid(at, event) => Some((*at, beginning_gtid(event, checksum)?)),
        };
        let commit = filler::empty_transaction(&self.end, false, None, checksum);
        Ok(begin.zip(commit).map(|(begin, commit)| [begin, (self.end_at, commit)]))
    }
}

/// MariaDB's GTID event as one that takes the place of BEGIN and announces nothing.
pub(super) fn beginning_gtid(event: &[u8], checksum: ChecksumAlgorithm) -> Result<Vec<u8>> {
    let frame = EventFrame::from_bytes(event, checksum.size())?;
    let mut body = frame.body().to_vec();
    body.iter_mut().skip(MARIADB_FLAGS_OFFSET).for_each(|byte| *byte = 0);
    Ok(encode_event(*frame.header(), &body, checksum))
}

/// The identifier that an XA statement names, as it spells it.
pub(super) fn id_of(statement: &[u8]) -> Vec<u8> {
    let words = statement.splitn(3, |byte| *byte == b' ');
    words.skip(2).flat_map(|id| id.trim_ascii().to_vec()).collect()
}
