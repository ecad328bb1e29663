//! The policy for the form of a client that names no file.

use binlogz_relay_log::Form;

/// The form for clients that name no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormPolicy {
    /// One form for all of them.
    Always(Form),
    /// The form that each client can read, as its profile says: the default.
    Auto,
}
