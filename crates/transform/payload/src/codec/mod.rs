//! The very bytes that a server's libzstd gives, and their expansion.
//!
//! In comes a transaction's events or a payload, out the other. [`compressor`] drives libzstd as a [`recipe`] says, at a [`level`]; [`library`] is
//! the version that is linked, or another one in a helper program. [`expander`] is the way back. [`server`] knows which of these each
//! server has, and [`provenance`] who made a payload.

pub mod compressor;
pub mod expander;
pub mod level;
pub mod library;
pub mod provenance;
pub mod recipe;
pub mod server;
