//! Gives exactly the bytes that a server's libzstd gives for a transaction, and expands them again.
//!
//! [`compressor`] turns a transaction's events into a payload: it drives libzstd as a [`recipe`] says, at a [`level`].
//! [`library`] is the version that is linked, or another one in a helper program. [`expander`] turns a payload back into
//! events. [`server`] knows which of these each server has, and [`provenance`] tells who made a payload.

pub mod compressor;
pub mod expander;
pub mod level;
pub mod library;
pub mod provenance;
pub mod recipe;
pub mod server;
