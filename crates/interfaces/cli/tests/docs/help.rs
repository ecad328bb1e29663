//! The reference has the help of every command. `UPDATE_DOCS=1` rewrites it.

use std::collections::BTreeMap;
use std::fs;

use crate::help_blocks::{
    EarlierOptions, SHARED_PAGE, help, listed, shared_options, without_shared, written_anew,
};
use crate::pages::{read, root};

/// The line before the help of a command.
const MARK: &str = "<!-- binlogz help ";
/// Commands of programs of their own, whose helps the pages have.
const COMPANIONS: [&str; 4] = ["sql", "export", "bench", "demo"];

#[test]
fn the_reference_has_the_help_of_every_command() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let (mut documented, mut stale) = (Vec::new(), Vec::new());
    let mut shared = shared_options(&read(SHARED_PAGE));
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let path = entry.unwrap().path();
        let page = read(&path);
        let (anew, commands) = written_anew(&page, MARK, &mut shared);
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
    for command in listed(&help("")).into_iter().filter(|command| !COMPANIONS.contains(&command.as_str())) {
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
    let mut earlier = EarlierOptions::new();
    let help = "What it does\n\nOptions:\n      --level <N>\n          How small\n\n          - 1: fast\n\n  -v, --verbose\n          Say what\n          was done\n";
    let expected = "What it does\n\nOptions:\n      --level <N>\n          How small\n\n          - 1: fast\n\nAs in several commands: --verbose\n";
    assert_eq!(without_shared(help, "compress", &mut shared, &mut earlier), expected);
    let alone = "What it does\n\nOptions:\n  -v, --verbose\n          Say what was done\n\nConnection:\n  -x\n          X\n";
    assert_eq!(
        without_shared(alone, "doctor", &mut shared, &mut earlier),
        "What it does\n\nConnection:\n  -x\n          X\n\nAs in several commands: --verbose\n"
    );
    assert_eq!(shared.values().sum::<u32>(), 2);
    let again = "What else\n\nHow:\n      --level <N>\n          How small\n\n          - 1: fast\n\nOptions:\n      --other\n          Another\n";
    assert_eq!(
        without_shared(again, "expand", &mut shared, &mut earlier),
        "What else\n\nOptions:\n      --other\n          Another\n\nAs in compress: --level\n"
    );
    let differs = again.replace("How small", "How fast");
    assert_eq!(without_shared(&differs, "expand", &mut shared, &mut EarlierOptions::new()), differs);
}
