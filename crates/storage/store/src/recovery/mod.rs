//! Opening a log: reads its last file, cuts a tail that a crash tore, and finds damage.

pub(crate) mod damage;
pub(crate) mod recover;
pub(crate) mod scan;
