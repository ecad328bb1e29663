//! File systems that are soon full.

use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::tool::say_skipped;

/// A file system in memory, unmounted when it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// One of so many bytes as a new folder; `None`, after saying `SKIPPED` aloud: mounting is not allowed here.
    pub(crate) fn mount(path: &Path, size: u32) -> Option<SmallDisk> {
        std::fs::create_dir(path).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(SmallDisk(path.to_owned()));
        }
        say_skipped("mounting a small file system is not allowed here");
        None
    }

    /// From now on it has so many bytes.
    pub(crate) fn resize(&self, size: u32) {
        let size = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &size]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
