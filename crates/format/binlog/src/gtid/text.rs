//! The text of a GTID set, as users type it and as the server prints it.
//!
//! ```text
//! set      = [entry] { "," [entry] }              whitespace, line ends too, around everything
//! entry    = uuid { ":" ( tag | interval ) }      a tag holds for the intervals after it
//! interval = number [ "-" number ]                none if the second is the smaller
//! ```
//!
//! The server prints `uuid:1-5:7:tag:1-3`: sorted, a uuid once with all its tags, and a line end
//! after each comma.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::gtid::set::GtidSetCollector;
use crate::gtid::{GNO_END, GtidInterval, GtidSet, ServerUuid, Tag, Tsid};

impl FromStr for GtidSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut set = GtidSetCollector::default();
        let mut parser = Parser { text, rest: text };
        loop {
            match parser.peek() {
                None => return Ok(set.finish()),
                Some(',') => parser.skip(1),
                Some(_) => parser.entry(&mut set)?,
            }
        }
    }
}

/// The rest of the text. Whitespace is skipped before each token.
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

    fn entry(&mut self, set: &mut GtidSetCollector) -> Result<()> {
        let word = self.word();
        let uuid: ServerUuid = word.parse().map_err(|_| self.malformed("a uuid"))?;
        self.skip(word.len());
        let mut tsid = Tsid::from(uuid);
        while self.takes(':') {
            let word = self.word();
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                if let Some(interval) = self.interval()? {
                    set.add(tsid, interval);
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

    /// A number below [`GNO_END`].
    fn number(&mut self) -> Result<u64> {
        self.peek();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        match self.rest.get(..end).unwrap_or_default().parse() {
            Ok(number) if number < GNO_END => {
                self.skip(end);
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

/// Whether the server's C locale calls it a space.
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

/// Bytes of a set that [`GtidSet::brief`] prints.
const BRIEF_SIZE_MAX: usize = 300;

impl GtidSet {
    /// The set, short enough for a line of a log. A long set is cut and its size added: clients can send megabytes.
    pub fn brief(&self) -> impl fmt::Display {
        Brief(self)
    }
}

struct Brief<'a>(&'a GtidSet);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut front = Front { out: f, left: BRIEF_SIZE_MAX, is_cut: false };
        let printed = fmt::write(&mut front, format_args!("{}", self.0));
        if !front.is_cut {
            return printed;
        }
        let intervals: usize = self.0.iter().map(|(_, list)| list.len()).sum();
        write!(f, "… ({intervals} intervals, {} GTIDs)", self.0.count())
    }
}

/// Passes on the first bytes.
struct Front<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    left: usize,
    is_cut: bool,
}

impl fmt::Write for Front<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.is_cut = true;
            return Err(fmt::Error);
        };
        self.left = left;
        self.out.write_str(text)
    }
}

