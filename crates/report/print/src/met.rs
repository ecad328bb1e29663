//! Which parts of a selection the events so far matched. We report a request that nothing matched: otherwise
//! the output would look like that of a log without the requested transactions.
//!
//! All commands that select follow one rule. A request that no event meets is an error. If several names are given with
//! one option (`--table`, `--rewrite-db`), it is enough that one occurs; a warning names the others.

use std::fmt::Display;

use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSet;

use crate::selection::EventSelection;

/// Carried from event to event, as part of a printer's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetRequests {
    /// A transaction of `--include-gtids` began.
    pub(crate) gtid: bool,
    /// `--exclude-gtids` has to do with these logs: they hold one of its transactions, or come after one.
    pub(crate) excluded: bool,
    /// An event was in the requested time range.
    pub(crate) time: bool,
    /// The end of the last event, with payloads not opened.
    pub(crate) end: u64,
    /// Events, as `--offset` counts them.
    pub(crate) entries: u64,
    /// The transaction of `--stop-before-gtid` is before the logs: nothing after it is shown.
    pub(crate) is_too_late: bool,
    /// An event of `--server-id`.
    pub(crate) server_id: bool,
    /// An event concerns `--database`.
    pub(crate) database: bool,
    /// Which of the tables of `--table` occurred, by their place.
    pub(crate) tables: OptionPlaces,
    /// Which rules of `--rewrite-db` applied, by their place.
    pub(crate) renames: OptionPlaces,
}

/// A set of places in a list of options. The 64th place stands for all later ones too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OptionPlaces(u64);

impl OptionPlaces {
    fn bit(place: usize) -> u64 {
        1 << place.min(u64::BITS as usize - 1)
    }

    pub(crate) fn insert(&mut self, place: usize) {
        self.0 |= Self::bit(place);
    }

    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & Self::bit(place) != 0
    }

    pub(crate) fn union(&mut self, other: OptionPlaces) {
        self.0 |= other.0;
    }
}

/// A request, and why it was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetRequest {
    /// The option and why it was not met.
    pub line: String,
    /// How much this matters.
    pub kind: UnmetKind,
}

/// How much an unmet request matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmetKind {
    /// An error, except where mysqlbinlog is stood in for: it exits with 0.
    Mysqlbinlogs,
    /// An error: the option exists only in binlogz, so mysqlbinlog has no behaviour to follow.
    OurOwn,
    /// A warning: something else that the option names is there.
    Partial,
}

use UnmetKind::{Mysqlbinlogs, OurOwn, Partial};

impl UnmetRequest {
    fn new(line: String, kind: UnmetKind) -> Self {
        UnmetRequest { line, kind }
    }

    /// No transaction of `--include-gtids`.
    pub fn include_gtids(set: &GtidSet) -> Self {
        UnmetRequest::new(no_gtids("--include-gtids", set), Mysqlbinlogs)
    }

    /// No transaction of `--gtids`, as `archive`, `undo` and `redo` call it.
    pub fn gtids(set: &GtidSet) -> Self {
        UnmetRequest::new(no_gtids("--gtids", set), OurOwn)
    }

    /// The transaction of `--stop-before-gtid` did not come.
    pub fn stop_before_gtid(gtid: &dyn Display) -> Self {
        UnmetRequest::new(format!("--stop-before-gtid={gtid}: this transaction is not there"), OurOwn)
    }

    /// The first log ends before `--start-position`.
    pub fn start_position(start: u64, end: u64) -> Self {
        UnmetRequest::new(format!("--start-position={start}: the log ends at {end}"), Mysqlbinlogs)
    }

    /// The log ends before `--stop-position`.
    pub fn stop_position(stop: u64, end: u64) -> Self {
        UnmetRequest::new(format!("--stop-position={stop}: the log ends at {end}"), Mysqlbinlogs)
    }

    /// Nothing is of the times of `--start-datetime` and `--stop-datetime`. `what`: "event" or "transaction".
    pub fn times(what: &str) -> Self {
        UnmetRequest::new(
            format!("--start-datetime, --stop-datetime: no {what} is of these times"),
            Mysqlbinlogs,
        )
    }

    /// Names given with one option of which `occurs` says whether they are there.
    fn names(
        option: &str,
        names: impl ExactSizeIterator<Item = String> + Clone,
        occurs: impl Fn(usize) -> bool,
        (one, several, kind): (&str, &str, UnmetKind),
    ) -> Vec<Self> {
        let absent: Vec<String> = names
            .clone()
            .enumerate()
            .filter(|(place, _)| !occurs(*place))
            .map(|(_, name)| format!("{option}={name}"))
            .collect();
        match absent.len() {
            0 => Vec::new(),
            1 if names.len() == 1 => vec![UnmetRequest::new(format!("{}: {one}", absent.join(" ")), kind)],
            count if count == names.len() => {
                vec![UnmetRequest::new(format!("{}: {several}", absent.join(" ")), kind)]
            }
            _ => absent.iter().map(|name| UnmetRequest::new(format!("{name}: {one}"), Partial)).collect(),
        }
    }

