//! The page of relays that are well, without their source, broken, and asked by clients with hostile names.

use std::collections::BTreeMap;

use binlogz_testkit::browser::assert_readable;
use binlogz_testkit::{Tool, require_tool};

use super::*;
use crate::housekeeping::checking::ArchiveCheckStatus;
use crate::housekeeping::scrub::ScrubStatus;
use crate::rates::RatesStatus;
use crate::receive::control::Phase;
use crate::receive::source_status::SourceStatus;
use crate::telemetry::duties::DutyStatus;
use crate::telemetry::meters::RememberedError;
use crate::watch::http::history::Traffic;
use crate::watch::relay_status::{NamedStatus, RelayStatus};
use crate::watch::status::{LogPosition, LogStatus, StatusBytes, StatusClients};

const EVIL: &str = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";

fn at(position: u64) -> LogPosition {
    LogPosition { file: "binlog.000042".to_owned(), number: 42, position }
}

fn replica(connection: u32, lag_seconds: Option<u64>) -> ReplicaStatus {
    ReplicaStatus {
        connection,
        user: "replication".to_owned(),
        address: format!("192.0.2.{connection}:51234"),
        server_id: 4_294_967_000 + connection,
        server_uuid: String::new(),
        profile: "mysql-8.3",
        reads_compressed: true,
        left_out_account_statements: 0,
        left_out_rows_events: 0,
        prepared_xa_transactions: 0,
        translated_xa_transactions: 0,
        form: "uncompressed",
        lineage: 1,
        place: at(107_374_182),
        is_copy: true,
        semi_sync: false,
        acknowledged: None,
        acknowledgements: 0,
        lag_bytes: lag_seconds.unwrap_or(7) * 12_345,
        lag_seconds,
        bytes: 5_000_000_000,
        connected_seconds: 7_300,
    }
}

/// A relay in a phase, this far behind.
fn status(phase: Phase, lag_seconds: Option<u64>) -> SourceReport {
    SourceReport {
        version: "0.1.0",
        uptime_seconds: 90_000,
        troubles: Vec::new(),
        duties: Vec::new(),
        source: SourceStatus {
            server: "db1.example.com:3306".to_owned(),
            phase,
            // The phase changes with each attempt.
            phase_seconds: if phase == Phase::Waiting { 9 } else { 754 },
            down_seconds: matches!(phase, Phase::Waiting).then_some(754),
            error: None,
            lag_seconds,
            replicas_waited_for: 0,
        },
        log: Some(LogStatus {
            lineage: 1,
            source_uuid: "7d2a1f0e-0000-11ef-8000-0242ac120002".to_owned(),
            files: 3,
            first_file: "binlog.000040".to_owned(),
            bytes: 1_073_741_824,
            written: at(123_456_789),
            durable: at(123_456_789),
            gtid_executed: "7d2a1f0e-0000-11ef-8000-0242ac120002:1-123456789".to_owned(),
        }),
        lineages: Vec::new(),
        archive: None,
        scrub: ScrubStatus::default(),
        rates: RatesStatus::default(),
        disk_free_bytes: None,
        damage: Vec::new(),
        bytes: StatusBytes {
            received: 9_000_000_000,
            stored: 3_000_000_000,
            served: 18_000_000_000,
            transactions: 7,
        },
        replicas: vec![replica(1, Some(0)), replica(2, Some(3)), replica(3, Some(754)), replica(4, None)],
        clients: StatusClients { logged_in: 4, logging_in: 0, turned_away: 1 },
        tls_fingerprint: None,
        errors: BTreeMap::new(),
        last_errors: Vec::new(),
    }
}

/// The source is gone.
fn down() -> SourceReport {
    let mut status = status(Phase::Waiting, Some(754));
    let error = "connect to db1.example.com:3306: Connection refused (os error 111)";
    status.source.error = Some(error.to_owned());
    status.errors.insert("source", 12);
    status.last_errors =
        vec![RememberedError { time: crate::time::now() - 9, kind: "source", text: error.to_owned() }];
    status
}

