//! Shared by the command lines of binlogz, so that `binlogz`, `binlogz-sql` and `binlogz-bench` look and behave alike:
//! options of servers and keyrings, times and units, progress, terminal and pager, errors as lines, exit codes, help.
//!
//! The commands themselves are in the programs. Of those that binlogz passes on to another program the options are here, too
//! ([`companions`]).

pub mod companions;
pub mod erased;
mod exit;
pub mod exits;
pub mod failure;
pub mod format;
pub mod help;
pub mod interrupt;
pub mod keyring;
pub mod malloc;
pub mod pager;
pub mod program;
pub mod progress;
pub mod server_args;
pub mod similar;
pub mod start;
pub mod terminal;
pub mod time;
pub mod units;

pub use exit::Exit;
