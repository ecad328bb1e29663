//! Encrypted archives, as their owner uses them: the key comes from the environment, for every command.

use std::fs;

use binlogz_testkit::corpus;
use binlogz_testkit::faults::FaultShim;
use binlogz_testkit::texts::RowTexts;

use crate::common::{Folder, Ran};

const KEY_FILE: &str = "BINLOGZ_ARCHIVE_KEY_FILE";
const LOGS: [&str; 2] = ["binlog.000004", "binlog.000005"];

/// A folder with logs and two keys.
fn folder() -> Folder {
    let folder = Folder::new();
    LOGS.iter().for_each(|name| drop(folder.sample("plain", name)));
    folder.put_secret("key", "07".repeat(32));
    folder.put_secret("other-key", "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwg=\n");
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
    let corpus::EncryptedSample { encrypted, keyring, plain } = corpus::encrypted();
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

/// The objects of an unencrypted archive of these logs, before and after a merge: one input is always packed into the
/// same bytes.
fn packed_without_key(folder: &Folder, logs: [&str; 2]) -> Vec<Vec<u8>> {
    let mut objects = Vec::new();
    let mut add_objects = || {
        let entries = fs::read_dir(folder.path("plain/objects")).unwrap();
        objects.extend(entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()));
    };
    logs.iter().for_each(|log| folder.run(["archive", "create", "--to", "plain", log]).is_done());
    add_objects();
    folder.run(["archive", "merge", "--grace", "0", "plain"]).is_done();
    add_objects();
    objects
}

/// Everything that commands write, also to files without a name and to deleted ones, is searched for texts of rows and
/// for rows as an archive packs them. They may occur only in output that asks for the logs themselves.
#[test]
fn no_text_of_a_row_is_in_any_file_that_a_command_writes() {
    let Some(shim) = FaultShim::require() else { return };
    let folder = folder();
    for name in ["tmp", "written", "compressed"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    // With payloads, which are expanded on the way.
    let packed = format!("compressed/{}", LOGS[1]);
    folder.put(&packed, crate::common::sample("compressed", LOGS[1]));
    let texts = RowTexts::of(LOGS.map(|name| folder.read(name)).iter().map(Vec::as_slice));
    assert!(texts.count() > 1000, "{}", texts.count());
    let objects = packed_without_key(&folder, [LOGS[0], &packed]);
    let texts = texts.and_bytes(objects.iter().map(Vec::as_slice));
    assert!(objects.iter().all(|object| texts.are_in(object)));
    let written = |args: &[&str]| {
        let kept = folder.path("written");
        fs::remove_dir_all(&kept).unwrap();
        fs::create_dir(&kept).unwrap();
        let mut command = folder.binlogz(args);
        command.env(KEY_FILE, folder.path("key")).env("TMPDIR", folder.path("tmp")).envs(shim.keeping(&kept));
        let ran = Ran::from(command.output().unwrap());
        // The two logs don't follow one another, and not all can be undone.
        let is_negative = ran.code == Some(1) && (args[0] == "undo" || args[1] == "check");
        assert!(ran.code == Some(0) || is_negative, "{args:?}: {}{}", ran.stderr, ran.text());
        let files: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let found: Vec<_> = texts.found_in(&kept).unwrap();
        let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        (files, found)
    };
    let (mut count, mut readable) = (0, Vec::new());
    for args in [
        &["archive", "create", "--to", "arc", LOGS[0]][..],
        &["archive", "create", "--to", "arc", &packed],
        &["archive", "copy", "arc", "copied"],
        &["archive", "copy", "--to-key-file", "other-key", "arc", "other"],
        &["archive", "merge", "--grace", "0", "arc"],
        &["archive", "check", "arc"],
        &["archive", "cat", "arc"],
        &["archive", "change-key", "--new-key-file", "key", "arc"],
        &["dump", "--no-defaults", "-v", "arc"],
        &["dump", "--no-defaults", "--format", "jsonl", "arc"],
        &["stats", "--by", "table", "arc"],
        &["rows", "sbtest.sbtest1", "arc/binlog.000004"],
        &["undo", "arc/binlog.000004"],
        &["verify", "arc"],
        &["archive", "prune", "--keep-bytes", "1", "--grace", "0", "arc"],
    ] {
        let (files, found) = written(args);
        if !found.is_empty() {
            readable.push((args.join(" "), found));
        }
        count += files.len();
    }
    assert!(readable.is_empty(), "rows can be read in {readable:#?}");
    assert!(count > 20, "{count} files");
    assert_eq!(texts.found_in(&folder.path("arc")).unwrap(), Vec::<std::path::PathBuf>::new());
    // The test finds them where they are.
    for (args, place) in [
        (["archive", "restore", "--to", "back", "copied"], "%back%"),
        (["archive", "copy", "--plaintext", "copied", "readable"], "%readable%objects%"),
    ] {
        let (_, found) = written(&args);
        let is_there = |name: &std::ffi::OsString| name.to_str().unwrap().contains(place);
        assert!(!found.is_empty() && found.iter().all(is_there), "{args:?}: {found:?}");
    }
}
