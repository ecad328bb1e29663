//! A server brought forward with logs: checked, attached to the source inside this process, followed, and detached.
//!
//! ```text
//! Recovery::check   nothing is changed as yet → Recovery::begin → RunningRecovery: pass_over, follow, end
//!                                                                 └ detacher, for a signal meanwhile
//! ```

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;
use binlogz_relay::EndedLogs;
use binlogz_source::ConnectOptions;
use parking_lot::Mutex;

use crate::channel::{self, ApplierThreads, ChannelSource, SavedSettings};
use crate::embedded::{self, EmbeddedSourceOptions};
use crate::error::{ReplayError, Result};
use crate::fitness::TargetAbilities;
use crate::fold_mark::FoldMark;
use crate::fold_range::FoldedRange;
use crate::incidents::CrossedIncidents;
use crate::listener::ReplayListener;
use crate::target::{FOLD_CHANNEL, RECOVERY_CHANNEL, TargetFacts, TargetServer, TargetTrouble};
use crate::thread_errors;

const POLL: Duration = Duration::from_millis(250);
/// The receiver pauses while relay logs have more bytes than this, until they have half of it.
const RELAY_SPACE_MAX: u64 = 4 << 30;

/// A server and the logs that it is to be brought forward with: it can be, and nothing is changed as yet.
pub struct Recovery<'l> {
    target: TargetServer,
    ended: &'l EndedLogs,
    threads: ApplierThreads,
    facts: TargetFacts,
    left: Option<SavedSettings>,
    mark: Option<FoldMark>,
    lacks: GtidSet,
}

