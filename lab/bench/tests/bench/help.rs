//! The help: as the reference has it, and readable on a terminal. `UPDATE_DOCS=1` rewrites the pages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Folder, terminal};
use crate::help_blocks::{SHARED_PAGE, help, listed, shared_options, written_anew};

/// The line before the help of a command.
const MARK: &str = "<!-- binlogz-bench help ";
const PAGES: [&str; 2] = ["docs/reference/bench.md", "docs/reference/demo.md"];
/// The presets have the options of the first one.
const DOCUMENTED: [&str; 3] = ["bench", "bench space", "demo"];

/// Lines of a summary: one screen.
const SUMMARY_LINES_MAX: usize = 50;

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(page(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_reference_has_the_help() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut shared = shared_options(&read(SHARED_PAGE));
    let (mut documented, mut stale) = (Vec::new(), Vec::new());
    for name in PAGES {
        let there = read(name);
        let (anew, commands) = written_anew(&there, MARK, &mut shared);
        documented.extend(commands);
        if anew != there {
            if update {
                fs::write(page(name), anew).unwrap();
            }
            stale.push(name);
        }
    }
    assert!(update || stale.is_empty(), "UPDATE_DOCS=1 cargo test -p binlogz-bench help: {stale:?}");
    assert_eq!(documented, DOCUMENTED);
}

/// `bench`, `demo`, and the presets.
fn commands() -> Vec<String> {
    let presets = listed(&help("bench")).into_iter().map(|preset| format!("bench {preset}"));
    ["bench".to_owned(), "demo".to_owned()].into_iter().chain(presets).collect()
}

#[test]
fn help_begins_with_examples_and_its_summary_is_one_screen() {
    let folder = Folder::new();
    let commands = commands();
    assert_eq!(commands.len(), 12, "{commands:?}");
    for command in commands {
        let shown = |option: &str| {
            let ran = folder.run(command.split(' ').chain([option]));
            ran.is_done();
            ran.text().to_owned()
        };
        let [short, long] = ["-h", "--help"].map(shown);
        for text in [&short, &long] {
            let headings = ["Examples:", "Arguments:", "Options:", "Commands:"];
            let first = text.lines().find(|line| headings.contains(line));
            assert_eq!(first, Some("Examples:"), "{command}: {text}");
            assert!(text.contains(&format!("\nUsage: binlogz {command}")), "{command}: {text}");
            // An option stands under one heading.
            assert!(text.matches("\nOptions:\n").count() <= 1, "{command}: {text}");
        }
        let lines = short.lines().count();
        assert!(
            lines <= SUMMARY_LINES_MAX && lines <= long.lines().count(),
            "{command} -h: {lines} lines\n{short}"
        );
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let folder = Folder::new();
    let help = commands().into_iter().map(|command| format!("{command} --help"));
    for command in help.chain(["bench levels --plan --out plan".to_owned()]) {
        for columns in [80, 120] {
            let Some(text) = terminal::shown(&folder, columns, &command, &[]) else { return };
            let wider = terminal::wider(&text, columns);
            assert!(wider.is_empty(), "{command}: {wider:#?}");
        }
    }
}
