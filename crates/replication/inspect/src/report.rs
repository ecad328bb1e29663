//! The report about servers: findings, plans, and all of it as one document. Its JSON is stable: fields
//! are only ever added.

use serde::{Deserialize, Serialize};

use crate::surveyed_log::SurveyedLog;

/// How a finding is judged; the last is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingVerdict {
    /// Nothing to do.
    Ok,
    /// Should be known before compression is turned on.
    Warn,
    /// Not known.
    Unknown,
    /// Compression would break something, or is not available.
    Bad,
}

impl FindingVerdict {
    /// The verdict as one word.
    pub fn name(self) -> &'static str {
        match self {
            FindingVerdict::Ok => "ok",
            FindingVerdict::Warn => "warn",
            FindingVerdict::Unknown => "unknown",
            FindingVerdict::Bad => "bad",
        }
    }
}

/// Whether a client reads compressed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Not known.
    Unknown,
}

/// A row of the report: the thing examined, the facts, the verdict and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject of the finding: a name that stays the same.
    pub what: String,
    /// Which one of several: a bug's number, a consumer.
    pub subject: Option<String>,
    /// The finding.
    pub found: String,
    /// How serious the row is.
    pub verdict: FindingVerdict,
    /// The remedy; empty if none is needed.
    pub remedy: String,
    /// The right that is missing to tell, as written after GRANT.
    pub missing_grant: Option<String>,
    /// Details of a consumer.
    pub consumer: Option<ConsumerFinding>,
}

impl Finding {
    pub(crate) fn new(
        what: &str,
        found: impl Into<String>,
        verdict: FindingVerdict,
        remedy: impl Into<String>,
    ) -> Self {
        Finding {
            what: what.to_owned(),
            subject: None,
            found: found.into(),
            verdict,
            remedy: remedy.into(),
            missing_grant: None,
            consumer: None,
        }
    }

    pub(crate) fn ok(what: &str, found: impl Into<String>) -> Self {
        Finding::new(what, found, FindingVerdict::Ok, "")
    }

    /// Nothing could be found, for lack of a right.
    pub(crate) fn not_granted(what: &str, grant: &str) -> Self {
        let remedy = format!("GRANT {grant} TO the account that asks");
        let finding = Finding::new(what, "not visible to this account", FindingVerdict::Unknown, remedy);
        Finding { missing_grant: Some(grant.to_owned()), ..finding }
    }

    pub(crate) fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

/// A client that reads the binary log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerFinding {
    /// The consumer's name.
    pub name: String,
    /// The consumer's version, where it tells.
    pub version: Option<String>,
    /// The account it logged in with.
    pub account: Option<String>,
    /// Where it connects from: address and port.
    pub address: Option<String>,
    /// The id of the consumer's connection at the server.
    pub connection_id: Option<u64>,
    /// The consumer's own server id, where it registered.
    pub server_id: Option<u64>,
    /// The consumer's own server_uuid, where it is a replica.
    pub server_uuid: Option<String>,
    /// Whether it reads compressed transactions.
    pub reads: Reads,
    /// From which version on it does.
    pub since: Option<String>,
    /// How the consumer behaves when it meets a compressed transaction.
    pub on_compressed: String,
    /// The source of this knowledge.
    pub source: String,
    /// How sure that is.
    pub certainty: String,
    /// The version that was tried; empty if none was. Reports before 2026-11-23 don't have it.
    #[serde(default)]
    pub tried: String,
    /// The day of this knowledge, as in 2026-11-23. Reports before that day don't have it.
    #[serde(default)]
    pub date: String,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The plan's purpose.
    pub title: String,
    /// Statements and remarks, a line each; remarks begin with `-- `.
    pub lines: Vec<String>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The server's name, as the user gave it.
    pub server: String,
    /// Why the server could not be examined.
    pub error: Option<String>,
    /// The server's server_uuid.
    pub server_uuid: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// Whether compression can be turned on without breaking a consumer, as far as all is known.
    pub safe: bool,
    /// The worst of the findings; `bad` for a server that could not be looked at.
    pub verdict: FindingVerdict,
    /// In a fixed order.
    pub findings: Vec<Finding>,
    /// The way to turn it on, and back.
    pub plan: Vec<PlanStep>,
    /// The savings of compressing there, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<SavingsEstimate>,
    /// Whether to turn it on, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CompressionAnswer>,
    /// The events that clients of the relay would not be sent as they are, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surveyed: Option<SurveyedLog>,
}

