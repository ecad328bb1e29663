//! The help as users read it: examples come before the options, and the options of a connection that few need have a topic
//! of their own.

use clap::{Command, CommandFactory};

use crate::Cli;
use crate::server_args::{CONNECTION, CONNECTION_SHOWN};

/// As clap has it, with what stands below the options above them.
const EXAMPLES_FIRST: &str =
    "{before-help}{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}";

/// The command whose help is the topic.
pub(crate) const TOPIC: &str = "connection";

/// The command line of binlogz.
pub(crate) fn command() -> Command {
    each_subcommand(Cli::command())
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
            false => arg.hide(is_rare),
        }
    });
    let command = match command.get_after_help() {
        Some(_) => command.help_template(EXAMPLES_FIRST),
        None => command,
    };
    each_subcommand(command)
}
