use super::*;
use crate::session;

/// A database `shop` with two tables.
struct Shop;

impl KnownTables for Shop {
    fn user_tables(&self) -> Result<Vec<(String, String)>, StatementRefusal> {
        Ok(["orders", "Items"].map(|table| ("shop".to_owned(), table.to_owned())).to_vec())
    }
}

fn translated(text: &str) -> Result<TranslatedStatement, StatementRefusal> {
    translate(text, &session::for_tests(), &Shop)
}

/// A statement as the query engine takes it.
#[track_caller]
fn told(text: &str) -> String {
    translated(text).unwrap().statement.to_string()
}

#[track_caller]
fn number(text: &str) -> (u16, String) {
    let refusal = translated(text).unwrap_err();
    (refusal.number, refusal.line)
}

#[test]
fn tables_are_those_of_the_default_database_and_of_all_logs() {
    assert_eq!(told("SELECT gtid FROM changes"), "SELECT gtid FROM \"binlog\".\"changes\"");
    assert_eq!(told("SELECT 1 FROM `orders`"), "SELECT 1 FROM \"shop\".\"orders\"");
    assert_eq!(told("SELECT Items.key FROM Items"), "SELECT Items.key FROM \"shop\".\"Items\" AS Items");
    assert_eq!(
        told("WITH w AS (SELECT 1 AS `A`) SELECT `a` FROM W"),
        "WITH w AS (SELECT 1 AS A) SELECT a FROM W"
    );
    assert_eq!(number("SELECT 1 FROM nothing"), (1146, "Table 'shop.nothing' doesn't exist".to_owned()));
    assert_eq!(number("SELECT 1 FROM nowhere.orders"), (1049, "Unknown database 'nowhere'".to_owned()));
    assert_eq!(number("SELECT 1 FROM binlog.orders").0, 1146);
    assert_eq!(told("SELECT 1 FROM DUAL"), "SELECT 1");
}