impl ServerReport {
    /// A server that could not be looked at.
    pub fn failed(server: impl Into<String>, error: impl Into<String>) -> Self {
        ServerReport {
            server: server.into(),
            error: Some(error.into()),
            server_uuid: None,
            version: None,
            safe: false,
            verdict: FindingVerdict::Bad,
            findings: Vec::new(),
            plan: Vec::new(),
            estimate: None,
            answer: None,
            surveyed: None,
        }
    }

    /// The consumers that the findings are about.
    pub fn consumers(&self) -> impl Iterator<Item = &ConsumerFinding> {
        self.findings.iter().filter_map(|finding| finding.consumer.as_ref())
    }
}

/// Savings and costs of compressing, as measured on the server's own logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavingsEstimate {
    /// `turn_on`, `try_on_replica`, `leave_off`, `compress_off_source` or `cant_tell`.
    pub verdict: String,
    /// The verdict in words for people.
    pub said: String,
    /// The level.
    pub level: Option<u8>,
    /// Percent of the log.
    pub saved_percent: Option<f64>,
    /// Why, the most important first.
    pub reasons: Vec<String>,
}

/// Whether compression can be turned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressionAnswer {
    /// It saves something, and breaks nobody who is connected.
    Yes,
    /// It is on.
    OnAlready,
    /// Something has to be made ready first.
    NotYet,
    /// It isn't worth it, or can't be had.
    No,
    /// Not enough is known.
    CantTell,
}

impl CompressionAnswer {
    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CompressionAnswer::Yes => "yes",
            CompressionAnswer::OnAlready => "it is on",
            CompressionAnswer::NotYet => "not yet",
            CompressionAnswer::No => "no",
            CompressionAnswer::CantTell => "can't tell",
        }
    }
}

/// A row that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedRow {
    /// The server, as it was named.
    pub server: String,
    /// The row.
    pub what: String,
    /// Which one of several.
    pub subject: Option<String>,
    /// The earlier finding; `None`: the row is new.
    pub before: Option<String>,
    /// The finding now; `None`: the row is gone.
    pub now: Option<String>,
    /// How serious the row was before.
    pub verdict_before: Option<FindingVerdict>,
    /// How serious the row is now.
    pub verdict_now: Option<FindingVerdict>,
}

/// The report about all servers that were examined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectReport {
    /// The version of this document.
    pub format: u32,
    /// The worst first.
    pub servers: Vec<ServerReport>,
    /// Changes since an earlier report, where one was given.
    pub changes: Option<Vec<ChangedRow>>,
}

/// The version of the document that is written.
const FORMAT: u32 = 1;

impl InspectReport {
    /// A report of these servers, the worst first: servers that failed, then unsafe ones, then by verdict; otherwise in
    /// the order in which they were named.
    pub fn new(mut servers: Vec<ServerReport>) -> Self {
        servers
            .sort_by_key(|server| (server.error.is_none(), server.safe, std::cmp::Reverse(server.verdict)));
        InspectReport { format: FORMAT, servers, changes: None }
    }

    /// Reads a report that was saved.
    ///
    /// # Errors
    ///
    /// It is none, or of a newer version.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let report: InspectReport =
            serde_json::from_str(text).map_err(|error| format!("is no report of doctor: {error}"))?;
        match report.format {
            FORMAT => Ok(report),
            other => Err(format!("format is {other}, expected {FORMAT}")),
        }
    }
}
