//! Archives in a real S3 server: logs come back, nothing is uploaded twice, one transaction costs a few
//! requests, and faults of networks and services lose nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use binlogz_archive::create::{self, CreateOutcome};
use binlogz_archive::merge::{MergeOptions, merge};
use binlogz_archive::prune::{Keep, prune};
use binlogz_archive::restore::LastObject;
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::{
    ArchiveFolder, ArchiveStorage, EncryptedStorage, KeySource, ObjectStorage, Patience,
};
use binlogz_archive::{Error, Level, check, copy, remove, restore};
use binlogz_testkit::random::Random;
use binlogz_testkit::s3::{BUCKET, FaultProxy, RequestFault, S3Server};

use crate::faults::log;
use crate::stored::{holds, manifest};

pub(crate) const PATIENCE: Patience = Patience {
    retries: 4,
    first_pause: Duration::from_millis(5),
    pause_max: Duration::from_millis(20),
    total: Duration::from_secs(20),
    request: Duration::from_secs(20),
};

pub(crate) fn archive(settings: Vec<(String, String)>) -> ObjectStorage {
    ObjectStorage::new(&format!("s3://{BUCKET}/some/where"), settings, PATIENCE).unwrap()
}

fn add(storage: &dyn ArchiveStorage, name: &str) -> Result<CreateOutcome, Error> {
    create::add(storage, name, Arc::new(log(name)), 1)
}

#[test]
fn logs_come_back_and_go_up_once_and_a_transaction_costs_few_requests() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
    let storage = archive(proxy.settings());
    assert!(storage.manifest().unwrap().is_none());
    for name in ["binlog.000002", "binlog.000004"] {
        assert!(matches!(add(&storage, name).unwrap(), CreateOutcome::Added(_)), "{name}");
    }
    holds(&storage, &["binlog.000002", "binlog.000004"]);
    let problems = check::check(&storage, &manifest(&storage), 1).unwrap();
    assert!(problems.iter().all(|problem| problem.contains(": gap: ")), "{problems:?}");
    assert!(server.bucket().join("some/where/manifest.json").is_file());

    let before = proxy.requests().len();
    assert!(matches!(add(&storage, "binlog.000002").unwrap(), CreateOutcome::Known(_)));
    let again = proxy.requests().split_off(before);
    let reads = |request: &String| request.starts_with("GET ") || request.starts_with("HEAD ");
    assert!(again.iter().all(reads), "{again:?}");

    let before = proxy.requests().len();
    let manifest = manifest(&storage);
    let file = &manifest.files[0];
    let gtids = file.gtid_set().unwrap().to_string();
    let (uuid, numbers) = gtids.split_once(':').unwrap();
    let number = numbers.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    let gtid = format!("{uuid}:{number}").parse().unwrap();
    let selection = TransactionSelection { gtids: Some(gtid), ..TransactionSelection::default() };
    let restored =
        restore::chosen(&storage, file, &selection, 1, &mut || Ok(Box::new(std::io::sink()))).unwrap();
    assert_eq!(restored.transactions, 1);
    let requests = proxy.requests().split_off(before);
    assert!(requests.len() <= 4, "{requests:?}");
}

/// The manifest comes once, goes up once, and the service copies it. One transaction of an encrypted archive is read by ranges.
#[test]
fn one_more_log_costs_few_requests_and_so_does_a_transaction_of_an_encrypted_archive() {
    let Some(server) = S3Server::start() else { return };
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
        add(&open(), "binlog.000003").unwrap();
        let stored = |name: &str| {
            std::fs::read(server.bucket().join("..").join(place.trim_start_matches("s3://")).join(name))
                .unwrap()
        };
        let is_copied = || stored("manifest.json") == stored("objects/manifest-copy.json");
        assert!(is_copied());

        let before = proxy.requests().len();
        let storage = open();
        assert_eq!(storage.is_encrypted().unwrap(), key.is_some());
        add(&storage, "binlog.000005").unwrap();
        let requests = proxy.requests().split_off(before);
        // Of these are the segment, and the same read back.
        // Of an encrypted archive the generation is asked for, and stored.
        assert!(requests.len() <= if key.is_some() { 11 } else { 9 }, "{requests:#?}");
        let up = |name: &str| {
            requests.iter().filter(|line| line.starts_with("PUT ") && line.contains(name)).count()
        };
        assert_eq!((up("/manifest.json "), up("/manifest-copy.json ")), (1, 1), "{requests:#?}");
        assert!(is_copied());
        // A copy that a killed run left as it was is made again.
        let old = |out: &mut dyn std::io::Write| out.write_all(b"{").map_err(Error::writing);
        open().put("manifest-copy.json", &mut { old }).unwrap();
        assert!(!is_copied());
        add(&open(), "binlog.000005").unwrap();
        assert!(is_copied());

        let before = proxy.requests().len();
        let storage = open();
        let file = &manifest(&storage).files[1];
        let gtid =
            file.gtid_set().unwrap().iter().next().map(|(tsid, list)| (*tsid, list.first().unwrap().start()));
        let (tsid, number) = gtid.unwrap();
        let gtids = Some(format!("{tsid}:{number}").parse().unwrap());
        let selection = TransactionSelection { gtids, ..TransactionSelection::default() };
        let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn std::io::Write>);
        let restored = restore::chosen(&storage, file, &selection, 1, &mut out).unwrap();
        assert_eq!(restored.transactions, 1);
        let requests = proxy.requests().split_off(before);
        assert!(requests.len() <= 5, "{requests:#?}");
        holds(&open(), &["binlog.000003", "binlog.000005"]);
    }
}

