//! The page that `advise --html` writes, opened in a real browser.

use std::io::Read;

use crate::common::Folder;
use binlogz_testkit::Tool;
use binlogz_testkit::browser::render;
use binlogz_testkit::tool::require;
use serde_json::Value;

const LOG: &str = "binlog.000009";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.sample("compressed", LOG);
    folder
}

/// What an attribute of an element's tag says; entities as in HTML.
fn attribute(tag: &str, name: &str) -> String {
    let (_, value) = tag.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {tag}"));
    value.split('"').next().unwrap().replace("&quot;", "\"").replace("&amp;", "&")
}

#[test]
fn charts_are_drawn_from_the_documents_figures_and_nothing_is_asked_for() {
    let Some(chromium) = require(Tool::Chromium) else { return };
    let folder = folder();
    let ran = folder.run(["advise", "--levels=1,3,9", "--format=json", "--html=report.html", LOG]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    for (width, height) in [(1440, 2400), (390, 4000)] {
        let page = render(chromium, &folder.path("report.html"), width, height).unwrap();
        assert!(page.console.is_empty(), "{:?}", page.console);
        let canvases: Vec<_> = page.dom.split("<canvas ").skip(1).collect();
        assert!(canvases.len() >= 4, "{} charts", canvases.len());
        for canvas in &canvases {
            let tag = canvas.split('>').next().unwrap();
            assert_eq!(attribute(tag, "data-drawn"), "true", "{tag}");
        }
        // What the first chart shows is the document's.
        let shown: Value = serde_json::from_str(&attribute(canvases[0], "data-figures")).unwrap();
        let sizes: Vec<_> =
            document["levels"].as_array().unwrap().iter().map(|row| row["bytes"].clone()).collect();
        assert_eq!(shown[0], Value::from(sizes));
    }
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
    assert!(page.len() < 300_000, "{} bytes", page.len());
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
