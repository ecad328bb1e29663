//! File systems that are soon full.

use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::tool::skip;

/// Set for a test that runs in a namespace of its own.
const INSIDE: &str = "BINLOGZ_IN_NAMESPACE";
/// A user of any kind may mount in a namespace where they are root, if the system lets them make one.
const NAMESPACE: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];

/// A file system in memory, unmounted when it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// One of so many bytes as a new folder. `None`: mounting is not allowed here. Then the test was run in a namespace
    /// where it is, and has passed; where that is not allowed either it says `SKIPPED`, if tests may be skipped.
    pub(crate) fn mount(path: &Path, size: u32) -> Option<SmallDisk> {
        std::fs::create_dir(path).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(SmallDisk(path.to_owned()));
        }
        let inside = Command::new("unshare").args(NAMESPACE).arg("true").output();
        if std::env::var_os(INSIDE).is_some() || !inside.is_ok_and(|inside| inside.status.success()) {
            skip("a small file system can't be mounted: neither by this user nor in a user namespace");
            return None;
        }
        run_in_namespace();
        None
    }

    /// From now on it has this many bytes.
    pub(crate) fn resize(&self, size: u32) {
        let size = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &size]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

/// Runs the test that this thread runs, in another process.
fn run_in_namespace() {
    let test =
        std::thread::current().name().map(str::to_owned).expect("the runner names threads by their tests");
    let mut command = Command::new("unshare");
    command.args(NAMESPACE).arg(std::env::current_exe().unwrap()).args(["--exact", &test, "--nocapture"]);
    let output = command.env(INSIDE, "1").output().unwrap();
    let [said, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && said.contains("1 passed"), "in a namespace: {said}{complaint}");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
