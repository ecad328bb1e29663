//! A moment before, on and after a commit, to the microsecond.

use crate::common::{Folder, Ran};

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
}

/// The commit times of the transactions with rows, in microseconds since 1970, in order, as a run of `dump` prints them.
fn dumped(ran: &Ran) -> Vec<i64> {
    assert!(ran.code.is_some_and(|code| code < 2), "{}", ran.stderr);
    let mut times: Vec<i64> = Vec::new();
    for line in ran.text().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["after"].is_object() || line["before"].is_object() {
            times.push(line["transaction"]["original_commit_timestamp"].as_i64().unwrap());
        }
    }
    times.dedup();
    times
}

/// As text, JSON lines, or out of an archive: with a fraction a moment parts transactions by their commit.
#[test]
fn logs_are_cut_at_a_moment_to_the_microsecond() {
    let folder = Folder::new();
    folder.sample("compressed", "binlog.000005");
    let mut all = times(&folder, &["--all"]);
    all.dedup();
    let commit = all[all.len() / 2];
    folder.run(["archive", "create", "--to", "arc", "binlog.000005"]).is_done();
    for moment in [commit - 1, commit, commit + 1] {
        let text = format!("@{}.{:06}", moment / 1_000_000, moment % 1_000_000);
        let (earlier, later): (Vec<i64>, Vec<i64>) = all.iter().partition(|time| **time < moment);
        for (option, expected) in [("--start-datetime", &later), ("--stop-datetime", &earlier)] {
            let lines = ["dump", "--no-defaults", "--format=jsonl", option, &text];
            for log in ["binlog.000005", "arc"] {
                assert_eq!(
                    &dumped(&folder.run(lines.iter().chain(&[log]))),
                    expected,
                    "{option} {text} {log}"
                );
            }
            let sql = folder.run(["dump", "--no-defaults", option, &text, "binlog.000005"]);
            let shown = sql.text().matches("original_commit_timestamp=").count() as u64;
            assert!(shown >= expected.len() as u64, "{option} {text}");
            let has = |time: &i64| sql.text().contains(&format!("original_commit_timestamp={time} "));
            assert!(all.iter().all(|time| has(time) == expected.contains(time)), "{option} {text}");
            let restored =
                folder.run(["archive", "restore", "--to", "back", "--force", option, &text, "arc"]);
            restored.is_done();
            let back = folder.run(["dump", "--no-defaults", "--format=jsonl", "back/binlog.000005"]);
            assert_eq!(&dumped(&back), expected, "{option} {text}");
        }
    }
}
