//! The program itself: its name at the head of its lines, and its companions, programs that do some commands of binlogz.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

static NAME: OnceLock<&str> = OnceLock::new();

/// Names the program at the head of its lines, when it starts. Without this it is `binlogz`.
pub fn speak_as(name: &'static str) {
    // A program has one name.
    let _ = NAME.set(name);
}

pub(crate) fn name() -> &'static str {
    NAME.get().copied().unwrap_or("binlogz")
}

/// Where a program of binlogz is: beside this one, or by its name alone, which is then looked for on PATH, as git looks for
/// its commands.
pub fn companion(name: &str) -> PathBuf {
    let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.join(name)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(name))
}
