use super::lookup::period_at;
use super::statement::STATEMENT_SIZE_MAX;
use super::*;

/// A history of these statements, each in a log of its own, and of these tables now.
fn history(statements: &[&str], now: &str) -> TableHistory {
    let mut history = TableHistory::default();
    for (number, text) in statements.iter().enumerate() {
        history.record(&in_shop(HistoryPlace { log: number as u64 + 1, offset: 100 }, text));
    }
    history.settle(SchemaFile::parse(&format!("USE shop; {now}")).unwrap_or_default());
    history
}

/// A statement that succeeded, of a session in the database `shop` with the usual settings.
pub(super) fn in_shop(place: HistoryPlace, text: &str) -> RecordedStatement<'_> {
    RecordedStatement {
        place,
        database: "shop",
        text,
        quotes_names: false,
        keeps_backslashes: false,
        has_failed: false,
    }
}

/// After so many statements, the columns of a table; or what isn't known.
fn then(history: &TableHistory, statements: u64, table: &str) -> String {
    let place = HistoryPlace { log: statements, offset: 200 };
    match history.at(place, "shop", table) {
        TableThen::Known(table) => {
            table.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(" ")
        }
        TableThen::UnknownSince(turn) => format!("unknown since {}", turn.statement),
        TableThen::Disagrees(turn) => format!("disagrees since {}", turn.statement),
        TableThen::NotTold => "not told".to_owned(),
    }
}

#[track_caller]
fn expect(statements: &[&str], now: &str, expected: &[(u64, &str, &str)]) {
    let history = history(statements, now);
    for (after, table, columns) in expected {
        assert_eq!(then(&history, *after, table), *columns, "{table} after {after}");
    }
}

#[test]
fn without_statements_the_tables_are_those_of_now() {
    expect(&[], "CREATE TABLE t (a INT)", &[(0, "t", "a"), (0, "u", "not told")]);
    expect(
        &["ALTER TABLE v ADD x INT"],
        "CREATE TABLE t (a INT)",
        &[(0, "t", "a"), (0, "v", "unknown since ALTER TABLE v ADD x INT")],
    );
}

#[test]
fn backward_from_now_what_was_added_goes_and_what_was_renamed_has_its_old_name() {
    expect(
        &[
            "ALTER TABLE t ADD COLUMN x INT FIRST, ADD (y INT, z INT UNIQUE)",
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            "ALTER TABLE t CHANGE a c BIGINT, ENGINE=InnoDB",
            "TRUNCATE TABLE t",
        ],
        "CREATE TABLE t (x INT, b INT, c BIGINT, y INT, z INT UNIQUE)",
        &[
            (4, "t", "x b c y z"),
            (3, "t", "x b c y z"),
            (2, "t", "x b a y z"),
            (1, "t", "x a b y z"),
            (0, "t", "a b"),
        ],
    );
}

#[test]
fn backward_a_dropped_or_moved_column_stood_somewhere() {
    for statement in [
        "ALTER TABLE t DROP COLUMN x",
        "ALTER TABLE t MODIFY b INT AFTER a",
        "ALTER TABLE t CHANGE b b INT FIRST",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT",
        "ALTER TABLE t FROBNICATE",
        "DROP TABLE t",
        "RENAME TABLE other TO t",
        "DROP DATABASE shop",
    ] {
        let now = if statement.starts_with("DROP") { "" } else { "CREATE TABLE t (a INT, b INT)" };
        expect(&[statement], now, &[(0, "t", &format!("unknown since {statement}"))]);
        if !statement.contains("other") {
            let expected = format!("unknown since {statement}");
            expect(&["ALTER TABLE t ADD c INT", statement], now, &[(0, "t", &expected), (1, "t", &expected)]);
        }
    }
}

