//! A moment before, on and after a commit, to the microsecond.

use crate::common::Folder;

/// The commit times of the rows, in microseconds since 1970, in order.
fn times(folder: &Folder, options: &[&str]) -> Vec<i64> {
    let front = ["rows", "sbtest.sbtest1", "--format", "json"];
    let ran = folder.run(front.iter().chain(options).chain(&["binlog.000005"]));
    assert!(ran.code.is_some_and(|code| code < 2), "{}", ran.stderr);
    let time = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let time: jiff::Timestamp = row["time"].as_str().unwrap().parse().unwrap();
        time.as_microsecond()
    };
    ran.text().lines().map(time).collect()
}

#[test]
fn a_moment_is_before_on_or_after_a_commit_to_the_microsecond() {
    let folder = Folder::new();
    folder.sample("compressed", "binlog.000005");
    let all = times(&folder, &[]);
    let commit = all[all.len() / 2];
    assert!(all[0] < commit && commit < all[all.len() - 1] && commit % 1_000_000 != 0);
    for moment in [commit - 1, commit, commit + 1] {
        let text = format!("@{}.{:06}", moment / 1_000_000, moment % 1_000_000);
        let later: Vec<i64> = all.iter().copied().filter(|time| *time >= moment).collect();
        let earlier: Vec<i64> = all.iter().copied().filter(|time| *time < moment).collect();
        assert_eq!(times(&folder, &["--start-datetime", &text]), later, "{text}");
        assert_eq!(times(&folder, &["--stop-datetime", &text]), earlier, "{text}");
    }
    let refused =
        folder.run(["dump", "--no-defaults", "--start-datetime=2026-01-01 00:00:00.5", "binlog.000005"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("expected whole seconds"), "{}", refused.stderr);
    let refused = folder.run(["archive", "cat", "--start-datetime", "2026-01-01 00:00:00.5", "nowhere"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("expected whole seconds"), "{}", refused.stderr);
}
