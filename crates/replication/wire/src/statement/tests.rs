//! Statements that replicas and clients send, and some that nobody should.

use super::*;

fn user(name: &str, value: Expression) -> (AssignmentTarget, Expression) {
    (AssignmentTarget::UserVariable(name.into()), value)
}

#[test]
fn a_statement_of_very_many_tokens_is_not_taken_apart() {
    let select = |count: usize| format!("SELECT {}", vec!["1"; count].join(","));
    assert!(
        matches!(Statement::parse(&select(4_000)), Some(Statement::Select(columns)) if columns.len() == 4_000)
    );
    assert_eq!(Statement::parse(&select(2_000_000)), None);
}

#[test]
fn what_replicas_say() {
    let literal = |text: &str| Expression::Literal(text.into());
    let system = |name: &str| Expression::SystemVariable(Scope::Any, name.into());
    let global = |name: &str| Expression::SystemVariable(Scope::Global, name.into());
    for (text, expected) in [
        (
            "SELECT UNIX_TIMESTAMP()",
            Statement::Select(vec![(
                Expression::Function("unix_timestamp".into()),
                "UNIX_TIMESTAMP()".into(),
            )]),
        ),
        (
            "select @@GLOBAL.SERVER_ID",
            Statement::Select(vec![(global("server_id"), "@@GLOBAL.SERVER_ID".into())]),
        ),
        (
            "SET @master_heartbeat_period = 30000000000, @source_heartbeat_period= 30000000000;",
            Statement::Set(vec![
                user("master_heartbeat_period", literal("30000000000")),
                user("source_heartbeat_period", literal("30000000000")),
            ]),
        ),
        (
            "/* a proxy's */ set\n@source_binlog_checksum:=@@global.binlog_checksum -- why",
            Statement::Set(vec![user("source_binlog_checksum", global("binlog_checksum"))]),
        ),
        (
            "SET @`Slave_UUID` = 'it''s \\'me\\''",
            Statement::Set(vec![user("slave_uuid", literal("it's 'me'"))]),
        ),
        (
            "SET SESSION net_write_timeout=600, autocommit = ON",
            Statement::Set(vec![
                (AssignmentTarget::Session("net_write_timeout".into()), literal("600")),
                (AssignmentTarget::Session("autocommit".into()), literal("ON")),
            ]),
        ),
        (
            "SET @@global.binlog_format = NULL",
            Statement::Set(vec![(AssignmentTarget::Global("binlog_format".into()), Expression::Null)]),
        ),
        (
            "SET GLOBAL a = '5', PERSIST b = 5, @@persist_only.c = ON, GLOBAL d = -5",
            Statement::Set(vec![
                (AssignmentTarget::Global("a".into()), Expression::Text("5".into())),
                (AssignmentTarget::Persist("b".into()), literal("5")),
                (AssignmentTarget::Persist("c".into()), literal("ON")),
                (AssignmentTarget::Global("d".into()), literal("-5")),
            ]),
        ),
        ("SHOW WARNINGS", Statement::ShowWarnings),
        ("show warnings limit 64", Statement::ShowWarnings),
        (
            "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
            Statement::ShowVariables(ShownVariables {
                scope: Scope::Global,
                patterns: vec![NamePattern::Like("BINLOG_CHECKSUM".into())],
            }),
        ),
        (
            "SHOW VARIABLES WHERE Variable_name='server_id'",
            Statement::ShowVariables(ShownVariables {
                scope: Scope::Any,
                patterns: vec![NamePattern::Is("server_id".into())],
            }),
        ),
        ("SHOW MASTER STATUS", Statement::ShowBinaryLogStatus),
        ("show binary log status", Statement::ShowBinaryLogStatus),
        ("SHOW BINARY LOGS", Statement::ShowBinaryLogs),
        ("SHOW SLAVE HOSTS", Statement::ShowReplicas(ReplicationWords::Older)),
        ("SHOW REPLICAS", Statement::ShowReplicas(ReplicationWords::Current)),
        ("SHOW BINLOG EVENTS", Statement::ShowBinlogEvents(EventsWanted::default())),
        (
            "show binlog events in 'binlog.000002' from 158 limit 3, 7;",
            Statement::ShowBinlogEvents(EventsWanted {
                file: Some("binlog.000002".into()),
                from: Some(158),
                skip: 3,
                count: Some(7),
            }),
        ),
        (
            "SHOW BINLOG EVENTS LIMIT 7 OFFSET 3",
            Statement::ShowBinlogEvents(EventsWanted { skip: 3, count: Some(7), ..EventsWanted::default() }),
        ),
        ("SHOW REPLICA STATUS", Statement::ShowReplicaStatus(ReplicationWords::Current)),
        ("SHOW SLAVE STATUS FOR CHANNEL ''", Statement::ShowReplicaStatus(ReplicationWords::Older)),
        (
            "/* mysql-connector-j-9.1.0 */SELECT @@session.auto_increment_increment AS a, 'x', CURRENT_USER",
            Statement::Select(vec![
                (Expression::SystemVariable(Scope::Session, "auto_increment_increment".into()), "a".into()),
                (Expression::Text("x".into()), "x".into()),
                (Expression::Function("current_user".into()), "CURRENT_USER".into()),
            ]),
        ),
        (
            "SELECT @@version_comment AS v, VERSION() LIMIT 1",
            Statement::Select(vec![
                (system("version_comment"), "v".into()),
                (Expression::Function("version".into()), "VERSION()".into()),
            ]),
        ),
    ] {
        assert_eq!(Statement::parse(text), Some(expected), "{text}");
    }
}

#[test]
fn what_nobody_should_say() {
    for text in [
        "",
        ";",
        "SELECT",
        "SELECT 1 FROM t",
        "SELECT @@",
        "SET @a",
        "SET @a = ",
        "SET @a = (SELECT 1)",
        "DROP TABLE t",
        "SHOW TABLES",
        "SELECT 'open",
        "/* open",
        "SELECT 1; DROP TABLE t",
        "SELECT sleep(9)",
        "SELECT $$",
        "SHOW BINARY",
        "SHOW BINLOG",
        "SHOW BINLOG EVENTS FROM x",
        "SHOW BINLOG EVENTS LIMIT 1,",
        "SHOW REPLICA STATUS FOR CHANNEL 'other'",
        "SET = 1",
        "@",
        "SELECT 1 AS",
        "`",
    ] {
        assert_eq!(Statement::parse(text), None, "{text}");
    }
}

#[test]
fn what_a_statement_is_about_is_seen_without_its_grammar() {
    let words = ["gtid_executed", "log_status"];
    for text in [
        "SELECT NOW(), @@GLOBAL.GTID_EXECUTED",
        "select * from performance_schema.`log_status`",
        "SELECT 'gtid_executed'",
        "SELECT gtid_executed 'open",
    ] {
        assert!(mentions(text, &words), "{text}");
    }
    assert!(!mentions("SELECT 1 /* gtid_executed */ FROM log_status_of_mine", &words));
    for text in
        ["SELECT 1, @@`Gtid_Executed`", "SELECT @@global . GTID_EXECUTED", "SELECT @@gtid_executed 'open"]
    {
        assert!(mentions_variable(text, &words), "{text}");
    }
    for text in
        ["SELECT @gtid_executed, @@version", "SHOW CREATE TABLE gtid_executed", "SELECT @@", "@@global."]
    {
        assert!(!mentions_variable(text, &words), "{text}");
    }
    assert_eq!(first_word(" /* why */ kill 7").as_deref(), Some("KILL"));
    assert_eq!(first_word("7"), None);
}
