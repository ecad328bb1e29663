//! An archive in object storage: S3 or a service with the same protocol, Azure, Google Cloud. Credentials, region and
//! endpoint come from the usual environment (`AWS_ACCESS_KEY_ID` and so on), a profile, or the machine's role ([`service`]).
//!
//! Objects are uploaded in parts, and exist whole or not at all. The manifest is replaced under a condition
//! (`If-Match`, `If-None-Match`), so that two runs can't overwrite each other's logs;
//! `AWS_CONDITIONAL_PUT=disabled` is for services without conditions. The manifest that was read or written last is
//! remembered with its tag, and comes again only if it has changed; the service itself makes its copy. Failures that allow a retry are
//! retried, with growing pauses. Reading an object takes one request for its end, which holds the index, and
//! few for ranges near each other ([`object`]). Objects are deleted in batches, where the service can.

mod ahead;
mod files;
mod object;
mod process;
mod profile;
pub(super) mod service;

use std::collections::HashSet;
use std::error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use md5::{Digest as _, Md5};
use object_store::buffered::BufWriter;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, BackoffConfig, GetOptions, ObjectStore, ObjectStoreExt, PutMode,
    RetryConfig, UpdateVersion,
};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;

use self::object::StoredObject;
use self::service::ServiceClient;
use crate::error::{Error, Result};
use crate::storage::place::ObjectPlace;
use crate::storage::{
    ArchiveStorage, COPY, DEPTH_MAX, ListedObject, MANIFEST, ManifestBytes, OBJECTS, ReadRange, SEGMENT,
    delete_each, unchanged,
};

pub use files::S3Files;

/// Bytes of a part of an upload: with at most 10,000 parts, objects can have 80 GB.
const PART_SIZE: usize = 8 << 20;
/// Parts uploaded at once.
const PARTS_MAX: usize = 3;
/// Bytes handed to an upload at once.
const CHUNK_SIZE: usize = 1 << 20;

/// How long failures are retried.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The most retries of a request.
    pub retries: usize,
    /// The first pause; later ones grow.
    pub first_pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// The time after which nothing is retried.
    pub total: Duration,
    /// A request that takes longer is abandoned; `AWS_TIMEOUT` overrides this.
    pub request: Duration,
}

impl Default for Patience {
    /// Enough for a service that restarts or asks for a lower rate; less than the life of a signature (5
    /// minutes).
    fn default() -> Self {
        Patience {
            retries: 10,
            first_pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(10),
            total: Duration::from_secs(120),
            request: Duration::from_secs(300),
        }
    }
}

impl Patience {
    /// Two attempts within this time.
    pub fn within(limit: Duration) -> Self {
        let first_pause = Duration::from_millis(100).min(limit / 10);
        Patience { retries: 1, first_pause, pause_max: limit / 10, total: limit, request: limit * 2 / 5 }
    }
}

/// An archive in object storage.
pub struct ObjectStorage {
    bucket: Bucket,
    prefix: Path,
    /// Set if the service's entity tags are not the MD5 of the bytes.
    other_tags: AtomicBool,
    /// The manifest that was read or written last.
    remembered: Mutex<Option<TaggedManifest>>,
}

/// A manifest, its entity tag and its version; `None`: the service gives none.
type TaggedManifest = (ManifestBytes, Option<UpdateVersion>);

/// Everything that requests for objects need, shared with objects that are being read.
#[derive(Clone)]
struct Bucket {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// `s3://BUCKET`, for errors.
    name: Arc<str>,
    /// Set if no setting names credentials.
    anonymous: bool,
    /// The storage class of segments.
    storage_class: Option<String>,
    /// Whether the end of an object can be asked for without its size.
    has_suffixes: bool,
}

