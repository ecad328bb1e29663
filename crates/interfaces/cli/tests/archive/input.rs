//! Every command that reads logs reads those of an archive: all of it, or one by its name, from a folder or from S3.

use std::fs;
use std::process::Command;

use crate::common::{Folder, Ran};
use binlogz_testkit::s3::S3Server;

const FILES: [&str; 2] = ["binlog.000004", "binlog.000009"];

/// A folder with logs and an archive of them.
fn archived() -> Folder {
    let folder = Folder::new();
    for name in FILES {
        folder.sample("plain", name);
    }
    folder.run(["archive", "create", "--to", "arc", FILES[0], FILES[1]]).is_done();
    folder
}

#[test]
fn commands_say_of_an_archive_what_they_say_of_its_logs() {
    let folder = archived();
    for command in
        [&["dump", "--no-defaults", "-v"][..], &["events"], &["stats", "--format", "json", "--by", "table"]]
    {
        let of = |logs: &[&str]| folder.run(command.iter().chain(logs));
        let (of_files, of_archive) = (of(&FILES), of(&["arc"]));
        of_archive.is_done();
        assert!(of_archive.stdout == of_files.stdout && !of_files.stdout.is_empty(), "{command:?}");
        let one = of(&["arc/binlog.000009"]);
        one.is_done();
        assert!(one.stdout == of(&FILES[1..]).stdout, "{command:?}");
    }
    // Here the name of the log is in each line.
    let lines = |log: &str| folder.run(["dump", "--format", "jsonl", log]).text().replace("arc/", "");
    assert!(lines("arc/binlog.000009") == lines("binlog.000009") && !lines("arc").is_empty());
    let ran = folder.run(["verify", "arc"]);
    ran.is_done();
    assert!(ran.text().contains("\n  arc/binlog.000004  ok "), "{}", ran.text());
    folder.run(["verify", "--same", "arc", "--", FILES[0], FILES[1]]).is_done();
    folder.run(["advise", "--exact", "--levels", "3", "arc"]).is_done();
    let ran = folder.run(["compress", "--output", "small", "arc/binlog.000004"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    folder.run(["verify", "arc/none"]).fails("arc/none: is not in the archive");
}

#[test]
fn a_damaged_archive_is_trouble_of_the_log_alone() {
    let folder = Folder::new();
    for name in FILES {
        folder.sample("plain", name);
    }
    folder.run(["archive", "create", "--to", "arc", FILES[0]]).is_done();
    let object = folder.segment("arc");
    let mut bytes = fs::read(&object).unwrap();
    bytes[500] ^= 1;
    folder.run(["archive", "create", "--to", "arc", FILES[1]]).is_done();
    fs::write(&object, bytes).unwrap();
    let ran = folder.run(["verify", "arc"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("checksum differs") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    assert!(ran.text().contains("arc/binlog.000009"), "{}", ran.text());
}

#[test]
fn an_archive_in_s3_does_what_one_in_a_folder_does() {
    let Some(server) = S3Server::start() else { return };
    let folder = archived();
    let binlogz = |arguments: &[&str]| -> Ran {
        let mut command: Command = folder.binlogz(arguments);
        command.envs(server.settings());
        command.output().unwrap().into()
    };
    const PLACE: &str = "s3://bucket/db1/logs";
    let created = binlogz(&["archive", "create", "--to", PLACE, FILES[0], FILES[1]]);
    created.is_done();
    assert!(created.text().contains("binlog.000008 is not: no PURGE"), "{}", created.text());
    for arguments in
        [&["archive", "list"][..], &["archive", "check"], &["archive", "cat"], &["dump", "--no-defaults"]]
    {
        let of = |place: &str| binlogz(&[arguments, &[place]].concat());
        let (in_s3, in_folder) = (of(PLACE), of("arc"));
        assert_eq!((in_s3.code, in_s3.stderr), (in_folder.code, in_folder.stderr), "{arguments:?}");
        assert!(in_s3.stdout == in_folder.stdout && !in_folder.stdout.is_empty(), "{arguments:?}");
    }
    binlogz(&["archive", "restore", "--to", "back", PLACE]).is_done();
    for name in FILES {
        assert!(folder.read(&format!("back/{name}")) == folder.read(name), "{name}");
    }
    let one = binlogz(&["events", "s3://bucket/db1/logs/binlog.000009"]);
    assert_eq!(one.text(), binlogz(&["events", FILES[1]]).text());

    binlogz(&["archive", "list", "s3://bucket/other"])
        .fails("s3://bucket/other: is no archive: neither it nor a place below it has a manifest.json");
    let nowhere = binlogz(&["archive", "create", "--to", "s3://nowhere/x", FILES[0]]);
    assert_eq!((nowhere.code, nowhere.stderr.lines().count()), (Some(2), 1), "{}", nowhere.stderr);
    assert!(
        nowhere.stderr.contains("read s3://nowhere/x/manifest.json: 404 Not Found: NoSuchBucket"),
        "{}",
        nowhere.stderr
    );
}
