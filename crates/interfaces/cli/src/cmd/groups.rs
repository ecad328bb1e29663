//! The groups in which `binlogz --help` lists the commands: by what a user is about to do.

use binlogz_figures::wrapped;
use clap::Command;

use crate::help::{EXAMPLES_FIRST, HELP_WIDTH, TOPIC};
use crate::terminal;

/// Commands for one purpose.
struct CommandGroup {
    purpose: &'static str,
    /// In the order in which they are listed.
    commands: &'static [&'static str],
}

const GROUPS: [CommandGroup; 7] = [
    CommandGroup { purpose: "Decide", commands: &["advise", "doctor", "bench"] },
    CommandGroup {
        purpose: "Read",
        commands: &["dump", "stats", "rows", "incident", "sql", "events", "export"],
    },
    CommandGroup { purpose: "Repair", commands: &["undo", "redo", "table-at", "recover", "fold"] },
    CommandGroup { purpose: "Convert", commands: &["compress", "expand", "verify"] },
    CommandGroup { purpose: "Keep and serve", commands: &["archive", "relay", "fleet"] },
    CommandGroup { purpose: "More", commands: &["demo", "completions", "man", "help"] },
    CommandGroup { purpose: "Topics, for binlogz help", commands: &[TOPIC] },
];

/// The name and help of the command that clap makes itself.
const HELP: (&str, &str) = ("help", "Print the help of a command");

/// A command line whose help lists the commands in their groups.
pub(crate) fn grouped(command: Command) -> Command {
    let width = terminal::width().unwrap_or(HELP_WIDTH).min(HELP_WIDTH);
    let groups: Vec<_> = GROUPS.iter().map(|group| listed(group, &command, width)).collect();
    let style = *command.get_styles().get_header();
    let lists = format!("{}\n\n{style}Options:{style:#}\n{{options}}", groups.join("\n\n"));
    command.help_template(EXAMPLES_FIRST.replace("{all-args}", &lists))
}

fn listed(group: &CommandGroup, command: &Command, width: usize) -> String {
    let longest = GROUPS.iter().flat_map(|group| group.commands).map(|name| name.len()).max().unwrap_or(0);
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut lines = vec![format!("{header}{}:{header:#}", group.purpose)];
    let known = group.commands.iter().filter_map(|name| Some((*name, about(command, name)?)));
    for (name, about) in known {
        let indent = " ".repeat(longest + 4);
        let text = wrapped(&about, &indent, &indent, Some(width));
        let pad = " ".repeat(longest - name.len() + 2);
        lines.push(format!("  {literal}{name}{literal:#}{pad}{}", text.trim_start()));
    }
    lines.join("\n")
}

/// The first line of a command's help.
fn about(command: &Command, name: &str) -> Option<String> {
    if name == HELP.0 {
        return Some(HELP.1.to_owned());
    }
    command.find_subcommand(name)?.get_about().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        for command in crate::Cli::command().get_subcommands() {
            let places = grouped.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(places, 1, "{}: groups that have it", command.get_name());
        }
    }

    #[test]
    fn no_group_has_a_command_that_is_not_there() {
        let cli = crate::Cli::command();
        for name in GROUPS.iter().flat_map(|group| group.commands).filter(|name| **name != "incident") {
            assert!(about(&cli, name).is_some(), "{name}");
        }
    }
}