/// Somebody must do something.
fn failed() -> SourceReport {
    let mut status = status(Phase::Failed, Some(90));
    let why = "write binlog.000042: No space left on device (os error 28)";
    status.source.error = Some(why.to_owned());
    status.troubles = vec![
        "binlog.000041 at 1337: event size 12 is below the 19-byte header".to_owned(),
        format!("receiving has failed: {why}"),
    ];
    status.damage = vec!["binlog.000041 at 1337: event size 12 is below the 19-byte header".to_owned()];
    status.duties =
        vec![DutyStatus { name: "retain", up: false, seconds: 9, failure: Some("no".to_owned()) }];
    status
}

/// An hour in which the source was away for a while.
fn hour() -> Vec<Sample> {
    let sample = |place: u64| {
        let lag_seconds = match place {
            100..110 => None,
            110..190 => Some((place - 110) * 10),
            _ => Some(place % 3),
        };
        let level = if (110..190).contains(&place) { 0.0 } else { 1e6 + (place % 17) as f64 * 4e4 };
        Sample {
            time: crate::time::now() - 3600 + place * 10,
            lag_seconds,
            traffic: Some(Traffic { received: level, stored: level * 0.4, served: level * 2.0 }),
            replicas: vec![(1, Some(0)), (2, Some(place % 5)), (3, Some(place * 2)), (4, None)],
        }
    };
    (0..360).map(sample).collect()
}

/// An hour at whose end the source has been away for 754 s.
fn hour_without_source() -> Vec<Sample> {
    let mut samples = hour();
    for (place, sample) in samples.iter_mut().skip(285).enumerate() {
        sample.lag_seconds = Some(place as u64 * 10);
        sample.traffic = Some(Traffic { received: 0.0, stored: 0.0, served: 0.0 });
    }
    samples
}

#[test]
fn a_dead_source_does_not_look_like_a_live_one() {
    let lead = |status: &SourceReport| {
        let page = html("", status, &hour(), None);
        let (_, lead) = page.split_once("<section class=\"lead ").unwrap();
        lead.split_once("</section>").unwrap().0.to_owned()
    };
    let beginning = |tone: &str, sign: &str, word: &str| {
        format!("{tone}\">\n<span class=\"badge {tone}\"><i aria-hidden=\"true\">{sign}</i> {word}</span>\n")
    };
    let live = lead(&status(Phase::Receiving, Some(0)));
    assert!(live.starts_with(&beginning("good", "●", "Live")), "{live}");
    let dead = lead(&down());
    assert!(dead.starts_with(&beginning("bad", "■", "Source down")), "{dead}");
    assert!(dead.contains("waiting for 12 min") && dead.contains("Connection refused"), "{dead}");
    for (status, tone, sign, word) in [
        (failed(), "bad", "■", "Failed"),
        (
            SourceReport { troubles: vec!["no".to_owned()], ..status(Phase::Receiving, Some(0)) },
            "bad",
            "■",
            "Needs attention",
        ),
        (status(Phase::Stopped, Some(9)), "warning", "▲", "Stopped"),
        (status(Phase::Connecting, None), "warning", "▲", "Connecting"),
        (status(Phase::Receiving, Some(60)), "warning", "▲", "Behind"),
        (status(Phase::Receiving, None), "neutral", "○", "Beginning"),
    ] {
        let lead = lead(&status);
        assert!(lead.starts_with(&beginning(tone, sign, word)), "{word}: {lead}");
    }
    // No replica of a dead source is live either.
    let live = html("", &status(Phase::Receiving, Some(0)), &hour(), None);
    assert_eq!((live.matches("</i> Live<").count(), live.matches("</i> Behind<").count()), (3, 1));
    let dead = html("", &down(), &hour(), None);
    assert_eq!((dead.matches("</i> Live<").count(), dead.matches("</i> Has all<").count()), (0, 1));
}

