//! Connections: how clients come in, who they are, and how they leave.
//!
//! In: sockets. Out: connections that are logged in to an account and have a source. Sends nothing of the log.
//!
//! * `door` is what all clients pass, `listeners` where they arrive, `routes` says which source each reads;
//! * `admission` limits the number of clients, `descriptors` to as many as the process may have files open for;
//! * `accounts` checks logins; `client_form` is an account's policy for the form of a client that names no file;
//! * `transport` does TLS, `own_certificate` makes what it needs;
//! * `clients` can be sent away, and `departures` notices when they leave by themselves.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod client_form;
pub(crate) mod clients;
pub(crate) mod departures;
mod descriptors;
pub(crate) mod door;
pub(crate) mod listeners;
pub(crate) mod own_certificate;
pub(crate) mod routes;
pub(crate) mod transport;
