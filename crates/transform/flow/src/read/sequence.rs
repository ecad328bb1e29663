//! Whether logs follow one another, by how each begins, by its number, and by its transactions.
//!
//! The input is the facts of logs, read from their headers and GTID events alone ([`LogFacts`]), or from an archive's
//! manifest. The answer is, for each log, whether it continues the one before ([`LogFacts::follow`]). It finds logs of
//! two servers, one log twice, a wrong order, a gap, and a reset in between, and says where it can't tell.
//!
//! ```text
//! previous of a log  =  previous of the one before it  +  the GTIDs in that one
//! ```

use std::io::{self, BufReader, Read};

use binlogz_binlog::event::{AnyGtidEvent, PreviousGtidsEvent, RotateEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::reader::not_a_log;
use binlogz_binlog::{Error, EventClass, EventReader, EventType, HeaderFlags, MAGIC};

use crate::read::header_walk::{HeaderStep, HeaderWalk};
use crate::read::input::{ReadAt, bytes_at};

/// How much of a log is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactsUpTo {
    /// The log's beginning, up to its first transaction.
    FirstTransaction,
    /// The whole log: its transactions are then known.
    End,
}

/// The facts of a log that tell which one it follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The log's name for people, maybe with a path; the number in the file name is the log's number.
    pub name: String,
    /// The server that wrote its format description.
    pub server_id: Option<u32>,
    /// When its format description was written, in seconds since 1970.
    pub created: u32,
    /// Whether it is a relay log: each begins with the facts that its replica knows of the source.
    pub is_relay_log: bool,
    /// Whether its writer had not closed it: its last transaction may not have been committed.
    pub in_use: bool,
    /// The transactions before it; `None`: it does not say, as before MySQL 5.6 and in MariaDB.
    pub previous: Option<GtidSet>,
    /// The GTID of its first transaction, if that has one.
    pub first: Option<Gtid>,
    /// The log's transactions, if all of them were looked at.
    pub gtids: Option<GtidSet>,
    /// The last of its transactions.
    pub last: Option<Gtid>,
    /// Whether it has a transaction without a GTID before the first one with a GTID, or one that says that it is anonymous.
    pub has_anonymous: bool,
    /// The file name of the log after it, as its writer told when it closed this one; `None`: it didn't, as where the server was stopped, or
    /// the end wasn't looked at.
    pub next: Option<String>,
    /// Whether its end was looked at.
    pub is_end_known: bool,
}

/// Why a log does not continue the one before it, naming both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotInSequence(pub String);

/// How a log is known to continue the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequel {
    /// The GTIDs of both say so.
    ByGtids,
    /// Only numbers, times and server ids say so.
    ByNumbers,
    /// The numbers say so, and so do the transactions that were looked at. But these transactions came before the second
    /// log and are in neither: the server had them otherwise, as by `gtid_purged`.
    Lacking(GtidSet),
    /// All of the first has to be known to tell, or all of both.
    Unknown,
}

impl LogFacts {
    /// The facts of a log that can be read at any place. A log that can't be read to its end has no [`LogFacts::gtids`];
    /// reading the log itself will say why.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read, or that are no binary log.
    pub fn read(name: String, places: &dyn ReadAt, up_to: FactsUpTo) -> Result<LogFacts, Error> {
        let magic = bytes_at(places, 0, MAGIC.len())?;
        if magic != MAGIC {
            return Err(not_a_log(&bytes_at(places, 0, MAGIC.len() + HEADER_SIZE)?));
        }
        let mut facts = LogFacts { name, ..LogFacts::default() };
        let is_whole = facts.walk(places, up_to)?;
        facts.is_end_known = is_whole || up_to == FactsUpTo::End;
        if facts.server_id.is_none() {
            return Err(Error::invalid(
                "binary log",
                "first event",
                "no format description",
                "a format description, as since MySQL 5.0",
            ));
        }
        if is_whole {
            facts.gtids.get_or_insert_default();
        } else {
            facts.gtids = None;
        }
        Ok(facts)
    }

