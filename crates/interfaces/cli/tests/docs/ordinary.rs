//! The guides beside an ordinary server: nobody set anything about its logs, its tables have foreign keys, triggers, ENUM, SET and DECIMAL columns, the
//! last log is in use, and its people live in another zone than UTC. Each page's commands run as they are printed, on one server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use binlogz_testkit::ordinary::{
    AFTER_THE_MISTAKE, MISTAKE, ORDINARY_SHOP, ORDINARY_ZONE, after_the_backup, before_the_backup,
    ordinary_server,
};
use binlogz_testkit::s3::S3Server;
use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::guides::{beside, blocks, run};
use crate::managed;
use crate::pages::read;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The tables from which rows went; others go on being written to.
const LOST_FROM: [&str; 4] = ["orders", "items", "cards", "letters"];

/// A page's commands, in their order, with what was printed on the way to each.
struct GuideScript(String);

impl GuideScript {
    /// The blocks with these tags. A block with a tag of `instead` is for what the block before it can't do: that one has to fail first.
    fn of(page: &str, tags: &[&str], instead: &[&str]) -> GuideScript {
        let mut script: Vec<String> = Vec::new();
        for (tag, text) in blocks(page) {
            if instead.contains(&tag) {
                let before = script.pop().expect("a block before it");
                let needless = format!("{tag}: the block before went through");
                script.push(format!(
                    "if {{\n{before}\n}} 2>&1; then echo '{needless}' >&2; exit 1; fi\n{text}"
                ));
            } else if tags.contains(&tag) {
                script.push(text.to_owned());
            }
        }
        GuideScript(script.join("\n"))
    }

    /// Other words at one place of the page.
    #[track_caller]
    fn with(self, text: &str, other: &str) -> GuideScript {
        assert!(self.0.contains(text), "{text:?} is not in\n{}", self.0);
        GuideScript(self.0.replace(text, other))
    }
}

/// A shop after a mistake, and last night's backup in another server.
struct OrdinaryNight {
    server: MysqlSandbox,
    restored: MysqlSandbox,
    /// Checksums of the tables as they were.
    sums: Vec<(String, String)>,
    /// Servers before 9.6 don't log what foreign keys do.
    instead: &'static [&'static str],
}

