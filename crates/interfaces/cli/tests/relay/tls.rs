//! How the relay checks the source's certificate, and its own: right ones are taken, others refused with the reason.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, sql, url};
use binlogz_testkit::{Tool, require_tool};

/// Runs openssl in the folder.
fn openssl(folder: &Folder, arguments: &str) {
    let mut command = Tool::Openssl.find().unwrap().command("openssl");
    let output = command.args(arguments.split(' ')).current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn authority(folder: &Folder, name: &str) {
    openssl(
        folder,
        &format!(
            "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        ),
    );
}

/// One that is over soon, and when: no server takes one that is over already.
fn passing_certificate(folder: &Folder, name: &str, names: &str) -> ([PathBuf; 2], SystemTime) {
    let end = SystemTime::now() + Duration::from_secs(15);
    let seconds = end.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let date = Command::new("date")
        .args(["--utc", &format!("--date=@{seconds}"), "+%Y%m%d%H%M%SZ"])
        .output()
        .unwrap();
    let date = String::from_utf8(date.stdout).unwrap();
    folder.put("index.txt", "");
    folder.put("serial", "77\n");
    folder.put(
        "ca.cnf",
        format!(
            "[ca]\ndefault_ca=one\n[one]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n\
             policy=any\nx509_extensions=names\n[any]\ncommonName=supplied\n[names]\nsubjectAltName={names}\n"
        ),
    );
    openssl(
        folder,
        &format!("req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"),
    );
    openssl(
        folder,
        &format!(
            "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key -enddate {} -in {name}.csr -out {name}.pem",
            date.trim()
        ),
    );
    ([folder.path(&format!("{name}.pem")), folder.path(&format!("{name}.key"))], end)
}

/// A certificate for these names by the authority `ca`.
fn certificate(folder: &Folder, name: &str, names: &str) -> [PathBuf; 2] {
    folder.put(&format!("{name}.ext"), format!("subjectAltName={names}\n"));
    openssl(
        folder,
        &format!("req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"),
    );
    openssl(
        folder,
        &format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile {name}.ext -out {name}.pem"
        ),
    );
    [folder.path(&format!("{name}.pem")), folder.path(&format!("{name}.key"))]
}

#[test]
fn the_source_must_be_who_it_should_be() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Openssl);
    let folder = Folder::new();
    authority(&folder, "ca");
    authority(&folder, "other");
    let good = certificate(&folder, "good", "IP:127.0.0.1");
    let elsewhere = certificate(&folder, "elsewhere", "DNS:db.example");
    certificate(&folder, "client", "DNS:relay");
    let path = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let source = mysql
        .sandbox()
        .option("ssl-ca", &path(&folder.path("ca.pem")))
        .option("ssl-cert", &path(&good[0]))
        .option("ssl-key", &path(&good[1]))
        .start()
        .unwrap();
    source
        .sql(
            "CREATE USER strict IDENTIFIED BY 'repl' REQUIRE X509; GRANT REPLICATION SLAVE ON *.* TO strict;
             CREATE DATABASE d",
        )
        .unwrap();
    let shows = |[certificate, key]: &[PathBuf; 2]| {
        let files =
            format!("SET GLOBAL ssl_cert = '{}', GLOBAL ssl_key = '{}'", path(certificate), path(key));
        source.sql(&format!("{files}; ALTER INSTANCE RELOAD TLS")).unwrap();
    };
    // What is said in the end: nothing where the source is followed.
    let outcome = |user: &str, tls: &str| -> String {
        let server = format!("mysql://{user}@127.0.0.1:{}", source.port());
        let mut relay = Configuration::of([server]).source(tls).account("reader", "").start(&folder);
        relay.wait_for("outcome", |relay| {
            let status = relay.status();
            match status["source"]["phase"] == "receiving" {
                true => Some(String::new()),
                false => Some(status["last_errors"][0]["text"].as_str()?.to_owned()),
            }
        })
    };
    let verify = |mode: &str, ca: &str| format!("ssl_mode = \"{mode}\"\nssl_ca = \"{ca}.pem\"");

    assert_eq!(outcome("repl", &verify("verify_ca", "ca")), "");
    assert_eq!(outcome("repl", &verify("verify_identity", "ca")), "");
    for mode in ["verify_ca", "verify_identity"] {
        let refused = outcome("repl", &verify(mode, "other"));
        assert!(
            refused.contains("TLS with 127.0.0.1") && refused.contains("certificate"),
            "{mode}: {refused}"
        );
    }
    // The name counts for one of them alone, the time for both.
    shows(&elsewhere);
    assert_eq!(outcome("repl", &verify("verify_ca", "ca")), "");
    let refused = outcome("repl", &verify("verify_identity", "ca"));
    assert!(refused.contains("not valid for name"), "{refused}");
    let (passing, end) = passing_certificate(&folder, "passing", "IP:127.0.0.1");
    shows(&passing);
    while SystemTime::now() < end + Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(100));
    }
    for mode in ["verify_ca", "verify_identity"] {
        let refused = outcome("repl", &verify(mode, "ca"));
        assert!(refused.contains("expired"), "{mode}: {refused}");
    }
    assert_eq!(outcome("repl", "ssl_mode = \"required\""), "", "nothing is verified");

    // An account of which a certificate is demanded.
    shows(&good);
    let with =
        format!("{}\nssl_cert = \"client.pem\"\nssl_key = \"client.key\"", verify("verify_identity", "ca"));
    assert_eq!(outcome("strict", &with), "");
    let refused = outcome("strict", &verify("verify_identity", "ca"));
    assert!(refused.contains("1045"), "{refused}");
}