    /// Looks at the end of a log whose other facts are known, in its bytes from the begin.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read.
    pub fn read_end(&mut self, bytes: impl Read) -> Result<(), Error> {
        let mut events = EventReader::new(BufReader::new(bytes));
        while let Some((_, frame)) = events.next_event()? {
            if frame.header().event_type == EventType::ROTATE {
                self.next =
                    Some(String::from_utf8_lossy(RotateEvent::decode(frame.body())?.name).into_owned());
            }
        }
        self.is_end_known = true;
        Ok(())
    }

    /// Goes through headers and GTID events; returns whether all of the log was looked at.
    fn walk(&mut self, places: &dyn ReadAt, up_to: FactsUpTo) -> io::Result<bool> {
        let mut events = HeaderWalk::new(places);
        let mut has_transaction = false;
        loop {
            let header = match events.step()? {
                HeaderStep::Event(header) => header,
                HeaderStep::End => return Ok(true),
                HeaderStep::Unreadable => return Ok(false),
            };
            if header.event_type == EventType::FORMAT_DESCRIPTION && self.server_id.is_none() {
                self.server_id = Some(header.server_id);
                self.created = header.timestamp;
                self.is_relay_log = header.flags.contains(HeaderFlags::RELAY_LOG);
                self.in_use = header.flags.contains(HeaderFlags::IN_USE);
            }
            if header.event_type == EventType::ROTATE {
                let event = events.event(&header)?;
                let Some(frame) = events.verified(&event) else { return Ok(false) };
                let Ok(rotate) = RotateEvent::decode(frame.body()) else { return Ok(false) };
                self.next = Some(String::from_utf8_lossy(rotate.name).into_owned());
            }
            let is_previous = header.event_type == EventType::PREVIOUS_GTIDS && self.previous.is_none();
            if is_previous || header.event_type.is_gtid() {
                let event = events.event(&header)?;
                let Some(frame) = events.verified(&event) else { return Ok(false) };
                if is_previous {
                    let Ok(previous) = PreviousGtidsEvent::decode_frame(&frame.frame()) else {
                        return Ok(false);
                    };
                    self.previous = Some(previous.gtid_set);
                } else {
                    let Ok(event) = AnyGtidEvent::decode(frame.body(), header.event_type) else {
                        return Ok(false);
                    };
                    match event.as_ref().and_then(AnyGtidEvent::gtid) {
                        Some(gtid) => {
                            self.first = self.first.or((!has_transaction).then_some(gtid));
                            self.gtids.get_or_insert_default().add(gtid);
                            self.last = Some(gtid);
                        }
                        None => self.has_anonymous = true,
                    }
                    has_transaction = true;
                }
            } else if !has_transaction && !is_outside_transactions(header.event_type) {
                has_transaction = true;
                self.has_anonymous = true;
            }
            if has_transaction && up_to == FactsUpTo::FirstTransaction {
                return Ok(false);
            }
        }
    }

    /// Whether this log continues `before`.
    ///
    /// # Errors
    ///
    /// It certainly does not.
    pub fn follow(&self, before: &LogFacts) -> Result<Sequel, NotInSequence> {
        let one = &before.name;
        let other = &self.name;
        let ((base, number), (own_base, own_number)) = (parts(one), parts(other));
        let is_same_base = base == own_base;
        if let (Some(number), Some(own), true) = (number, own_number, is_same_base) {
            self.follow_by_number(before, number, own)?;
        }
        let is_next = number.zip(own_number).is_some_and(|(number, own)| own == number + 1);
        if self.is_relay_log || before.is_relay_log {
            return Ok(Sequel::ByNumbers);
        }
        let is_same_server = match (self.server_id, before.server_id) {
            (Some(own), Some(id)) => own == id,
            (None, _) | (_, None) => true,
        };
        let by_gtids = match (&before.previous, &self.previous) {
            (Some(had), Some(has)) => self.follow_by_gtids(before, (had, has))?,
            (None, _) | (_, None) => None,
        };
        match by_gtids {
            // What tells servers apart else is only a guess beside this.
            Some(Sequel::ByGtids) => return Ok(Sequel::ByGtids),
            Some(Sequel::Lacking(missing)) if is_next && is_same_base && is_same_server => {
                return Ok(Sequel::Lacking(missing));
            }
            Some(Sequel::Lacking(missing)) => {
                return Err(NotInSequence(format!(
                    "{other} does not continue {one}: {} are missing between them; {RESET}",
                    missing.brief()
                )));
            }
            // Nothing is wrong so far.
            Some(Sequel::ByNumbers) if is_next && is_same_base && is_same_server => {
                return Ok(Sequel::ByGtids);
            }
            Some(Sequel::ByNumbers | Sequel::Unknown) => return Ok(Sequel::Unknown),
            None => {}
        }
        if !is_same_server {
            return Err(NotInSequence(format!(
                "{other} does not continue {one}: their server ids are {} and {}, and no GTIDs show that one continues the \
                 other; they are logs of two servers",
                self.server_id.unwrap_or_default(),
                before.server_id.unwrap_or_default()
            )));
        }
        self.follow_by_names(before, is_next && is_same_base)
    }

