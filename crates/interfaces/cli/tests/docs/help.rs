//! The reference has the help of every command as the program prints it. Options that several commands have stand only on
//! the page of all commands; each help names those that it leaves out. `UPDATE_DOCS=1` rewrites it.

use std::collections::BTreeMap;
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

/// Where the options that several commands have stand, and the page.
const SHARED_MARK: &str = "<!-- options of several commands -->\n```text\n";
const SHARED_PAGE: &str = "docs/reference/commands.md";

/// A part of a help text: an option with its explanation, or a heading with what follows up to an option.
fn parts(help: &str) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in help.lines() {
        let begins = is_option(line) || (!line.is_empty() && !line.starts_with(' '));
        match parts.last_mut().filter(|_| !begins) {
            Some(part) => part.push(line),
            None => parts.push(vec![line]),
        }
    }
    parts
}

/// Whether an option begins with this line: values, which begin with a hyphen too, stand further right.
fn is_option(line: &str) -> bool {
    line.starts_with("  -") || line.starts_with("      -")
}

/// The words of a part, however its lines are broken.
fn words(part: &[&str]) -> String {
    part.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The options that several commands have, by their words: how often they were left out.
fn shared_options() -> BTreeMap<String, u32> {
    let page = read(SHARED_PAGE);
    let (_, options) = page.split_once(SHARED_MARK).unwrap();
    let (options, _) = options.split_once("\n```\n").unwrap();
    parts(options).iter().map(|part| (words(part), 0)).collect()
}

/// A help text as a page has it.
fn without_shared(help: &str, shared: &mut BTreeMap<String, u32>) -> String {
    let (mut kept, mut named) = (Vec::<Vec<&str>>::new(), Vec::new());
    for part in parts(help) {
        let words = words(&part);
        if let Some(count) = shared.get_mut(&words) {
            *count += 1;
            named.extend(words.split([' ', '[']).find(|word| word.starts_with("--")).map(String::from));
            continue;
        }
        if !is_option(part.first().unwrap()) {
            pop_empty_heading(&mut kept);
        }
        kept.push(part);
    }
    pop_empty_heading(&mut kept);
    let text = kept.concat().join("\n");
    let also = if named.is_empty() {
        String::new()
    } else {
        format!("\nAs in several commands: {}\n", named.join(" "))
    };
    format!("{}\n{also}", text.trim_end())
}

/// Takes the heading of the options away that has none left.
fn pop_empty_heading(kept: &mut Vec<Vec<&str>>) {
    if kept.last().is_some_and(|last| last.first() == Some(&"Options:")) {
        kept.pop();
    }
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
fn written_anew(page: &str, shared: &mut BTreeMap<String, u32>) -> (String, Vec<String>) {
    let (mut anew, mut commands) = (String::new(), Vec::new());
    let mut parts = page.split(MARK);
    anew.push_str(parts.next().unwrap());
    for part in parts {
        let (command, rest) = part.split_once(" -->\n").unwrap();
        let after =
            rest.strip_prefix("```text").and_then(|rest| rest.split_once("\n```\n")).map(|(_, after)| after);
        let after = after.unwrap_or_else(|| panic!("no fenced block follows the mark of {command}"));
        let help = without_shared(&help(command), shared);
        anew.push_str(&format!("{MARK}{command} -->\n```text\n{help}```\n{after}"));
        commands.push(command.to_owned());
    }
    (anew, commands)
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let (mut documented, mut stale) = (Vec::new(), Vec::new());
    let mut shared = shared_options();
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let path = entry.unwrap().path();
        let page = read(&path);
        let (anew, commands) = written_anew(&page, &mut shared);
        documented.extend(commands);
        if anew != page {
            if update {
                fs::write(&path, anew).unwrap();
            }
            stale.push(path);
        }
    }
    assert!(update || stale.is_empty(), "UPDATE_DOCS=1 cargo test -p binlogz --test docs help: {stale:?}");
    let seldom: Vec<_> = shared.iter().filter(|(_, count)| **count < 5).collect();
    assert!(
        seldom.is_empty() && !shared.is_empty(),
        "{SHARED_PAGE}: options that few commands have: {seldom:?}"
    );
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

#[test]
fn options_of_several_commands_are_left_out_and_named() {
    let mut shared = BTreeMap::from([("-v, --verbose Say what was done".to_owned(), 0)]);
    let help = "What it does\n\nOptions:\n      --level <N>\n          How small\n\n          - 1: fast\n\n  -v, --verbose\n          Say what\n          was done\n";
    let expected = "What it does\n\nOptions:\n      --level <N>\n          How small\n\n          - 1: fast\n\nAs in several commands: --verbose\n";
    assert_eq!(without_shared(help, &mut shared), expected);
    let alone = "What it does\n\nOptions:\n  -v, --verbose\n          Say what was done\n\nConnection:\n  -x\n          X\n";
    assert_eq!(
        without_shared(alone, &mut shared),
        "What it does\n\nConnection:\n  -x\n          X\n\nAs in several commands: --verbose\n"
    );
    assert_eq!(shared.values().sum::<u32>(), 2);
}
