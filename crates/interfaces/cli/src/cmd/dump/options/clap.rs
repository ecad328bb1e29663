//! `dump` among the other commands, for help, completions and man page: clap shows the table of options but never
//! reads them, since MySQL's rules are not its own.

use clap::builder::Command as ClapCommand;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use super::definition::OptionKind;
use super::definitions::OPTIONS;

/// Print logs as mysqlbinlog does: the same options, the same output
///
/// The output is that of mysqlbinlog 9.7 byte for byte; so are options, option files and exit codes. Called through
/// a link of the name mysqlbinlog, binlogz is this command alone.
#[derive(Debug)]
pub(crate) struct DumpCommand;

const SHORT_ABOUT: &str = "Print logs as mysqlbinlog does: the same options, the same output";
const LONG_ABOUT: &str = "Print logs as mysqlbinlog does: the same options, the same output\n\n\
    The output is that of mysqlbinlog 9.7 byte for byte; so are options, option files and exit codes. Called \
    through a link of the name mysqlbinlog, binlogz is this command alone.";

impl FromArgMatches for DumpCommand {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(DumpCommand)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl Args for DumpCommand {
    fn augment_args(command: ClapCommand) -> ClapCommand {
        let command = command.about(SHORT_ABOUT).long_about(LONG_ABOUT).disable_help_flag(true);
        let options = OPTIONS.iter().filter(|option| !matches!(option.kind, OptionKind::Disabled));
        let shown = options.map(|option| {
            let arg = Arg::new(option.name).long(option.name).help(option.help);
            let arg = match option.short {
                Some(short) => arg.short(short),
                None => arg,
            };
            match option.kind {
                OptionKind::Help | OptionKind::Version | OptionKind::Switch(_) => {
                    arg.action(ArgAction::SetTrue)
                }
                OptionKind::Count(_) => arg.action(ArgAction::Count),
                OptionKind::Password => arg.num_args(0..=1).require_equals(true).value_name("PASSWORD"),
                _ => arg.value_name(option.value_name),
            }
        });
        let logs = Arg::new("log").value_name("LOG").num_args(0..).help("The logs; - is stdin");
        command.args(shown).arg(logs)
    }

    fn augment_args_for_update(command: ClapCommand) -> ClapCommand {
        Self::augment_args(command)
    }
}
