//! The header agrees with the sources; and programs in C, Go and Java read the same events out of a log.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_testkit::tool::{require, skip};
use binlogz_testkit::{Tool, corpus};

#[path = "attack/mod.rs"]
mod attack;
#[path = "names/mod.rs"]
mod names;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// Foreign memory is Java's own since this version.
const JAVA_MIN: u32 = 22;

fn path(of: &str) -> PathBuf {
    Path::new(CRATE).join(of)
}

#[test]
fn the_header_is_what_the_sources_say() {
    let config = cbindgen::Config::from_file(path("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    let sources = ["status", "payload", "changes", "value", "files"];
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |builder, name| {
        builder.with_src(path(&format!("src/{name}.rs")))
    });
    builder.generate().unwrap().write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let file = path("include/binlogz.h");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &header).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept == header, "{} is old: UPDATE_DOCS=1 writes it anew", file.display());
}

/// The folder with the library that cargo made beside this test.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.ancestors().skip(1).find(|folder| folder.join("libbinlogz.so").exists()).unwrap().to_owned()
}

/// A program that reads a log through the library, and how it is run.
type Program = (&'static str, Box<dyn Fn() -> Command>);

fn built(mut compiler: Command, program: PathBuf) -> Box<dyn Fn() -> Command> {
    let done = compiler.output().unwrap();
    assert!(done.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&done.stderr));
    Box::new(move || {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", library());
        command
    })
}

fn in_c(folder: &Path) -> Program {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(folder.join("in-c"));
    compiler.arg(path("examples/c/changes.c")).arg("-I").arg(path("include"));
    compiler.arg("-L").arg(library()).arg("-lbinlogz");
    ("C", built(compiler, folder.join("in-c")))
}

/// `None`: Go is not here.
fn in_go(folder: &Path) -> Option<Program> {
    if let Err(error) = Command::new("go").arg("version").output() {
        skip(&format!("go does not run: {error}"));
        return None;
    }
    let mut compiler = Command::new("go");
    compiler.args(["build", "-o"]).arg(folder.join("in-go")).arg(path("examples/go/changes.go"));
    compiler.env("CGO_ENABLED", "1").env("CGO_CFLAGS", format!("-I{}", path("include").display()));
    compiler.env("CGO_LDFLAGS", format!("-L{} -lbinlogz", library().display()));
    Some(("Go", built(compiler, folder.join("in-go"))))
}

/// `None`: no Java that is new enough is here, and none can be had.
fn in_java(_folder: &Path) -> Option<Program> {
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut programs: Vec<_> = installed.map(|found| found.path().join("bin/java")).collect();
    programs.push("java".into());
    let version = |program: &PathBuf| -> Option<u32> {
        let told = Command::new(program).arg("-version").output().ok()?.stderr;
        String::from_utf8_lossy(&told).split('"').nth(1)?.split('.').next()?.parse().ok()
    };
    let java = match programs.into_iter().find(|program| version(program) >= Some(JAVA_MIN)) {
        Some(java) => java,
        None => require(Tool::Java)?.prefix().join("bin/java"),
    };
    let run = move || {
        let mut command = Command::new(&java);
        command.arg("--enable-native-access=ALL-UNNAMED").arg(path("examples/java/Changes.java"));
        command.arg(library().join("libbinlogz.so"));
        command
    };
    Some(("Java", Box::new(run)))
}

fn run(program: &Program, log: &Path, output: &Path) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = (program.1)().arg(log).arg(output).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn programs_in_other_languages_read_compressed_rows() {
    let folder = tempfile::tempdir().unwrap();
    let found = [Some(in_c(folder.path())), in_go(folder.path()), in_java(folder.path())];
    let programs: Vec<Program> = found.into_iter().flatten().collect();
    let log = corpus::path("binlog.000005");
    let mut expanded = Vec::new();
    Rewriter::new(Rewrite::Expand).run(Input::open(&log).unwrap(), &mut expanded).unwrap();
    let mut damaged = fs::read(&log).unwrap();
    let place = damaged.len() - 200;
    damaged[place] ^= 1;
    let bad = folder.path().join("damaged");
    fs::write(&bad, damaged).unwrap();

    for program in &programs {
        let name = program.0;
        let output = folder.path().join(format!("expanded by {name}"));
        let (code, said, told) = run(program, &log, &output);
        assert_eq!((code, told.as_str()), (Some(0), ""), "{name}");
        assert_eq!(said, include_str!("all-types.txt"), "{name}");
        assert!(fs::read(&output).unwrap() == expanded, "{name}");

        let (code, _, told) = run(program, &log, &output);
        assert!(code == Some(1) && told.contains("File exists"), "{name}: {told}");
        let (code, _, told) = run(program, &bad, &folder.path().join("nothing"));
        assert!(code == Some(1) && told.contains("checksum is"), "{name}: {told}");
        assert!(!folder.path().join("nothing").exists());
    }
}
