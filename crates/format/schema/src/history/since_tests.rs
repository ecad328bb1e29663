use super::tests::in_shop;
use super::*;

/// What became, since the first statement, of the table that was called `t`: the columns that kept their values, with their places now.
fn way(statements: &[&str], now: &str) -> String {
    let mut history = TableHistory::default();
    for (number, text) in statements.iter().enumerate() {
        history.record(&in_shop(HistoryPlace { log: 1, offset: 100 * number as u64 + 100 }, text));
    }
    history.settle(SchemaFile::parse(&format!("USE shop; {now}")).unwrap_or_default());
    // The first statements may make tables.
    let made = statements.iter().take_while(|text| text.starts_with("CREATE TABLE t ")).count();
    let place = HistoryPlace { log: 1, offset: 100 * made as u64 + 50 };
    let names = match history.names_since(place, "shop", "t") {
        Ok(names) => names.iter().map(|(_, table)| &**table).collect::<Vec<_>>().join(" "),
        Err(why) => return shown(&why),
    };
    match history.since(place, "shop", "t") {
        Ok(way) => {
            let columns = way.columns.iter().map(|column| match column.changed_by {
                Some(turn) => format!("{} changed by {}", column.then.name, turn.statement),
                None => format!("{} {}", column.then.name, column.place_now().unwrap()),
            });
            let key = way.now.keys.first().map(|key| way.key_of(key));
            format!("{names}: {}; key {key:?}", columns.collect::<Vec<_>>().join(", "))
        }
        Err(why) => shown(&why),
    }
}

fn shown(why: &NoTableWay<'_>) -> String {
    match why {
        NoTableWay::MadeBy(turn) => format!("made by {}", turn.statement),
        NoTableWay::LostBy(turn) => format!("lost by {}", turn.statement),
        NoTableWay::UnknownBefore(turn) => format!("unknown before {}", turn.statement),
        NoTableWay::NotTold => "not told".into(),
    }
}

const NOW: &str =
    "CREATE TABLE t (id int NOT NULL, a int DEFAULT NULL, b varchar(9) DEFAULT NULL, PRIMARY KEY (id))";

