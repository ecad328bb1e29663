//! `binlogz bench`: experiments, on the log alone ([`commit`]) or on servers ([`preset`]).

mod commit;
mod compare;
mod preset;

use binlogz_cli_common::Exit;
use binlogz_cli_common::failure::Result;
use binlogz_experiments::Preset;
use clap::{Args, Subcommand};

/// Repeat the public experiments on this feature, beside their published figures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  binlogz bench space --sandbox --scale 0.1 --to space
  binlogz bench commit --committers 1,16 --time 5s --dir /var/lib/mysql
  binlogz bench compare before after";

#[derive(Debug, Subcommand)]
enum Command {
    Commit(commit::Commit),
    /// Measure what compression and encryption save, by workload
    Space(Box<preset::PresetOptions>),
    /// Measure what each level saves and costs
    Levels(Box<preset::PresetOptions>),
    /// Measure small and large updates without compression, at level 3 and at 22
    Updates(Box<preset::PresetOptions>),
    /// Measure reads and writes with many connections, compression off and on
    PointSelect(Box<preset::PresetOptions>),
    /// Measure inserts a second by connections and flush policy
    Insert(Box<preset::PresetOptions>),
    /// Measure what a reader of the binary log receives, compression off and on, on one core and on all
    Network(Box<preset::PresetOptions>),
    /// Find out which replicas can follow a source that compresses, directly and through the relay
    Replicas(Box<preset::PresetOptions>),
    /// Run all of these, for one report
    All(Box<preset::PresetOptions>),
    Compare(compare::Compare),
}

impl Bench {
    pub(super) fn run(self) -> Result<Exit> {
        match self.command {
            Command::Commit(commit) => commit.run(),
            Command::Space(run) => run.run(Preset::Space),
            Command::Levels(run) => run.run(Preset::Levels),
            Command::Updates(run) => run.run(Preset::Updates),
            Command::PointSelect(run) => run.run(Preset::PointSelect),
            Command::Insert(run) => run.run(Preset::Insert),
            Command::Network(run) => run.run(Preset::Network),
            Command::Replicas(run) => run.run(Preset::Replicas),
            Command::All(run) => run.run(Preset::All),
            Command::Compare(compare) => compare.run(),
        }
    }
}
