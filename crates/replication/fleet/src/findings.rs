//! Findings from a relay's status: its troubles, and why a replica lags or was refused: short, the worst first. `relay doctor` prints them
//! and `fleet` has the first of each source.

use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_figures::{FigureUnit, Tone, counted};

use crate::relay_document::{
    ClientsDocument, ErrorDocument, Rate, RelayDocument, ReplicaDocument, SourceDocument,
};

/// A source or replica further behind is one to be looked at; the relay's own page has the same.
const BEHIND_SECONDS: u64 = 60;
/// More closed files than this wait for the archive only if it takes none: it is looked after every five seconds.
const WAITING_FILES_MAX: u64 = 2;
/// With less room than this, binlog files of the usual size no longer fit.
const FREE_MIN: u64 = 2 << 30;
/// Refusals older than this are history.
const RECENT_SECONDS: u64 = 3600;
/// The kinds of errors that tell a client why it isn't served.
const REFUSALS: [&str; 2] = ["refused", "client"];
/// Words of a refusal, and how to get rid of it where the words don't say that.
const REMEDIES: [(&str, &str); 2] = [
    (
        "Replica has more GTIDs than the source has",
        "it has errant transactions, under the source's own GTIDs: compare gtid_executed of both, then build the replica anew, or \
         commit empty transactions with these GTIDs at the source",
    ),
    (
        "the source purged required binary logs",
        "what it lacks first is neither here nor in an archive of the relay: build the replica from a newer backup; a longer \
         retention in [store] or an [archive] keeps this from coming again",
    ),
];
/// How the relay's own word about archiving begins.
const ARCHIVING: &str = "archiving to ";
/// Kinds of errors that nothing else in the status tells.
const OF_THE_ARCHIVE: &str = "archive";

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayFinding {
    /// How bad it is.
    pub tone: Tone,
    /// The finding and its reason, in words.
    pub said: String,
}

impl RelayFinding {
    fn new(tone: Tone, said: impl Into<String>) -> RelayFinding {
        RelayFinding { tone, said: said.into() }
    }

