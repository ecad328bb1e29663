//! The cost of reading an object in a real S3 server: requests for ranges near each other, and requests at the same time
//! for ranges far apart.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::restore::{self, LastObject};
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::{ArchiveStorage, EncryptedStorage, KeySource, ObjectStorage, ReadRange};
use binlogz_archive::{Error, Level, check};
use binlogz_binlog::EventType;
use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSetFormat;
use binlogz_testkit::builder::{LogBuilder, Release, UUID};
use binlogz_testkit::random::Random;
use binlogz_testkit::s3::{BUCKET, FaultProxy, RequestFault, S3Server};

use crate::s3::{PATIENCE, archive};
use crate::stored::manifest;

const LOGS: u64 = 40;
const TRANSACTIONS: u64 = 10;
/// Bytes of a transaction, which no packing makes smaller.
const VALUE_SIZE: usize = 4 << 10;

/// The numbered log of a server that writes noise.
fn noisy_log(number: u64) -> Vec<u8> {
    let mut random = Random::new(number + 1);
    let before = number * TRANSACTIONS;
    let gtid_set = match before {
        0 => String::new(),
        _ => format!("{UUID}:1-{before}"),
    };
    let previous =
        PreviousGtidsEvent { gtid_set: gtid_set.parse().unwrap(), format: GtidSetFormat::Untagged };
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.behind_gno(before).event(EventType::PREVIOUS_GTIDS, &previous.encode());
    for _ in 0..TRANSACTIONS {
        let value: Vec<u8> = (0..VALUE_SIZE).map(|_| random.bits() as u8).collect();
        log.transaction(&[&value]);
    }
    log.bytes().to_vec()
}

/// Without reading ahead, each log costs a request, and several when it is checked.
#[test]
fn reading_on_reads_ahead_so_logs_beside_each_other_cost_few_requests() {
    let Some(server) = S3Server::start() else { return };
    let logs: Vec<_> =
        (0..LOGS).map(|number| (format!("binlog.{:06}", number + 1), noisy_log(number))).collect();
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    crate::encrypted::write_secret(&key, &"07".repeat(32));
    for key in [None, Some(KeySource::File(key))] {
        let place = format!("s3://{BUCKET}/{}", if key.is_some() { "encrypted" } else { "plain" });
        let proxy = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
        let open = || {
            EncryptedStorage::new(
                ObjectStorage::new(&place, proxy.settings(), PATIENCE).unwrap(),
                key.clone(),
            )
        };
        let storage = open();
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
        creator.level(Level::Fast);
        logs.iter().for_each(|(name, log)| creator.add(name, Arc::new(log.clone())).unwrap());
        let Manifest { files, .. } = creator.finish().unwrap();
        let object = &files[0].objects[0];
        assert!(files.iter().all(|file| file.objects == [object.as_str()]), "{files:?}");
        let size = storage.get(object).unwrap().size().unwrap();
        assert!(size > LOGS * TRANSACTIONS * VALUE_SIZE as u64, "{size}");

        let requests = |work: &dyn Fn(&dyn ArchiveStorage)| {
            let before = proxy.requests().len();
            work(&open());
            proxy.requests().split_off(before)
        };
        let whole = |workers: usize| {
            requests(&|storage| {
                let last = LastObject::default();
                for (file, (name, log)) in manifest(storage).files.iter().zip(&logs) {
                    let mut back = Vec::new();
                    restore::whole_after(storage, &last, file, &mut back, workers).unwrap();
                    assert!(back == *log, "{name}");
                }
            })
        };
        let checked = requests(&|storage| {
            assert_eq!(check::check(storage, &manifest(storage), 2).unwrap(), Vec::<String>::new());
        });
        let chosen = requests(&|storage| {
            // The last transaction of a log, all of the next one, the first of the one after that.
            let first = 20 * TRANSACTIONS;
            let gtids = format!("{UUID}:{first}-{}", first + TRANSACTIONS + 1).parse().unwrap();
            let selection = TransactionSelection { gtids: Some(gtids), ..TransactionSelection::default() };
            let last = LastObject::default();
            let restored = manifest(storage)
                .files
                .iter()
                .map(|file| {
                    let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn std::io::Write>);
                    restore::chosen_after(storage, &last, file, &selection, 1, &mut out).unwrap().transactions
                })
                .sum::<u64>();
            assert_eq!(restored, TRANSACTIONS + 2);
        });
        let counts = [whole(1), whole(2), checked, chosen].map(|requests| requests.len());
        println!(
            "{place}, {size} bytes: restored by one worker and by two, checked, three logs chosen: {counts:?}"
        );
        let [one, two, checked, chosen] = counts;
        // The manifest is asked for once more, for its key, and so is its generation.
        let more = 2 * usize::from(key.is_some());
        assert!(one <= 8 + more && two <= 10 + more, "restoring {LOGS} logs: {counts:?}");
        assert!(checked <= 14 + more, "checking {LOGS} logs: {counts:?}");
        assert!(chosen <= 4 + more, "transactions of three logs: {counts:?}");
    }
}

