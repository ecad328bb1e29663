//! The format, over the logs of real servers.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod charsets;
mod corpus;
mod event_types;
mod gtid_server;
mod rows;
mod show_events;
mod std_data;
