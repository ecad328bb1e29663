//! `archive` on a file system that is really full: one clear line, an archive that is as it was or whole, no log half
//! restored. The file system is a tmpfs, which not everybody may mount.

use std::fs;

use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, Ran};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};
use binlogz_testkit::s3::{BUCKET, S3Server};

#[track_caller]
fn says_that_the_disk_is_full(ran: &Ran) {
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
}

#[test]
fn creating_and_restoring_on_a_full_disk() {
    let folder = Folder::new();
    let logs = ["binlog.000003", "binlog.000004", "binlog.000005"].map(|name| folder.sample("plain", name));
    // Room for the first log's archive, not for all three.
    let Some(_disk) = SmallDisk::mount(&folder.path("full"), 48 << 10) else { return };
    let created = folder.run(["archive", "create", "--to", "full/arc", "binlog.000004"]);
    assert_eq!((created.code, created.stderr.as_str()), (Some(0), ""));
    for _ in 0..2 {
        let create = ["archive", "create", "--to", "full/arc", "binlog.000003", "binlog.000005"];
        says_that_the_disk_is_full(&folder.run(create));
        let check = folder.run(["archive", "check", "full/arc"]);
        assert_eq!(String::from_utf8_lossy(&check.stdout), "1 log is whole\n");
        let left = fs::read_dir(folder.path("full/arc/objects")).unwrap();
        assert_eq!(
            left.count(),
            3,
            "the first log's segment, the manifest's copy and the record of the check"
        );
    }

    // Where there is room the same command does it; its logs go back to where there is none.
    let all = ["archive", "create", "--to", "arc", "binlog.000003", "binlog.000004", "binlog.000005"];
    assert_eq!(folder.run(all).code, Some(0));
    let restored = folder.run(["archive", "restore", "--to", "full/back", "arc", "binlog.000005"]);
    says_that_the_disk_is_full(&restored);
    assert_eq!(fs::read_dir(folder.path("full/back")).unwrap().count(), 0, "no log half restored");

    // Segments wait in a temporary file until they are stored or sent.
    let create = ["archive", "create", "--to", "other", "binlog.000003", "binlog.000004", "binlog.000005"];
    let mut command = folder.binlogz(create);
    let output = command.env("TMPDIR", folder.path("full")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("No space left on device"), "{stderr}");
    assert!(!folder.path("other/manifest.json").exists());

    assert_eq!(folder.run(["archive", "restore", "--to", "back", "arc"]).code, Some(0));
    for (name, log) in ["binlog.000003", "binlog.000004", "binlog.000005"].iter().zip(&logs) {
        assert!(folder.read(&format!("back/{name}")) == *log, "{name}");
    }
}

/// Segments and expanded payloads wait on a disk that is full, whatever room there is in the bucket.
#[test]
fn creating_in_object_storage_where_the_disk_for_temporary_files_is_full() {
    let folder = Folder::new();
    let Some(server) = S3Server::start() else { return };
    let Some(_disk) = SmallDisk::mount(&folder.path("full"), 48 << 10) else { return };
    let names = ["binlog.000003", "binlog.000004", "binlog.000005"];
    let mut logs = names.map(|name| folder.sample("plain", name)).to_vec();
    // A few hundred bytes that expand to more than there is room for.
    let payload = PayloadBody::zstd(&inner_transaction(&[&vec![0; 3 << 20]]));
    logs.push(LogBuilder::new(Release::MYSQL_9_7).payload(&payload).take());
    folder.put("binlog.000006", &logs[3]);
    let archive = format!("s3://{BUCKET}/arc");
    let run = |arguments: &[&str], logs: &[&str], temporary: &str| {
        let mut command = folder.binlogz([&["archive"], arguments, &[&archive], logs].concat());
        let output = command.envs(server.settings()).env("TMPDIR", folder.path(temporary)).output();
        Ran::from(output.unwrap())
    };
    let holds = |count: usize, objects: usize| {
        let check = run(&["check"], &[], "");
        let expected = match count {
            1 => "1 log is whole\n".to_owned(),
            _ => format!("{count} logs are whole and follow one another\n"),
        };
        assert_eq!(String::from_utf8_lossy(&check.stdout), expected);
        let segments = fs::read_dir(server.bucket().join("arc/objects")).unwrap();
        assert_eq!(segments.count(), objects, "segments, the manifest's copy and the record of the check");
    };
    let created = run(&["create", "--to"], &[names[1]], "full");
    assert_eq!((created.code, created.stderr.as_str()), (Some(0), ""));
    holds(1, 3);
    for _ in 0..2 {
        says_that_the_disk_is_full(&run(&["create", "--to"], &[names[0], names[2]], "full"));
        says_that_the_disk_is_full(&run(&["create", "--to"], &["binlog.000006"], "full"));
        holds(1, 3);
        assert_eq!(fs::read_dir(folder.path("full")).unwrap().count(), 0, "nothing is left there");
    }

    // Where there is room the same commands do it.
    let all = [names[0], names[1], names[2], "binlog.000006"];
    let created = run(&["create", "--to"], &all, "");
    assert_eq!((created.code, created.stderr.as_str()), (Some(0), ""));
    let created = String::from_utf8_lossy(&created.stdout).into_owned();
    assert!(
        created.contains("binlog.000006") && created.contains("payloads of level 3 expanded"),
        "{created}"
    );
    let restored = run(&["restore", "--to", "back"], &[], "");
    assert_eq!((restored.code, restored.stderr.as_str()), (Some(0), ""));
    for (name, log) in all.iter().zip(&logs) {
        assert!(folder.read(&format!("back/{name}")) == *log, "{name}");
    }
}
