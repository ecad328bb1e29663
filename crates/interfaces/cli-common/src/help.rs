//! The help as users read it: examples come before the options, `-h` shows only a few options, and connection options
//! that are seldom needed have a topic of their own.

use clap::Command;

use crate::server_args::{CONNECTION, CONNECTION_SHOWN};

/// The help as clap makes it, with the sections below the options moved above them.
pub const EXAMPLES_FIRST: &str =
    "{before-help}{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}";

/// Help is wrapped here on wider terminals: longer lines read badly.
pub const HELP_WIDTH: usize = 100;

/// How many examples `-h` shows; further ones, and the text after them, are for `--help`.
const EXAMPLES_IN_SHORT: usize = 3;

/// Options that belong to no heading of the command, wherever it names them.
const GENERAL: [&str; 8] = ["help", "jobs", "keyring", "listen", "work_dir", "disk_max", "quiet", "verbose"];

/// The command whose help is the topic.
pub const TOPIC: &str = "connection";

/// A command line whose help, and that of its commands, is as users read it.
pub fn readable(command: Command) -> Command {
    each_subcommand(examples_first(command))
}

fn each_subcommand(command: Command) -> Command {
    let names: Vec<_> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, arranged))
}

fn arranged(command: Command) -> Command {
    let is_topic = command.get_name() == TOPIC;
    let command = command.mut_args(|arg| {
        let is_rare =
            arg.get_help_heading() == Some(CONNECTION) && !CONNECTION_SHOWN.contains(&arg.get_id().as_str());
        match is_topic {
            true => arg.help_heading("Options, as for the mysql client"),
            false if GENERAL.contains(&arg.get_id().as_str()) => arg.help_heading(None::<&str>),
            false => arg.hide(is_rare),
        }
    });
    each_subcommand(examples_first(command))
}

fn examples_first(command: Command) -> Command {
    match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(in_short(&text)).after_long_help(text).help_template(EXAMPLES_FIRST),
        None => command,
    }
}

/// The first examples.
fn in_short(text: &str) -> String {
    let lines: Vec<_> =
        text.lines().take_while(|line| !line.is_empty()).take(1 + EXAMPLES_IN_SHORT).collect();
    lines.join("\n")
}
