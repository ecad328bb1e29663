//! Facts about clients that outlive their connections and the relay's process.
//!
//! * `pins` remembers in which form a client is served, `last_served` which log;
//! * `recent` is the map of both: bounded, since clients choose their own names.

pub(crate) mod last_served;
pub(crate) mod pins;
mod recent;
