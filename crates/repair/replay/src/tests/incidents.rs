//! Incidents that are crossed, in a sample with incidents put into it.

use std::fs;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventType, gtid::Gtid};
use binlogz_flow::Input;
use binlogz_relay::StopAt;
use binlogz_testkit::spliced::{events_of, incident_like, log_of, type_of};

use super::{UUID, ended, gtids, samples};
use crate::{CrossedIncidents, IncidentWalk, RecoveredLogs};

/// The number of the first transaction in the sample that gets incidents, and of its last one.
const FIRST: u32 = 70;
const LAST: u32 = 369;

/// The sample of deletes, with an incident before transaction 73 and one that is all of transaction 75; and one at its end, if
/// it is asked for.
fn with_incidents(at_the_end: bool) -> Vec<u8> {
    let log = fs::read(&samples([5])[0]).unwrap();
    let mut with = Vec::new();
    let mut number = FIRST - 1;
    for event in events_of(&log) {
        let begins = type_of(event) == EventType::GTID;
        number += u32::from(begins);
        match (number, begins) {
            (73, true) => with.extend([incident_like(event), event.to_vec()]),
            (75, true) => with.extend([event.to_vec(), incident_like(event)]),
            (75, false) => {}
            _ if at_the_end && type_of(event) == EventType::ROTATE => {
                with.extend([incident_like(event), event.to_vec()]);
            }
            _ => with.push(event.to_vec()),
        }
    }
    assert_eq!(number, LAST);
    log_of(&log, with)
}

/// The incidents that a server crosses which has executed these.
fn crossed(log: &[u8], executed: &GtidSet) -> CrossedIncidents {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("binlog.000005");
    fs::write(&path, log).unwrap();
    let mut walk = IncidentWalk::new(executed);
    walk.read(0, Input::open(&path).unwrap(), 2, &mut |_| {}).unwrap();
    walk.ended()
}

/// How many are crossed, and the transactions that are nothing but one.
fn counted(crossed: &CrossedIncidents) -> (u64, Vec<String>) {
    let gtids: &[Gtid] = crossed.gtids();
    (crossed.of_log(0).events(), gtids.iter().map(Gtid::to_string).collect())
}

#[test]
fn an_incident_is_crossed_unless_a_later_transaction_is_there() {
    let log = with_incidents(false);
    let whole = vec![format!("{UUID}:75")];
    for (executed, expected) in [
        ("1-69", (2, whole.clone())),
        // Everything up to the first incident, and what comes after it.
        ("1-72", (2, whole.clone())),
        ("1-73", (1, whole.clone())),
        ("1-74", (1, whole.clone())),
        // The transaction that is an incident.
        ("1-75", (0, vec![])),
        ("1-369", (0, vec![])),
        // One is missing before: everything after it is applied.
        ("1-70:72-369", (1, vec![])),
    ] {
        assert_eq!(counted(&crossed(&log, &gtids(executed))), expected, "{executed}");
    }
}

#[test]
fn an_incident_at_the_end_is_crossed_by_all() {
    let log = with_incidents(true);
    for (executed, expected) in [("1-74", 2), ("1-75", 1), ("1-369", 1)] {
        assert_eq!(counted(&crossed(&log, &gtids(executed))).0, expected, "{executed}");
    }
}

#[test]
fn incidents_are_named_by_their_log() {
    let log = with_incidents(false);
    let crossed = crossed(&log, &GtidSet::new());
    let told: Vec<String> = crossed.of_log(0).iter().map(|unread| unread.to_string()).collect();
    assert_eq!(told.len(), 1, "two alike have one line: {told:?}");
    assert!(told[0].contains("the server lost changes here (LOST_EVENTS: no disk)"), "{told:?}");
    assert!(crossed.of_log(1).is_empty());
}

#[test]
fn only_logs_are_read_that_the_server_lacks_transactions_of() {
    let from = samples(4..=6);
    let folder = tempfile::tempdir().unwrap();
    let ended = ended(&from, &StopAt::End, folder.path()).0.unwrap();
    let logs = RecoveredLogs { from: &from, ended: &ended, folder: folder.path() };
    let to_read = |executed: &str| -> Vec<_> {
        let logs = logs.to_read(&gtids(executed)).unwrap();
        logs.into_iter().map(|log| (log.shown, log.path)).collect()
    };
    let named = |number: usize| (from[number].clone(), from[number].clone());
    // The last of them is cut where recovery ends.
    let last = (from[2].clone(), folder.path().join("binlog.000006"));
    assert_eq!(to_read("1-24"), [named(0), named(1), last.clone()]);
    assert_eq!(to_read("1-69"), [named(0), named(1), last.clone()]);
    assert_eq!(to_read("1-70"), [named(1), last.clone()]);
    assert_eq!(to_read("1-400"), [last]);
}

#[test]
fn a_gap_is_found_in_the_logs_order_whichever_server_the_transactions_are_of() {
    const OTHER: &str = "11111111-e565-11f1-89b6-02fc00000001";
    const UUID_OFFSET: usize = 19 + 1;
    let log = fs::read(&samples([5])[0]).unwrap();
    let mut number = FIRST - 1;
    let events = events_of(&log).into_iter().map(|event| {
        let mut own = event.to_vec();
        number += u32::from(type_of(event) == EventType::GTID);
        if number == 75 && type_of(event) == EventType::GTID {
            own[UUID_OFFSET..][..4].fill(0x11);
        }
        own
    });
    let log = log_of(&log, events);
    let gap = |executed: &str, other: &str| {
        let mut executed = gtids(executed);
        executed.union(&other.parse().unwrap());
        crossed(&log, &executed).gap().map(|(lacking, had)| (lacking.to_string(), had.to_string()))
    };
    let named = |lacking: &str, had: &str| Some((lacking.to_owned(), had.to_owned()));
    let other = format!("{OTHER}:75");
    assert_eq!(gap("1-69", ""), None);
    assert_eq!(gap("1-74", ""), None);
    assert_eq!(gap("1-74", &other), None);
    assert_eq!(gap("1-74:76-369", &other), None);
    assert_eq!(gap("1-70:72-369", &other), named(&format!("{UUID}:71"), &format!("{UUID}:72")));
    assert_eq!(gap("1-74:76-80", ""), named(&other, &format!("{UUID}:76")));
    assert_eq!(gap("1-73", &other), named(&format!("{UUID}:74"), &other));
}
