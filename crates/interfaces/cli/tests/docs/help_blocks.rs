//! Blocks of a page that have the help of a command as the program prints it. Options that several commands have stand only on
//! the page of all commands; each help names those that it leaves out.

use std::collections::BTreeMap;

use crate::common::Folder;
pub(crate) use crate::common::help::listed;

pub(crate) fn help(command: &str) -> String {
    let mut args = vec!["help"];
    args.extend(command.split(' ').filter(|name| !name.is_empty()));
    let output = Folder::new().binlogz(args).env_remove("COLUMNS").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "no help of {command}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Where the options that several commands have stand, and the page.
const SHARED_MARK: &str = "<!-- options of several commands -->\n```text\n";
pub(crate) const SHARED_PAGE: &str = "docs/reference/commands.md";

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

/// The options that several commands have, by their words on [`SHARED_PAGE`]: how often they were left out.
pub(crate) fn shared_options(page: &str) -> BTreeMap<String, u32> {
    let (_, options) = page.split_once(SHARED_MARK).unwrap();
    let (options, _) = options.split_once("\n```\n").unwrap();
    parts(options).iter().map(|part| (words(part), 0)).collect()
}

/// A help text as a page has it.
pub(crate) fn without_shared(help: &str, shared: &mut BTreeMap<String, u32>) -> String {
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

/// A page with its blocks of help rewritten, and the commands in it. Each block stands after a line with the mark and the
/// command's name.
pub(crate) fn written_anew(
    page: &str,
    mark: &str,
    shared: &mut BTreeMap<String, u32>,
) -> (String, Vec<String>) {
    let (mut anew, mut commands) = (String::new(), Vec::new());
    let mut parts = page.split(mark);
    anew.push_str(parts.next().unwrap());
    for part in parts {
        let (command, rest) = part.split_once(" -->\n").unwrap();
        let after =
            rest.strip_prefix("```text").and_then(|rest| rest.split_once("\n```\n")).map(|(_, after)| after);
        let after = after.unwrap_or_else(|| panic!("no fenced block follows the mark of {command}"));
        let help = without_shared(&help(command), shared);
        anew.push_str(&format!("{mark}{command} -->\n```text\n{help}```\n{after}"));
        commands.push(command.to_owned());
    }
    (anew, commands)
}
