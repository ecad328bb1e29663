//! The real program over real logs: plain, compressed and archived.

mod common;
mod docs;
mod hostile;
mod input;
mod queries;
mod types;
