//! Applies kept rows to a server: some rows to a transaction, each row compared first.
//!
//! ```text
//! BEGIN · for each row the statement, whose condition compares every column · [journal: commit] · COMMIT · [journal: done]
//! ```
//!
//! Rows wait until many of them can go to the server in one message, see group.rs; rows of several transactions may.
//!
//! ```text
//! SAVEPOINT · statements          each changed as many rows as it is for: done
//! ROLLBACK TO SAVEPOINT           else: the rows before that statement once more, its own in parts, a row alone if need be
//! ```
//!
//! A row's own statement that finds no row, or one of whose keys is taken, is a conflict: somebody changed the row since. Without
//! `execute` all is done in one transaction, which is rolled back: conflicts are then the server's own answers.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_binlog::checksum::Crc32;
use binlogz_source::{ConnectOptions, Error as ServerError};

use super::change::ScriptChange;
use super::collect::CollectedChanges;
use super::group::{GroupStatements, RowGroup, WaitingRow};
use super::log::ScriptReport;
use super::repeated::RepeatedChanges;
use super::replay::{RowSink, Skip, WrittenRow, replay};
use super::session::ScriptSession as Settings;
use super::{ScriptSummary, orphans};
use crate::apply::journal::Journal;
use crate::apply::referrers::{ParentChange, Referrers};
use crate::apply::session::{ApplySession, ServerPosition};
use crate::apply::{
    ApplyError, BATCH_TAKEN_BACK, BATCH_UNKNOWN, NOTHING_YET, SplitRows, SplitTables, committed, replica,
    tables,
};
use crate::choose::Direction;
use crate::pass::shortened;
use crate::record::RowFlags;

/// How changes are applied.
#[derive(Debug)]
pub struct ApplyOptions<'o> {
    /// The server.
    pub connect: &'o ConnectOptions,
    /// Rows in a transaction.
    pub batch: u64,
    /// Whether a row that somebody changed since is overwritten.
    pub overwrite: bool,
    /// Whether anything is changed at all.
    pub execute: bool,
    /// Whether the server may replicate from another, which would lack the changes.
    pub on_replica: bool,
    /// Where to note how far it came: a file open for reading and writing.
    pub journal: Option<File>,
    /// Whether to tell the transactions of earlier runs with this journal, which the server's log has.
    pub tells_earlier: bool,
    /// The tables with rows that the log deletes and inserts though they were updated: they go back whole or not at all.
    pub split: &'o SplitTables,
}

/// The changes that were applied, or would be.
#[derive(Debug, Default)]
pub struct AppliedChanges {
    /// The chosen part of the logs.
    pub summary: ScriptSummary,
    /// Counts of changes, by table.
    pub tables: BTreeMap<String, TableSummary>,
    /// Rows that earlier runs with this journal have done.
    pub done_before: u64,
    /// Transactions that changed a row.
    pub batches: u64,
    /// GTIDs of the transactions, as far as the server gave some and its log may be read.
    pub gtids: Vec<String>,
    /// Those of the transactions of earlier runs with this journal, if they were asked for.
    pub gtids_before: Vec<String>,
    /// Place of its transactions in the server's binary log: log, offset in bytes, session.
    pub place: Option<(String, u64, u32)>,
}

/// The rows of a table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TableSummary {
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Rows overwritten that somebody had changed; counted above as well.
    pub overwritten: u64,
    /// Rows that somebody had changed, and that are left.
    pub conflicts: u64,
}

/// The server refuses a row: another one has its key, a foreign key does.
const CONFLICTS: [u16; 5] = [1062, 1451, 1452, 1216, 1217];
/// Error numbers for a lock that isn't given: the server may have rolled the transaction back.
const ENDING: [u16; 2] = [1205, 1213];
/// A statement whose rows aren't all changed is divided into so many.
const PARTS: usize = 4;
const SAVEPOINT_ROWS: &[u8] = b"SAVEPOINT binlogz_rows; ";
const ROLLBACK_ROWS: &[u8] = b"ROLLBACK TO SAVEPOINT binlogz_rows";
/// How long the session of a killed run may take to end.
const THREAD_TIMEOUT: Duration = Duration::from_secs(60);
const THREAD_PERIOD: Duration = Duration::from_millis(100);
/// The most characters of a column in a message.
const VALUE_LENGTH_MAX: usize = 64;