    /// A word for it.
    pub fn word(&self) -> &'static str {
        match self.tone {
            Tone::Bad => "wrong",
            Tone::Warning => "look",
            Tone::Good | Tone::Neutral => "note",
        }
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Findings about all sources of a relay; `now` is in seconds since 1970.
pub fn of_relay(relay: &RelayDocument, now: u64) -> Vec<RelayFinding> {
    let mut found = Vec::new();
    for duty in relay.duties.iter().filter(|duty| !duty.up) {
        let why = duty.failure.as_deref().unwrap_or("no reason is known");
        found.push(RelayFinding::new(Tone::Bad, format!("the duty {} is not done: {why}", duty.name)));
    }
    let ClientsDocument { logged_in, turned_away } = relay.clients;
    if turned_away > 0 {
        let clients = counted(turned_away, "clients");
        // When that was is not known: the counter alone must not make a relay look bad for ever.
        found.push(RelayFinding::new(
            Tone::Neutral,
            format!(
                "{clients} turned away since the start, {logged_in} logged in now: more came than connections_max, \
                 connections_per_address_max or logging_in_max of [listen] allow, or they were too slow to log in"
            ),
        ));
    }
    found.extend(refusals(&relay.last_errors, now));
    worst_first(found)
}

/// A source and its replicas.
pub fn of_source(source: &SourceDocument, now: u64) -> Vec<RelayFinding> {
    let mut found = Vec::new();
    if let Some(why) = &source.failure {
        return vec![RelayFinding::new(Tone::Bad, format!("it is not served: {why}"))];
    }
    found.extend(source.troubles.iter().map(|trouble| RelayFinding::new(Tone::Bad, trouble)));
    found.extend(receiving(source));
    found.extend(source.replicas.iter().filter_map(|replica| of_replica(replica, source)));
    found.extend(source.replicas.iter().filter_map(unreadable));
    found.extend(source.replicas.iter().filter_map(no_copy));
    found.extend(refusals(&source.last_errors, now));
    found.extend(archiving(source, now));
    if let Some(free) = source.disk_free_bytes.filter(|free| *free < FREE_MIN) {
        let free = FigureUnit::Bytes.text(free as f64);
        let said = format!("the disk of the log has only {free} left: receiving ends when it is full");
        found.push(RelayFinding::new(Tone::Warning, said));
    }
    let expanded = expanded(source);
    if expanded > 0 {
        let replicas = counted(expanded as u64, "replicas");
        let said =
            format!("{replicas} served uncompressed: what reads there can't read compressed transactions");
        found.push(RelayFinding::new(Tone::Neutral, said));
    }
    worst_first(found)
}

/// Replicas that are served without compressed transactions.
pub(crate) fn expanded(source: &SourceDocument) -> usize {
    source.replicas.iter().filter(|replica| replica.form == "uncompressed").count()
}

fn worst_first(mut found: Vec<RelayFinding>) -> Vec<RelayFinding> {
    found.sort_by_key(|finding| std::cmp::Reverse(finding.tone));
    found
}

fn duration(seconds: u64) -> String {
    FigureUnit::Seconds.text(seconds as f64)
}

fn receiving(source: &SourceDocument) -> Option<RelayFinding> {
    let receiving = &source.source;
    let why = receiving.error.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let since = duration(receiving.down_seconds.unwrap_or(receiving.phase_seconds));
    let server = &receiving.server;
    let said = match (receiving.phase.as_str(), receiving.lag_seconds) {
        ("waiting", _) => {
            return Some(RelayFinding::new(Tone::Bad, format!("{server} is down for {since}{why}")));
        }
        ("connecting", _) => format!("connecting to {server} for {since}{why}"),
        ("stopped", _) => format!("receiving was stopped {since} ago; START REPLICA at the relay goes on"),
        ("receiving", Some(lag)) if lag >= BEHIND_SECONDS => {
            let why = held_by(source.rates.receive, "receive_rate")
                .map_or(String::new(), |rate| format!(": {rate} holds it back"));
            format!("the relay itself is {} behind {server}, and so is each replica{why}", duration(lag))
        }
        _ => return None,
    };
    Some(RelayFinding::new(Tone::Warning, said))
}

/// The rate that makes work wait at present, as the configuration names it.
fn held_by(rate: Rate, name: &str) -> Option<String> {
    let own = rate.limit.map(|limit| (limit, "its"));
    let shared = rate.shared_limit.map(|limit| (limit, "[limits]"));
    let lowest = own.into_iter().chain(shared).min_by_key(|(limit, _)| *limit);
    let (limit, whose) = lowest.filter(|_| rate.is_waiting)?;
    Some(format!("{whose} {name} of {} a second", FigureUnit::Bytes.text(limit as f64)))
}

/// Why a replica lags.
fn of_replica(replica: &ReplicaDocument, source: &SourceDocument) -> Option<RelayFinding> {
    let lag = replica.lag_seconds.filter(|lag| *lag >= BEHIND_SECONDS)?;
    let of_relay = source.source.lag_seconds.unwrap_or(0);
    let lacks = FigureUnit::Bytes.text(replica.lag_bytes as f64);
    let why = match replica.form.as_str() {
        _ if of_relay.saturating_add(BEHIND_SECONDS) > lag => "the relay is as far behind itself",
        "received" => {
            "it is sent stored bytes as they are, so it or the network reads too slowly, or it has just begun"
        }
        _ => {
            "what it is sent has to be converted first: it, the network or the relay's processors are too slow, or it has just begun"
        }
    };
    let ReplicaDocument { server_id, user, address, form, .. } = replica;
    let said = format!(
        "replica {server_id} ({user} from {address}, {form}) is {} behind and lacks {lacks}: {why}",
        duration(lag)
    );
    Some(RelayFinding::new(Tone::Warning, said))
}

/// A replica that is sent masked rows, or not all of them: the source can't be restored from it.
fn no_copy(replica: &ReplicaDocument) -> Option<RelayFinding> {
    let ReplicaDocument { server_id, user, address, form, semi_sync, .. } = replica;
    if replica.is_copy != Some(false) {
        return None;
    }
    let what = if form == "masked" { "masked rows" } else { "the rows of some tables" };
    let waits = if *semi_sync { ", and wait_for_replicas doesn't count its acknowledgements" } else { "" };
    let said = format!(
        "replica {server_id} ({user} from {address}) is sent {what}: it is no copy of the source{waits}"
    );
    Some(RelayFinding::new(Tone::Neutral, said))
}

/// A replica that is sent compressed transactions, and may stop at them or lose their rows: its account or a file's name asked for them.
fn unreadable(replica: &ReplicaDocument) -> Option<RelayFinding> {
    let ReplicaDocument { server_id, user, address, form, reads_compressed, .. } = replica;
    let (tone, how) = match form.as_str() {
        _ if *reads_compressed != Some(false) => return None,
        "compressed" => (Tone::Warning, "is sent compressed transactions"),
        // As the source has them: they need not be compressed.
        "received" => (Tone::Neutral, "is sent what the source compressed as it is"),
        _ => return None,
    };
    let said = format!(
        "replica {server_id} ({user} from {address}, {form}) {how}, and is not known to read that: MySQL before 8.0.20 and MariaDB \
         stop there, and some clients lose the rows without an error; form = \"uncompressed\" in its account gives it what all can read"
    );
    Some(RelayFinding::new(tone, said))
}

/// Clients that were refused, each reason once.
fn refusals(errors: &[ErrorDocument], now: u64) -> Vec<RelayFinding> {
    let mut found: Vec<(&ErrorDocument, String, u64)> = Vec::new();
    for error in errors.iter().filter(|error| REFUSALS.contains(&error.kind.as_str())) {
        if now.saturating_sub(error.time) > RECENT_SECONDS {
            continue;
        }
        let reason = without_port(&error.text);
        match found.iter_mut().find(|(_, known, _)| *known == reason) {
            Some((_, _, count)) => *count += 1,
            None => found.push((error, reason, 1)),
        }
    }
    let finding = |(error, reason, count): (&ErrorDocument, String, u64)| {
        let ago = duration(now.saturating_sub(error.time));
        let often = if count > 1 { format!(", {count} times of late") } else { String::new() };
        let remedy = REMEDIES
            .iter()
            .find(|(words, _)| reason.contains(words))
            .map_or(String::new(), |(_, remedy)| format!(": {remedy}"));
        RelayFinding::new(
            Tone::Warning,
            format!("a client was refused {ago} ago{often}: {}{remedy}", reason.trim_end_matches('.')),
        )
    };
    found.into_iter().map(finding).collect()
}

/// `from 10.0.0.5: why` of `connection 17 from 10.0.0.5:40112: why`: both numbers differ each time the same client tries.
fn without_port(text: &str) -> String {
    let peer_and_why = text
        .strip_prefix("connection ")
        .and_then(|rest| rest.split_once(" from "))
        .and_then(|(_, rest)| rest.split_once(": "));
    match peer_and_why {
        Some((peer, why)) => format!("from {}: {why}", peer.rsplit_once(':').map_or(peer, |(host, _)| host)),
        None => text.to_owned(),
    }
}

fn archiving(source: &SourceDocument, now: u64) -> Option<RelayFinding> {
    let archive = source.archive.as_ref()?;
    if source.troubles.iter().any(|trouble| trouble.starts_with(ARCHIVING)) {
        // It is told already.
        return None;
    }
    let waiting = archive.waiting_files;
    let is_recent = |error: &&ErrorDocument| now.saturating_sub(error.time) <= RECENT_SECONDS;
    let mut errors = source.last_errors.iter().filter(|error| error.kind == OF_THE_ARCHIVE);
    let error = errors.find(is_recent);
    match error {
        _ if waiting == 0 => None,
        Some(error) => {
            let files = counted(waiting, "closed files");
            Some(RelayFinding::new(
                Tone::Bad,
                format!("{files} not archived to {}: {}", archive.to, error.text),
            ))
        }
        None if waiting > WAITING_FILES_MAX => {
            let files = counted(waiting, "closed files");
            let why = held_by(source.rates.archive, "archive_rate")
                .map_or(String::new(), |rate| format!(": {rate} holds it back"));
            Some(RelayFinding::new(
                Tone::Warning,
                format!("{files} wait for the archive {}{why}", archive.to),
            ))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> Vec<String> {
        let relay = RelayDocument::read(json).unwrap();
        of_source(&relay.sources[0], 10_000)
            .into_iter()
            .map(|found| format!("{} {}", found.word(), found.said))
            .collect()
    }

    #[test]
    fn who_is_not_known_to_read_what_it_is_sent_is_told() {
        let found = |form: &str, reads: bool| {
            source(&format!(
                r#"{{"source": {{"server": "db1:3306", "phase": "receiving", "lag_seconds": 0}},
                    "replicas": [{{"server_id": 7, "user": "a", "address": "10.0.0.7:1", "form": "{form}",
                                   "reads_compressed": {reads}, "lag_seconds": 0, "lag_bytes": 0}}]}}"#
            ))
        };
        for (form, expected) in [
            (
                "received",
                "note replica 7 (a from 10.0.0.7:1, received) is sent what the source compressed as it is, and is not known",
            ),
            (
                "compressed",
                "look replica 7 (a from 10.0.0.7:1, compressed) is sent compressed transactions, and is not known",
            ),
        ] {
            let told = found(form, false);
            assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
            assert_eq!(found(form, true), [""; 0]);
        }
    }

    #[test]
    fn a_replica_that_is_no_copy_is_named() {
        let found = |told: &str| {
            source(&format!(
                r#"{{"source": {{"server": "db1:3306", "phase": "receiving", "lag_seconds": 0}},
                    "replicas": [{{"server_id": 7, "user": "a", "address": "10.0.0.7:1", "lag_seconds": 0, "lag_bytes": 0, {told}}}]}}"#
            ))
        };
        let who = "note replica 7 (a from 10.0.0.7:1) is sent";
        let masked = format!("{who} masked rows: it is no copy of the source");
        assert_eq!(found(r#""form": "masked", "is_copy": false"#), [masked.as_str()]);
        let counts = "wait_for_replicas doesn't count its acknowledgements";
        assert_eq!(
            found(r#""form": "masked", "is_copy": false, "semi_sync": true"#),
            [format!("{masked}, and {counts}")]
        );
        let some = found(r#""form": "received", "is_copy": false"#);
        assert_eq!(some, [format!("{who} the rows of some tables: it is no copy of the source")]);
        for whole in [r#""form": "received", "is_copy": true, "semi_sync": true"#, r#""form": "received""#] {
            assert_eq!(found(whole), [""; 0]);
        }
    }

    #[test]
    fn a_lagging_replica_and_a_refused_client_are_told_why() {
        let well = r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 0}}"#;
        assert_eq!(source(well), [""; 0]);
        let found = source(
            r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 0},
                "disk_free_bytes": 1073741824,
                "archive": {"to": "s3://backup/db1", "waiting_files": 1},
                "replicas": [
                  {"server_id": 7, "user": "a", "address": "10.0.0.7:1", "form": "received", "lag_seconds": 90, "lag_bytes": 2048},
                  {"server_id": 8, "user": "b", "address": "10.0.0.8:1", "form": "uncompressed", "lag_seconds": 3, "lag_bytes": 0}],
                "last_errors": [
                  {"time": 9990, "kind": "refused", "text": "connection 9 from 10.0.0.9:40112: binlog.000001 was purged"},
                  {"time": 9980, "kind": "refused", "text": "connection 8 from 10.0.0.9:40110: binlog.000001 was purged"},
                  {"time": 9970, "kind": "archive", "text": "archive s3://backup/db1: no route to host"},
                  {"time": 1, "kind": "refused", "text": "long ago"}]}"#,
        );
        assert_eq!(
            found,
            [
                "wrong 1 closed file not archived to s3://backup/db1: archive s3://backup/db1: no route to host",
                "look replica 7 (a from 10.0.0.7:1, received) is 90 s behind and lacks 2.0 KiB: it is sent stored bytes as they \
                 are, so it or the network reads too slowly, or it has just begun",
                "look a client was refused 10 s ago, 2 times of late: from 10.0.0.9: binlog.000001 was purged",
                "look the disk of the log has only 1.0 GiB left: receiving ends when it is full",
                "note 1 replica served uncompressed: what reads there can't read compressed transactions",
            ]
        );
    }

    #[test]
    fn a_rate_that_holds_something_back_is_named() {
        let found = source(
            r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 300},
                "archive": {"to": "arc", "waiting_files": 7},
                "rates": {"receive": {"limit": 1048576, "shared_limit": 2097152, "is_waiting": true},
                          "archive": {"limit": null, "shared_limit": 65536, "is_waiting": true}}}"#,
        );
        assert_eq!(
            found,
            [
                "look the relay itself is 5 min behind db1:3306, and so is each replica: its receive_rate of 1.0 MiB a second \
                 holds it back",
                "look 7 closed files wait for the archive arc: [limits] archive_rate of 64.0 KiB a second holds it back",
            ]
        );
    }

    #[test]
    fn a_replica_behind_a_relay_that_is_behind_itself_is_not_to_blame() {
        let found = source(
            r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 300},
                "replicas": [{"server_id": 7, "form": "received", "lag_seconds": 310}]}"#,
        );
        assert_eq!(found[0], "look the relay itself is 5 min behind db1:3306, and so is each replica");
        assert!(found[1].ends_with(": the relay is as far behind itself"), "{found:?}");
        let down = source(
            r#"{"source": {"server": "db1:3306", "phase": "waiting", "phase_seconds": 9, "error": "refused"}}"#,
        );
        assert_eq!(down, ["wrong db1:3306 is down for 9 s: refused"], "of an earlier version");
        // The phase is that of the last attempt.
        let down = source(
            r#"{"source": {"server": "db1:3306", "phase": "waiting", "phase_seconds": 20, "down_seconds": 76, "error": "refused"}}"#,
        );
        assert_eq!(down, ["wrong db1:3306 is down for 76 s: refused"]);
        let connecting = source(
            r#"{"source": {"server": "db1:3306", "phase": "connecting", "phase_seconds": 0, "down_seconds": 76}}"#,
        );
        assert_eq!(connecting, ["look connecting to db1:3306 for 76 s"]);
        // The source's reset refuses no client.
        let reset = source(
            r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 0},
                "last_errors": [{"time": 9990, "kind": "source", "text": "the source's log was reset or put back: it is shorter"}]}"#,
        );
        assert_eq!(reset, [""; 0]);
        let overdue = source(
            r#"{"source": {"server": "db1:3306", "phase": "receiving", "lag_seconds": 0},
                "troubles": ["archiving to arc is overdue: 3 closed files wait, and none was archived for 901 s"],
                "archive": {"to": "arc", "waiting_files": 3},
                "last_errors": [{"time": 9970, "kind": "archive", "text": "archive arc: no route to host"}]}"#,
        );
        assert_eq!(
            overdue,
            ["wrong archiving to arc is overdue: 3 closed files wait, and none was archived for 901 s"]
        );
        let turned_away =
            r#"{"sources": [], "clients": {"turned_away": 1}, "duties": [{"name": "accept", "up": false}]}"#;
        let found = of_relay(&RelayDocument::read(turned_away).unwrap(), 10_000);
        assert_eq!(found.iter().map(RelayFinding::word).collect::<Vec<_>>(), ["wrong", "note"]);
        assert_eq!(found[0].said, "the duty accept is not done: no reason is known");
        assert!(RelayDocument::read("{}").is_err() && RelayDocument::read("no").is_err());
    }
}
