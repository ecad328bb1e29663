//! A real server and this crate read each other's encrypted logs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use binlogz_binlog::{EventReader, MAGIC_ENCRYPTED};
use binlogz_encryption::{DecryptingReader, EncryptingWriter, EncryptionHeader, Error, HEADER_SIZE, Keyring};
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const TABLE: &str =
    "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY AUTO_INCREMENT, name LONGTEXT)";

/// A plain transaction, a compressed one, and one of several MB.
const CHANGES: &str = "\
INSERT INTO shop.item (name) VALUES ('tea');
SET SESSION binlog_transaction_compression = ON;
INSERT INTO shop.item (name) VALUES (REPEAT('coffee', 10000));
SET SESSION binlog_transaction_compression = OFF;
INSERT INTO shop.item (name) VALUES (REPEAT('milk', 1000000));";

const ROTATE: &str = "ALTER INSTANCE ROTATE BINLOG MASTER KEY";

#[test]
fn what_a_server_encrypted_reads_as_what_mysqlbinlog_fetches() -> Result {
    let server = require_tool!(Tool::Mysql).sandbox().encrypted().start()?;
    server.sql(TABLE)?;
    let mut closed = Vec::new();
    for _ in 0..3 {
        server.sql(CHANGES)?;
        closed.push(server.flush_binary_logs()?);
        // Closes another log and rewrites the headers of all.
        server.sql(ROTATE)?;
    }
    let keyring = Keyring::open(&server.keyring())?;
    assert_eq!(keyring.current_key(None)?.id(), key_id(&server, 4)?);
    for log in closed {
        let plain = decrypt(&log, &keyring)?;
        assert!(plain.len() > 4_000_000);
        assert!(plain == fetch(&server, &log)?, "{}", log.display());
    }
    Ok(())
}

#[test]
fn what_we_encrypted_a_server_serves_and_rotates() -> Result {
    let mut server = require_tool!(Tool::Mysql).sandbox().encrypted().start()?;
    server.sql(TABLE)?;
    server.sql("SET GLOBAL binlog_encryption = OFF")?;
    server.sql(CHANGES)?;
    let log = server.flush_binary_logs()?;
    server.stop()?;

    let plain = fs::read(&log)?;
    assert!(plain.len() > 4_000_000 && plain.starts_with(b"\xfebin"));
    let keyring_before = Keyring::open(&server.keyring())?;
    let mut writer = EncryptingWriter::new(File::create(&log)?, &keyring_before.current_key(None)?)?;
    std::io::copy(&mut plain.as_slice(), &mut writer)?;
    drop(writer);
    let ours = fs::read(&log)?;
    assert!(ours.starts_with(&MAGIC_ENCRYPTED));

    server.start()?;
    assert!(fetch(&server, &log)? == plain);
    server.sql(ROTATE)?;
    assert!(fetch(&server, &log)? == plain);
    let rotated = fs::read(&log)?;
    assert_eq!(EncryptionHeader::decode(&ours)?.key_id, key_id(&server, 1)?);
    assert_eq!(EncryptionHeader::decode(&rotated)?.key_id, key_id(&server, 2)?);
    assert!(ours[HEADER_SIZE..] == rotated[HEADER_SIZE..]);
    let keyring = Keyring::open(&server.keyring())?;
    assert!(decrypt(&log, &keyring)? == plain);

    // A copy of the log from before the rotation needs the keyring from before.
    let mut copy = Vec::new();
    DecryptingReader::new(ours.as_slice(), &keyring_before)?.read_to_end(&mut copy)?;
    assert!(copy == plain);
    let error = DecryptingReader::new(ours.as_slice(), &keyring).expect_err("the key is gone");
    assert!(matches!(error, Error::NoKey { purged: true, .. }), "{error}");
    Ok(())
}

#[test]
fn relay_logs_of_an_encrypted_replica_are_read_to_their_last_event() -> Result {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start()?;
    let replica = mysql.sandbox().encrypted().option("relay-log-purge", "OFF").start()?;
    replica.replicate_from(&source)?;
    source.sql(TABLE)?;
    source.sql(CHANGES)?;
    replica.wait_for_source(&source)?;
    let keyring = Keyring::open(&replica.keyring())?;
    let mut events = 0;
    for log in replica.relay_logs()? {
        let mut reader = EventReader::new(DecryptingReader::new(File::open(log)?, &keyring)?);
        while reader.next_event()?.is_some() {
            events += 1;
        }
    }
    // Five transactions, the large one among them.
    assert!(events > 15, "{events} events");
    Ok(())
}

/// A log as the server sends it to a replica that asks for it by name.
fn fetch(server: &MysqlSandbox, log: &Path) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let name = log.file_name().expect("a file").to_str().expect("ASCII");
    let output = server.installed().mysqlbinlog([
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        "--user=root",
        "--host=127.0.0.1",
        &format!("--port={}", server.port()),
        &format!("--result-file={}/", folder.path().display()),
        name,
    ])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(fs::read(folder.path().join(name))?)
}

fn decrypt(log: &PathBuf, keyring: &Keyring) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    DecryptingReader::new(File::open(log)?, keyring)?.read_to_end(&mut plain)?;
    Ok(plain)
}

fn key_id(server: &MysqlSandbox, seqno: u32) -> Result<String> {
    Ok(format!("MySQLReplicationKey_{}_{seqno}", server.server_uuid()?))
}