pub(super) fn apply<'o>(
    collected: &'o CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    options: ApplyOptions<'_>,
    report: &'o mut dyn Write,
) -> Result<AppliedChanges, ApplyError> {
    let mut session = ApplySession::open(options.connect)?;
    let tables: Vec<_> = collected.tables.iter().map(|table| (&*table.database, &*table.table)).collect();
    tables::check(&mut session, &tables)?;
    if let Some(why) = replica::why_not(&mut session).filter(|_| !options.on_replica) {
        if options.execute {
            return Err(ApplyError::Unfit(format!("{why}; --on-replica applies them nevertheless")));
        }
        writeln!(report, "--execute would be refused: {why}")?;
    }
    let referrers = Referrers::of(&mut session, &tables)?;
    let settings = Settings::default();
    let unchecked = collected.unchecked_tables();
    let counting = if unchecked.is_empty() { Vec::new() } else { orphans::begin(&unchecked) };
    for statement in settings.begin().into_iter().chain(counting) {
        session
            .run(statement.as_bytes())
            .map_err(|error| ApplyError::server("setting up", error, NOTHING_YET))?;
    }
    let journal = match options.journal {
        Some(file) => Some(journal(file, collected, options.batch, &mut session, options.connect)?),
        None => None,
    };
    let has_begun = journal.as_ref().is_some_and(Journal::has_begun);
    let gtids_before = match journal.as_ref().filter(|_| options.tells_earlier) {
        Some(journal) => gtids_of(options.connect, &journal.sessions),
        None => Vec::new(),
    };
    let place = session.place().map_err(asking_for_log)?;
    let group = RowGroup::within(session.message_size_max());
    let mut sink = ApplySink {
        split: collected
            .split
            .iter()
            .chain(options.split)
            .map(|(table, rows)| (table.clone(), *rows))
            .collect(),
        is_within_split: false,
        not_deleted: HashSet::new(),
        session,
        settings,
        referrers,
        direction,
        is_unchecked: false,
        // A journal tells what was done; its own transactions are no others.
        repeated: collected.repeated.as_ref().filter(|_| !has_begun && !options.overwrite),
        group,
        together_max: 1,
        batch: options.batch,
        overwrite: options.overwrite,
        execute: options.execute,
        done: journal.as_ref().map_or(0, |journal| journal.done),
        journal,
        seen: 0,
        in_batch: None,
        has_changed: false,
        report: ScriptReport::new(report),
        applied: AppliedChanges { gtids_before, ..AppliedChanges::default() },
    };
    let summary = replay(collected, direction, across_ddl, &mut sink)?;
    sink.finish()?;
    let ApplySink { mut applied, done, session, .. } = sink;
    drop(session);
    applied.summary = summary;
    applied.done_before = done;
    if let Some(place) = place.filter(|_| options.execute && applied.batches > 0) {
        applied.gtids = gtids_of(options.connect, std::slice::from_ref(&place));
        applied.place = Some((place.log, place.position, place.thread));
    }
    Ok(applied)
}

/// The GTIDs of all that these sessions committed. An account that may write need not have the right to read the log: then there are none.
fn gtids_of(connect: &ConnectOptions, sessions: &[ServerPosition]) -> Vec<String> {
    let found = sessions.iter().map(|place| committed(connect, place).unwrap_or_default());
    found.flatten().flatten().collect()
}

fn asking_for_log(error: binlogz_source::Error) -> ApplyError {
    ApplyError::server("asking where the server's binary log ends", error, NOTHING_YET)
}

