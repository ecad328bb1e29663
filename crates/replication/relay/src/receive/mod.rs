//! Receives the source's events and makes them durable.
//!
//! The input is events from one of the source's servers (`binlogz_source`). Whole transactions go into the current log
//! (`binlogz_relay_log`), as they came or compressed; the source gets acknowledgements once they are durable. `serve` reads
//! the log.
//!
//! * `intake` is the state that all of receiving shares: it begins a log, syncs it, and reopens it after a disk
//!   failure;
//! * `receiver` connects, asks, receives, and tries again; `receiver/receiving` puts pieces of events together;
//! * `storing` compresses batches of transactions in several threads and writes them in order; `sizes` counts them;
//! * `control` starts and stops receiving, `source_status` reports its state;
//! * `servers` lists the source's servers, `product` refuses those that can't be followed, `start` says where a log begins, `seed` begins one from existing files;
//! * `source_variables` keeps the source's variables for clients' statements;
//! * `group_member` passes over servers that have left their group;
//! * `continuity` checks that the source's log is still the one we store;
//! * `questions` asks the source whether it has a client's transactions, as far as `question_limit` lets it;
//! * `repair` fetches damaged transactions from the source again;
//! * `mariadb` is what a MariaDB has instead of a server uuid, and what can't be done with it;
//! * `identity` is the relay's server uuid and server id.

pub(crate) mod continuity;
pub(crate) mod control;
pub(crate) mod group_member;
pub(crate) mod identity;
pub(crate) mod intake;
pub(crate) mod mariadb;
pub(crate) mod product;
mod question_limit;
pub(crate) mod questions;
pub(crate) mod receiver;
pub(crate) mod repair;
pub(crate) mod seed;
pub(crate) mod servers;
pub(crate) mod sizes;
pub(crate) mod source_status;
pub(crate) mod source_variables;
pub(crate) mod start;
pub(crate) mod storing;
