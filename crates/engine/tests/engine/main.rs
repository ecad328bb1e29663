//! The engine: sessions, groups, variables, and its log held against the server's.

mod common;
mod faults;
mod groups;
mod live;
mod replay;
mod same_bytes;
mod sessions;
