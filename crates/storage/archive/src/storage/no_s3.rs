//! Stands in for files in object storage in a program that was built without it: there are none.

use std::io::Read;
use std::path::Path;

use crate::error::Result;
use crate::storage::{ReadRange, in_object_storage, without_services};

/// No files.
#[derive(Debug)]
pub enum NoS3Files {}

impl NoS3Files {
    /// None: a place in object storage is refused.
    ///
    /// # Errors
    ///
    /// A place in object storage.
    pub fn at(place: &Path) -> Result<Option<Self>> {
        match in_object_storage(place) {
            Some(place) => Err(without_services(place)),
            None => Ok(None),
        }
    }

    /// Never.
    pub fn place(&self) -> String {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn put(&self, _: &str, _: &mut dyn Read) -> Result<()> {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn put_new(&self, _: &str, _: &[u8]) -> Result<()> {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn get(&self, _: &str) -> Result<Option<Vec<u8>>> {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn open(&self, _: &str) -> Result<Box<dyn ReadRange>> {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn list(&self, _: &str) -> Result<Vec<String>> {
        match *self {}
    }

    /// Never.
    #[expect(clippy::missing_errors_doc, reason = "it is never called")]
    pub fn delete(&self, _: &str) -> Result<()> {
        match *self {}
    }
}
