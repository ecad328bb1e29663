//! What the relay says while its archive can't be used, is damaged, or a helper for it hangs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_testkit::random::Random;

use super::stored::Flip;
use super::{Fault, HANG, World};
use crate::key_command;

/// Closed files that can't be archived are to be red within this time: `overdue` in `main`, and what a busy machine adds.
const OVERDUE: Duration = Duration::from_secs(75);
/// In this folder the relay looks for helper programs first.
pub(crate) const HELPERS: &str = "helpers";
/// The program for payloads of another libzstd, which every archived payload is tried with.
const HELPER: &str = "binlogz-zstd-1-5-6";

impl World<'_> {
    fn helper(&self) -> PathBuf {
        self.folder.path(HELPERS).join(HELPER)
    }

    /// Archiving is hindered from now on.
    pub(super) fn hinder_archiving(&mut self, fault: Fault, random: &mut Random) {
        match fault {
            Fault::ArchiveTarget => {
                let archive = self.folder.path("arc");
                let _ = fs::rename(&archive, self.folder.path("arc-away"));
                fs::write(&archive, "in its place").unwrap();
            }
            Fault::HelperHangs => {
                // One that was given up in an earlier round would not be started for a while.
                self.start_again(random);
                fs::create_dir_all(self.folder.path(HELPERS)).unwrap();
                fs::write(self.helper(), "#!/bin/sh\nexec sleep 3600\n").unwrap();
                fs::set_permissions(self.helper(), fs::Permissions::from_mode(0o700)).unwrap();
            }
            _ => fs::write(self.folder.path(HANG), "").unwrap(),
        }
        self.source.sql("FLUSH BINARY LOGS").unwrap();
    }

    /// Closed files that can't be archived make health red, by name; then they can be again.
    pub(super) fn archiving_is_red(&mut self, fault: Fault) {
        self.is_red_with("archiving to ", OVERDUE);
        match fault {
            Fault::ArchiveTarget => {
                let archive = self.folder.path("arc");
                fs::remove_file(&archive).unwrap();
                let _ = fs::rename(self.folder.path("arc-away"), &archive);
            }
            Fault::HelperHangs => {
                // It costs its codec, and the log is archived.
                if !self.wait_until(|world| world.relay.said().contains(HELPER)) {
                    self.wrong("nothing is said of a helper that hangs");
                }
                fs::remove_file(self.helper()).unwrap();
            }
            _ => fs::remove_file(self.folder.path(HANG)).unwrap(),
        }
    }

    /// A bit flips in an object of the archive.
    pub(super) fn rot_archive(&mut self, random: &mut Random) -> Option<Flip> {
        self.source.sql("FLUSH BINARY LOGS").unwrap();
        let objects = || {
            let entries = fs::read_dir(self.folder.path("arc/objects")).into_iter().flatten().flatten();
            let paths = entries.map(|entry| entry.path());
            let is_segment =
                |path: &PathBuf| path.extension().is_some_and(|extension| extension == "binlogz");
            paths.filter(is_segment).collect::<Vec<_>>()
        };
        self.wait_until(|_| !objects().is_empty());
        let mut objects = objects();
        objects.sort();
        while !objects.is_empty() {
            let object = objects.swap_remove(random.below(objects.len()));
            let size = fs::metadata(&object).unwrap().len() as usize;
            let flip = Flip::bit(&object, random.below(size), random.below(8) as u32);
            // A run that was killed may have left an object that no log is in.
            if !self.archive_is_whole() {
                println!("{}: {} at {} of {size}", self.now, object.display(), flip.offset);
                return Some(flip);
            }
            flip.undo();
        }
        None
    }

    /// As `archive check` finds it.
    fn archive_is_whole(&self) -> bool {
        let mut check = self.folder.binlogz(["archive", "check", "arc"]);
        check.env("BINLOGZ_ARCHIVE_KEY_COMMAND", key_command(self.folder));
        check.output().unwrap().status.success()
    }

    /// The scheduled check makes health red; then somebody brings the byte back.
    pub(super) fn rot_is_red(&mut self, flip: &Flip) {
        self.is_red_with("is not whole", super::LIMIT);
        assert!(flip.undo(), "an archive's object was changed");
    }

    /// Health becomes red within this time, and says this.
    pub(super) fn is_red_with(&mut self, words: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        let is_told = |(code, why): (u16, String)| code == 503 && why.contains(words);
        while !self.health().is_some_and(is_told) {
            if Instant::now() > deadline {
                let health = self.health();
                return self.wrong(&format!("{words:?} is expected, and health says {health:?}"));
            }
            sleep(Duration::from_millis(100));
        }
    }
}
