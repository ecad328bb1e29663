//! The laws of compress and expand, over every real log in the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_flow::{Input, Rewrite, Summary, rewrite};
use binlogz_payload::{CompressOptions, CompressionLevel};

fn run(bytes: &[u8], how: Rewrite, workers: usize) -> (Vec<u8>, Summary) {
    let mut out = Vec::new();
    let summary =
        rewrite(Input::Places(Arc::new(bytes.to_vec())), &mut out, how, workers, None, &mut |_| {}).unwrap();
    (out, summary)
}

fn compress(bytes: &[u8], level: i64) -> Vec<u8> {
    run(bytes, Rewrite::Compress(options(level)), 2).0
}

fn options(level: i64) -> CompressOptions {
    CompressOptions { level: CompressionLevel::clamped(level), ..CompressOptions::default() }
}

fn expand(bytes: &[u8]) -> Vec<u8> {
    run(bytes, Rewrite::Expand, 2).0
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus"), &mut files);
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples"), &mut files);
    assert!(files.len() > 5, "the corpus is missing");
    files
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.starts_with(&binlogz_binlog::MAGIC)
        {
            files.push((path, bytes));
        }
    }
}

/// Where two files differ first.
fn same(path: &Path, what: &str, got: &[u8], expected: &[u8]) {
    if got != expected {
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        panic!(
            "{}: {what}: {} bytes, expected {}; first difference at {at:?}",
            path.display(),
            got.len(),
            expected.len()
        );
    }
}

#[test]
fn law_1_expand_undoes_compress() {
    for (path, bytes) in corpus() {
        let plain = expand(&bytes);
        same(&path, "expand is idempotent", &expand(&plain), &plain);
        for level in [1, 3, 19] {
            same(&path, "expand(compress(x)) = expand(x)", &expand(&compress(&bytes, level)), &plain);
            same(&path, "expand(compress(plain)) = plain", &expand(&compress(&plain, level)), &plain);
        }
    }
}

#[test]
fn law_7_any_number_of_workers_gives_the_same_bytes() {
    for (path, bytes) in corpus() {
        for how in [Rewrite::Expand, Rewrite::Compress(options(3)), Rewrite::Recompress(options(5))] {
            let (one, _) = run(&bytes, how, 1);
            same(&path, "three workers", &run(&bytes, how, 3).0, &one);
        }
    }
}

#[test]
fn recompressing_is_expanding_and_compressing() {
    for (path, bytes) in corpus() {
        let (recompressed, _) = run(&bytes, Rewrite::Recompress(options(7)), 2);
        same(&path, "recompress", &recompressed, &compress(&expand(&bytes), 7));
    }
}
