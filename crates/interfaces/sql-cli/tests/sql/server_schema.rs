//! Names of columns and keys from a server: `--schema SERVER`, in MySQL and MariaDB.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, SandboxServer, Tool, require_tool};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Ran, sql};
use crate::export::files;

/// How long a followed server's transactions may take to be exported.
const PATIENCE: Duration = Duration::from_secs(300);

/// Tables whose log has neither names nor keys, and what isn't a table any more.
const TABLES: &str = "CREATE DATABASE `My Shop`; CREATE TABLE `My Shop`.`Order Items` (id INT PRIMARY KEY, `a``b` VARCHAR(10), \
     double_id INT AS (id * 2) STORED); INSERT INTO `My Shop`.`Order Items` (id, `a``b`) VALUES (1, 'tea'); \
     CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(20)); \
     INSERT INTO shop.item VALUES (7, 'cup'); CREATE TABLE shop.gone (id INT); INSERT INTO shop.gone VALUES (9); \
     DROP TABLE shop.gone; CREATE VIEW shop.seen AS SELECT * FROM shop.item; ";
const ITEMS: &str = "SELECT key, after.\"a`b\", after.double_id FROM \"My Shop\".\"Order Items\"";

/// The program with a server as its schema, over that server's logs.
fn ask(server: &SandboxServer, schema: &str, statement: &str) -> Ran {
    let mut command = sql(["--format", "csv", "--schema", schema, statement]);
    command.args(server.binlogs().unwrap()).env("HOME", server.datadir()).output().unwrap().into()
}

fn by_socket(server: &SandboxServer) -> String {
    format!("root@{}", server.socket().display())
}

fn mysql_with_tables(mysql: &'static InstalledTool) -> MysqlSandbox {
    // The log has columns that the server hides.
    let server = mysql.sandbox().option("show-gipk-in-create-table-and-information-schema", "OFF").start();
    let server = server.unwrap();
    server.sql(TABLES).unwrap();
    let keyless = "SET sql_generate_invisible_primary_key = ON; CREATE TABLE shop.note (text VARCHAR(20)); \
                   INSERT INTO shop.note VALUES ('milk')";
    server.sql(keyless).unwrap();
    server
}

#[test]
fn a_server_names_columns_and_keys() {
    let server = mysql_with_tables(require_tool!(Tool::Mysql));
    let place = by_socket(&server);
    let items = "key,\"Order Items.after[a`b]\",\"Order Items.after[double_id]\"\n\"{\"\"id\"\":1}\",tea,2\n";
    assert_eq!(ask(&server, &place, ITEMS).ok().lines().last(), items.lines().last());
    let statement = "SELECT key, after.text FROM shop.note";
    let note = ask(&server, &place, statement).ok();
    assert_eq!(note.lines().last(), Some("\"{\"\"my_row_id\"\":1}\",milk"));
    // As the statements in its log tell it.
    let gone = ask(&server, &place, "SELECT after.id FROM shop.gone").ok();
    assert_eq!(gone.lines().last(), Some("9"));
    // By TCP, with an account that may see one table.
    let tcp = |account: &str| format!("{account}@127.0.0.1:{}", server.port());
    server.sql("CREATE USER one@'127.0.0.1'; GRANT SELECT ON shop.item TO one@'127.0.0.1'").unwrap();
    let one = "SELECT after.name FROM shop.item UNION ALL SELECT after.\"a`b\" FROM \"My Shop\".\"Order Items\" ORDER BY 1";
    assert_eq!(ask(&server, &tcp("one"), one).ok().lines().skip(1).collect::<Vec<_>>(), ["cup", "tea"]);

    server
        .sql("CREATE USER nobody@'127.0.0.1', writer@'127.0.0.1'; GRANT INSERT (id) ON shop.item TO writer@'127.0.0.1'")
        .unwrap();
    let failure = |schema: &str| ask(&server, schema, "SELECT 1").failure();
    let port = server.port();
    assert_eq!(failure(&tcp("nobody")), format!("127.0.0.1:{port}: has no tables that this account may see"));
    let denied = failure(&tcp("writer"));
    assert!(
        denied.starts_with(&format!("127.0.0.1:{port}: ")) && denied.contains("denied to user"),
        "{denied}"
    );
    assert!(denied.ends_with("; expected an account with SELECT on `shop`.`item`"), "{denied}");
    let refused = failure(&tcp("repl"));
    assert!(refused.starts_with(&format!("127.0.0.1:{port}: ")), "{refused}");
    assert!(refused.contains("Access denied for user 'repl'@"), "{refused}");
    let away = failure("root@127.0.0.1:1");
    assert!(away.starts_with("connect to 127.0.0.1:1: "), "{away}");
    let unnamed = Ran::from(sql(["--login-path", "shop", "SELECT 1", "log"]).output().unwrap()).failure();
    assert_eq!(unnamed, "--login-path is for servers, but none is named, expected --schema SERVER");
}