#[test]
fn large_objects_go_up_in_parts_and_are_there_whole_or_not_at_all() {
    let Some(server) = S3Server::start() else { return };
    let mut random = Random::new(7);
    let bytes: Vec<u8> = (0..20 << 20).map(|_| random.bits() as u8).collect();
    let put = |storage: &ObjectStorage, name: &str| {
        storage.put(name, &mut |out| {
            bytes.chunks(1 << 16).try_for_each(|chunk| out.write_all(chunk)).map_err(Error::writing)
        })
    };
    let proxy = FaultProxy::start(&server, |_, line| match line.contains("partNumber=2") {
        true => RequestFault::Answer(
            403,
            "<Error><Code>ExpiredToken</Code><Message>it has expired</Message></Error>".into(),
        ),
        false => RequestFault::Pass,
    })
    .unwrap();
    let error = put(&archive(proxy.settings()), "cut").unwrap_err().to_string();
    assert!(
        error.contains("s3://bucket/some/where/objects/cut: 403 ") && error.contains("it has expired"),
        "{error}"
    );
    assert!(!server.bucket().join("some/where/objects/cut").exists());
    assert!(proxy.requests().iter().any(|line| line.starts_with("DELETE ")), "{:?}", proxy.requests());

    let storage = archive(server.settings());
    put(&storage, "whole").unwrap();
    let object = storage.get("whole").unwrap();
    assert_eq!(object.size().unwrap(), bytes.len() as u64);
    for (offset, size) in
        [(0, 10), (bytes.len() - 5, 5), (9 << 20, 3 << 20), (bytes.len() - 100_000, 100_000)]
    {
        assert!(object.read(offset as u64, size).unwrap() == bytes[offset..][..size], "{offset}");
    }
    assert!(object.read(bytes.len() as u64 - 5, 6).is_err());
    assert!(storage.get("none").is_err());
}

#[test]
fn what_passes_is_waited_for() {
    let Some(server) = S3Server::start() else { return };
    let slow_down = "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>";
    for (place, fault) in [
        RequestFault::Answer(500, String::new()),
        RequestFault::Answer(503, slow_down.into()),
        RequestFault::CutUpload,
        RequestFault::LoseAnswer,
        RequestFault::CutAnswer,
        RequestFault::Stall(Duration::from_secs(3)),
        RequestFault::Reset,
    ]
    .into_iter()
    .enumerate()
    {
        // Every third request fails.
        let (planned, count) = (fault.clone(), AtomicUsize::new(0));
        let proxy = FaultProxy::start(&server, move |_, _| {
            if count.fetch_add(1, Ordering::Relaxed) % 3 == 0 { planned.clone() } else { RequestFault::Pass }
        })
        .unwrap();
        let mut settings = proxy.settings();
        settings.push(("AWS_TIMEOUT".into(), "1 second".into()));
        let storage = ObjectStorage::new(&format!("s3://{BUCKET}/{place}"), settings, PATIENCE).unwrap();
        let added = add(&storage, "binlog.000004");
        assert!(added.is_ok(), "{fault:?}: {added:?} {:?}", proxy.requests());
        let storage =
            ObjectStorage::new(&format!("s3://{BUCKET}/{place}"), server.settings(), PATIENCE).unwrap();
        holds(&storage, &["binlog.000004"]);
    }
}

