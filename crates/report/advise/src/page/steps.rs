//! The next steps, with the statements to paste.

use binlogz_figures::PageStep;
use binlogz_payload::switch::{self, NEXT_FILE, RESTART_APPLIER, STATISTICS};

use crate::{AdviceVerdict, Recommendation, TooLittle};

/// A server that the logs don't tell.
const SERVER_UNKNOWN: &str = "HOST:PORT";
/// Logs that come from nobody knows where.
const LOGS_UNKNOWN: &str = "FILE…";

/// The steps of an answer about a server, if it was one that was asked.
pub(super) fn steps(recommendation: &Recommendation, server: Option<&str>) -> Vec<PageStep> {
    let step = |what: &str, paste: &str| PageStep { what: what.to_owned(), paste: paste.to_owned() };
    let measured = server.unwrap_or(LOGS_UNKNOWN);
    let readers = step(
        "Find out what reads the log. Replicas before 8.0.20 and MariaDB stop; some CDC clients lose rows without an error.",
        &format!("binlogz doctor {}", server.unwrap_or(SERVER_UNKNOWN)),
    );
    let on = turn_on(recommendation);
    let watch = step("Watch what it saves.", STATISTICS);
    let back = step(
        "The way back. Files that are compressed stay so.",
        &format!("{}\n{NEXT_FILE}", switch::turn_off()),
    );
    match recommendation.verdict {
        AdviceVerdict::TurnOn => vec![
            readers,
            step(
                "Turn it on. Sessions that are open keep the old value: restart your connection pools.",
                &on,
            ),
            watch,
            back,
        ],
        AdviceVerdict::TryOnReplica => vec![
            readers,
            step("Turn it on on a replica that serves only backups, and restart its applier.", &{
                format!("{on}\n{RESTART_APPLIER}")
            }),
            watch,
            back,
        ],
        AdviceVerdict::CompressOffSource => {
            let level = recommendation.level.unwrap_or_default();
            vec![step(
                "Leave it off at the source. Compress copies of the files, or have the relay compress what it stores.",
                &format!("binlogz compress --level {level} --output DIR FILE…"),
            )]
        }
        AdviceVerdict::LeaveOff => Vec::new(),
        AdviceVerdict::CantTell => match recommendation.too_little {
            Some(TooLittle::Log) => {
                let logs = if server.is_some() { "--last 100 " } else { "" };
                vec![step("Give more logs.", &format!("binlogz advise {logs}--html REPORT.html {measured}"))]
            }
            _ => vec![step(
                "Measure again, on an idle machine and without a sample.",
                &format!("binlogz advise --exact --html REPORT.html {measured}"),
            )],
        },
    }
}

/// The statements that turn it on.
fn turn_on(recommendation: &Recommendation) -> String {
    switch::turn_on(recommendation.level.filter(|_| !recommendation.only_level)).join("\n")
}

#[cfg(test)]
mod tests {
    use binlogz_payload::CompressionLevel;

    use super::*;

    fn told(verdict: AdviceVerdict, only_level: bool) -> String {
        pasted(&answer(verdict, only_level), None)
    }

    fn pasted(recommendation: &Recommendation, server: Option<&str>) -> String {
        steps(recommendation, server).iter().map(|step| step.paste.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn answer(verdict: AdviceVerdict, only_level: bool) -> Recommendation {
        Recommendation {
            verdict,
            level: Some(CompressionLevel::DEFAULT),
            only_level,
            saved: None,
            too_little: None,
            between: Vec::new(),
            reasons: Vec::new(),
        }
    }

    #[test]
    fn each_answer_has_what_to_paste() {
        let on = "SET PERSIST binlog_transaction_compression = ON;";
        let level = "SET PERSIST binlog_transaction_compression_level_zstd = 3;";
        assert!(told(AdviceVerdict::TurnOn, false).contains(&format!("{level}\n{on}")));
        // Servers without levels refuse or ignore one.
        let only = told(AdviceVerdict::TurnOn, true);
        assert!(only.contains(on) && !only.contains(level), "{only}");
        assert!(told(AdviceVerdict::TryOnReplica, false).contains("START REPLICA SQL_THREAD"));
        assert!(told(AdviceVerdict::CompressOffSource, false).starts_with("binlogz compress --level 3"));
        assert_eq!(told(AdviceVerdict::LeaveOff, false), "");
        assert!(told(AdviceVerdict::CantTell, false).contains("--exact"));
    }

    #[test]
    fn a_server_that_was_asked_is_named() {
        let on = pasted(&answer(AdviceVerdict::TurnOn, false), Some("db1:3306"));
        assert!(on.starts_with("binlogz doctor db1:3306\n"), "{on}");
        assert!(told(AdviceVerdict::TurnOn, false).starts_with("binlogz doctor HOST:PORT\n"));
        let cant_tell = pasted(&answer(AdviceVerdict::CantTell, false), Some("db1:3306"));
        assert!(cant_tell.ends_with(" db1:3306"), "{cant_tell}");
        let too_little =
            Recommendation { too_little: Some(TooLittle::Log), ..answer(AdviceVerdict::CantTell, false) };
        assert_eq!(
            pasted(&too_little, Some("db1:3306")),
            "binlogz advise --last 100 --html REPORT.html db1:3306"
        );
    }
}