impl<'l> Recovery<'l> {
    /// Checks that the logs continue the server's transactions, and that the server can apply them so.
    ///
    /// # Errors
    ///
    /// It can't, or can't be asked; a folded range was being applied to it.
    pub fn check(
        target: TargetServer,
        ended: &'l EndedLogs,
        threads: ApplierThreads,
    ) -> Result<Recovery<'l>> {
        let recovery = Recovery::checked(target, ended, threads)?;
        match &recovery.mark {
            None => Ok(recovery),
            Some(FoldMark { first, last, .. }) => Err(ReplayError::unfit(
                &recovery.target.name,
                format!(
                    "an interrupted run with --fold was bringing it from {first} to {last} (channel {FOLD_CHANNEL}): until that is done, its \
                     tables are those of no moment. The same command goes on; otherwise restore the backup again"
                ),
            )),
        }
    }

    /// As [`Recovery::check`], of a server to which the logs may be applied folded, too. The other value: why they can't be, to be read after
    /// the server's name.
    ///
    /// # Errors
    ///
    /// As there; but a folded range may have been applied to it.
    pub fn check_either(
        target: TargetServer,
        ended: &'l EndedLogs,
        threads: ApplierThreads,
    ) -> Result<(Recovery<'l>, Option<String>)> {
        let mut recovery = Recovery::checked(target, ended, threads)?;
        let no_fold = no_fold(&mut recovery.target, ended)?;
        Ok((recovery, no_fold))
    }

    fn checked(
        mut target: TargetServer,
        ended: &'l EndedLogs,
        threads: ApplierThreads,
    ) -> Result<Recovery<'l>> {
        let facts = target.facts()?;
        let left = channel::left(&mut target)?;
        let mark = FoldMark::read(&mut target)?;
        let abilities = TargetAbilities { version: &target.version, words: target.words, facts: &facts };
        let lacks = abilities.lacks(ended).map_err(|why| ReplayError::unfit(&target.name, why))?;
        if let Some(warning) = abilities.is_older_than(&ended.server_version) {
            target.listener.warn(&format!("{}: {warning}", target.name));
        }
        channel::check_rights(&mut target)?;
        if !threads.filters.is_empty() && !target.words.can_stay_stopped {
            return Err(ReplayError::unfit(
                &target.name,
                format!(
                    "is version {}: filters need 8.0.24 or later, which can be kept from applying without them after a restart",
                    target.version
                ),
            ));
        }
        Ok(Recovery { target, ended, threads, facts, left, mark, lacks })
    }

    /// The server's name, for people.
    pub fn server(&self) -> &str {
        &self.target.name
    }

    /// The transactions that the server has executed.
    pub fn executed(&self) -> &GtidSet {
        &self.facts.executed
    }

    /// The transactions of the logs that the server lacks.
    pub fn lacks(&self) -> &GtidSet {
        &self.lacks
    }

    /// The range that an earlier run was applying in its folded form, and did not end.
    pub fn mark(&self) -> Option<&FoldMark> {
        self.mark.as_ref()
    }

    /// Whether an earlier run left its channel, from which the next one goes on.
    pub fn is_begun(&self) -> bool {
        self.left.is_some()
    }

    /// Detaches a server that lacks nothing, if an earlier run left it attached.
    ///
    /// # Errors
    ///
    /// A statement that the server refuses, or a server that does not come back.
    pub fn clean_up(&mut self) -> Result<()> {
        let Some(before) = self.saved_of_left() else { return Ok(()) };
        self.target.patiently(|target| channel::detach(target, &before))
    }

    /// Starts the source that the server will be attached to.
    ///
    /// # Errors
    ///
    /// The source can't listen, or the server can't be asked.
    pub fn begin(self, source: EmbeddedSourceOptions<'_>) -> Result<RunningRecovery<'l>> {
        let ended = self.ended;
        self.begin_with(ended, None, source)
    }

    /// Starts the source of a folded log, after the server is marked.
    ///
    /// # Errors
    ///
    /// As [`Recovery::begin`]; an earlier run was applying something else; the server refuses the mark.
    pub fn begin_fold(
        mut self,
        folded: &'l FoldedRange,
        source: EmbeddedSourceOptions<'_>,
    ) -> Result<RunningRecovery<'l>> {
        let is_marked = self.mark.is_some();
        if !is_marked {
            // The channel of a run without --fold may have applied transactions since the server was checked, or do so after a restart.
            self.clean_up()?;
            self.left = None;
            self.facts = self.target.facts()?;
        }
        let checked = folded.check(&self.facts.executed, self.mark.as_ref());
        checked.map_err(|why| ReplayError::unfit(&self.target.name, why))?;
        self.lacks = folded.log.gtids.clone();
        self.lacks.subtract(&self.facts.executed);
        let mut running = self.begin_with(&folded.log, Some(folded), source)?;
        if !is_marked {
            running.target.patiently(|target| folded.mark.put(target))?;
        }
        Ok(running)
    }

    fn begin_with(
        mut self,
        ended: &'l EndedLogs,
        folded: Option<&'l FoldedRange>,
        source: EmbeddedSourceOptions<'_>,
    ) -> Result<RunningRecovery<'l>> {
        let before = match self.saved_of_left() {
            Some(before) => before,
            None => {
                let persists = !self.threads.filters.is_empty() && !is_persisted(&mut self.target)?;
                SavedSettings::of(&self.facts, persists)
            }
        };
        let source = embedded::start(&self.target, ended, &before, source)?;
        Ok(RunningRecovery {
            target: self.target,
            gtids: &ended.gtids,
            folded,
            source,
            before,
            threads: self.threads,
            lacks: count(&self.lacks),
            ending: Arc::default(),
        })
    }

    /// The settings that the channel of an earlier run knows.
    fn saved_of_left(&self) -> Option<SavedSettings> {
        let persists = !self.threads.filters.is_empty();
        self.left.map(|left| SavedSettings { persisted: left.persisted || persists, ..left })
    }
}

