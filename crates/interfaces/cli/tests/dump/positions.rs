//! `dump --start-position` compared with mysqlbinlog: the events before the position are not read, and a bad position
//! ends in the same way.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{Folder, sample};
use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::{InstalledTool, Tool, corpus, require_tool};

/// Both programs must print the same from `start` on, with the same exit code.
#[track_caller]
fn same_as_mysqlbinlog(mysql: &InstalledTool, folder: &Folder, log: &Path, start: u64) -> String {
    same_between(mysql, folder, log, (start, None))
}

/// Both programs must print the same from `start` to `stop`, with the same exit code.
#[track_caller]
fn same_between(
    mysql: &InstalledTool,
    folder: &Folder,
    log: &Path,
    (start, stop): (u64, Option<u64>),
) -> String {
    let start = format!("--start-position={start}");
    let stop = stop.map(|stop| format!("--stop-position={stop}"));
    let mut arguments = vec!["--no-defaults".as_ref(), "-v".as_ref(), start.as_ref(), log.as_os_str()];
    arguments.extend(stop.as_ref().map(AsRef::<OsStr>::as_ref));
    let theirs = mysql.mysqlbinlog(&arguments).unwrap();
    let ours = folder.mysqlbinlog(&arguments).output().unwrap();
    assert_eq!(ours.status.code(), theirs.status.code(), "{start} {}", log.display());
    assert!(ours.stdout == theirs.stdout, "{start} {}: another text", log.display());
    String::from_utf8_lossy(&ours.stdout).into_owned()
}

/// A file of 5 GiB with a hole in its middle: nothing there could be read as an event.
#[test]
fn what_stands_in_front_is_not_read() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let path = folder.path("binlog.000001");
    let file = File::create(&path).unwrap();
    let head = log.transaction(&[b"first"]).take();
    file.write_all_at(&head, 0).unwrap();
    let start = log.skip(5 << 30).offset();
    let tail = log.transaction(&[b"last"]).take();
    file.write_all_at(&tail, start).unwrap();

    let text = same_as_mysqlbinlog(mysql, &folder, &path, start);
    assert!(text.contains(&format!("# at {start}\n")) && !text.contains("# at 250\n"), "{text}");
}

#[test]
fn bad_positions_end_as_with_mysqlbinlog() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for log in ["binlog.000003", "binlog.000006", "relay.000013", "levels.000003"].map(corpus::path) {
        let size = log.metadata().unwrap().len();
        // In the header events, inside an event, in its middle, at the end, beyond it, beyond 4 GiB.
        for start in [0, 3, 5, 127, 130, 300, size / 2, size - 1, size, size + 1, 5 << 30] {
            same_as_mysqlbinlog(mysql, &folder, &log, start);
        }
    }
    // Damage and a cut matter to those alone who read there.
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let damaged = log.transaction(&[b"one"]).offset() as usize;
    let start = log.transaction(&[b"two"]).offset();
    let mut bytes = log.transaction(&[b"three"]).bytes().to_vec();
    bytes[damaged..damaged + 40].fill(0);
    bytes.truncate(bytes.len() - 5);
    let path = folder.put("binlog.000002", &bytes);
    let text = same_as_mysqlbinlog(mysql, &folder, &path, start);
    assert!(text.contains("Table_map"), "{text}");
    same_as_mysqlbinlog(mysql, &folder, &path, 4);
    same_as_mysqlbinlog(mysql, &folder, &path, bytes.len() as u64);
}

/// The variables of a statement, in the middle of its transaction.
#[test]
fn a_log_shown_from_a_variable_on_says_its_character_set() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let path = folder.put("binlog.000007", sample("compressed", "binlog.000007"));
    // User variables of each type, the seed of RAND(), the statement after them.
    for start in [6498, 6530, 6585, 6686, 6765, 7121, 7153, 7192] {
        // Behind it comes LOAD DATA, whose files have names of their own in each run.
        let text = same_between(mysql, &folder, &path, (start, Some(7_500)));
        assert!(text.contains(&format!("# at {start}\n")), "{start}");
    }
}
