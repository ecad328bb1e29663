//! Tests that need an unavailable program: they say `SKIPPED` aloud and pass.

use std::io::Write;
use std::path::PathBuf;

pub use binlogz_sandbox::tool::{InstalledTool, Tool};

/// The tool, or `None` after saying `SKIPPED` aloud; panics instead where `BINLOGZ_REQUIRE_SERVERS=1`.
/// Used through [`require_tool!`](crate::require_tool).
pub fn require(tool: Tool) -> Option<&'static InstalledTool> {
    match tool.find() {
        Ok(installed) => Some(installed),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

/// Says `SKIPPED`, the test's name and the reason past the test runner's capture, so that it shows also when the
/// test passes; panics instead where `BINLOGZ_REQUIRE_SERVERS=1`. The test returns after it.
pub fn skip(reason: &str) {
    assert!(
        std::env::var("BINLOGZ_REQUIRE_SERVERS").as_deref() != Ok("1"),
        "{} may not be skipped (BINLOGZ_REQUIRE_SERVERS=1): {reason}",
        test_name()
    );
    say_skipped(reason);
}

/// The folder that `BINLOGZ_STD_DATA` names: the logs of the server's own test suite, an optional download of
/// 338 MB. Tests that need it are marked `#[ignore]`, so that no run counts them as passed without it.
///
/// # Panics
/// Without the variable.
pub fn std_data() -> PathBuf {
    let folder = std::env::var_os("BINLOGZ_STD_DATA").map(PathBuf::from);
    folder
        .expect("BINLOGZ_STD_DATA names no folder with the server's std_data: scripts/soak/std-data.sh does")
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

fn say_skipped(reason: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {}: {reason}", test_name());
}

/// The return value of a skipped test: [`require_tool!`](crate::require_tool) serves tests of either signature.
pub trait SkippedTest {
    /// The outcome of a test that did nothing.
    fn skipped() -> Self;
}

impl SkippedTest for () {
    fn skipped() {}
}

impl<E> SkippedTest for std::result::Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }
}

/// `let mysql = require_tool!(Tool::Mysql);`: the installed tool, or the test ends here, saying `SKIPPED` aloud.
#[macro_export]
macro_rules! require_tool {
    ($tool:expr) => {
        match $crate::tool::require($tool) {
            Some(installed) => installed,
            None => return $crate::tool::SkippedTest::skipped(),
        }
    };
}
