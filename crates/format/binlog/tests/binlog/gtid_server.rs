//! GTID sets and transactions, compared with a real MySQL: the texts that it parses, and the events that it logs.

use std::fs;
use std::path::Path;

use binlogz_binlog::event::{
    AnyGtidEvent, PreviousGtidsEvent, rewrite_transaction_length, transaction_length,
};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{Boundary, EventReader, EventType, TransactionBoundaryParser};
use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

/// Marsaglia's xorshift64, seeded by `SEED` or by a default; a failing test prints the seed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed: Option<u64> = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(0x6774_6964).max(1);
        println!("SEED={seed}");
        Random(seed)
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choices[(self.0 % choices.len() as u64) as usize]
    }
}

/// A text that is often a GTID set.
fn random_text(random: &mut Random) -> String {
    const UUIDS: [&str; 4] = [
        "1410447f-e54d-11f1-848d-02fc00000001",
        "2410447F-E54D-11F1-848D-02FC00000001",
        "{3410447f-e54d-11f1-848d-02fc00000001}",
        "4410447fe54d11f1848d02fc00000001",
    ];
    const ITEMS: [&str; 12] =
        ["1", "3", "2-4", "6-9", "7-8", "10", "1 - 2", "tag", "Tag_1", "_", "5-3", "1-0"];
    const RARE: [&str; 5] = [" 7", "-1", "x", ":", ";"];
    const ENDS: [&str; 7] = ["", "", ",", ":9223372036854775806", ":9223372036854775807", ":010", ":0x1F"];
    let mut text = random.pick(&["", "", "", ",", "\n"]).to_owned();
    loop {
        text += random.pick(&UUIDS);
        while random.pick(&["more", "more", "end"]) == "more" {
            text += random.pick(&[":", ":", ":", " : ", "\t:\n"]);
            text += random.pick(&ITEMS);
            if random.pick(&["rare", "", "", "", "", "", "", "", "", "", "", ""]) == "rare" {
                text += random.pick(&RARE);
            }
        }
        match random.pick(&["more", "end"]) {
            "more" => text += random.pick(&[",", ",\n", " , ", ",,"]),
            _ => return text + random.pick(&ENDS),
        }
    }
}

#[test]
fn a_text_means_the_same_set_to_the_server() -> Result<()> {
    const TEXTS: usize = 500;
    const REFUSED: &str = "refused";
    let server =
        require_tool!(Tool::Mysql).sandbox().option("log-bin-trust-function-creators", "ON").start()?;
    let mut random = Random::new();
    let texts: Vec<String> = (0..TEXTS).map(|_| random_text(&mut random)).collect();
    let mut statements = String::from(
        "CREATE DATABASE d;
        DELIMITER //
        CREATE FUNCTION d.parsed(text TEXT) RETURNS TEXT DETERMINISTIC BEGIN
            DECLARE EXIT HANDLER FOR SQLEXCEPTION RETURN 'refused';
            RETURN REPLACE(GTID_SUBTRACT(text, ''), '\\n', '');
        END //
        DELIMITER ;\n",
    );
    statements.extend(texts.iter().map(|text| format!("SELECT d.parsed('{text}');\n")));
    let answers = server.sql(&statements)?;
    let answers: Vec<&str> = answers.strip_suffix('\n').unwrap_or(&answers).split('\n').collect();
    assert_eq!(answers.len(), TEXTS);
    let mut refused = 0;
    for (text, answer) in texts.iter().zip(answers) {
        let ours = text.parse::<GtidSet>().map_or(REFUSED.to_owned(), |set| set.to_string());
        assert_eq!(ours, answer, "{text:?}");
        refused += usize::from(answer == REFUSED);
    }
    assert!((TEXTS / 10..TEXTS * 9 / 10).contains(&refused), "{refused} of {TEXTS} texts are refused");
    Ok(())
}

/// Transactions of every kind, each as the server logs it.
fn statements(load: &Path) -> String {
    let load = load.display();
    format!(
        "CREATE DATABASE d; USE d;
        CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(200)) ENGINE=InnoDB;
        CREATE TABLE m (a INT) ENGINE=MyISAM;
        INSERT INTO t (b) VALUES ('row'), ('row');
        UPDATE t SET b = CONCAT(b, 'x');
        BEGIN; DELETE FROM t; SAVEPOINT s; INSERT INTO t (b) VALUES (1); ROLLBACK TO s; COMMIT;
        CREATE TABLE c AS SELECT * FROM t;
        LOAD DATA LOCAL INFILE '{load}' INTO TABLE t (b);
        SET binlog_format = STATEMENT;
        INSERT INTO t (b) VALUES (RAND());
        SET @a = 3; INSERT INTO t (b) VALUES (@a); INSERT INTO m VALUES (@a);
        LOAD DATA LOCAL INFILE '{load}' INTO TABLE m;
        LOAD DATA LOCAL INFILE '{load}' INTO TABLE t (b);
        CREATE TEMPORARY TABLE tt (a INT); DROP TEMPORARY TABLE tt;
        SET binlog_format = ROW;
        XA START 'x1'; INSERT INTO t (b) VALUES (1); XA END 'x1'; XA PREPARE 'x1'; XA COMMIT 'x1';
        XA START 'x2'; INSERT INTO t (b) VALUES (1); XA END 'x2'; XA PREPARE 'x2'; XA ROLLBACK 'x2';
        XA START 'x3'; INSERT INTO t (b) VALUES (1); XA END 'x3'; XA COMMIT 'x3' ONE PHASE;
        ALTER TABLE t ADD COLUMN z INT; TRUNCATE m; CREATE USER u; GRANT SELECT ON d.* TO u; DROP USER u;
        SET binlog_transaction_compression = ON;
        INSERT INTO t (b) VALUES (REPEAT('long', 40));
        XA START 'x4'; INSERT INTO t (b) VALUES (1); XA END 'x4'; XA PREPARE 'x4'; XA COMMIT 'x4';
        INSERT INTO m VALUES (1);
        SET binlog_transaction_compression = OFF;\n"
    )
}