    /// Whether names show that this log continues `before`, of whose transactions none has a GTID. `is_named_so`: their own names do.
    fn follow_by_names(&self, before: &LogFacts, is_named_so: bool) -> Result<Sequel, NotInSequence> {
        let one = &before.name;
        let other = &self.name;
        let is_told = before.next.as_deref() == Some(file_name(other));
        // A server writes the time at which the statement began that made it begin the log, by its clock or by the session's: a later log may
        // have an earlier one. Then only the name counts with which the log before it ends.
        let is_earlier = self.created < before.created;
        if is_told || is_named_so && !is_earlier {
            return Ok(Sequel::ByNumbers);
        }
        if !before.is_end_known {
            return Ok(Sequel::Unknown);
        }
        if is_named_so {
            return Err(NotInSequence(format!(
                "{other} was begun before {one}, which doesn't end with its name: logs are taken in their order; or {RESET}"
            )));
        }
        self.follow_renamed(before, is_earlier)
    }

    /// Whether the names with which logs end show that this one continues `before`, where people gave them other names.
    fn follow_renamed(&self, before: &LogFacts, is_earlier: bool) -> Result<Sequel, NotInSequence> {
        let one = &before.name;
        let other = &self.name;
        if before.next.is_some() && !self.is_end_known {
            return Ok(Sequel::Unknown);
        }
        if let (Some(next), Some(own_next)) = (&before.next, &self.next) {
            let ((base, number), (own_base, own_number)) = (parts(next), parts(own_next));
            let is_next = number.zip(own_number).is_some_and(|(number, own)| own == number + 1);
            return match base == own_base && is_next {
                true => Ok(Sequel::ByNumbers),
                false => Err(NotInSequence(format!(
                    "{other} does not continue {one}: the log after {one} was {next}, the one after {other} {own_next}, expected {}; {RESET}",
                    with_number(next, number.unwrap_or_default() + 1)
                ))),
            };
        }
        if is_earlier {
            return Err(NotInSequence(format!(
                "{other} was begun before {one}: logs are taken in their order; or {RESET}"
            )));
        }
        let (number, own) = (parts(one).1, parts(other).1);
        match number.zip(own).is_none_or(|(number, own)| own == number + 1) {
            true => Ok(Sequel::ByNumbers),
            false => Err(NotInSequence(format!(
                "{other} and {one} have other names and numbers, and no GTIDs that show whether one continues the other"
            ))),
        }
    }

    /// Refuses a log of the same base name as `before` whose number isn't the next one.
    fn follow_by_number(&self, before: &LogFacts, number: u64, own: u64) -> Result<(), NotInSequence> {
        let one = &before.name;
        let other = &self.name;
        if own == number {
            let is_same = (self.server_id, self.created, &self.previous, self.first)
                == (before.server_id, before.created, &before.previous, before.first);
            return Err(NotInSequence(match is_same {
                true => format!("{other}: is there twice, as {one} too: each log is taken once"),
                false => format!("{other} and {one} have the same number: {RESET}"),
            }));
        }
        if own < number {
            return Err(NotInSequence(format!(
                "{other} comes before {one}: logs are taken in their order; or {RESET}"
            )));
        }
        if own > number + 1 {
            let first = with_number(one, number + 1);
            let last = with_number(one, own - 1);
            return Err(NotInSequence(match first == last {
                true => format!("{first} is missing between {one} and {other}"),
                false => format!("{first} to {last} are missing between {one} and {other}"),
            }));
        }
        Ok(())
    }

