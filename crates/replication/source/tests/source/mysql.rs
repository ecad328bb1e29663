//! Connections to a real MySQL: every method of authentication, every way to ask for a log, byte for byte.

use std::fs;
use std::path::Path;
use std::time::Duration;

use binlogz_source::wire::auth::Password;
use binlogz_source::wire::session::{ClientProfile, DumpStart, ReplicaProfile, Timeouts};
use binlogz_source::{
    ConnectOptions, Connection, DumpOptions, Error, PasswordOption, Protocol, RemoteLog, SslMode,
};
use binlogz_testkit::{MariadbSandbox, MysqlSandbox, SandboxServer, Tool, require_tool};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Accounts for each method of authentication; all have their name as password.
const ACCOUNTS: &str = "\
CREATE USER sha2@'%' IDENTIFIED WITH caching_sha2_password BY 'sha2';
CREATE USER sha256@'%' IDENTIFIED WITH sha256_password BY 'sha256';
CREATE USER bare@'%' IDENTIFIED WITH caching_sha2_password BY '';
CREATE USER bare256@'%' IDENTIFIED WITH sha256_password BY '';
CREATE USER nothing@'%' IDENTIFIED BY 'nothing';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO sha2@'%', sha256@'%', bare@'%', bare256@'%';
";

const CHANGES: &str = "\
CREATE DATABASE shop; USE shop;
CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), price DECIMAL(10,2));
INSERT INTO item (name, price) VALUES ('tea', 3.20), ('coffee', 4.10);
SET binlog_transaction_compression = ON;
UPDATE item SET price = price + 1;
SET GTID_NEXT = 'AUTOMATIC:tag_1'; DELETE FROM item WHERE name = 'tea'; SET GTID_NEXT = 'AUTOMATIC';
";

fn tcp(server: &SandboxServer, user: &str, password: &str) -> ConnectOptions {
    ConnectOptions {
        host: Some("127.0.0.1".into()),
        port: Some(server.port()),
        user: Some(user.into()),
        password: PasswordOption::Given(Password::new(password)),
        ..ConnectOptions::new("test")
    }
}

fn with_ssl(mode: SslMode, options: &ConnectOptions) -> ConnectOptions {
    let mut options = options.clone();
    options.tls.mode = Some(mode);
    options
}

fn over_socket(server: &SandboxServer, options: &ConnectOptions) -> ConnectOptions {
    ConnectOptions { protocol: Some(Protocol::Socket), socket: Some(server.socket()), ..options.clone() }
}

