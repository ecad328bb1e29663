//! Replays recorded conversations with MySQL 9.7.4 and MariaDB 10.11, in pieces of any size, whole and
//! damaged. They were recorded by `lab/bench-programs/src/bin/record-sessions.rs`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod common;

use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_testkit::mutate;
use binlogz_testkit::random::Random;
use binlogz_wire::command::Command;
use binlogz_wire::packet::{MessageReader, PacketReader};
use binlogz_wire::session::{SourceSession, SourceStep};
use binlogz_wire::{Error, Result};
use common::{Recorded, SESSIONS, options};

/// The speaker, and the bytes sent.
type Turn = (char, Vec<u8>);

fn turns(session: &Recorded) -> Vec<Turn> {
    let path = format!("{}/tests/sessions/{}", env!("CARGO_MANIFEST_DIR"), session.name);
    let text = std::fs::read_to_string(path).expect("a recorded session");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex");
    text.lines()
        .map(|line| (line.as_bytes()[0] as char, line.as_bytes()[2..].chunks(2).map(byte).collect()))
        .collect()
}

/// The outcome of a conversation.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    sent: Vec<u8>,
    events: Vec<(u8, u64, Vec<u8>)>,
    ended: bool,
}

/// Feeds in the server's bytes, in pieces of `size` bytes.
fn replay(session: &Recorded, server: &[u8], size: usize) -> Result<Outcome> {
    let mut client = SourceSession::new(options(session), Duration::ZERO);
    let mut outcome = Outcome::default();
    for mut piece in server.chunks(size) {
        loop {
            let input = piece;
            let step = client.poll(&mut piece, Duration::ZERO)?;
            outcome.sent.extend_from_slice(client.pending());
            client.sent(client.pending().len());
            match step {
                SourceStep::NeedInput | SourceStep::StartTls => break,
                SourceStep::End => {
                    outcome.ended = true;
                    break;
                }
                SourceStep::Event => {
                    let event = client.event(input).expect("an event");
                    if event.begins {
                        outcome.events.push((event.header.event_type.0, event.offset, Vec::new()));
                    }
                    let (.., bytes) = outcome.events.last_mut().expect("it began");
                    bytes.extend_from_slice(event.bytes);
                    assert!(!event.ends || bytes.len() == event.header.event_size as usize);
                }
            }
        }
        assert!(piece.is_empty() || outcome.ended, "all of it was taken");
    }
    Ok(outcome)
}

fn said(turns: &[Turn], who: char) -> Vec<u8> {
    turns.iter().filter(|turn| turn.0 == who).flat_map(|turn| turn.1.clone()).collect()
}

#[test]
fn the_same_is_said_however_the_bytes_arrive() {
    for session in SESSIONS {
        let turns = turns(session);
        let server = said(&turns, 'S');
        if session.wrong_password {
            for size in [1, 7, server.len()] {
                match replay(session, &server, size) {
                    Err(Error::Server { error, .. }) => assert_eq!(error.code, 1045),
                    other => panic!("{}: {other:?}", session.name),
                }
            }
            continue;
        }
        let whole = replay(session, &server, server.len()).expect(session.name);
        assert!(whole.ended, "{}", session.name);
        assert_eq!(whole.sent, said(&turns, 'C'), "{}", session.name);
        for size in [1, 2, 3, 5, 19, 20, 64, 1000] {
            assert_eq!(
                replay(session, &server, size).expect(session.name),
                whole,
                "{} by {size}",
                session.name
            );
        }
    }
}

#[test]
fn events_are_the_servers_with_their_offsets() {
    for session in SESSIONS.iter().filter(|session| !session.wrong_password && !session.mariadb) {
        let server = said(&turns(session), 'S');
        let events = replay(session, &server, server.len()).expect(session.name).events;
        let types: Vec<EventType> = events.iter().map(|event| EventType(event.0)).collect();
        assert_eq!(types.first(), Some(&EventType::ROTATE), "{}", session.name);
        assert_eq!(types.get(1), Some(&EventType::FORMAT_DESCRIPTION));
        assert!(types.contains(&EventType::TRANSACTION_PAYLOAD) && types.contains(&EventType::GTID_TAGGED));
        let mut expected = 4;
        for (event_type, offset, bytes) in &events {
            assert_eq!(*offset, expected, "{} type {event_type}", session.name);
            let artificial = bytes[17] & 0x20 != 0;
            expected = match EventType(*event_type) {
                EventType::ROTATE => 4,
                _ if artificial => expected,
                _ => expected + bytes.len() as u64,
            };
            if EventType(*event_type) == EventType::ROTATE && !artificial {
                // The next file begins with a rotate that is in no file, at 4.
                expected = 4;
            }
        }
    }
}