    /// Whether GTIDs show that this log continues `before`. `had` and `has` are the transactions before the earlier log
    /// and before this one. `None`: GTIDs alone don't tell.
    fn follow_by_gtids(
        &self,
        before: &LogFacts,
        (had, has): (&GtidSet, &GtidSet),
    ) -> Result<Option<Sequel>, NotInSequence> {
        let one = &before.name;
        let mut lost = had.clone();
        lost.subtract(has);
        if !lost.is_empty() {
            return Err(self.knows_nothing(before, &format!("before {one} came"), &lost));
        }
        match &before.gtids {
            Some(gtids) => {
                let mut lost = gtids.clone();
                lost.subtract(has);
                if before.in_use {
                    // A server that crashes takes back what it had not written whole.
                    before.last.filter(|_| lost.count() == 1).into_iter().for_each(|last| {
                        let mut unfinished = GtidSet::new();
                        unfinished.add(last);
                        lost.subtract(&unfinished);
                    });
                }
                if !lost.is_empty() {
                    return Err(self.knows_nothing(before, &format!("{one} has"), &lost));
                }
                let mut missing = has.clone();
                missing.subtract(had);
                missing.subtract(gtids);
                Ok(match (missing.is_empty(), gtids.is_empty()) {
                    (false, _) => Some(Sequel::Lacking(missing)),
                    (true, false) => Some(Sequel::ByGtids),
                    // Both may know the same and be of two servers.
                    (true, true) if before.has_anonymous || has.is_empty() => None,
                    (true, true) => Some(Sequel::ByGtids),
                })
            }
            None => match before.first {
                Some(first) if !has.contains(&first) => {
                    let mut lost = GtidSet::new();
                    lost.add(first);
                    Err(self.knows_nothing(before, &format!("{one} has"), &lost))
                }
                Some(_) => Ok(Some(Sequel::ByNumbers)),
                None if has == had => Ok(None),
                None => Ok(Some(Sequel::Unknown)),
            },
        }
    }

    /// The error of a log that doesn't know transactions of the time before it.
    fn knows_nothing(&self, before: &LogFacts, what: &str, lost: &GtidSet) -> NotInSequence {
        let one = &before.name;
        let other = &self.name;
        NotInSequence(format!(
            "{other} does not continue {one}: {what} {}, of which {other} knows nothing; {RESET}",
            lost.brief()
        ))
    }
}

/// Two reasons for logs that don't fit each other.
const RESET: &str = "they are logs of two servers, or the log was reset in between";

/// Whether an event is of the file rather than of a transaction.
pub fn is_outside_transactions(event_type: EventType) -> bool {
    match event_type.class() {
        EventClass::File
        | EventClass::FileNote
        | EventClass::Heartbeat
        | EventClass::Incident
        | EventClass::Ignorable => true,
        EventClass::Gtid
        | EventClass::MariadbGtid
        | EventClass::Statement
        | EventClass::CompressedStatement
        | EventClass::LoadStatement
        | EventClass::StatementValue
        | EventClass::LoadBlock
        | EventClass::LoadEnd
        | EventClass::RowsStatement
        | EventClass::TableMap
        | EventClass::Rows
        | EventClass::CompressedRows
        | EventClass::Commit
        | EventClass::Payload
        | EventClass::GroupContext
        | EventClass::GroupView
        | EventClass::Dead
        | EventClass::Unknown => false,
    }
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// The file name of a log with another number, which has as many digits, up to six.
fn with_number(name: &str, number: u64) -> String {
    let (base, _) = parts(name);
    let digits = file_name(name).rsplit('.').next().unwrap_or_default();
    format!("{base}.{number:0width$}", width = digits.len().min(6))
}

/// Base name and number of a log.
fn parts(name: &str) -> (&str, Option<u64>) {
    let name = file_name(name);
    let numbered = name.rsplit_once('.').and_then(|(base, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| number.parse().ok()).flatten().map(|number| (base, Some(number)))
    });
    numbered.unwrap_or((name, None))
}