fn current_user(options: &ConnectOptions) -> binlogz_source::Result<String> {
    let rows = Connection::open(options)?.query("SELECT CURRENT_USER()")?;
    let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Forgets all passwords that caching_sha2_password keeps.
fn forget_passwords(server: &MysqlSandbox) {
    server.sql("FLUSH PRIVILEGES").expect("root may");
}

#[test]
fn every_method_of_authentication_over_every_channel() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(ACCOUNTS)?;
    for (user, password) in [("sha2", "sha2"), ("sha256", "sha256"), ("bare", ""), ("bare256", "")] {
        let options = tcp(&server, user, password);
        let rsa = ConnectOptions { get_server_public_key: true, ..with_ssl(SslMode::Disabled, &options) };
        let key = ConnectOptions {
            server_public_key_path: Some(server.datadir().join("public_key.pem")),
            ..with_ssl(SslMode::Disabled, &options)
        };
        let socket = over_socket(&server, &options);
        for (channel, options) in [
            ("TLS if there is", options.clone()),
            ("TLS", with_ssl(SslMode::Required, &options)),
            ("RSA, key asked for", rsa),
            ("RSA, key from a file", key),
            ("socket", socket.clone()),
            ("TLS over the socket", with_ssl(SslMode::Required, &socket)),
        ] {
            forget_passwords(&server);
            for time in ["first", "second"] {
                let found = current_user(&options);
                assert_eq!(
                    found.as_deref().ok(),
                    Some(&*format!("{user}@%")),
                    "{user}, {channel}, {time}: {found:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_password_is_never_shown_to_listeners() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(ACCOUNTS)?;
    let plain = with_ssl(SslMode::Disabled, &tcp(&server, "sha2", "sha2"));
    let error = current_user(&plain).expect_err("neither TLS nor a key").to_string();
    assert!(error.contains("caching_sha2_password needs a secure connection"), "{error}");
    // Once the server knows the password by heart, the proof is enough.
    current_user(&tcp(&server, "sha2", "sha2"))?;
    current_user(&plain)?;
    Ok(())
}

#[test]
fn refusals_say_who_refused_what() -> Outcome {
    let mut server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(ACCOUNTS)?;
    let code = |error: &Error| error.server_error().map(|error| error.code);

    let error = current_user(&tcp(&server, "sha2", "wrong")).expect_err("wrong password");
    assert_eq!(code(&error), Some(1045), "{error}");
    assert!(error.to_string().contains("logging in: server says 1045 (28000): Access denied"), "{error}");

    let open = |user, password, name: &str, position| -> binlogz_source::Result<()> {
        let mut log =
            RemoteLog::open(&tcp(&server, user, password), DumpOptions::to_the_end(name, position))?;
        while log.next_event()?.is_some() {}
        Ok(())
    };
    let error = open("nothing", "nothing", "binlog.000001", 4).expect_err("no privilege");
    assert_eq!(code(&error), Some(1227), "{error}");
    for (name, position, said) in [
        ("no-such.000001", 4, "Could not find first log file name in binary log index file"),
        ("binlog.000001", 3, "position < 4"),
        ("binlog.000001", 4_000_000_000, "position > file size"),
    ] {
        let error = open("repl", "repl", name, position).expect_err(said);
        assert_eq!(code(&error), Some(1236), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = open("repl", "repl", "binlog.000001", 1 << 32).expect_err("4 GiB").to_string();
    assert!(error.contains("a dump by position begins below 4 GiB"), "{error}");

    let mut nowhere = tcp(&server, "repl", "repl");
    nowhere.host = Some("nowhere.invalid".into());
    let error = current_user(&nowhere).expect_err("no such host").to_string();
    assert!(error.starts_with("connect to nowhere.invalid:"), "{error}");
    let gone = tcp(&server, "repl", "repl");
    server.kill();
    let error = current_user(&gone).expect_err("nobody listens").to_string();
    assert!(error.contains("Connection refused"), "{error}");
    Ok(())
}

/// Receives to the end of the log; gives each file's name and bytes.
fn fetch(
    connect: &ConnectOptions,
    dump: DumpOptions,
    in_pieces: bool,
) -> binlogz_source::Result<Vec<(String, Vec<u8>)>> {
    let mut log = RemoteLog::open(connect, dump)?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut write = |name: &[u8], offset: u64, begins: bool, bytes: &[u8]| {
        let name = String::from_utf8_lossy(name).into_owned();
        if files.last().is_none_or(|(last, _)| *last != name) {
            files.push((name, binlogz_binlog::MAGIC.to_vec()));
        }
        let (_, file) = files.last_mut().expect("there is one");
        if begins {
            assert_eq!(file.len() as u64, offset, "the offset of an event is where it stands");
        }
        file.extend_from_slice(bytes);
    };
    if in_pieces {
        while let Some(piece) = log.next_piece()? {
            if piece.is_stored() {
                write(piece.name, piece.offset, piece.begins, piece.bytes);
            }
        }
    } else {
        while let Some(event) = log.next_event()? {
            let frame = event.frame().and_then(|frame| frame.verify()).expect("a good event");
            if event.is_stored {
                write(event.name, event.offset, true, frame.bytes());
            }
        }
    }
    Ok(files)
}

fn assert_same_files(fetched: &[(String, Vec<u8>)], directory: &Path, context: &str) {
    for (name, bytes) in fetched {
        let mut on_disk = fs::read(directory.join(name)).expect("the server's file");
        if on_disk.get(21) == Some(&1) {
            on_disk[21] = 0; // the file in use: the server clears that flag when it sends
        }
        assert!(*bytes == on_disk, "{context}: {name} has {} bytes, {} on disk", bytes.len(), on_disk.len());
    }
}

fn replica(semi_sync: bool, heartbeat_period: Duration) -> ClientProfile {
    ClientProfile::Replica(ReplicaProfile {
        server_uuid: "5a5a5a5a-e54d-11f1-848d-02fc00000001".parse().expect("a uuid"),
        heartbeat_period,
        semi_sync,
        host: "test".into(),
        port: 1,
    })
}

#[test]
fn what_is_received_is_what_stands_on_the_servers_disk() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    for checksum in ["CRC32", "NONE"] {
        let server = mysql.sandbox().option("binlog-checksum", checksum).start()?;
        server.sql(CHANGES)?;
        server.flush_binary_logs()?;
        server.sql("INSERT INTO shop.item (name) VALUES ('milk')")?;
        server.flush_binary_logs()?;
        let connect = tcp(&server, "repl", "repl");
        let first = DumpStart::Position { name: "binlog.000001".into(), position: 4 };
        let everything =
            DumpStart::GtidSet { gtid_set: Default::default(), name: String::new(), position: 4 };
        for start in [first, everything] {
            for profile in [ClientProfile::Mysqlbinlog, replica(false, Duration::from_secs(1))] {
                for in_pieces in [false, true] {
                    let dump = DumpOptions {
                        profile: profile.clone(),
                        server_id: if profile == ClientProfile::Mysqlbinlog { 0 } else { 4711 },
                        start: start.clone(),
                        non_blocking: true,
                        verify_checksums: true,
                    };
                    let context = format!("{checksum} {dump:?}");
                    let files = fetch(&connect, dump, in_pieces)?;
                    assert_eq!(files.len(), 3, "{context}");
                    assert_same_files(&files, &server.datadir(), &context);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn certificates_are_held_against_the_authority_and_the_host() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(ACCOUNTS)?;
    server.sql("CREATE USER certified@'%' IDENTIFIED BY 'certified' REQUIRE X509")?;
    let ca = server.datadir().join("ca.pem");
    let mut options = tcp(&server, "sha2", "sha2");
    options.tls.ca = Some(ca.clone());
    current_user(&options)?; // an authority alone asks for VERIFY_CA
    options.tls.versions = Some("TLSv1.2".into());
    current_user(&options)?;

    // The certificate that mysqld makes for itself names no host.
    let error =
        current_user(&with_ssl(SslMode::VerifyIdentity, &options)).expect_err("another host").to_string();
    assert!(error.contains("TLS with 127.0.0.1") && error.contains("certificate"), "{error}");
    let other = require_tool!(Tool::Mysql).sandbox().start()?;
    let stranger = server.datadir().join("client-cert.pem");
    options.tls.ca = Some(stranger);
    let error = current_user(&options).expect_err("another authority").to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    drop(other);

    let mut options = tcp(&server, "certified", "certified");
    let error = current_user(&options).expect_err("it needs a certificate");
    assert_eq!(error.server_error().map(|error| error.code), Some(1045), "{error}");
    options.tls.certificate = Some(server.datadir().join("client-cert.pem"));
    options.tls.key = Some(server.datadir().join("client-key.pem"));
    assert_eq!(current_user(&options)?, "certified@%");
    Ok(())
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().option("tls-version", "").start()?;
    server.sql(ACCOUNTS)?;
    let options = ConnectOptions { get_server_public_key: true, ..tcp(&server, "sha2", "sha2") };
    current_user(&options)?;
    let error = current_user(&with_ssl(SslMode::Required, &options)).expect_err("no TLS").to_string();
    assert!(error.ends_with("TLS is required, and the server offers none"), "{error}");
    Ok(())
}

#[test]
fn mariadb_is_read_with_its_native_passwords() -> Outcome {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("binlog-checksum", "CRC32")])?;
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.item (id INT); INSERT INTO shop.item VALUES (1), (2)",
    )?;
    server.flush_binary_logs()?;
    let connect = tcp(&server, "repl", "repl");
    let error = current_user(&tcp(&server, "repl", "wrong")).expect_err("wrong password");
    assert_eq!(error.server_error().map(|error| error.code), Some(1045), "{error}");
    let mut log = RemoteLog::open(&connect, DumpOptions::to_the_end("binlog.000001", 4))?;
    let mut count = 0;
    while log.next_event()?.is_some() {
        count += 1;
    }
    assert!(count > 10, "{count} events");
    Ok(())
}

#[test]
fn events_around_16_mib_take_as_many_packets_as_they_need() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().option("max-allowed-packet", "1G").start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, text LONGTEXT)")?;
    server.flush_binary_logs()?;
    // The first insert tells how much an event is larger than its text; the others are then placed at the border.
    let insert =
        |id: i64, size: i64| server.sql(&format!("INSERT INTO shop.item VALUES ({id}, REPEAT('x', {size}))"));
    let largest = |name: &str| -> Result<i64, Box<dyn std::error::Error>> {
        let mut log = RemoteLog::open(&tcp(&server, "repl", "repl"), DumpOptions::to_the_end(name, 4))?;
        let mut size = 0;
        while let Some(event) = log.next_event()? {
            size = size.max(i64::from(event.header.event_size));
        }
        Ok(size)
    };
    insert(0, 1_000_000)?;
    let more = largest("binlog.000002")? - 1_000_000;
    server.flush_binary_logs()?;
    // A message is an event and one byte.
    let full_packet = (1 << 24) - 1;
    for (id, size) in [full_packet - 3, full_packet - 2, full_packet - 1, full_packet, 2 * full_packet - 1]
        .iter()
        .enumerate()
    {
        insert(1 + id as i64, size - more)?;
    }
    server.flush_binary_logs()?;
    assert_eq!(largest("binlog.000003")?, 2 * full_packet - 1);
    for in_pieces in [false, true] {
        for mode in [SslMode::Disabled, SslMode::Required] {
            let connect = ConnectOptions {
                get_server_public_key: true,
                ..with_ssl(mode, &tcp(&server, "repl", "repl"))
            };
            let dump = DumpOptions { verify_checksums: true, ..DumpOptions::to_the_end("binlog.000003", 4) };
            let files = fetch(&connect, dump, in_pieces)?;
            assert_same_files(&files, &server.datadir(), &format!("{mode:?} {in_pieces}"));
        }
    }
    Ok(())
}

#[test]
fn semi_sync_events_are_acknowledged() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
         SET GLOBAL rpl_semi_sync_source_enabled = ON, GLOBAL rpl_semi_sync_source_timeout = 60000",
    )?;
    let dump = DumpOptions {
        profile: replica(true, Duration::from_secs(1)),
        server_id: 4711,
        start: DumpStart::Position { name: "binlog.000001".into(), position: 4 },
        non_blocking: false,
        verify_checksums: true,
    };
    let mut log = RemoteLog::open(&tcp(&server, "repl", "repl"), dump)?;
    while log.identity().is_none_or(|identity| !identity.semi_sync) {
        log.next_event()?;
    }
    std::thread::scope(|scope| -> Outcome {
        let writer = scope.spawn(|| {
            for id in 0..5 {
                server.sql(&format!("CREATE DATABASE shop{id}"))?;
            }
            server.sql("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_yes_tx'")
        });
        let mut acknowledged = 0;
        while acknowledged < 5 {
            let Some(piece) = log.next_piece()? else { return Err("the stream ended".into()) };
            if piece.wants_ack && piece.ends {
                let (name, end) = (piece.name.to_vec(), piece.end_offset());
                log.acknowledge(&name, end)?;
                acknowledged += 1;
            }
        }
        let said = writer.join().expect("no panic")?;
        assert_eq!(
            said.trim(),
            "Rpl_semi_sync_source_yes_tx\t5",
            "each commit waited for its acknowledgement"
        );
        Ok(())
    })
}

#[test]
fn heartbeats_keep_an_idle_stream_alive_and_tell_positions() -> Outcome {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(CHANGES)?;
    let (_, end) = server.position()?;
    let dump = |gtid_set: &str| DumpOptions {
        profile: replica(false, Duration::from_millis(200)),
        server_id: 4711,
        start: DumpStart::GtidSet {
            gtid_set: gtid_set.parse().expect("a set"),
            name: String::new(),
            position: 4,
        },
        non_blocking: false,
        verify_checksums: true,
    };
    let mut connect = tcp(&server, "repl", "repl");
    connect.timeouts = Timeouts { silence: Some(Duration::from_secs(5)), ..Timeouts::default() };
    // Once with everything sent, once with everything skipped.
    for gtid_set in ["", &server.gtid_executed()?] {
        let mut log = RemoteLog::open(&connect, dump(gtid_set))?;
        let mut heartbeats = 0;
        while heartbeats < 3 {
            let event = log.next_event()?.ok_or("the stream ended")?;
            if event.header.event_type == binlogz_binlog::EventType::HEARTBEAT_V2 {
                assert!(!event.is_stored);
                heartbeats += 1;
            }
        }
        assert_eq!(log.position(), Some((&b"binlog.000001"[..], end)), "having {gtid_set:?}");
    }
    // Without heartbeats an idle source can't be told from a dead one.
    let mut silent = dump("");
    silent.profile = replica(false, Duration::ZERO);
    connect.timeouts.silence = Some(Duration::from_millis(300));
    let mut log = RemoteLog::open(&connect, silent)?;
    let error = loop {
        if let Err(error) = log.next_event().map(|event| event.is_some()) {
            break error.to_string();
        }
    };
    assert!(
        error.contains(&format!("no answer within 0.3 s while reading binlog.000001 at {end}")),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_server_that_dies_ends_the_stream_with_an_error() -> Outcome {
    let mut server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(CHANGES)?;
    for mode in [SslMode::Disabled, SslMode::Required] {
        let (name, end) = server.position()?;
        let mut connect = with_ssl(mode, &tcp(&server, "repl", "repl"));
        connect.get_server_public_key = true;
        let dump = DumpOptions { non_blocking: false, server_id: 4711, ..DumpOptions::to_the_end(&name, 4) };
        let mut log = RemoteLog::open(&connect, dump)?;
        while log.position().is_none_or(|(_, position)| position < end) {
            log.next_event()?;
        }
        server.kill();
        let error = log.next_event().expect_err("nobody is there").to_string();
        let expected = format!("connection ended by the server while reading {name} at {end}");
        assert!(error.ends_with(&expected), "{mode:?}: {error}");
        server.start()?;
    }
    Ok(())
}

/// The statements of `repl` since the last time, as the server's general log has them.
fn statements(server: &MysqlSandbox) -> Vec<String> {
    let said = server
        .sql(
            "SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log \
             WHERE user_host LIKE 'repl%' AND command_type NOT IN ('Connect', 'Quit') ORDER BY event_time; \
             TRUNCATE mysql.general_log",
        )
        .expect("a general log");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_source_hears_what_it_hears_from_mysqlbinlog_and_replicas() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("log-output", "TABLE").option("general-log", "ON").start()?;
    server.sql("SET GLOBAL server_id = 1; CREATE DATABASE shop")?;
    statements(&server);

    let port = format!("--port={}", server.port());
    let options = ["--no-defaults", "-R", "-h127.0.0.1", "-urepl", "-prepl", &port, "binlog.000001"];
    assert!(mysql.mysqlbinlog(options)?.status.success());
    let theirs = statements(&server);
    let connect = tcp(&server, "repl", "repl");
    fetch(&connect, DumpOptions::to_the_end("binlog.000001", 4), true)?;
    assert_eq!(statements(&server), theirs);
    assert!(theirs.len() >= 3, "{theirs:?}");

    let mut follower = mysql.sandbox().start()?;
    follower.replicate_from(&server)?;
    follower.wait_for_source(&server)?;
    let uuid = follower.server_uuid()?;
    let id = follower.sql("SELECT @@server_id")?.trim().parse()?;
    follower.stop()?;
    let theirs = statements(&server);
    // A server counts its period in a float: 30 s come out as this.
    let period = Duration::from_nanos(30_000_001_024);
    let ClientProfile::Replica(profile) = replica(false, period) else { unreachable!() };
    let dump = DumpOptions {
        profile: ClientProfile::Replica(ReplicaProfile { server_uuid: uuid.parse()?, ..profile }),
        server_id: id,
        start: DumpStart::GtidSet { gtid_set: Default::default(), name: String::new(), position: 4 },
        non_blocking: true,
        verify_checksums: true,
    };
    fetch(&connect, dump, true)?;
    assert_eq!(statements(&server), theirs);
    assert!(theirs.len() >= 9, "{theirs:?}");
    Ok(())
}
