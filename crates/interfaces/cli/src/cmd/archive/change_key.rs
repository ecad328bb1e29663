//! `binlogz archive change-key`: another key opens an encrypted archive.

use std::io;
use std::path::PathBuf;

use binlogz_archive::storage::{self, KeySource, Manner};
use clap::Args;

use super::{failure, open, print};
use crate::Exit;
use crate::failure::Result;

/// Have another key open an encrypted archive
///
/// The key of now comes from BINLOGZ_ARCHIVE_KEY_FILE or BINLOGZ_ARCHIVE_KEY_COMMAND, as for every command. Only the manifest
/// is written: the owner's key encrypts the archive's data key, and the objects stay as they are. Whoever has the
/// former key and an old copy of the manifest can still read what was in the archive then; `copy` into a new place makes
/// a new data key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "binlogz archive change-key --new-key-file <FILE> <ARCHIVE>
       binlogz archive change-key --new-key-command <COMMAND> <ARCHIVE>")]
pub(super) struct ChangeKey {
    #[command(flatten)]
    to: NewKeyArgs,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

const EXAMPLES: &str = "Examples:
  openssl rand -base64 32 > new.key
  BINLOGZ_ARCHIVE_KEY_FILE=old.key binlogz archive change-key --new-key-file new.key /backup/db1";

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NewKeyArgs {
    /// The file with the new key
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
    /// A command that prints the new key
    #[arg(long, value_name = "COMMAND")]
    new_key_command: Option<String>,
}

impl ChangeKey {
    pub(super) fn run(self) -> Result<Exit> {
        // An archive that isn't there, or can't be read, is told in the usual words.
        drop(open(&self.archive)?);
        let NewKeyArgs { new_key_file, new_key_command } = self.to;
        let to = new_key_file.map(KeySource::File).or(new_key_command.map(KeySource::Command));
        let Some(to) = to else { return Ok(Exit::Trouble) };
        let storage = storage::with_key(&self.archive, KeySource::from_environment(), &Manner::default());
        let changed = storage.and_then(|storage| storage.change_key(&to));
        changed.map_err(failure(&self.archive))?;
        let line = format!("{}: encrypted with the key of {to} from now on", self.archive.display());
        print(&mut io::stdout(), &line)?;
        Ok(Exit::Done)
    }
}
