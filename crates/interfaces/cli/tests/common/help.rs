//! The commands that a help text lists.

/// The headings under which a help text lists commands: those of `binlogz --help`, and of a command with others below it.
const HEADINGS: [&str; 8] = [
    "Commands:",
    "Decide:",
    "Read:",
    "Repair:",
    "Convert:",
    "Keep and serve:",
    "More:",
    "Topics, for binlogz help:",
];

/// The commands that a help text lists, `help` left out.
pub(crate) fn listed(help: &str) -> Vec<String> {
    let (mut names, mut is_list) = (Vec::new(), false);
    for line in help.lines() {
        is_list = HEADINGS.contains(&line) || is_list && !line.is_empty();
        let is_name = is_list && line.starts_with("  ") && !line.starts_with("   ");
        let name = line.split_whitespace().next().filter(|name| is_name && *name != "help");
        names.extend(name.map(String::from));
    }
    names
}
