//! `binlogz-bench`: the public experiments repeated, and the demo, found as `binlogz bench` and `binlogz demo`.
//!
//! It behaves as `binlogz` does, whose options, progress and errors it shares (`binlogz-cli-common`).

mod bench;
mod demo;

use std::process::ExitCode;

use binlogz_cli_common::companions::bench::BenchArgs;
use binlogz_cli_common::companions::demo::DemoArgs;
use binlogz_cli_common::failure::{Result, ended};
use binlogz_cli_common::help::{self, HELP_WIDTH};
use binlogz_cli_common::start::{ReportingArgs, parsed};
use binlogz_cli_common::{Exit, interrupt};
use clap::{CommandFactory, Parser, Subcommand};

/// musl's own malloc takes a lock for each call. It is what the static programs of `make dist` are linked with.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Repeats the public experiments on binary log transaction compression, and shows binlogz on private servers
#[derive(Debug, Parser)]
#[command(name = "binlogz-bench", bin_name = "binlogz", version, max_term_width = HELP_WIDTH)]
struct BenchCli {
    #[command(subcommand)]
    command: BenchProgramCommand,
    #[command(flatten)]
    reporting: ReportingArgs,
}

#[derive(Debug, Subcommand)]
enum BenchProgramCommand {
    Bench(BenchArgs),
    Demo(DemoArgs),
}

fn main() -> ExitCode {
    let cli: BenchCli = match parsed(help::readable(BenchCli::command())) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    cli.reporting.heed();
    ended(interrupt::watch().and_then(|()| cli.command.run()))
}

impl BenchProgramCommand {
    fn run(self) -> Result<Exit> {
        match self {
            BenchProgramCommand::Bench(args) => bench::run(args),
            BenchProgramCommand::Demo(args) => demo::run(args),
        }
    }
}
