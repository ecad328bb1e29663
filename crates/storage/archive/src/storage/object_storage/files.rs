//! Files in object storage by paths of their own, below a place: for programs that keep more there than archives. A file
//! appears whole or not at all, as objects of archives do.

use std::io::{self, Read, Write};
use std::path::Path as FilePath;

use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};

use super::{
    Bucket, CHUNK_SIZE, MANIFEST_ATTEMPTS_MAX, ObjectStorage, PART_SIZE, PARTS_MAX, StoredObject, Upload,
    is_lost,
};
use crate::error::{Error, Result};
use crate::storage::{self, ReadRange};

/// The files below a place.
pub struct S3Files {
    bucket: Bucket,
    prefix: Path,
}

impl std::fmt::Debug for S3Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("S3Files").field(&self.bucket.name).field(&self.prefix).finish()
    }
}

impl S3Files {
    /// The files below `s3://BUCKET/PREFIX`, with the settings of the process's environment; `None`: the place is no such
    /// one.
    ///
    /// # Errors
    ///
    /// No bucket, or invalid settings.
    pub fn at(place: &FilePath) -> Result<Option<Self>> {
        let Some(place) = storage::in_object_storage(place) else { return Ok(None) };
        let ObjectStorage { bucket, prefix, .. } = ObjectStorage::from_environment(place, &[], None)?;
        Ok(Some(S3Files { bucket, prefix }))
    }

    /// The place as it is written: `s3://BUCKET/PREFIX`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.bucket.name, self.prefix).trim_end_matches('/').to_owned()
    }

    /// Our paths stand in the names of objects as they are.
    fn path(&self, path: &str) -> Result<Path> {
        let whole = format!("{}/{path}", self.prefix);
        Path::parse(&whole)
            .map_err(|error| Error::io(format!("name {whole}"))(io::Error::other(error.to_string())))
    }

    /// Stores a file of any size, in place of one that is there.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read, a service that doesn't take them.
    pub fn put(&self, path: &str, from: &mut dyn Read) -> Result<()> {
        let path = self.path(path)?;
        let upload = BufWriter::with_capacity(self.bucket.store.clone(), path.clone(), PART_SIZE)
            .with_max_concurrency(PARTS_MAX);
        let mut upload = Upload { bucket: &self.bucket, path, upload, chunk: Vec::with_capacity(CHUNK_SIZE) };
        match io::copy(from, &mut upload).and_then(|_| upload.flush()) {
            Ok(()) => upload.complete(),
            Err(error) => {
                upload.abort();
                Err(Error::io("write")(error))
            }
        }
    }

    /// Stores a small file if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] if there is one with other bytes.
    pub fn put_new(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let place = self.path(path)?;
        let mut attempts = 1;
        loop {
            let put = self.bucket.store.put_opts(&place, bytes.to_vec().into(), PutMode::Create.into());
            match self.bucket.runtime.block_on(put) {
                Ok(_) => return Ok(()),
                // It may be stored already, if the answer to an earlier attempt was lost.
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    return match self.get(path)?.as_deref() == Some(bytes) {
                        true => Ok(()),
                        false => Err(Error::Changed),
                    };
                }
                Err(error) if is_lost(&error) && attempts < MANIFEST_ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(self.bucket.trouble("write", &place, &error)),
            }
        }
    }

    /// The bytes of a small file; `None`: there is none.
    ///
    /// # Errors
    ///
    /// A service that can't be asked.
    pub fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(path)?;
        let got = self.bucket.runtime.block_on(async { self.bucket.store.get(&path).await?.bytes().await });
        match got {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { ref source, .. })
                if !source.to_string().contains("NoSuchBucket") =>
            {
                Ok(None)
            }
            Err(error) => Err(self.bucket.trouble("read", &path, &error)),
        }
    }

    /// Opens a file, to read ranges of it.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn open(&self, path: &str) -> Result<Box<dyn ReadRange>> {
        Ok(Box::new(StoredObject::open(&self.bucket, self.path(path)?)?))
    }

    /// The paths of all files below a folder, which may be empty: the place.
    ///
    /// # Errors
    ///
    /// A service that can't be asked.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let below = match folder.is_empty() {
            true => self.prefix.clone(),
            false => self.path(folder)?,
        };
        let prefix = self.prefix.as_ref();
        let path = |path: &Path| Some(path.as_ref().strip_prefix(prefix)?.trim_start_matches('/').to_owned());
        let mut found = Vec::new();
        let mut folders = vec![below];
        while let Some(folder) = folders.pop() {
            let listed = self.bucket.runtime.block_on(self.bucket.store.list_with_delimiter(Some(&folder)));
            let listed = listed.map_err(|error| self.bucket.trouble("list", &folder, &error))?;
            found.extend(listed.objects.iter().filter_map(|object| path(&object.location)));
            folders.extend(listed.common_prefixes);
        }
        Ok(found)
    }

    /// Deletes a file. It is no error if there is none.
    ///
    /// # Errors
    ///
    /// A service that doesn't.
    pub fn delete(&self, path: &str) -> Result<()> {
        let path = self.path(path)?;
        match self.bucket.runtime.block_on(self.bucket.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.bucket.trouble("delete", &path, &error)),
        }
    }
}
