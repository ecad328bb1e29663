//! Which logs a table is worked out from: the server's own since the moment, and before them INPUTs, where it has purged some.
//!
//! ```text
//! INPUTs … binlog.000007 | binlog.000008 …   the server's own
//!          └ begins before the moment      └ previous GTIDs: all before it
//! ```
//!
//! INPUTs are taken only where nothing can be missing between them and the server's own. GTIDs tell that, and the numbers of the logs:
//! a log whose transactions have no GTIDs leaves no gap in a set.

use std::collections::BTreeSet;

use binlogz_flow::{FactsUpTo, InOrder, Input, LogFacts, Sequel};
use binlogz_query::WholeLogs;
use binlogz_row_changes::{HeadError, LogHead, PastMoment, from_last_head, server_logs};
use binlogz_source::ConnectOptions;

use super::{BaseTrouble, said};

/// The logs that may have changes after a moment.
#[derive(Debug)]
pub(super) struct LogsSinceMoment {
    /// The INPUTs among them, by their places, the last one first.
    inputs: Vec<usize>,
    /// The head of the first log, if it is the first that the server ever had.
    very_first: Option<LogHead>,
    /// The first one that the server still has.
    first_own: String,
    /// Bytes of those of which no part can be passed over: the server's own, and INPUTs that aren't archived.
    pub(super) undivided_size: u64,
}

impl LogsSinceMoment {
    /// Looks for them.
    ///
    /// # Errors
    ///
    /// The server can't be asked; logs that don't reach back to the moment, or among which one is missing.
    pub(super) fn find(
        connect: &ConnectOptions,
        moment: &PastMoment,
        logs: &dyn WholeLogs,
    ) -> Result<Self, BaseTrouble> {
        let own = server_logs(connect)?;
        let names = own.iter().map(|(name, _)| name.clone()).collect();
        let found = from_last_head(names, connect, &|head| head.comes_before(moment))?;
        let Some((names, head)) = found else { return Err(said("has no binary log")) };
        let undivided_size: u64 = own.iter().rev().take(names.len()).map(|(_, size)| size).sum();
        let first_own = names.into_iter().next().unwrap_or_default();
        let mut since = LogsSinceMoment { inputs: Vec::new(), very_first: None, first_own, undivided_size };
        if head.is_first_of_server(&since.first_own) {
            since.very_first = Some(head);
        } else if !head.comes_before(moment) {
            since.take_inputs(&head, moment, logs)?;
        }
        Ok(since)
    }

    /// Whether INPUTs are read before the server's own logs.
    pub(super) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// The places of the INPUTs, in the order of the logs.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().rev().copied()
    }

    /// The head of the first log, if it is the first that the server ever had.
    pub(super) fn very_first(&self) -> Option<&LogHead> {
        self.very_first.as_ref()
    }

    /// The first log that the server still has.
    pub(super) fn first_own(&self) -> &str {
        &self.first_own
    }

    /// Goes back from the server's first log through the INPUTs, to one that begins before the moment.
    fn take_inputs(
        &mut self,
        head: &LogHead,
        moment: &PastMoment,
        logs: &dyn WholeLogs,
    ) -> Result<(), BaseTrouble> {
        let first = self.first_own.as_str();
        if head.is_first() {
            return Err(said(format!(
                "its logs begin after the moment, or have no transaction of before it; its first one is {first}, before which it had no GTIDs: \
                 nothing tells whether INPUTs reach to it"
            )));
        }
        let mut later = LogFacts {
            name: first.to_owned(),
            created: head.created,
            previous: Some(head.previous.clone()),
            ..LogFacts::default()
        };
        for index in (0..logs.count()).rev() {
            let (name, input) = front_of(logs, index)?;
            let Some(own) = head_of(input, name)? else { continue };
            if is_of_server((first, head), (name, &own)) {
                continue;
            }
            let mut facts = logs.sequence_facts(index, FactsUpTo::FirstTransaction)?;
            if later.follow(&facts)? == Sequel::Unknown {
                facts = logs.sequence_facts(index, FactsUpTo::End)?;
                later.follow(&facts)?;
            }
            self.inputs.push(index);
            self.undivided_size += logs.undivided_size(index);
            if own.is_first_of_server(name) {
                self.very_first = Some(own);
                return Ok(());
            }
            if own.comes_before(moment) {
                return Ok(());
            }
            later = facts;
        }
        Err(said(
            "its logs begin after the moment, or have no transaction of before it, and the INPUTs have no log that begins before it: changes that \
             came between may be in an earlier log",
        ))
    }
}

/// A log up to its first transaction at least: of an archived one, no more than the part that has it.
fn front_of(logs: &dyn WholeLogs, index: usize) -> Result<(&str, Input), BaseTrouble> {
    let mut first = BTreeSet::new();
    let has_parts = logs.each_part(index, &mut |run| {
        if first.is_empty() {
            first.insert(run.start());
        }
    })?;
    if !has_parts {
        return Ok(logs.whole(index)?);
    }
    let (name, input, _) = logs.parts(index, &first)?;
    Ok((name, input))
}

/// Whether the server has this log itself, given the first that it has. One without any GTID of its own has as many before it as the next.
fn is_of_server((first, head): (&str, &LogHead), (name, own): (&str, &LogHead)) -> bool {
    let is_before = match (numbered(name), numbered(first)) {
        (Some((base, number)), Some((of_server, first))) => base == of_server && number < first,
        (None, _) | (_, None) => false,
    };
    head.previous.is_subset(&own.previous) && !(is_before && own.previous.is_subset(&head.previous))
}

/// The base name and the number of a log.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit('/').next()?.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}

/// The head of a log; `None`: it can't be read from its beginning twice.
fn head_of(input: Input, name: &str) -> Result<Option<LogHead>, HeadError> {
    match input {
        Input::Places(places) | Input::Seek { places, .. } => {
            LogHead::read(InOrder::new(places), name).map(Some)
        }
        Input::Stream(stream) | Input::Sparse { stream, .. } => LogHead::read(stream, name).map(Some),
        Input::Live(_) | Input::Pipe(_) => Ok(None),
    }
}
