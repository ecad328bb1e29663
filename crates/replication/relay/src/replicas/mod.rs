//! The connected replicas, as far as we know them.
//!
//! The threads that serve replicas (`serve`) note what they see. Other parts ask: receiving waits for acknowledgements,
//! retention keeps files that are still read, statements and status list the replicas.
//!
//! * `registry`: which replicas have registered, and each one's single dump;
//! * `dumps`: how far each dump is;
//! * `acknowledgements`: the positions that semi-synchronous replicas acknowledged, and waiting for enough of them.

pub(crate) mod acknowledgements;
pub(crate) mod dumps;
pub(crate) mod registry;
