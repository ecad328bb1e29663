//! Progress on a terminal, and nowhere else.

use std::path::Path;
use std::process::Command;

use crate::common::Folder;
use binlogz_testkit::builder::{LogBuilder, Release};

/// All that a terminal receives, line by line.
fn on_terminal(folder: &Folder, command: &str) -> Option<Vec<String>> {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return None;
    }
    let line = format!("stty cols 100 rows 50; exec {} {command}", env!("CARGO_BIN_EXE_binlogz"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
    script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("TERM", "xterm").env("BINLOGZ_PAGER", "cat");
    let output = script.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command}: {text}");
    Some(text.split(['\r', '\n']).map(str::to_owned).collect())
}

/// MiB done, of each drawing of a bar of MiB.
fn done(lines: &[String]) -> Vec<f64> {
    let position = |line: &String| {
        let (before, _) = line.split_once(" MiB/")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    lines.iter().filter_map(position).collect()
}

/// The bytes of `12.5 KiB`, where a text begins or ends with it.
fn bytes(number: &str, unit: &str) -> Option<f64> {
    let units = ["B", "KiB", "MiB", "GiB"];
    let power = units.iter().position(|known| *known == unit)?;
    Some(number.parse::<f64>().ok()? * 1024_f64.powi(power as i32))
}

/// Whether a bar of bytes says that more is done than there is.
fn is_past_its_end(line: &str) -> bool {
    let told = || {
        let (before, after) = line.split_once('/').filter(|(before, _)| before.ends_with('B'))?;
        let (before, unit) = before.rsplit_once(' ')?;
        let done = bytes(before.rsplit(' ').next()?, unit)?;
        let mut after = after.split(' ');
        Some(done > bytes(after.next()?, after.next()?)?)
    };
    told().unwrap_or(false)
}

#[test]
fn a_large_transaction_goes_forward() {
    let folder = Folder::new();
    // Letters that zstd has to work on, for seconds.
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'A' + (state >> 28) as u8
    };
    let values: Vec<Vec<u8>> = (0..20).map(|_| (0..1 << 20).map(|_| letter()).collect()).collect();
    let values: Vec<_> = values.iter().map(Vec::as_slice).collect();
    folder.put("log", LogBuilder::new(Release::MYSQL_9_7).transaction(&values).bytes());
    let Some(lines) = on_terminal(&folder, "compress --level 12 --output small log") else { return };
    let done = done(&lines);
    let inside = done.iter().filter(|done| (2.0..18.0).contains(*done)).count();
    assert!(inside > 2, "{done:?}");
    assert!(lines.iter().any(|line| line.contains("log ") && line.ends_with(" left")), "{lines:?}");
}

#[test]
fn each_command_shows_which_file_of_how_many() {
    let folder = Folder::new();
    for name in ["binlog.000001", "binlog.000002"] {
        folder.sample("plain", name);
    }
    assert!(is_past_its_end("kept ### 1.5 MiB/1023.0 KiB 1 MiB/s, 0s left"), "and not only here");
    for (command, second) in [
        ("compress --output .. binlog.000001 binlog.000002", "2/2 binlog.000002 "),
        ("verify binlog.000001 binlog.000002", "2/2 binlog.000002 "),
        ("stats binlog.000001 binlog.000002", "2/2 binlog.000002 "),
        ("archive create --to kept binlog.000001 binlog.000002", "2/2 binlog.000002 "),
        ("archive check kept", "kept "),
        ("archive restore --to back kept", "2/2 binlog.000002 "),
        ("dump --result-file=dumped.sql binlog.000001 binlog.000002", "2/2 binlog.000002 "),
        ("advise --budget 2s binlog.000001", "trying levels on a sample "),
    ] {
        let command = command.replace("--output ..", "--force --output made");
        let _ = std::fs::create_dir(folder.path("made"));
        let Some(lines) = on_terminal(&folder, &command) else { return };
        assert!(
            lines.iter().any(|line| line.contains(second) && line.ends_with(" left")),
            "{command}: {lines:?}"
        );
        let past: Vec<_> = lines.iter().filter(|line| is_past_its_end(line)).collect();
        assert!(past.is_empty(), "{command}: {past:?}");
        if !command.starts_with("dump") {
            let _ = std::fs::remove_dir_all(folder.path("back"));
            let quiet = on_terminal(&folder, &format!("--quiet {command}")).unwrap();
            assert!(!quiet.iter().any(|line| line.ends_with(" left")), "{command}: {quiet:?}");
        }
    }
}
