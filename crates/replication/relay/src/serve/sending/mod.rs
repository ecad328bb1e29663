//! A dump, once it is known where it begins: the durable log to one client, until it leaves.
//!
//! * `sender` goes through the log, file by file, and waits at its end;
//! * `sink` cuts events into packets, each as `events` makes it for the client;
//! * `semi_sync` asks a replica for its acknowledgements.

pub(crate) mod semi_sync;
pub(crate) mod sender;
pub(crate) mod sink;