impl OrdinaryNight {
    fn new(
        mysql: &'static InstalledTool,
        instead: &'static [&'static str],
    ) -> Result<OrdinaryNight, Box<dyn std::error::Error>> {
        let server = ordinary_server(mysql).start()?;
        server.sql(ORDINARY_SHOP)?;
        server.sql(&before_the_backup())?;
        let restored = restored_backup(&server, mysql)?;
        server.sql(&after_the_backup())?;
        let sums = sums(&server)?;
        let night = OrdinaryNight { server, restored, sums, instead };
        night.mistake()?;
        Ok(night)
    }

    fn mistake(&self) -> Outcome {
        self.server.sql(MISTAKE)?;
        self.server.sql(AFTER_THE_MISTAKE)?;
        assert_ne!(sums(&self.server)?, self.sums);
        Ok(())
    }

    /// Statements of a page, as its reader would give them, with a password. Accounts stay out of the log: old replicas don't know how these log in.
    fn statements(&self, page: &str, begin: &str) -> Outcome {
        let statements = sql_block(&read(page), begin).replace('…', "repl");
        self.server.sql(&format!("SET sql_log_bin = 0;\n{statements}"))?;
        Ok(())
    }

    /// Runs a page where its people are; it prints all of this.
    #[track_caller]
    fn prints(&self, page: &str, script: &GuideScript, expected: &[&str]) -> String {
        let script = beside(&self.server, &script.0)
            .replace("-h db2", &format!("-h 127.0.0.1 -P {}", self.restored.port()))
            .replace("@db2", &format!("@127.0.0.1:{}", self.restored.port()));
        let said = run(page, &script, &[("MYSQL_PWD", "repl"), ("TZ", ORDINARY_ZONE)]);
        for expected in expected {
            assert!(said.contains(expected), "{page}: {expected:?} is not in\n{said}");
        }
        said
    }

    /// What is in the logs, and would compression help?
    fn looks(&self) -> Outcome {
        let page = "docs/guides/compression.md";
        self.statements(page, "CREATE USER monitor")?;
        let script = GuideScript::of(&read(page), &["server"], &[]);
        self.prints(page, &script, &["Turn compression on at mysql://monitor@", "SET PERSIST"]);
        let page = "docs/guides/which-table.md";
        let script = GuideScript::of(&read(page), &["server", "monitor"], &[]);
        self.prints(page, &script, &["shop      orders", "Largest transactions", "of the log"]);
        Ok(())
    }

    /// Compression is turned on as the page says, rows are written, and it is turned off again.
    fn compresses(&self) -> Outcome {
        let page = "docs/guides/compression.md";
        self.statements(page, "SET PERSIST")?;
        self.server.sql("UPDATE shop.orders SET note = CONCAT(note, 'compressed')")?;
        let figures = self.server.sql(sql_block(&read(page), "SELECT * FROM"))?;
        assert!(figures.contains("ZSTD"), "{figures}");
        self.server.sql("SET PERSIST binlog_transaction_compression = OFF; FLUSH BINARY LOGS")?;
        let off = "SET PERSIST binlog_transaction_compression = OFF";
        assert!(read(page).contains(off), "{page} lacks the way back");
        Ok(())
    }

    fn finds_who_did_it(&self) -> Outcome {
        let page = "docs/guides/follow-a-delete.md";
        let script = GuideScript::of(&read(page), &["server"], &[]);
        let expected = [
            "DELETE shop.orders",
            ", thread ",
            "- customer  'customer 42'",
            "- channel   'web'",
            "- status    'paid'",
            "- flags     'gift,express'",
            "###   @1=42",
        ];
        self.prints(page, &script, &expected);
        Ok(())
    }

    /// By GTID, and up to the printed time; then the rest without the mistake.
    fn restores(&self) -> Outcome {
        let page = "docs/guides/recover.md";
        let by_time = "time=$(binlogz rows shop.orders --where '@1 = 42' --operation delete backup | grep '  DELETE ' | tail -1 | sed 's/  DELETE.*//')\n\
             echo \"it was at $time\"\n\
             binlogz recover --check --from backup --to restore@db2 --until-datetime \"$time\"\n";
        let check = "binlogz recover --check";
        let script = GuideScript::of(&read(page), &["server"], &[]).with(check, &format!("{by_time}{check}"));
        let said = self.prints(
            page,
            &script,
            &["42\tcustomer 42\t42.50", "/after the delete", "DELETE 15 shop.orders"],
        );
        assert!(said.lines().any(|line| line.starts_with("it was at ") && line.ends_with(" EST")), "{said}");
        assert_eq!(sums(&self.restored)?, self.sums);
        Ok(())
    }

    fn undoes(&self) -> Outcome {
        let page = "docs/guides/undo-a-delete.md";
        let text = read(page);
        let there = ["DELETE 15 shop.orders", "0 statements not undone", "42\tcustomer 42\t42.50"];
        let told: &[&str] = if self.instead.is_empty() { &[] } else { &["--cascades takes them back"] };
        let script = GuideScript::of(&text, &["server"], self.instead);
        self.prints(page, &script, &[&there[..], told].concat());
        assert_eq!(sums(&self.server)?, self.sums);

        // The logs as files, and a table with a trigger that would run again.
        self.mistake()?;
        self.server.sql(
            "CREATE TRIGGER shop.seen AFTER INSERT ON shop.items FOR EACH ROW INSERT INTO shop.visits (page) VALUES ('again')",
        )?;
        let files = "--schema admin@db1 /var/lib/mysql/binlog.[0-9]*";
        assert!(text.contains(&format!("`{files}` in place of `--server admin@db1`")), "{page}");
        let binlog = "--server admin@db1 --format binlog";
        let cascades = "--server admin@db1 --cascades admin@db1 --format binlog";
        let script = GuideScript::of(&text, &["server"], &[self.instead, &["triggers"]].concat());
        let script = if self.instead.is_empty() { script } else { script.with(binlog, cascades) };
        let script = script.with("--server admin@db1", files);
        self.prints(page, &script, &[&there[..], told, &["trigger"]].concat());
        assert_eq!(sums(&self.server)?, self.sums);
        assert_eq!(self.server.sql("SELECT COUNT(*) FROM shop.visits WHERE page = 'again'")?, "0\n");
        self.server.sql("DROP TRIGGER shop.seen")?;
        Ok(())
    }

    /// On call: the list, one transaction, and its printed command, pasted.
    fn is_taken_back_by_what_is_printed(&self) -> Outcome {
        self.mistake()?;
        let page = "docs/guides/undo-a-delete.md";
        let script = GuideScript::of(&read(page), &["server"], &[]);
        let (look, _) = script.0.split_once("\nbinlogz undo ").expect("the step after the look");
        let paste = "awk '/^take it back \\(checked\\):/ {is_command = 1; next} is_command {print; if (!/\\\\$/) exit}' shown >command";
        let script = GuideScript(format!("{look} | tee shown\n{paste}\ncat command\nsource command"));
        self.prints(page, &script, &["--host=127.0.0.1", " --user=admin", "status 'paid'"]);
        assert_eq!(sums(&self.server)?, self.sums);
        Ok(())
    }

    /// With the rights and the TLS that a managed server leaves.
    fn is_managed(&self) -> Outcome {
        let page = read(managed::PAGE);
        self.mistake()?;
        self.server.sql(&format!("SET sql_log_bin = 0;\n{}", managed::account(&page)))?;
        let script = GuideScript::of(&page, &["server"], self.instead);
        let commands = managed::commands(&self.server, &script.0);
        let said = run(managed::PAGE, &commands, &[("TZ", ORDINARY_ZONE)]);
        let back = ["INSERT INTO `shop`.`orders` (`id`,", "INSERT INTO `shop`.`cards` (`item`,"];
        for expected in [back[0], back[1], "logs are whole and follow one another", " receiving for "] {
            assert!(said.contains(expected), "{expected:?} is not in\n{said}");
        }
        Ok(())
    }

    fn is_archived(&self) -> Outcome {
        let Some(bucket) = S3Server::start() else { return Ok(()) };
        let page = "docs/guides/archive-to-s3.md";
        let script = GuideScript::of(&read(page), &["s3"], &[]);
        let script = GuideScript(format!(
            "{}\nbinlogz archive check s3://backup/db1\nbinlogz archive list s3://backup/db1",
            script.0
        ));
        let script = beside(&self.server, &script.0).replace("s3://backup", "s3://bucket");
        let settings = bucket.settings();
        let mut variables: Vec<_> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        variables.push(("TZ", ORDINARY_ZONE));
        let said = run(page, &script, &variables);
        for expected in ["PURGE BINARY LOGS TO", "whole and follow one another", "EST"] {
            assert!(said.contains(expected), "{page}: {expected:?} is not in\n{said}");
        }
        Ok(())
    }

    /// The relay of Debezium's page, which the page of the fleet then looks at.
    fn is_relayed(&self) -> Outcome {
        let page = "docs/guides/debezium.md";
        let text = read(page);
        self.statements(page, "CREATE USER repl")?;
        let script = GuideScript::of(&text, &["server"], &[]);
        self.prints(
            page,
            &script,
            &["binlog-u.000001", "COUNT(*)\n", "### DELETE FROM `shop`.`orders`", "receiving"],
        );

        let fleet = "docs/guides/fleet.md";
        let text = read(fleet);
        let archives = GuideScript::of(&text, &["test"], &[]);
        let (relay, _) = toml_block(&text, "[[relay]]").split_once("\n\n").expect("a relay, then archives");
        let (begin, _) = script.0.split_once("binlogz dump").expect("the relay's start");
        let watched = format!("cat >> fleet.toml <<END\n{relay}\nEND\n");
        let archives = archives
            .with("samples/plain/binlog.*", "/var/lib/mysql/binlog.[0-9]*")
            .with("\nEND\n", &format!("\nEND\n{watched}"))
            .with(
                "binlogz fleet --targets fleet.toml\n",
                "binlogz fleet --targets fleet.toml\nbinlogz relay doctor relay1.example.com:3308 || [ $? = 1 ]\n",
            );
        let script = GuideScript(format!("{begin}\n{}", archives.0))
            .with("relay1.example.com:3308", "127.0.0.1:$http_port");
        self.prints(fleet, &script, &["orders", "backup", "Whole"]);
        Ok(())
    }

    /// MariaDB follows through the relay, and has the same rows.
    fn is_followed_by_mariadb(&self) -> Outcome {
        let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")])?;
        let page = "docs/guides/old-replica.md";
        let text = read(page);
        let script = GuideScript::of(&text, &["server"], &[]);
        let (start, look) = script.0.split_once("binlogz relay status").expect("the last step");
        let follow = sql_block(
            &text,
            "CHANGE MASTER TO MASTER_HOST='relay', MASTER_PORT=3307, MASTER_USER='repl', MASTER_PASSWORD='…',\n    MASTER_USE_GTID=no",
        );
        let rows =
            LOST_FROM.map(|table| format!("SELECT '{table}', t.* FROM shop.{table} t ORDER BY 2;")).join(" ");
        let rows = format!("SET time_zone = '+00:00'; {rows}");
        let (here, there) = (shell(&self.server.client()), shell(&mariadb.client()));
        let script = format!(
            "{start}\nsed \"s/PORT=3307/PORT=$relay_port/\" <<'SQL' | {there}\n{follow}\nSQL\n\
             until {here} -e \"{rows}\" >here && {there} -e \"{rows}\" >there 2>/dev/null && cmp -s here there; do\n\
             [ $SECONDS -lt 120 ] || {{ {there} -e 'SHOW SLAVE STATUS' | tr '\\t' '\\n' >&2; diff here there >&2; exit 1; }}\nsleep 0.2\ndone\n\
             echo \"equal: $(wc -l <there) rows\"\nbinlogz relay status{look}"
        );
        let script = GuideScript(script)
            .with("'relay'", "'127.0.0.1'")
            .with("'…'", "'repl'")
            .with("address = \"0.0.0.0:3307\"", "address = \"127.0.0.1:0\"")
            .with("address = \"127.0.0.1:3308\"", "address = \"127.0.0.1:0\"")
            .with("/var/lib/binlogz", "relay");
        self.prints(page, &script, &["equal: ", " receiving for ", ", uncompressed: "]);
        Ok(())
    }

    /// The pipe's other end is a file here: `scripts/soak/kafka.sh` has the broker.
    fn goes_into_a_pipe(&self) -> Outcome {
        let page = "docs/guides/kafka.md";
        let script = GuideScript::of(&read(page), &["kafka"], &[]);
        let script = GuideScript(format!(
            "kafka-console-producer.sh() {{ cat >messages; }}\n{}\ngrep -c '\\tnull$' messages\ngrep '\"id\":42[,}}]' messages",
            script.0
        ))
        .with(" binlog.0000*", " /var/lib/mysql/binlog.0000*")
        .with("\\tnull", "\tnull");
        let said = self.prints(
            page,
            &script,
            &["\"status\":\"paid\"", "\"customer\":\"customer 42\"", "\"op\":\"d\""],
        );
        assert!(said.contains("{\"id\":42}\tnull"), "a tombstone: {said}");
        Ok(())
    }
}