#[test]
fn forward_from_create_table_everything_is_known() {
    expect(
        &[
            "CREATE TABLE t (a INT, b INT, c INT, d INT)",
            "ALTER TABLE t MODIFY d INT AFTER a, DROP COLUMN b",
            "ALTER TABLE t MODIFY c INT FIRST, ADD e INT AFTER c",
            "ALTER TABLE t ADD a INT, DROP a",
            "DROP TABLE t",
            "CREATE TABLE t (x INT)",
        ],
        "CREATE TABLE t (x INT)",
        &[
            (0, "t", "unknown since CREATE TABLE t (a INT, b INT, c INT, d INT)"),
            (1, "t", "a b c d"),
            (2, "t", "a d c"),
            (3, "t", "c e a d"),
            (4, "t", "c e d a"),
            (5, "t", "unknown since DROP TABLE t"),
            (6, "t", "x"),
        ],
    );
}

#[test]
fn names_change_hands() {
    // As gh-ost does it, the old table dropped in the end.
    expect(
        &[
            "CREATE TABLE _t_gho LIKE t",
            "ALTER TABLE _t_gho ADD x INT AFTER a, RENAME COLUMN b TO c",
            "RENAME TABLE t TO _t_del, _t_gho TO t",
            "DROP TABLE _t_del",
        ],
        "CREATE TABLE t (a INT, x INT, c INT)",
        &[(0, "t", "a b"), (2, "t", "a b"), (2, "_t_gho", "a x c"), (3, "t", "a x c"), (3, "_t_del", "a b")],
    );
    // SEED=166459356: of two new names the last counts.
    expect(
        &["CREATE TABLE u (b INT)", "CREATE TABLE t (a INT)", "ALTER TABLE t RENAME u, RENAME TO v"],
        "",
        &[(2, "u", "b"), (3, "u", "b"), (3, "v", "a")],
    );
    // Where the copy isn't made from it, the table that is gone isn't known.
    let swap = "RENAME TABLE t TO old, new TO t";
    expect(&[swap], "CREATE TABLE t (a INT); CREATE TABLE old (b INT)", &[(0, "t", "b"), (0, "new", "a")]);
    expect(&[swap, "DROP TABLE old"], "CREATE TABLE t (a INT)", &[(0, "t", "unknown since DROP TABLE old")]);
    expect(
        &["ALTER TABLE new RENAME TO elsewhere.t, ADD x INT"],
        "USE elsewhere; CREATE TABLE t (a INT, x INT)",
        &[(0, "new", "a")],
    );
    expect(
        &["ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE t", "ALTER TABLE t ADD x INT"],
        "CREATE TABLE t (a INT, x INT)",
        &[(0, "t", "a"), (1, "t", "a")],
    );
}

#[test]
fn a_table_that_can_be_two_things_is_none() {
    // The schema isn't the one that the logs lead to.
    expect(
        &["CREATE TABLE t (a INT, b INT)"],
        "CREATE TABLE t (b INT, a INT)",
        &[(1, "t", "disagrees since CREATE TABLE t (a INT, b INT)")],
    );
    expect(
        &["ALTER TABLE t ADD x INT"],
        "CREATE TABLE t (a INT)",
        &[(0, "t", "unknown since ALTER TABLE t ADD x INT"), (1, "t", "a")],
    );
    // The schema is older than the swap.
    let swap = "RENAME TABLE t TO old, new TO t";
    let before = "CREATE TABLE t (a INT); CREATE TABLE new (b INT)";
    expect(&[swap], before, &[(0, "new", "disagrees since RENAME TABLE t TO old, new TO t")]);
    // One of them is another table on most servers.
    expect(
        &["CREATE TABLE t (a INT)", "CREATE TABLE T (b INT)"],
        "",
        &[(2, "t", "disagrees since CREATE TABLE T (b INT)")],
    );
    expect(
        &["ALTER TABLE T ADD b INT"],
        "CREATE TABLE t (a INT)",
        &[(0, "t", "unknown since ALTER TABLE T ADD b INT"), (1, "t", "a")],
    );
    expect(
        &["CREATE TEMPORARY TABLE t (x INT)", "ALTER TABLE t ADD b INT", "DROP TABLE t"],
        "CREATE TABLE t (a INT)",
        &[(0, "t", "unknown since ALTER TABLE t ADD b INT"), (3, "t", "a")],
    );
}

