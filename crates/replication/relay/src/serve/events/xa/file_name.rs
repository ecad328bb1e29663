//! The file that a transaction has of its own, for clients that get it plain where XA COMMIT stands.
//!
//! ```text
//! binlog-u.000042                   … │ GTID · XA COMMIT at 1337 │ …
//!                                     ▼                          ▲
//! binlog-u.000000-xa000042-1337     65536: GTID · BEGIN · rows · XID
//! ```
//!
//! The rows have no room in the place of the statement, and no position there. So the client is told another file, as at the end of
//! a log, and told the first one again afterwards. If it leaves in between, it asks for that file and the position in it,
//! and gets the rest of the transaction: the file follows from the stored log, as all others do.
//!
//! MASTER_POS_WAIT and START SLAVE UNTIL compare the digits after the first dot as a number, then positions (`wait_for_pos` and
//! `is_until_satisfied` of MySQL 5.6 and MariaDB). 0 is less than any file's: a replica that is inside has reached no place of the log.
//! With 42, and positions that are no places of file 42, it had reached all of its first 64 KiB.

/// The number that a server reads, and what stands between it and the digits of the log.
const SEPARATOR: &str = ".000000-xa";
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
        let (base, place) = name.rsplit_once(SEPARATOR)?;
        let (number, offset) = place.split_once('-')?;
        let offset: u64 = offset.parse().ok()?;
        let parsed = XaFileName { log: format!("{base}.{number}"), offset };
        (!base.is_empty() && parsed.name().as_deref() == Some(name)).then_some(parsed)
    }

    /// The name of the file; `None`: that of the log has no number.
    pub(crate) fn name(&self) -> Option<String> {
        let (base, number) = self.log.rsplit_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| format!("{base}{SEPARATOR}{number}-{}", self.offset))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_log_and_its_place() {
        let file = XaFileName { log: "binlog-u.000042".into(), offset: 1337 };
        assert_eq!(file.name().unwrap(), "binlog-u.000000-xa000042-1337");
        assert_eq!(XaFileName::parse("binlog-u.000000-xa000042-1337"), Some(file));
        let twice = XaFileName::parse("my.000000-xa7.000000-xa000001-4").unwrap();
        assert_eq!((twice.log.as_str(), twice.offset), ("my.000000-xa7.000001", 4));
        for name in [
            "binlog-u.000042",
            "binlog-u.000042-xa1337",
            ".000000-xa000042-7",
            "a.000000-xa000042",
            "a.000000-xa000042-",
            "a.000000-xa000042-07",
            "a.000000-xa000042-+7",
            "a.000000-xa000042-7 ",
            "a.000000-xa-7",
            "a.000000-xab-7",
            "a.000001-xa000042-7",
            "a.000000-xa000042-99999999999999999999",
        ] {
            assert_eq!(XaFileName::parse(name), None, "{name}");
        }
        assert_eq!(XaFileName { log: "binlog".into(), offset: 4 }.name(), None);
    }

    /// Of the digits that servers compare, the file has fewer than any log.
    #[test]
    fn no_place_of_a_log_is_reached_inside() {
        let name = XaFileName { log: "binlog-u.000001".into(), offset: 4 }.name().unwrap();
        let after_dot = name.split_once('.').unwrap().1;
        let digits: String = after_dot.chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(digits.parse::<u64>().unwrap(), 0);
    }
}
