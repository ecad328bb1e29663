//! MySQL's client/server protocol as far as a replica and its source speak it, without I/O and without a
//! clock.
//!
//! Each message is a type with `decode` and `encode` side by side: both ends of the conversation are ours.
//! [`packet`] cuts messages for the wire. [`session`] holds the conversations as state machines that take
//! bytes and the time, and give bytes, events and a deadline. `binlogz-source` handles sockets, TLS, option
//! files and clocks; `binlogz-binlog` reads the events themselves.
//!
//! The facts were verified against the sources and a live server of MySQL 9.7.4.

pub mod auth;
pub mod capabilities;
pub mod change_user;
pub mod command;
pub mod compressed;
pub mod dump_request;
pub mod error;
pub mod event_packets;
mod fields;
pub mod greeting;
pub mod handshake_response;
pub mod packet;
pub mod passage;
pub mod register_replica;
pub mod response;
pub mod result_set;
pub mod semi_sync;
pub mod session;
pub mod statement;
#[cfg(test)]
mod testing;

pub use error::{Error, Result, ServerError};
