//! `binlogz archive copy`: copies an archive into another folder or bucket; as it may leave by a policy, [`masked`] does.

mod masked;

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use binlogz_archive::copy::{self, CopySummary};
use binlogz_archive::storage::{self, ArchiveStorage, KeySource, ListedObject};
use binlogz_figures::{counted, grouped};
use clap::Args;

use super::manner::MannerArgs;
use super::upkeep::in_words;
use super::{failure, marks_of, open, print, storage_at};
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::progress::WorkProgress;
use crate::terminal::SizesArg;
use crate::units;

/// Copy an archive into another folder or bucket
///
/// Each object is compared with its SHA-256 while it is copied, and read back. Objects that are there already are read and compared,
/// and replaced if they are damaged, so a run that was killed goes on where it was, and a later one copies what is new. Logs that
/// only the other archive has stay there.
///
/// A key in the environment (BINLOGZ_ARCHIVE_KEY_FILE or BINLOGZ_ARCHIVE_KEY_COMMAND) is that of an encrypted archive and of
/// its copy. A new copy of a plain archive is encrypted with it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Copy {
    /// Objects that are copied at once; each takes 16 MiB of memory
    #[arg(long, short, value_name = "N", default_value_t = JOBS_DEFAULT, value_parser = units::above_zero)]
    jobs: NonZeroUsize,
    /// Say what would be copied, and copy nothing
    #[arg(long)]
    dry_run: bool,
    /// Pass over objects that are there with the same size, without reading them: damage in them stays
    #[arg(long)]
    size_only: bool,
    /// Leave out and mask what this policy names: the copy has masked logs
    #[arg(long, value_name = "FILE.toml", conflicts_with = "size_only", hide_short_help = true)]
    exits: Option<PathBuf>,
    #[command(flatten)]
    target: TargetKeyArgs,
    #[command(flatten)]
    manner: MannerArgs,
    #[command(flatten)]
    sizes: SizesArg,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    from: PathBuf,
    /// Where to: a folder, or s3://BUCKET/PREFIX, with nothing in it or with an earlier copy
    to: PathBuf,
}

const EXAMPLES: &str = "Examples:
  binlogz archive copy /backup/db1 s3://bucket/db1
  binlogz archive copy --to-key-file new.key s3://bucket/db1 s3://other/db1";

/// How the copy is encrypted.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct TargetKeyArgs {
    /// The copy's key, if it is another one: a file
    #[arg(long, value_name = "FILE")]
    to_key_file: Option<PathBuf>,
    /// A command that prints the copy's key
    #[arg(long, value_name = "COMMAND")]
    to_key_command: Option<String>,
    /// Don't encrypt the copy of an encrypted archive
    #[arg(long)]
    plaintext: bool,
}

impl TargetKeyArgs {
    fn key(&self) -> Option<KeySource> {
        let file = self.to_key_file.clone().map(KeySource::File);
        let named = file.or_else(|| self.to_key_command.clone().map(KeySource::Command));
        match self.plaintext {
            true => None,
            false => named.or_else(KeySource::from_environment),
        }
    }
}

/// Whether two paths name one place.
fn is_same(from: &Path, to: &Path) -> bool {
    let named = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
    match (fs::canonicalize(from), fs::canonicalize(to)) {
        (Ok(from), Ok(to)) => from == to,
        _ => named(from) == named(to),
    }
}

/// Objects of which only the size was looked at.
const PASSED_OVER: &str = "of the same size there, not read";

/// Object storage answers after some time, whatever the size: small objects would wait for it one by one.
const JOBS_DEFAULT: NonZeroUsize = NonZeroUsize::new(4).expect("not zero");

impl Copy {
    pub(super) fn run(self) -> Result<Exit> {
        let (from, manifest) = open(&self.from)?;
        if is_same(&self.from, &self.to) {
            let found = "is the archive itself, expected another place for its copy";
            return Err(CommandFailure::of(&self.to.display(), found));
        }
        drop(storage_at(&self.to)?);
        let to = storage::with_key(&self.to, self.target.key(), &self.manner.manner())
            .map_err(failure(&self.to))?;
        let is_secret = from.is_encrypted().map_err(failure(&self.from))?;
        if is_secret && !self.target.plaintext && !to.is_encrypted().map_err(failure(&self.to))? {
            let found =
                "is not encrypted, expected an encrypted archive, as the copied one is, or --plaintext";
            return Err(CommandFailure::of(&self.to.display(), found));
        }
        if let Some(policy) = &self.exits {
            return self.masked(policy, &manifest, &to);
        }
        let plan = copy::plan(&from, &to).map_err(failure(&self.to))?;
        if let Some(damage) = plan.damage() {
            let line = "its older copy was read instead, which may lack the newest logs";
            warn(&format!("{}: {damage}; {line}", self.from.display()));
        }
        if self.dry_run {
            self.say(&plan.objects, "would be copied")?;
            self.say(&plan.there, if self.size_only { PASSED_OVER } else { "would be compared" })?;
            return Ok(Exit::Done);
        }
        let work = if self.size_only { plan.taking_sizes() } else { plan };
        let progress = WorkProgress::new(&self.to.display(), Some(work.bytes()));
        let copied = work.run(&from, &to, self.jobs.get(), &|bytes| progress.add(bytes));
        drop(progress);
        let CopySummary { objects, there, replaced, logs, failed, logs_there } =
            copied.map_err(failure(&self.to))?;
        for (_, found) in &replaced {
            warn(&format!("{}: {found}; it was replaced", self.to.display()));
        }
        let mended: Vec<_> = replaced.into_iter().map(|(object, _)| object).collect();
        for (_, error) in &failed {
            complain(&format!("{}: {error}", self.from.display()));
        }
        self.say(&objects, "copied")?;
        self.say(&mended, "damaged there, replaced")?;
        self.say(&there, if self.size_only { PASSED_OVER } else { "already there" })?;
        let new = grouped(logs as u64);
        let all = counted(logs_there as u64, "logs");
        print(&mut io::stdout(), &format!("{}: {all}, {new} of them new", self.to.display()))?;
        for mark in marks_of(&manifest) {
            print(&mut io::stdout(), &format!("{}: {mark}", self.to.display()))?;
        }
        Ok(if failed.is_empty() { Exit::Done } else { Exit::Trouble })
    }

    fn say(&self, objects: &[ListedObject], what: &str) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        print(&mut io::stdout(), &format!("{}: {what}", in_words(objects, self.sizes)))
    }
}
