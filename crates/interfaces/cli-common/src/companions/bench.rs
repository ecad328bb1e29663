//! `binlogz bench`: its commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::commit::CommitArgs;
use super::presets::PresetOptions;
use crate::format::TableFormat;

/// Repeat the public experiments on this feature, beside their published figures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// The experiment.
    #[command(subcommand)]
    pub command: BenchCommand,
}

const EXAMPLES: &str = "Examples:
  binlogz bench space --sandbox --scale 0.1 --to space
  binlogz bench commit --committers 1,16 --time 5s --dir /var/lib/mysql
  binlogz bench compare before after";

/// The commands of bench.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "the help of these two is at their types, and would be replaced by another here"
)]
pub enum BenchCommand {
    Commit(CommitArgs),
    /// Measure what compression and encryption save, by workload
    Space(Box<PresetOptions>),
    /// Measure what each level saves and costs
    Levels(Box<PresetOptions>),
    /// Measure small and large updates without compression, at level 3 and at 22
    Updates(Box<PresetOptions>),
    /// Measure reads and writes with many connections, compression off and on
    PointSelect(Box<PresetOptions>),
    /// Measure inserts a second by connections and flush policy
    Insert(Box<PresetOptions>),
    /// Measure what a reader of the binary log receives, compression off and on, on one core and on all
    Network(Box<PresetOptions>),
    /// Find out which replicas can follow a source that compresses, directly and through the relay
    Replicas(Box<PresetOptions>),
    /// Run all of these, for one report
    All(Box<PresetOptions>),
    Compare(CompareArgs),
}

/// Compare the results of two runs: other servers, settings or releases
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// The folder of the first run
    pub a: PathBuf,
    /// The folder of the second run
    pub b: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

const COMPARE_EXAMPLES: &str = "Examples:
  binlogz bench compare before after
  binlogz bench compare --format csv db1 db2 > differences.csv";
