//! Transaction control with names in it: savepoints and XA transactions. Applications choose these names. MariaDB's GTID events have those of
//! XA transactions as well: after the flags (and eight bytes of a group commit) the format, 4 bytes, two lengths, and the name.
//! (Facts of MariaDB's manual.)

use std::collections::HashMap;

use binlogz_binlog::event::XaId;
use binlogz_binlog::statement::StatementKind;

use crate::secret::MaskKey;

/// Bytes of a hash in the place of an XA transaction's name.
const XA_SIZE: usize = 16;
/// Where the flags of MariaDB's GTID event are.
const FLAGS_OFFSET: usize = 12;
/// The number of a group commit comes after the flags.
const HAS_GROUP: u8 = 0x02;
/// The name of an XA transaction comes after those: one that is prepared, or one that ends.
const HAS_XA: u8 = 0x40 | 0x80;
const GROUP_SIZE: usize = 8;
/// The most savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 100_000;

/// The savepoints of a transaction, numbered.
#[derive(Debug, Default)]
pub(crate) struct Savepoints(HashMap<Vec<u8>, usize>);

impl Savepoints {
    /// The text that leaves in the place of SAVEPOINT or ROLLBACK TO.
    ///
    /// # Errors
    ///
    /// More savepoints than a transaction has.
    pub(crate) fn text(&mut self, kind: StatementKind, text: &[u8]) -> Result<String, String> {
        // One in backquotes may have spaces.
        let quoted = text.iter().position(|byte| *byte == b'`').and_then(|place| text.get(place..));
        let last = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let name = match quoted.map(<[u8]>::trim_ascii_end) {
            Some(quoted) => quoted.to_ascii_lowercase(),
            None => [b"`".as_slice(), last, b"`"].concat().to_ascii_lowercase(),
        };
        if self.0.len() >= SAVEPOINTS_MAX && !self.0.contains_key(&name) {
            return Err(format!("the transaction has more than {SAVEPOINTS_MAX} savepoints"));
        }
        let next = self.0.len() + 1;
        let number = *self.0.entry(name).or_insert(next);
        Ok(match kind {
            StatementKind::RollbackTo => format!("ROLLBACK TO `s{number}`"),
            _ => format!("SAVEPOINT `s{number}`"),
        })
    }
}

/// The body of MariaDB's GTID event with a hash in the place of the XA transaction's name that it may have.
///
/// # Errors
///
/// There is no key, or the name isn't where the flags say.
pub(crate) fn masked_mariadb_gtid(key: Option<&MaskKey>, body: &[u8]) -> Result<Vec<u8>, String> {
    let flags = body.get(FLAGS_OFFSET).copied().unwrap_or_default();
    if flags & HAS_XA == 0 {
        return Ok(body.to_vec());
    }
    let group = if flags & HAS_GROUP == 0 { 0 } else { GROUP_SIZE };
    let Some((front, id, after)) = mariadb_xa_id(body, FLAGS_OFFSET + 1 + group) else {
        return Err(format!(
            "a GTID event of {} bytes has no name of an XA transaction, which its flags announce",
            body.len()
        ));
    };
    let hash = hashed_xa_id(key, &id)?;
    let mut masked = front.to_vec();
    masked.extend(id.format_id.to_le_bytes());
    masked.extend([XA_SIZE as u8, 0]);
    masked.extend(hash);
    masked.extend_from_slice(after);
    Ok(masked)
}

/// What is before the name of an XA transaction at a place, the name, and what is after it.
fn mariadb_xa_id(body: &[u8], place: usize) -> Option<(&[u8], XaId<'_>, &[u8])> {
    let (front, rest) = body.split_at_checked(place)?;
    let (format_id, rest) = rest.split_first_chunk::<4>()?;
    let ([gtrid_size, bqual_size], rest) = rest.split_first_chunk::<2>()?;
    let (gtrid, rest) = rest.split_at_checked(usize::from(*gtrid_size))?;
    let (bqual, after) = rest.split_at_checked(usize::from(*bqual_size))?;
    Some((front, XaId { format_id: u32::from_le_bytes(*format_id), gtrid, bqual }, after))
}

/// The name of an XA transaction that leaves: a hash of its own.
///
/// # Errors
///
/// There is no key.
pub(crate) fn hashed_xa_id(key: Option<&MaskKey>, id: &XaId<'_>) -> Result<[u8; XA_SIZE], String> {
    let Some(key) = key else {
        return Err(
            "an XA transaction has a name, which leaves as a hash only: expected key_file in the policy"
                .to_owned(),
        );
    };
    let digest = key.digest(&[b"xa", id.gtrid, id.bqual, &id.format_id.to_le_bytes()]);
    let mut hash = [0; XA_SIZE];
    for (place, byte) in hash.iter_mut().zip(digest) {
        *place = byte;
    }
    Ok(hash)
}

