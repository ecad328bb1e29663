//! The report on events of a server's last logs that clients of a profile would not be sent unchanged: as a document, and for people.
//!
//! The relay's rules find it (`binlogz_relay::LogSurvey`); here is only the form in which reports have it.

use serde::{Deserialize, Serialize};

/// The last logs of a server, looked at for some profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyedLog {
    /// How many seconds back.
    pub seconds: u64,
    /// How many transactions there are in that time.
    pub transactions: u64,
    /// Where it ended early, for want of time: file and position.
    pub stopped_at: Option<String>,
    /// For which profiles.
    pub profiles: Vec<String>,
    /// The findings; those that would end a dump come first.
    pub findings: Vec<SurveyedThing>,
}

/// A thing that clients of a profile would not be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyedThing {
    /// The profile.
    pub profile: String,
    /// `refused`, `left out` or `translated`.
    pub treatment: String,
    /// The thing, as in the relay's table of profiles.
    pub thing: String,
    /// How many transactions have it.
    pub transactions: u64,
    /// The log with the first of them.
    pub log: String,
    /// Where that begins.
    pub position: u64,
    /// The first one's GTID.
    pub gtid: Option<String>,
    /// Why the dump would end there, if it would.
    pub why: Option<String>,
}

impl SurveyedLog {
    /// Whether a client's dump would end.
    pub fn has_refusals(&self) -> bool {
        self.findings.iter().any(|finding| finding.why.is_some())
    }

    /// The part of the log that was looked at, in words.
    pub fn looked_at(&self) -> String {
        let stopped = match &self.stopped_at {
            Some(place) => format!(", which was as far as {place} when the time was over"),
            None => String::new(),
        };
        format!(
            "the log of the last {} s for {}: {} transactions{stopped}",
            self.seconds,
            self.profiles.join(", "),
            self.transactions
        )
    }
}

impl SurveyedThing {
    /// The finding in words.
    pub fn said(&self) -> String {
        let SurveyedThing { profile, treatment, thing, transactions, log, position, .. } = self;
        let transactions = match transactions {
            1 => "1 transaction".to_owned(),
            several => format!("{several} transactions"),
        };
        let gtid = self.gtid.as_ref().map_or(String::new(), |gtid| format!(" ({gtid})"));
        let why = self.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        format!("{profile}, {treatment}, {thing}: {transactions}, first at {log} {position}{gtid}{why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line() {
        let thing = SurveyedThing {
            profile: "mysql-5.6".into(),
            treatment: "refused".into(),
            thing: "XA".into(),
            transactions: 1,
            log: "binlog.000001".into(),
            position: 157,
            gtid: Some("u:1".into()),
            why: Some("it can't".into()),
        };
        assert_eq!(
            thing.said(),
            "mysql-5.6, refused, XA: 1 transaction, first at binlog.000001 157 (u:1): it can't"
        );
        let log = SurveyedLog {
            seconds: 3600,
            transactions: 9,
            stopped_at: Some("binlog.000002 4".into()),
            profiles: vec!["mysql-5.6".into(), "other".into()],
            findings: vec![SurveyedThing { why: None, transactions: 2, gtid: None, ..thing }],
        };
        assert!(!log.has_refusals());
        let said = "the log of the last 3600 s for mysql-5.6, other: 9 transactions, which was as far as binlog.000002 4 when";
        assert!(log.looked_at().starts_with(said), "{}", log.looked_at());
    }
}
