//! The commands, one a file.

mod advise;
mod archive;
mod closed_logs;
pub(crate) mod companion;
mod completions;
mod compress;
mod connection;
mod described;
mod doctor;
pub(crate) mod dump;
mod events;
mod exits;
mod expand;
mod fleet;
pub(crate) mod groups;
mod incident;
mod man;
mod profile_survey;
mod recover;
mod relay;
mod rewrite;
mod row_changes;
mod stats;
mod verify;

use binlogz_cli_common::start::ReportingArgs;
use binlogz_cli_common::units::workers;
use clap::Subcommand;

use crate::Exit;
use crate::failure::Result;
use companion::CompanionRequest;

/// The commands of binlogz.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Compress(compress::Compress),
    #[command(alias = "decompress")]
    Expand(expand::Expand),
    Verify(verify::Verify),
    Events(events::EventsCommand),
    Dump(dump::DumpCommand),
    Stats(stats::StatsCommand),
    Sql(companion::SqlArguments),
    Export(companion::ExportArguments),
    Undo(Box<row_changes::Undo>),
    Redo(Box<row_changes::Redo>),
    Incident(Box<incident::IncidentCommand>),
    Rows(Box<row_changes::RowsCommand>),
    TableAt(Box<row_changes::TableAt>),
    Recover(Box<recover::Recover>),
    Fold(Box<row_changes::FoldCommand>),
    Advise(Box<advise::Advise>),
    Archive(archive::ArchiveCommand),
    Relay(relay::RelayCommand),
    Fleet(fleet::Fleet),
    Bench(companion::BenchArguments),
    Doctor(Box<doctor::DoctorCommand>),
    Demo(companion::DemoArguments),
    #[command(hide = true)]
    Connection(Box<connection::ConnectionArgs>),
    Completions(completions::Completions),
    Man(man::Man),
}

impl CliCommand {
    /// Runs the command, which was asked to report so.
    pub(crate) fn run(self, reporting: &ReportingArgs) -> Result<Exit> {
        match self {
            CliCommand::Compress(command) => command.run(),
            CliCommand::Expand(command) => command.run(),
            CliCommand::Verify(command) => command.run(),
            CliCommand::Events(command) => command.run(),
            // Its command line is never read here: see main.
            CliCommand::Dump(_) => Ok(Exit::Trouble),
            CliCommand::Stats(command) => command.run(),
            CliCommand::Sql(command) => CompanionRequest::from(command).with(reporting).run(),
            CliCommand::Export(command) => CompanionRequest::from(command).with(reporting).run(),
            CliCommand::Undo(command) => command.run(),
            CliCommand::Redo(command) => command.run(),
            CliCommand::Incident(command) => command.run(),
            CliCommand::Rows(command) => command.run(),
            CliCommand::TableAt(command) => command.run(),
            CliCommand::Recover(command) => command.run(),
            CliCommand::Fold(command) => command.run(),
            CliCommand::Advise(command) => command.run(),
            CliCommand::Archive(command) => command.run(),
            CliCommand::Relay(command) => command.run(),
            CliCommand::Fleet(command) => command.run(),
            CliCommand::Bench(command) => CompanionRequest::from(command).with(reporting).run(),
            CliCommand::Doctor(command) => command.run(),
            CliCommand::Demo(command) => CompanionRequest::from(command).with(reporting).run(),
            CliCommand::Connection(command) => command.run(),
            CliCommand::Completions(command) => command.run(),
            CliCommand::Man(command) => command.run(),
        }
    }
}