#[test]
fn tables_at_moments_keep_their_names() {
    for (text, expected) in [
        (
            "SELECT orders.id FROM orders AS OF '10:42'",
            "SELECT orders.id FROM \"shop\".\"orders🕙10:42\" AS orders",
        ),
        ("SELECT o.id FROM `shop`.`Old` as of \"a:1-3\" o", "SELECT o.id FROM \"shop\".\"Old🕙a:1-3\" o"),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    assert_eq!(number("SELECT 1 FROM changes AS OF '10:42', binlog.changes AS OF '10:42'").0, 1146);
}

#[test]
fn operators_bind_as_in_mysql() {
    assert_eq!(told("SELECT 10 DIV 3 + 1"), "SELECT 10 DIV 3 + 1");
    let Statement::Query(query) = translated("SELECT 10 DIV 3 + 1").unwrap().statement else { panic!() };
    let shown = format!("{:?}", query.body);
    assert!(shown.find("op: MyIntegerDivide").unwrap() < shown.find("op: Plus").unwrap(), "{shown}");
    assert_eq!(told("SELECT 1 = 1 || 0 && 1"), "SELECT 1 = 1 OR 0 AND 1");
    assert_eq!(
        told("SELECT `before` ->> '$.a' = 1 FROM changes"),
        "SELECT (json_value((before), ('$.a'))) = 1 FROM \"binlog\".\"changes\""
    );
    assert_eq!(
        told("SELECT gtid AS g FROM changes WHERE 1 = 1 OR 2 = 2 HAVING G IN ('a')"),
        "SELECT gtid AS g FROM \"binlog\".\"changes\" WHERE (1 = 1 OR 2 = 2) AND ((gtid) IN ('a'))"
    );
    assert_eq!(told("SELECT count(*) c FROM changes HAVING c > 1").matches("HAVING").count(), 1);
    assert_eq!(told("SELECT 1 LIMIT 2, 3"), "SELECT 1 LIMIT 3 OFFSET 2");
    assert_eq!(told("SELECT \"a\\\"b\" /*! , 2 */ -- end"), "SELECT 'a\"b', 2");
}

#[test]
fn functions_are_told_in_the_engines_words() {
    assert_eq!(told("SELECT IF(1, 'a', 'b')"), "SELECT (CASE WHEN (1) THEN ('a') ELSE ('b') END)");
    assert_eq!(told("SELECT CONCAT('a', 1)"), "SELECT (CAST(('a') AS VARCHAR) || CAST((1) AS VARCHAR))");
    assert_eq!(
        told("SELECT GROUP_CONCAT(DISTINCT gtid ORDER BY gtid SEPARATOR ';') FROM changes"),
        "SELECT string_agg(DISTINCT gtid, ';' ORDER BY gtid) FROM \"binlog\".\"changes\""
    );
    assert_eq!(told("SELECT @@sql_mode, @@SESSION.autocommit, VERSION() + 0").matches('@').count(), 0);
    assert_eq!(
        told("SELECT CAST('1' AS UNSIGNED), CONVERT('a' USING utf8mb4)"),
        "SELECT CAST('1' AS BIGINT UNSIGNED), 'a'"
    );
    assert_eq!(number("SELECT DATE_FORMAT(NOW(), '%D')").0, 1235);
    assert_eq!(number("SELECT @@nothing").0, 1193);
    assert_eq!(number("SELECT 1 + @a").0, 1235);
}

#[test]
fn what_would_mean_something_else_is_refused() {
    for text in [
        "SELECT 1 FROM orders PARTITION (p0)",
        "SELECT 'a' = 'A' COLLATE utf8mb4_0900_ai_ci",
        "SELECT CAST('a' AS BINARY(3))",
    ] {
        assert_eq!(number(text).0, 1235, "{text}");
    }
    assert_eq!(number("SELECT _latin1 x'E9'").0, 1115);
    assert_eq!(number("SELECT CONVERT('a' USING latin1)").0, 1115);
    assert_eq!(told("SELECT 'a' COLLATE utf8mb4_bin, _utf8mb4 'a' AS b"), "SELECT 'a', 'a' AS b");
    assert_eq!(told("SELECT CAST('abc' AS CHAR(2))"), "SELECT (left((CAST('abc' AS VARCHAR)), (2)))");
    assert_eq!(told("SELECT CAST(1.5 AS DECIMAL)"), "SELECT CAST(1.5 AS DECIMAL(10,0))");
    assert_eq!(told("SELECT SUBSTRING('abc', 2)"), "SELECT SUBSTRING('abc', 2)");
    for text in ["SELECT SUBSTR('abc', -2)", "SELECT SUBSTRING('abc', 0, 1)", "SELECT MID('abc', -2, 1)"] {
        assert!(told(text).contains("THEN 2147483647 END"), "{text}");
    }
    assert_eq!(number("SELECT GROUP_CONCAT(gtid SEPARATOR 5) FROM changes").0, 1064);
    assert_eq!(told("SELECT STDDEV(key) FROM orders").matches("stddev_pop(key)").count(), 1);
    assert_eq!(told("SELECT LOG(100)"), "SELECT (ln((100)))");
    assert_eq!(told("SELECT FOUND_ROWS()"), "SELECT FOUND_ROWS()");
}

#[test]
fn an_answer_has_no_more_rows_than_the_session_wants() {
    let session = MysqlSession { rows_max: 2, ..session::for_tests() };
    let told = |text: &str| translate(text, &session, &Shop).unwrap().statement.to_string();
    assert_eq!(told("SELECT 1 UNION SELECT 2"), "SELECT 1 UNION SELECT 2 LIMIT 2");
    assert_eq!(told("SELECT 1 LIMIT 5"), "SELECT 1 LIMIT 5");
    assert!(!told("SHOW TABLES").contains("LIMIT"));
}

#[test]
fn columns_are_called_by_the_words_of_the_statement() {
    let names = |text: &str| translated(text).unwrap().names;
    let given = |names: &[&str]| AnswerNames::Given(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(
        names("SELECT  COUNT( * ) , 1+1 AS `Two`, c.GTID FROM changes c"),
        given(&["COUNT( * )", "Two", "GTID"])
    );
    assert_eq!(names("(SELECT 'a,b', (1) UNION SELECT 2, 3)"), given(&["'a,b'", "(1)"]));
    assert_eq!(
        told("SELECT 1, 1, 2 AS a, 3 AS `A`"),
        "SELECT 1, 1 AS \"column 2\", 2 AS a, 3 AS \"column 4\""
    );
    assert_eq!(names("SELECT 1, 1, 2 AS a, 3 AS `A`"), given(&["1", "1", "a", "A"]));
    let around = names("SELECT 1, changes.*, 2 x FROM changes");
    assert_eq!(around.names(["a", "b", "c", "d"].map(str::to_owned).to_vec()), ["1", "b", "c", "x"]);
}

#[test]
fn lists_are_queries_of_system_tables() {
    let list = translated("SHOW FULL TABLES FROM shop LIKE 'o\\_%'").unwrap();
    assert_eq!(list.names, AnswerNames::Given(vec!["Tables_in_shop".to_owned(), "Table_type".to_owned()]));
    assert!(list.is_listing);
    assert_eq!(list.system.iter().map(|(_, table)| table.as_str()).collect::<Vec<_>>(), ["tables"]);
    for text in [
        "SHOW DATABASES",
        "SHOW SCHEMAS WHERE `Database` = 'shop'",
        "SHOW COLUMNS IN orders",
        "DESCRIBE shop.orders id",
        "DESC changes",
        "EXPLAIN orders",
        "SHOW FULL FIELDS FROM orders FROM shop LIKE 'a%'",
        "SHOW INDEX FROM orders",
        "SHOW CREATE TABLE orders",
        "SHOW CREATE DATABASE `shop`",
        "SHOW GLOBAL STATUS LIKE 'Ssl%'",
        "SHOW ENGINES",
        "SHOW CHARACTER SET",
        "SHOW COLLATION WHERE Charset = 'utf8mb4' AND Id > 1",
        "SHOW PROCESSLIST",
        "SHOW GRANTS",
        "SHOW FULL PROCESSLIST",
        "SHOW TRIGGERS",
        "SHOW FUNCTION STATUS WHERE Db = 'shop'",
        "SHOW TABLE STATUS;",
        "SHOW SESSION VARIABLES WHERE Variable_name = 'sql_mode' AND TRUE",
        "SELECT * FROM INFORMATION_SCHEMA.TABLES",
    ] {
        assert!(translated(text).unwrap_or_else(|error| panic!("{text}: {error}")).is_listing, "{text}");
    }
    for (text, expected) in [
        ("SHOW COLUMNS FROM nothing", 1146),
        ("SHOW TABLES FROM nowhere", 1049),
        ("SHOW NOTHING", 1064),
        ("SHOW TABLES LIKE 'a' nothing", 1064),
        ("SHOW CREATE VIEW v", 1235),
        ("SELECT * FROM information_schema.nothing", 1146),
    ] {
        assert_eq!(number(text).0, expected, "{text}");
    }
    assert!(!translated("SELECT 1 FROM changes, information_schema.tables").unwrap().is_listing);
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let (code, line) = number("SELECT (1\nFROM changes");
    assert_eq!(code, 1064);
    assert!(line.contains("near 'FROM changes' at line 2"), "{line}");
    assert!(number("SELECT 1; SELECT 2").1.contains("near 'SELECT 2' at line 1"));
    assert_eq!(number("SELECT 'no end").0, 1064);
    assert_eq!(number(" ; ").0, 1065);
    for text in ["DELETE FROM orders", "create table t (a int)", "INSERT INTO orders VALUES (1)"] {
        assert_eq!(number(text), (1290, READ_ONLY.to_owned()), "{text}");
    }
}
