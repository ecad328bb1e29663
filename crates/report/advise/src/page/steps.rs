//! The next steps, with the statements to paste.

use binlogz_figures::PageStep;
use binlogz_payload::switch::{self, NEXT_FILE, RESTART_APPLIER, STATISTICS};

use crate::{AdviceVerdict, Recommendation, TooLittle};

/// The steps of an answer.
pub(super) fn steps(recommendation: &Recommendation) -> Vec<PageStep> {
    let step = |what: &str, paste: &str| PageStep { what: what.to_owned(), paste: paste.to_owned() };
    let readers = step(
        "Find out what reads the log. Replicas before 8.0.20 and MariaDB stop; some CDC clients lose rows without an error.",
        "binlogz doctor HOST:PORT",
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
            Some(TooLittle::Log) => vec![step("Give more logs.", "binlogz advise --html REPORT.html FILE…")],
            _ => vec![step(
                "Measure again, on an idle machine and without a sample.",
                "binlogz advise --exact --html REPORT.html FILE…",
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
        let recommendation = Recommendation {
            verdict,
            level: Some(CompressionLevel::DEFAULT),
            only_level,
            saved: None,
            too_little: None,
            between: Vec::new(),
            reasons: Vec::new(),
        };
        steps(&recommendation).iter().map(|step| step.paste.as_str()).collect::<Vec<_>>().join("\n")
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
}