/// A relay with sources in several states, one of which could not be opened.
fn several() -> RelayStatus {
    let statuses = [
        ("payments-of-all-of-europe", Ok(status(Phase::Receiving, Some(3)))),
        ("behind", Ok(status(Phase::Receiving, Some(754)))),
        ("orders", Ok(down())),
        ("users", Ok(failed())),
        ("lost", Err(format!("open lost/binlog.index: {EVIL}"))),
    ];
    let named = |(name, status): (&str, Result<SourceReport, String>)| {
        let mut named = NamedStatus::new(name.to_owned(), status);
        named.lag_history_seconds = Some(hour().iter().step_by(4).map(|sample| sample.lag_seconds).collect());
        named
    };
    let sources: Vec<_> = statuses.into_iter().map(named).collect();
    RelayStatus {
        version: "0.1.0",
        uptime_seconds: 90_000,
        troubles: sources.iter().flat_map(NamedStatus::troubles).collect(),
        duties: Vec::new(),
        clients: StatusClients::default(),
        tls_fingerprint: None,
        errors: BTreeMap::new(),
        last_errors: Vec::new(),
        sources,
    }
}

#[test]
fn of_many_sources_those_that_need_somebody_come_first() {
    let page = all::html(&several());
    let words: Vec<_> = page
        .split("<div class=\"state\">")
        .skip(1)
        .filter_map(|row| row.split("</i> ").nth(1)?.split('<').next())
        .collect();
    assert_eq!(words, ["Source down", "Failed", "Not served", "Behind", "Live"]);
    assert!(
        page.contains("<section class=\"lead bad\">") && page.contains("1 of 5 sources are live"),
        "{page}"
    );
    assert_eq!(page.matches("class=\"spark\"").count(), 5);
    assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
}

/// A relay that stores the bytes that it receives, and that nobody reads yet.
fn unread() -> SourceReport {
    let mut status = SourceReport { replicas: Vec::new(), ..status(Phase::Receiving, Some(0)) };
    status.bytes.served = 0;
    status.archive = Some(archive());
    status
}

fn archive() -> ArchiveStatus {
    ArchiveStatus {
        to: "s3://backup/production/europe/orders-and-payments/of-all-of-europe/db1.example.com".to_owned(),
        selection: None,
        last_file: Some("binlog.000041".to_owned()),
        waiting_files: 0,
        still_seconds: 0,
        failing_seconds: None,
        check: Some(ArchiveCheckStatus {
            interval_seconds: 86_400,
            age_seconds: Some(7300),
            checked_logs: 41,
            damaged_logs: 0,
            failing_seconds: None,
        }),
    }
}

fn entrance() -> ReplicaEntrance {
    ReplicaEntrance {
        host: Some("relay.example.com".to_owned()),
        port: 3307,
        is_local: false,
        has_tls: true,
        source: None,
    }
}

/// The first minute of a relay, in which all that came was stored as it is.
fn minute() -> Vec<Sample> {
    let mut samples = hour().split_off(354);
    for sample in &mut samples {
        sample.traffic =
            sample.traffic.map(|traffic| Traffic { stored: traffic.received, served: 0.0, ..traffic });
    }
    samples
}

#[test]
fn who_has_no_replica_is_told_how_to_connect_one() {
    let entrance = entrance();
    let page = html("", &unread(), &hour(), Some(&entrance));
    let statement = "SOURCE_HOST=&#39;relay.example.com&#39;, SOURCE_PORT=3307,";
    assert!(page.contains(statement) && page.contains("\nSTART REPLICA;</code>"), "{page}");
    // Trouble comes first, and with a replica nobody needs it.
    let waiting = SourceReport { replicas: Vec::new(), ..down() };
    for status in [waiting, status(Phase::Receiving, Some(0)), SourceReport { log: None, ..unread() }] {
        let page = html("", &status, &hour(), Some(&entrance));
        assert!(!page.contains(statement), "{page}");
    }
}

