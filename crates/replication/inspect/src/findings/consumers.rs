//! Rows about each reader of the binary log: which program it is, whether it reads compressed transactions, and what
//! happens if it can't.

use std::collections::BTreeMap;

use binlogz_figures::counted;

use crate::ask::Fact;
use crate::facts::{BinlogClient, Consumers};
use crate::knowledge::Knowledge;
use crate::report::{ConsumerFinding, Finding, FindingVerdict, Reads};

/// The row of one consumer.
const CONSUMER: &str = "consumer";
/// The row of whether all of them are known.
const CONSUMERS: &str = "consumers";

/// The text of the row about readers, for a server that has none.
pub(crate) const NOBODY: &str = "nobody is connected";

pub(super) fn findings(consumers: &Consumers, knowledge: &Knowledge) -> Vec<Finding> {
    let mut findings: Vec<_> =
        consumers.list.iter().map(|consumer| row(consumer, &consumers.attributes, knowledge)).collect();
    number_equals(&mut findings);
    let all = match &consumers.connections {
        Fact::Known(()) => {
            let mut remedy =
                "those that were away were not seen: look again when all are connected".to_owned();
            let mut missing_grant = None;
            if let Fact::NotGranted(grant) = consumers.registered {
                remedy.push_str(&format!("; GRANT {grant} shows their server ids"));
                missing_grant = Some(grant.to_owned());
            }
            let (found, verdict) = match consumers.list.len() {
                0 => (NOBODY.to_owned(), FindingVerdict::Unknown),
                count => (format!("{count} connected"), FindingVerdict::Ok),
            };
            Finding { missing_grant, ..Finding::new(CONSUMERS, found, verdict, remedy) }
        }
        Fact::NotGranted(grant) => Finding {
            found: format!(
                "{} registered; connections are not visible to this account",
                counted(consumers.list.len() as u64, "replicas")
            ),
            ..Finding::not_granted(CONSUMERS, grant)
        },
        Fact::Absent | Fact::Refused(_) => Finding::new(
            CONSUMERS,
            "connections can't be listed",
            FindingVerdict::Unknown,
            "look at SHOW PROCESSLIST yourself",
        ),
    };
    findings.insert(0, all);
    findings
}

fn row(consumer: &BinlogClient, attributes: &Fact<()>, knowledge: &Knowledge) -> Finding {
    let judged = judge(consumer, attributes, knowledge);
    let verdict = match judged.reads {
        Reads::Yes => FindingVerdict::Ok,
        Reads::No => FindingVerdict::Bad,
        Reads::Unknown => FindingVerdict::Unknown,
    };
    let version = judged.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let reads = match judged.reads {
        Reads::Yes => "reads compressed transactions",
        Reads::No => "does not read compressed transactions",
        Reads::Unknown => "not known to read compressed transactions",
    };
    let since = judged.since.as_deref().map(|since| format!(" (from {since} on)")).unwrap_or_default();
    let found = format!("{}{version}: {reads}{since}; {}", judged.name, judged.on_compressed);
    let missing_grant = match attributes {
        Fact::NotGranted(grant) if judged.reads == Reads::Unknown => Some((*grant).to_owned()),
        _ => None,
    };
    let remedy = match (judged.reads, &missing_grant) {
        (Reads::Yes, _) => String::new(),
        (_, Some(grant)) => format!("GRANT {grant} TO the account that asks"),
        (Reads::No, None) => {
            "move it off this log, upgrade it, or feed it expanded logs (binlogz expand) before turning compression on"
                .to_owned()
        }
        (Reads::Unknown, None) => {
            "ask its owner what it is, try it on a test server, and write it into a --knowledge file".to_owned()
        }
    };
    let mut finding = Finding::new(CONSUMER, found, verdict, remedy).of(subject(consumer));
    finding.missing_grant = missing_grant;
    finding.consumer = Some(judged);
    finding
}

fn judge(consumer: &BinlogClient, attributes: &Fact<()>, knowledge: &Knowledge) -> ConsumerFinding {
    let unknown = ConsumerFinding {
        name: "unknown client".to_owned(),
        version: None,
        account: consumer.user.clone(),
        address: consumer.host.clone(),
        connection_id: consumer.connection_id,
        server_id: consumer.server_id,
        server_uuid: consumer.server_uuid.clone(),
        reads: Reads::Unknown,
        since: None,
        on_compressed: "what happens is not known".to_owned(),
        source: String::new(),
        certainty: String::new(),
        tried: String::new(),
        date: String::new(),
    };
    let hidden = attributes.known().is_none() && consumer.attributes.is_empty();
    let identity = knowledge.identify(consumer);
    // "Tells nothing of itself" is only known if attributes are visible.
    let Some(identity) = identity.filter(|identity| !hidden || identity.is_by_account) else {
        let why = match attributes {
            Fact::Known(()) => describe(consumer),
            Fact::Refused(why) => format!("its connection attributes can't be seen: {why}"),
            _ => "its connection attributes are not visible to this account".to_owned(),
        };
        return ConsumerFinding { on_compressed: why, ..unknown };
    };
    let judged = ConsumerFinding { name: identity.name.to_owned(), version: identity.version, ..unknown };
    let Some(behaviour) = identity.behaviour else {
        return ConsumerFinding { on_compressed: "nothing is known of this version".to_owned(), ..judged };
    };
    ConsumerFinding {
        reads: behaviour.reads,
        since: behaviour.since.clone(),
        on_compressed: behaviour.on_compressed.clone(),
        source: behaviour.source.clone(),
        certainty: behaviour.certainty.clone(),
        tried: behaviour.tried.clone(),
        date: behaviour.date.clone(),
        ..judged
    }
}

/// An unknown client's own words about itself.
fn describe(consumer: &BinlogClient) -> String {
    let told: Vec<_> =
        consumer.attributes.iter().take(6).map(|(name, value)| format!("{name}={value}")).collect();
    format!("nobody knows it; it tells {}", told.join(", "))
}

/// Names a consumer by what stays the same when it connects again.
fn subject(consumer: &BinlogClient) -> String {
    let user = consumer.user.as_deref().unwrap_or("?");
    let place = match (consumer.address(), &consumer.server_uuid, consumer.server_id) {
        (address, Some(uuid), _) => format!("{} {uuid}", address.unwrap_or("?")),
        (address, None, Some(id)) => format!("{} server id {id}", address.unwrap_or("?")),
        (address, None, None) => address.unwrap_or("?").to_owned(),
    };
    let program = consumer
        .attributes
        .get("program_name")
        .or_else(|| consumer.attributes.get("_client_name"))
        .map(|program| format!(" {program}"))
        .unwrap_or_default();
    format!("{user}@{place}{program}")
}

/// Two consumers that can't be told apart get numbers.
fn number_equals(findings: &mut [Finding]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for subject in findings.iter_mut().filter_map(|finding| finding.subject.as_mut()) {
        let count = seen.entry(subject.clone()).or_default();
        *count += 1;
        if *count > 1 {
            subject.push_str(&format!(" #{count}"));
        }
    }
}