/// Checks that each log continues the one before it; `all` looks at all transactions of one, where its begin does not
/// tell. Returns the lines to print.
///
/// # Errors
///
/// Logs that are no sequence; whatever `all` fails with.
pub fn check_sequence<E: From<NotInSequence>>(
    logs: &mut [LogFacts],
    all: &mut dyn FnMut(usize) -> Result<LogFacts, E>,
) -> Result<Vec<String>, E> {
    let mut said = Vec::new();
    let mut by_numbers: Option<(String, String)> = None;
    for place in 1..logs.len() {
        let mut sequel = sequel_at(logs, place)?;
        for needed in [place - 1, place] {
            if sequel != Sequel::Unknown {
                break;
            }
            let whole = all(needed)?;
            if let Some(log) = logs.get_mut(needed) {
                *log = whole;
            }
            sequel = sequel_at(logs, place)?;
        }
        let one = name_at(logs, place - 1);
        let other = name_at(logs, place);
        match sequel {
            Sequel::ByGtids => {}
            Sequel::ByNumbers | Sequel::Unknown => {
                let first = by_numbers.take().map_or(one, |(first, _)| first);
                by_numbers = Some((first, other));
            }
            Sequel::Lacking(missing) => said.push(format!(
                "{} came before {other} and are not in {one}: the server had them otherwise, as from a backup",
                missing.brief()
            )),
        }
    }
    if let Some((first, last)) = by_numbers {
        said.push(format!(
            "{first} to {last}: that each log continues the one before it is known from numbers, times and server ids alone; \
             they have no GTIDs that show it"
        ));
    }
    Ok(said)
}

/// Whether the log at this place continues the one before it.
fn sequel_at(logs: &[LogFacts], place: usize) -> Result<Sequel, NotInSequence> {
    match logs.get(place - 1..=place) {
        Some([before, log]) => log.follow(before),
        Some(_) | None => Ok(Sequel::ByGtids),
    }
}

