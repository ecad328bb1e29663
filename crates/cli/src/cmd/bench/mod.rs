//! `binlogz bench`: experiments, one file a preset.

mod commit;

use clap::{Args, Subcommand};

use crate::Exit;
use crate::failure::Result;

/// Measure commits to the log alone, beside the figures of the public insert study
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    preset: Preset,
}

#[derive(Debug, Subcommand)]
enum Preset {
    Commit(commit::Commit),
}

impl Bench {
    pub(super) fn run(self) -> Result<Exit> {
        match self.preset {
            Preset::Commit(commit) => commit.run(),
        }
    }
}
