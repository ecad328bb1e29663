//! The text of a GTID set, as users type it and as the server prints it.
//!
//! ```text
//! set      = [entry] { "," [entry] }              whitespace, line ends too, around everything
//! entry    = uuid { ":" ( tag | interval ) }      a tag holds for the intervals behind it
//! interval = number [ "-" number ]                none if the second is the smaller
//! number   = decimal, 0x hexadecimal, or octal behind a 0
//! ```
//!
//! The server prints `uuid:1-5:7:tag:1-3`: sorted, a uuid once with all its tags, and a line end
//! behind each comma.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::gtid::{GNO_END, GtidInterval, GtidSet, ServerUuid, Tag, Tsid};

impl FromStr for GtidSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut set = GtidSet::new();
        let mut parser = Parser { text, rest: text };
        loop {
            match parser.peek() {
                None => return Ok(set),
                Some(',') => parser.skip(1),
                Some(_) => parser.entry(&mut set)?,
            }
        }
    }
}

/// What is left of a text. Whitespace is skipped before each token.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches(is_space);
        self.rest.chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn takes(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.skip(wanted.len_utf8());
        }
        found
    }

    /// The characters up to the next separator, without taking them.
    fn word(&mut self) -> &'a str {
        self.peek();
        let end = self.rest.find(|c: char| is_space(c) || ":,".contains(c)).unwrap_or(self.rest.len());
        self.rest.get(..end).unwrap_or_default()
    }

    fn entry(&mut self, set: &mut GtidSet) -> Result<()> {
        let word = self.word();
        let uuid: ServerUuid = word.parse().map_err(|_| self.malformed("a uuid"))?;
        self.skip(word.len());
        let mut tsid = Tsid::from(uuid);
        while self.takes(':') {
            let word = self.word();
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                if let Some(interval) = self.interval()? {
                    set.add_interval(tsid, interval);
                }
            } else {
                let tag: Tag = word.parse().map_err(|_| self.malformed("a number or a tag"))?;
                self.skip(word.len());
                tsid.tag = Some(tag);
            }
        }
        match self.peek() {
            None | Some(',') => Ok(()),
            Some(_) => Err(self.malformed("a comma, a colon or the end")),
        }
    }

    /// An interval; `None` if it is empty, as the server takes it.
    fn interval(&mut self) -> Result<Option<GtidInterval>> {
        let start = self.number()?;
        if start == 0 {
            return Err(Error::invalid("GTID set", "gno", 0, "1 to 2^63 - 2"));
        }
        let last = if self.takes('-') { self.number()? } else { start };
        Ok(GtidInterval::new(start, last + 1).ok())
    }

    /// A number below [`GNO_END`], in C's notation.
    fn number(&mut self) -> Result<u64> {
        self.peek();
        let (radix, prefix) = match self.rest.as_bytes() {
            [b'0', b'x' | b'X', ..] => (16, 2),
            [b'0', ..] => (8, 0),
            _ => (10, 0),
        };
        let digits = self.rest.get(prefix..).unwrap_or_default();
        let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        match u64::from_str_radix(digits.get(..end).unwrap_or_default(), radix) {
            Ok(number) if number < GNO_END => {
                self.skip(prefix + end);
                Ok(number)
            }
            _ => Err(self.malformed("a number of at most 2^63 - 2")),
        }
    }

    #[cold]
    fn malformed(&self, expected: &'static str) -> Error {
        const SHOWN_MAX: usize = 40;
        let shown: String = self.rest.chars().take(SHOWN_MAX).collect();
        let offset = self.text.len() - self.rest.len();
        let found = if shown.is_empty() { "its end".to_owned() } else { format!("{shown:?}") };
        Error::invalid("GTID set", "text", format!("{found} at byte {offset}"), expected)
    }
}

/// What the server's C locale calls a space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed: Option<ServerUuid> = None;
        for (tsid, intervals) in self.iter() {
            if printed != Some(tsid.uuid) {
                if printed.is_some() {
                    f.write_str(if f.alternate() { ",\n" } else { "," })?;
                }
                write!(f, "{}", tsid.uuid)?;
                printed = Some(tsid.uuid);
            }
            if let Some(tag) = tsid.tag {
                write!(f, ":{tag}")?;
            }
            for interval in intervals {
                write!(f, ":{interval}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GtidSet({self})")
    }
}
