//! The laws of compress and expand, over every real log there is and over logs built by hand; `lab/testing.md` says
//! which test proves what, and where the limits are.

mod bounded;
mod canonical;
mod cuts;
mod damage;
mod deterministic;
mod disorder;
mod generations;
mod inverse;
mod lies;
mod meaning;
mod mutations;
mod old_servers;
mod parts;
mod positions;
mod support;
