//! `binlogz bench`: experiments, on the log alone ([`commit`]) or on servers ([`preset`]).

mod commit;
mod compare;
mod preset;

use binlogz_cli_common::Exit;
use binlogz_cli_common::companions::bench::{BenchArgs, BenchCommand};
use binlogz_cli_common::failure::Result;
use binlogz_experiments::Preset;

pub(crate) fn run(args: BenchArgs) -> Result<Exit> {
    match args.command {
        BenchCommand::Commit(args) => commit::run(args),
        BenchCommand::Space(options) => preset::run(*options, Preset::Space),
        BenchCommand::Levels(options) => preset::run(*options, Preset::Levels),
        BenchCommand::Updates(options) => preset::run(*options, Preset::Updates),
        BenchCommand::PointSelect(options) => preset::run(*options, Preset::PointSelect),
        BenchCommand::Insert(options) => preset::run(*options, Preset::Insert),
        BenchCommand::Network(options) => preset::run(*options, Preset::Network),
        BenchCommand::Replicas(options) => preset::run(*options, Preset::Replicas),
        BenchCommand::All(options) => preset::run(*options, Preset::All),
        BenchCommand::Compare(args) => compare::run(args),
    }
}
