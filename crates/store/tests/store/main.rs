//! The store over all its storages: positions, files, recovery, crashes.

mod common;
mod crash;
mod faults;
mod files;
mod recovery;
mod watermark;