/// Opens the journal and finds out whether a batch that a killed run had begun to commit was committed.
fn journal(
    file: File,
    collected: &CollectedChanges,
    batch: u64,
    session: &mut ApplySession,
    connect: &ConnectOptions,
) -> Result<Journal, ApplyError> {
    let asking_for_uuid = |error| ApplyError::server("asking which server it is", error, NOTHING_YET);
    let server = session.server_uuid().map_err(asking_for_uuid)?.unwrap_or_default();
    if session.place().map_err(asking_for_log)?.is_none() {
        return Err(ApplyError::Journal(
            "needs the server's binary log, and the right REPLICATION CLIENT to ask where it ends".to_owned(),
        ));
    }
    let mut journal = Journal::open(file, checksum(collected, batch)?, &server)?;
    if let Some((rows, place)) = journal.open.clone() {
        let begin = Instant::now();
        let asking = |error| ApplyError::server("asking for sessions", error, NOTHING_YET);
        while session.has_thread(place.thread).map_err(asking)? {
            if begin.elapsed() > THREAD_TIMEOUT {
                return Err(ApplyError::Journal(format!(
                    "the killed run's session {} is still there",
                    place.thread
                )));
            }
            thread::sleep(THREAD_PERIOD);
        }
        if is_committed(connect, &place)? { journal.done(rows)? } else { journal.undone()? }
    }
    Ok(journal)
}

/// The session committed batches before the place, none after this one.
fn is_committed(connect: &ConnectOptions, place: &ServerPosition) -> Result<bool, ApplyError> {
    committed(connect, place).map(|found| !found.is_empty())
}

/// A checksum that tells changes and batches apart.
fn checksum(collected: &CollectedChanges, batch: u64) -> io::Result<u32> {
    let mut crc = Crc32::new();
    crc.update(&batch.to_le_bytes());
    let mut reader = collected.kept.reader(0..collected.kept.size());
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(crc.finish()),
            count => crc.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

struct ApplySink<'o> {
    split: SplitTables,
    /// Whether the batch may have deleted a row that is to be inserted before it is committed.
    is_within_split: bool,
    /// Of tables with split rows, the tables and the keys of rows that were to be deleted and are left.
    not_deleted: HashSet<(String, String)>,
    session: ApplySession,
    settings: Settings,
    referrers: Referrers,
    direction: Direction,
    /// Whether the batch has a row that foreign keys may have changed, and that was changed again unchecked.
    is_unchecked: bool,
    /// Later changes of equal rows, in tables without a key.
    repeated: Option<&'o RepeatedChanges>,
    /// Rows that wait to be applied together.
    group: RowGroup,
    /// The most of them to try at once: fewer after a conflict, as more of them may follow.
    together_max: usize,
    batch: u64,
    overwrite: bool,
    execute: bool,
    journal: Option<Journal>,
    /// Rows that earlier runs have done, and those that have passed.
    done: u64,
    seen: u64,
    /// Rows of the open batch.
    in_batch: Option<u64>,
    /// Whether the open batch has changed a row.
    has_changed: bool,
    report: ScriptReport<'o>,
    applied: AppliedChanges,
}

/// The outcome of a row.
enum ApplyOutcome {
    Done,
    Overwritten,
    /// The rows aren't as the changes expect; the text says which.
    Conflict(String),
}

