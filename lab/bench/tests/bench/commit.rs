//! `binlogz bench commit`: its output, and that it leaves no files.

use crate::common::Folder;

fn run(folder: &Folder, args: &[&str]) -> (bool, String, String) {
    let output = folder.binlogz(["bench", "commit"].iter().chain(args)).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn each_run_is_a_row_and_nothing_is_left() {
    let folder = Folder::new();
    let args = ["--committers", "1,20", "--time", "0.05", "--format", "csv"];
    let (done, out, said) = run(&folder, &args);
    assert!(done && said.is_empty(), "{said}");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..4], ["flush_log_at_commit", "level", "committers", "commits_per_second"]);
    assert_eq!(rows[1][0], "bare loop");
    let keys: Vec<String> = rows[2..].iter().map(|row| row[..3].join(" ")).collect();
    let expected = ["0 off 1", "0 off 20", "0 3 1", "0 3 20", "1 off 1", "1 off 20", "1 3 1", "1 3 20"];
    assert_eq!(keys[..8], expected);
    assert_eq!(keys.len(), 12);
    for row in &rows[1..] {
        let rate: f64 = row[3].parse().unwrap();
        assert!(rate > 0.0, "{row:?}");
    }
    // A sync a commit, for one committer at policy 1; far fewer bytes where they are compressed.
    let of = |key: &str, column: usize| {
        let row = rows.iter().find(|row| row[..3].join(" ") == key).unwrap();
        row[column].parse::<f64>().unwrap()
    };
    assert_eq!(of("1 off 1", 5), 1.0);
    assert!(of("1 off 1", 9) > of("1 3 1", 9) + 20.0);
    // The row's digits: 300 bytes of events, their checksums, a GTID event.
    assert!((380.0..=420.0).contains(&of("1 off 1", 9)), "{}", of("1 off 1", 9));
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn the_table_has_its_curves() {
    let folder = Folder::new();
    let args = ["--committers", "1", "--policies", "1", "--levels", "off", "--time", "0.02"];
    let (done, out, _) = run(&folder, &args);
    assert!(done);
    assert!(out.contains("\nflush_log_at_commit 1, compression off\n      1 #"), "{out}");
}

#[test]
fn what_can_not_be_measured_is_said() {
    let folder = Folder::new();
    for (args, expected) in [
        (&["--dir", "nowhere"][..], "binlogz: nowhere: No such file or directory"),
        (&["--levels", "23"], "expected off or 1 to 22"),
        (&["--policies", "3"], "3 is not in 0..=2"),
        (&["--committers", "0"], "0 is not in 1..=100000"),
        (&["--time", "0"], "expected 0.01 to 3600"),
    ] {
        let (done, _, said) = run(&folder, args);
        assert!(!done && said.contains(expected), "{args:?}: {said}");
    }
}