/// Last night's backup, in a server that was empty.
fn restored_backup(
    server: &MysqlSandbox,
    mysql: &'static InstalledTool,
) -> Result<MysqlSandbox, Box<dyn std::error::Error>> {
    let folder = Folder::new();
    let restored = ordinary_server(mysql).start()?;
    let mut dump = server.installed().command("mysqldump");
    dump.args([
        "--no-defaults",
        "--user=root",
        "--single-transaction",
        "--set-gtid-purged=ON",
        "--databases",
        "shop",
    ]);
    dump.arg(format!("--socket={}", server.socket().display()));
    let dumped = dump.output()?;
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    restored.sql_file(&folder.put("backup.sql", dumped.stdout))?;
    restored.sql("SET sql_log_bin = 0; CREATE USER restore@'%' IDENTIFIED BY 'repl'; GRANT ALL ON *.* TO restore@'%' WITH GRANT OPTION")?;
    Ok(restored)
}

fn sums(server: &MysqlSandbox) -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut sums = server.checksum_tables("shop")?;
    sums.retain(|(name, _)| LOST_FROM.iter().any(|table| name.ends_with(table)));
    assert_eq!(sums.len(), LOST_FROM.len(), "{sums:?}");
    Ok(sums)
}

/// The block of SQL that begins so.
#[track_caller]
fn sql_block<'p>(page: &'p str, begin: &str) -> &'p str {
    block_of(page, "sql", begin)
}

