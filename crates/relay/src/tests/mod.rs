//! Tests of the relay as a whole, on a simulated disk and against a simulated source.

pub(crate) mod crashes;
mod damage;
mod dumps;
mod duties;
mod faults;
mod renewed;
mod retained;
mod simulated;
mod storing;