/// A server that is being brought forward: attached, or about to be.
pub struct RunningRecovery<'l> {
    target: TargetServer,
    /// The transactions up to the end of the logs.
    gtids: &'l GtidSet,
    /// Set if a folded log is applied in place of them.
    folded: Option<&'l FoldedRange>,
    source: ChannelSource,
    before: SavedSettings,
    threads: ApplierThreads,
    /// How many transactions the server lacks at first.
    lacks: u64,
    /// Held by the thread that detaches the server.
    ending: Arc<Mutex<()>>,
}

impl RunningRecovery<'_> {
    /// Detaches the server from another thread, such as one that handles a signal.
    pub fn detacher(&self) -> RecoveryDetacher {
        RecoveryDetacher {
            options: self.target.options.clone(),
            listener: Arc::clone(&self.target.listener),
            before: self.before,
            ending: Arc::clone(&self.ending),
        }
    }

    /// Makes the server count transactions as applied that are nothing but an incident, at which it would stop.
    ///
    /// # Errors
    ///
    /// A statement that the server refuses, or a server that does not come back.
    pub fn pass_over(&mut self, incidents: &CrossedIncidents) -> Result<()> {
        for gtid in incidents.gtids() {
            self.target.patiently(|target| {
                target.run(&format!("SET GTID_NEXT = '{gtid}'"))?;
                target.run("BEGIN")?;
                target.run("COMMIT")?;
                target.run("SET GTID_NEXT = 'AUTOMATIC'")
            })?;
        }
        Ok(())
    }

    /// Attaches the server, and waits until it has everything. `progress` hears how many transactions it got.
    ///
    /// # Errors
    ///
    /// The error that ended the server's threads; a statement that it refuses; a server that does not come back.
    pub fn follow(&mut self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.attach()?;
        let mut is_paused = false;
        loop {
            match self.look(&mut is_paused) {
                Ok(0) => return Ok(()),
                Ok(lacks) => progress(self.lacks.saturating_sub(lacks)),
                Err(TargetTrouble::Final(failure)) => return Err(failure),
                Err(TargetTrouble::Lost(error)) => {
                    self.target.find_again(&error)?;
                    // The server started its channel by itself, with an id that the source does not serve.
                    self.attach()?;
                    is_paused = false;
                }
            }
            thread::sleep(POLL);
        }
    }

    /// Detaches the server, however `followed` ended; from here on a signal waits for that. A server that is away keeps its
    /// channel. One that has applied a folded log gets the GTIDs that it stands for; returned are then the tables whose AUTO_INCREMENT counters
    /// aren't known, as `database.table, of type`.
    ///
    /// # Errors
    ///
    /// That of `followed`, or why the server keeps its channel.
    pub fn end(mut self, followed: Result<()>) -> Result<Vec<String>> {
        let ending = Arc::clone(&self.ending);
        let _ending = ending.lock();
        if self.target.is_away {
            return followed.map(|()| Vec::new());
        }
        let before = self.before;
        let detached = self.target.patiently(|target| channel::detach(target, &before));
        if let (Err(_), Err(also)) = (&followed, &detached) {
            self.target.listener.warn(&format!(
                "the server keeps the channel {RECOVERY_CHANNEL}, which the next run removes: {also}"
            ));
        }
        if let (Err(_), Ok(()), Some(folded)) = (&followed, &detached, self.folded) {
            // What remains is told by the mark, if the server can't be asked.
            let _ = folded.forget_unbegun(&mut self.target);
        }
        followed.and(detached)?;
        match self.folded {
            Some(folded) => self.complete(folded),
            None => Ok(Vec::new()),
        }
    }

    fn complete(&mut self, folded: &FoldedRange) -> Result<Vec<String>> {
        let (without_counter, readers) = self.target.patiently(|target| {
            let without_counter = folded.complete(target)?;
            Ok((without_counter, target.replicas()?))
        })?;
        if readers > 0 {
            self.target.listener.warn(&format!(
                "{}: {readers} replicas or other readers were attached meanwhile: what they got of its binary log is no history, make them anew",
                self.target.name
            ));
        }
        Ok(without_counter)
    }

    fn attach(&mut self) -> Result<()> {
        let RunningRecovery { target, source, before, threads, .. } = self;
        target.patiently(|target| channel::attach(target, source, before, threads))
    }

    /// Looks how far the server is, and at its threads. Returns how many transactions it lacks.
    fn look(&mut self, is_paused: &mut bool) -> Result<u64, TargetTrouble> {
        let target = &mut self.target;
        let mut lacks = self.gtids.clone();
        lacks.subtract(&target.executed()?);
        if lacks.is_empty() {
            return Ok(0);
        }
        if let Some(error) = thread_errors::of(target, RECOVERY_CHANNEL)? {
            return Err(TargetTrouble::Final(ReplayError::unfit(&target.name, error)));
        }
        let replica = target.words.replica();
        let status = target.first_row(&format!("SHOW {replica} STATUS FOR CHANNEL '{RECOVERY_CHANNEL}'"))?;
        // One that isn't there lies past the last.
        let column = target.column("Relay_Log_Space").unwrap_or(usize::MAX);
        let space: u64 = status.parsed(column, "a number of bytes in Relay_Log_Space")?;
        if space > RELAY_SPACE_MAX && !*is_paused {
            target.ask(&format!("STOP {replica} IO_THREAD FOR CHANNEL '{RECOVERY_CHANNEL}'"))?;
            *is_paused = true;
        } else if space < RELAY_SPACE_MAX / 2 && *is_paused {
            target.ask(&format!("START {replica} IO_THREAD FOR CHANNEL '{RECOVERY_CHANNEL}'"))?;
            *is_paused = false;
        }
        Ok(count(&lacks))
    }
}

