//! Manifests, parts and copies of manifests in which somebody has put names that lead out of the archive, twice the same name, or sizes
//! that lie. Whatever is done with such an archive, nothing outside its folder is read, written or deleted. Seeded; `HOSTILE_MANIFESTS`
//! says how many.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use binlogz_archive::format::Manifest;
use binlogz_archive::prune::Keep;
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage};
use binlogz_archive::{check, copy, coverage, merge, prune, remove, restore};
use binlogz_testkit::mutate::seed;
use binlogz_testkit::random::Random;
use binlogz_testkit::setting;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::faults::create;
use crate::lies::with_checksum;

const MANIFESTS: u64 = 120;
const LOGS: [&str; 2] = ["binlog.000003", "binlog.000004"];

/// Names that no archive gives. `ABSOLUTE` stands for a file outside.
const NAMES: [&str; 22] = [
    "../outside.binlogz",
    "../../outside.binlogz",
    "../../../outside.binlogz",
    "./../../outside.binlogz",
    "a/../../../outside.binlogz",
    "ABSOLUTE",
    "/etc/passwd",
    "..",
    ".",
    "",
    "/",
    "objects/../../outside.binlogz",
    "x\0.binlogz",
    "x\n.binlogz",
    "\u{1b}[2J.binlogz",
    "\u{85}.binlogz",
    "..\\..\\outside.binlogz",
    "LONG",
    "manifest.json",
    "manifest-copy.json",
    "../manifest.json",
    "segment",
];

/// Everything below a folder but the archive and what is copied, with its bytes.
fn outside(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if [dir.join("some/where/arc"), dir.join("some/where/to")].contains(&path) {
                continue;
            }
            let bytes = path.is_file().then(|| fs::read(&path).unwrap());
            if bytes.is_none() {
                open.push(path.clone());
            }
            found.insert(path, bytes);
        }
    }
    found
}

/// A manifest, or entries of a part, with a lie in it, and whether it is a name that no archive gives.
fn lie(text: &mut Value, dir: &Path, random: &mut Random) -> (String, bool) {
    let name = match NAMES[random.below(NAMES.len())] {
        "ABSOLUTE" => dir.join("outside.binlogz").to_string_lossy().into_owned(),
        "LONG" => format!("{}.binlogz", "x".repeat(300)),
        name => name.to_owned(),
    };
    // A plain file's name is a log's name, whatever it is.
    let is_no_log = !["manifest.json", "manifest-copy.json", "segment"].contains(&name.as_str());
    let is_whole = text.is_object();
    if is_whole && random.below(7) == 0 {
        text["retired"] = json!([{ "object": name, "since": random.below(2) }]);
        return (format!("retired {name:?}"), true);
    }
    let files = if text.is_array() { &mut *text } else { &mut text["files"] };
    let count = files.as_array().unwrap().len();
    let file = random.below(count);
    match random.below(6) {
        0 => {
            files[file]["name"] = json!(name);
            (format!("log {name:?}"), is_no_log)
        }
        1 | 2 => {
            let objects = files[file]["objects"].as_array_mut().unwrap();
            let at = random.below(objects.len() + 1);
            objects.insert(at, json!(name));
            (format!("object {name:?}"), true)
        }
        3 => {
            files[file]["objects"] = json!(name);
            (format!("one object {name:?}"), true)
        }
        4 => {
            let again = files[file].clone();
            files.as_array_mut().unwrap().push(again);
            ("a log twice".to_owned(), true)
        }
        _ => {
            let field = ["size", "packed_size"][random.below(2)];
            let number = [0, 1, 1 << 40, u64::MAX][random.below(4)];
            files[file][field] = json!(number);
            (format!("{field} {number}"), false)
        }
    }
}

fn encoded(manifest: &Value) -> Vec<u8> {
    let mut manifest = manifest.clone();
    manifest.as_object_mut().unwrap().remove("crc32");
    // Fields in the order in which they are written.
    let mut text = String::from("{\n");
    let fields = ["format", "version", "parts", "files", "retired"];
    let fields: Vec<_> = fields
        .iter()
        .filter_map(|field| {
            Some(format!("  \"{field}\": {}", serde_json::to_string(manifest.get(field)?).unwrap()))
        })
        .collect();
    text += &fields.join(",\n");
    text += ",\n  \"crc32\": 0\n}\n";
    with_checksum(text.as_bytes())
}