impl ObjectStorage {
    /// The archive at a place such as `s3://BUCKET/PREFIX`, with the settings of the process's environment, and these in their place. With
    /// a limit, a service that can't be reached is an error in that time.
    ///
    /// # Errors
    ///
    /// No bucket, or invalid settings.
    pub fn from_environment(
        place: &str,
        instead: &[(String, String)],
        limit: Option<Duration>,
    ) -> Result<ObjectStorage> {
        let settings = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let patience = limit.map_or_else(Patience::default, Patience::within);
        ObjectStorage::new(place, settings.chain(instead.iter().cloned()), patience)
    }

    /// Object storage at a place, with settings as they would be in the environment.
    ///
    /// # Errors
    ///
    /// As for [`ObjectStorage::from_environment`].
    pub fn new(
        place: &str,
        settings: impl IntoIterator<Item = (String, String)>,
        patience: Patience,
    ) -> Result<ObjectStorage> {
        let place = ObjectPlace::of(place)
            .ok_or_else(|| Error::unexpected("place", place, "s3://BUCKET/PREFIX"))?
            .checked()?;
        let client = service::client(&place, settings.into_iter().collect(), patience)?;
        let ServiceClient { store, is_anonymous: anonymous, storage_class, has_suffixes } = client;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Error::io("start a thread"))?;
        let name = place.root.into();
        let bucket =
            Bucket { store, runtime: Arc::new(runtime), name, anonymous, storage_class, has_suffixes };
        let prefix = Path::from(place.prefix);
        Ok(ObjectStorage { bucket, prefix, other_tags: AtomicBool::new(false), remembered: Mutex::default() })
    }

    /// The places of all archives here and below.
    pub(super) fn archives(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut open = vec![(self.prefix.clone(), 0)];
        while let Some((prefix, depth)) = open.pop() {
            let listed = self.bucket.runtime.block_on(self.bucket.store.list_with_delimiter(Some(&prefix)));
            let listed = listed.map_err(|error| self.bucket.trouble("list", &prefix, &error))?;
            if listed.objects.iter().any(|object| object.location.filename() == Some(MANIFEST)) {
                found.push(PathBuf::from(self.bucket.name.as_ref()).join(prefix.as_ref()));
            }
            let below = listed
                .common_prefixes
                .into_iter()
                .filter(|below| depth < DEPTH_MAX && below.filename() != Some(OBJECTS));
            open.extend(below.map(|below| (below, depth + 1)));
        }
        Ok(found)
    }

    fn path(&self, names: &[&str]) -> Path {
        names.iter().fold(self.prefix.clone(), |path, name| path.join(*name))
    }

    /// The manifest and its entity tag, both from the same moment.
    fn stored_manifest(&self) -> Result<Option<TaggedManifest>> {
        let mut pauses = MS_FOR_TAG.iter();
        loop {
            let stored = self.fetched_manifest()?;
            let fits = match &stored {
                Some(same) if Some(same) == self.remembered().as_ref() => true,
                Some((bytes, Some(UpdateVersion { e_tag: Some(e_tag), .. }))) => {
                    self.other_tags.load(Ordering::Relaxed) || tag_fits(e_tag, bytes)
                }
                _ => true,
            };
            if fits {
                self.remember(stored.clone());
                return Ok(stored);
            }
            match pauses.next() {
                Some(ms) => std::thread::sleep(Duration::from_millis(*ms)),
                // A service that encrypts has other entity tags.
                None => self.other_tags.store(true, Ordering::Relaxed),
            }
        }
    }

    fn remembered(&self) -> Option<TaggedManifest> {
        self.remembered.lock().clone()
    }

    fn remember(&self, manifest: Option<TaggedManifest>) {
        *self.remembered.lock() = manifest;
    }

    /// The manifest and the entity tag that came with it. One that is as it was is not sent again.
    fn fetched_manifest(&self) -> Result<Option<TaggedManifest>> {
        let path = self.path(&[MANIFEST]);
        let remembered = self.remembered();
        let e_tag = remembered.as_ref().and_then(|(_, version)| version.clone()?.e_tag);
        let got = self.bucket.runtime.block_on(async {
            let unless_same = GetOptions::new().with_if_none_match(e_tag);
            let got = self.bucket.store.get_opts(&path, unless_same).await?;
            let version = version(got.meta.e_tag.clone(), got.meta.version.clone());
            Ok((Arc::new(got.bytes().await?.to_vec()), version))
        });
        match got {
            Ok(manifest) => Ok(Some(manifest)),
            Err(object_store::Error::NotModified { .. }) if remembered.is_some() => Ok(remembered),
            // A bucket that does not exist has no archive, but can't get one either.
            Err(object_store::Error::NotFound { ref source, .. })
                if !source.to_string().contains("NoSuchBucket") =>
            {
                Ok(None)
            }
            Err(error) => Err(self.bucket.trouble("read", &path, &error)),
        }
    }
}

