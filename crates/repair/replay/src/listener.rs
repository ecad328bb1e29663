//! Hears what a person should know at once: bringing a server forward can take hours.

/// Hears what happens while logs are replayed.
pub trait ReplayListener: Send + Sync {
    /// Something that is not an error, but should be known.
    fn warn(&self, line: &str);

    /// Something that the answer will lack.
    fn complain(&self, line: &str);
}