#[test]
fn what_stays_is_one_clear_line_and_nothing_is_lost() {
    let Some(server) = S3Server::start() else { return };
    let storage = archive(server.settings());
    add(&storage, "binlog.000002").unwrap();
    let answer = |status, code, message| {
        RequestFault::Answer(
            status,
            format!(
                "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code>\n<Message>{message}</Message></Error>"
            ),
        )
    };
    let expired = || answer(403, "ExpiredToken", "The provided token has expired.");
    let full = || answer(507, "InsufficientStorage", "no space left on device");
    for (fault, at, expected) in [
        (
            expired(),
            "GET /bucket/some/where/manifest",
            "manifest.json: 403 Forbidden: ExpiredToken: The provided token has expired.",
        ),
        (expired(), "PUT /bucket/some/where/objects", "ExpiredToken: The provided token has expired."),
        (expired(), "PUT /bucket/some/where/manifest", "write s3://bucket/some/where/manifest.json: 403 "),
        (full(), "PUT /bucket/some/where/objects", "InsufficientStorage: no space left on device"),
        (full(), "PUT /bucket/some/where/manifest", "InsufficientStorage: no space left on device"),
        (
            RequestFault::CutUpload,
            "PUT /bucket/some/where/objects",
            "write s3://bucket/some/where/objects/segment-",
        ),
        (
            RequestFault::Answer(500, String::new()),
            "GET /bucket/some/where/objects",
            "read s3://bucket/some/where/objects/",
        ),
    ] {
        let planned = fault.clone();
        let proxy = FaultProxy::start(&server, move |_, line| {
            if line.starts_with(at) { planned.clone() } else { RequestFault::Pass }
        })
        .unwrap();
        let error = add(&archive(proxy.settings()), "binlog.000004").unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        // As it was before.
        holds(&storage, &["binlog.000002"]);
    }
    add(&storage, "binlog.000004").unwrap();
    holds(&storage, &["binlog.000002", "binlog.000004"]);

    // Trouble may pass; an object that is gone stays so.
    let manifest = manifest(&storage);
    let file = &manifest.files[0];
    let busy = FaultProxy::start(&server, |_, _| RequestFault::Answer(500, String::new())).unwrap();
    let error = restore::whole(&archive(busy.settings()), file, &mut std::io::sink(), 1).unwrap_err();
    assert!(error.may_pass(), "{error}");
    std::fs::remove_file(server.bucket().join("some/where/objects").join(&file.objects[0])).unwrap();
    let error = restore::whole(&storage, file, &mut std::io::sink(), 1).unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains(file.objects[0].as_str()), "{error}");

    let nowhere = ObjectStorage::new("s3://nowhere/x", server.settings(), PATIENCE).unwrap();
    let error = nowhere.manifest().unwrap_err().to_string();
    assert!(error.contains("NoSuchBucket"), "{error}");
}

/// As with a policy against it, or an object lock of services without versions. In a bucket with versions a deletion only adds a marker.
#[test]
fn objects_that_a_service_does_not_delete_are_named_and_the_archive_is_whole() {
    let Some(server) = S3Server::start() else { return };
    let refused = "<Error><Code>AccessDenied</Code><Message>Object is WORM protected.</Message></Error>";
    let proxy = FaultProxy::start(&server, |_, line| match line.starts_with("POST /bucket?delete") {
        true => RequestFault::Answer(403, refused.into()),
        false => RequestFault::Pass,
    })
    .unwrap();
    let locked = archive(proxy.settings());
    // The part of a log in use is replaced; its object stays.
    let add_part = |storage: &dyn ArchiveStorage, size: usize| {
        let mut told = |_: &_| {};
        let mut creator = create::Creator::new(storage, 1, &mut told).unwrap();
        let part = log("binlog.000004")[..size].to_vec();
        creator.add_active("binlog.000004", Arc::new(part), None)?;
        creator.finish()
    };
    add(&locked, "binlog.000003").unwrap();
    add_part(&locked, log("binlog.000004").len() / 2).unwrap();
    add(&locked, "binlog.000004").unwrap();
    holds(&locked, &["binlog.000003", "binlog.000004"]);
    let now = SystemTime::now();
    let undeleted = |undeleted: &[(String, Error)], count: usize| {
        assert_eq!(undeleted.len(), count, "{undeleted:?}");
        for (object, error) in undeleted {
            let told = format!("delete s3://bucket/some/where/objects/{object}: 403 ");
            let error = error.to_string();
            assert!(
                error.starts_with(&told) && error.ends_with("AccessDenied: Object is WORM protected."),
                "{error}"
            );
        }
    };
    let pruned = prune(&locked, Keep::Bytes(1), Duration::ZERO, now).unwrap();
    undeleted(&pruned.undeleted, 1);
    holds(&locked, &["binlog.000004"]);
    add(&locked, "binlog.000005").unwrap();
    let options = MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now };
    let merged = merge(&locked, options, &mut |_| {}).unwrap();
    assert_eq!((merged.before.len(), merged.after.len()), (2, 1));
    undeleted(&merged.swept.undeleted, 2);
    let (_, left) = remove::remove(&locked, manifest(&locked), &["binlog.000004".to_owned()]).unwrap();
    undeleted(&left, 0);
    holds(&locked, &["binlog.000005"]);
    assert!(
        check::check(&locked, &manifest(&locked), 1).unwrap().iter().all(|line| line.contains(": gap: "))
    );
    // Once they may go, they go: all but the object of the log, and the copy of the manifest.
    let later = now + 2 * remove::ORPHAN_AGE;
    let pruned = prune(&archive(server.settings()), Keep::All, Duration::ZERO, later).unwrap();
    assert_eq!((pruned.orphans.len() + pruned.retired.len(), pruned.undeleted.len()), (4, 0));
    assert_eq!(locked.stored().unwrap().len(), 2);
    holds(&locked, &["binlog.000005"]);
}

