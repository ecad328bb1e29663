//! `recover` in the cases that `recovery.rs` doesn't have: TLS to the server, an archive on S3, a server of 8.0.33. For
//! `scripts/soak/recover.sh`: each takes two servers.

use std::path::{Path, PathBuf};

use binlogz_testkit::s3::{BUCKET, S3Server};
use binlogz_testkit::{Tool, require_tool};

use crate::recovery::{Story, checksums, gno, is_free, ran, settings_of};

#[test]
#[ignore = "long: scripts/soak/recover.sh runs it"]
fn from_s3_over_tls() {
    let mysql = require_tool!(Tool::Mysql);
    let Some(s3) = S3Server::start() else { return };
    let story = Story::new(mysql);
    let url = format!("s3://{BUCKET}/arc");
    let logs = story.logs();
    let args = ["archive", "create", "--to", &url].map(PathBuf::from).into_iter().chain(logs);
    let made = story.folder.binlogz(args).envs(s3.settings()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = story.restored();
    server
        .sql("SET SQL_LOG_BIN = 0; CREATE USER far@'%' IDENTIFIED BY 'far' REQUIRE SSL; GRANT ALL ON *.* TO far@'%' WITH GRANT OPTION")
        .unwrap();
    let settings = settings_of(&server);
    let to = format!("far@127.0.0.1:{}", server.port());
    let mut command =
        story.folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--ssl-mode", "REQUIRED"]);
    command.args(["--to", &to, "--from", &url]).env("MYSQL_PWD", "far").envs(s3.settings());
    ran(command).is_done();
    assert_eq!(checksums(&server), story.end);
    is_free(&server, &settings);
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/recover.sh runs it"]
fn a_server_of_8_0_comes_to_a_gtid_and_to_the_end() {
    let mysql80 = require_tool!(Tool::Mysql80);
    let story = Story::new(mysql80);
    let server = story.restored();
    let settings = settings_of(&server);
    let (middle, at_middle) = &story.middle;
    ran(story.recover(&server, &["--until-gtid", &story.gtid(*middle)])).is_done();
    assert_eq!((gno(&server), &checksums(&server)), (*middle, at_middle));
    let logs = story.logs();
    let from: Vec<&Path> = logs.iter().map(PathBuf::as_path).collect();
    ran(story.recover_from(&server, &from, &[])).is_done();
    assert_eq!(checksums(&server), story.end);
    is_free(&server, &settings);
}
