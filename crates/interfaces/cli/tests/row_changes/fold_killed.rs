//! `fold` that is killed: the log appears once it is whole, and the same command gives it afterwards.

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::common::{Folder, sample};

const LOGS: [&str; 3] = ["binlog.000003", "binlog.000004", "binlog.000005"];
const FOLD: [&str; 4] = ["fold", "--force", "--to", "folded"];

/// Files that aren't given logs, nor what killed processes leave of temporary files.
fn other_names(folder: &Folder) -> Vec<String> {
    let is_other = |name: &String| !name.starts_with("binlog.") && !name.starts_with(".binlogz-");
    folder.names().into_iter().filter(is_other).collect()
}

/// Killed while it waits for this many bytes of the last log.
fn killed(folder: &Folder, count: usize) {
    let last = sample("plain", LOGS[2]);
    let mut run = folder.spawn(FOLD.iter().chain(&LOGS[..2]).chain(&["-"]));
    let mut pipe = run.stdin.take().unwrap();
    pipe.write_all(&last[..count.min(last.len())]).unwrap();
    pipe.flush().unwrap();
    thread::sleep(Duration::from_millis(100));
    assert!(run.try_wait().unwrap().is_none(), "it ended before it was killed");
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn a_killed_fold_leaves_the_file_as_it_was() {
    let folder = Folder::new();
    LOGS.iter().for_each(|log| drop(folder.sample("plain", log)));
    let whole = {
        folder.run(FOLD.iter().chain(&LOGS)).is_done();
        folder.read("folded")
    };
    std::fs::remove_file(folder.path("folded")).unwrap();
    for count in [0, 1, 200, 10_000, 142_000] {
        killed(&folder, count);
        assert!(other_names(&folder).is_empty(), "{count}");
    }
    // A file that is there stays, to its last byte.
    File::create(folder.path("folded")).unwrap().write_all(b"before").unwrap();
    killed(&folder, 10_000);
    assert_eq!(folder.read("folded"), b"before");
    folder.run(FOLD.iter().chain(&LOGS)).is_done();
    assert!(folder.read("folded") == whole);
    assert_eq!(other_names(&folder), ["folded"]);
}
