//! An archive's manifest is believed no farther than somebody has looked: before purging, in lists, and for a log that is
//! torn.

use std::fs;

use binlogz_binlog::MAGIC;
use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_testkit::builder::{LogBuilder, Release};
use serde_json::Value;

use crate::common::Folder;

/// Two logs that are archived one after the other; a next file follows the second in the folder, so both are closed.
const FILES: [&str; 2] = ["binlog.000004", "binlog.000005"];

fn archived() -> Folder {
    let folder = Folder::new();
    FILES.iter().for_each(|name| drop(folder.sample("plain", name)));
    folder.put("binlog.000006", "");
    for name in FILES {
        folder.run(["archive", "create", "--to", "arc", name]).is_done();
    }
    folder
}

/// The object of each log.
fn object(folder: &Folder, log: usize) -> std::path::PathBuf {
    let manifest: Value = serde_json::from_slice(&folder.read("arc/manifest.json")).unwrap();
    let name = manifest["files"][log]["objects"][0].as_str().unwrap().to_owned();
    folder.path("arc/objects").join(name)
}

#[test]
fn nothing_may_be_purged_whose_object_is_missing() {
    let folder = archived();
    let ran = folder.run(["archive", "create", "--to", "arc", FILES[0], FILES[1]]);
    ran.is_done();
    let purge = "binlog.000004 to binlog.000005 are archived; where the source has none older: PURGE BINARY LOGS TO 'binlog.000006';\n";
    assert!(ran.text().ends_with(purge), "{}", ran.text());

    // One that is given is stored again.
    for damaged in [None, Some(100), Some(0)] {
        let path = object(&folder, 0);
        let bytes = fs::read(&path).unwrap();
        let expected = match damaged {
            Some(size) => {
                fs::write(&path, &bytes[..size]).unwrap();
                "is damaged"
            }
            None => {
                fs::remove_file(&path).unwrap();
                "is missing\n"
            }
        };
        let ran = folder.run(["archive", "create", "--to", "arc", FILES[0], FILES[1]]);
        ran.is_done();
        assert!(
            ran.text().contains("; it was stored again: segment-") && ran.text().contains(expected),
            "{}",
            ran.text()
        );
        assert!(ran.text().ends_with(purge), "{}", ran.text());
        folder.run(["archive", "check", "arc"]).is_done();
    }

    // One that is not given can't be; its file may lie beside the others, or not.
    for is_beside in [true, false] {
        let path = object(&folder, 0);
        let bytes = fs::read(&path).unwrap();
        if !is_beside {
            fs::remove_file(folder.path(FILES[0])).unwrap();
        }
        for damaged in [None, Some(&bytes[..100]), Some(&vec![0; bytes.len()])] {
            match damaged {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            // Of a log whose file isn't there, only the size of the object is known.
            if !is_beside && damaged.is_some_and(|damaged| damaged.len() == bytes.len()) {
                continue;
            }
            let ran = folder.run(["archive", "create", "--to", "arc", FILES[1]]);
            ran.is_done();
            let said = ran.text().to_owned();
            assert!(
                !said.contains("PURGE BINARY LOGS TO")
                    && said.contains(": no PURGE BINARY LOGS that goes so far is safe; give it to"),
                "{said}"
            );
            assert!(said.contains("of binlog.000004 segment-"), "{said}");
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn verify_reads_the_objects_of_what_is_there_already() {
    let folder = archived();
    let path = object(&folder, 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let already = "binlog.000004: is in the archive already\n";
    let ran = folder.run(["archive", "create", "--to", "arc", FILES[0]]);
    assert!(ran.text().starts_with(already), "{}", ran.text());
    let ran = folder.run(["archive", "create", "--verify", "--to", "arc", FILES[0]]);
    ran.is_done();
    assert!(ran.text().contains("stored again: ") && ran.text().contains("SHA-256"), "{}", ran.text());
    let ran = folder.run(["archive", "create", "--verify", "--to", "arc", FILES[0]]);
    assert!(ran.text().starts_with(already), "{}", ran.text());
}

/// The archive's state in `fleet`, and the exit code of `fleet`.
fn state(folder: &Folder) -> (String, Option<i32>) {
    folder.put("fleet.toml", "[[archive]]\nto = 'arc'\n");
    let ran = folder.run(["fleet", "--targets", "fleet.toml", "--format", "json"]);
    let document: Value = serde_json::from_str(ran.text()).unwrap();
    (document["rows"][0]["state"].as_str().unwrap().to_owned(), ran.code)
}

#[test]
fn whole_is_only_what_a_check_has_found_whole() {
    let folder = archived();
    let list = |format: &str| folder.run(["archive", "list", "--format", format, "arc"]).text().to_owned();
    assert!(
        list("text").contains("never checked: whether its objects are still there is not known\n"),
        "{}",
        list("text")
    );
    assert!(!list("prometheus").contains("last_check_timestamp_seconds{"), "{}", list("prometheus"));
    assert_eq!(state(&folder), ("Not checked".to_owned(), Some(0)));

    for depth in ["presence", "hash", "content"] {
        folder.run(["archive", "check", "--depth", depth, "arc"]).is_done();
        let line = format!(", {depth}: 2 logs up to binlog.000005, whole\n");
        assert!(list("text").contains("last check: ") && list("text").contains(&line), "{}", list("text"));
        let document: Value = serde_json::from_str(&list("json")).unwrap();
        assert_eq!(
            (&document["last_check"]["depth"], &document["last_check"]["problems"], &document["damaged"]),
            (&depth.into(), &0.into(), &false.into())
        );
        assert_eq!(state(&folder), ("Whole".to_owned(), Some(0)));
    }
    assert!(
        list("prometheus").contains("binlogz_archive_check_problems{archive=\"arc\"} 0\n"),
        "{}",
        list("prometheus")
    );

    let path = object(&folder, 0);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for depth in ["presence", "hash", "content"] {
        let ran = folder.run(["archive", "check", "--depth", depth, "arc"]);
        assert_eq!(ran.code, Some(1), "{}", ran.text());
        assert_eq!(state(&folder), ("Damaged".to_owned(), Some(1)));
    }
    // What was seen damaged stays so until it is looked at as closely.
    fs::write(&path, bytes).unwrap();
    folder.run(["archive", "check", "--depth", "presence", "arc"]).is_done();
    assert_eq!(state(&folder), ("Damaged".to_owned(), Some(1)));
    folder.run(["archive", "check", "arc"]).is_done();
    assert_eq!(state(&folder), ("Whole".to_owned(), Some(0)));
}

#[test]
fn a_torn_or_damaged_log_is_refused_or_kept_as_a_part() {
    let folder = Folder::new();
    let case =
        format!("{}/../../storage/archive/tests/fixtures/torn-closed.000004", env!("CARGO_MANIFEST_DIR"));
    let case = fs::read(case).unwrap();
    let whole = LogBuilder::new(Release::MYSQL_9_7).transaction(&[b"one"]).transaction(&[b"two"]).take();
    let damaged = with_flipped(&whole, whole.len() - 40);
    let in_use = with_flipped(&damaged, MAGIC.len() + FLAGS_OFFSET);
    let cut = "the log ends inside an event: ";
    let differs = ", the bytes give 0x";
    for (what, torn, why) in [
        ("a real one", &case[..], cut),
        ("one byte short", &whole[..whole.len() - 1], cut),
        ("a flipped bit", &damaged, differs),
        ("a flipped bit, and not closed", &in_use, differs),
    ] {
        let _ = fs::remove_dir_all(folder.path("arc"));
        folder.put("binlog.000004", torn);
        folder.put("binlog.000005", "");
        let ran = folder.run(["archive", "create", "--to", "arc", "binlog.000004"]);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{what}");
        assert!(
            ran.stderr.starts_with("binlogz: binlog.000004: at ")
                && ran.stderr.contains(why)
                && ran.stderr.ends_with("--salvage stores the transactions that are whole\n"),
            "{what}: {}",
            ran.stderr
        );
        assert!(!folder.path("arc/manifest.json").exists());
        for option in ["--salvage", "--include-active"] {
            let ran = folder.run(["archive", "create", option, "--to", "arc", "binlog.000004"]);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{what}");
            let said = ran.text();
            assert!(
                said.contains(", as far as it is whole: at ") && !said.contains("PURGE"),
                "{what}: {said}"
            );
        }
        let list = folder.run(["archive", "list", "arc"]);
        assert!(list.text().contains("binlog.000004 (part)"), "{}", list.text());
        folder.run(["archive", "restore", "--force", "--to", "back", "arc"]).is_done();
        let back = folder.read("back/binlog.000004");
        assert!(back.len() < torn.len() && back[25..] == torn[25..back.len()], "{what}");
    }
    // One in use that is damaged, without a next one.
    fs::remove_file(folder.path("binlog.000005")).unwrap();
    fs::remove_dir_all(folder.path("arc")).unwrap();
    let ran = folder.run(["archive", "create", "--include-active", "--to", "arc", "binlog.000004"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{}", ran.text());
    assert!(ran.text().contains(differs), "{}", ran.text());
    // The whole log takes the part's place.
    folder.put("binlog.000004", &whole);
    folder.run(["archive", "create", "--to", "arc", "binlog.000004"]).is_done();
    folder.run(["archive", "restore", "--force", "--to", "back", "arc"]).is_done();
    assert!(folder.read("back/binlog.000004") == whole);
}

/// These bytes, with the lowest bit of one of them flipped.
fn with_flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn what_was_meant_as_an_address_makes_no_folder() {
    let folder = Folder::with_sample("plain", FILES[0]);
    for (place, meant) in [
        ("s3:/b/x", "s3://b/x"),
        ("S3://b/y", "s3://b/y"),
        ("file:///x", "/x"),
        ("https://x", "AWS_ENDPOINT_URL"),
    ] {
        for args in [
            &["archive", "create", "--to", place, FILES[0]][..],
            &["archive", "list", place],
            &["archive", "check", place],
            &["archive", "copy", "arc", place],
        ] {
            let ran = folder.run(args);
            assert_eq!(ran.code, Some(2), "{args:?}");
            if args[1] != "copy" {
                assert!(ran.stderr.contains("place is ") && ran.stderr.contains(meant), "{}", ran.stderr);
            }
        }
        let scheme = place.split('/').next().unwrap();
        assert!(!folder.path(scheme).exists(), "{place}");
    }
}
