//! Compares the relay's files with the source's: as they are stored, and as clients receive them.

use std::fs;
use std::path::{Path, PathBuf};

use binlogz_testkit::{InstalledTool, MysqlSandbox};

use super::Relay;
use crate::common::Folder;

/// Where the format description's flags are, of which the lowest bit says that a file is in use.
const FLAGS: usize = 4 + 17;

/// The relay keeps the source's files, byte for byte; the last one may be open here or there.
#[track_caller]
pub(crate) fn is_kept(source: &MysqlSandbox, kept: &Path) {
    let closed = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[FLAGS] &= 0xfe;
        bytes
    };
    for file in source.binlogs().unwrap() {
        let name = file.file_name().unwrap();
        assert!(closed(&file) == closed(&kept.join(name)), "{name:?} differs in {}", kept.display());
    }
}

/// The last part of a path.
pub(crate) fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

impl Relay {
    /// Has the source begin a new file, and waits until it is begun here too; gives those that are closed.
    fn closed_files(&mut self, folder: &Folder, source: &MysqlSandbox) -> Vec<PathBuf> {
        source.flush_binary_logs().unwrap();
        let mut files = source.binlogs().unwrap();
        let open = files.pop().unwrap();
        let begun = folder.path("kept").join(name(&open));
        // A rotation makes the new file empty, before it closes the old one; what it writes there comes after that.
        let has_begun = || fs::metadata(&begun).is_ok_and(|begun| begun.len() > 0);
        self.wait_for("last file", |_| has_begun().then_some(()));
        files
    }

    /// Waits until all files that the source has closed are closed here too; they are the same. Gives how many.
    pub(crate) fn keeps_files_of(&mut self, folder: &Folder, source: &MysqlSandbox) -> usize {
        let files = self.closed_files(folder, source);
        for file in &files {
            let kept = fs::read(folder.path("kept").join(name(file))).unwrap();
            assert!(kept == fs::read(file).unwrap(), "{} differs\n{}", file.display(), self.said());
        }
        files.len()
    }

    /// Fetches all files that the source has closed, as received, into `fetched`; they are the source's. Gives their names.
    pub(crate) fn sends_files_of(
        &mut self,
        mysql: &InstalledTool,
        folder: &Folder,
        source: &MysqlSandbox,
    ) -> Vec<String> {
        let files = self.closed_files(folder, source);
        let names: Vec<_> = files.iter().map(|file| name(file).to_owned()).collect();
        let names_given: Vec<&str> = names.iter().map(String::as_str).collect();
        self.fetched(mysql, folder, &[], &names_given);
        for file in &files {
            let fetched = folder.read(&format!("fetched/{}", name(file)));
            assert!(fetched == fs::read(file).unwrap(), "{} over the wire\n{}", file.display(), self.said());
        }
        names
    }

    /// Fetches files with the source's account into `fetched`; gives their bytes.
    #[track_caller]
    pub(crate) fn fetched(
        &self,
        mysql: &InstalledTool,
        folder: &Folder,
        options: &[&str],
        names: &[&str],
    ) -> Vec<Vec<u8>> {
        let fetched = self.fetch(mysql, "repl", &folder.path("fetched"), options, names);
        let paths = fetched.unwrap_or_else(|error| panic!("{error}\n{}", self.said()));
        paths.iter().map(|path| fs::read(path).unwrap()).collect()
    }
}
