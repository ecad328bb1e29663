//! Checks that the source's log is still the one we store: on each connection, and while the source is silent.
//!
//! ```text
//! the source's file of our last name   is not there, and its log begins no later    it was reset, or put back
//!                                      is shorter than ours                         it was put back
//!                                      begins with another format description       it was reset
//!                                      has another last transaction where ours is   both within a second
//! ```
//!
//! We compare the last transaction byte for byte (only the beginning of a large one): its GTID event has its commit
//! time in microseconds and its size. A difference begins another lineage (`lineages`). A server does not tell a
//! waiting reader that its log was reset until the new log is as long as the old one was. So we also check on
//! heartbeats.

use std::io::{self, Write};

use binlogz_binlog::EventType;
use binlogz_relay_forms::{FormSink, Forms, Translator};
use binlogz_relay_log::{Form, FormFile, LineageLog, StartOffsets, StoredHead};
use binlogz_source::{ConnectOptions, Connection, DumpOptions, RemoteLog};
use binlogz_store::FileNumber;
use binlogz_wire::ServerError;

use crate::error::Result;
use crate::receive::start::lacks;

/// How much of a transaction we compare.
const COMPARED_SIZE: usize = 64 << 10;
/// The words of MySQL and of MariaDB, within error 1236, for a position that the file doesn't reach.
const BEHIND_THE_END: [&str; 2] = ["position > file size", "impossible position"];
const NO_SUCH_FILE: &str = "Could not find first log file name";

/// Whether a server says that its file doesn't reach a position.
pub(crate) fn is_behind_the_end(message: &str) -> bool {
    BEHIND_THE_END.iter().any(|words| message.contains(words))
}

/// Whether a server says that it has no such file.
pub(crate) fn is_of_a_missing_file(error: &binlogz_source::Error) -> bool {
    error.server_error().is_some_and(|error| {
        error.code == ServerError::SOURCE_FATAL_ERROR_READING_BINLOG && error.message.contains(NO_SUCH_FILE)
    })
}

/// The end of a stored log, to find it again at the source.
pub(crate) struct LogTail {
    file: FileNumber,
    head: StoredHead,
    /// Offset and bytes of the last transaction and, if different, of the last event.
    places: Vec<(u64, Vec<u8>)>,
}

impl LogTail {
    /// The durable end of a file, as it was received.
    pub(crate) fn of(forms: Forms<'_>, file: FileNumber) -> Result<LogTail> {
        let mut bound = u64::MAX;
        let starts = loop {
            let mut log = Translator::new(forms, Form::Received, FormFile::first_of(file), io::sink())?;
            let start = log.before(bound);
            if let Some(start) = &start {
                log.begin_at(start)?;
            }
            let (transaction, last) = last_groups(&mut log)?;
            match start {
                // A checkpoint is at the end of a transaction, which may be the last one.
                Some(start) if transaction.is_none() => bound = start.at.saturating_sub(1),
                _ => break [transaction, last.filter(|last| Some(*last) != transaction)],
            }
        };
        let places = starts.into_iter().flatten().map(|(stored, at)| {
            let mut log =
                Translator::new(forms, Form::Received, FormFile::first_of(file), BeginningWriter::default())?;
            log.begin_at(&StartOffsets { stored, at })?;
            let group = match log.walker().next_group()? {
                None => log.walker().left(),
                group => group,
            };
            if let Some(group) = group {
                log.put(&group)?;
            }
            Ok((at, std::mem::take(&mut log.sink()?.bytes)))
        });
        Ok(LogTail {
            file,
            head: StoredHead::read(&forms.kept.store, file)?,
            places: places.collect::<Result<_>>()?,
        })
    }

