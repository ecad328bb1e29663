//! Answers whether to turn compression on at a server: what it would break there, and what it would save.
//!
//! The caller measures the saving and passes it as an [`SavingsEstimate`]; the findings say what breaks.

use crate::facts::COMPRESSION;
use crate::findings::NOBODY;
use crate::report::{CompressionAnswer, FindingVerdict, Reads, SavingsEstimate, ServerReport};

/// The verdict of an estimate that says: turn it on.
const TURN_ON: &str = "turn_on";
/// The verdict of an estimate that knows the bytes saved, but not the processor time they cost.
const TRY_ON_REPLICA: &str = "try_on_replica";
/// The verdict of an estimate that knows too little.
const CANT_TELL: &str = "cant_tell";

/// The report with what compressing would save at that server, and so with an answer.
#[must_use]
pub fn answered(mut server: ServerReport, estimate: SavingsEstimate) -> ServerReport {
    server.estimate = Some(estimate);
    server.answer = answer(&server).map(|(answer, _)| answer);
    server
}

/// The answer and the reason for it.
pub(crate) fn answer(server: &ServerReport) -> Option<(CompressionAnswer, String)> {
    let estimate = server.estimate.as_ref()?;
    let finding = |what: &str| server.findings.iter().find(|finding| finding.what == what);
    if let Some(version) = finding("version").filter(|version| version.verdict > FindingVerdict::Warn) {
        return Some((CompressionAnswer::No, version.found.clone()));
    }
    if finding(COMPRESSION).is_some_and(|switch| switch.found.starts_with("ON")) {
        return Some((CompressionAnswer::OnAlready, estimate.said.clone()));
    }
    let count = |reads| server.consumers().filter(|consumer| consumer.reads == reads).count();
    let yes = count(Reads::Yes);
    let no = count(Reads::No);
    let unknown = count(Reads::Unknown);
    let verdict = estimate.verdict.as_str();
    let is_worth_it = [TURN_ON, TRY_ON_REPLICA].contains(&verdict);
    Some(if verdict == CANT_TELL {
        (CompressionAnswer::CantTell, estimate.said.clone())
    } else if !is_worth_it {
        (CompressionAnswer::No, estimate.said.clone())
    } else if no > 0 {
        (
            CompressionAnswer::NotYet,
            format!("it would break {no} of {} that read the log", yes + no + unknown),
        )
    } else if unknown > 0 {
        (
            CompressionAnswer::NotYet,
            format!("of {unknown} that read the log, nobody knows whether they can read it compressed"),
        )
    } else if finding("consumers").is_some_and(|all| all.found == NOBODY) {
        (CompressionAnswer::NotYet, "nobody is connected, so there is no telling whom it breaks".to_owned())
    } else if !server.safe {
        (CompressionAnswer::NotYet, "this account can't see who reads the log".to_owned())
    } else if verdict == TRY_ON_REPLICA {
        (
            CompressionAnswer::Yes,
            "try it on a replica first, since the logs don't tell what part of a core it takes".to_owned(),
        )
    } else {
        (CompressionAnswer::Yes, estimate.said.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ConsumerFinding, Finding};

    fn consumer(reads: Reads) -> Finding {
        let consumer = ConsumerFinding {
            name: "a client".to_owned(),
            version: None,
            account: None,
            address: None,
            connection_id: None,
            server_id: None,
            server_uuid: None,
            reads,
            since: None,
            on_compressed: String::new(),
            source: String::new(),
            certainty: String::new(),
            tried: String::new(),
            date: String::new(),
        };
        Finding { consumer: Some(consumer), ..Finding::ok("consumer", "") }
    }

    fn answer_of(verdict: &str, safe: bool, findings: Vec<Finding>) -> CompressionAnswer {
        let estimate = SavingsEstimate {
            verdict: verdict.to_owned(),
            said: "said".to_owned(),
            level: Some(3),
            saved_percent: Some(50.0),
            reasons: Vec::new(),
        };
        let server = ServerReport {
            error: None,
            safe,
            findings,
            estimate: Some(estimate),
            ..ServerReport::failed("db1", "")
        };
        answer(&server).unwrap().0
    }

    #[test]
    fn what_it_breaks_comes_before_what_it_saves_if_it_saves_something() {
        let reads = |reads| vec![Finding::ok("consumers", "1 connected"), consumer(reads)];
        assert_eq!(answer_of(TURN_ON, true, reads(Reads::Yes)), CompressionAnswer::Yes);
        assert_eq!(answer_of(TRY_ON_REPLICA, true, reads(Reads::Yes)), CompressionAnswer::Yes);
        assert_eq!(answer_of(TURN_ON, false, reads(Reads::No)), CompressionAnswer::NotYet);
        assert_eq!(answer_of(TURN_ON, false, reads(Reads::Unknown)), CompressionAnswer::NotYet);
        assert_eq!(answer_of("leave_off", true, reads(Reads::Yes)), CompressionAnswer::No);
        assert_eq!(answer_of("compress_off_source", false, reads(Reads::No)), CompressionAnswer::No);
        assert_eq!(answer_of(CANT_TELL, true, reads(Reads::Yes)), CompressionAnswer::CantTell);
        let nobody = Finding::new("consumers", NOBODY, FindingVerdict::Unknown, "");
        assert_eq!(answer_of(TURN_ON, false, vec![nobody]), CompressionAnswer::NotYet);
        let hidden = Finding::new("consumers", "hidden", FindingVerdict::Unknown, "");
        assert_eq!(answer_of(TURN_ON, false, vec![hidden]), CompressionAnswer::NotYet);
        let on = Finding::ok(COMPRESSION, "ON, level 3");
        assert_eq!(answer_of("leave_off", true, vec![on]), CompressionAnswer::OnAlready);
        let old = Finding::new("version", "8.0.19", FindingVerdict::Bad, "");
        assert_eq!(answer_of(TURN_ON, true, vec![old]), CompressionAnswer::No);
    }
}
