//! The commands that read, rewrite and check logs, and behaviour that all commands share.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod advise;
mod advise_page;
mod answers;
mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod companions;
mod completions;
mod cut;
mod demo;
mod dictionary;
mod doctor;
mod encryption;
mod feature;
mod incident;
mod interrupt;
mod mariadb;
mod messages;
mod output;
mod pipe;
mod progress;
mod relay_log;
mod stats;
mod terminal;
mod terminal_servers;
mod terminal_serving;
mod times;
mod unread;
mod widths;