#[test]
fn the_page_tells_the_state_of_the_archive() {
    let page = html("", &unread(), &hour(), None);
    let (_, section) = page.split_once("<h2>The archive</h2>").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let said = "the last check of everything began 2 h ago, one is due every 24 h; 41 logs since the start";
    for said in ["s3://<wbr>backup/<wbr>production/<wbr>", "binlog.000041", "no closed file", said] {
        assert!(section.contains(said), "{said}: {section}");
    }
    assert!(
        page.contains("<div class=\"good\"><b>0</b><span>closed files wait for the archive</span>"),
        "{page}"
    );
    let failing = ArchiveStatus {
        waiting_files: 2,
        still_seconds: 754,
        failing_seconds: Some(754),
        check: Some(ArchiveCheckStatus { damaged_logs: 1, ..ArchiveCheckStatus::default() }),
        ..archive()
    };
    let page = html("", &SourceReport { archive: Some(failing), ..unread() }, &hour(), None);
    for said in [
        "<div class=\"bad\"><b>2</b><span>closed files wait for the archive</span>",
        "2 closed files; none was archived for 12 min",
        "<dt>failing for</dt><dd>12 min</dd>",
        "; 1 damaged or missing",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let none = html("", &status(Phase::Receiving, Some(0)), &hour(), None);
    assert!(none.contains("none: closed files are on this machine alone"), "{none}");
}

#[test]
fn what_is_red_says_what_to_do() {
    let page = |status: &SourceReport| html("", status, &[], None);
    assert!(!page(&status(Phase::Receiving, Some(0))).contains("What to do"));
    assert!(page(&down()).contains("<code>mysqladmin --host=db1.example.com --port=3306 ping</code>"));
    let failed = page(&failed());
    for said in ["START REPLICA;", "A stored file is damaged", "restart the relay"] {
        assert!(failed.contains(said), "{said}: {failed}");
    }
    assert!(page(&status(Phase::Stopped, None)).contains("<code>START REPLICA;</code>"));
    let trouble = SourceReport { troubles: vec!["no".to_owned()], ..status(Phase::Receiving, Some(0)) };
    assert!(page(&trouble).contains("df -h"));
}

#[test]
fn numbers_that_name_something_have_no_commas() {
    let page = html("", &status(Phase::Receiving, Some(0)), &hour(), None);
    for said in [">4294967001<", ">107374182<", "server 4294967003", "binlog.000042 at 123456789"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("4,294,967") && !page.contains("107,374,182"));
    // Each replica has its line of the last hour, and a page of an hour is small.
    assert_eq!(page.matches("class=\"spark\"").count(), 4);
    assert!(page.len() < 150_000, "{} bytes", page.len());
}

#[test]
fn no_client_writes_to_the_page() {
    let mut status = down();
    status.replicas.iter_mut().for_each(|replica| replica.user = EVIL.to_owned());
    status.last_errors.iter_mut().for_each(|error| error.text = EVIL.to_owned());
    status.source.error = Some(EVIL.to_owned());
    status.source.server = format!("{EVIL}:3306");
    status.troubles = vec![EVIL.to_owned()];
    let log = status.log.as_mut().unwrap();
    (log.gtid_executed, log.first_file) = (EVIL.to_owned(), EVIL.to_owned());
    let page = html("", &status, &hour(), None);
    assert!(page.matches("&lt;script&gt;").count() > 10);
    assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
}

#[test]
fn the_page_can_be_read_on_every_screen() {
    let chromium = require_tool!(Tool::Chromium);
    let mut long = down();
    long.source.server = format!("{}.example.com:3306", "a-long-name".repeat(5));
    long.replicas.extend((5..12).map(|connection| replica(connection, Some(u64::from(connection) * 700))));
    let nobody = SourceReport { replicas: Vec::new(), log: None, ..status(Phase::Connecting, None) };
    let pages = [
        ("relay-all", all::html(&several())),
        ("relay-up", html("", &status(Phase::Receiving, Some(0)), &hour(), None)),
        ("relay-down", html("", &down(), &hour_without_source(), None)),
        ("relay-failed", html("", &failed(), &hour(), None)),
        ("relay-long", html("", &long, &hour(), None)),
        ("relay-unread", html("", &unread(), &minute(), Some(&entrance()))),
        ("relay-beginning", html("", &nobody, &[], None)),
    ];
    let looked = assert_readable(chromium, &pages);
    // Lines of lag, traffic and each replica whose lag is known, at three widths in two schemes.
    assert!(looked[1..5].iter().all(|looked| looked.shapes >= 6 * 7), "{looked:?}");
}