/// Bytes of the object that the tests below read.
const SIZE: usize = 8 << 20;

/// An object, whose requests pass through `plan` from now on.
fn object(
    server: &S3Server,
    plan: impl Fn() + Send + Sync + 'static,
) -> (FaultProxy, Box<dyn ReadRange>, Vec<u8>) {
    let mut random = Random::new(7);
    let bytes: Vec<u8> = (0..SIZE).map(|_| random.bits() as u8).collect();
    archive(server.settings())
        .put("noise", &mut |out| out.write_all(&bytes).map_err(Error::writing))
        .unwrap();
    let is_open = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&is_open);
    let proxy = FaultProxy::start(server, move |_, _| {
        if seen.load(Ordering::SeqCst) > 0 {
            plan();
        }
        RequestFault::Pass
    })
    .unwrap();
    let object = archive(proxy.settings()).get("noise").unwrap();
    is_open.store(1, Ordering::SeqCst);
    (proxy, object, bytes)
}

/// Requests that are held back until this many are on their way.
#[derive(Default)]
struct Meeting {
    here: Mutex<usize>,
    all_here: Condvar,
}

impl Meeting {
    /// Waits for `count` requests, for as long as a request takes on a busy machine.
    fn wait_for(&self, count: usize) {
        let mut here = self.here.lock().unwrap();
        *here += 1;
        self.all_here.notify_all();
        let _ =
            self.all_here.wait_timeout_while(here, Duration::from_secs(10), |here| *here < count).unwrap();
    }
}

#[test]
fn ranges_far_apart_are_fetched_at_the_same_time() {
    let Some(server) = S3Server::start() else { return };
    // Ranges that are expected, and ranges nobody said anything about.
    for is_expected in [true, false] {
        let meeting = Arc::new(Meeting::default());
        let (here, most) = (Arc::clone(&meeting), Arc::new(AtomicUsize::new(0)));
        let (at_once, seen) = (AtomicUsize::new(0), Arc::clone(&most));
        let (proxy, object, bytes) = object(&server, move || {
            at_once.fetch_add(1, Ordering::SeqCst);
            here.wait_for(3);
            seen.fetch_max(at_once.load(Ordering::SeqCst), Ordering::SeqCst);
            at_once.fetch_sub(1, Ordering::SeqCst);
        });
        let places = [0, 3 << 20, 6 << 20];
        if is_expected {
            let small = places.iter().flat_map(|&at| [at..at + 20_000, at + 30_000..at + 50_000]);
            object.expect(&small.map(|range| range.start as u64..range.end as u64).collect::<Vec<_>>());
        }
        let before = proxy.requests().len();
        std::thread::scope(|scope| {
            for at in places {
                let (object, bytes) = (&object, &bytes);
                scope
                    .spawn(move || assert!(object.read(at as u64, 20_000).unwrap() == bytes[at..][..20_000]));
            }
        });
        assert_eq!(proxy.requests().len() - before, 3);
        assert_eq!(most.load(Ordering::SeqCst), 3, "one after the other, expected: {is_expected}");
        if is_expected {
            for at in places.map(|at| at + 30_000) {
                assert!(object.read(at as u64, 20_000).unwrap() == bytes[at..][..20_000]);
            }
            assert_eq!(proxy.requests().len() - before, 3, "what was expected came along");
        }
    }
}

#[test]
fn readers_of_the_same_range_share_a_request_and_its_failure() {
    let Some(server) = S3Server::start() else { return };
    // Alone, with others that are expected, too large to be kept.
    for (size, is_expected) in [(20_000, false), (20_000, true), (300_000, false)] {
        // Long enough for the others to ask.
        let (proxy, object, bytes) = object(&server, || std::thread::sleep(Duration::from_millis(500)));
        if is_expected {
            object.expect(&[1_000_000..1_010_000, 1_010_000..1_020_000]);
        }
        let before = proxy.requests().len();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (object, bytes) = (&object, &bytes);
                scope.spawn(move || {
                    assert!(object.read(1_000_000, size).unwrap() == bytes[1_000_000..][..size]);
                });
            }
        });
        assert_eq!(proxy.requests().len() - before, 1, "{size}, expected: {is_expected}");
    }
    let (proxy, object, bytes) = object(&server, || std::thread::sleep(Duration::from_millis(500)));
    let before = proxy.requests().len();
    let stored = server.bucket().join("some/where/objects/noise");
    std::fs::remove_file(&stored).unwrap();
    let errors = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| object.read(1_000_000, 20_000).unwrap_err())).collect();
        readers.into_iter().map(|reader| reader.join().unwrap().to_string()).collect::<Vec<_>>()
    });
    assert!(errors.iter().all(|error| error.contains("noise") && *error == errors[0]), "{errors:?}");
    assert_eq!(proxy.requests().len() - before, 1);
    // A failure isn't kept.
    std::fs::write(&stored, &bytes).unwrap();
    assert!(object.read(1_000_000, 20_000).unwrap() == bytes[1_000_000..][..20_000]);
}