#[test]
fn mariadb_names_columns_and_keys() {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    server.sql(TABLES).unwrap();
    let items = ask(&server, &by_socket(&server), ITEMS).ok();
    assert_eq!(items.lines().last(), Some("\"{\"\"id\"\":1}\",tea,2"));
}

/// A following export, ended with the test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The columns of the rows' images in the last file of a data set.
fn image_columns(data_set: &Path) -> Vec<String> {
    let path = files(data_set).pop().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema();
    match schema.field_with_name("after").unwrap().data_type() {
        datafusion::arrow::datatypes::DataType::Struct(fields) => {
            fields.iter().map(|field| field.name().clone()).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn exports_have_the_names_of_the_server() {
    let server = mysql_with_tables(require_tool!(Tool::Mysql));
    let folder = tempfile::tempdir().unwrap();
    let export = |to: &Path, options: &[&str]| {
        let mut command = sql(["export", "--schema", &by_socket(&server), "--to"]);
        command.arg(to).args(options).env("HOME", folder.path());
        command
    };
    let some = folder.path().join("some");
    let logs: Vec<PathBuf> = server.binlogs().unwrap();
    let run = |options: &[&str]| Ran::from(export(&some, options).args(&logs).output().unwrap());
    assert!(
        run(&["--table", "shop.nothing"]).failure().ends_with("has no such tables that this account may see")
    );
    run(&["--table", "shop.item"]).ok();
    assert_eq!(image_columns(&some.join("shop/item")), ["id", "name"]);

    // Tables that come while it follows have names, too.
    let to = folder.path().join("lake");
    let errors = folder.path().join("errors");
    let mut command = export(&to, &["--interval", "1", "--follow", &by_socket(&server)]);
    let _following =
        Following(command.stdout(Stdio::null()).stderr(File::create(&errors).unwrap()).spawn().unwrap());
    let wait_for = |data_set: &str| {
        let begin = Instant::now();
        while !to.join(data_set).is_dir() || files(&to.join(data_set)).is_empty() {
            assert!(begin.elapsed() < PATIENCE, "{:?}", fs::read_to_string(&errors));
            thread::sleep(Duration::from_millis(50));
        }
        image_columns(&to.join(data_set))
    };
    assert_eq!(wait_for("shop/item"), ["id", "name"]);
    assert_eq!(wait_for("shop/gone"), ["id"]);
    server
        .sql("CREATE TABLE shop.late (number INT, word TEXT); INSERT INTO shop.late VALUES (1, 'now')")
        .unwrap();
    assert_eq!(wait_for("shop/late"), ["number", "word"]);

    // The new log alone doesn't tell what the table was before its column moved, and that is said.
    server
        .sql(
            "INSERT INTO shop.item VALUES (8, 'pot'); ALTER TABLE shop.item MODIFY name VARCHAR(20) FIRST; \
             INSERT INTO shop.item (id, name) VALUES (9, 'pan')",
        )
        .unwrap();
    let errors = folder.path().join("later errors");
    let mut command = export(&some, &["--interval", "1", "--follow", &by_socket(&server)]);
    let _later =
        Following(command.stdout(Stdio::null()).stderr(File::create(&errors).unwrap()).spawn().unwrap());
    let begin = Instant::now();
    let told = loop {
        let told = fs::read_to_string(&errors).unwrap();
        if told.ends_with('\n') {
            break told;
        }
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(50));
    };
    assert!(told.contains("shop.item: ") && told.contains("ALTER TABLE shop.item MODIFY name"), "{told}");
}