impl RowSink for ApplySink<'_> {
    type Error = ApplyError;

    fn begin(&mut self, description: &str, _time: u64, skipped: Option<&Skip>) -> Result<(), ApplyError> {
        if skipped.is_some() {
            self.apply_group()?;
        }
        Ok(self.report.begin(description, skipped)?)
    }

    fn row(&mut self, row: WrittenRow<'_>) -> Result<(), ApplyError> {
        self.seen += 1;
        if self.seen <= self.done {
            return Ok(());
        }
        let change = ScriptChange::read(row.content)?;
        if self.in_batch.is_none() {
            self.run(b"BEGIN", "beginning a batch")?;
        }
        let settings = self.settings.change_for(row.flags);
        let repeated = self.repeated.and_then(|repeated| repeated.why(row.change));
        let is_of_parent = self
            .parent_change(&change, row.flags)
            .is_some_and(|parent_change| self.referrers.act_on(&change.table, parent_change));
        let is_alone =
            repeated.is_some() || is_of_parent || !self.session.takes_several() || !self.group.takes(&change);
        if is_alone || !settings.is_empty() {
            self.apply_group()?;
        }
        for statement in settings {
            self.run(statement.as_bytes(), "setting up a row")?;
        }
        self.is_unchecked |= row.flags.may_be_cascaded();
        self.is_within_split |= self.split.contains_key(&*change.table);
        let transaction = self.report.transaction();
        if is_alone {
            self.apply_row(&change, row.flags, &transaction, repeated)?;
        } else {
            self.group.push(WaitingRow { content: row.content.to_vec(), flags: row.flags, transaction });
            if self.group.is_full() {
                self.apply_group()?;
            }
        }
        let count = self.in_batch.unwrap_or(0) + 1;
        self.in_batch = Some(count);
        // Rows that foreign keys changed belong together with the row that they refer to.
        let is_whole = !self.is_unchecked && !self.is_within_split;
        if self.execute && count >= self.batch && is_whole { self.commit() } else { Ok(()) }
    }

    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> Result<(), ApplyError> {
        self.apply_group()?;
        let change = ScriptChange::read(row.content)?;
        Ok(self.report.line(&format!("{why}{}", change.name))?)
    }

    fn was(&mut self, _text: &str) -> Result<(), ApplyError> {
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<(), ApplyError> {
        self.apply_group()?;
        Ok(self.report.line(text)?)
    }

    fn end(&mut self) -> Result<(), ApplyError> {
        self.is_within_split = false;
        match self.in_batch {
            Some(count) if self.execute && count >= self.batch => self.commit(),
            _ => Ok(()),
        }
    }
}

