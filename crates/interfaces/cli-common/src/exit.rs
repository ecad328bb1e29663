//! Exit codes.

/// A command's exit code; of several, the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The command did everything it was asked to do.
    Done = 0,
    /// It ran, and the answer is no.
    Negative = 1,
    /// Bad usage, bad input or I/O trouble.
    Trouble = 2,
}
