//! The reference has the help of every command as the program prints it. `UPDATE_DOCS=1` rewrites it.

use std::fs;

use crate::common::Folder;
use crate::pages::{read, root};

/// Where a page has the help of a command: this line, with the command's name, and then a fenced block.
const MARK: &str = "<!-- binlogz help ";

fn help(command: &str) -> String {
    let mut args = vec!["help"];
    args.extend(command.split(' ').filter(|name| !name.is_empty()));
    let output = Folder::new().binlogz(args).env_remove("COLUMNS").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "no help of {command}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

/// A page with its blocks of help rewritten, and the commands in it.
fn written_anew(page: &str) -> (String, Vec<String>) {
    let (mut anew, mut commands) = (String::new(), Vec::new());
    let mut parts = page.split(MARK);
    anew.push_str(parts.next().unwrap());
    for part in parts {
        let (command, rest) = part.split_once(" -->\n").unwrap();
        let after =
            rest.strip_prefix("```text").and_then(|rest| rest.split_once("\n```\n")).map(|(_, after)| after);
        let after = after.unwrap_or_else(|| panic!("no fenced block follows the mark of {command}"));
        anew.push_str(&format!("{MARK}{command} -->\n```text\n{}```\n{after}", help(command)));
        commands.push(command.to_owned());
    }
    (anew, commands)
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let (mut documented, mut stale) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let path = entry.unwrap().path();
        let page = read(&path);
        let (anew, commands) = written_anew(&page);
        documented.extend(commands);
        if anew != page {
            if update {
                fs::write(&path, anew).unwrap();
            }
            stale.push(path);
        }
    }
    assert!(update || stale.is_empty(), "UPDATE_DOCS=1 cargo test -p binlogz --test docs help: {stale:?}");
    for command in listed(&help("")) {
        let below = match command.as_str() {
            // The presets of `bench` have the same options.
            "archive" | "relay" => listed(&help(&command)),
            _ => Vec::new(),
        };
        let below = below.into_iter().map(|name| format!("{command} {name}"));
        for command in std::iter::once(command.clone()).chain(below) {
            assert!(documented.contains(&command), "no page of docs/reference has {MARK}{command} -->");
        }
    }
}
