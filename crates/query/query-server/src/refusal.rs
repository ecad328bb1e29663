//! Why a statement has no answer, or no more of it: sorted by blame, so that each protocol finds its own number for it.

/// The cause for which a statement has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The statement is wrong.
    Statement,
    /// It needs more than a limit allows.
    Limit,
    /// A log can't be read.
    Logs,
    /// It was stopped.
    Stopped,
    /// It took too long.
    Time,
    /// The server can't run it now.
    Unavailable,
    /// A fault of this program or of its libraries.
    Program,
}

impl Blame {
    const ALL: [Blame; 7] = [
        Blame::Statement,
        Blame::Limit,
        Blame::Logs,
        Blame::Stopped,
        Blame::Time,
        Blame::Unavailable,
        Blame::Program,
    ];

    pub(crate) fn byte(self) -> u8 {
        self as u8
    }

    /// The blame that a worker tells. A byte that none has is the program's fault.
    pub(crate) fn of(byte: u8) -> Self {
        Self::ALL.into_iter().find(|blame| blame.byte() == byte).unwrap_or(Blame::Program)
    }
}

/// Why a statement has no answer, as a line for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct StatementRefusal {
    /// The cause.
    pub blame: Blame,
    /// The number that the statement's protocol has for it; 0: none of its own.
    pub number: u16,
    /// The line.
    pub line: String,
}

impl StatementRefusal {
    /// A refusal without a number.
    pub fn new(blame: Blame, line: impl Into<String>) -> Self {
        StatementRefusal { blame, number: 0, line: line.into() }
    }
}

impl From<binlogz_query::Error> for StatementRefusal {
    fn from(error: binlogz_query::Error) -> Self {
        use binlogz_query::Error;
        let line = error.to_string();
        let blame = match error {
            Error::Sql(_) => Blame::Statement,
            Error::Memory { .. } | Error::Temporary(_) => Blame::Limit,
            Error::Log(_) => Blame::Logs,
            Error::Stopped => Blame::Stopped,
            _ => Blame::Program,
        };
        StatementRefusal::new(blame, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_comes_back_from_its_byte() {
        for blame in Blame::ALL {
            assert_eq!(Blame::of(blame.byte()), blame);
        }
        assert_eq!(Blame::of(200), Blame::Program);
    }
}