fn name_at(logs: &[LogFacts], place: usize) -> String {
    logs.get(place).map(|log| log.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::{GtidEvent, GtidFlags, RotateEvent};
    use binlogz_binlog::gtid::ServerUuid;
    use binlogz_testkit::builder::{LogBuilder, Release};

    use super::*;

    const A: &str = "aaaaaaaa-e54d-11f1-848d-02fc00000001";
    const B: &str = "bbbbbbbb-e54d-11f1-848d-02fc00000002";

    /// A log with these transactions, and those before it.
    fn log(previous: Option<&str>, of: &str, gnos: std::ops::RangeInclusive<u64>) -> Vec<u8> {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        if let Some(previous) = previous {
            let gtid_set: GtidSet = previous.parse().unwrap();
            let format = gtid_set.format();
            log.event(EventType::PREVIOUS_GTIDS, &PreviousGtidsEvent { gtid_set, format }.encode());
        }
        for gno in gnos {
            if gno > 0 {
                let gtid = GtidEvent {
                    flags: GtidFlags::default(),
                    uuid: of.parse::<ServerUuid>().unwrap(),
                    gno,
                    logical_clock: None,
                    commit_timestamps: None,
                    transaction_length: None,
                    server_versions: None,
                    commit_group_ticket: None,
                    trailing: &[],
                };
                log.event(EventType::GTID, &gtid.encode().unwrap());
            }
            log.event(EventType::QUERY, &binlogz_testkit::builder::query("CREATE TABLE t (i INT)"));
        }
        log.event(EventType::ROTATE, &RotateEvent { position: 4, name: b"binlog.000002" }.encode());
        log.take()
    }

    fn facts(name: &str, log: &[u8], up_to: FactsUpTo) -> LogFacts {
        LogFacts::read(name.into(), &log.to_vec(), up_to).unwrap()
    }

    fn told(logs: &[(&str, Vec<u8>)]) -> Result<Vec<String>, String> {
        let mut begins: Vec<_> =
            logs.iter().map(|(name, log)| facts(name, log, FactsUpTo::FirstTransaction)).collect();
        let mut whole = |place: usize| -> Result<LogFacts, NotInSequence> {
            let (name, log) = &logs[place];
            Ok(facts(name, log, FactsUpTo::End))
        };
        let quick = check_sequence(&mut begins, &mut whole).map_err(|error| error.to_string());
        // Who knows all transactions is told the same, or more.
        let mut all: Vec<_> = logs.iter().map(|(name, log)| facts(name, log, FactsUpTo::End)).collect();
        let exact = check_sequence(&mut all, &mut whole).map_err(|error| error.to_string());
        if quick.is_err() {
            assert!(exact.is_err(), "{quick:?}, {exact:?}");
        }
        exact
    }

    #[test]
    fn logs_of_one_server_in_their_order_are_a_sequence() {
        let before = format!("{A}:1-3");
        let then = format!("{A}:1-5");
        let logs = [
            ("d/binlog.000001", log(Some(""), A, 1..=3)),
            ("d/binlog.000002", log(Some(&before), A, 4..=5)),
            ("d/binlog.000003", log(Some(&then), A, 6..=6)),
        ];
        assert_eq!(told(&logs), Ok(vec![]));
        // Renamed ones too.
        let [first, second, third] = logs.map(|(_, log)| log);
        assert_eq!(told(&[("one", first), ("two", second), ("x.000009", third)]), Ok(vec![]));
    }

    #[test]
    fn logs_of_two_servers_are_none_whatever_they_are_called() {
        let of_b = format!("{B}:1-5");
        for second in ["b/binlog.000002", "b/other.000002", "b/two"] {
            let logs = [("a/binlog.000001", log(Some(""), A, 1..=3)), (second, log(Some(&of_b), B, 6..=7))];
            let error = told(&logs).unwrap_err();
            assert!(error.contains("a/binlog.000001 has aaaaaaaa-"), "{error}");
            assert!(error.starts_with(&format!("{second} does not continue a/binlog.000001: ")), "{error}");
        }
        // The second has all that the first has, and more: it followed the first, and is one log further.
        let more = format!("{A}:1-9,{B}:1-5");
        let logs = [("a/one", log(Some(""), A, 1..=3)), ("b/two", log(Some(&more), B, 6..=7))];
        let error = told(&logs).unwrap_err();
        assert!(error.contains("aaaaaaaa-e54d-11f1-848d-02fc00000001:4-9,"), "{error}");
        // Of those without GTIDs, the number of the server tells.
        let ids = |id| LogFacts { server_id: Some(id), ..facts("x", &log(None, A, 0..=0), FactsUpTo::End) };
        let error = ids(2).follow(&ids(1)).unwrap_err().to_string();
        assert!(error.contains("their server ids are 2 and 1"), "{error}");
    }

    #[test]
    fn the_same_log_twice_another_order_a_gap_and_a_reset_are_none() {
        let one = || log(Some(""), A, 1..=3);
        let two = || log(Some(&format!("{A}:1-3")), A, 4..=5);
        let three = || log(Some(&format!("{A}:1-5")), A, 6..=7);
        for (logs, said) in [
            (vec![("binlog.000001", one()), ("binlog.000001", one())], "binlog.000001: is there twice"),
            (
                vec![("a/b.000001", one()), ("b/b.000001", three())],
                "b/b.000001 and a/b.000001 have the same number: ",
            ),
            (
                vec![("binlog.000002", two()), ("binlog.000001", one())],
                "binlog.000001 comes before binlog.000002: ",
            ),
            (
                vec![("binlog.000001", one()), ("binlog.000003", three())],
                "binlog.000002 is missing between binlog.000001 and binlog.000003",
            ),
            (
                vec![("b.000001", one()), ("b.000005", three())],
                "b.000002 to b.000004 are missing between b.000001 and b.000005",
            ),
            (vec![("one", one()), ("one", one())], "one does not continue one: one has aaaaaaaa-"),
            (
                vec![("one", one()), ("three", three())],
                "three does not continue one: aaaaaaaa-e54d-11f1-848d-02fc00000001:4-5 are missing between them; ",
            ),
            (
                vec![("binlog.000001", two()), ("binlog.000002", one())],
                "before binlog.000001 came aaaaaaaa-e54d-11f1-848d-02fc00000001:1-3, of which binlog.000002 knows nothing; ",
            ),
        ] {
            let error = told(&logs).unwrap_err();
            assert!(error.contains(said), "{error}\n{said}");
        }
    }

    #[test]
    fn what_the_server_had_otherwise_and_what_can_not_be_told_is_said() {
        let restored = format!("{A}:1-3,{B}:1-100");
        let logs =
            [("binlog.000001", log(Some(""), A, 1..=3)), ("binlog.000002", log(Some(&restored), A, 4..=5))];
        let said = told(&logs).unwrap().join("\n");
        assert!(
            said.starts_with("bbbbbbbb-e54d-11f1-848d-02fc00000002:1-100 came before binlog.000002"),
            "{said}"
        );
        let plain = || log(None, A, 0..=0);
        let said = told(&[("b.000001", plain()), ("b.000002", plain()), ("b.000003", plain())]).unwrap();
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("b.000001 to b.000003: that each log continues"), "{said:?}");
        let anonymous = facts("b.000001", &plain(), FactsUpTo::FirstTransaction);
        assert!(anonymous.has_anonymous && anonymous.gtids.is_none());
    }

    /// A log without GTIDs, begun at this time, that ends with this name.
    fn plain(name: &str, created: u32, next: Option<&str>) -> LogFacts {
        let next = next.map(str::to_owned);
        LogFacts { created, next, ..facts(name, &log(None, A, 0..=0), FactsUpTo::End) }
    }

    /// As after the clock was set back, or where a long statement made the server begin the later log.
    #[test]
    fn a_log_with_an_earlier_time_is_the_next_one_where_the_one_before_it_names_it() {
        let two = plain("d/binlog.000002", 100, Some("binlog.000003"));
        assert_eq!(two.follow(&plain("d/binlog.000001", 200, Some("binlog.000002"))), Ok(Sequel::ByNumbers));
        for next in [None, Some("binlog.000009")] {
            let one = plain("d/binlog.000001", 200, next);
            let error = two.follow(&one).unwrap_err().to_string();
            assert!(
                error.contains("was begun before d/binlog.000001, which doesn't end with its name"),
                "{error}"
            );
            // Its end wasn't looked at.
            assert_eq!(two.follow(&LogFacts { is_end_known: false, next: None, ..one }), Ok(Sequel::Unknown));
        }
        let gap =
            plain("d/binlog.000003", 100, None).follow(&plain("d/binlog.000001", 200, Some("binlog.000002")));
        assert!(gap.unwrap_err().to_string().starts_with("binlog.000002 is missing between "));
    }

    #[test]
    fn the_end_of_a_stream_is_that_of_a_file() {
        let log = log(None, A, 0..=3);
        let file = facts("b.000001", &log, FactsUpTo::End);
        assert_eq!(file.next.as_deref(), Some("binlog.000002"));
        let mut streamed = LogFacts { next: None, is_end_known: false, ..file.clone() };
        streamed.read_end(&log[..]).unwrap();
        assert_eq!(streamed, file);
        assert!(streamed.read_end(&log[..log.len() - 1]).is_err());
        assert!(!facts("b.000001", &log, FactsUpTo::FirstTransaction).is_end_known);
    }

    #[test]
    fn of_renamed_logs_those_tell_that_they_end_with() {
        let monday = plain("monday", 100, Some("binlog.000002"));
        let tuesday = plain("tuesday", 90, Some("binlog.000003"));
        let wednesday = plain("wednesday", 120, Some("binlog.000004"));
        assert_eq!(tuesday.follow(&monday), Ok(Sequel::ByNumbers));
        assert_eq!(wednesday.follow(&tuesday), Ok(Sequel::ByNumbers));
        let error = wednesday.follow(&monday).unwrap_err().to_string();
        assert!(
            error.contains("the log after monday was binlog.000002, the one after wednesday binlog.000004"),
            "{error}"
        );
        assert!(error.contains("expected binlog.000003"), "{error}");
        // The last one may be in use.
        assert_eq!(plain("now", 130, None).follow(&wednesday), Ok(Sequel::ByNumbers));
        let mut logs =
            [&monday, &wednesday].map(|log| LogFacts { is_end_known: false, next: None, ..log.clone() });
        let mut whole = |place: usize| Ok([monday.clone(), wednesday.clone()][place].clone());
        let told: Result<_, NotInSequence> = check_sequence(&mut logs, &mut whole);
        assert_eq!(told.unwrap_err().to_string(), error);
    }

    #[test]
    fn a_crash_may_take_back_the_last_transaction_of_a_log() {
        let one = LogFacts { in_use: true, ..facts("b.000001", &log(Some(""), A, 1..=4), FactsUpTo::End) };
        let two = facts("b.000002", &log(Some(&format!("{A}:1-3")), A, 4..=5), FactsUpTo::End);
        assert_eq!(two.follow(&one), Ok(Sequel::ByGtids));
        assert!(two.follow(&LogFacts { in_use: false, ..one }).is_err());
    }
}
