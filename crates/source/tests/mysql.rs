//! Against a real MySQL: every method of authentication, every way to ask for a log, byte for byte.

use std::fs;
use std::path::Path;
use std::time::Duration;

use binlogz_source::wire::auth::Password;
use binlogz_source::wire::session::{DumpStart, Profile, ReplicaProfile};
use binlogz_source::{
    ConnectOptions, Connection, DumpOptions, Error, PasswordOption, Protocol, RemoteLog, SslMode,
};
use binlogz_testkit::{MysqlSandbox, Server, Tool, require_tool};

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

fn tcp(server: &Server, user: &str, password: &str) -> ConnectOptions {
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

fn over_socket(server: &Server, options: &ConnectOptions) -> ConnectOptions {
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

fn replica(semi_sync: bool, heartbeat_period: Duration) -> Profile {
    Profile::Replica(ReplicaProfile {
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
            for profile in [Profile::Mysqlbinlog, replica(false, Duration::from_secs(1))] {
                for in_pieces in [false, true] {
                    let dump = DumpOptions {
                        profile: profile.clone(),
                        server_id: if profile == Profile::Mysqlbinlog { 0 } else { 4711 },
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
