//! Packs logs into segments and unpacks them again, and prints the size and time of each.
//!
//! usage: `pack-block [--workers N] [--level fast|default|max] [--together] LOG…`

use std::sync::Arc;
use std::time::Instant;

use binlogz_archive::Level;
use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::restore;
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_binlog::gtid::{GtidInterval, GtidSet};

fn main() -> binlogz_archive::Result<()> {
    let mut workers = 1;
    let mut together = false;
    let mut level = Level::default();
    let mut paths = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--workers" => workers = args.next().and_then(|number| number.parse().ok()).expect("a number"),
            "--level" => {
                level = match args.next().as_deref() {
                    Some("fast") => Level::Fast,
                    Some("max") => Level::Max,
                    _ => Level::Default,
                }
            }
            "--together" => together = true,
            _ => paths.push(arg),
        }
    }
    let sets: Vec<&[String]> = if together { vec![&paths] } else { paths.chunks(1).collect() };
    for paths in sets {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let storage = ArchiveFolder::new(dir.path());
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&storage, workers, &mut told)?;
        creator.level(level);
        let start = Instant::now();
        let mut size = 0;
        for path in paths {
            let log = std::fs::read(path).expect("a log that can be read");
            size += log.len();
            creator.add(path, Arc::new(log))?;
        }
        creator.finish()?;
        let packing = start.elapsed();
        let manifest = Manifest::read(&storage)?.unwrap_or_default();
        let start = Instant::now();
        for file in &manifest.files {
            restore::whole(&storage, file, &mut std::io::sink(), workers)?;
        }
        let unpacking = start.elapsed();
        one_transaction(&storage, &manifest)?;
        let packed: u64 = manifest.files.iter().map(|file| file.packed_size).sum();
        if together {
            manifest.files.iter().for_each(|file| println!("  {}: {}", file.name, file.packed_size));
        }
        let speed = |time: std::time::Duration| size as f64 / 1e6 / time.as_secs_f64();
        let pack = speed(packing);
        let unpack = speed(unpacking);
        println!("{}: {size} -> {packed}, pack {pack:.1} MB/s, unpack {unpack:.1} MB/s", paths.join(" "));
    }
    Ok(())
}

/// Restores a transaction in the middle of each log alone.
fn one_transaction(storage: &ArchiveFolder, manifest: &Manifest) -> binlogz_archive::Result<()> {
    for file in &manifest.files {
        let gtids = file.gtid_set()?;
        let Some((tsid, [interval, ..])) = gtids.iter().next() else { continue };
        let middle = interval.start() + (interval.end() - interval.start()) / 2;
        let mut wanted = GtidSet::default();
        wanted.add_interval(*tsid, GtidInterval::new(middle, middle + 1)?);
        let gtid = wanted.to_string();
        let selection = TransactionSelection { gtids: Some(wanted), ..TransactionSelection::default() };
        let start = Instant::now();
        let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn std::io::Write>);
        let restored = restore::chosen(storage, file, &selection, 2, &mut out)?;
        println!("  {gtid} alone: {:.3} s, {restored:?}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
