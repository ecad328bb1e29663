//! Encrypted archives, as their owner uses them: the key comes from the environment, for every command.

use std::fs;

use binlogz_testkit::corpus;

use crate::common::{Folder, Ran};

const KEY_FILE: &str = "BINLOGZ_ARCHIVE_KEY_FILE";
const LOGS: [&str; 2] = ["binlog.000004", "binlog.000005"];

/// A folder with logs and two keys.
fn folder() -> Folder {
    let folder = Folder::new();
    LOGS.iter().for_each(|name| drop(folder.sample("plain", name)));
    folder.put("key", "07".repeat(32));
    folder.put("other-key", "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwg=\n");
    folder
}

/// Runs with the key in this file, or with none.
fn run(folder: &Folder, key: &str, args: &[&str]) -> Ran {
    let mut command = folder.binlogz(args);
    if !key.is_empty() {
        command.env(KEY_FILE, folder.path(key));
    }
    command.output().unwrap().into()
}

#[test]
fn every_command_reads_it_with_the_key_and_none_without() {
    let folder = folder();
    run(&folder, "key", &["archive", "create", "--to", "arc", LOGS[0], LOGS[1]]).is_done();
    let plain = folder.run(["dump", "-v", LOGS[0], LOGS[1]]);
    let dumped = run(&folder, "key", &["dump", "-v", "arc"]);
    assert_eq!((dumped.code, dumped.text() == plain.text()), (Some(0), true), "{}", dumped.stderr);
    run(&folder, "key", &["archive", "check", "arc"]).is(0, "2 logs are whole and follow one another\n", "");
    run(&folder, "key", &["archive", "restore", "--to", "back", "arc"]).is_done();
    assert!(folder.read(&format!("back/{}", LOGS[1])) == folder.read(LOGS[1]));

    // 1 of dump, as of mysqlbinlog.
    for args in [
        &["dump", "arc"][..],
        &["archive", "list", "arc"],
        &["stats", "arc"],
        &["archive", "prune", "--keep=1d", "arc"],
    ] {
        let ran = run(&folder, "", args);
        assert_eq!(ran.code, Some(if args[0] == "dump" { 1 } else { 2 }), "{args:?}");
        let said = "it is encrypted with the key 1193e99138222ac1, expected the key from BINLOGZ_ARCHIVE_KEY_FILE or";
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
    let ran = run(&folder, "other-key", &["archive", "cat", "arc"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("which the archive is encrypted with"),
        "{}",
        ran.stderr
    );

    run(&folder, "key", &["archive", "change-key", "--new-key-file", "other-key", "arc"]).is(
        0,
        "arc: encrypted with the key of other-key from now on\n",
        "",
    );
    assert_eq!(run(&folder, "key", &["archive", "list", "arc"]).code, Some(2));
    run(&folder, "other-key", &["archive", "list", "arc"]).is_done();
}

#[test]
fn what_was_secret_stays_so_unless_plaintext_is_asked_for() {
    let folder = folder();
    let corpus::Encrypted { encrypted, keyring, plain } = corpus::encrypted();
    let name = encrypted.file_name().unwrap().to_str().unwrap();
    fs::copy(&encrypted, folder.path(name)).unwrap();
    let keyring = format!("--keyring={}", keyring.display());
    let create = ["archive", "create", "--to", "arc", &keyring, name];
    run(&folder, "", &create).fails(&format!(
        "{name}: its server encrypted it, and the archive is not encrypted: BINLOGZ_ARCHIVE_KEY_FILE names a key for a new \
         archive, --plaintext stores it all the same"
    ));
    run(&folder, "key", &create).is_done();
    run(&folder, "key", &["archive", "restore", "--to", "back", "arc"]).is_done();
    assert!(folder.read(&format!("back/{name}")) == fs::read(&plain).unwrap());

    // A copy of a secret is one, unless it is told otherwise.
    let copied = |key: &str, args: &[&str]| run(&folder, key, &[&["archive", "copy"], args].concat());
    copied("key", &["arc", "same-key"]).is_done();
    copied("key", &["--to-key-file", "other-key", "arc", "other"]).is_done();
    assert_eq!(run(&folder, "key", &["archive", "list", "other"]).code, Some(2));
    run(&folder, "other-key", &["archive", "check", "other"]).is_done();
    copied("key", &["--plaintext", "arc", "plain"]).is_done();
    run(&folder, "", &["archive", "check", "plain"]).is_done();
    copied("key", &["arc", "plain"]).fails(
        "plain: is not encrypted, expected an encrypted archive, as the copied one is, or --plaintext",
    );
    run(&folder, "key", &["archive", "create", "--to", "plain", LOGS[0]]).fails(
        "plain: is not encrypted, though the environment names a key: `archive copy` makes an encrypted copy",
    );
}
