//! The behaviour that a signal handler relies on. A binary of its own: the list of unfinished files is the whole process's.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use binlogz_atomic_file::{AtomicFile, ExistingFile, TemporaryFolder, remove_unfinished};

#[test]
fn unfinished_files_are_removed_and_none_is_begun_or_finished_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let finished = AtomicFile::begin(&place, 0o600).unwrap();
    finished.finish(ExistingFile::Refuse).unwrap();
    let unfinished = AtomicFile::begin(&place, 0o600).unwrap();
    let temporary = TemporaryFolder::begin(folder.path(), "folder-").unwrap();
    std::fs::write(temporary.path().join("inside"), "").unwrap();

    let ending = remove_unfinished();
    let names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a"]);

    let (told, heard) = channel();
    let begins = thread::spawn({
        let place = folder.path().join("b");
        move || told.send(AtomicFile::begin(&place, 0o600).map(drop).is_ok())
    });
    assert_eq!(heard.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
    drop(ending);
    assert_eq!(heard.recv_timeout(Duration::from_secs(60)), Ok(true));
    begins.join().unwrap().unwrap();
    assert!(unfinished.finish(ExistingFile::Replace).is_err());
}
