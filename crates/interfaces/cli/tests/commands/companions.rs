//! Commands that other programs do, which are found beside this one or on PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Folder, Ran};

/// A program that says how it was called.
fn program(folder: &Folder, name: &str) {
    let path = folder.put(name, "#!/bin/sh\necho \"$0\" \"$@\"\nexit 7\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn they_are_passed_on_with_their_options_and_exit_code() {
    let folder = Folder::new();
    // A copy in a folder of its own: beside the real one the real program may lie.
    let binary = folder.path("beside/binlogz");
    std::fs::create_dir(folder.path("beside")).unwrap();
    std::fs::hard_link(env!("CARGO_BIN_EXE_binlogz"), &binary)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_binlogz"), &binary).map(drop))
        .unwrap();
    let run_as = |word: &str, path: &Path| -> Ran {
        let mut command = std::process::Command::new(&binary);
        let command = command.args([word, "--help", "-v", "SELECT 1", "log"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", path.display())).output().unwrap().into()
    };
    let run = |path: &Path| run_as("sql", path);
    let empty = folder.path("empty");
    let none = run(&empty);
    assert_eq!(none.code, Some(2));
    let expected = "binlogz: sql is done by binlogz-sql, which is neither beside binlogz nor on PATH: install the \
                    package binlogz-sql, or cargo install --path crates/interfaces/sql-cli\n";
    assert_eq!((none.stdout.as_slice(), none.stderr.as_str()), (&b""[..], expected));
    // No server is asked first.
    let mut table_at = std::process::Command::new(&binary);
    table_at.args([
        "table-at",
        "d.t",
        "--at",
        "-1h",
        "--server",
        "127.0.0.1:1",
        "--format",
        "parquet",
        "--output",
        "past",
    ]);
    let lacking = Ran::from(table_at.env("PATH", &empty).output().unwrap());
    let expected = expected.replace("sql is done", "--format parquet is done");
    assert_eq!((lacking.code, lacking.stderr), (Some(2), expected));
    program(&folder, "path/binlogz-sql");
    let found = run(&folder.path("path"));
    assert_eq!((found.code, found.stderr.as_str()), (Some(7), ""));
    assert!(found.stdout.ends_with(b"path/binlogz-sql --help -v SELECT 1 log\n"), "{found:?}");
    let export = run_as("export", &folder.path("path"));
    assert!(export.stdout.ends_with(b"path/binlogz-sql export --help -v SELECT 1 log\n"), "{export:?}");
    let help = |words: &[&str], path: &Path| -> Ran {
        let mut command = std::process::Command::new(&binary);
        command.arg("help").args(words).env("PATH", format!("{}:/usr/bin:/bin", path.display()));
        command.output().unwrap().into()
    };
    for (words, called) in [(&["sql"][..], "sql"), (&["sql", "serve"], "serve"), (&["export"], "export")] {
        let given = help(words, &folder.path("path"));
        let called = if called == "sql" { "--help" } else { &format!("{called} --help") };
        assert!(given.text().ends_with(&format!("path/binlogz-sql {called}\n")), "{given:?}");
        // Without the program there is its definition.
        let given = help(words, &empty);
        assert_eq!((given.code, &*given.stderr), (Some(0), ""), "{words:?}");
        assert!(!given.text().contains("program of its own"), "{}", given.text());
        let usage = format!("Usage: binlogz {} ", words.join(" "));
        assert!(given.text().contains(&usage), "{}", given.text());
    }
    let bench = run_as("bench", &empty);
    let expected = "binlogz: bench is done by binlogz-bench, which is neither beside binlogz nor on PATH: install the \
                    package binlogz-bench, or cargo install --path lab/bench\n";
    assert_eq!((bench.code, bench.stdout.as_slice(), bench.stderr.as_str()), (Some(2), &b""[..], expected));
    program(&folder, "path/binlogz-bench");
    for word in ["bench", "demo"] {
        let ran = run_as(word, &folder.path("path"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(7), ""));
        let called = format!("path/binlogz-bench {word} --help -v SELECT 1 log\n");
        assert!(ran.stdout.ends_with(called.as_bytes()), "{ran:?}");
    }
    // Options of every command may stand before it.
    let mut command = std::process::Command::new(&binary);
    command.args(["--quiet", "-v", "bench", "space", "--plan"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path("path").display()));
    let ran = Ran::from(command.output().unwrap());
    assert!(ran.stdout.ends_with(b"path/binlogz-bench bench --quiet --verbose space --plan\n"), "{ran:?}");
    program(&folder, "beside/binlogz-sql");
    let found = run(&folder.path("path"));
    assert!(found.stdout.ends_with(b"beside/binlogz-sql --help -v SELECT 1 log\n"), "{found:?}");
}
