//! `archive` on a file system that is really full: one clear line, an archive that is as it was or whole, no log half
//! restored. The file system is a tmpfs, which not everybody may mount.

mod common;

use std::fs;

use common::small_disk::SmallDisk;
use common::{Folder, Ran};

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
        assert_eq!(String::from_utf8_lossy(&check.stdout), "1 logs are whole and follow one another\n");
        let left = fs::read_dir(folder.path("full/arc/objects")).unwrap();
        assert_eq!(left.count(), 2, "the first log's segment and the manifest's copy");
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
