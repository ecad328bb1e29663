//! Runs the real binary in an empty folder and compares all of its output, with what the tests of `binlogz` have for that.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]

#[path = "../../../../crates/interfaces/cli/tests/common/folder.rs"]
mod folder;
#[path = "../../../../crates/interfaces/cli/tests/common/help.rs"]
pub(crate) mod help;
#[path = "../../../../crates/interfaces/cli/tests/common/small_disk.rs"]
pub(crate) mod small_disk;
#[path = "../../../../crates/interfaces/cli/tests/common/terminal.rs"]
pub(crate) mod terminal;

pub(crate) use folder::{Folder, Ran, sample, wait_for};

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_binlogz-bench");
