//! Which servers can be brought forward with logs.

use binlogz_binlog::gtid::GtidSet;
use binlogz_inspect::Version;
use binlogz_relay::StopAt;
use binlogz_source::AnswerFields;

use super::{ended, gtids, samples};
use crate::fitness::TargetAbilities;
use crate::target::{TargetFacts, TargetTrouble};
use crate::version_words::VersionWords;

fn facts(executed: GtidSet) -> TargetFacts {
    TargetFacts {
        server_id: 7,
        gtid_mode: "ON".to_owned(),
        executed,
        workers: 4,
        keeps_order: true,
        other_channels: Vec::new(),
    }
}

/// What a server of this version lacks of these samples, or why it can't have it.
fn lacks(numbers: &[u32], version: &str, facts: &TargetFacts) -> Result<GtidSet, String> {
    let folder = tempfile::tempdir().unwrap();
    let (ended, _) = ended(&samples(numbers.iter().copied()), &StopAt::End, folder.path());
    let words = VersionWords::of(&Version::parse(version).unwrap());
    TargetAbilities { version, words, facts }.lacks(&ended.unwrap())
}

#[test]
fn what_a_server_answers_in_no_form_of_its_kind_is_an_error_and_no_default() {
    let of = |cells: [&str; 4]| {
        let row = cells.map(|cell| Some(cell.as_bytes().to_vec())).to_vec();
        let own = AnswerFields::first_of("db:3306", "SELECT @@GLOBAL.server_id", vec![row]).unwrap();
        TargetFacts::of(&own, GtidSet::new(), Vec::new()).map_err(|error| error.to_string())
    };
    let facts = of(["4294967295", "ON", "0", "1"]).unwrap();
    assert_eq!((facts.server_id, facts.workers, facts.keeps_order), (u32::MAX, 0, true));
    for (cells, answered) in [
        (["", "ON", "4", "1"], "\"\""),
        (["4294967296", "ON", "4", "1"], "\"4294967296\""),
        (["1", "ON", "many", "1"], "\"many\""),
        (["1", "ON", "4", "maybe"], "\"maybe\""),
    ] {
        let why = of(cells).unwrap_err();
        assert!(
            why.starts_with(&format!("db:3306: SELECT @@GLOBAL.server_id answered {answered}, expected")),
            "{why}"
        );
    }
}

#[test]
fn an_unreadable_answer_is_final_and_a_lost_connection_is_not() {
    let answer = AnswerFields::first_of("db:3306", "SELECT 1", Vec::new()).unwrap_err();
    assert!(matches!(TargetTrouble::from(answer), TargetTrouble::Final(_)));
    let lost = binlogz_source::Error::Io {
        server: "db:3306".to_owned(),
        doing: "asking SELECT 1".to_owned(),
        source: std::io::ErrorKind::BrokenPipe.into(),
    };
    assert!(matches!(TargetTrouble::from(lost), TargetTrouble::Lost(_)));
}

#[test]
fn logs_continue_only_what_came_before_them() {
    let of = |executed| lacks(&[4, 5], "9.7.4", &facts(executed));
    assert_eq!(of(gtids("1-24")), Ok(gtids("25-369")));
    assert_eq!(of(gtids("1-24:30-40")), Ok(gtids("25-29:41-369")));
    assert_eq!(of(gtids("1-369")), Ok(GtidSet::new()));
    // Its own transactions are nobody else's matter; those after the logs aren't known to be after them.
    assert_eq!(of(gtids("1-369:1000")), Ok(GtidSet::new()));
    let why = of(gtids("1-20")).unwrap_err();
    assert!(
        why.starts_with("lacks 4 transactions that came before binlog.000004, the first log here"),
        "{why}"
    );
}

#[test]
fn a_server_that_is_past_the_moment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stop = StopAt::After("468dfa6d-e565-11f1-89b6-02fc00000001:100".parse().unwrap());
    let (ended, _) = ended(&samples(1..=6), &stop, folder.path());
    let facts = facts(gtids("1-102"));
    let words = VersionWords::of(&Version::parse("9.7.4").unwrap());
    let why = TargetAbilities { version: "9.7.4", words, facts: &facts }.lacks(&ended.unwrap()).unwrap_err();
    assert!(why.starts_with("is past that moment: it has 2 of the transactions after it"), "{why}");
}

#[test]
fn a_server_that_cannot_follow_is_refused() {
    let why = lacks(&[9], "8.0.44", &facts(gtids("1-465"))).unwrap_err();
    assert_eq!(why, "is version 8.0.44: the logs have GTIDs with tags, which need 8.3");
    assert!(lacks(&[9], "8.3.0", &facts(gtids("1-465"))).is_ok());

    let off = TargetFacts { gtid_mode: "OFF_PERMISSIVE".to_owned(), ..facts(gtids("1-24")) };
    let why = lacks(&[4], "9.7.4", &off).unwrap_err();
    assert!(why.starts_with("gtid_mode is OFF_PERMISSIVE, expected ON"), "{why}");

    let busy = TargetFacts { other_channels: vec!["".to_owned(), "east".to_owned()], ..facts(gtids("1-24")) };
    let why = lacks(&[4], "9.7.4", &busy).unwrap_err();
    assert_eq!(why, r#"follows another source at present (channel "", "east"): stop that first"#);
}

#[test]
fn an_older_server_is_warned_of() {
    let facts = facts(GtidSet::new());
    let older = |version: &'static str, logs| {
        let words = VersionWords::of(&Version::parse(version).unwrap());
        TargetAbilities { version, words, facts: &facts }.is_older_than(logs)
    };
    assert_eq!(older("9.7.4", "9.7.4"), None);
    assert_eq!(older("8.4.6", "8.0.44"), None);
    assert_eq!(
        older("8.4.6", "9.7.4").as_deref(),
        Some(
            "is version 8.4.6, and the logs are of 9.7.4: MySQL does not promise that an older server can apply them"
        )
    );
}
