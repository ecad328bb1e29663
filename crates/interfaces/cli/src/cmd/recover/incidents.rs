//! Incidents in the logs: a server wrote them where its log lacks changes. A server that is brought over one lacks those
//! changes too, so they are looked for before anything is changed.
//!
//! ```text
//! logs that the server lacks transactions of → events::run → GTIDs and incidents, in order → which of them are crossed
//! ```
//!
//! An incident is crossed unless the server has the transaction that carries it, or the next one after it: then the backup that it
//! was restored from was made later.

use std::path::{Path, PathBuf};

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::{ChangeContent, EventHeader};
use binlogz_flow::events::{self, BatchItem, EventBatch, EventPosition, RunSummary, UnreadChanges};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_relay::EndedLogs;

use super::target::TargetServer;
use crate::Exit;
use crate::cmd::{closed_logs, workers};
use crate::failure::{CommandFailure, Result, name_unread};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::progress::WorkProgress;

/// Logs to recover from.
pub(super) struct RecoveredLogs<'l> {
    /// As they were named.
    pub(super) from: &'l [PathBuf],
    pub(super) ended: &'l EndedLogs,
    /// Has the last of them, cut where recovery ends.
    pub(super) folder: &'l Path,
}

/// Incidents that recovery crosses.
pub(super) struct CrossedIncidents {
    /// Negative: there are some. They were named.
    pub(super) exit: Exit,
    /// The transactions that consist of one.
    gtids: Vec<Gtid>,
}

/// Finds the incidents between what the server has executed and the end of the logs, and names them.
pub(super) fn crossed(
    logs: &RecoveredLogs<'_>,
    keyring: &KeyringArg,
    executed: &GtidSet,
) -> Result<CrossedIncidents> {
    let keyring = keyring.open()?;
    let mut walk = Walk::new(executed);
    let paths = logs.to_read(executed)?;
    let count = paths.len();
    for (number, (shown, path)) in paths.iter().enumerate() {
        let progress = WorkProgress::of(shown, path.size()?, (number + 1, count));
        let input = progress.watch(path.open(keyring.as_ref())?);
        walk.read(number, input, &mut |bytes| progress.at(bytes))
            .map_err(|error| CommandFailure::reading(shown, &error))?;
    }
    let Walk { crossed, gtids, .. } = walk.ended();
    let mut exit = Exit::Done;
    for (number, (shown, _)) in paths.iter().enumerate() {
        let mut of_log = crossed.clone();
        of_log.retain(|incident| incident.log == number as u64);
        exit = exit.max(name_unread(shown, &of_log, "the server would lack those changes"));
    }
    Ok(CrossedIncidents { exit, gtids })
}

impl CrossedIncidents {
    /// Makes the server count transactions as applied that are nothing but an incident, at which it would stop.
    pub(super) fn pass_over(&self, target: &mut TargetServer) -> Result<()> {
        for gtid in &self.gtids {
            target.patiently(|target| {
                target.run(&format!("SET GTID_NEXT = '{gtid}'"))?;
                target.run("BEGIN")?;
                target.run("COMMIT")?;
                target.run("SET GTID_NEXT = 'AUTOMATIC'")
            })?;
        }
        Ok(())
    }
}

impl RecoveredLogs<'_> {
    /// The logs that may have a crossed incident, with what to call them.
    fn to_read(&self, executed: &GtidSet) -> Result<Vec<(LogPath, LogPath)>> {
        let mut paths = self.from.iter().cloned().map(LogPath::File).collect();
        resolve(&mut paths)?;
        let beginnings = self.ended.logs().beginnings().map_err(closed_logs::line)?;
        let mut to_read = Vec::new();
        for (number, (name, _)) in beginnings.iter().enumerate() {
            if beginnings.get(number + 1).is_some_and(|(_, before)| self.is_had(before, executed)) {
                continue;
            }
            let is_it = |path: &&LogPath| match path {
                LogPath::File(path) => path.file_name().is_some_and(|file| file == *name),
                LogPath::Stdin => false,
            };
            let shown = paths.iter().find(is_it).ok_or_else(|| {
                CommandFailure::of(&self.ended.logs().place(), format_args!("{name} is no longer there"))
            })?;
            let path = match number + 1 == beginnings.len() {
                true => LogPath::File(self.folder.join(name)),
                false => shown.clone(),
            };
            to_read.push((shown.clone(), path));
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
enum Mark {
    Gtid(Gtid),
    Incident {
        position: EventPosition,
        header: EventHeader,
        body: Vec<u8>,
    },
    /// An event of another type, or several.
    Others,
}

/// Goes through logs in order.
struct Walk<'e> {
    executed: &'e GtidSet,
    /// Incidents since the last transaction: whether they are crossed depends on the next one.
    pending: UnreadChanges,
    crossed: UnreadChanges,
    gtids: Vec<Gtid>,
    /// Set if the event before was this GTID.
    own: Option<Gtid>,
    /// Whether the server lacks a transaction that has passed.
    is_behind: bool,
}

impl<'e> Walk<'e> {
    fn new(executed: &'e GtidSet) -> Self {
        Walk {
            executed,
            pending: UnreadChanges::default(),
            crossed: UnreadChanges::default(),
            gtids: Vec::new(),
            own: None,
            is_behind: false,
        }
    }

    fn read(&mut self, number: usize, input: Input, progress: &mut dyn FnMut(u64)) -> Result<(), FlowError> {
        let ran = events::run(
            input,
            workers(None),
            || Ok(()),
            |(), batch| marks(batch),
            |marks| {
                marks.into_iter().for_each(|mark| self.take(number as u64, mark));
                Ok(())
            },
            progress,
        );
        // The server itself reads everything but incidents, and tells what it can't.
        let RunSummary { read: _, unread: _ } = ran?;
        self.own = None;
        Ok(())
    }

    fn take(&mut self, log: u64, mark: Mark) {
        match mark {
            Mark::Gtid(gtid) => {
                self.is_behind |= !self.executed.contains(&gtid);
                let pending = std::mem::take(&mut self.pending);
                if self.is_behind {
                    self.crossed.add(pending);
                }
                self.own = Some(gtid);
            }
            Mark::Incident { position, header, body } => {
                let own = self.own.take();
                if own.is_some_and(|own| self.executed.contains(&own)) {
                    return;
                }
                let found = if self.is_behind { &mut self.crossed } else { &mut self.pending };
                found.note_by_type(log, position, &header, &body);
                self.gtids.extend(own);
            }
            Mark::Others => self.own = None,
        }
    }

    fn ended(mut self) -> Self {
        self.crossed.add(std::mem::take(&mut self.pending));
        self
    }
}

/// The marks of a batch, in order.
fn marks(batch: &mut EventBatch<'_>) -> Result<Vec<Mark>, FlowError> {
    let mut marks = Vec::new();
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        let event_type = event.header.event_type;
        if event_type.is_gtid() {
            let decoded = AnyGtidEvent::decode(event.body, event_type).map_err(|error| event.error(error))?;
            marks.extend(decoded.as_ref().and_then(AnyGtidEvent::gtid).map(Mark::Gtid));
        } else if event_type.changes() == ChangeContent::Lost {
            marks.push(Mark::Incident {
                position: event.position,
                header: event.header,
                body: event.body.to_vec(),
            });
        } else if !matches!(marks.last(), Some(Mark::Others)) {
            marks.push(Mark::Others);
        }
    }
    Ok(marks)
}
