//! Findings from the facts of one server: a row each, in a fixed order.

mod consumers;
mod figures;
mod settings;
mod threads;

pub(crate) use consumers::NOBODY;

use crate::ask::Fact;
use crate::facts::ServerFacts;
use crate::knowledge::Knowledge;
use crate::report::{Finding, FindingVerdict};
use crate::version::Version;

/// The first release that has the feature.
const FIRST_RELEASE: &str = "8.0.20";

/// The rows of one server; and whether compression can be turned on without breaking a consumer, which nobody can tell
/// while none is connected.
pub(crate) fn findings(facts: &ServerFacts, knowledge: &Knowledge) -> (Vec<Finding>, bool) {
    let version = version(facts);
    if version.verdict != FindingVerdict::Ok {
        return (vec![version], false);
    }
    let mut findings = vec![version];
    findings.extend(bugs(facts, knowledge));
    findings.extend(settings::findings(facts));
    findings.extend(figures::findings(facts));
    findings.extend(threads::findings(facts));
    let consumers = consumers::findings(&facts.consumers, knowledge);
    let safe = !facts.consumers.list.is_empty()
        && consumers.iter().all(|finding| finding.verdict < FindingVerdict::Unknown);
    findings.extend(consumers);
    (findings, safe)
}

fn version(facts: &ServerFacts) -> Finding {
    let found = facts.version_text.as_str();
    if facts.is_mariadb() {
        return Finding::new(
            "version",
            format!("{found}: MariaDB has no transaction compression"),
            FindingVerdict::Bad,
            "nothing to turn on; compress its log's files as a whole, or its replicas' connections",
        );
    }
    match (facts.version(), Version::parse(FIRST_RELEASE)) {
        (Some(version), Some(first)) if version >= first => Finding::ok("version", found),
        (Some(_), _) => Finding::new(
            "version",
            format!("{found}: the feature is there from {FIRST_RELEASE} on"),
            FindingVerdict::Bad,
            "upgrade the server; binlogz compress works on its closed logs",
        ),
        (None, _) => Finding::new(
            "version",
            format!("{found:?} is no version"),
            FindingVerdict::Unknown,
            "ask the server's owner",
        ),
    }
}

fn bugs(facts: &ServerFacts, knowledge: &Knowledge) -> Vec<Finding> {
    let Some(version) = facts.version() else { return Vec::new() };
    let bugs: Vec<_> = knowledge
        .bugs_of(&version)
        .map(|bug| {
            let date = if bug.date.is_empty() { String::new() } else { format!(", entry of {}", bug.date) };
            let found = format!("{} ({}{date}: {})", bug.title, bug.certainty, bug.source);
            Finding::new("known_bug", found, FindingVerdict::Warn, bug.remedy.as_str()).of(bug.id.as_str())
        })
        .collect();
    match bugs.is_empty() {
        true => vec![Finding::ok("known_bug", "none known of this release")],
        false => bugs,
    }
}

/// The row of an unknown fact; `absent` is the text if the server has no such thing.
fn not_known<T>(what: &str, fact: &Fact<T>, absent: &str) -> Finding {
    match fact {
        Fact::NotGranted(grant) => Finding::not_granted(what, grant),
        Fact::Refused(why) => Finding::new(
            what,
            format!("not to be had: {why}"),
            FindingVerdict::Unknown,
            "mend this and look again",
        ),
        Fact::Absent | Fact::Known(_) => Finding::ok(what, absent),
    }
}
