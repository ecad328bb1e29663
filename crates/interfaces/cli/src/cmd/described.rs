//! The command line as completions and manual pages have it: commands that other programs do have the options that those programs
//! parse. When binlogz itself is called, such a command takes anything and passes it on ([`companion`](super::companion)).

use binlogz_cli_common::companions::bench::BenchArgs;
use binlogz_cli_common::companions::demo::DemoArgs;
use binlogz_cli_common::companions::export::ExportArgs;
use binlogz_cli_common::companions::sql::SqlArgs;
use binlogz_cli_common::companions::sql_serve::ServeArgs;
use binlogz_cli_common::start::ReportingArgs;
use clap::{Args, Command, CommandFactory};

use crate::Cli;

/// The options of [`ReportingArgs`].
const REPORTING: [&str; 2] = ["quiet", "verbose"];

/// The whole command line.
pub(super) fn described() -> Command {
    let programs = [
        SqlArgs::command().name("sql").subcommand(ServeArgs::command().name("serve")),
        ExportArgs::command().name("export"),
        with_reporting(BenchArgs::augment_args(Command::new("bench"))),
        with_reporting(DemoArgs::augment_args(Command::new("demo"))),
    ];
    let own = with_reporting(
        REPORTING
            .into_iter()
            .fold(Cli::command(), |command, option| command.mut_arg(option, |option| option.global(false))),
    );
    programs.into_iter().fold(own, |all, program| {
        let name = program.get_name().to_owned();
        all.mut_subcommand(name, |_| program)
    })
}

/// A command whose subcommands at all depths have the options of reports. binlogz-sql has options of its own for that, and not in each
/// command, so they can't be global here.
fn with_reporting(command: Command) -> Command {
    let names: Vec<_> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let reporting = ReportingArgs::augment_args(Command::new("reporting"));
    let lacking: Vec<_> = reporting
        .get_arguments()
        .filter(|option| command.get_arguments().all(|known| known.get_id() != option.get_id()))
        .map(|option| option.clone().global(false))
        .collect();
    let complete = command.args(lacking);
    names.into_iter().fold(complete, |command, name| command.mut_subcommand(name, with_reporting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below<'a>(command: &'a Command, path: &[&str]) -> &'a Command {
        path.iter()
            .fold(command, |command, name| command.find_subcommand(name).unwrap_or_else(|| panic!("{name}")))
    }

    fn options(command: &Command) -> Vec<&str> {
        command.get_opts().chain(command.get_arguments()).filter_map(|option| option.get_long()).collect()
    }

    #[test]
    fn commands_of_other_programs_have_their_options() {
        let mut all = described();
        all.build();
        for (path, option) in [
            (&["sql"][..], "schema"),
            (&["sql", "serve"], "tls-dir"),
            (&["export"], "partition"),
            (&["bench", "point-select"], "sandbox"),
            (&["bench", "commit"], "committers"),
            (&["demo"], "once"),
        ] {
            assert!(options(below(&all, path)).contains(&option), "{path:?} --{option}");
        }
        // What takes no such option doesn't offer it.
        let with_quiet = |path: &[&str]| options(below(&all, path)).contains(&"quiet");
        assert!([&["sql"][..], &["bench", "space"], &["relay", "run"], &[]].into_iter().all(with_quiet));
        assert!(!with_quiet(&["sql", "serve"]));
    }

    #[test]
    fn lists_describe_them_as_their_own_help_does() {
        let stubs = Cli::command();
        let all = described();
        for name in ["sql", "export", "bench", "demo"] {
            let [stub, described] =
                [&stubs, &all].map(|all| below(all, &[name]).get_about().map(ToString::to_string));
            assert_eq!(stub, described, "{name}");
        }
    }
}