/// Detaches a server whose recovery is interrupted.
pub struct RecoveryDetacher {
    options: ConnectOptions,
    listener: Arc<dyn ReplayListener>,
    before: SavedSettings,
    ending: Arc<Mutex<()>>,
}

impl RecoveryDetacher {
    /// Detaches the server over a connection of its own. The thread that recovers must not go on: once it would detach the
    /// server itself, it waits for ever, since it sees its channel vanish and must not tell that as an error.
    ///
    /// # Errors
    ///
    /// The server keeps its channel, which the next run removes.
    pub fn detach_for_good(self) -> Result<()> {
        let alone = self.ending.lock();
        let detached = TargetServer::connect(self.options, self.listener).and_then(|mut target| {
            match channel::left(&mut target)? {
                Some(_) => channel::detach(&mut target, &self.before).map_err(TargetTrouble::failure),
                // The other thread has done so already.
                None => Ok(()),
            }
        });
        std::mem::forget(alone);
        detached
    }
}

/// Why a folded log can't be applied to a server, to be read after its name.
fn no_fold(target: &mut TargetServer, ended: &EndedLogs) -> Result<Option<String>> {
    if !target.words.can_fold {
        return Ok(Some(format!("is version {}: --fold needs 8.0.17 or later", target.version)));
    }
    if ended.gtids.has_tags() {
        let why =
            "the logs have GTIDs with tags, which --fold can't give; without it they are applied as they are";
        return Ok(Some(why.to_owned()));
    }
    let readers = target.replicas()?;
    Ok((readers > 0).then(|| {
        format!(
            "{readers} replicas or other readers get its binary log, expected none: what a folded log puts there is no history that they could \
             follow"
        )
    }))
}

/// Whether skip_replica_start is persisted already; then it stays.
fn is_persisted(target: &mut TargetServer) -> Result<bool> {
    let count: u64 = target
        .first_row(
            "SELECT COUNT(*) FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = 'skip_replica_start'",
        )?
        .parsed(0, "a number")?;
    Ok(count > 0)
}

/// How many transactions these are.
pub(crate) fn count(gtids: &GtidSet) -> u64 {
    u64::try_from(gtids.count()).unwrap_or(u64::MAX)
}
