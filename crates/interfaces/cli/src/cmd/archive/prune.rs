//! `binlogz archive prune`: takes the oldest logs out of an archive.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use binlogz_archive::Error;
use binlogz_archive::format::FileEntry;
use binlogz_archive::prune::{self, Keep, PruneSummary};
use binlogz_archive::storage::ListedObject;
use binlogz_binlog::gtid::Gtid;
use binlogz_figures::counted;
use clap::Args;

use super::upkeep::{UpkeepArgs, in_words, say_undeleted};
use super::{failure, open, print};
use crate::Exit;
use crate::failure::{Result, complain};
use crate::{time, units};

/// Remove the oldest logs from an archive, and delete the objects that hold nothing else
///
/// All that a recovery within the kept time needs stays, and always the last log. Objects are deleted by a later run, once
/// the time of --grace is over, so that a restore that is under way ends undisturbed. Objects that killed runs
/// left behind are deleted once they are a day old.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "binlogz archive prune --keep <DURATION> [OPTIONS] <ARCHIVE>
       binlogz archive prune --keep-after <GTID> [OPTIONS] <ARCHIVE>
       binlogz archive prune --keep-bytes <SIZE> [OPTIONS] <ARCHIVE>")]
pub(super) struct Prune {
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    upkeep: UpkeepArgs,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

const EXAMPLES: &str = "Examples:
  binlogz archive prune --keep 400d --dry-run s3://bucket/db1
  binlogz archive prune --keep-bytes 500G /backup/db1";

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct KeepArgs {
    /// Keep the logs of so long a time, such as 400d
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    keep: Option<Duration>,
    /// Keep the log with this transaction, and all after it
    #[arg(long, value_name = "GTID")]
    keep_after: Option<Gtid>,
    /// Keep the newest logs, as many as have so many bytes in the archive
    #[arg(long, value_name = "SIZE", value_parser = units::size_above_zero)]
    keep_bytes: Option<u64>,
}

impl KeepArgs {
    fn keep(&self, now: SystemTime) -> Keep {
        match (self.keep_after, self.keep_bytes) {
            (Some(gtid), _) => Keep::After(gtid),
            (None, Some(bytes)) => Keep::Bytes(bytes),
            (None, None) => {
                let since = now.checked_sub(self.keep.unwrap_or(Duration::MAX));
                Keep::Since(seconds(since.unwrap_or(SystemTime::UNIX_EPOCH)))
            }
        }
    }
}

/// Seconds since 1970, as times of logs are.
fn seconds(time: SystemTime) -> u32 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

impl Prune {
    pub(super) fn run(self) -> Result<Exit> {
        let (storage, _) = open(&self.archive)?;
        let now = SystemTime::now();
        let keep = self.keep.keep(now);
        let pruned = match self.upkeep.dry_run {
            true => prune::plan(&storage, keep, self.upkeep.grace, now),
            false => prune::prune(&storage, keep, self.upkeep.grace, now),
        };
        let pruned = match pruned {
            Err(error @ Error::Unmet { .. }) => {
                complain(&format!("{}: {error}", self.archive.display()));
                return Ok(Exit::Negative);
            }
            pruned => pruned.map_err(failure(&self.archive))?,
        };
        self.say(&pruned, now)?;
        say_undeleted(&self.archive, &pruned.undeleted);
        Ok(if pruned.undeleted.is_empty() { Exit::Done } else { Exit::Trouble })
    }

    fn say(&self, pruned: &PruneSummary, now: SystemTime) -> Result<()> {
        let out = &mut io::stdout().lock();
        let would = if self.upkeep.dry_run { "would be " } else { "" };
        match (pruned.logs.first(), pruned.logs.last()) {
            (Some(first), Some(last)) => {
                let logs = counted(pruned.logs.len() as u64, "logs");
                let size = self.upkeep.sizes.in_words(pruned.logs.iter().map(|log| log.size).sum());
                let until =
                    last.times.map(|(_, last)| format!(" until {}", time::shown(last))).unwrap_or_default();
                let names = if first.name == last.name {
                    first.name.to_string()
                } else {
                    format!("{} to {}", first.name, last.name)
                };
                print(out, &format!("{names}: {would}removed: {logs}{until}, {size}"))?;
            }
            _ => print(out, "no log is older than what is kept")?,
        }
        if let Some(first) = &pruned.first_kept {
            print(out, &kept_line(first))?;
        }
        let when = match self.upkeep.grace {
            Duration::ZERO => format!("{would}deleted"),
            _ => format!(
                "{} deleted by the first run after {}",
                if self.upkeep.dry_run { "would be" } else { "will be" },
                time::shown(seconds(now.checked_add(self.upkeep.grace).unwrap_or(now)))
            ),
        };
        self.say_objects(out, &pruned.objects, &when)?;
        self.say_objects(out, &pruned.retired, &format!("{would}deleted: earlier runs removed their logs"))?;
        self.say_objects(out, &pruned.orphans, &format!("{would}deleted: killed runs left them behind"))
    }

    fn say_objects(&self, out: &mut impl io::Write, objects: &[ListedObject], what: &str) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        print(out, &format!("{}: {what}", in_words(objects, self.upkeep.sizes)))
    }
}

fn kept_line(first: &FileEntry) -> String {
    let since = first.times.map(|(first, _)| format!(", since {}", time::shown(first)));
    format!("{} is the first that is kept{}", first.name, since.unwrap_or_default())
}