    /// The change at the source, if there is any.
    pub(crate) fn change(&self, kept: &LineageLog, server: &ConnectOptions) -> Result<Option<String>> {
        let name = kept.store.names().log(self.file);
        let only_head = (self.head.end(), Vec::new());
        let places = if self.places.is_empty() { std::slice::from_ref(&only_head) } else { &self.places };
        for (at, bytes) in places {
            match self.compare(&name, *at, bytes, server) {
                Ok(None) => {}
                Ok(Some(found)) => return Ok(Some(found)),
                Err(error) => {
                    let refusal = error
                        .server_error()
                        .filter(|error| error.code == ServerError::SOURCE_FATAL_ERROR_READING_BINLOG);
                    return match refusal {
                        Some(refusal) if is_behind_the_end(&refusal.message) => {
                            Ok(Some(format!("its {name} is shorter than what is kept of it")))
                        }
                        Some(refusal) if refusal.message.contains(NO_SUCH_FILE) => {
                            self.missing(kept, &name, server)
                        }
                        _ => Err(error.into()),
                    };
                }
            }
        }
        Ok(None)
    }

    /// Compares the source's file with ours from an offset on.
    fn compare(
        &self,
        name: &str,
        at: u64,
        bytes: &[u8],
        server: &ConnectOptions,
    ) -> binlogz_source::Result<Option<String>> {
        let mut log = RemoteLog::open(server, DumpOptions::to_the_end(name, at))?;
        let mut rest = bytes;
        let mut begun = false;
        while !begun || !rest.is_empty() {
            let Some(piece) = log.next_piece()? else {
                return Ok(Some(format!("its {name} is shorter than what is kept of it")));
            };
            if !piece.is_stored() {
                continue;
            }
            if piece.header.event_type == EventType::FORMAT_DESCRIPTION {
                let sent = StoredHead::decode(piece.bytes);
                if piece.name != name.as_bytes()
                    || !sent.is_ok_and(|sent| self.head.is_of_the_same_file(&sent))
                {
                    return Ok(Some(format!("its {name} is another file than the one that is kept")));
                }
                begun = true;
                continue;
            }
            let size = rest.len().min(piece.bytes.len());
            let (ours, behind) = rest.split_at_checked(size).unwrap_or((rest, &[]));
            if piece.bytes.get(..size) != Some(ours) {
                return Ok(Some(format!("its {name} has another transaction at {at} than is kept")));
            }
            rest = behind;
        }
        Ok(None)
    }

    /// The source does not have the file: was it purged there, or never written?
    fn missing(&self, kept: &LineageLog, name: &str, server: &ConnectOptions) -> Result<Option<String>> {
        let mut log = RemoteLog::open(server, DumpOptions::to_the_end("", 4))?;
        let first = log
            .next_piece()?
            .map(|piece| String::from_utf8_lossy(piece.name).into_owned())
            .unwrap_or_default();
        drop(log);
        let begins_later = kept.store.names().number(&first).is_none_or(|first| first > self.file);
        if begins_later && !lacks(&mut Connection::open(server)?, &kept.durable_gtids())? {
            // Purged: the request is refused in the server's own words.
            return Ok(None);
        }
        Ok(Some(format!("it has no {name} any more, its log begins with {first}")))
    }
}

/// A transaction's offset in the stored file and in the source's.
type GroupOffsets = Option<(u64, u64)>;

/// The last transaction, and the last group of any kind.
fn last_groups(log: &mut Translator<'_, io::Sink>) -> Result<(GroupOffsets, GroupOffsets)> {
    let mut transaction = None;
    let mut last = None;
    while let Some(group) = log.walker().next_group()? {
        last = Some((group.begin, log.offset()));
        if group.is_transaction {
            transaction = last;
        }
        match log.keeps_size(&group) {
            true => log.pass(&group)?,
            false => log.put(&group)?,
        }
    }
    if let Some(left) = log.walker().left() {
        last = Some((left.begin, log.offset()));
    }
    Ok((transaction, last))
}

/// Keeps only the beginning of the bytes written to it.
#[derive(Debug, Default)]
struct BeginningWriter {
    bytes: Vec<u8>,
}

impl Write for BeginningWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = COMPARED_SIZE.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or_default());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FormSink for BeginningWriter {
    fn skip_to(&mut self, _: u64) {}
}