/// Milliseconds to wait for an entity tag that fits the bytes it came with. versitygw 1.8.0 stores the tag first: a
/// reader at that moment gets the old bytes with the new tag. A condition on that tag would let one run overwrite the
/// bytes that the other stored.
const MS_FOR_TAG: [u64; 5] = [5, 20, 50, 100, 200];

/// Whether an entity tag can belong to these bytes: it does not if it looks like an MD5 but is another one.
fn tag_fits(e_tag: &str, bytes: &[u8]) -> bool {
    let tag = e_tag.trim_matches('"');
    let is_md5 = tag.len() == 32 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_byte = |(at, byte): (usize, &u8)| u8::from_str_radix(&tag[2 * at..][..2], 16) == Ok(*byte);
    !is_md5 || Md5::digest(bytes).iter().enumerate().all(is_byte)
}

/// The condition under which something is replaced.
fn version(e_tag: Option<String>, version: Option<String>) -> Option<UpdateVersion> {
    (e_tag.is_some() || version.is_some()).then_some(UpdateVersion { e_tag, version })
}

impl From<Patience> for RetryConfig {
    fn from(patience: Patience) -> Self {
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: patience.first_pause,
                max_backoff: patience.pause_max,
                base: 2.0,
            },
            max_retries: patience.retries,
            retry_timeout: patience.total,
        }
    }
}

