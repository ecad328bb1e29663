//! The guides' commands work: each block that begins with ```` ```sh test ```` is run, the blocks of a page one after the
//! other, in an empty folder that has the samples.

use std::process::Command;

use crate::common::Folder;
use crate::pages::{read, root};

/// The blocks of a page that are to be run, as one script.
fn script(text: &str) -> String {
    text.split("\n```sh test\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect::<Vec<_>>()
        .join("\n")
}

/// What is wrong with a page's commands, if anything is.
fn fails(page: &str) -> Option<String> {
    let script = script(&read(page));
    assert!(!script.is_empty(), "{page} has nothing to run");
    let folder = Folder::new();
    std::os::unix::fs::symlink(root().join("samples"), folder.path("samples")).unwrap();
    let binlogz = std::path::Path::new(env!("CARGO_BIN_EXE_binlogz"));
    let path = format!("{}:{}", binlogz.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{page}: {}\n{script}\n{error}", output.status))
}

#[test]
fn the_commands_of_every_guide_work() {
    let pages = ["compression", "follow-a-delete", "recover", "archive-to-s3"];
    let wrong: Vec<_> = pages.iter().filter_map(|name| fails(&format!("docs/guides/{name}.md"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks_that_are_not_marked_are_not_run() {
    let page =
        "\n```sh\nfalse\n```\n\n```sh test\ntrue\n```\n\n```text\nfalse\n```\n\n```sh test\ntrue 2\n```\n";
    assert_eq!(script(page), "true\ntrue 2");
}