#[test]
fn a_table_is_followed_under_its_names_and_its_columns_to_their_places() {
    for (statements, now, expected) in [
        (&[][..], NOW, "t: id 0, a 1, b 2; key Some(Some([0]))"),
        (&["ALTER TABLE t ADD a INT FIRST"], NOW, "unknown before ALTER TABLE t ADD a INT FIRST"),
        (&["ALTER TABLE t ADD a INT AFTER id"], NOW, "t: id 0, b 2; key Some(Some([0]))"),
        (
            &["ALTER TABLE t RENAME COLUMN b TO a, RENAME COLUMN a TO b"],
            NOW,
            "t: id 0, b 1, a 2; key Some(Some([0]))",
        ),
        (
            &["RENAME TABLE t TO u, v TO t", "ALTER TABLE u RENAME TO w"],
            "CREATE TABLE w (id INT PRIMARY KEY, a INT); CREATE TABLE t (x INT)",
            "t u w: id 0, a 1; key Some(Some([0]))",
        ),
        (
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(9), a INT(11))",
                "ALTER TABLE t MODIFY b varchar(9) AFTER a",
            ],
            NOW,
            "t: id 0, b 2, a 1; key Some(Some([0]))",
        ),
        // Unknown from now alone: it stood somewhere.
        (
            &["ALTER TABLE t MODIFY b VARCHAR(9) AFTER a"],
            NOW,
            "unknown before ALTER TABLE t MODIFY b VARCHAR(9) AFTER a",
        ),
        (
            &["ALTER TABLE t MODIFY a INT"],
            NOW,
            "t: id 0, a changed by ALTER TABLE t MODIFY a INT, b 2; key Some(Some([0]))",
        ),
        (
            &["ALTER TABLE t CONVERT TO CHARACTER SET gbk"],
            NOW,
            "t: id 0, a 1, b changed by ALTER TABLE t CONVERT TO CHARACTER SET gbk; key Some(Some([0]))",
        ),
        // A key of now that wasn't one.
        (&["ALTER TABLE t ADD PRIMARY KEY (id)"], NOW, "t: id 0, a 1, b 2; key Some(None)"),
        (&["CREATE TABLE t (id INT PRIMARY KEY)", "TRUNCATE t"], "", "lost by TRUNCATE t"),
        (&["DROP TABLE t", "CREATE TABLE t (id INT)"], "CREATE TABLE t (id INT)", "lost by DROP TABLE t"),
        (&["CREATE TABLE u (id INT)", "CREATE TABLE t (id INT)"], NOW, "made by CREATE TABLE t (id INT)"),
        (&["RENAME TABLE u TO t"], NOW, "made by RENAME TABLE u TO t"),
        (
            &["ALTER TABLE p EXCHANGE PARTITION q WITH TABLE t"],
            NOW,
            "lost by ALTER TABLE p EXCHANGE PARTITION q WITH TABLE t",
        ),
        (
            &["CREATE TABLE IF NOT EXISTS t (id INT)"],
            NOW,
            "unknown before CREATE TABLE IF NOT EXISTS t (id INT)",
        ),
        (
            &["ALTER IGNORE TABLE t ADD UNIQUE KEY (a)"],
            NOW,
            "lost by ALTER IGNORE TABLE t ADD UNIQUE KEY (a)",
        ),
        (&["ALTER TABLE t ENGINE = BLACKHOLE"], NOW, "lost by ALTER TABLE t ENGINE = BLACKHOLE"),
        (
            &["ALTER TABLE t COMMENT 'x' CHARSET=gbk, ENGINE = MEMORY"],
            NOW,
            "lost by ALTER TABLE t COMMENT 'x' CHARSET=gbk, ENGINE = MEMORY",
        ),
        (
            &["ALTER TABLE t COMMENT 'x' CHARSET=gbk"],
            NOW,
            "t: id 0, a 1, b changed by ALTER TABLE t COMMENT 'x' CHARSET=gbk; key Some(Some([0]))",
        ),
        (
            &["ALTER TABLE t ENGINE=`InnoDB` COMMENT 'x', FORCE"],
            NOW,
            "t: id 0, a 1, b 2; key Some(Some([0]))",
        ),
        (&["ALTER TABLE t FROBNICATE"], NOW, "unknown before ALTER TABLE t FROBNICATE"),
        (&["DROP DATABASE shop"], "", "unknown before DROP DATABASE shop"),
    ] {
        assert_eq!(way(statements, now), expected, "{statements:?}");
    }
}

#[test]
fn a_column_that_was_defined_again_keeps_its_values_if_nothing_but_words_changed() {
    for (then, again, now, keeps) in [
        ("INT", "INTEGER", "int DEFAULT NULL", true),
        ("INT", "BIGINT", "bigint DEFAULT NULL", false),
        ("INT", "INT UNSIGNED", "int unsigned DEFAULT NULL", false),
        ("DECIMAL(10,2)", "DECIMAL(10, 3)", "decimal(10,3) DEFAULT NULL", false),
        ("INT NOT NULL", "INT NOT NULL DEFAULT 7", "int NOT NULL DEFAULT 7", true),
        ("VARCHAR(9) CHARACTER SET gbk", "VARCHAR(9) CHARSET GBK", "varchar(9) CHARACTER SET gbk", true),
        ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET gbk", "varchar(9) CHARACTER SET gbk", false),
        ("VARCHAR(9)", "VARCHAR(9) COLLATE gbk_bin", "varchar(9) CHARACTER SET gbk COLLATE gbk_bin", false),
        ("VARCHAR(9)", "VARCHAR(9) ASCII", "varchar(9) CHARACTER SET latin1", false),
        ("ENUM('a','b')", "ENUM('b','a')", "enum('b','a')", false),
        ("INT AS (1)", "INT", "int DEFAULT NULL", false),
    ] {
        let create = format!("CREATE TABLE t (id INT, c {then}, PRIMARY KEY (id))");
        let again = format!("ALTER TABLE t MODIFY c {again}");
        let found =
            way(&[&create, &again], &format!("CREATE TABLE t (id int NOT NULL, c {now}, PRIMARY KEY (id))"));
        assert_eq!(!found.contains("changed by"), keeps, "{then}, {again}: {found}");
    }
    // NULL may have become another value, or the definition of now takes what that of then didn't.
    for (then, again, expected) in
        [("INT", "INT NOT NULL", "changed by"), ("INT NOT NULL", "INT", "unknown before")]
    {
        let create = format!("CREATE TABLE t (c {then})");
        let again = format!("ALTER TABLE t MODIFY c {again}");
        let now = again.replace("ALTER TABLE t MODIFY", "CREATE TABLE t (");
        let found = way(&[&create, &again], &format!("{now})"));
        assert!(found.contains(expected), "{found}");
    }
}

