//! The relay's log lines about clients that it refuses: they say enough for an operator to mend the cause, which the
//! client may not be told.

use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, client, sql, url};

#[test]
fn a_client_that_is_refused_is_logged_with_the_reason() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start()?;
    let folder = Folder::new();
    let mut relay = Configuration::of([url(&source)])
        .account("monitor", "")
        .account("elsewhere", "from = [\"10.0.0.0/8\"]")
        .account("safe", "require_tls = true")
        .start(&folder);
    relay.has_all_of(&source);
    let tell = |user: &str, password: &str, options: &[&str]| {
        let mut client = client(mysql, "mysql", relay.port, user, password);
        client.args(options);
        sql(client, "SELECT 1").unwrap_err()
    };
    // The client learns no more than from a server.
    for (user, password) in [("nobody", "secret"), ("monitor", "wrong"), ("elsewhere", "secret")] {
        let told = tell(user, password, &[]);
        assert!(told.contains(&format!("ERROR 1045 (28000): Access denied for user '{user}'")), "{told}");
    }
    let told = tell("safe", "secret", &["--ssl-mode=DISABLED", "--get-server-public-key"]);
    assert!(told.contains("ERROR 3159"), "{told}");
    // The client may have its answer before the line is written.
    let refused = relay.wait_for("four lines", |relay| {
        let log = relay.messages();
        let refused = log.iter().filter_map(|line| line.split_once("user '"));
        let refused: Vec<_> = refused.map(|(who, why)| (who.to_owned(), why.to_owned())).collect();
        (refused.len() >= 4).then_some(refused)
    });
    let why: Vec<_> = refused.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        why,
        [
            "nobody': there is no account of this name",
            "monitor': wrong password",
            "elsewhere': the account may not come from this address",
            "safe': Connections using insecure transport are prohibited for this account",
        ]
    );
    assert!(refused.iter().all(|(who, _)| who.contains(" from 127.0.0.1:")), "{refused:?}");
    Ok(())
}