impl ApplySink<'_> {
    fn run(&mut self, statement: &[u8], doing: &str) -> Result<u64, ApplyError> {
        self.session.run(statement).map_err(|error| ApplyError::server(doing, error, BATCH_TAKEN_BACK))
    }

    /// Applies a row by its own statement.
    fn apply_row(
        &mut self,
        change: &ScriptChange<'_>,
        flags: RowFlags,
        transaction: &Rc<str>,
        repeated: Option<String>,
    ) -> Result<(), ApplyError> {
        let came = match repeated {
            Some(why) => ApplyOutcome::Conflict(why),
            None => match self.foreign_keys_would(change, flags, change.condition())? {
                Some(why) => ApplyOutcome::Conflict(why),
                None => self.change(change, flags)?,
            },
        };
        self.count(change, &came);
        match came {
            ApplyOutcome::Conflict(why) => {
                self.together_max = 1;
                self.check_split(change, &why)?;
                Ok(self.report.line_of(transaction, &format!("conflict: {}: {why}", change.name))?)
            }
            ApplyOutcome::Done | ApplyOutcome::Overwritten => Ok(()),
        }
    }

    /// Ends the run where a row that it deleted may not come back. In a dry run that is only said.
    fn check_split(&mut self, change: &ScriptChange<'_>, why: &str) -> Result<(), ApplyError> {
        if !self.loses_row(change)? {
            return Ok(());
        }
        let error = ApplyError::Split(format!("conflict: {}: {why}", change.name));
        match self.execute {
            true => Err(error),
            false => Ok(self.report.line(&format!("--execute would end here: {error}"))?),
        }
    }

    /// Whether a conflict leaves out the insert of a row that this run has deleted.
    fn loses_row(&mut self, change: &ScriptChange<'_>) -> Result<bool, ApplyError> {
        let Some(split) = self.split.get(&*change.table) else { return Ok(false) };
        let row = change.key().map(|key| (change.table.to_string(), key.into_owned()));
        if !change.is_insert() {
            self.not_deleted.extend(row);
            return Ok(false);
        }
        match (row, split) {
            (Some(row), _) if self.not_deleted.contains(&row) => Ok(false),
            (Some((_, key)), SplitRows::OfOneKey) => {
                // A row of its key is there: no other one was deleted for it.
                let select = format!("SELECT 1 FROM {} WHERE {key} LIMIT 1", change.quoted_table());
                let rows = self.session.rows(&select);
                let rows =
                    rows.map_err(|error| ApplyError::server(&*change.name, error, BATCH_TAKEN_BACK))?;
                Ok(rows.is_empty())
            }
            (None, SplitRows::OfOneKey) | (_, SplitRows::OfAnyKey) => Ok(true),
        }
    }

    /// Applies the rows that wait, as many at once as have no conflict.
    fn apply_group(&mut self) -> Result<(), ApplyError> {
        let rows = self.group.take();
        let changes =
            rows.iter().map(|row| ScriptChange::read(&row.content)).collect::<io::Result<Vec<_>>>()?;
        // Ranges of rows, the next one last.
        let mut ranges = Vec::from([Range { start: 0, end: rows.len() }]);
        while let Some(Range { start, end }) = ranges.pop() {
            let next_end = end.min(start + self.together_max);
            if next_end < end {
                ranges.push(next_end..end);
            }
            let next = changes.get(start..next_end).unwrap_or_default();
            match (next, rows.get(start)) {
                ([], _) | (_, None) => {}
                ([change], Some(row)) => {
                    self.together_max = 2;
                    self.apply_row(change, row.flags, &row.transaction, None)?;
                }
                (changes, Some(_)) => match self.try_together(changes)? {
                    None => {
                        changes.iter().for_each(|change| self.count(change, &ApplyOutcome::Done));
                        self.together_max = self.together_max.max(changes.len() * 2);
                    }
                    Some(Range { start: sound, end: tried }) => {
                        let part = (tried - sound).div_ceil(PARTS).max(1);
                        ranges.push(start + tried..next_end);
                        let parts = (sound..tried).step_by(part);
                        ranges.extend(parts.map(|at| start + at..start + tried.min(at + part)).rev());
                        ranges.push(start..start + sound);
                    }
                },
            }
        }
        Ok(())
    }

    /// Applies changes by one message. If one of its statements doesn't change the rows that it is for, all of it is taken back, and
    /// these rows' places are returned.
    fn try_together(&mut self, changes: &[ScriptChange<'_>]) -> Result<Option<Range<usize>>, ApplyError> {
        let statements = GroupStatements::of(changes);
        let mut changed = Vec::new();
        let message = [SAVEPOINT_ROWS, &statements.text].concat();
        let refused = self.session.run_all(&message, &mut changed).err();
        let has_savepoint = !changed.is_empty();
        let mut changed = changed.into_iter().skip(1);
        // The first statement that isn't done, by the places of its rows.
        let mut tried = 0..0;
        for count in statements.counts {
            tried = tried.end..tried.end + count;
            if changed.next() != Some(count as u64) {
                break;
            }
            tried.start = tried.end;
        }
        match refused {
            None if tried.is_empty() => Ok(None),
            None => match self.session.run(ROLLBACK_ROWS) {
                Ok(_) => Ok(Some(tried)),
                Err(error) => Err(trouble_of(changes, tried.start, error)),
            },
            // Without this message's own savepoint there is that of the message before, whose rows are counted as done.
            Some(error) if !has_savepoint || tried.is_empty() || is_ending(&error) => {
                Err(trouble_of(changes, tried.start, error))
            }
            Some(error) => match self.session.run(ROLLBACK_ROWS) {
                Ok(_) => Ok(Some(tried)),
                // What came first says more: the server may have hung up after it.
                Err(_) => Err(trouble_of(changes, tried.start, error)),
            },
        }
    }

    /// The change of a row on which foreign keys that refer to it may act. If the log has the rows that they changed, all of these
    /// were changed before; if it doesn't, the foreign keys are to change them again.
    fn parent_change<'c>(&self, change: &'c ScriptChange<'_>, flags: RowFlags) -> Option<ParentChange<'c>> {
        let is_logged = flags.has(RowFlags::SQL_FOREIGN_KEYS);
        match change.statement.first() {
            _ if flags.has(RowFlags::NO_FOREIGN_KEYS) => None,
            Some(b'D') if is_logged || self.direction == Direction::Undo => Some(ParentChange::Deleted),
            Some(b'U') if is_logged => Some(ParentChange::Updated(change.assignments())),
            _ => None,
        }
    }

    /// The reason for which foreign keys would change rows that nobody chose; `None`: they wouldn't.
    fn foreign_keys_would(
        &mut self,
        change: &ScriptChange<'_>,
        flags: RowFlags,
        condition: &str,
    ) -> Result<Option<String>, ApplyError> {
        let parent_change = self.parent_change(change, flags);
        parent_change.map_or(Ok(None), |parent_change| self.would_change(change, condition, parent_change))
    }

    fn would_change(
        &mut self,
        change: &ScriptChange<'_>,
        condition: &str,
        parent_change: ParentChange<'_>,
    ) -> Result<Option<String>, ApplyError> {
        let quoted_table = change.quoted_table();
        let asked = self.referrers.would_change(
            &mut self.session,
            (&change.table, &quoted_table),
            condition,
            parent_change,
        );
        asked.map_err(|error| ApplyError::server(&*change.name, error, BATCH_TAKEN_BACK))
    }

    fn change(&mut self, change: &ScriptChange<'_>, flags: RowFlags) -> Result<ApplyOutcome, ApplyError> {
        let why = match self.attempt(change.statement, change)? {
            None => return Ok(ApplyOutcome::Done),
            Some(why) => why,
        };
        let Some(by_key) = change.by_key().filter(|_| self.overwrite) else {
            let now = self.now(change)?;
            return Ok(ApplyOutcome::Conflict(format!("{}{now}{why}", change.expected())));
        };
        if let Some(key) = change.key() {
            let would = match change.is_insert() {
                // It is deleted before it comes again.
                true if !flags.has(RowFlags::NO_FOREIGN_KEYS) => {
                    self.would_change(change, &key, ParentChange::Deleted)?
                }
                true => None,
                false => self.foreign_keys_would(change, flags, &key)?,
            };
            if let Some(would) = would {
                return Ok(ApplyOutcome::Conflict(format!(
                    "{}; it isn't overwritten: {would}",
                    change.expected()
                )));
            }
        }
        self.run(b"SAVEPOINT binlogz", "before overwriting")?;
        let mut came_of_it = None;
        for statement in by_key {
            came_of_it = self.attempt(&statement, change)?;
        }
        match came_of_it {
            None => Ok(ApplyOutcome::Overwritten),
            Some(why) => {
                self.run(b"ROLLBACK TO SAVEPOINT binlogz", "after overwriting")?;
                let now = self.now(change)?;
                Ok(ApplyOutcome::Conflict(format!("{}{now}{why}", change.expected())))
            }
        }
    }

    /// Runs a row's statement; `Some`: it is a conflict.
    fn attempt(&mut self, statement: &[u8], change: &ScriptChange<'_>) -> Result<Option<String>, ApplyError> {
        match self.session.run(statement) {
            Ok(0) => Ok(Some(String::new())),
            Ok(_) => Ok(None),
            Err(error) => match refusal(&error) {
                Some(why) => Ok(Some(format!("; the server says: {why}"))),
                None => Err(ApplyError::server(change.name.to_string(), error, BATCH_TAKEN_BACK)),
            },
        }
    }

    /// The row as it is now, for messages.
    fn now(&mut self, change: &ScriptChange<'_>) -> Result<String, ApplyError> {
        let Some(key) = change.key() else { return Ok("; there is no such row".to_owned()) };
        let select = format!("SELECT * FROM {} WHERE {key}", change.quoted_table());
        let rows = self
            .session
            .rows(&select)
            .map_err(|error| ApplyError::server(&*change.name, error, BATCH_TAKEN_BACK))?;
        let Some(row) = rows.into_iter().next() else {
            return Ok("; there is no row of this key".to_owned());
        };
        let value = |value: Option<Vec<u8>>| match value {
            None => "NULL".to_owned(),
            Some(bytes) => {
                let text: String = String::from_utf8_lossy(&bytes).chars().take(VALUE_LENGTH_MAX).collect();
                format!("'{text}'")
            }
        };
        let columns: Vec<_> = self
            .session
            .columns()
            .into_iter()
            .zip(row)
            .map(|(name, column)| format!("{name} = {}", value(column)))
            .collect();
        Ok(format!("; now it is {}", shortened(&columns.join(", "))))
    }

    fn count(&mut self, change: &ScriptChange<'_>, came: &ApplyOutcome) {
        self.has_changed |= !matches!(came, ApplyOutcome::Conflict(_));
        let table = self.applied.tables.entry(change.table.to_string()).or_default();
        table.overwritten += u64::from(matches!(came, ApplyOutcome::Overwritten));
        let count = match (came, change.statement.first()) {
            (ApplyOutcome::Conflict(_), _) => &mut table.conflicts,
            (_, Some(b'I')) => &mut table.inserted,
            (_, Some(b'U')) => &mut table.updated,
            _ => &mut table.deleted,
        };
        *count += 1;
    }

    /// No row may be left without those that its foreign keys refer to.
    fn check_unchecked(&mut self) -> Result<(), ApplyError> {
        if !std::mem::take(&mut self.is_unchecked) {
            return Ok(());
        }
        self.run(orphans::COUNT.as_bytes(), "counting rows without those that they refer to")?;
        let rows = self.session.rows(orphans::MORE);
        let rows = rows.map_err(|error| ApplyError::server("counting rows", error, BATCH_TAKEN_BACK))?;
        let count = rows.first().and_then(|row| row.first()?.as_deref());
        match count {
            Some(b"0") => Ok(()),
            Some(b"1") => Err(ApplyError::Orphans("1 row".to_owned())),
            count => Err(ApplyError::Orphans(format!(
                "{} rows",
                count.map_or("some".into(), String::from_utf8_lossy)
            ))),
        }
    }

    fn commit(&mut self) -> Result<(), ApplyError> {
        self.apply_group()?;
        self.check_unchecked()?;
        if let Some(journal) = &mut self.journal {
            let place = self
                .session
                .place()
                .map_err(|error| {
                    ApplyError::server("asking where the server's binary log ends", error, BATCH_TAKEN_BACK)
                })?
                .ok_or_else(|| {
                    ApplyError::Journal(format!(
                        "the server's binary log can't be asked for; {BATCH_TAKEN_BACK}"
                    ))
                })?;
            journal.commit(self.seen, &place)?;
        }
        let committed = self.session.run(b"COMMIT");
        committed.map_err(|error| ApplyError::server("COMMIT", error, BATCH_UNKNOWN))?;
        self.applied.batches += u64::from(std::mem::take(&mut self.has_changed));
        self.in_batch = None;
        match &mut self.journal {
            Some(journal) => journal.done(self.seen),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), ApplyError> {
        self.apply_group()?;
        match self.in_batch {
            None => Ok(()),
            Some(_) if self.execute => self.commit(),
            Some(_) => {
                self.check_unchecked()?;
                self.run(b"ROLLBACK", "rolling the dry run back").map(drop)
            }
        }
    }
}

/// Whether the transaction may be gone.
fn is_ending(error: &ServerError) -> bool {
    error.server_error().is_none_or(|error| ENDING.contains(&error.code))
}

/// The error of a message of which the rows before this place are done.
fn trouble_of(changes: &[ScriptChange<'_>], place: usize, error: ServerError) -> ApplyError {
    let name = changes.get(place).or(changes.last()).map_or("rows", |change| &*change.name);
    ApplyError::server(format!("{name}, or a row soon after it"), error, BATCH_TAKEN_BACK)
}

/// The server's message, if it is about this row and not about everything.
fn refusal(error: &ServerError) -> Option<&str> {
    let error = error.server_error()?;
    CONFLICTS.contains(&error.code).then_some(&*error.message)
}