fn recorded(statements: &[&str]) -> TableHistory {
    let mut history = TableHistory::default();
    for (number, text) in statements.iter().enumerate() {
        history.record(&RecordedStatement {
            place: HistoryPlace { log: 1, offset: 100 * number as u64 + 100 },
            database: "shop",
            text,
            quotes_names: false,
            keeps_backslashes: false,
            has_failed: false,
        });
    }
    history
}

/// After the first statement.
const SECOND: HistoryPlace = HistoryPlace { log: 1, offset: 150 };

/// The tables of `shop` after the first statement, as far as statements name them: those that were there, and those that weren't.
fn tables(statements: &[&str]) -> String {
    match recorded(statements).tables_at(SECOND, "shop") {
        Ok((mut there, mut gone)) => {
            there.sort();
            gone.sort();
            format!("{}; not {}", there.join(" "), gone.join(" "))
        }
        Err(why) => shown(&why),
    }
}

#[test]
fn a_database_has_the_tables_of_the_place_as_far_as_statements_tell() {
    for (statements, expected) in [
        (&["CREATE TABLE a (id INT)", "CREATE TABLE B (id INT)"][..], "a; not B"),
        (&["DROP TABLE a", "CREATE TABLE a (id INT)"], "; not a"),
        (&["SELECT 1", "DROP TABLE a, other.b"], "a; not "),
        (&["SELECT 1", "RENAME TABLE a TO other.a, other.b TO c"], "a; not c"),
        (&["SELECT 1", "ALTER TABLE a ADD x INT, RENAME TO b"], "a; not b"),
        (&["SELECT 1", "DROP DATABASE other"], "; not "),
        (&["DROP DATABASE shop", "CREATE TABLE a (id INT)"], "; not a"),
        (&["SELECT 1", "DROP DATABASE Shop"], "unknown before DROP DATABASE Shop"),
        (&["SELECT 1", "RENAME TABLE a b"], "unknown before RENAME TABLE a b"),
        (&["RENAME TABLE a b"], "; not "),
    ] {
        assert_eq!(tables(statements), expected, "{statements:?}");
    }
}

#[test]
fn a_table_of_now_has_its_names_since_a_place() {
    for (statements, expected) in [
        (&["SELECT 1"][..], Ok("t, the same")),
        (&["SELECT 1", "RENAME TABLE a TO b, b TO t"], Ok("a b t, the same")),
        (&["RENAME TABLE b TO t", "ALTER TABLE t ADD x INT FIRST"], Ok("b t, altered")),
        (&["ALTER TABLE t ADD x INT FIRST", "SELECT 1"], Ok("t, the same")),
        (&["SELECT 1", "ALTER TABLE other.a ADD x INT, RENAME TO t"], Ok("a t, altered")),
        (&["SELECT 1", "CREATE TABLE t LIKE b"], Ok("t, altered")),
        (&["CREATE TABLE t LIKE b", "SELECT 1"], Ok("t, the same")),
        (&["SELECT 1", "DROP TABLE t", "CREATE TABLE t (x INT)"], Ok("t, altered")),
        (&["SELECT 1", "RENAME TABLE t b"], Err("RENAME TABLE t b")),
        (&["RENAME TABLE t b", "SELECT 1"], Ok("t, the same")),
    ] {
        let history = recorded(statements);
        let found = history.names_of_now(SECOND, "shop", "t");
        let found = found.map(|(names, is_altered)| {
            let names: Vec<_> = names.iter().map(|(_, table)| table.as_str()).collect();
            format!("{}, {}", names.join(" "), if is_altered { "altered" } else { "the same" })
        });
        let found = found.as_ref().map(String::as_str).map_err(|turn| turn.statement.as_str());
        assert_eq!(found, expected, "{statements:?}");
    }
}
