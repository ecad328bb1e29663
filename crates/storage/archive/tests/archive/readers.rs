//! Readers of one object don't hinder each other: one that waits for ever, such as a paused client of a server or the
//! other half of a join, keeps no other from reading to the end.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use binlogz_archive::Level;
use binlogz_archive::block::picked::Pick;
use binlogz_archive::create::Creator;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::part::{ObjectContents, PickedLog};
use binlogz_archive::restore::{self, LastObject};
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::BoundaryMoment;
use binlogz_testkit::builder::{LogBuilder, Release};

const LOG: &str = "binlog.000001";
const TRANSACTIONS: u32 = 60;
/// A test that hangs is a test that failed: no scan of a few kilobytes takes as long.
const HANGS: Duration = Duration::from_secs(60);

/// An archive of one log, as all readers of a process share it.
struct Shared {
    folder: ArchiveFolder,
    last: LastObject,
    file: FileEntry,
}

impl Shared {
    /// Many small blocks.
    fn new(dir: &tempfile::TempDir) -> Shared {
        let folder = ArchiveFolder::new(dir.path());
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        for number in 0..TRANSACTIONS {
            let values: Vec<Vec<u8>> = (0..8)
                .map(|row| {
                    let of = (number + row) % 11 * 8 + row;
                    (0..400_u32).map(|at| ((at + of).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
                })
                .collect();
            log.transaction(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
        creator.block_size(4_000);
        creator.level(Level::Fast);
        creator.add(LOG, Arc::new(log.take())).unwrap();
        creator.finish().unwrap();
        let file = Manifest::read(&folder).unwrap().unwrap().files.remove(0);
        Shared { folder, last: LastObject::default(), file }
    }
}

/// A way to read a log; the function is called whenever it hands something to its reader.
type Scan = fn(&Shared, &mut dyn FnMut());

/// Tells of each write.
struct Written<'a>(&'a mut dyn FnMut());

impl std::io::Write for Written<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn blocks(shared: &Shared, workers: usize, each: &mut dyn FnMut()) {
    let object = shared.last.open(&shared.folder, &shared.file.objects[0]).unwrap();
    let (_, numbers) = object.log(LOG).unwrap();
    assert!(numbers.len() >= 30, "{}", numbers.len());
    let mut each_block = |_: &_, _: &_| {
        each();
        Ok(())
    };
    object.blocks(&numbers, workers, &mut each_block).unwrap();
}

fn one_by_one(shared: &Shared, each: &mut dyn FnMut()) {
    let object = shared.last.open(&shared.folder, &shared.file.objects[0]).unwrap();
    let (_, numbers) = object.log(LOG).unwrap();
    for number in numbers {
        let block = object.block(number, 2).unwrap();
        each();
        drop(block);
    }
}

fn whole(shared: &Shared, each: &mut dyn FnMut()) {
    restore::whole_after(&shared.folder, &shared.last, &shared.file, &mut Written(each), 2).unwrap();
}

fn picked(shared: &Shared, each: &mut dyn FnMut()) {
    let choose = |schema: &TableSchema| Some((0..schema.columns().len()).collect());
    let pick = Pick {
        database: b"shop",
        table: b"item",
        columns: &choose,
        with_around: true,
        with_values: &|_, _| true,
        with_deleted: true,
        with_numbers: false,
        with_positions: false,
    };
    let object =
        ObjectContents::open(&shared.folder, &shared.last, &shared.file.objects[0]).map(Arc::new).unwrap();
    let log = PickedLog::choose(&shared.file, vec![object], false, &mut |_| Some(true)).unwrap().unwrap();
    let mut each_block = |_, ()| {
        each();
        Ok(())
    };
    log.each(&pick, 2, &|_| Ok(()), &mut each_block).unwrap();
}

fn chosen(shared: &Shared, each: &mut dyn FnMut()) {
    let (told, calls) = mpsc::channel();
    let selection = TransactionSelection {
        start: Some(BoundaryMoment::of_microseconds(1000000)),
        ..TransactionSelection::default()
    };
    let mut out = || Ok(Box::new(Sent(told.clone())) as Box<dyn std::io::Write>);
    restore::chosen_after(&shared.folder, &shared.last, &shared.file, &selection, 2, &mut out).unwrap();
    calls.try_iter().for_each(|()| each());
}

/// Tells of each write, on a channel.
struct Sent(Sender<()>);

impl std::io::Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const SCANS: [(&str, Scan); 6] = [
    ("blocks by one worker", |shared, each| blocks(shared, 1, each)),
    ("blocks by three workers", |shared, each| blocks(shared, 3, each)),
    ("blocks one by one", one_by_one),
    ("the whole log", whole),
    ("columns", picked),
    ("chosen transactions", chosen),
];

/// Runs a scan on a thread that nobody waits for. It stops for ever after the first call, unless `goes_on` lets it.
fn start(shared: &Arc<Shared>, scan: Scan, goes_on: Option<Receiver<()>>) -> Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut calls = 0;
        scan(&shared, &mut || {
            calls += 1;
            if calls == 1
                && let Some(goes_on) = &goes_on
            {
                let _ = sender.send(false);
                // Nothing is ever sent: it ends when the test does.
                let _ = goes_on.recv();
            }
        });
        assert!(calls > 0);
        let _ = sender.send(true);
    });
    receiver
}

#[test]
fn a_reader_that_is_paused_for_ever_keeps_no_other_from_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let shared = Arc::new(Shared::new(&dir));
    for (paused, stops) in SCANS {
        for (other, goes) in SCANS {
            let (go_on, goes_on) = mpsc::channel();
            let first = start(&shared, stops, Some(goes_on));
            assert!(!first.recv_timeout(HANGS).unwrap(), "{paused} gives nothing");
            let ended = start(&shared, goes, None).recv_timeout(HANGS);
            assert_eq!(ended, Ok(true), "{other} hangs beside {paused}, which is paused");
            drop(go_on);
            assert_eq!(first.recv_timeout(HANGS), Ok(true), "{paused} does not go on after {other}");
        }
    }
}

/// As a join does: each takes a block only after the other had one.
#[test]
fn any_two_scans_that_wait_for_each_other_end() {
    let dir = tempfile::tempdir().unwrap();
    let shared = Arc::new(Shared::new(&dir));
    for (one, first) in SCANS {
        for (other, second) in SCANS {
            let (to_second, from_first) = mpsc::sync_channel(0);
            let (to_first, from_second) = mpsc::sync_channel(0);
            let (ended, ends) = mpsc::channel();
            let run = |scan: Scan, sender: mpsc::SyncSender<()>, receiver: Receiver<()>, is_first: bool| {
                let (shared, ended) = (Arc::clone(&shared), ended.clone());
                thread::spawn(move || {
                    scan(&shared, &mut || {
                        // The other one may be at its end.
                        if is_first {
                            let _ = sender.send(());
                            let _ = receiver.recv();
                        } else {
                            let _ = receiver.recv();
                            let _ = sender.send(());
                        }
                    });
                    drop((sender, receiver));
                    let _ = ended.send(());
                });
            };
            run(first, to_second, from_second, true);
            run(second, to_first, from_first, false);
            for _ in 0..2 {
                assert_eq!(
                    ends.recv_timeout(HANGS),
                    Ok(()),
                    "{one} and {other} wait for each other for ever"
                );
            }
        }
    }
}