impl Bucket {
    /// An error with an object, in one line.
    fn trouble(&self, verb: &str, path: &Path, error: &(dyn error::Error + 'static)) -> Error {
        Error::io(format!("{verb} {}/{path}", self.name))(io::Error::other(self.line(error)))
    }

    /// An object that can't be read. One that is missing stays so: see [`Error::may_pass`].
    fn unread(&self, path: &Path, error: &object_store::Error) -> Error {
        let kind = match error {
            object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        Error::io(format!("read {}/{path}", self.name))(io::Error::new(kind, self.line(error)))
    }

    fn line(&self, error: &(dyn error::Error + 'static)) -> String {
        let line = line(error);
        match self.anonymous && line.contains("169.254.") {
            true => {
                format!("no credentials: AWS_ACCESS_KEY_ID is not set, and this machine has no role ({line})")
            }
            false => line,
        }
    }
}

/// An error in one line: for a service's answer, its status, code and message.
fn line(error: &(dyn error::Error + 'static)) -> String {
    let text = error.to_string();
    let between = |from: &str, to: &str| {
        let (_, behind) = text.split_once(from)?;
        Some(behind.split_once(to)?.0)
    };
    let status = between("status code: ", ": ").unwrap_or("error");
    match (between("<Code>", "</Code>"), between("<Message>", "</Message>")) {
        (Some(code), Some(message)) => format!("{status}: {code}: {}", one_line(message)),
        _ => match cause(error) {
            // "Connection refused" stands deep below "error sending request".
            Some(cause) if !text.contains(&cause) => one_line(&format!("{cause}: {text}")),
            _ => one_line(&text),
        },
    }
}

/// The first cause of an error.
fn cause(error: &(dyn error::Error + 'static)) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ArchiveStorage for ObjectStorage {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let path = self.path(&[OBJECTS, name]);
        let upload = BufWriter::with_capacity(self.bucket.store.clone(), path.clone(), PART_SIZE)
            .with_max_concurrency(PARTS_MAX);
        let upload = match &self.bucket.storage_class {
            // Small ones that are replaced, and read by every run, cost more in other classes.
            Some(class) if name.starts_with(SEGMENT) => {
                let class = (Attribute::StorageClass, AttributeValue::from(class.clone()));
                upload.with_attributes(Attributes::from_iter([class]))
            }
            _ => upload,
        };
        let mut upload = Upload { bucket: &self.bucket, path, upload, chunk: Vec::new() };
        match write(&mut upload).and_then(|()| upload.flush().map_err(Error::io("write"))) {
            Ok(()) => upload.complete(),
            Err(error) => {
                upload.abort();
                Err(error)
            }
        }
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        Ok(Box::new(StoredObject::open(&self.bucket, self.path(&[OBJECTS, name]))?))
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(&[OBJECTS, name]);
        match self.bucket.runtime.block_on(self.bucket.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.bucket.trouble("delete", &path, &error)),
        }
    }

    /// A thousand a request in S3, 256 in Azure. An object that a batch does not delete is deleted alone, so that its own
    /// error is reported.
    fn delete_all(&self, names: &[&str]) -> Vec<(String, Error)> {
        if names.len() < 2 {
            return delete_each(self, names);
        }
        let paths: Vec<_> = names.iter().map(|name| self.path(&[OBJECTS, name])).collect();
        let batch = stream::iter(paths.into_iter().map(Ok)).boxed();
        let deleted = self.bucket.store.delete_stream(batch).filter_map(async |deleted| deleted.ok());
        let deleted: HashSet<Path> = self.bucket.runtime.block_on(deleted.collect());
        let is_left = |name: &&&str| !deleted.contains(&self.path(&[OBJECTS, name]));
        let left: Vec<_> = names.iter().filter(is_left).copied().collect();
        delete_each(self, &left)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        let path = self.path(&[OBJECTS]);
        let listed = self.bucket.runtime.block_on(self.bucket.store.list_with_delimiter(Some(&path)));
        let listed = listed.map_err(|error| self.bucket.trouble("list", &path, &error))?;
        let named = |object: object_store::ObjectMeta| {
            let name = object.location.filename()?.to_owned();
            Some(ListedObject { name, size: object.size, at: object.last_modified.into() })
        };
        Ok(listed.objects.into_iter().filter_map(named).collect())
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        Ok(self.stored_manifest()?.map(|(manifest, _)| manifest))
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        let path = self.path(&[MANIFEST]);
        let mut attempts = 1;
        // Its tag alone is condition enough.
        let is_replaced = |(bytes, version): &TaggedManifest| {
            version.is_some() && replaces.is_some_and(|replaces| bytes.as_slice() == replaces)
        };
        let mut known = self.remembered().filter(is_replaced);
        loop {
            let there = match known.take() {
                Some(known) => Some(known),
                None => self.stored_manifest()?,
            };
            // It may be stored already, if the answer to an earlier attempt was lost.
            if there.as_ref().is_some_and(|(bytes, _)| bytes == manifest) {
                return Ok(());
            }
            unchanged(there.as_ref().map(|(bytes, _)| bytes.as_slice()), replaces)?;
            match self.put_under_condition(&path, manifest, there.and_then(|(_, version)| version)) {
                Ok(version) => {
                    self.remember(version.map(|version| (Arc::clone(manifest), Some(version))));
                    return Ok(());
                }
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    let there = self.manifest()?;
                    return unchanged(there.as_ref().map(|there| there.as_slice()), Some(manifest));
                }
                // Because of AWS_CONDITIONAL_PUT=disabled: what can be checked is checked.
                Err(object_store::Error::NotImplemented { .. }) => {
                    let there = self.manifest()?;
                    unchanged(there.as_ref().map(|there| there.as_slice()), replaces)?;
                    let put = self.bucket.store.put(&path, manifest.to_vec().into());
                    let put = self.bucket.runtime.block_on(put);
                    self.remember(None);
                    return put.map(drop).map_err(|error| self.bucket.trouble("write", &path, &error));
                }
                Err(error) if is_lost(&error) && attempts < MANIFEST_ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(self.bucket.trouble("write", &path, &error)),
            }
        }
    }

    /// The service copies it: nothing is sent.
    fn copy_manifest(&self, manifest: &[u8]) -> Result<()> {
        let from = self.path(&[MANIFEST]);
        let to = self.path(&[OBJECTS, COPY]);
        match self.bucket.runtime.block_on(self.bucket.store.copy(&from, &to)) {
            Ok(()) => Ok(()),
            // Not all services can.
            Err(_) => self.put(COPY, &mut |out| out.write_all(manifest).map_err(Error::io("write"))),
        }
    }

    /// Whether both have the same tag: it is that of their bytes.
    fn has_copy_of(&self, manifest: &[u8]) -> bool {
        let of_manifest = self.remembered().filter(|(bytes, _)| bytes.as_slice() == manifest);
        let path = self.path(&[OBJECTS, COPY]);
        let copy = self.bucket.runtime.block_on(self.bucket.store.head(&path)).ok();
        of_manifest
            .and_then(|(_, version)| version?.e_tag)
            .is_some_and(|e_tag| copy.and_then(|copy| copy.e_tag) == Some(e_tag))
    }
}

/// How often a manifest is sent: the layer below does not retry conditional requests.
const MANIFEST_ATTEMPTS_MAX: u32 = 5;

/// Whether we can't tell if the service executed the request.
fn is_lost(error: &object_store::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return matches!(error.kind(), HttpErrorKind::Timeout | HttpErrorKind::Interrupted);
        }
        source = error.source();
    }
    false
}

