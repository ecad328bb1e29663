//! Watches the server apply until it has everything: progress, the space of its relay logs, errors, lost connections.

use std::thread;
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;

use super::CHANNEL;
use super::channel::{self, ApplierThreads, ChannelSource, SavedSettings};
use super::errors;
use super::target::{TargetServer, TargetTrouble};
use crate::failure::{CommandFailure, Result};
use crate::progress::WorkProgress;

const POLL: Duration = Duration::from_millis(250);
/// The receiver pauses while relay logs have more bytes than this, until they have half of it.
const RELAY_SPACE_MAX: u64 = 4 << 30;

/// The transactions to be applied.
pub(super) struct Goal<'a> {
    pub(super) gtids: &'a GtidSet,
    pub(super) source: &'a ChannelSource,
    pub(super) before: &'a SavedSettings,
    pub(super) applying: &'a ApplierThreads,
    /// How many transactions the server lacks at first.
    pub(super) lacks: u64,
}

/// Attaches the server, and waits until it has everything.
pub(super) fn follow(target: &mut TargetServer, goal: &Goal<'_>) -> Result<()> {
    let attach = |target: &mut TargetServer| channel::attach(target, goal.source, goal.before, goal.applying);
    let progress = WorkProgress::counting("apply", "transactions", goal.lacks);
    target.patiently(attach)?;
    let mut is_paused = false;
    loop {
        match look(target, goal, &mut is_paused) {
            Ok(0) => return Ok(()),
            Ok(lacks) => progress.at(goal.lacks.saturating_sub(lacks)),
            Err(TargetTrouble::Final(failure)) => return Err(failure),
            Err(TargetTrouble::Lost(error)) => {
                target.find_again(&error)?;
                // The server started its channel by itself, with an id that the source does not serve.
                target.patiently(attach)?;
                is_paused = false;
            }
        }
        thread::sleep(POLL);
    }
}

/// How many transactions the server lacks.
fn lacking(executed: GtidSet, goal: &Goal<'_>) -> u64 {
    let mut left = goal.gtids.clone();
    left.subtract(&executed);
    u64::try_from(left.count()).unwrap_or(u64::MAX)
}

/// Looks how far the server is, and at its threads.
fn look(target: &mut TargetServer, goal: &Goal<'_>, is_paused: &mut bool) -> Result<u64, TargetTrouble> {
    let lacks = lacking(target.executed()?, goal);
    if lacks == 0 {
        return Ok(0);
    }
    if let Some(error) = errors::of(target, CHANNEL)? {
        return Err(TargetTrouble::Final(CommandFailure::of(&target.name, error)));
    }
    let replica = target.words.replica();
    let status = target.ask(&format!("SHOW {replica} STATUS FOR CHANNEL '{CHANNEL}'"))?;
    let space = target.column("Relay_Log_Space");
    let space = space.and_then(|column| status.first()?.get(column)?.parse::<u64>().ok()).unwrap_or(0);
    if space > RELAY_SPACE_MAX && !*is_paused {
        target.ask(&format!("STOP {replica} IO_THREAD FOR CHANNEL '{CHANNEL}'"))?;
        *is_paused = true;
    } else if space < RELAY_SPACE_MAX / 2 && *is_paused {
        target.ask(&format!("START {replica} IO_THREAD FOR CHANNEL '{CHANNEL}'"))?;
        *is_paused = false;
    }
    Ok(lacks)
}
