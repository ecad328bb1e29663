//! `make run FILES=…`: the main job on a user's own folder, which also holds files that aren't logs.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Ran};

/// The script in the folder, with the program of this build.
fn demo(folder: &Folder, files: &[&str]) -> Ran {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/run-demo.sh");
    let mut command = Command::new(script);
    command.args(files).current_dir(folder.path("")).env("BINLOGZ", env!("CARGO_BIN_EXE_binlogz"));
    command.output().unwrap().into()
}

#[test]
fn what_lies_beside_the_logs_is_skipped_with_a_line() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.put("binlog.index", "./binlog.000009\n");
    folder.put("binlog.000010.gz", b"\x1f\x8b\x08\0\0");
    folder.put("binlog.000011", b"");
    folder.put("binlog.000012", b"\xfdbin\x01");
    folder.put("binlog.old/binlog.000001", b"");
    let files =
        ["binlog.000009", "binlog.000010.gz", "binlog.000011", "binlog.000012", "binlog.index", "binlog.old"];
    let ran = demo(&folder, &files);
    ran.is_done();
    let skipped: Vec<_> = ran.text().lines().filter(|line| line.starts_with("skipped")).collect();
    assert_eq!(
        skipped,
        [
            "skipped binlog.000010.gz: not a binary log",
            "skipped binlog.000011: not a binary log",
            "skipped binlog.000012: an encrypted log; \"binlogz compress --keyring FILE\" reads it",
            "skipped binlog.index: the list of the logs",
            "skipped binlog.old: a folder",
        ]
    );
    assert!(ran.text().contains("every file came back, byte for byte"), "{}", ran.text());
    demo(&folder, &["binlog.index"]).is(
        2,
        "skipped binlog.index: the list of the logs\n",
        "no binary log among them\n",
    );
}
