//! `binlogz archive remove`: removes logs from an archive, and deletes objects that no log uses.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use binlogz_archive::Error;
use binlogz_archive::remove::{self, ORPHAN_AGE, Removal};
use clap::Args;

use super::upkeep::say_undeleted;
use super::{failure, open, print};
use crate::Exit;
use crate::failure::{CommandFailure, Result};

/// Remove logs from an archive
///
/// Objects that no log is in any more are deleted, also those that killed runs left behind. An object that holds other logs
/// too stays until they are removed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Remove {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove logs from between others too, which leaves a gap
    #[arg(long)]
    force: bool,
    /// Delete what killed runs left behind once it is so many seconds old. A run that stores logs at the same time must
    /// not take longer
    #[arg(long, value_name = "SECONDS", default_value_t = ORPHAN_AGE.as_secs())]
    orphan_age: u64,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
    /// The logs to remove; without any, only what killed runs left behind is deleted
    #[arg(value_name = "LOG")]
    logs: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  binlogz archive remove --dry-run /backup/db1 binlog.000001 binlog.000002
  binlogz archive remove /backup/db1            # only what killed runs left behind";

impl Remove {
    pub(super) fn run(self) -> Result<Exit> {
        let (storage, manifest) = open(&self.archive)?;
        let archive = self.archive.display();
        if let Some(missing) =
            self.logs.iter().find(|name| !manifest.files.iter().any(|file| file.name == **name))
        {
            return Err(CommandFailure::of(&archive, format_args!("holds no log {missing}")));
        }
        let mut removal = remove::plan(&manifest, &self.logs);
        if let Some([log, before, after]) = removal.gaps.first().filter(|_| !self.force) {
            let gap =
                format_args!("without {log} there is a gap between {before} and {after}; --force removes it");
            return Err(CommandFailure::of(&archive, gap));
        }
        let old = SystemTime::now()
            .checked_sub(Duration::from_secs(self.orphan_age))
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let orphans = || -> Result<Vec<String>, Error> {
            let orphans = remove::orphans(&storage, old)?.into_iter().map(|orphan| orphan.name);
            Ok(orphans.filter(|orphan| !removal.objects.contains(orphan)).collect())
        };
        if self.dry_run {
            say(&removal, &orphans().map_err(failure(&self.archive))?, "would be ")?;
            return Ok(Exit::Done);
        }
        let mut undeleted = Vec::new();
        let mut orphans = orphans().map_err(failure(&self.archive))?;
        if !self.logs.is_empty() {
            (_, undeleted) =
                remove::remove(&storage, manifest, &self.logs).map_err(failure(&self.archive))?;
        }
        undeleted.extend(remove::collect(&storage, &orphans).map_err(failure(&self.archive))?);
        let is_gone = |object: &String| !undeleted.iter().any(|(locked, _)| locked == object);
        removal.objects.retain(is_gone);
        orphans.retain(is_gone);
        say(&removal, &orphans, "")?;
        say_undeleted(&self.archive, &undeleted);
        Ok(if undeleted.is_empty() { Exit::Done } else { Exit::Trouble })
    }
}

fn say(removal: &Removal, orphans: &[String], would: &str) -> Result<()> {
    let out = &mut io::stdout().lock();
    for log in &removal.logs {
        print(out, &format!("{}: {would}removed", log.name))?;
    }
    for object in &removal.objects {
        print(out, &format!("{object}: {would}deleted"))?;
    }
    for object in &removal.shared {
        print(out, &format!("{object}: stays, since other logs are in it"))?;
    }
    for object in orphans {
        print(out, &format!("{object}: {would}deleted: a run that was killed left it behind"))?;
    }
    Ok(())
}
