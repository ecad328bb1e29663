//! Looks for places in the source's log in the answers that pass through (`forward_sql`): GTIDs, and names of its files.
//!
//! A statement does not tell what its answer will hold: SHOW VARIABLES WHERE …, a view, a procedure, a prepared
//! statement. So the answers themselves are scanned, as text. Whatever the statement, a client does not see a place that
//! the relay lacks before the relay has it. A place that the statement has transformed (its hash, its digits backwards)
//! is not found.
//!
//! ```text
//! 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7,…       each number after a uuid, with the tag before it
//! binlog.000042                                      the base name, and six digits or more
//! ```

use std::collections::BTreeSet;

/// Bytes of a uuid as text.
const UUID_SIZE: usize = 36;
/// Bytes kept of what has passed: a uuid, or a base name and a number, may have begun there.
const TAIL_SIZE: usize = 320;
/// A tag, or the digits of a number, at most.
const PART_SIZE_MAX: usize = 32;
const DIGITS_MIN: usize = 6;

/// A place, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToldPlace {
    /// `UUID:23` or `UUID:tag:23`, in small letters.
    Gtid(String),
    /// The number of a file.
    File(u64),
}

/// Looks through the bytes of an answer.
#[derive(Debug)]
pub(crate) struct AnswerScan {
    base: Vec<u8>,
    /// The end of what has passed, without NULs: text in UTF-16 or UTF-32 is found like any other.
    tail: Vec<u8>,
    /// The intervals in the middle of which the last bytes ended.
    open: Option<Intervals>,
}

/// The intervals of a GTID set, read piece by piece after a uuid and a colon.
#[derive(Debug, Clone)]
struct Intervals {
    uuid: String,
    tag: String,
    part: Vec<u8>,
}

impl Intervals {
    /// Takes bytes up to the end of the intervals; `true`: they may go on.
    fn take(&mut self, bytes: &[u8], found: &mut BTreeSet<ToldPlace>) -> bool {
        for byte in bytes {
            match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' if self.part.len() < PART_SIZE_MAX => {
                    self.part.push(byte.to_ascii_lowercase());
                }
                b':' | b'-' => self.end_part(found),
                _ => {
                    self.end_part(found);
                    return false;
                }
            }
        }
        true
    }

    fn end_part(&mut self, found: &mut BTreeSet<ToldPlace>) {
        found.extend(self.gtid());
        match self.part.first() {
            Some(first) if !first.is_ascii_digit() => {
                self.tag = String::from_utf8_lossy(&self.part).into_owned();
            }
            Some(_) | None => {}
        }
        self.part.clear();
    }

    /// The GTID that ends with the digits so far.
    fn gtid(&self) -> Option<ToldPlace> {
        let number: u64 = std::str::from_utf8(&self.part).ok()?.parse().ok()?;
        let Intervals { uuid, tag, .. } = self;
        Some(ToldPlace::Gtid(match tag.is_empty() {
            true => format!("{uuid}:{number}"),
            false => format!("{uuid}:{tag}:{number}"),
        }))
    }
}

impl AnswerScan {
    /// For a source whose files have this base name.
    pub(crate) fn new(base: &str) -> AnswerScan {
        let base = base.as_bytes().to_vec();
        AnswerScan { base, tail: Vec::with_capacity(TAIL_SIZE), open: None }
    }

    /// Looks at the next bytes; returns the places that end in them. A number that goes on after them counts as far as it goes.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> BTreeSet<ToldPlace> {
        let mut found = BTreeSet::new();
        let begin = self.tail.len();
        let mut text = std::mem::take(&mut self.tail);
        text.extend(bytes.iter().filter(|byte| **byte != 0));
        if let Some(mut open) = self.open.take()
            && open.take(text.get(begin..).unwrap_or_default(), &mut found)
        {
            found.extend(open.gtid());
            self.open = Some(open);
        }
        let mut from = 0;
        while let Some(place) = next_mark(&text, from) {
            from = place + 1;
            let (before, after) = text.split_at(place);
            let after = after.get(1..).unwrap_or_default();
            match text.get(place) {
                Some(b':') => {
                    let Some(uuid) = uuid_at_the_end(before) else { continue };
                    let mut intervals = Intervals { uuid, tag: String::new(), part: Vec::new() };
                    if intervals.take(after, &mut found) {
                        found.extend(intervals.gtid());
                        self.open = Some(intervals);
                    }
                }
                Some(_) if before.ends_with(&self.base) => {
                    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = after.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
                    let number =
                        number.filter(|_| digits >= DIGITS_MIN).and_then(|number| number.parse().ok());
                    found.extend(number.map(ToldPlace::File));
                }
                Some(_) | None => {}
            }
        }
        let kept = text.len().saturating_sub(TAIL_SIZE);
        text.drain(..kept);
        self.tail = text;
        found
    }
}

/// The next colon or full stop.
fn next_mark(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.iter().position(|byte| matches!(byte, b':' | b'.')).map(|place| from + place)
}

/// The uuid that ends here, in small letters.
fn uuid_at_the_end(text: &[u8]) -> Option<String> {
    let uuid = text.get(text.len().checked_sub(UUID_SIZE)?..)?;
    let is_uuid = uuid.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then(|| String::from_utf8_lossy(uuid).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    /// The last number of each kind that is found, whatever pieces the text comes in.
    fn last(text: &[u8]) -> Vec<ToldPlace> {
        let whole = AnswerScan::new("mysql-bin").look(text);
        for size in [1, 2, 7, 40, 333] {
            let mut scan = AnswerScan::new("mysql-bin");
            let found: BTreeSet<_> = text.chunks(size).flat_map(|piece| scan.look(piece)).collect();
            // Numbers that were cut are found as well.
            assert!(whole.is_subset(&found), "{size}: {found:?}");
        }
        whole.into_iter().collect()
    }

    #[test]
    fn gtids_and_files_are_found_in_any_pieces() {
        let gtid = |text: &str| ToldPlace::Gtid(text.replace('U', UUID));
        let other = "4e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set = format!("\x05\0\0\x03\x2a{UUID}:1-5:7:tag_1:3,\n{other}:1-{}\x05", u64::MAX);
        assert_eq!(
            last(set.as_bytes()),
            [
                gtid("U:1"),
                gtid("U:5"),
                gtid("U:7"),
                gtid("U:tag_1:3"),
                gtid(&format!("{other}:1")),
                gtid(&format!("{other}:{}", u64::MAX)),
            ]
        );
        assert_eq!(last(UUID.to_ascii_uppercase().as_bytes()), []);
        assert_eq!(last(format!("{}:4", UUID.to_ascii_uppercase()).as_bytes()), [gtid("U:4")]);
        let utf16: Vec<u8> = format!("x{UUID}:12;").encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(last(&utf16), [gtid("U:12")]);
        assert_eq!(
            last(b"\x10mysql-bin.000042\x04 1234, mysql-bin.1000000"),
            [ToldPlace::File(42), ToldPlace::File(1_000_000)]
        );
        let many: String = (1..2000).map(|number| format!(":{}", number * 2)).collect();
        assert!(last(format!("{UUID}{many}").as_bytes()).contains(&gtid("U:3998")));
        for none in
            ["mysql-bin.00042", "other.000042", "a:b:c", "12:30:45.000000", &format!("{UUID}-7"), &UUID[1..]]
        {
            assert_eq!(last(none.as_bytes()), [], "{none}");
        }
    }
}
