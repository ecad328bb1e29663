//! The page that `advise --html` writes, opened in a real browser.

use std::io::Read;

use crate::common::{Folder, Ran};
use binlogz_testkit::browser::assert_readable;
use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

const LOG: &str = "binlog.000009";

fn folder() -> Folder {
    Folder::with_sample("compressed", LOG)
}

/// The values of the bars of the chart with this title.
fn bars(page: &str, title: &str) -> Vec<Value> {
    let (_, card) = page.split_once(&format!("<h2>{title}</h2>")).unwrap_or_else(|| panic!("no {title}"));
    let (card, _) = card.split_once("</section>").unwrap();
    let values = card.split("data-value=\"").skip(1).map(|value| value.split('"').next().unwrap());
    values.map(|value| serde_json::from_str(value).unwrap()).collect()
}

#[test]
fn the_page_can_be_read_on_every_screen_and_shows_the_documents_figures() {
    let chromium = require_tool!(Tool::Chromium);
    let folder = folder();
    let logs: Vec<String> = (1..9).map(|number| format!("binlog.00000{number}")).collect();
    for log in &logs {
        folder.sample("plain", log);
    }
    let mut pages = Vec::new();
    // The budget of a sample is never used up: of so little, all is sampled.
    for (name, how, logs) in
        [("advise", "--exact", logs.as_slice()), ("advise-small", "--budget=10m", &[LOG.to_owned()])]
    {
        let mut args =
            vec!["advise", "--levels=1,3,9,19", how, "--force", "--format=json", "--html=report.html"];
        args.extend(logs.iter().map(String::as_str));
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let page = String::from_utf8(folder.read("report.html")).unwrap();
        // The first bar is the log without compression.
        let mut sizes = vec![document["summary"][0]["plain_bytes"].clone()];
        sizes.extend(document["levels"].as_array().unwrap().iter().map(|row| row["bytes"].clone()));
        assert_eq!(bars(&page, "Size of the log by level"), sizes);
        pages.push((name, page));
    }
    for looked in assert_readable(chromium, &pages) {
        assert!(looked.shapes > 6 * 20, "{looked:?}");
    }
}

#[test]
fn no_name_in_a_log_becomes_part_of_the_page() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start().unwrap();
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let rows = "(), ".repeat(99) + "()";
    let insert = format!("INSERT INTO `{evil}`.`{evil}` VALUES {rows};").repeat(30);
    source
        .sql(&format!(
            "CREATE DATABASE `{evil}`; CREATE TABLE `{evil}`.`{evil}` (id INT PRIMARY KEY AUTO_INCREMENT, body CHAR(40) DEFAULT 'some text'); \
             {insert} FLUSH BINARY LOGS"
        ))
        .unwrap();
    let log = source.binlogs().unwrap().remove(0);
    let folder = Folder::new();
    // A file may be called almost anything.
    let name = "<script>alert(1)<&\"'.000001";
    folder.put(name, std::fs::read(log).unwrap());
    let ran = folder.run(["advise", "--levels=3", "--exact", "--html=report.html", name]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let page = String::from_utf8(folder.read("report.html")).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;&amp;&quot;&#39;.000001"), "{page}");
    // The table is in a chart, in a table and in the document.
    assert!(page.matches("&lt;img src=x onerror=alert(1)&gt;").count() >= 2);
    assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
    assert_eq!(page.matches("</script>").count(), 1);
}

#[test]
fn the_page_names_the_server_that_was_asked_and_says_the_saving_once() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start().unwrap();
    let rows = "(), ".repeat(99) + "()";
    let insert = format!("INSERT INTO shop.t VALUES {rows};").repeat(60);
    source
        .sql(&format!(
            "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body CHAR(80) DEFAULT 'some text'); {insert}"
        ))
        .unwrap();
    let folder = Folder::new();
    let server = format!("127.0.0.1:{}", source.port());
    let mut command =
        folder.binlogz(["advise", "--no-defaults", "--levels=3", "--exact", "--html=report.html"]);
    command.arg(format!("mysql://repl@{server}")).env("MYSQL_PWD", "repl");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page = String::from_utf8(folder.read("report.html")).unwrap();
    let title = format!("<h1>What compressing the binary log of {server} would save, and cost</h1>");
    for said in [title.as_str(), &format!("<code>binlogz doctor {server}</code>")] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // The names of logs don't repeat it.
    assert!(page.contains("<p>binlog.00000") && !page.contains("HOST:PORT"), "{page}");
    let (answer, _) = page.split_once("<h2>What to do</h2>").unwrap();
    assert_eq!((answer.matches("(saves ").count(), answer.matches(" saved").count()), (1, 0), "{answer}");
}

#[test]
fn the_page_holds_the_very_document_and_no_address() {
    let folder = folder();
    let ran = folder.run(["advise", "--levels=3", "--format=json", "--html=report.html", LOG]);
    let page = String::from_utf8(folder.read("report.html")).unwrap();
    let (_, figures) = page.split_once("id=\"figures\">").unwrap();
    let (figures, _) = figures.split_once("</script>").unwrap();
    let [inside, printed] =
        [figures.as_bytes(), &ran.stdout].map(|text| serde_json::from_slice::<Value>(text).unwrap());
    assert_eq!(inside, printed);
    for request in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(request), "{request}");
    }
    assert!(page.len() < 100_000, "{} bytes", page.len());
}

#[test]
fn a_page_replaces_nothing_without_force() {
    let folder = folder();
    folder.put("report.html", "mine");
    let args = ["advise", "--levels=3", "--html=report.html", LOG];
    folder.run(args).fails("report.html: exists already; --force replaces it");
    assert_eq!(folder.read("report.html"), b"mine");
    let ran = folder.run(args.into_iter().chain(["--force"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut start = [0; 15];
    folder.read("report.html").as_slice().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"<!DOCTYPE html>");
    let input = folder.read(LOG);
    assert_eq!(folder.run(["advise", "--force", &format!("--html={LOG}"), LOG]).code, Some(2));
    assert_eq!(folder.read(LOG), input);
}