/// Every fifth request fails meanwhile.
#[test]
fn an_archive_is_merged_pruned_and_copied_in_s3_and_needs_fewer_requests_then() {
    let Some(server) = S3Server::start() else { return };
    let names = ["binlog.000004", "binlog.000005", "binlog.000006"];
    let count = AtomicUsize::new(0);
    let proxy = FaultProxy::start(&server, move |_, _| match count.fetch_add(1, Ordering::Relaxed) % 5 {
        4 => RequestFault::Answer(500, String::new()),
        _ => RequestFault::Pass,
    })
    .unwrap();
    let storage = archive(proxy.settings());
    names.iter().for_each(|name| drop(add(&storage, name).unwrap()));
    let quiet = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
    let reader = archive(quiet.settings());
    let to = tempfile::tempdir().unwrap();
    let copied = |number: usize| {
        let folder = ArchiveFolder::new(to.path().join(number.to_string()));
        let before = quiet.requests().len();
        copy::plan(&reader, &folder).unwrap().run(&reader, &folder, 2, &|_| {}).unwrap();
        holds(&folder, &names);
        quiet.requests().len() - before
    };
    let before = copied(0);
    let now = SystemTime::now();
    let options = MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now };
    let merged = merge(&storage, options, &mut |_| {}).unwrap();
    assert_eq!((merged.before.len(), merged.after.len()), (3, 1));
    holds(&reader, &names);
    let after = copied(1);
    assert!(after < before, "{after} after {before}");
    println!("a copy of three logs: {before} requests, {after} once they are merged");

    add(&storage, "levels.000001").unwrap();
    let keep = Keep::Bytes(1);
    let pruned = prune(&storage, keep, Duration::ZERO, now).unwrap();
    assert_eq!((pruned.logs.len(), pruned.objects.len(), pruned.undeleted.len()), (3, 1, 0));
    assert!(pruned.objects[0].size > 0);
    assert_eq!(manifest(&reader).files.len(), 1);
    assert_eq!(storage.stored().unwrap().len(), 2, "an object, the copy of the manifest");
    // Back again, from the copy.
    let folder = ArchiveFolder::new(to.path().join("1"));
    let plan = copy::plan(&folder, &storage).unwrap();
    assert_eq!(plan.run(&folder, &storage, 2, &|_| {}).unwrap().logs_there, 4);
    assert!(
        check::check(&reader, &manifest(&reader), 1).unwrap().iter().all(|line| line.contains(": gap: "))
    );
}

