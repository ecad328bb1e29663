//! Where logs end.

use std::fs;

use binlogz_relay::{LogError, StopAt};

use super::{UUID, ended, gtids, samples};
use crate::{ReplayError, ReplayedLogs, check_paths};

/// The flags of the format description; a server that has the log open sets the lowest.
const IN_USE_OFFSET: usize = 4 + 17;

#[test]
fn logs_end_where_they_are_told_to() {
    let all = samples(1..=6);
    let gtid = |number: u32| format!("{UUID}:{number}").parse().unwrap();
    for (stop, last) in [
        (StopAt::End, 426),
        (StopAt::After(gtid(30)), 30),
        (StopAt::Before(gtid(30)), 29),
        (StopAt::After(gtid(370)), 370),
        (StopAt::Before(gtid(370)), 369),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (ended, told) = ended(&all, &stop, folder.path());
        let ended = ended.unwrap();
        assert_eq!(told, [""; 0]);
        assert!(ended.before.is_empty(), "{stop:?}: {}", ended.before);
        assert_eq!(ended.gtids, gtids(&format!("1-{last}")), "{stop:?}");
        // The last log, cut, its index, and the store's lock.
        let (_, last_log) = ended.logs().range();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [last_log, "binlog.index", "binlogz.lock"], "{stop:?}");
    }
}

#[test]
fn a_moment_that_the_logs_lack_is_unmet() {
    let folder = tempfile::tempdir().unwrap();
    let stop = StopAt::After(format!("{UUID}:900").parse().unwrap());
    let (ended, _) = ended(&samples(1..=3), &stop, folder.path());
    match ended {
        Err(ReplayError::Logs(error @ LogError::Unmet(_))) => {
            assert!(error.to_string().contains(":900 is in none of the logs"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_is_missing_between_two_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (ended, _) = ended(&samples([1, 2, 4]), &StopAt::End, folder.path());
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("binlog.000003 is missing between binlog.000002 and binlog.000004"), "{error}");
}

#[test]
fn a_torn_end_is_left_out_of_a_log_in_use_and_told() {
    let from = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let torn = from.path().join("binlog.000005");
    let bytes = fs::read(&samples([5])[0]).unwrap();
    let mut half = bytes[..bytes.len() / 2].to_vec();
    fs::write(&torn, &half).unwrap();
    let paths = [torn.clone()];
    // Of a log that its server closed, half is damage.
    let error = ended(&paths, &StopAt::End, folder.path()).0.unwrap_err().to_string();
    assert!(error.contains("396 bytes are left, which are no whole transaction"), "{error}");

    half[IN_USE_OFFSET] |= 1;
    fs::write(&torn, &half).unwrap();
    let (ended, told) = ended(&paths, &StopAt::End, folder.path());
    let ended = ended.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("warning: ") && told[0].contains("binlog.000005"), "{told:?}");
    assert_eq!(ended.before, gtids("1-69"));
    assert!(ended.gtids.is_subset(&gtids("1-368")) && ended.gtids.count() > 69, "{}", ended.gtids);
}

#[test]
fn an_archive_is_named_alone() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().to_owned();
    let file = samples([1]).remove(0);
    assert_eq!(ReplayedLogs::named(std::slice::from_ref(&archive)).unwrap(), ReplayedLogs::Archive(&archive));
    assert_eq!(
        ReplayedLogs::named(std::slice::from_ref(&file)).unwrap(),
        ReplayedLogs::Files(std::slice::from_ref(&file))
    );
    let error = ReplayedLogs::named(&[file.clone(), archive]).unwrap_err().to_string();
    assert!(error.ends_with("is an archive, expected it alone, or files"), "{error}");
    let missing = folder.path().join("binlog.000001");
    assert!(check_paths(&["s3://bucket/db1".into(), file]).is_ok());
    let error = check_paths(std::slice::from_ref(&missing)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", missing.display())), "{error}");
}
