//! Incidents in the logs: a server wrote them where its log lacks changes. A server that is brought over one lacks those
//! changes too, so they are looked for before anything is changed.
//!
//! ```text
//! logs that the server lacks transactions of → events::run → GTIDs and incidents, in order → which of them are crossed
//! ```
//!
//! An incident is crossed unless the server has the transaction that carries it, or the next one after it: then the backup that it
//! was restored from was made later. The same walk finds whether the server has transactions that follow ones which it lacks.

use std::path::{Path, PathBuf};

use binlogz_archive::input as archived;
use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::{ChangeContent, EventHeader};
use binlogz_flow::events::{self, BatchItem, EventBatch, EventPosition, RunSummary, UnreadChanges};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_relay::EndedLogs;

use crate::error::{ReplayError, Result};

/// Logs to recover from.
#[derive(Debug)]
pub struct RecoveredLogs<'l> {
    /// As they were named.
    pub from: &'l [PathBuf],
    /// The logs up to where recovery ends.
    pub ended: &'l EndedLogs,
    /// Has the last of them, cut where recovery ends.
    pub folder: &'l Path,
}

/// A log to be read for its incidents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentLog {
    /// The name in messages: the file, or the log in an archive.
    pub shown: PathBuf,
    /// Where to read it.
    pub path: PathBuf,
}

/// Incidents that recovery crosses.
#[derive(Debug)]
pub struct CrossedIncidents {
    unread: UnreadChanges,
    /// The transactions that consist of one.
    gtids: Vec<Gtid>,
    gap: Option<(Gtid, Gtid)>,
}

impl CrossedIncidents {
    /// The unread changes of the log with this number, as it was given to [`IncidentWalk::read`].
    pub fn of_log(&self, number: u64) -> UnreadChanges {
        let mut of_log = self.unread.clone();
        of_log.retain(|incident| incident.log == number);
        of_log
    }

    /// The first transaction that the server lacks and the first one that follows it in the logs and that the server has, if there is one: then its
    /// tables may be those of no moment.
    pub fn gap(&self) -> Option<(Gtid, Gtid)> {
        self.gap
    }

    /// The transactions that are nothing but an incident.
    pub(crate) fn gtids(&self) -> &[Gtid] {
        &self.gtids
    }
}

impl RecoveredLogs<'_> {
    /// The logs that may have a crossed incident, in their order: those that a server lacks transactions of, which has
    /// `executed` these.
    ///
    /// # Errors
    ///
    /// An archive that can't be read, or that lacks a log which it had before.
    pub fn to_read(&self, executed: &GtidSet) -> Result<Vec<IncidentLog>> {
        let paths = archived::expand(self.from.iter().cloned())?;
        let beginnings = self.ended.logs().beginnings()?;
        let mut to_read = Vec::new();
        for (number, (name, _)) in beginnings.iter().enumerate() {
            if beginnings.get(number + 1).is_some_and(|(_, before)| self.is_had(before, executed)) {
                continue;
            }
            let shown = paths
                .iter()
                .find(|path| path.file_name().is_some_and(|file| file == *name))
                .cloned()
                .ok_or_else(|| {
                    ReplayError::place(self.ended.logs().place(), format!("{name} is no longer there"))
                })?;
            let path = match number + 1 == beginnings.len() {
                true => self.folder.join(name),
                false => shown.clone(),
            };
            to_read.push(IncidentLog { shown, path });
        }
        Ok(to_read)
    }

    /// Whether the server has all transactions before a log, and one that came later.
    fn is_had(&self, before: &GtidSet, executed: &GtidSet) -> bool {
        let mut later = self.ended.gtids.clone();
        later.subtract(before);
        before.is_subset(executed) && !later.is_disjoint(executed)
    }
}

/// The facts of an event that decide: a GTID, or an incident.
enum IncidentMark {
    Gtid(Gtid),
    Incident {
        position: EventPosition,
        header: EventHeader,
        body: Vec<u8>,
    },
    /// An event of another type, or several.
    Others,
}

