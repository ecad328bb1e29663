//! Encrypted logs: read with `--keyring` by every command, written with `--encrypt`.

use std::fs;
use std::io::Read;

use crate::common::Folder;
use binlogz_encryption::{DecryptingReader, Keyring};
use binlogz_testkit::{Result, Tool, corpus, require_tool};

const KEY_ID: &str = "MySQLReplicationKey_fd0d4f88-e54d-11f1-a6c4-02fc00000001_1";

/// An encrypted log `log`, its plaintext `plain` and its keyring `keys`.
fn folder() -> Folder {
    let folder = Folder::new();
    let files = corpus::encrypted();
    folder.put("log", fs::read(files.encrypted).unwrap());
    folder.put("plain", fs::read(files.plain).unwrap());
    folder.put("keys", fs::read(files.keyring).unwrap());
    folder
}

fn decrypted(folder: &Folder, name: &str) -> Vec<u8> {
    let keyring = Keyring::open(&folder.path("keys")).unwrap();
    let mut plain = Vec::new();
    DecryptingReader::new(folder.read(name).as_slice(), &keyring).unwrap().read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn every_command_reads_an_encrypted_log_as_its_plaintext() {
    let folder = folder();
    for command in [
        &["events"][..],
        &["verify"],
        &["compress", "--output", "-"],
        &["compress", "--salvage", "--output", "-"],
        &["expand", "--output", "-"],
    ] {
        let run = |of: &str| {
            folder.put("same-name", folder.read(of));
            let ran = folder.run([command, &["--keyring", "keys", "same-name"]].concat());
            assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
            ran.stdout
        };
        let plain = run("plain");
        assert!(!plain.is_empty() && run("log") == plain, "{command:?}");
    }
    let same = folder.run(["verify", "--keyring", "keys", "--same", "log", "--", "plain"]);
    same.is(0, "same: 3 transactions, 9 events\n", "");
}

#[test]
fn a_pipe_is_decrypted_too() {
    let folder = folder();
    let expanded = folder.run(["expand", "--output", "-", "plain"]).stdout;
    for log in ["log", "plain"] {
        let ran = folder.run_with(["expand", "--keyring", "keys", "--output", "-", "-"], &folder.read(log));
        assert!(ran.stdout == expanded, "{log}: {}", ran.stderr);
    }
}

#[test]
fn outputs_are_encrypted_with_the_keyrings_current_key() {
    let folder = folder();
    for (name, command) in [("small", "compress"), ("large", "expand")] {
        let ran = folder.run([command, "--keyring", "keys", "--encrypt", "--output", name, "log"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let plain = folder.run([command, "--output", "-", "plain"]).stdout;
        assert!(folder.read(name).starts_with(b"\xfdbin"));
        assert!(decrypted(&folder, name) == plain, "{command}");
    }
    // To standard output, and back.
    let compressed = folder.run(["compress", "--keyring", "keys", "--encrypt", "--output", "-", "plain"]);
    let expand = ["expand", "--keyring", "keys", "--output", "-", "-"];
    let expanded = folder.run_with(expand, &compressed.stdout);
    assert!(
        expanded.stdout == folder.run(["expand", "--output", "-", "plain"]).stdout,
        "{}",
        expanded.stderr
    );
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let folder = folder();
    let verify = |keys: &str| folder.run(["verify", "--keyring", keys, "log"]);
    verify("none").fails("none: No such file or directory (os error 2)");
    verify("log").fails(
        "log: not a keyring: it begins with \"\u{fffd}bin\\u{1}\\u{1}:MySQLReplicationK\", expected the JSON of \
         component_keyring_file or \"Keyring file version:2.0\" of the keyring_file plugin",
    );
    folder.put("empty", "");
    let fails = |ran: crate::common::Ran, line: &str| {
        assert_eq!((ran.stderr.as_str(), ran.code), (format!("binlogz: {line}\n").as_str(), Some(2)));
    };
    fails(
        verify("empty"),
        &format!("log: key {KEY_ID} is not in the keyring, which has no key of a binary log"),
    );
    let other = String::from_utf8(folder.read("keys")).unwrap().replace("D9B5", "0000");
    folder.put("other", other);
    let ran = verify("other");
    let begin = format!("binlogz: log: decrypted with key {KEY_ID} the log begins with ");
    assert!(ran.stderr.starts_with(&begin) && ran.code == Some(2), "{}", ran.stderr);
    let mut damaged = folder.read("log");
    damaged[65] = 9;
    folder.put("log", damaged);
    fails(verify("keys"), "log at 65: encryption header: field type is 9, expected 1, 2, 3 or 0");
}

#[test]
fn encrypting_needs_one_key_and_leaves_nothing_behind_without() {
    let folder = folder();
    folder.put("empty", "");
    let ran = folder.run(["compress", "--keyring", "empty", "--encrypt", "--output", "out", "plain"]);
    ran.fails("--encrypt: the keyring has no current key of any server, it has no key of a binary log");
    let ran = folder.run(["compress", "--encrypt", "--output", "out", "plain"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--keyring <FILE>"), "{}", ran.stderr);
    let uuid = "--encrypt=fd0d4f88-e54d-11f1-a6c4-02fc00000002";
    let ran = folder.run(["compress", "--keyring", "keys", uuid, "--output", "out", "plain"]);
    ran.fails(&format!(
        "--encrypt: the keyring has no current key of server fd0d4f88-e54d-11f1-a6c4-02fc00000002, it has {KEY_ID}"
    ));
    assert_eq!(folder.names(), ["empty", "keys", "log", "plain"]);
}

#[test]
fn a_server_serves_what_was_compressed_and_encrypted() -> Result<()> {
    let mut server = require_tool!(Tool::Mysql).sandbox().encrypted().start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT)")?;
    server.sql("INSERT INTO shop.item VALUES (1, REPEAT('tea', 10000))")?;
    let log = server.flush_binary_logs()?;
    server.stop()?;
    let folder = Folder::new();
    let (keyring, log_path) = (server.keyring(), log.display().to_string());
    let keyring = keyring.to_str().expect("ASCII");
    let ran = folder.run(["compress", "--keyring", keyring, "--encrypt", "--output", "small", &log_path]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = folder.run(["compress", "--keyring", keyring, "--output", "plain", &log_path]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(folder.read("small").len() < 5_000);
    fs::copy(folder.path("small"), &log).expect("in the data directory");
    server.start()?;
    let output = server.installed().mysqlbinlog([
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        "--user=root",
        "--host=127.0.0.1",
        &format!("--port={}", server.port()),
        &format!("--result-file={}", folder.path("fetched-").display()),
        "binlog.000001",
    ])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.read("fetched-binlog.000001") == folder.read("plain"));
    Ok(())
}