/// The seven logs of a server that is written to, as hourly runs archive them: an object each, then one for all.
#[test]
fn logs_that_share_an_object_cost_fewer_requests_than_logs_and_one_transaction_costs_three() {
    let Some(server) = S3Server::start() else { return };
    let names: Vec<_> = (1..=7).map(|number| format!("binlog.{number:06}")).collect();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/plain");
    let bytes: Vec<_> = names.iter().map(|name| std::fs::read(samples.join(name)).unwrap()).collect();
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
        for (name, bytes) in names.iter().zip(&bytes) {
            create::add(&open(), name, Arc::new(bytes.clone()), 1).unwrap();
        }
        let requests = |work: &dyn Fn(&dyn ArchiveStorage)| {
            let before = proxy.requests().len();
            work(&open());
            proxy.requests().split_off(before)
        };
        // Several workers take blocks in turn.
        let all = |workers: usize| {
            requests(&|storage| {
                let last = LastObject::default();
                for (file, bytes) in manifest(storage).files.iter().zip(&bytes) {
                    let mut back = Vec::new();
                    restore::whole_after(storage, &last, file, &mut back, workers).unwrap();
                    assert!(back == *bytes, "{}", file.name);
                }
            })
        };
        let one = |number: usize| {
            requests(&|storage| {
                let file = &manifest(storage).files[number];
                let gtids = file.gtid_set().unwrap();
                let (tsid, list) = gtids.iter().next().unwrap();
                let gtids = Some(format!("{tsid}:{}", list.last().unwrap().start()).parse().unwrap());
                let selection = TransactionSelection { gtids, ..TransactionSelection::default() };
                let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn std::io::Write>);
                let restored = restore::chosen(storage, file, &selection, 1, &mut out).unwrap();
                assert_eq!(restored.transactions, 1);
            })
        };
        let before = (all(2).len(), one(3).len());
        assert!(before.0 <= 10 && before.1 <= 3, "{before:?}");
        let options =
            MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now: SystemTime::now() };
        let merging = requests(&|storage| drop(merge(storage, options, &mut |_| {}).unwrap()));
        let objects: Vec<_> = manifest(&open()).files.into_iter().flat_map(|file| file.objects).collect();
        assert!(objects.len() == 7 && objects.iter().all(|object| *object == objects[0]), "{objects:?}");
        let (whole, transaction) = (all(2), one(3));
        println!(
            "{place}: all {} requests, one transaction {}; merged in {}: {}, {}",
            before.0,
            before.1,
            merging.len(),
            whole.len(),
            transaction.len()
        );
        // Of an encrypted archive the generation is asked for, too.
        let more = usize::from(key.is_some());
        assert!(whole.len() <= 5 + more, "{whole:#?}");
        assert!(transaction.len() <= 3 + more, "{transaction:#?}");
        let is_batch = |line: &&String| line.starts_with("POST ") && line.contains("?delete");
        assert_eq!(merging.iter().filter(is_batch).count(), 1, "seven objects go at once: {merging:#?}");
    }
}

#[test]
fn of_two_runs_at_once_none_loses_what_the_other_stored() {
    let Some(server) = S3Server::start() else { return };
    let storage = archive(server.settings());
    let stale = manifest(&storage);
    let names = ["binlog.000001", "binlog.000003", "binlog.000004"];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| add(&archive(server.settings()), name).unwrap());
        }
    });
    let mut found: Vec<_> =
        manifest(&storage).files.into_iter().map(|file| String::from(file.name)).collect();
    found.sort();
    assert_eq!(found, names);
    assert!(matches!({ stale }.write(&storage), Err(Error::Changed)));
}

