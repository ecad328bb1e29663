//! Compressed connections to a real MySQL: what the server says of the session, and the same log byte for byte.

use std::fs;

use binlogz_source::wire::auth::Password;
use binlogz_source::wire::session::{ClientProfile, DumpStart};
use binlogz_source::{
    CompressionChoice, ConnectOptions, Connection, DumpOptions, PasswordOption, RemoteFiles, SslMode,
};
use binlogz_testkit::{MysqlSandbox, SandboxServer, Tool, require_tool};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const NONE: CompressionChoice =
    CompressionChoice { zlib: false, zstd: false, uncompressed: true, zstd_level: 3 };
const ZLIB: CompressionChoice = CompressionChoice { zlib: true, ..NONE };
const ZSTD: CompressionChoice = CompressionChoice { zstd: true, uncompressed: false, ..NONE };

fn root(server: &SandboxServer, compression: CompressionChoice) -> ConnectOptions {
    ConnectOptions {
        host: Some("127.0.0.1".into()),
        port: Some(server.port()),
        user: Some("root".into()),
        password: PasswordOption::Given(Password::new("")),
        get_server_public_key: true,
        compression,
        ..ConnectOptions::new("test")
    }
}

/// A statement that is long, and small where it is compressed.
const LONG: usize = 200_000;

/// Bytes that a server received from a session that sent it a long statement, as transferred: compressed ones
/// count as such.
fn received(options: &ConnectOptions) -> Result<u64, Box<dyn std::error::Error>> {
    let mut connection = Connection::open(options)?;
    connection.query(&format!("SELECT LENGTH('{}')", "much the same ".repeat(LONG / 14)))?;
    let rows = connection.query("SHOW SESSION STATUS LIKE 'Bytes_received'")?;
    let value = rows.first().and_then(|row| row.get(1).cloned().flatten()).unwrap_or_default();
    Ok(String::from_utf8(value)?.parse()?)
}

/// The server's own account: whether, how, and at what level.
fn status(options: &ConnectOptions) -> binlogz_source::Result<[String; 3]> {
    let mut connection = Connection::open(options)?;
    let rows = connection.query("SHOW SESSION STATUS LIKE 'Compression%'")?;
    // An answer that is longer than a packet's smallest compressed form, and one of many packets.
    connection.query("SELECT * FROM information_schema.collations")?;
    let value = |name: &str| {
        let of_name = |row: &&Vec<Option<Vec<u8>>>| {
            row.first().is_some_and(|it| it.as_deref() == Some(name.as_bytes()))
        };
        let value = rows.iter().find(of_name).and_then(|row| row.get(1).cloned().flatten());
        String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()
    };
    Ok(["Compression", "Compression_algorithm", "Compression_level"].map(value))
}

fn first_log(options: &ConnectOptions) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let dump = DumpOptions {
        profile: ClientProfile::Mysqlbinlog,
        server_id: 0,
        start: DumpStart::Position { name: "binlog.000001".into(), position: 4 },
        non_blocking: true,
        verify_checksums: true,
    };
    let mut files = RemoteFiles::open(options, dump)?;
    let mut bytes = Vec::new();
    files.next_file()?;
    let mut file = files.current_file().ok_or("no file")?;
    std::io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

/// Events of all sizes, up to one that takes several packets of the protocol.
fn write_log(server: &MysqlSandbox) -> Outcome {
    server.sql(
        "SET cte_max_recursion_depth = 10000; CREATE DATABASE shop; USE shop;
         CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB);
         INSERT INTO item (v) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             SELECT SHA2(i, 512) FROM n;
         INSERT INTO item (v) VALUES (REPEAT('much the same ', 1300000)), ('small');
         INSERT INTO item (v) VALUES ('last'); FLUSH BINARY LOGS",
    )?;
    Ok(())
}

#[test]
fn the_server_compresses_and_the_log_is_the_same() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().option("max-allowed-packet", "64M").start()?;
    write_log(&server)?;
    let log = fs::read(server.datadir().join("binlog.000001"))?;
    assert!(log.len() > 17 << 20, "{}", log.len());
    let level_7 = CompressionChoice { zstd_level: 7, ..ZSTD };
    for (compression, said) in [
        (NONE, ["OFF", "", "0"]),
        (ZLIB, ["ON", "zlib", "6"]),
        (ZSTD, ["ON", "zstd", "3"]),
        (level_7, ["ON", "zstd", "7"]),
    ] {
        for mode in [SslMode::Disabled, SslMode::Required] {
            let mut options = root(&server, compression);
            options.tls.mode = Some(mode);
            assert_eq!(status(&options)?, said);
            assert!(first_log(&options)? == log, "{compression:?} {mode:?}");
            let bytes = received(&options)?;
            assert_eq!(bytes < LONG as u64 / 10, said[0] == "ON", "{compression:?} {mode:?}: {bytes}");
        }
    }
    // Only what both sides allow.
    server.sql("SET GLOBAL protocol_compression_algorithms = 'zlib'")?;
    assert_eq!(
        status(&root(&server, CompressionChoice { uncompressed: true, zlib: true, ..ZSTD }))?[1],
        "zlib"
    );
    let error = status(&root(&server, ZSTD)).unwrap_err().to_string();
    assert!(error.contains("no way of compressing the connection"), "{error}");
    Ok(())
}
