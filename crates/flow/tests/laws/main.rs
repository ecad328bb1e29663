//! The laws of compress and expand, over every real log there is and over logs built by hand; `docs/laws.md` says
//! which test proves what, and where the limits are.

mod canonical;
mod deterministic;
mod inverse;
mod old_servers;
mod positions;
mod support;