/// A profile's keys, region and endpoint, and a command that prints keys; the class is for segments alone, encryption for all that is stored.
#[test]
fn profiles_classes_and_the_service_s_encryption_are_those_of_the_ecosystem() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
    let setting = |name: &str| proxy.settings().into_iter().find(|(key, _)| key == name).unwrap().1;
    let dir = tempfile::tempdir().unwrap();
    let (key, secret) = (setting("AWS_ACCESS_KEY_ID"), setting("AWS_SECRET_ACCESS_KEY"));
    let config = format!(
        "[profile keys]\nregion = us-east-1\nservices = here\n[services here]\ns3 =\n  endpoint_url = {0}\n[profile printed]\nregion = us-east-1\n\
         endpoint_url = {0}\ncredential_process = echo '{{\"Version\":1,\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\"}}'\n",
        setting("AWS_ENDPOINT_URL")
    );
    std::fs::write(dir.path().join("config"), config).unwrap();
    let keys = format!("[keys]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    std::fs::write(dir.path().join("credentials"), keys).unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let open = |profile: &str, more: &[(&str, &str)]| {
        let files = [
            ("AWS_CONFIG_FILE".into(), file("config")),
            ("AWS_SHARED_CREDENTIALS_FILE".into(), file("credentials")),
        ];
        let more = more.iter().map(|(name, value)| (String::from(*name), String::from(*value)));
        let all = files.into_iter().chain([("AWS_PROFILE".into(), profile.into())]).chain(more);
        ObjectStorage::new(&format!("s3://{BUCKET}/profile"), all, PATIENCE)
    };
    add(&open("keys", &[]).unwrap(), "binlog.000004").unwrap();
    holds(&open("printed", &[]).unwrap(), &["binlog.000004"]);

    let before = proxy.heads().len();
    let manner = [
        ("AWS_STORAGE_CLASS", "STANDARD_IA"),
        ("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms"),
        ("AWS_SSE_KMS_KEY_ID", "key-7"),
    ];
    add(&open("keys", &manner).unwrap(), "binlog.000005").unwrap();
    let puts: Vec<_> =
        proxy.heads().split_off(before).into_iter().filter(|head| head.starts_with("PUT ")).collect();
    assert_eq!(puts.len(), 3, "a segment, the manifest and its copy: {puts:#?}");
    for put in &puts {
        let put = put.to_ascii_lowercase();
        assert!(put.contains("x-amz-server-side-encryption: aws:kms\r\n"), "{put}");
        assert!(put.contains("x-amz-server-side-encryption-aws-kms-key-id: key-7\r\n"), "{put}");
        let is_segment = put.lines().next().unwrap().contains("/segment-");
        assert_eq!(put.contains("x-amz-storage-class: standard_ia\r\n"), is_segment, "{put}");
    }
    holds(&open("keys", &[]).unwrap(), &["binlog.000004", "binlog.000005"]);
    let refused = open("keys", &[("AWS_STORAGE_CLASS", "DEEP_ARCHIVE")]).err().unwrap().to_string();
    assert!(
        refused
            .starts_with("storage class is DEEP_ARCHIVE, expected one from which objects are read at once"),
        "{refused}"
    );
    assert!(open("none", &[]).err().unwrap().to_string().starts_with("profile none is in neither "));
}

/// A manifest in parts: what a run that adds a log reads and writes.
#[test]
fn one_more_log_of_many_costs_few_requests_and_few_bytes() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
    add(&archive(proxy.settings()), "binlog.000003").unwrap();
    let mut many = manifest(&archive(proxy.settings()));
    many.files.extend(crate::parts::entries(&many.files[0], 6_000));
    many.write(&archive(proxy.settings())).unwrap();
    // Two parts by now.
    many.files.extend(crate::parts::entries(&many.files[0], 6_300).split_off(6_000));
    many.write(&archive(proxy.settings())).unwrap();

    let before = proxy.heads().len();
    // The last one: a log of an earlier base name would stand before the others.
    create::add(&archive(proxy.settings()), "many.900000", Arc::new(log("binlog.000005")), 1).unwrap();
    let heads = proxy.heads().split_off(before);
    let parts = heads.iter().filter(|head| head.contains("/manifest-part-")).count();
    // Of these are the segment, and the same read back. More logs add no request: there are never more parts.
    assert!(parts == 2 && heads.len() <= 9 + parts, "{parts} {heads:#?}");
    let sent = heads.iter().filter(|head| head.contains("/manifest.json ")).filter_map(|head| {
        let size = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        size?.trim().parse::<u64>().ok()
    });
    let sent: u64 = sent.sum();
    assert!(sent > 10_000 && sent < 150_000, "{sent}");
    assert_eq!(manifest(&archive(server.settings())).files.len(), many.files.len() + 1);
}

/// The words of a program that people use, about a service that can't be reached.
#[test]
fn a_service_that_cannot_be_reached_is_told_with_its_cause_and_in_time() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let error = |port: u16| {
        let settings = [
            ("AWS_ACCESS_KEY_ID", "a".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "b".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        let begin = std::time::Instant::now();
        let limit = Duration::from_secs(2);
        let storage = ObjectStorage::new("s3://there/x", settings, Patience::within(limit)).unwrap();
        let error = storage.manifest().unwrap_err().to_string();
        // A busy machine adds to it; without a limit it would be tried for minutes.
        assert!(begin.elapsed() < 10 * limit, "{:?}", begin.elapsed());
        error
    };
    // Nobody accepts what it was sent.
    let silent = error(port);
    assert!(silent.contains("timed out") && silent.contains(&format!("127.0.0.1:{port}")), "{silent}");
    drop(free);
    let refused = error(port);
    assert!(
        refused.contains("Connection refused") && refused.contains(&format!("127.0.0.1:{port}")),
        "{refused}"
    );
}