#[test]
fn what_can_not_be_read_may_have_done_anything_to_what_it_mentions() {
    let unreadable = "ALTER TABLE t ADD x INT 'unclosed";
    let both = "CREATE TABLE t (a INT); CREATE TABLE u (a INT)";
    expect(
        &[unreadable],
        both,
        &[(0, "t", "unknown since ALTER TABLE t ADD x INT 'unclosed"), (1, "t", "a")],
    );
    let mentions = "RENAME TABLE t AS u";
    expect(
        &[mentions, "CREATE TABLE u (b INT)"],
        both,
        &[(0, "t", "unknown since RENAME TABLE t AS u"), (1, "t", "a")],
    );
    expect(&[mentions], "CREATE TABLE v (a INT)", &[(0, "v", "a")]);
    // Its text is of another character set: its name can't be compared.
    expect(&["DROP TABLE \u{FFFD}\u{FFFD}"], both, &[(0, "t", "unknown since DROP TABLE \u{FFFD}\u{FFFD}")]);
}

#[test]
fn a_column_has_a_name_now_or_none() {
    let history = history(
        &[
            "CREATE TABLE t (a INT, b INT, c INT, d INT)",
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, DROP c",
            "ALTER TABLE t MODIFY d BIGINT FIRST",
            "CREATE TABLE u LIKE t",
            "RENAME TABLE t TO old, u TO t",
        ],
        "",
    );
    let place = |log| HistoryPlace { log, offset: 200 };
    let renamed = ColumnsNow::GoneSince(&history.turns[4]);
    assert_eq!(history.columns_now(place(4), "shop", "u"), renamed);
    assert_eq!(history.columns_now(place(1), "shop", "t"), renamed);
    assert_eq!(kept(history.columns_now(place(5), "shop", "old")), "d b a");
    let history = self::history(
        &[
            "CREATE TABLE t (a INT, b INT, c INT, d INT, e VARCHAR(9), f ENUM('x','y'), g ENUM('x'), h INT)",
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, DROP c",
            "ALTER TABLE t MODIFY d BIGINT FIRST, CHANGE e s TEXT, MODIFY f ENUM('y','x'), MODIFY g ENUM('x','y'), MODIFY h CHAR",
            "TRUNCATE u",
        ],
        "",
    );
    assert_eq!(kept(history.columns_now(place(1), "shop", "t")), "b a - d s f! g h!");
    for statement in [
        "TRUNCATE TABLE t",
        "ALTER TABLE t DROP PARTITION p",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
    ] {
        let history = self::history(&["ALTER TABLE t ADD x INT", statement], "CREATE TABLE t (a INT, x INT)");
        assert_eq!(then(&history, 0, "t"), "a");
        assert_eq!(history.columns_now(place(0), "shop", "t"), ColumnsNow::GoneSince(&history.turns[1]));
        assert_eq!(kept(history.columns_now(place(2), "shop", "t")), "a x");
    }
}