#[test]
fn a_relay_without_a_certificate_makes_itself_one() {
    let mysql = require_tool!(Tool::Mysql);
    let mariadb = require_tool!(Tool::Mariadb114);
    require_tool!(Tool::Openssl);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let configuration = Configuration::of([url(&source)]).account("safe", "require_tls = true");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let asked = "SELECT @@GLOBAL.gtid_mode";
    let by_mysql = |relay: &Relay, options: &[&str]| relay.sql(mysql, "safe", options, asked);
    assert_eq!(by_mysql(&relay, &["--ssl-mode=REQUIRED"]).unwrap(), "ON\n");
    let certificate = folder.path("kept/relay-cert.pem");
    let trusted = format!("--ssl-ca={}", certificate.display());
    assert_eq!(by_mysql(&relay, &["--ssl-mode=VERIFY_CA", &trusted]).unwrap(), "ON\n");
    // It checks the certificate unless it is told otherwise: the relay proves that it knows the password.
    let by_mariadb = |password| sql(client(mariadb, "mariadb", relay.port, "safe", password), asked);
    assert_eq!(by_mariadb("secret").unwrap(), "ON\n");
    let denied = by_mariadb("wrong").unwrap_err();
    assert!(denied.contains("Access denied"), "{denied}");

    // The same is told everywhere, also after a restart.
    let mut print = Tool::Openssl.find().unwrap().command("openssl");
    print.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&certificate);
    let printed = String::from_utf8(print.output().unwrap().stdout).unwrap();
    let (_, fingerprint) = printed.trim().split_once('=').unwrap();
    assert!(relay.said().contains(fingerprint), "{fingerprint}\n{}", relay.said());
    let told = |relay: &Relay| relay.status()["tls_fingerprint"].as_str().map(str::to_owned);
    assert_eq!(told(&relay).as_deref(), Some(fingerprint));
    drop(relay);
    let relay = configuration.start(&folder);
    assert_eq!(told(&relay).as_deref(), Some(fingerprint));
    drop(relay);
    let relay = configuration.listen("tls = false").start(&folder);
    assert_eq!(told(&relay), None);
    let refused = by_mysql(&relay, &["--ssl-mode=REQUIRED"]).unwrap_err();
    assert!(refused.contains("SSL is required"), "{refused}");
}
