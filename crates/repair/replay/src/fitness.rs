//! Checks that logs continue a server's transactions, and that the server can apply them.

use binlogz_binlog::gtid::GtidSet;
use binlogz_relay::EndedLogs;

use crate::continuation::Continuation;
use crate::target::TargetFacts;
use crate::version_words::VersionWords;

/// The facts about a server that decide whether it can apply logs.
pub(crate) struct TargetAbilities<'t> {
    pub(crate) version: &'t str,
    pub(crate) words: VersionWords,
    pub(crate) facts: &'t TargetFacts,
}

impl TargetAbilities<'_> {
    /// The transactions that the server lacks.
    ///
    /// # Errors
    ///
    /// Why the server can't be brought forward with these logs, to be read after its name.
    pub(crate) fn lacks(&self, ended: &EndedLogs) -> Result<GtidSet, String> {
        let TargetAbilities { version, words, facts } = self;
        if facts.gtid_mode != "ON" {
            return Err(format!(
                "gtid_mode is {}, expected ON: without GTIDs nobody knows which transactions the server has. Replay by position \
                 with binlogz dump FILE … | mysql",
                facts.gtid_mode
            ));
        }
        if let Some(log) = &ended.with_anonymous {
            return Err(format!(
                "{log} has transactions without GTIDs: which of them the server has can't be known. Replay by position with \
                 binlogz dump FILE … | mysql"
            ));
        }
        if !facts.other_channels.is_empty() {
            let names: Vec<_> = facts.other_channels.iter().map(|name| format!("{name:?}")).collect();
            return Err(format!(
                "follows another source at present (channel {}): stop that first",
                names.join(", ")
            ));
        }
        if ended.gtids.has_tags() && !words.knows_tags {
            return Err(format!("is version {version}: the logs have GTIDs with tags, which need 8.3"));
        }
        match Continuation::of(&facts.executed, &ended.before, &ended.gtids, &ended.after) {
            Continuation::IsPast(ahead) => Err(format!(
                "is past that moment: it has {} of the transactions after it, {}; restore an earlier backup",
                ahead.count(),
                ahead.brief()
            )),
            Continuation::HasGap(gap) => Err(format!(
                "lacks {} transactions that came before {}, the first log here: {}; restore a backup that has them, or add the \
                 earlier logs",
                gap.count(),
                ended.logs().range().0,
                gap.brief()
            )),
            Continuation::Lacks(lacks) => Ok(lacks),
        }
    }

    /// A warning, to be read after the server's name, if it is older than the server that wrote the logs.
    pub(crate) fn is_older_than(&self, server_of_logs: &str) -> Option<String> {
        (major(server_of_logs) > major(self.version)).then(|| {
            format!(
                "is version {}, and the logs are of {server_of_logs}: MySQL does not promise that an older server can apply them",
                self.version
            )
        })
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next().and_then(|major| major.parse().ok())
}
