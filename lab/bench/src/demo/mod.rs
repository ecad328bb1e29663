//! `binlogz demo`: the whole product on private servers, told step by step as a user would type it.
//!
//! `scene` has the servers and runs commands; this file has the story. However the demo ends, its servers, its relay and
//! its files go with it.

mod scene;

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use binlogz_cli_common::Exit;
use binlogz_cli_common::companions::demo::DemoArgs;
use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::terminal;
use binlogz_figures::wrapped;

use scene::{Scene, say};

/// Time to read the text of a step.
const PAUSE: Duration = Duration::from_secs(4);

/// Order 42 with others, in transactions that are compressed.
const SHOP: &str = "\
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(40), note TEXT);
SET @@cte_max_recursion_depth = 10000;
INSERT INTO shop.orders (customer, note)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
  SELECT CONCAT('customer ', i), REPEAT('before noon; ', 4) FROM n;
";

pub(crate) fn run(args: DemoArgs) -> Result<Exit> {
    let mut scene = Scene::new()?;
    for (step, number) in STEPS.iter().zip(1..) {
        say!("\n== {number} of {}: {}", STEPS.len(), step.title);
        for line in step.words {
            say!("{}", wrapped(line, "   ", "   ", terminal::width()));
        }
        (step.act)(&mut scene)?;
        if !args.once {
            thread::sleep(PAUSE);
        }
    }
    if args.once {
        return Ok(Exit::Done);
    }
    say!("\nThe load goes on. Look at {}", scene.status_page());
    say!("Ctrl-C ends it: servers, relay and files go.");
    loop {
        thread::park();
    }
}

/// A step: the text that people read, and the actions.
struct Step {
    title: &'static str,
    words: &'static [&'static str],
    act: fn(&mut Scene) -> Result<()>,
}

const STEPS: [Step; 8] = [
    Step {
        title: "a source that compresses",
        words: &["MySQL with binlog_transaction_compression=ON, and a shop with 500 orders."],
        act: |scene| {
            scene.start_source()?;
            scene.on_source(SHOP)?;
            scene.run(&["stats", "--by", "table", scene.log().as_str()])
        },
    },
    Step {
        title: "a replica that stops",
        words: &["MariaDB follows it directly. It can't read compressed transactions:"],
        act: Scene::replica_stops,
    },
    Step {
        title: "the relay heals it",
        words: &[
            "The relay receives the same log, keeps it, and serves it uncompressed. The source stays as it is.",
        ],
        act: |scene| {
            scene.start_relay()?;
            scene.replica_follows_relay()
        },
    },
    Step {
        title: "under load",
        words: &["Orders come in, and MariaDB follows. The page shows the same, in a browser."],
        act: |scene| {
            scene.start_load()?;
            scene.replica_catches_up()?;
            scene.relay_status()
        },
    },
    Step {
        title: "an accident",
        words: &["Somebody deletes order 42. Which transaction was it, and what did the row hold?"],
        act: Scene::accident,
    },
    Step {
        title: "the accident undone",
        words: &[
            "The log has the whole row: undo writes the SQL that puts it back. You read it, then apply it.",
        ],
        act: |scene| {
            scene.undo()?;
            scene.replica_has_order()
        },
    },
    Step {
        title: "an archive",
        words: &["The closed logs, packed by column, each read back and compared before it counts."],
        act: |scene| {
            let log = scene.closed_log()?;
            scene.run(&["archive", "create", "--to", "archive", &log])?;
            scene.run(&["archive", "check", "archive"])
        },
    },
    Step {
        title: "a restore to the moment before",
        words: &["Into an empty server, up to the transaction that deleted it:"],
        act: Scene::restore,
    },
];