/// Everything that uses a manifest.
fn is_used(folder: &ArchiveFolder, dir: &Path) {
    let now = SystemTime::now() + Duration::from_secs(7 * 86_400);
    let to = dir.join("some/where/to");
    let other = ArchiveFolder::new(&to);
    if let Ok(plan) = copy::plan(folder, &other) {
        let _ = plan.run(folder, &other, 1, &|_| {});
    }
    let Ok(Some(manifest)) = Manifest::read(folder) else { return };
    let _ = coverage::coverage(&manifest);
    let _ = check::check(folder, &manifest, 1);
    for file in &manifest.files {
        let _ = restore::whole(folder, file, &mut std::io::sink(), 1);
    }
    merge::plan(&manifest);
    let _ = prune::prune(folder, Keep::All, Duration::ZERO, now);
    let _ = remove::orphans(folder, now);
    let _ = prune::prune(folder, Keep::Bytes(1), Duration::ZERO, now);
    if let Ok(Some(manifest)) = Manifest::read(folder) {
        let names: Vec<String> = manifest.files.iter().map(|file| file.name.to_string()).collect();
        let _ = remove::remove(folder, manifest, &names);
    }
}

#[test]
fn nothing_outside_an_archive_is_touched_whatever_its_manifest_says() {
    let (seed, dir) = (seed(), tempfile::tempdir().unwrap());
    let mut random = Random::new(seed);
    let dir = dir.path();
    let whole = ArchiveFolder::new(dir.join("whole"));
    create(&whole, &LOGS).unwrap();
    let text = fs::read(dir.join("whole/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    assert!(encoded(&manifest).len() > 100);
    let [objects, copies] = [dir.join("whole/objects"), dir.join("some/where/arc/objects")];
    fs::create_dir_all(dir.join("some/where")).unwrap();
    for place in ["outside.binlogz", "some/outside.binlogz", "some/where/outside.binlogz"] {
        fs::write(dir.join(place), b"nobody's business").unwrap();
    }
    let before = outside(dir);
    let (mut refused, mut lies) = (0, 0);
    for number in 0..setting("HOSTILE_MANIFESTS", MANIFESTS) {
        for name in ["arc", "to"] {
            let _ = fs::remove_dir_all(dir.join("some/where").join(name));
        }
        fs::create_dir_all(&copies).unwrap();
        for object in fs::read_dir(&objects).unwrap() {
            let object = object.unwrap();
            fs::copy(object.path(), copies.join(object.file_name())).unwrap();
        }
        let mut lying = manifest.clone();
        let (what, is_bad) = match number % 4 {
            // In a part of the manifest, whose own name may lie.
            0 => {
                let mut files = lying["files"].clone();
                let (what, is_bad) = lie(&mut files, dir, &mut random);
                let plain = serde_json::to_vec(&files).unwrap();
                let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
                zstd_safe::compress(&mut packed, &plain, 3).unwrap();
                let sha256: String =
                    Sha256::digest(&packed).iter().map(|byte| format!("{byte:02x}")).collect();
                let (name, name_is_bad) = match random.below(3) {
                    0 => ("../../outside.binlogz", true),
                    _ => ("manifest-part-1.binlogz", false),
                };
                if !name_is_bad {
                    fs::write(copies.join(name), &packed).unwrap();
                }
                let logs = files.as_array().unwrap().len();
                lying["parts"] =
                    json!([{ "object": name, "logs": logs, "size": plain.len(), "sha256": sha256 }]);
                lying["files"] = json!([]);
                lying["version"] = json!(10);
                (format!("part {name}: {what}"), is_bad || name_is_bad)
            }
            _ => lie(&mut lying, dir, &mut random),
        };
        let bytes = encoded(&lying);
        fs::write(copies.join("manifest-copy.json"), &bytes).unwrap();
        // The copy is read where the manifest is damaged.
        let is_copy = number % 5 == 0;
        let manifest = if is_copy { b"damaged".to_vec() } else { bytes };
        fs::write(dir.join("some/where/arc/manifest.json"), manifest).unwrap();
        let folder = ArchiveFolder::new(dir.join("some/where/arc"));
        let is_refused = Manifest::read(&folder).is_err();
        assert!(is_refused || !is_bad, "SEED={seed} manifest {number} is read: {what}");
        lies += u32::from(is_bad);
        refused += u32::from(is_refused);
        is_used(&folder, dir);
        assert!(outside(dir) == before, "SEED={seed} manifest {number} reached outside: {what}");
    }
    assert!(lies > 10 && refused >= lies, "{lies} lies, {refused} refused");
}

/// Names reach a folder only through types that are checked; should one come another way, the folder refuses it.
#[test]
fn a_folder_takes_no_name_that_leaves_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("outside.binlogz"), b"x").unwrap();
    let folder = ArchiveFolder::new(dir.path().join("arc"));
    create(&folder, &LOGS).unwrap();
    for name in ["../../outside.binlogz", "/etc/passwd", "..", "", "a/b", "a\0b"] {
        assert!(folder.get(name).is_err(), "{name:?}");
        assert!(folder.delete(name).is_err(), "{name:?}");
        assert!(folder.put(name, &mut |_| Ok(())).is_err(), "{name:?}");
    }
    assert_eq!(fs::read(dir.path().join("outside.binlogz")).unwrap(), b"x");
}
