//! `binlogz archive merge`: packs the logs of many small segments into few large ones.

use binlogz_cli_common::malloc::keep_small;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::SystemTime;

use binlogz_archive::merge::{self, MergeOptions, MergeSummary};
use binlogz_figures::counted;
use clap::Args;

use super::create::LevelArg;
use super::manner::MannerArgs;
use super::upkeep::{UpkeepArgs, in_words, say_undeleted};
use super::{failure, open_in, print};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{Result, complain};
use crate::progress::WorkProgress;
use crate::units;

/// Pack the logs of many small segments into few large ones
///
/// Each run of `create` begins a segment of its own, so that an archive that gets a log every hour has thousands. Logs
/// are restored, compared with their SHA-256 and packed together, as if one run had archived them: less room, fewer
/// objects. The former objects stay as long as --grace says, for restores that have begun; a later run deletes them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Merge {
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    /// How small, and how fast
    #[arg(long, value_enum, default_value_t)]
    level: LevelArg,
    #[command(flatten)]
    upkeep: UpkeepArgs,
    #[command(flatten)]
    manner: MannerArgs,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

const EXAMPLES: &str = "Examples:
  binlogz archive merge --dry-run s3://bucket/db1
  binlogz archive merge --level max /backup/db1";

impl Merge {
    pub(super) fn run(self) -> Result<Exit> {
        keep_small();
        let (storage, manifest) = open_in(&self.archive, &self.manner.manner())?;
        let runs = merge::plan(&manifest);
        let logs = runs.iter().map(Vec::len).sum::<usize>();
        let out = &mut io::stdout();
        if self.upkeep.dry_run {
            for run in &runs {
                if let (Some(first), Some(last)) = (run.first(), run.last()) {
                    let logs = counted(run.len() as u64, "logs");
                    print(out, &format!("{} to {}: {logs} would be merged", first.name, last.name))?;
                }
            }
        }
        if logs == 0 {
            print(out, "nothing to merge")?;
        }
        if self.upkeep.dry_run {
            return Ok(Exit::Done);
        }
        let progress = WorkProgress::counting("merge", "logs", logs as u64);
        let mut count = 0;
        let options = MergeOptions {
            level: self.level.into(),
            workers: workers(self.jobs),
            grace: self.upkeep.grace,
            now: SystemTime::now(),
        };
        let merged = merge::merge(&storage, options, &mut |_| {
            progress.at(count);
            count += 1;
        });
        drop(progress);
        let MergeSummary { logs, before, after, failed, swept } = merged.map_err(failure(&self.archive))?;
        for (log, error) in &failed {
            complain(&format!("{log}: {error}"));
        }
        if logs > 0 {
            let sizes = self.upkeep.sizes;
            let before = in_words(&before, sizes);
            let after = in_words(&after, sizes);
            print(out, &format!("{} merged: {before} -> {after}", counted(logs as u64, "logs")))?;
        }
        say_undeleted(&self.archive, &swept.undeleted);
        Ok(if failed.is_empty() && swept.undeleted.is_empty() { Exit::Done } else { Exit::Trouble })
    }
}
