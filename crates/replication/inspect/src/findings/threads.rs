//! Rows about threads that still hold another value of the compression switch than the global one: sessions and appliers
//! keep the value they began with.

use crate::ask::Fact;
use crate::facts::{COMPRESSION, Holder, HolderKind, LEVEL, ServerFacts};
use crate::report::{Finding, FindingVerdict};

use super::not_known;

pub(super) fn findings(facts: &ServerFacts) -> Vec<Finding> {
    let sessions =
        "recycle these connections (restart the pool, or KILL): a session keeps the value it began with";
    let appliers =
        "STOP REPLICA SQL_THREAD; START REPLICA SQL_THREAD: appliers keep the value they began with";
    vec![
        row("sessions_with_another_value", facts, HolderKind::Session, sessions),
        row("appliers_with_another_value", facts, HolderKind::Applier, appliers),
    ]
}

fn row(what: &str, facts: &ServerFacts, kind: HolderKind, remedy: &str) -> Finding {
    let Fact::Known(holders) = &facts.holders else {
        return not_known(what, &facts.holders, "performance_schema has no variables_by_thread");
    };
    let of_kind = || holders.iter().filter(|holder| holder.kind == kind);
    let differs =
        |holder: &&Holder| Some(holder.value.as_str()) != facts.settings.get(&[holder.variable.as_str()]);
    let found: Vec<_> = of_kind().filter(differs).map(text).collect();
    if found.is_empty() {
        let all: u64 =
            of_kind().filter(|holder| holder.variable == COMPRESSION).map(|holder| holder.count).sum();
        return Finding::ok(what, format!("none of {all}"));
    }
    Finding::new(what, found.join("; "), FindingVerdict::Warn, remedy)
}

fn text(holder: &Holder) -> String {
    let what = if holder.variable == LEVEL { "level" } else { "compression" };
    let user = match holder.user.as_str() {
        "" => String::new(),
        user => format!(" of {user}"),
    };
    format!("{}{user} with {what} {}", holder.count, holder.value)
}