/// Reads a log and checks its transactions; their number and their GTIDs.
fn check_transactions(log: &[u8]) -> (usize, GtidSet) {
    let mut reader = EventReader::new(log);
    let mut assembler = TransactionBoundaryParser::new();
    let (mut transactions, mut gtids) = (0, GtidSet::new());
    let mut begin = 0;
    loop {
        let framing = reader.framing();
        let Some((offset, frame)) = reader.next_event().expect("a log of the server") else { break };
        let placement = assembler.feed(frame.header(), frame.body());
        assert_eq!(placement.malformed, None, "at {offset}");
        let gtid_event = AnyGtidEvent::decode_frame(&frame).expect("a GTID event of the server");
        assert_eq!(placement.boundary == Boundary::Begin, gtid_event.is_some(), "at {offset}");
        assert_ne!(placement.boundary, Boundary::Single, "at {offset}");
        if let Some(event) = gtid_event {
            begin = offset as usize;
            assert_eq!(event.encode().expect("it was read"), frame.body(), "at {offset}");
            gtids.extend(event.gtid());
        }
        if placement.boundary == Boundary::End {
            transactions += 1;
            let bytes = &log[begin..offset as usize + frame.bytes().len()];
            let gtid = framing.next_frame(bytes).expect("it was read").expect("it is whole");
            let gtid = gtid.verify().expect("it was read");
            assert_eq!(transaction_length(&gtid).expect("it was read"), Some(bytes.len() as u64));
            let mut rewritten = Vec::new();
            let following = bytes.len() - gtid.bytes().len();
            rewrite_transaction_length(&gtid, following as u64, &mut rewritten).expect("it was read");
            let checked = gtid.without_checksum();
            assert_eq!(rewritten.get(..checked.len()), Some(checked), "at {begin}");
            assert_eq!(rewritten.len(), gtid.bytes().len());
        }
    }
    assert!(!assembler.is_open());
    (transactions, gtids)
}

/// The GTIDs that a log says are in the logs before it.
fn previous_gtids(log: &[u8]) -> GtidSet {
    let mut reader = EventReader::new(log);
    while let Some((_, frame)) = reader.next_event().expect("a log of the server") {
        if frame.event_type() == EventType::PREVIOUS_GTIDS {
            let event = PreviousGtidsEvent::decode_frame(&frame).expect("an event of the server");
            assert_eq!(event.encode(), frame.body());
            return event.gtid_set;
        }
    }
    panic!("every log has a previous-GTIDs event");
}

/// Runs [`statements`] and more; returns the transactions of the log they made, its GTIDs, and the previous
/// GTIDs of the log after it.
fn logged(server: &MysqlSandbox, more: &str) -> Result<(usize, GtidSet, GtidSet)> {
    let load = server.datadir().join("load.txt");
    fs::write(&load, "1\n2\n3\n").expect("the data directory is ours");
    server.sql(&(statements(&load) + more))?;
    server.flush_binary_logs()?;
    let logs: Vec<Vec<u8>> =
        server.binlogs()?.iter().map(|log| fs::read(log).expect("the log is there")).collect();
    let [log, next] = &logs[..] else { panic!("two logs, not {}", logs.len()) };
    let (transactions, gtids) = check_transactions(log);
    Ok((transactions, gtids, previous_gtids(next)))
}

#[test]
fn every_transaction_with_a_gtid_is_found() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    let (transactions, gtids, previous) = logged(
        &server,
        "SET gtid_next = 'AUTOMATIC:some_tag'; INSERT INTO t (b) VALUES (REPEAT('long', 40));
        SET gtid_next = 'AUTOMATIC:t'; INSERT INTO t (b) VALUES (1);
        SET gtid_next = '1410447f-e54d-11f1-848d-02fc00000001:77'; BEGIN; COMMIT;
        SET gtid_next = '1410447f-e54d-11f1-848d-02fc00000001:TAG:5'; BEGIN; COMMIT;",
    )?;
    assert_eq!(transactions as u128, gtids.count());
    assert_eq!(gtids.to_string(), server.gtid_executed()?);
    assert_eq!(previous, gtids);
    assert!(previous.has_tags());
    Ok(())
}

#[test]
fn every_anonymous_transaction_is_found() -> Result<()> {
    let server = require_tool!(Tool::Mysql)
        .sandbox()
        .option("gtid-mode", "OFF")
        .option("enforce-gtid-consistency", "OFF")
        .option("binlog-checksum", "NONE")
        .option("binlog-rows-query-log-events", "ON")
        .start()?;
    // With GTIDs the server refuses transactions across two engines.
    let (transactions, gtids, previous) = logged(
        &server,
        "BEGIN; INSERT INTO t (b) VALUES (1); INSERT INTO m VALUES (1); COMMIT;
        BEGIN; INSERT INTO t (b) VALUES (1); INSERT INTO m VALUES (1); ROLLBACK;",
    )?;
    assert!(transactions > 30, "{transactions}");
    assert!(gtids.is_empty() && previous.is_empty());
    Ok(())
}
