//! The commands, one a file.

mod advise;
mod archive;
mod bench;
mod closed_logs;
mod completions;
mod compress;
mod connection;
mod demo;
mod doctor;
pub(crate) mod dump;
mod events;
mod expand;
mod fleet;
mod man;
mod recover;
mod relay;
mod replay;
mod rewrite;
pub(crate) mod sql;
mod stats;
mod verify;

use std::num::NonZeroUsize;
use std::thread;

use clap::Subcommand;

use crate::Exit;
use crate::failure::Result;

/// The commands of binlogz.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compress(compress::Compress),
    #[command(alias = "decompress")]
    Expand(expand::Expand),
    Verify(verify::Verify),
    Events(events::Events),
    Dump(dump::Dump),
    Stats(stats::Stats),
    Sql(sql::Sql),
    Export(sql::Export),
    Undo(Box<recover::Undo>),
    Redo(Box<recover::Redo>),
    Rows(Box<recover::Rows>),
    TableAt(Box<recover::TableAt>),
    Recover(Box<replay::Recover>),
    Advise(Box<advise::Advise>),
    Archive(archive::Archive),
    Relay(relay::Relay),
    Fleet(fleet::Fleet),
    Bench(bench::Bench),
    Doctor(Box<doctor::Doctor>),
    Demo(demo::Demo),
    Connection(Box<connection::Connection>),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit> {
        match self {
            Command::Compress(command) => command.run(),
            Command::Expand(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Events(command) => command.run(),
            // Its command line is never read here: see main.
            Command::Dump(_) => Ok(Exit::Trouble),
            Command::Stats(command) => command.run(),
            Command::Sql(command) => match sql::Request::from(command).run()? {},
            Command::Export(command) => match sql::Request::from(command).run()? {},
            Command::Undo(command) => command.run(),
            Command::Redo(command) => command.run(),
            Command::Rows(command) => command.run(),
            Command::TableAt(command) => command.run(),
            Command::Recover(command) => command.run(),
            Command::Advise(command) => command.run(),
            Command::Archive(command) => command.run(),
            Command::Relay(command) => command.run(),
            Command::Fleet(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Demo(command) => command.run(),
            Command::Connection(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// The number of worker threads: as requested, or one for each core.
fn workers(jobs: Option<NonZeroUsize>) -> usize {
    jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}