#[test]
fn the_clients_side_reads_back_as_what_it_meant() {
    let expected_replica = [
        "SELECT UNIX_TIMESTAMP()",
        "SELECT @@GLOBAL.SERVER_ID",
        "SET @master_heartbeat_period = 30000000000, @source_heartbeat_period = 30000000000",
        "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
        "SELECT @source_binlog_checksum",
        "SELECT @@GLOBAL.GTID_MODE",
        "SELECT @@GLOBAL.SERVER_UUID",
        "SET @slave_uuid = '5a5a5a5a-e54d-11f1-848d-02fc00000001', @replica_uuid = '5a5a5a5a-e54d-11f1-848d-02fc00000001'",
        // This server has no semi-sync: it is asked under both names.
        "SELECT @@global.rpl_semi_sync_source_enabled",
        "SELECT @@global.rpl_semi_sync_master_enabled",
        "register 4711 replica-1:3307",
        "dump",
    ];
    let expected_mysqlbinlog = [
        "SELECT VERSION()",
        "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'",
        "dump",
    ];
    let mut expected_of_mariadb = expected_mysqlbinlog.to_vec();
    expected_of_mariadb.insert(1, "SET @mariadb_slave_capability = 4");
    for session in SESSIONS.iter().filter(|session| !session.wrong_password) {
        let mut commands = Vec::new();
        for (_, bytes) in turns(session).iter().filter(|turn| turn.0 == 'C' && turn.1[3] == 0) {
            let (mut packets, mut messages) = (PacketReader::default(), MessageReader::default());
            let message = messages.next(&mut packets, &mut bytes.as_slice()).expect("packets");
            commands.push(match Command::decode(message.expect("whole")).expect("a command") {
                Command::Query(sql) => String::from_utf8_lossy(sql).into_owned(),
                Command::RegisterReplica(replica) => format!(
                    "register {} {}:{}",
                    replica.server_id,
                    String::from_utf8_lossy(replica.host),
                    replica.port
                ),
                Command::Dump(request) => {
                    assert!(request.is_non_blocking());
                    "dump".into()
                }
                other => format!("{other:?}"),
            });
        }
        let expected: &[&str] = match session {
            session if session.replica => &expected_replica,
            session if session.mariadb => &expected_of_mariadb,
            _ => &expected_mysqlbinlog,
        };
        assert_eq!(commands, expected, "{}", session.name);
    }
}

#[test]
fn damaged_conversations_never_panic() {
    let seed = mutate::seed();
    let mut refused = 0;
    for session in SESSIONS {
        let server = said(&turns(session), 'S');
        for index in 0..2000 {
            let (damaged, done) = mutate::mutate(&server, seed, index);
            let size = 1 + Random::new(seed ^ index).below(200);
            let outcome = std::panic::catch_unwind(|| replay(session, &damaged, size));
            let outcome = outcome.unwrap_or_else(|_| panic!("{} in pieces of {size}: {done}", session.name));
            refused += u32::from(outcome.is_err());
        }
    }
    assert!(refused > 1000, "{refused} damages were noticed");
}

#[test]
fn silence_ends_a_session_at_its_deadline() {
    let session = &SESSIONS[0];
    let turns = turns(session);
    let mut client = SourceSession::new(options(session), Duration::from_secs(100));
    assert_eq!(client.deadline(), Some(Duration::from_secs(110)), "login has its time");
    assert_eq!(client.poll(&mut &[][..], Duration::from_secs(109)).expect("patience"), SourceStep::NeedInput);
    let error = client.poll(&mut &[][..], Duration::from_secs(110)).expect_err("silence").to_string();
    assert_eq!(error, "no answer within 10 s while logging in");

    // Up to the dump, then a delay two bytes into the stream.
    let server = said(&turns, 'S');
    let mut client = SourceSession::new(options(session), Duration::ZERO);
    let mut input = server.as_slice();
    while client.position().is_none() {
        client.poll(&mut input, Duration::ZERO).expect("a session");
    }
    let mut rest = input.get(..2).expect("more");
    client.poll(&mut rest, Duration::from_secs(50)).expect("late");
    assert_eq!(client.deadline(), Some(Duration::from_secs(110)), "every byte counts");
    let error = client.poll(&mut &[][..], Duration::from_secs(110)).expect_err("silence").to_string();
    assert_eq!(error, "no answer within 60 s while reading binlog.000001 at 4");
    let closed = client.closed().to_string();
    assert_eq!(closed, "connection ended by the server while reading binlog.000001 at 4");
}

#[test]
fn a_flipped_bit_is_noticed_by_whoever_asked_for_it() {
    let session = &SESSIONS[0];
    let mut server = said(&turns(session), 'S');
    let text = b"coffee";
    let at = server.windows(text.len()).position(|window| window == text).expect("a row that came plain");
    server[at] ^= 1;
    for size in [1, 100, server.len()] {
        let error = replay(session, &server, size).expect_err("a damaged event").to_string();
        assert!(error.starts_with("malformed answer while reading binlog.000001 at"), "{error}");
        assert!(error.contains("WriteRows event: checksum is"), "{error}");
    }
    let mut trusting = options(session);
    trusting.verify_checksums = false;
    let mut client = SourceSession::new(trusting, Duration::ZERO);
    let mut input = server.as_slice();
    while client.poll(&mut input, Duration::ZERO).expect("trust") != SourceStep::End {}
}
