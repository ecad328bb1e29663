//! The logs that `archive create` goes through: which of them are added whole, which in part, and what is said of each.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::Error;
use binlogz_archive::chosen_tables::{self, SelectedLog, TableChoice};
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::FileEntry;
use binlogz_archive::log;
use binlogz_binlog::MAGIC_ENCRYPTED;
use binlogz_encryption::Keyring;
use binlogz_figures::counted;
use binlogz_flow::{Input, ReadAt};

use super::super::source_logs::{LogBeginning, look_at};
use super::super::{failure, print};
use super::Create;
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain};
use crate::log_path::LogPath;
use crate::progress::{self, WorkProgress};
use crate::report::less;
use crate::terminal::SizesArg;

/// Logs that are torn or damaged, and why: noted where they are read, asked for where they are stored.
#[derive(Default)]
pub(super) struct TornLogs(RefCell<Vec<(String, String)>>);

impl TornLogs {
    fn note(&self, name: &str, why: &dyn std::fmt::Display) {
        self.0.borrow_mut().push((name.to_owned(), why.to_string()));
    }

    /// Why only a part of a log is there, if its server has closed it.
    fn why(&self, entry: &FileEntry) -> Option<String> {
        entry.active_size?;
        let torn = self.0.borrow();
        torn.iter().find(|(name, _)| entry.name == *name).map(|(_, why)| why.clone())
    }
}

/// Prints a line for each log that the archive has.
pub(super) struct AddedLines<'a> {
    torn: &'a TornLogs,
    sizes: SizesArg,
    /// The logs that it has as a whole.
    pub(super) archived: Vec<String>,
    /// The first failure ends the printing.
    pub(super) printed: Result<()>,
}

impl<'a> AddedLines<'a> {
    pub(super) fn new(torn: &'a TornLogs, sizes: SizesArg) -> Self {
        AddedLines { torn, sizes, archived: Vec::new(), printed: Ok(()) }
    }

    pub(super) fn print(&mut self, created: &CreateOutcome) {
        let (line, entry) = match created {
            CreateOutcome::Added(entry) => (self.line(entry), entry),
            CreateOutcome::Known(entry) => {
                let why = self.torn.why(entry);
                let part = why.map(|why| format!(", as far as it is whole: {why}")).unwrap_or_default();
                (format!("{}: is in the archive already{part}", entry.name), entry)
            }
            CreateOutcome::StoredAgain(entry, why) => {
                (format!("{}; it was stored again: {why}", self.line(entry)), entry)
            }
        };
        if self.printed.is_ok() {
            self.printed = progress::above(|| print(&mut io::stdout().lock(), &line));
        }
        if entry.active_size.is_none() {
            self.archived.push(entry.name.to_string());
        }
    }

    fn line(&self, entry: &FileEntry) -> String {
        added_line(entry, self.torn.why(entry).as_deref(), self.sizes)
    }
}

/// Puts the given logs into the archive, one after the other.
pub(super) struct Additions<'a> {
    args: &'a Create,
    keyring: Option<&'a Keyring>,
    /// Whether the archive is encrypted.
    is_encrypted: bool,
    torn: &'a TornLogs,
    /// The tables whose rows are stored; `None`: logs are stored as they are.
    choice: Option<&'a TableChoice>,
    /// The closed logs.
    pub(super) given: Vec<(String, &'a PathBuf)>,
    /// Tables with rows, of those that the choice names.
    pub(super) met: BTreeSet<String>,
    /// Logs left out because they are in use.
    pub(super) in_use: Vec<String>,
    pub(super) exit: Exit,
}

impl<'a> Additions<'a> {
    pub(super) fn new(
        args: &'a Create,
        keyring: Option<&'a Keyring>,
        is_encrypted: bool,
        torn: &'a TornLogs,
        choice: Option<&'a TableChoice>,
    ) -> Self {
        let given = Vec::new();
        let in_use = Vec::new();
        let met = BTreeSet::new();
        Additions { args, keyring, is_encrypted, torn, choice, given, met, in_use, exit: Exit::Done }
    }

