//! Found by the model: EXCHANGE PARTITION … WITHOUT VALIDATION puts rows into partitions that they don't belong to. Two rows may have one key
//! then, and a server doesn't find them by it. `table-at` refuses such a table rather than lose rows.

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

const TABLES: &str = "CREATE DATABASE d; USE d; CREATE TABLE other (id INT PRIMARY KEY, v INT);
    CREATE TABLE t (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (8), PARTITION p1 VALUES LESS THAN MAXVALUE);
    INSERT INTO t VALUES (1, 1), (14, 1), (30, 1);";

fn table_at(server: &MysqlSandbox, folder: &Folder, gtid: &str) -> Ran {
    let place = place_of(server);
    folder.run(["table-at", "d.t", "--at", gtid, "--server", &place, "--no-defaults", "--user=root"])
}

fn is_refused(ran: &Ran, why: &str) {
    assert_ne!(ran.code, Some(0), "{}", ran.text());
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

const STATEMENT: &str = "rows may stand in partitions that they don't belong to since";
const REPAIR: &str = "REPAIR TABLE t: it may have moved rows";
const NOW: &str = "d.t has rows in partitions that they don't belong to";

#[test]
fn tables_with_misplaced_rows_are_refused_by_name() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    let begin = last_gtid(&server)?;
    server.sql("INSERT INTO d.t VALUES (2, 2)")?;
    let whole = table_at(&server, &folder, &begin);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    assert!(whole.text().ends_with("-- 3 rows\n"), "{}", whole.text());
    // A row that no other has the key of, then one whose key another row has.
    for rows in ["(20, 2)", "(14, 2)"] {
        server.sql(&format!(
                "USE d; DELETE FROM other; INSERT INTO other VALUES {rows}; ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE other WITHOUT VALIDATION"
            ))?;
        let moment = last_gtid(&server)?;
        is_refused(&table_at(&server, &folder, &moment), NOW);
        // The other table is known.
        let options =
            ["table-at", "d.other", "--at", &moment, "--server", &place_of(&server), "--no-defaults"];
        let other = folder.run(options.into_iter().chain(["--user=root"]));
        assert_eq!(other.code, Some(0), "{}", other.stderr);
        // REPAIR puts the one where it belongs, and the log of the moment has the statement.
        if rows == "(20, 2)" {
            server.flush_binary_logs()?;
            server.sql("CREATE DATABASE later")?;
            let after = last_gtid(&server)?;
            server.sql("USE d; REPAIR TABLE t")?;
            is_refused(&table_at(&server, &folder, &after), REPAIR);
            is_refused(&table_at(&server, &folder, &moment), STATEMENT);
            server.sql("DROP DATABASE later")?;
        }
    }
    // Without any of these rows all is as it should be.
    server.flush_binary_logs()?;
    server.sql("TRUNCATE TABLE d.t; INSERT INTO d.t VALUES (1, 1), (14, 1)")?;
    let moment = last_gtid(&server)?;
    server.sql("UPDATE d.t SET id = 15 WHERE id = 14")?;
    server.sql("INSERT INTO d.t VALUES (14, 9)")?;
    let whole = table_at(&server, &folder, &moment);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    assert!(whole.text().ends_with("-- 2 rows\n"), "{}", whole.text());
    Ok(())
}