/// Goes through logs in their order, and finds the incidents that are crossed, and a gap in what the server has.
#[derive(Debug)]
pub struct IncidentWalk<'e> {
    executed: &'e GtidSet,
    /// Incidents since the last transaction: whether they are crossed depends on the next one.
    pending: UnreadChanges,
    crossed: UnreadChanges,
    gtids: Vec<Gtid>,
    /// Set if the event before was this GTID.
    own: Option<Gtid>,
    /// The first transaction that has passed and that the server lacks.
    lacking: Option<Gtid>,
    gap: Option<(Gtid, Gtid)>,
}

impl<'e> IncidentWalk<'e> {
    /// A walk through logs for a server that has executed these transactions.
    pub fn new(executed: &'e GtidSet) -> Self {
        IncidentWalk {
            executed,
            pending: UnreadChanges::default(),
            crossed: UnreadChanges::default(),
            gtids: Vec::new(),
            own: None,
            lacking: None,
            gap: None,
        }
    }

    /// Reads the next log, with so many threads. `number` is the log's in [`CrossedIncidents::of_log`]; `progress` hears of bytes.
    ///
    /// # Errors
    ///
    /// The log can't be read.
    pub fn read(
        &mut self,
        number: u64,
        input: Input,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), FlowError> {
        let ran = events::run(
            input,
            workers,
            || Ok(()),
            |(), batch| marks(batch),
            |marks| {
                marks.into_iter().for_each(|mark| self.take(number, mark));
                Ok(())
            },
            progress,
        );
        // The server itself reads everything but incidents, and tells what it can't.
        let RunSummary { read: _, unread: _ } = ran?;
        self.own = None;
        Ok(())
    }

    fn take(&mut self, log: u64, mark: IncidentMark) {
        match mark {
            IncidentMark::Gtid(gtid) => {
                match self.executed.contains(&gtid) {
                    true => self.gap = self.gap.or_else(|| self.lacking.map(|lacking| (lacking, gtid))),
                    false => self.lacking = self.lacking.or(Some(gtid)),
                }
                let pending = std::mem::take(&mut self.pending);
                if self.lacking.is_some() {
                    self.crossed.add(pending);
                }
                self.own = Some(gtid);
            }
            IncidentMark::Incident { position, header, body } => {
                let own = self.own.take();
                if own.is_some_and(|own| self.executed.contains(&own)) {
                    return;
                }
                let found = if self.lacking.is_some() { &mut self.crossed } else { &mut self.pending };
                found.note_by_type(log, position, &header, &body);
                self.gtids.extend(own);
            }
            IncidentMark::Others => self.own = None,
        }
    }

    /// The incidents that are crossed, once all logs are read.
    pub fn ended(mut self) -> CrossedIncidents {
        self.crossed.add(std::mem::take(&mut self.pending));
        CrossedIncidents { unread: self.crossed, gtids: self.gtids, gap: self.gap }
    }
}

/// The marks of a batch, in order.
fn marks(batch: &mut EventBatch<'_>) -> Result<Vec<IncidentMark>, FlowError> {
    let mut marks = Vec::new();
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        let event_type = event.header.event_type;
        if event_type.is_gtid() {
            let decoded = AnyGtidEvent::decode(event.body, event_type).map_err(|error| event.error(error))?;
            marks.extend(decoded.as_ref().and_then(AnyGtidEvent::gtid).map(IncidentMark::Gtid));
        } else if event_type.changes() == ChangeContent::Lost {
            marks.push(IncidentMark::Incident {
                position: event.position,
                header: event.header,
                body: event.body.to_vec(),
            });
        } else if !matches!(marks.last(), Some(IncidentMark::Others)) {
            marks.push(IncidentMark::Others);
        }
    }
    Ok(marks)
}
