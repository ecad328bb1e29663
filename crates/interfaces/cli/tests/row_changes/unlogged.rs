//! Servers that log only some databases: what their logs lack isn't known, and is refused or named.

use binlogz_testkit::{InstalledTool, MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::rewind::{rewound, rewound_in_place};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

/// A server with an option, rows in two databases, a moment, and changes since.
struct UnloggedStory {
    server: MysqlSandbox,
    folder: Folder,
    moment: String,
    /// The option as messages have it.
    shown: &'static str,
}

impl UnloggedStory {
    fn new(
        mysql: &'static InstalledTool,
        (option, value, shown): (&str, &str, &'static str),
    ) -> Result<Self> {
        let server = mysql.sandbox().option(option, value).start()?;
        // Without a default database, statements are logged.
        server.sql(
            "CREATE DATABASE shop; CREATE DATABASE other; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); CREATE TABLE other.t LIKE shop.t;
             INSERT INTO shop.t VALUES (1, 1); INSERT INTO other.t VALUES (1, 1)",
        )?;
        let moment = last_gtid(&server)?;
        server.sql("UPDATE shop.t SET v = 2; UPDATE other.t SET v = 2")?;
        let folder = Folder::new();
        Ok(UnloggedStory { server, folder, moment, shown })
    }

    fn table_at(&self, table: &str) -> Ran {
        let place = place_of(&self.server);
        let front = ["table-at", table, "--at", &self.moment, "--format=csv", "--no-defaults", "--user=root"];
        self.folder.run(front.iter().chain(&["--server", &place]))
    }

    fn rows(&self, table: &str) -> Ran {
        self.folder.run(["rows", table, "--no-defaults", "--user=root", "--server", &place_of(&self.server)])
    }

    fn names_the_database(&self, ran: &Ran) {
        let line = format!("other.t: {}: changes in the database other aren't logged", self.shown);
        assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
    }

    fn names_statements(&self, ran: &Ran) {
        let line = format!("{}: statements such as ALTER TABLE and TRUNCATE that were run with ", self.shown);
        assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
    }
}

const OPTIONS: [(&str, &str, &str); 2] = [
    ("binlog-do-db", "shop", "binlog-do-db is shop"),
    ("binlog-ignore-db", "other", "binlog-ignore-db is other"),
];

#[test]
fn tables_that_a_server_does_not_log_are_refused_or_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for option in OPTIONS {
        let story = UnloggedStory::new(mysql, option)?;
        let ran = story.table_at("other.t");
        assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]), "{}", ran.stderr);
        story.names_the_database(&ran);
        let ran = story.table_at("shop.t");
        assert_eq!((ran.code, ran.text()), (Some(1), "id,v\n1,1\n"), "{}", ran.stderr);
        story.names_statements(&ran);
        let ran = story.rows("other.t");
        assert_eq!(ran.code, Some(1), "{}", ran.text());
        story.names_the_database(&ran);
        let ran = story.rows("shop.t");
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    }
    Ok(())
}

#[test]
fn a_rewind_of_a_server_that_logs_some_databases_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for option in OPTIONS {
        let story = UnloggedStory::new(mysql, option)?;
        let UnloggedStory { server, folder, moment, .. } = &story;
        for table in ["other.t", "other.*"] {
            let ran = rewound(folder, server, moment, &["--table", table]);
            assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
            assert!(ran.stderr.contains("changes in the database other aren't logged"), "{}", ran.stderr);
        }
        let ran = rewound_in_place(folder, server, moment, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("it doesn't log all databases: changes in the others stay"),
            "{}",
            ran.stderr
        );
        story.names_statements(&ran);
        assert_eq!(server.sql("SELECT v FROM shop.t; SELECT v FROM other.t")?, "1\n2\n");
    }
    Ok(())
}
