//! Places in object storage: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` and
//! `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`. A program that was built without a service still knows its
//! places, and refuses them by name instead of making a folder.

use crate::error::{Error, Result};

/// The service that stores the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageService {
    /// Amazon S3, and what speaks its protocol.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
}

/// Schemes and their services. With two slashes each, so that a folder named `s3:` is one.
const SCHEMES: [(&str, StorageService); 5] = [
    ("s3://", StorageService::S3),
    ("gs://", StorageService::Gcs),
    ("az://", StorageService::Azure),
    ("abfss://", StorageService::Azure),
    ("abfs://", StorageService::Azure),
];

/// A place in object storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectPlace<'a> {
    /// The service that has the place.
    pub service: StorageService,
    /// The scheme, the bucket, and the account if it stands there: `s3://BUCKET`.
    pub root: &'a str,
    /// The bucket, or container.
    pub bucket: &'a str,
    /// Azure's account, if the place names it.
    pub account: Option<&'a str>,
    /// Where in the bucket.
    pub prefix: &'a str,
}

impl<'a> ObjectPlace<'a> {
    /// The place that this text names; `None`: a folder.
    pub fn of(text: &'a str) -> Option<ObjectPlace<'a>> {
        let (scheme, service) = SCHEMES.iter().find(|(scheme, _)| text.starts_with(scheme))?;
        let rest = text.get(scheme.len()..)?;
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let root = text.get(..scheme.len() + authority.len())?;
        let (bucket, account) = match (service, authority.split_once('@')) {
            (StorageService::Azure, Some((container, host))) => (container, host.split('.').next()),
            _ => (authority, None),
        };
        Some(ObjectPlace { service: *service, root, bucket, account, prefix })
    }

    /// Checks that it names a bucket.
    #[cfg(any(feature = "s3", test))]
    pub(super) fn checked(self) -> Result<ObjectPlace<'a>> {
        match self.bucket.is_empty() || self.account == Some("") {
            true => Err(Error::unexpected("place", self.root, "s3://BUCKET/PREFIX")),
            false => Ok(self),
        }
    }
}

/// Schemes of other programs for the same services, and ours.
const OTHER_SCHEMES: [(&str, &str); 9] = [
    ("s3a", "s3"),
    ("s3n", "s3"),
    ("s3", "s3"),
    ("gs", "gs"),
    ("gcs", "gs"),
    ("az", "az"),
    ("azure", "az"),
    ("abfs", "abfs"),
    ("abfss", "abfss"),
];

/// Checks that a text which is no place in object storage was not meant as one, or as an address. As a folder it would be
/// made where nobody looks for it, on the very disk that is to be backed up.
///
/// # Errors
///
/// `s3:/b/x`, `S3://b/x`, `file:///x`, `https://x` and others like them, each with the place that was probably meant.
pub fn refuse_addresses(text: &str) -> Result<()> {
    if ObjectPlace::of(text).is_some() {
        return Ok(());
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(()) };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+.-".contains(char));
    if !is_scheme {
        return Ok(());
    }
    let scheme = scheme.to_ascii_lowercase();
    let there = rest.trim_start_matches('/');
    let ours = OTHER_SCHEMES.iter().find(|(other, _)| *other == scheme).map(|(_, ours)| *ours);
    let expected = match (scheme.as_str(), ours) {
        (_, Some(ours)) => format!("{ours}://{there}"),
        ("file", _) => format!("the path of a folder, such as /{there}"),
        ("http" | "https", _) => {
            "s3://BUCKET/PREFIX, with the address of the service in AWS_ENDPOINT_URL".to_owned()
        }
        (_, None) if rest.starts_with('/') => "a folder, s3://BUCKET/PREFIX, gs:// or az://".to_owned(),
        // A folder may have a colon in its name.
        (_, None) => return Ok(()),
    };
    Err(Error::unexpected("place", text, format_args!("{expected}; a folder of that name is ./{text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_as_an_address_is_no_folder() {
        for (text, expected) in [
            ("s3:/b/x", "s3://b/x"),
            ("s3:b/x", "s3://b/x"),
            ("S3://b/y", "s3://b/y"),
            ("s3:///b/y", "s3://"),
            ("s3a://b/y", "s3://b/y"),
            ("GS://b", "gs://b"),
            ("gcs://b", "gs://b"),
            ("Az:/c", "az://c"),
            ("file:///x", "a folder, such as /x;"),
            ("FILE:/x", "a folder, such as /x;"),
            ("https://x", "AWS_ENDPOINT_URL"),
            ("http:x", "AWS_ENDPOINT_URL"),
            ("ftp://x", "a folder, s3://BUCKET/PREFIX"),
            ("mysql:/x", "a folder, s3://BUCKET/PREFIX"),
        ] {
            match ObjectPlace::of(text) {
                // No bucket: refused when it is opened.
                Some(place) => assert!(place.checked().is_err(), "{text}"),
                None => {
                    let error = refuse_addresses(text).unwrap_err().to_string();
                    assert!(error.starts_with(&format!("place is {text}, expected ")), "{error}");
                    assert!(error.contains(expected) && error.ends_with(&format!("is ./{text}")), "{error}");
                }
            }
        }
        for folder in [
            "/backup/db1",
            "backup",
            "./s3:/b",
            "a:b",
            "C:/x",
            "2026-11-27T20:00:00/x",
            "",
            ":",
            "/a:/b",
            "s3://b/x",
        ] {
            assert!(refuse_addresses(folder).is_ok(), "{folder}");
        }
    }

    #[test]
    fn a_place_has_a_service_a_bucket_and_a_prefix() {
        let told = |text| {
            let place = ObjectPlace::of(text)?;
            Some((place.service, place.bucket, place.account, place.prefix))
        };
        assert_eq!(told("s3://bucket/a/b"), Some((StorageService::S3, "bucket", None, "a/b")));
        assert_eq!(told("gs://bucket"), Some((StorageService::Gcs, "bucket", None, "")));
        assert_eq!(told("az://container/a"), Some((StorageService::Azure, "container", None, "a")));
        let abfss = "abfss://container@account.dfs.core.windows.net/a/b";
        assert_eq!(told(abfss), Some((StorageService::Azure, "container", Some("account"), "a/b")));
        assert_eq!(ObjectPlace::of(abfss).map(|place| place.root), abfss.strip_suffix("/a/b"));
        assert_eq!((told("/backup"), told("s3:/bucket"), told("backup/s3://x")), (None, None, None));
        for empty in ["s3://", "s3:///prefix", "abfss://container@/x"] {
            assert!(ObjectPlace::of(empty).unwrap().checked().is_err(), "{empty}");
        }
    }
}
