//! Azure Blob Storage, as Azurite emulates it, with a container `bucket`, which `scripts/soak/archive-clouds.sh` starts; and Google Cloud
//! Storage, where something speaks its XML API.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use binlogz_archive::merge::{MergeOptions, merge};
use binlogz_archive::prune::{Keep, prune};
use binlogz_archive::storage::{ArchiveStorage, EncryptedStorage, KeySource, ObjectStorage, Patience};
use binlogz_archive::{Error, Level, check, copy, create};

use crate::faults::log;
use crate::stored::{holds, manifest};

const LOGS: [&str; 3] = ["binlog.000004", "binlog.000005", "binlog.000006"];
const ONE_MORE: &str = "levels.000001";

#[track_caller]
fn is_whole(storage: &dyn ArchiveStorage, names: &[&str]) {
    holds(storage, names);
    let problems = check::check(storage, &manifest(storage), 1).unwrap();
    assert!(problems.iter().all(|problem| problem.contains(": gap: ")), "{problems:?}");
}

/// The life of an archive, which is opened again for each step, as by separate runs.
fn lives(open: &dyn Fn(&str) -> Box<dyn ArchiveStorage>) {
    let stale = manifest(&open("arc"));
    for name in LOGS {
        create::add(&open("arc"), name, Arc::new(log(name)), 1).unwrap();
    }
    is_whole(&open("arc"), &LOGS);
    // Of two runs none loses what the other stored.
    assert!(matches!({ stale }.write(&open("arc")), Err(Error::Changed)));
    let mut stale = manifest(&open("arc"));
    let mut other = stale.clone();
    stale.files.truncate(2);
    stale.write(&open("arc")).unwrap();
    assert!(matches!(other.write(&open("arc")), Err(Error::Changed)));
    create::add(&open("arc"), LOGS[2], Arc::new(log(LOGS[2])), 1).unwrap();

    // In parts, and by ranges.
    let bytes: Vec<u8> = (0..20_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let put = |out: &mut dyn Write| {
        bytes.chunks(1 << 16).try_for_each(|chunk| out.write_all(chunk)).map_err(Error::writing)
    };
    open("arc").put("segment-large.binlogz", &mut { put }).unwrap();
    let object = open("arc").get("segment-large.binlogz").unwrap();
    assert_eq!(object.size().unwrap(), bytes.len() as u64);
    for (offset, size) in
        [(0, 10), (bytes.len() - 5, 5), (9 << 20, 3 << 20), (bytes.len() - 100_000, 100_000)]
    {
        assert!(object.read(offset as u64, size).unwrap() == bytes[offset..][..size], "{offset}");
    }
    open("arc").delete("segment-large.binlogz").unwrap();
    open("arc").delete("segment-large.binlogz").unwrap();
    assert!(open("arc").get("segment-large.binlogz").is_err());

    let now = SystemTime::now();
    let options = MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now };
    let merged = merge(&open("arc"), options, &mut |_| {}).unwrap();
    assert_eq!((merged.before.len(), merged.after.len(), merged.swept.undeleted.len()), (3, 1, 0));
    is_whole(&open("arc"), &LOGS);
    let (from, to) = (open("arc"), open("copy"));
    let copied = copy::plan(&from, &to).unwrap().run(&from, &to, 2, &|_| {}).unwrap();
    assert_eq!((copied.logs_there, copied.failed.len()), (3, 0));
    create::add(&open("arc"), ONE_MORE, Arc::new(log(ONE_MORE)), 1).unwrap();
    let pruned = prune(&open("arc"), Keep::Bytes(1), Duration::ZERO, now).unwrap();
    assert_eq!((pruned.logs.len(), pruned.undeleted.len()), (3, 0));
    is_whole(&open("arc"), &[ONE_MORE]);
    is_whole(&open("copy"), &LOGS);
    assert_eq!(open("arc").stored().unwrap().len(), 2, "an object, the copy of the manifest");
}

fn opener(
    root: &'static str,
    settings: Vec<(String, String)>,
    key: Option<KeySource>,
) -> impl Fn(&str) -> Box<dyn ArchiveStorage> {
    move |name| {
        let prefix = if key.is_some() { "encrypted" } else { "plain" };
        let place = format!("{root}bucket/{prefix}/{name}");
        let storage = ObjectStorage::new(&place, settings.clone(), Patience::default()).unwrap();
        Box::new(EncryptedStorage::new(storage, key.clone()))
    }
}

fn live_in(root: &'static str, settings: &[(&str, &str)]) {
    let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let key = KeySource::Command(format!("echo {}", "07".repeat(32)));
    for key in [None, Some(key)] {
        lives(&opener(root, settings.clone(), key));
    }
}

#[cfg(feature = "azure")]
#[test]
#[ignore = "needs a running Azurite"]
fn an_archive_lives_in_azure() {
    assert!(std::env::var_os("AZURITE_BLOB_STORAGE_URL").is_some(), "it says where Azurite listens");
    live_in("az://", &[("AZURE_STORAGE_USE_EMULATOR", "true")]);
}

#[cfg(feature = "gcs")]
#[test]
#[ignore = "needs something that speaks the XML API of Google Cloud Storage"]
fn an_archive_lives_in_google_cloud() {
    let url = std::env::var("GCS_URL").unwrap();
    let key = format!(
        "{{\"gcs_base_url\": \"{url}\", \"disable_oauth\": true, \"client_email\": \"\", \"private_key\": \"\", \"private_key_id\": \"\"}}"
    );
    live_in("gs://", &[("GOOGLE_SERVICE_ACCOUNT_KEY", &key)]);
}
