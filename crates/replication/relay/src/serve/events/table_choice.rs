//! The tables whose rows an account is sent: chosen by the patterns of `binlogz-archive`, which leaves rows out of archives by them.

pub use binlogz_archive::chosen_tables::{TableChoice, UnfitPattern};
