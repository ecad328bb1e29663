//! `archive copy --exits`: an archive of the logs as they may leave by a policy.
//!
//! ```text
//! log of the archive ─ restored ─► MaskedLogs ─► encrypted temporary file ─ packed, stored, read back ─► the other archive names it
//! ```
//!
//! Nothing but masked logs gets there: neither an object nor an index of the archive is copied.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use binlogz_archive::Scratch;
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::ArchiveStorage;
use binlogz_cli_common::exits;
use binlogz_cli_common::malloc::keep_small;
use binlogz_exits::MaskedLogs;
use binlogz_flow::Input;
use binlogz_schema::TablesOfLogs;

use super::{Copy, failure, marks_of, print};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::progress::{self, WorkProgress};
use crate::report::less;

/// Bytes that are copied at a time.
const CHUNK: usize = 256 << 10;
/// Added to the base name of a masked log, before its number.
const SUFFIX: &str = "-masked";

impl Copy {
    /// Puts the masked logs into the other archive.
    pub(super) fn masked(&self, policy: &Path, manifest: &Manifest, to: &dyn ArchiveStorage) -> Result<Exit> {
        let place = self.from.display();
        if manifest.exits.is_some() {
            return Err(CommandFailure::of(&place, "has masked logs already, expected logs as they were"));
        }
        if manifest.selection.is_some() {
            return Err(CommandFailure::of(&place, "is a selection of tables, expected whole logs"));
        }
        keep_small();
        let (closed, parts): (Vec<_>, Vec<_>) =
            manifest.files.iter().partition::<Vec<_>, _>(|file| file.active_size.is_none());
        let there = Manifest::read(to).map_err(failure(&self.to))?.unwrap_or_default();
        let first = self.gate(policy)?;
        if there.files.is_empty() || self.dry_run {
            // What a wrong name hides isn't stored first.
            let counts = self.survey(&first, &closed)?;
            let exit = exits::report(&counts);
            if self.dry_run {
                return Ok(exit);
            }
            if !counts.unmet_masks.is_empty() {
                let found = "hides what the logs don't have, expected its right name, or optional = true";
                return Err(CommandFailure::of(&policy.display(), found));
            }
        }
        let gate = self.gate(policy)?;
        let mut printed = Ok(());
        let mut told = |created: &CreateOutcome| {
            if printed.is_ok() {
                printed = progress::above(|| print(&mut io::stdout().lock(), &added_line(created)));
            }
        };
        let mut creator = Creator::new(to, workers(None), &mut told).map_err(failure(&self.to))?;
        creator.exits(gate.policy_digest()).map_err(failure(&self.to))?;
        let added = self.add_all(&gate, &closed, &mut creator);
        // Those that were added before a failure stay.
        let finished = creator.finish().map_err(failure(&self.to));
        added?;
        let manifest = finished?;
        printed?;
        let out = &mut io::stdout().lock();
        for part in parts {
            print(out, &format!("{}: is a part of a log that was in use, and was left out", part.name))?;
        }
        for mark in marks_of(&manifest) {
            print(out, &format!("{}: {mark}", self.to.display()))?;
        }
        Ok(exits::report(&gate.counts()))
    }

    /// The gate through which the logs leave.
    fn gate(&self, policy: &Path) -> Result<MaskedLogs> {
        Ok(MaskedLogs::new(exits::policy(policy)?, TablesOfLogs::forward(None)))
    }

    /// What would become of the logs.
    fn survey(&self, gate: &MaskedLogs, files: &[&FileEntry]) -> Result<binlogz_exits::ExitCounts> {
        for (number, file) in files.iter().enumerate() {
            self.mask(gate, (number, files.len()), file, &mut io::sink())?;
        }
        Ok(gate.counts())
    }

    fn add_all(&self, gate: &MaskedLogs, files: &[&FileEntry], creator: &mut Creator<'_>) -> Result<()> {
        for (number, file) in files.iter().enumerate() {
            let mut masked = Scratch::new().map_err(|error| CommandFailure::of(&"temporary file", error))?;
            self.mask(gate, (number, files.len()), file, &mut masked)?;
            creator
                .add_file(&masked_name(&file.name), Arc::new(masked), file.mode)
                .map_err(failure(&self.to))?;
        }
        Ok(())
    }

    /// Writes the masked form of a log.
    fn mask(
        &self,
        gate: &MaskedLogs,
        (number, all): (usize, usize),
        file: &FileEntry,
        to: &mut dyn Write,
    ) -> Result<()> {
        let log = LogPath::File(self.from.join(file.name.as_str()));
        let progress = WorkProgress::of(&file.name, Some(file.size), (number + 1, all));
        let input = progress.watch(log.open(None)?);
        let masked =
            gate.log_at(number, &file.name, input).map_err(|error| CommandFailure::of(&log, error))?;
        let copied = match masked {
            Input::Stream(mut masked) => copy_all(&mut masked, to),
            Input::Live(mut masked) => copy_all(&mut masked, to),
            Input::Places(_) | Input::Seek { .. } | Input::Sparse { .. } | Input::Pipe(_) => {
                Err(io::Error::other("the gate of --exits gave something else than a stream"))
            }
        };
        copied.map_err(|error| CommandFailure::of(&log, error))
    }
}

fn copy_all(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(chunk.get(..count).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The name of a log as it is masked: `binlog-masked.000007`.
fn masked_name(log: &str) -> String {
    match log.rsplit_once('.') {
        Some((base, number)) => format!("{base}{SUFFIX}.{number}"),
        None => format!("{log}{SUFFIX}"),
    }
}

fn added_line(created: &CreateOutcome) -> String {
    match created {
        CreateOutcome::Added(entry) => {
            format!("{}: {} bytes, saved {}", entry.name, entry.size, less(entry.packed_size, entry.size))
        }
        CreateOutcome::Known(entry) => format!("{}: is in the archive already", entry.name),
        CreateOutcome::StoredAgain(entry, why) => format!("{}: was stored again: {why}", entry.name),
    }
}