/// The names of now; with ! those that don't take all values of then.
fn kept(columns: ColumnsNow<'_>) -> String {
    let ColumnsNow::Kept { columns, .. } = columns else { panic!("{columns:?}") };
    let shown = columns.iter().map(|column| match column {
        None => "-".to_owned(),
        Some(column) => format!("{}{}", column.now.name, if column.takes_values { "" } else { "!" }),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Texts of such statements may be read otherwise by the session's mode than here; they change no table.
#[test]
fn statements_that_change_rows_say_nothing_of_tables() {
    let insert =
        r"/* by app */ insert INTO t (path, created_at) VALUES ('C:\x\', NOW()), ('ALTER TABLE t DROP a', 1";
    expect(&[insert], "CREATE TABLE t (a INT)", &[(0, "t", "a")]);
    let altered = [insert, "/*!50100 ALTER TABLE t ADD b INT */", insert];
    expect(&altered, "CREATE TABLE t (a INT, b INT)", &[(1, "t", "a"), (2, "t", "a b")]);
}

/// ALTER statements on one table.
const MANY: usize = 5_000;

#[test]
fn many_statements_on_one_table_are_found_in_a_few_steps() {
    let alters = (0..MANY).map(|number| format!("ALTER TABLE t ALTER a SET DEFAULT {number}"));
    let mut statements: Vec<String> = alters.collect();
    statements.push(format!("ALTER TABLE t COMMENT '{}'", "é".repeat(STATEMENT_SIZE_MAX)));
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let known = history(&statements, "CREATE TABLE t (a INT)");
    let name = ("shop".to_owned(), "t".to_owned());
    let periods = known.names.get(&name).unwrap();
    assert_eq!(periods.len(), MANY + 2);
    for log in [0, 1, 2, MANY as u64 / 3, MANY as u64, u64::MAX] {
        let place = HistoryPlace { log, offset: 100 };
        let mut steps = 0;
        let found = period_at(periods, |turn| {
            steps += 1;
            known.turns[turn].place < place
        });
        assert!(steps <= 16, "{steps}");
        let is_before = |turn: &Option<TurnId>| turn.is_none_or(|turn| known.turns[turn].place < place);
        assert_eq!(found, periods.iter().rev().find(|(turn, _)| is_before(turn)).copied(), "{log}");
    }
    // Texts that are cut are told apart by what was cut.
    assert!(known.turns.iter().all(|turn| turn.statement.len() <= STATEMENT_SIZE_MAX));
    let longer = format!("{}!", statements[MANY]);
    let mut others = statements.clone();
    others[MANY] = &longer;
    assert!(known.has_statements_of(&history(&statements, "")));
    assert!(!known.has_statements_of(&history(&others, "")));
    // By its CREATE TABLE it lacks the column that all of them name.
    let disputed =
        history(&[&["CREATE TABLE t (b INT)"][..], &statements].concat(), "CREATE TABLE t (a INT)");
    assert!(disputed.versions.iter().filter(|version| version.is_disputed).count() > MANY);
}

#[test]
fn tables_of_now_may_be_those_of_a_place_with_statements_after_it() {
    let statements = [
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t MODIFY c INT FIRST",
        "CREATE TABLE u LIKE t",
        "DROP TABLE gone",
        "ALTER TABLE v NONSENSE 7",
    ];
    let mut settled = history(&statements, "");
    let now = "USE shop; CREATE TABLE t (b INT, c INT); CREATE TABLE gone (x INT); CREATE TABLE v (y INT)";
    let now_at = HistoryPlace { log: 1, offset: 200 };
    settled.settle_at(SchemaFile::parse(now).unwrap(), Some(now_at));
    for (after, table, columns) in [
        (0, "t", "a c"),
        (1, "t", "b c"),
        (2, "t", "c b"),
        (3, "u", "c b"),
        (3, "gone", "x"),
        (4, "v", "y"),
        (5, "v", "unknown since ALTER TABLE v NONSENSE 7"),
    ] {
        assert_eq!(then(&settled, after, table), columns, "{table} after {after}");
    }
}

#[test]
fn what_a_statement_after_the_tables_of_now_may_have_done_is_not_known() {
    let mut settled = history(&["CREATE TABLE w (a INT)", "ALTER TABLE `n` NONSENSE 7"], "");
    let now = SchemaFile::parse("USE shop; CREATE TABLE n (y INT)").unwrap();
    settled.settle_at(now, Some(HistoryPlace { log: 1, offset: 200 }));
    assert_eq!(then(&settled, 2, "n"), "unknown since ALTER TABLE `n` NONSENSE 7");
}
