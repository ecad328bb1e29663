//! A real headless Chromium, for tests of HTML pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::say_skipped;
use crate::{Error, IoContext, Result};

/// What a page became.
#[derive(Debug)]
pub struct Rendered {
    /// The document as it is once its scripts have run.
    pub dom: String,
    /// What stands on the browser's console.
    pub console: Vec<String>,
}

/// The Chromium that is installed. `None` after saying `SKIPPED` aloud: it is a download of 81 MB that is asked of
/// nobody.
pub fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        say_skipped("no chromium on PATH");
    }
    found
}

/// Opens a file in a window of this size, without any network.
///
/// # Errors
/// A browser that can't be started, or fails.
pub fn render(chromium: &Path, page: &Path, width: u32, height: u32) -> Result<Rendered> {
    let home = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
    let output = Command::new(chromium)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000", "--dump-dom"])
        // Every name resolves to nothing: whatever the page asks for would fail, and show on the console.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", home.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .at("start", chromium)?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Unavailable(format!("chromium failed: {log}")));
    }
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Ok(Rendered { dom: String::from_utf8_lossy(&output.stdout).into_owned(), console })
}
