//! The file that a transaction has of its own, for clients that get it plain where XA COMMIT stands.
//!
//! ```text
//! binlog-u.000042          … │ GTID · XA COMMIT at 1337 │ …
//!                            ▼                          ▲
//! binlog-u.000042-xa1337   65536: GTID · BEGIN · rows · XID
//! ```
//!
//! The rows have no room in the place of the statement, and no position there. So the client is told another file, as at the end of
//! a log, and told the first one again afterwards. If it leaves in between, it asks for that file and the position in it,
//! and gets the rest of the transaction: the file follows from the stored log, as all others do.
//!
//! A server that compares the numbers of files, as MASTER_POS_WAIT does, finds 42 in both.

/// What stands between the name of the log and the position of XA COMMIT.
const SEPARATOR: &str = "-xa";
/// Where the first event begins: any number after the front of a log, so that no position in the file is one of a front.
pub(crate) const FIRST_POSITION: u64 = 65_536;

/// A file with one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct XaFileName {
    /// The file in which XA COMMIT stands.
    pub(crate) log: String,
    /// Where its transaction begins there.
    pub(crate) offset: u64,
}

impl XaFileName {
    /// The file that a client asks for; `None`: it asks for another one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (log, digits) = name.rsplit_once(SEPARATOR)?;
        let offset: u64 = digits.parse().ok()?;
        let parsed = XaFileName { log: log.to_owned(), offset };
        (!log.is_empty() && parsed.name() == name).then_some(parsed)
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> String {
        format!("{}{SEPARATOR}{}", self.log, self.offset)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_log_and_its_place() {
        let file = XaFileName { log: "binlog-u.000042".into(), offset: 1337 };
        assert_eq!(file.name(), "binlog-u.000042-xa1337");
        assert_eq!(XaFileName::parse("binlog-u.000042-xa1337"), Some(file));
        let twice = XaFileName::parse("my-xa7.000001-xa4").unwrap();
        assert_eq!((twice.log.as_str(), twice.offset), ("my-xa7.000001", 4));
        for name in
            ["binlog-u.000042", "-xa7", "a-xa", "a-xa07", "a-xa+7", "a-xa7 ", "a-xa99999999999999999999"]
        {
            assert_eq!(XaFileName::parse(name), None, "{name}");
        }
    }
}