    /// Tables of `--table` without rows; `occurs` is asked by place.
    pub fn tables<'n>(
        tables: impl ExactSizeIterator<Item = (&'n [u8], &'n [u8])> + Clone,
        occurs: impl Fn(usize) -> bool,
    ) -> Vec<Self> {
        let names = tables.map(|(database, table)| {
            format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table))
        });
        let said = ("no row of this table is there", "no row of these tables is there", OurOwn);
        UnmetRequest::names("--table", names, occurs, said)
    }

    fn renames(rules: &[(Vec<u8>, Vec<u8>)], applied: OptionPlaces) -> Vec<Self> {
        let names = rules
            .iter()
            .map(|(from, to)| format!("{}->{}", String::from_utf8_lossy(from), String::from_utf8_lossy(to)));
        let databases: Vec<&[u8]> = rules.iter().map(|(from, _)| from.as_slice()).collect();
        let said =
            ("nothing there concerns this database", "nothing there concerns these databases", Mysqlbinlogs);
        // Of rules for one database the last one applies.
        UnmetRequest::names("--rewrite-db", names, |place| has_equal(applied, &databases, place), said)
    }
}

/// Whether one of the noted places has the name of this one.
fn has_equal<T: PartialEq>(noted: OptionPlaces, names: &[T], place: usize) -> bool {
    (0..names.len()).any(|other| noted.contains(other) && names.get(other) == names.get(place))
}

/// Whether a requested set has transactions that are among these.
fn have_common(requested: Option<&GtidSet>, gtids: &GtidSet) -> bool {
    requested.is_some_and(|set| !set.is_disjoint(gtids))
}

fn no_gtids(option: &str, set: &GtidSet) -> String {
    let set = set.to_string().replace('\n', "");
    format!("{option}={set}: none of these transactions is there")
}

impl MetRequests {
    /// Reads a log's previous GTIDs: whether they include the transaction to stop before, which then can't
    /// come any more.
    pub(crate) fn previous_gtids(&mut self, body: &[u8], selection: &EventSelection) -> bool {
        if selection.stop_before_gtid.is_none() && selection.exclude_gtids.is_none() {
            return false;
        }
        let Ok(PreviousGtidsEvent { gtid_set, .. }) = PreviousGtidsEvent::decode(body) else { return false };
        self.excluded |= have_common(selection.exclude_gtids.as_ref(), &gtid_set);
        self.is_too_late |= selection.stop_before_gtid.is_some_and(|stop| gtid_set.contains(&stop));
        self.is_too_late
    }

    /// The requests of a run that renames databases and shows everything, `--raw --rewrite-db`.
    pub fn unmet_renames(&self, renames: &[(Vec<u8>, Vec<u8>)]) -> Vec<UnmetRequest> {
        UnmetRequest::renames(renames, self.renames)
    }

    /// Notes which requests a transaction meets although it is not looked at, since nothing of it is shown.
    pub fn pass_over(&mut self, selection: &EventSelection, gtids: &GtidSet, are_in_time: bool) {
        self.gtid |= have_common(selection.include_gtids.as_ref(), gtids);
        self.excluded |= have_common(selection.exclude_gtids.as_ref(), gtids);
        self.time |= are_in_time;
    }

    /// Takes the requests met by transactions that were not looked at.
    pub fn add_passed_over(&mut self, other: MetRequests) {
        self.gtid |= other.gtid;
        self.excluded |= other.excluded;
        self.time |= other.time;
    }

    /// Notes that rows of a chosen table are shown, whose place in `--table` is this.
    pub(crate) fn note_rows(&mut self, place: Option<usize>) {
        self.database = true;
        if let Some(place) = place {
            self.tables.insert(place);
        }
    }

    /// Takes the names that occurred in events that another pass looked at.
    pub fn add_names(&mut self, other: MetRequests) {
        self.server_id |= other.server_id;
        self.database |= other.database;
        self.tables.union(other.tables);
        self.renames.union(other.renames);
    }

