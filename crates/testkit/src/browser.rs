//! A real headless Chromium, for tests of HTML pages.

use std::path::Path;

use crate::tool::Installed;
use crate::{Error, IoContext, Result};

/// The result of loading a page.
#[derive(Debug)]
pub struct Rendered {
    /// The document as it is once its scripts have run.
    pub dom: String,
    /// The output on the browser's console.
    pub console: Vec<String>,
}

/// Opens a file in a window of this size, without any network.
///
/// # Errors
/// A browser that can't be started, or fails.
pub fn render(chromium: &Installed, page: &Path, width: u32, height: u32) -> Result<Rendered> {
    let home = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
    let output = chromium
        .command("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000", "--dump-dom"])
        // No name resolves: anything the page requests would fail, and show on the console.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", home.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .at("start", &chromium.prefix().join("bin/chromium"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Unavailable(format!("chromium failed: {log}")));
    }
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Ok(Rendered { dom: String::from_utf8_lossy(&output.stdout).into_owned(), console })
}
