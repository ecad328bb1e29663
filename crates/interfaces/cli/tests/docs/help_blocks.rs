//! Blocks of a page that have the help of a command as the program prints it. Options that several commands have stand only on
//! the page of all commands, and those of an earlier help on the same page only there; each help names those that it leaves out.

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

/// The options of the helps that stand earlier on a page, by their words: the command whose help that is.
pub(crate) type EarlierOptions = BTreeMap<String, String>;

/// The help text of a command as a page has it.
pub(crate) fn without_shared(
    help: &str,
    command: &str,
    shared: &mut BTreeMap<String, u32>,
    earlier: &mut EarlierOptions,
) -> String {
    let mut kept = Vec::<Vec<&str>>::new();
    let mut left_out = BTreeMap::<String, Vec<String>>::new();
    for part in parts(help) {
        let words = words(&part);
        let option = is_option(part.first().unwrap());
        let place = match (shared.get_mut(&words), earlier.get(&words)) {
            (Some(count), _) => {
                *count += 1;
                Some("several commands")
            }
            (None, place) => place.map(String::as_str),
        };
        if let Some(place) = place {
            left_out.entry(place.to_owned()).or_default().extend(long_name(&words));
            continue;
        }
        if option {
            earlier.insert(words, command.to_owned());
        } else {
            pop_empty_heading(&mut kept);
        }
        kept.push(part);
    }
    pop_empty_heading(&mut kept);
    let text = kept.concat().join("\n");
    let named = left_out.iter().map(|(place, names)| format!("As in {place}: {}\n", names.join(" ")));
    let named: String = named.collect();
    let gap = if named.is_empty() { "" } else { "\n" };
    format!("{}\n{gap}{named}", text.trim_end())
}

/// The long name of an option, out of its words.
fn long_name(words: &str) -> Option<String> {
    words.split([' ', '[', ',']).find(|word| word.starts_with("--")).map(String::from)
}

/// Takes the heading of options away that has none left.
fn pop_empty_heading(kept: &mut Vec<Vec<&str>>) {
    if kept.last().is_some_and(|part| is_bare_heading(part)) {
        kept.pop();
    }
}

fn is_bare_heading(part: &[&str]) -> bool {
    matches!(part, [line] if line.ends_with(':'))
}

/// A page with its blocks of help rewritten, and the commands in it. Each block stands after a line with the mark and the
/// command's name.
pub(crate) fn written_anew(
    page: &str,
    mark: &str,
    shared: &mut BTreeMap<String, u32>,
) -> (String, Vec<String>) {
    let (mut anew, mut commands) = (String::new(), Vec::new());
    let mut earlier = EarlierOptions::new();
    let mut parts = page.split(mark);
    anew.push_str(parts.next().unwrap());
    for part in parts {
        let (command, rest) = part.split_once(" -->\n").unwrap();
        let after =
            rest.strip_prefix("```text").and_then(|rest| rest.split_once("\n```\n")).map(|(_, after)| after);
        let after = after.unwrap_or_else(|| panic!("no fenced block follows the mark of {command}"));
        let help = without_shared(&help(command), command, shared, &mut earlier);
        anew.push_str(&format!("{mark}{command} -->\n```text\n{help}```\n{after}"));
        commands.push(command.to_owned());
    }
    (anew, commands)
}