impl fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GtidSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1410447f-e54d-11f1-848d-02fc00000001";
    const B: &str = "2410447f-e54d-11f1-848d-02fc00000001";

    fn printed(text: &str) -> String {
        text.parse::<GtidSet>().unwrap().to_string()
    }

    #[test]
    fn the_servers_syntax_is_read_and_normalised() {
        for (text, expected) in [
            ("".into(), "".into()),
            (" ,\n, ".into(), "".into()),
            (A.into(), "".into()),
            (format!("{A}:tag"), "".into()),
            (format!("{A}:1"), format!("{A}:1")),
            (format!("{A}:1-1"), format!("{A}:1")),
            (format!("{A}:5-3"), "".into()),
            (format!("{A}:1-5:7"), format!("{A}:1-5:7")),
            (format!("{A}:7:1-5:6"), format!("{A}:1-7")),
            (format!("{A}:010"), format!("{A}:10")),
            (format!(" {A} : 1 - 5 : 7 ,\n{B}:2\r\n"), format!("{A}:1-5:7,{B}:2")),
            (format!("{B}:2,{A}:1,,{A}:2"), format!("{A}:1-2,{B}:2")),
            (format!("{A}:Tag:1-3:TAG2:4"), format!("{A}:tag:1-3:tag2:4")),
            (format!("{A}:1-5:7:tag:1-3:tag2:4"), format!("{A}:1-5:7:tag:1-3:tag2:4")),
            (format!("{A}:tag2:4:tag:1-3,{A}:9"), format!("{A}:9:tag:1-3:tag2:4")),
            (format!("{A}:a:1,{B}:a:1"), format!("{A}:a:1,{B}:a:1")),
            (A.to_uppercase() + ":1", format!("{A}:1")),
            (A.replace('-', "") + ":1", format!("{A}:1")),
            (format!("{A}:1-9223372036854775806"), format!("{A}:1-9223372036854775806")),
        ] {
            assert_eq!(printed(&text), expected, "{text:?}");
            assert_eq!(printed(&expected), expected);
        }
    }

    #[test]
    fn the_server_prints_a_line_for_each_uuid() {
        let set: GtidSet = format!("{A}:1-5:tag:1,{B}:2").parse().unwrap();
        assert_eq!(format!("{set:#}"), format!("{A}:1-5:tag:1,\n{B}:2"));
        assert_eq!(format!("{set:#}").parse::<GtidSet>().unwrap(), set);
        assert_eq!(format!("{:?}", GtidSet::new()), "GtidSet()");
    }

    #[test]
    fn a_long_set_is_cut_for_a_log() {
        let short: GtidSet = format!("{A}:1-5:tag:1,{B}:2").parse().unwrap();
        assert_eq!(short.brief().to_string(), short.to_string());
        let mut text = A.to_owned();
        (1..100_000).for_each(|n| text.push_str(&format!(":{}", 2 * n)));
        let long: GtidSet = text.parse().unwrap();
        let brief = long.brief().to_string();
        assert!(brief.len() < BRIEF_SIZE_MAX + 60, "{brief}");
        assert!(brief.starts_with(&format!("{A}:2:4:6:")), "{brief}");
        assert!(brief.ends_with("… (99999 intervals, 99999 GTIDs)"), "{brief}");
    }

    #[test]
    fn other_texts_are_refused_where_they_go_wrong() {
        for (tail, found) in [
            (":0", "gno is 0, expected 1 to 2^63 - 2"),
            (":", "text is its end at byte 37, expected a number or a tag"),
            (":1:", "text is its end at byte 39, expected a number or a tag"),
            (":1-", "text is its end at byte 39, expected a number of at most 2^63 - 2"),
            (":1--2", "text is \"-2\" at byte 39, expected a number of at most 2^63 - 2"),
            (":-1", "text is \"-1\" at byte 37, expected a number or a tag"),
            (":0x1F", "gno is 0, expected 1 to 2^63 - 2"),
            (":1 2", "text is \"2\" at byte 39, expected a comma, a colon or the end"),
            (":1-2-3", "text is \"-3\" at byte 40, expected a comma, a colon or the end"),
            (":1;", "text is \";\" at byte 38, expected a comma, a colon or the end"),
            (":a-b", "text is \"a-b\" at byte 37, expected a number or a tag"),
            (",x", "text is \"x\" at byte 37, expected a uuid"),
            (":é", "text is \"é\" at byte 37, expected a number or a tag"),
            (":1é", "text is \"é\" at byte 38, expected a comma, a colon or the end"),
            (
                ":9223372036854775807",
                "text is \"9223372036854775807\" at byte 37, expected a number of at most 2^63 - 2",
            ),
            (
                ":99999999999999999999999",
                "text is \"99999999999999999999999\" at byte 37, expected a number of at most 2^63 - 2",
            ),
        ] {
            let error = format!("{A}{tail}").parse::<GtidSet>().unwrap_err();
            assert_eq!(error.to_string(), format!("GTID set: {found}"), "{tail}");
        }
    }

    #[test]
    fn cut_anywhere_it_does_not_panic() {
        let text = format!("{A}:1-5 : tagé:0x1,\n{{{B}}}:7");
        for (offset, _) in text.char_indices() {
            let (front, back) = text.split_at(offset);
            let _ = (front.parse::<GtidSet>(), back.parse::<GtidSet>());
        }
    }
}
