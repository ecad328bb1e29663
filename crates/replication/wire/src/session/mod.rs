//! Conversations as state machines. Each takes bytes and the time, and gives bytes, events and a deadline.
//!
//! [`ClientSession`] logs in and sends statements; [`SourceSession`] builds on it and receives a source's binary log.
//! [`ReplicaSession`] is the other end: a source's side of a connection to a replica. None of them knows sockets, TLS or
//! clocks: the caller passes received bytes in, sends the pending ones, and wakes the session at its deadline.

mod client;
mod login;
mod replica;
mod setup;
mod source;
mod stream;

pub use client::{ClientSession, ClientStep, Timeouts};
pub use login::{LoginOptions, ServerGreeting, TlsPolicy};
pub use replica::{
    COMMAND_SIZE_MAX, LoginAccount, NewUser, ReplicaOptions, ReplicaRequest, ReplicaSession, ReplicaStep,
    ReplyColumn, STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION,
};
pub use setup::{ClientProfile, ReplicaProfile, SourceIdentity};
pub use source::{DumpStart, ReceiveOptions, SourceSession, SourceStep};
pub use stream::EventPiece;