#[track_caller]
fn toml_block<'p>(page: &'p str, begin: &str) -> &'p str {
    block_of(page, "toml", begin)
}

#[track_caller]
fn block_of<'p>(page: &'p str, language: &str, begin: &str) -> &'p str {
    let open = format!("\n```{language}\n");
    let mut found = page.split(open.as_str()).skip(1).filter(|rest| rest.starts_with(begin));
    let rest = found.next().unwrap_or_else(|| panic!("no {language} that begins with {begin}"));
    rest.split_once("\n```").expect("an end").0
}

/// A client as a shell calls it.
fn shell(client: &std::process::Command) -> String {
    let words = [client.get_program()].into_iter().chain(client.get_args());
    let words: Vec<_> = words.map(|word| format!("'{}'", word.display())).collect();
    format!("env -u MYSQL_PWD {}", words.join(" "))
}

/// A way through guides.
type GuidedWay = fn(&OrdinaryNight) -> Outcome;

/// What is done on the server, in this order, each by its guides.
const WAYS: [(&str, GuidedWay); 10] = [
    ("look, and ask about compression", OrdinaryNight::looks),
    ("who did it", OrdinaryNight::finds_who_did_it),
    ("restore", OrdinaryNight::restores),
    ("undo", OrdinaryNight::undoes),
    ("undo by the printed command", OrdinaryNight::is_taken_back_by_what_is_printed),
    ("a managed server", OrdinaryNight::is_managed),
    ("archive", OrdinaryNight::is_archived),
    ("Kafka", OrdinaryNight::goes_into_a_pipe),
    ("a relay for Debezium, and the fleet", OrdinaryNight::is_relayed),
    ("MariaDB behind a relay", OrdinaryNight::is_followed_by_mariadb),
];

