//! A real terminal, made by `script`.

use std::path::Path;
use std::process::Command;

use super::{Folder, PROGRAM};

/// All that a command shows on a terminal of this many columns, without the codes for bold and colours; `None`: there is no `script`.
#[track_caller]
pub(crate) fn shown(
    folder: &Folder,
    columns: usize,
    command: &str,
    variables: &[(&str, &Path)],
) -> Option<String> {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return None;
    }
    let line = format!("stty cols {columns} rows 50; exec {PROGRAM} {command}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
    script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("TERM", "xterm").env("BINLOGZ_PAGER", "cat");
    let output = script.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command}: {text}");
    Some(text)
}

/// The lines that are wider, each drawing of a bar for itself. Codes have no width.
pub(crate) fn wider(text: &str, columns: usize) -> Vec<String> {
    let lines = text.split(['\n', '\r']).map(without_codes);
    lines.filter(|line| line.chars().count() > columns).collect()
}

/// Without what moves the cursor, clears or colours.
fn without_codes(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let end = |part: &str| part.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
    parts.fold(first, |text, part| text + part.get(end(part)..).unwrap_or_default())
}