    /// The requests that were not met, at the end of the last log. `ended`: the output ended before the log
    /// did, as requested.
    pub fn unmet(
        &self,
        selection: &EventSelection,
        renames: &[(Vec<u8>, Vec<u8>)],
        stop: Option<u64>,
        ended: bool,
    ) -> Vec<UnmetRequest> {
        let mut unmet = Vec::new();
        if selection.offset > self.entries {
            let line = format!("--offset={}: the logs have {} events", selection.offset, self.entries);
            unmet.push(UnmetRequest::new(line, Mysqlbinlogs));
            return unmet;
        }
        if let Some(set) = selection.include_gtids.as_ref().filter(|_| !self.gtid) {
            unmet.push(UnmetRequest::include_gtids(set));
        }
        if (selection.start_time.is_some() || selection.stop_time.is_some()) && !self.time {
            unmet.push(UnmetRequest::times("event"));
        }
        if let Some(gtid) = selection.stop_before_gtid.as_ref().filter(|_| self.is_too_late) {
            let line = format!("--stop-before-gtid={gtid}: this transaction stands before the log");
            unmet.push(UnmetRequest::new(line, OurOwn));
        }
        if unmet.is_empty() {
            // Otherwise what is above is the reason why these did not occur.
            unmet.extend(self.unmet_names(selection, renames));
        }
        if ended {
            return unmet;
        }
        if let Some(set) = selection.exclude_gtids.as_ref().filter(|set| !set.is_empty() && !self.excluded) {
            let line = no_gtids("--exclude-gtids", set);
            unmet.push(UnmetRequest::new(line, Partial));
        }
        unmet.extend(selection.stop_before_gtid.as_ref().map(|gtid| UnmetRequest::stop_before_gtid(gtid)));
        if let Some(stop) = stop.filter(|&stop| stop != u64::MAX && stop > self.end) {
            unmet.push(UnmetRequest::stop_position(stop, self.end));
        }
        unmet
    }

    fn unmet_names(&self, selection: &EventSelection, renames: &[(Vec<u8>, Vec<u8>)]) -> Vec<UnmetRequest> {
        let mut unmet = Vec::new();
        if let Some(id) = selection.server_id.filter(|_| !self.server_id) {
            let line = format!("--server-id={id}: no event of this server is there");
            unmet.push(UnmetRequest::new(line, Mysqlbinlogs));
        }
        if let Some(name) = selection.database.as_deref().filter(|_| !self.database) {
            let name = String::from_utf8_lossy(name);
            unmet.push(UnmetRequest::new(
                format!("--database={name}: nothing there concerns this database"),
                Mysqlbinlogs,
            ));
        }
        let tables = selection.tables.iter().map(|(database, table)| (database.as_slice(), table.as_slice()));
        // A table that is named twice is noted once.
        let unmet_tables =
            UnmetRequest::tables(tables, |place| has_equal(self.tables, &selection.tables, place));
        unmet.extend(unmet_tables);
        unmet.extend(UnmetRequest::renames(renames, self.renames));
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_names_one_is_enough() {
        let tables = [("a", "t"), ("b", "t"), ("c", "t")];
        let unmet = |there: &'static [usize]| {
            let tables = tables.iter().map(|(database, table)| (database.as_bytes(), table.as_bytes()));
            UnmetRequest::tables(tables, move |place| there.contains(&place))
        };
        assert_eq!(unmet(&[0, 1, 2]), []);
        let some: Vec<_> = unmet(&[1]).into_iter().map(|unmet| (unmet.line, unmet.kind)).collect();
        let line = |name: &str| format!("--table={name}.t: no row of this table is there");
        assert_eq!(some, [(line("a"), Partial), (line("c"), Partial)]);
        let [UnmetRequest { line, kind }] = &unmet(&[])[..] else { panic!("one line") };
        assert_eq!(line, "--table=a.t --table=b.t --table=c.t: no row of these tables is there");
        assert_eq!(*kind, OurOwn);
    }

    #[test]
    fn of_two_rules_for_a_database_one_applies() {
        let rule = |from: &str, to: &str| (from.as_bytes().to_vec(), to.as_bytes().to_vec());
        let rules = [rule("a", "x"), rule("a", "y"), rule("b", "z")];
        let mut applied = OptionPlaces::default();
        applied.insert(1);
        let lines: Vec<_> = UnmetRequest::renames(&rules, applied)
            .into_iter()
            .map(|unmet| (unmet.line, unmet.kind))
            .collect();
        assert_eq!(lines, [("--rewrite-db=b->z: nothing there concerns this database".to_owned(), Partial)]);
    }

    #[test]
    fn places_beyond_the_last_bit_share_it() {
        let mut places = OptionPlaces::default();
        places.insert(70);
        assert!(places.contains(63) && places.contains(99) && !places.contains(62));
    }
}