/// Goes on after one that fails, so that a run shows all that do.
fn goes_all_ways(mysql: &'static InstalledTool, instead: &'static [&'static str]) -> Outcome {
    let night = OrdinaryNight::new(mysql, instead)?;
    let mut failed = Vec::new();
    for (what, way) in WAYS {
        let begun = Instant::now();
        let gone = catch_unwind(AssertUnwindSafe(|| way(&night).map_err(|error| error.to_string())));
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{what}: {seconds:.1} s");
        match gone {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{what}: {error}")),
            // It has told already.
            Err(_) => failed.push(what.to_owned()),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    night.compresses()
}

#[test]
fn the_guides_are_right_on_an_ordinary_server() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    goes_all_ways(mysql, &[])
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn the_guides_are_right_on_an_ordinary_8_0() -> Outcome {
    let mysql = require_tool!(Tool::Mysql80);
    require_tool!(Tool::Mariadb);
    goes_all_ways(mysql, &["cascades"])
}

#[test]
fn a_block_instead_of_another_needs_that_one_to_fail() {
    let page = "\n```sh server\nfalse\n```\n\n```sh triggers\necho instead\n```\n\n```sh other\nfalse\n```\n";
    let script = GuideScript::of(page, &["server"], &["triggers"]);
    assert_eq!(run("a page", &script.0, &[]), "instead\n");
    let fails = GuideScript::of(&page.replace("false", "true"), &["server"], &["triggers"]);
    let ran = catch_unwind(|| run("a page", &fails.0, &[]));
    assert!(ran.is_err());
}