    /// Adds the logs in their order, up to one that can't be added: nothing after a missing log may be purged.
    pub(super) fn add_all(&mut self, creator: &mut Creator<'_>) -> Result<()> {
        // A shell gives `.1000000` before `.999999`; rows are found in the logs before.
        let mut files: Vec<_> = self.args.files.iter().map(|path| (path, name_of(path))).collect();
        log::sort_by_name(&mut files, |(_, name)| name);
        let all = files.len();
        for ((path, name), number) in files.into_iter().zip(1..) {
            match self.add(creator, (path, &name), (number, all)) {
                Ok(()) => {}
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    self.exit = Exit::Trouble;
                    break;
                }
                Err(closed) => return Err(closed),
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        creator: &mut Creator<'_>,
        (path, name): (&'a PathBuf, &str),
        number: (usize, usize),
    ) -> Result<()> {
        let Input::Places(log) = self.open(path)? else {
            return Err(CommandFailure::of(&path.display(), "is no file; an archive needs to read it twice"));
        };
        let beginning = look_at(log.as_ref(), path, name);
        let metadata = fs::metadata(path).ok();
        let progress = || WorkProgress::of(&name, metadata.as_ref().map(|file| file.len()), number);
        let mode = metadata.as_ref().map(|file| file.mode() & 0o777);
        match beginning {
            LogBeginning::Closed => {
                self.given.push((name.to_owned(), path));
                let progress = progress();
                self.add_closed(creator, (path, name), progress.watch_all(log), mode)
            }
            LogBeginning::InUse if self.args.include_active => {
                let progress = progress();
                if let Some(why) = log::first_damage(log.as_ref()).map_err(failure(path))? {
                    self.note_torn(name, &why);
                }
                creator.add_active(name, progress.watch_all(log), mode).map_err(failure(path))
            }
            LogBeginning::InUse => {
                self.in_use.push(name.to_owned());
                Ok(())
            }
            LogBeginning::NoLog(what) => Err(CommandFailure::of(&path.display(), what)),
        }
    }

    /// Adds a closed log: of a torn one a part, if that was asked for.
    fn add_closed(
        &mut self,
        creator: &mut Creator<'_>,
        (path, name): (&Path, &str),
        log: Arc<dyn ReadAt>,
        mode: Option<u32>,
    ) -> Result<()> {
        if let Some(choice) = self.choice {
            let mut selected = self.selected((path, &log), choice)?;
            self.met.append(&mut selected.met);
            if !selected.doubts.is_empty() {
                self.exit = Exit::Negative;
            }
            return add_selected(creator, (path, name), selected, mode);
        }
        match creator.add_file(name, Arc::clone(&log), mode) {
            Err(Error::Torn(why)) if self.args.salvage || self.args.include_active => {
                self.note_torn(name, &why);
                creator.add_active(name, log, mode).map_err(failure(path))
            }
            added => added.map_err(torn_failure(path)),
        }
    }

    /// A closed log without other tables.
    fn selected(&self, (path, log): (&Path, &Arc<dyn ReadAt>), choice: &TableChoice) -> Result<SelectedLog> {
        chosen_tables::select(log, choice, workers(self.args.jobs)).map_err(failure(path))
    }

    fn note_torn(&mut self, name: &str, why: &dyn std::fmt::Display) {
        self.torn.note(name, why);
        self.exit = Exit::Negative;
    }

    /// Opens a log. One that its server encrypted isn't put into an archive that is not encrypted, unless that is asked for.
    fn open(&self, path: &Path) -> Result<Input> {
        let was_secret = self.keyring.is_some() && was_encrypted(path);
        match self.is_encrypted || self.args.plaintext || !was_secret {
            true => LogPath::File(path.to_owned()).open(self.keyring),
            false => Err(CommandFailure::of(
                &path.display(),
                "its server encrypted it, and the archive is not encrypted: BINLOGZ_ARCHIVE_KEY_FILE names a key for a \
                 new archive, --plaintext stores it all the same",
            )),
        }
    }
}

/// Adds a log without other tables, under a name of its own.
fn add_selected(
    creator: &mut Creator<'_>,
    (path, name): (&Path, &str),
    SelectedLog { log, events_left_out, statements_left_out, doubts, .. }: SelectedLog,
    mode: Option<u32>,
) -> Result<()> {
    let selected = chosen_tables::selected_name(name);
    let events = counted(events_left_out, "events");
    let statements = counted(statements_left_out, "statements");
    let line = format!("{name}: as {selected}, without {events} of rows and {statements} of other tables");
    progress::above(|| print(&mut io::stdout().lock(), &line))?;
    for doubt in doubts.lines() {
        progress::above(|| complain(&format!("{}: {doubt}", path.display())));
    }
    creator.add_file(&selected, log, mode).map_err(failure(path))
}

/// Whether a file is a log that its server encrypted.
fn was_encrypted(path: &Path) -> bool {
    let mut magic = [0; MAGIC_ENCRYPTED.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC_ENCRYPTED
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A torn or damaged log is refused; two options keep its part.
fn torn_failure(path: &Path) -> impl FnOnce(Error) -> CommandFailure {
    move |error| match error {
        error @ Error::Torn(_) => CommandFailure::of(
            &path.display(),
            format_args!("{error}; --salvage stores the transactions that are whole"),
        ),
        error => failure(path)(error),
    }
}

/// The line of a log that was added. `torn`: why only a part of it is there, if its server has closed it.
fn added_line(entry: &FileEntry, torn: Option<&str>, sizes: SizesArg) -> String {
    let saved = less(entry.packed_size, entry.size);
    let payloads = match (entry.payload_level, entry.payloads_kept) {
        (Some(level), _) if entry.source_sha256.is_some() => {
            format!(", payloads expanded: they come back with equal meaning, at level {level}")
        }
        (Some(level), 0) => format!(", payloads of level {level} expanded"),
        (Some(level), count) => {
            format!(", payloads of level {level} expanded, {} kept as they are", counted(count, "others"))
        }
        (None, 0) => String::new(),
        (None, 1) => ", 1 payload kept as it is".to_owned(),
        (None, count) => format!(", {} kept as they are", counted(count, "payloads")),
    };
    let part = match (entry.active_size, torn) {
        (None, _) => String::new(),
        (Some(_), None) => ", as far as it is whole while its server writes it".to_owned(),
        (Some(_), Some(why)) => format!(", as far as it is whole: {why}"),
    };
    let size = sizes.in_words(entry.size);
    let packed = sizes.in_words(entry.packed_size);
    format!("{}: {size} -> {packed}, saved {saved}{payloads}{part}", entry.name)
}
