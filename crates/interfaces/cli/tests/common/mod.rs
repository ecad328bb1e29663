//! Runs the real binary in an empty folder and compares all of its output.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]

mod folder;
pub(crate) mod help;
pub(crate) mod proxy;
pub(crate) mod relay;
pub(crate) mod small_disk;
pub(crate) mod terminal;

pub(crate) use folder::{Folder, Ran, sample, wait_for};

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_binlogz");
