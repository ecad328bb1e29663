//! The mark of a server whose tables are those of no moment, since a folded range is applied to it: a replication channel that is never started.
//!
//! Any account that may recover can see it, it comes with a physical copy of the server, and SHOW REPLICA STATUS shows it. Its host has what the
//! next run needs:
//!
//! ```text
//! UUID:5_UUID:1000_5f1c…     the first and the last transaction of the range; SHA-256 of the folded log, in hexadecimal digits
//! ```

use std::fs::File;
use std::io;
use std::path::Path;

use binlogz_binlog::gtid::Gtid;
use sha2::{Digest, Sha256};

use crate::channel;
use crate::error::{ReplayError, Result};
use crate::quoting::literal;
use crate::target::{FOLD_CHANNEL, TargetServer, TargetTrouble};

const DIGEST_LENGTH: usize = 64;

/// The range that is applied to a server in its folded form, and that form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldMark {
    /// The first transaction of the range: the server had everything before it.
    pub first: Gtid,
    /// The last transaction of the range.
    pub last: Gtid,
    /// SHA-256 of the folded log, in hexadecimal digits.
    pub(crate) digest: String,
}

impl FoldMark {
    /// The mark of a folded log that stands in a file.
    pub(crate) fn of(log: &Path, (first, last): (Gtid, Gtid)) -> Result<Self> {
        let mut hasher = Sha256::new();
        let read = File::open(log).and_then(|mut file| io::copy(&mut file, &mut hasher));
        read.map_err(|error| ReplayError::place(log.display(), error))?;
        let digest = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(FoldMark { first, last, digest })
    }

    fn host(&self) -> String {
        format!("{}_{}_{}", self.first, self.last, self.digest)
    }

    fn parse(host: &str) -> Option<Self> {
        let mut parts = host.split('_');
        let mark = FoldMark {
            first: parts.next()?.parse().ok()?,
            last: parts.next()?.parse().ok()?,
            digest: parts.next().filter(|digest| digest.len() == DIGEST_LENGTH)?.to_owned(),
        };
        parts.next().is_none().then_some(mark)
    }

    /// The mark of a server; `None` if it has none.
    pub(crate) fn read(target: &mut TargetServer) -> Result<Option<Self>> {
        let hosts = target.ask(&format!(
            "SELECT HOST FROM performance_schema.replication_connection_configuration WHERE CHANNEL_NAME = '{FOLD_CHANNEL}'"
        ));
        let Some(host) = hosts?.into_iter().flatten().next() else { return Ok(None) };
        match FoldMark::parse(&host) {
            Some(mark) => Ok(Some(mark)),
            None => Err(ReplayError::unfit(
                &target.name,
                format!(
                    "has a replication channel {FOLD_CHANNEL} that this version of binlogz did not make (its host is {host:?}): expected none"
                ),
            )),
        }
    }

    /// Marks a server.
    pub(crate) fn put(&self, target: &mut TargetServer) -> Result<(), TargetTrouble> {
        let (change, prefix) = target.words.change();
        // A server that is restarted may start it: it soon gives up.
        target.run(&format!(
            "{change} {prefix}_HOST = {}, {prefix}_USER = '{FOLD_CHANNEL}', {prefix}_CONNECT_RETRY = 1, {prefix}_RETRY_COUNT = 1 \
             FOR CHANNEL '{FOLD_CHANNEL}'",
            literal(&self.host())
        ))
    }

    /// Takes the mark of a server away.
    pub(crate) fn remove(target: &mut TargetServer) -> Result<(), TargetTrouble> {
        match channel::stop(target, FOLD_CHANNEL)? {
            true => target.run(&format!("RESET {} ALL FOR CHANNEL '{FOLD_CHANNEL}'", target.words.replica())),
            false => Ok(()),
        }
    }

    /// Why a range can't be applied to a server with this mark, whose own one is `other`; `None`: it is the same.
    pub(crate) fn difference(&self, other: &FoldMark) -> Option<String> {
        if (self.first, self.last) != (other.first, other.last) {
            return Some(format!(
                "an earlier run with --fold is bringing it from {} to {}, and this one would from {} to {}: give it the same logs, with \
                 --until-gtid {}, or restore the backup again",
                self.first, self.last, other.first, other.last, self.last
            ));
        }
        (self.digest != other.digest).then(|| {
            "the folded log is not the one of the earlier run with --fold, of which the server has a part: options, the schema or the version \
             of binlogz are others. Repeat that command as it was, or restore the backup again"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn mark(first: u64, last: u64, digit: &str) -> FoldMark {
        let gtid = |number| format!("{UUID}:{number}").parse().unwrap();
        FoldMark { first: gtid(first), last: gtid(last), digest: digit.repeat(DIGEST_LENGTH) }
    }

    #[test]
    fn a_mark_fits_into_a_hosts_name_and_comes_back() {
        let largest = mark((1 << 63) - 2, (1 << 63) - 2, "f");
        assert!(largest.host().len() <= 255, "{}", largest.host());
        assert_eq!(FoldMark::parse(&largest.host()), Some(largest.clone()));
        for host in ["", "db1", &largest.host()[..100], &format!("{}_1", largest.host())] {
            assert_eq!(FoldMark::parse(host), None, "{host}");
        }
    }

    #[test]
    fn another_range_and_another_log_are_told_apart() {
        let own = mark(5, 9, "a");
        assert_eq!(own.difference(&own), None);
        assert!(own.difference(&mark(5, 10, "a")).unwrap().contains("--until-gtid"));
        assert!(own.difference(&mark(6, 9, "a")).unwrap().contains("--until-gtid"));
        assert!(own.difference(&mark(5, 9, "b")).unwrap().contains("folded log is not the one"));
    }
}
