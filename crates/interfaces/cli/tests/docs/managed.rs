//! The guide for managed servers: its steps beside a private server that leaves an account what such a server leaves it: the rights
//! to replicate and to read tables, no SUPER, no FILE, and TLS alone.

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::guides::{SHOP, beside, day, run, script};
use crate::pages::read;

pub(crate) const PAGE: &str = "docs/guides/managed.md";

/// The statements of the guide's step 2, with a password.
pub(crate) fn account(page: &str) -> String {
    let statements = page.split("\n```sql\n").find(|block| block.starts_with("CREATE USER")).unwrap();
    let (statements, _) = statements.split_once("\n```").unwrap();
    assert!(statements.contains(" IDENTIFIED BY '…' REQUIRE SSL;"), "{statements}");
    statements.replace('…', "repl")
}

/// The guide's commands with the private server in place of `db1`. Its certificate has no host's name.
pub(crate) fn commands(server: &MysqlSandbox, script: &str) -> String {
    let port = server.port();
    let bundle = server.datadir().join("ca.pem");
    let commands = beside(server, script)
        .replace("host = db1", "host = 127.0.0.1")
        .replace("port = 3306", &format!("port = {port}"))
        .replace("password = …", "password = repl")
        .replace("VERIFY_IDENTITY", "VERIFY_CA")
        .replace("db1:3306", &format!("127.0.0.1:{port}"));
    format!("cp '{}' bundle.pem\n{commands}", bundle.display())
}

/// The same connection without TLS, and with certificates that aren't the server's: neither may work.
const REFUSED: &str = r#"
sed s/VERIFY_CA/DISABLED/ db1.cnf >plain.cnf
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=another -keyout key.pem -out another.pem 2>/dev/null
sed s/bundle.pem/another.pem/ db1.cnf >another.cnf
for file in plain another; do
    binlogz rows shop.orders --defaults-file=$file.cnf --server "127.0.0.1:$PORT" 2>$file.error && echo "$file went through"
    binlogz dump --defaults-file=$file.cnf -R "$first" 2>>$file.error >/dev/null && echo "$file went through"
    cat $file.error
done
"#;

#[test]
fn a_managed_server_is_read_followed_and_archived() -> Result<(), Box<dyn std::error::Error>> {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Openssl);
    let server = mysql.sandbox().option("require-secure-transport", "ON").start()?;
    let page = read(PAGE);
    server.sql(SHOP)?;
    server.sql(&day())?;
    server.flush_binary_logs()?;
    server.sql(&account(&page))?;
    let grants = server.sql("SHOW GRANTS FOR binlogz@'%'")?;
    assert_eq!(grants, "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `binlogz`@`%`\n");
    let commands = commands(&server, &script(&page));
    let said = run(PAGE, &format!("PORT={}\n{commands}\n{REFUSED}", server.port()), &[]);
    for expected in [
        "of the log",                         // advise
        "### DELETE FROM `shop`.`orders`",    // dump -R
        "DELETE shop.orders",                 // rows --server
        "INSERT INTO `shop`.`orders` (`id`,", // undo --server
        "1 log is whole",                     // archive check
        " receiving for ",                    // relay status
        "Access denied for user 'binlogz'",   // without TLS
        "invalid peer certificate",           // with another's
    ] {
        assert!(said.contains(expected), "{PAGE}: {expected:?} is not in\n{said}");
    }
    assert!(!said.contains("went through"), "{said}");
    Ok(())
}