impl ObjectStorage {
    /// Puts a manifest if there is none, or only this version of it. Returns its own.
    fn put_under_condition(
        &self,
        path: &Path,
        manifest: &[u8],
        replaces: Option<UpdateVersion>,
    ) -> object_store::Result<Option<UpdateVersion>> {
        let mode = replaces.map_or(PutMode::Create, PutMode::Update);
        let put = self.bucket.store.put_opts(path, manifest.to_vec().into(), mode.into());
        self.bucket.runtime.block_on(put).map(|put| version(put.e_tag, put.version))
    }
}

/// An object that is being uploaded.
struct Upload<'a> {
    bucket: &'a Bucket,
    path: Path,
    upload: BufWriter,
    chunk: Vec<u8>,
}

impl Upload<'_> {
    fn complete(&mut self) -> Result<()> {
        let done = self.bucket.runtime.block_on(self.upload.shutdown());
        done.map_err(|error| self.bucket.trouble("write", &self.path, &error))
    }

    /// Has the service discard the parts; if it keeps any, its own rules remove them.
    fn abort(&mut self) {
        let _ = self.bucket.runtime.block_on(self.upload.abort());
    }
}

impl Write for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK_SIZE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.chunk);
        let done = self.bucket.runtime.block_on(self.upload.put(chunk.into()));
        done.map_err(|error| {
            io::Error::other(format!("{}/{}: {}", self.bucket.name, self.path, self.bucket.line(&error)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_says_is_one_line() {
        let answer = "Generic S3 error: Error performing PUT http://h/b/k in 3ms - Server returned non-2xx status code: \
                      403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code><Message>The token\nhas \
                      expired.</Message></Error>";
        let said = |text: &str| line(&io::Error::other(text.to_owned()));
        assert_eq!(said(answer), "403 Forbidden: ExpiredToken: The token has expired.");
        assert_eq!(said("not\nreached"), "not reached");
    }

    #[test]
    fn a_tag_of_other_bytes_is_known_where_it_is_an_md5() {
        let empty = "\"d41d8cd98f00b204e9800998ecf8427e\"";
        assert!(tag_fits(empty, b""));
        assert!(!tag_fits(empty, b"x"));
        // The tag of a multipart upload, and one of another kind.
        assert!(tag_fits("\"d41d8cd98f00b204e9800998ecf8427e-2\"", b"x"));
        assert!(tag_fits("\"other\"", b"x"));
    }
}