/// The text that leaves in the place of a statement of XA.
///
/// # Errors
///
/// There is no key, or the text isn't one that a server writes.
pub(crate) fn xa_text(key: Option<&MaskKey>, text: &[u8]) -> Result<String, String> {
    let unread = || "a statement of XA isn't one that a server writes, expected XA … X'…',X'…',1".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| unread())?;
    let begin = text.find("X'").ok_or_else(unread)?;
    let (front, rest) = text.split_at(begin);
    let (gtrid, rest) = hex_text(rest).ok_or_else(unread)?;
    let (bqual, rest) = hex_text(rest.strip_prefix(',').ok_or_else(unread)?).ok_or_else(unread)?;
    let rest = rest.strip_prefix(',').ok_or_else(unread)?;
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    let format_id: u32 = number.parse().map_err(|_| unread())?;
    let hash = hashed_xa_id(key, &XaId { format_id, gtrid: &gtrid, bqual: &bqual })?;
    let one_phase = match after.trim().to_ascii_uppercase().as_str() {
        "" => "",
        "ONE PHASE" => " ONE PHASE",
        _ => return Err(unread()),
    };
    let words = front.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    if !matches!(&*words, "XA START" | "XA END" | "XA PREPARE" | "XA COMMIT" | "XA ROLLBACK") {
        return Err(unread());
    }
    let id = XaId { format_id, gtrid: &hash, bqual: b"" };
    Ok(format!("{words} {id}{one_phase}"))
}

/// `X'6162'` as bytes, and what comes after it.
fn hex_text(text: &str) -> Option<(Vec<u8>, &str)> {
    let (digits, rest) = text.strip_prefix("X'")?.split_once('\'')?;
    let digit = |character: char| character.to_digit(16).map(|digit| digit as u8);
    let digits: Vec<u8> = digits.chars().map(digit).collect::<Option<_>>()?;
    let (pairs, left) = digits.as_chunks::<2>();
    left.is_empty().then(|| (pairs.iter().map(|[high, low]| high << 4 | low).collect(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savepoints_are_numbered() {
        let mut savepoints = Savepoints::default();
        let mut text = |kind, text: &str| savepoints.text(kind, text.as_bytes()).unwrap();
        assert_eq!(text(StatementKind::Savepoint, "SAVEPOINT `bob`"), "SAVEPOINT `s1`");
        assert_eq!(text(StatementKind::Savepoint, "SAVEPOINT eve"), "SAVEPOINT `s2`");
        assert_eq!(text(StatementKind::RollbackTo, "ROLLBACK TO `Bob`"), "ROLLBACK TO `s1`");
        assert_eq!(text(StatementKind::RollbackTo, "ROLLBACK TO `eve`"), "ROLLBACK TO `s2`");
        assert_eq!(text(StatementKind::Savepoint, "SAVEPOINT `a b`"), "SAVEPOINT `s3`");
        assert_eq!(text(StatementKind::Savepoint, "SAVEPOINT `c b`"), "SAVEPOINT `s4`");
        assert_eq!(text(StatementKind::RollbackTo, "ROLLBACK TO `a b`"), "ROLLBACK TO `s3`");
    }

    #[test]
    fn names_of_xa_are_hashed_alike_everywhere() {
        let key = MaskKey::new(b"a key of sixteen");
        let hash = hashed_xa_id(Some(&key), &XaId { format_id: 1, gtrid: b"ab", bqual: b"" }).unwrap();
        let shown = XaId { format_id: 1, gtrid: &hash, bqual: b"" }.to_string();
        for (text, masked) in [
            ("XA START X'6162',X'',1", format!("XA START {shown}")),
            ("xa commit X'6162',X'',1 one phase", format!("XA COMMIT {shown} ONE PHASE")),
        ] {
            assert_eq!(xa_text(Some(&key), text.as_bytes()).unwrap(), masked);
        }
        for text in
            ["XA START 'ab'", "XA START X'616',X'',1", "XA START X'61',X'',1 'bob'", "XA 'bob' X'61',X'',1"]
        {
            assert!(xa_text(Some(&key), text.as_bytes()).is_err(), "{text}");
        }
        assert!(xa_text(None, b"XA END X'61',X'',1").is_err());
    }

    #[test]
    fn names_of_xa_in_gtid_events_of_mariadb_are_hashed_like_those_in_statements() {
        let key = MaskKey::new(b"a key of sixteen");
        let hash = hashed_xa_id(Some(&key), &XaId { format_id: 1, gtrid: b"bob", bqual: b"q" }).unwrap();
        for (flags, group) in [(0x40_u8, &[][..]), (0x80, &[]), (0x42, &[7; 8])] {
            let front = [&[5; 12][..], &[flags], group].concat();
            let body = [&front[..], b"\x01\0\0\0\x03\x01bobq\x10\x01"].concat();
            let expected = [&front[..], b"\x01\0\0\0\x10\0", &hash, b"\x10\x01"].concat();
            assert_eq!(masked_mariadb_gtid(Some(&key), &body).unwrap(), expected, "{flags}");
            assert!(masked_mariadb_gtid(None, &body).is_err());
            assert!(masked_mariadb_gtid(Some(&key), &body[..front.len() + 8]).is_err());
        }
        let plain = [&[5; 12][..], &[0x02], b"\x01\0\0\0\x03\x01bobq"].concat();
        assert_eq!(masked_mariadb_gtid(None, &plain).unwrap(), plain);
    }
}
