//! Places in object storage: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` and
//! `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`. A service that a program was built without is a place all the same, and refused by
//! name: it is no folder.

#[cfg(any(feature = "s3", test))]
use crate::error::{Error, Result};

/// Who keeps objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, and what speaks its protocol.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
}

/// Schemes and their services. With two slashes each, so that a folder named `s3:` is one.
const SCHEMES: [(&str, Service); 5] = [
    ("s3://", Service::S3),
    ("gs://", Service::Gcs),
    ("az://", Service::Azure),
    ("abfss://", Service::Azure),
    ("abfs://", Service::Azure),
];

/// A place in object storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Where it is.
    pub service: Service,
    /// The scheme, the bucket, and the account if it stands there: `s3://BUCKET`.
    pub root: &'a str,
    /// The bucket, or container.
    pub bucket: &'a str,
    /// Azure's account, if the place names it.
    pub account: Option<&'a str>,
    /// Where in the bucket.
    pub prefix: &'a str,
}

impl<'a> Place<'a> {
    /// The place that this text names; `None`: a folder.
    pub fn of(text: &'a str) -> Option<Place<'a>> {
        let (scheme, service) = SCHEMES.iter().find(|(scheme, _)| text.starts_with(scheme))?;
        let rest = text.get(scheme.len()..)?;
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let root = text.get(..scheme.len() + authority.len())?;
        let (bucket, account) = match (service, authority.split_once('@')) {
            (Service::Azure, Some((container, host))) => (container, host.split('.').next()),
            _ => (authority, None),
        };
        Some(Place { service: *service, root, bucket, account, prefix })
    }

    /// Checks that it names a bucket.
    #[cfg(any(feature = "s3", test))]
    pub(super) fn checked(self) -> Result<Place<'a>> {
        match self.bucket.is_empty() || self.account == Some("") {
            true => Err(Error::unexpected("place", self.root, "s3://BUCKET/PREFIX")),
            false => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_service_a_bucket_and_a_prefix() {
        let told = |text| {
            let place = Place::of(text)?;
            Some((place.service, place.bucket, place.account, place.prefix))
        };
        assert_eq!(told("s3://bucket/a/b"), Some((Service::S3, "bucket", None, "a/b")));
        assert_eq!(told("gs://bucket"), Some((Service::Gcs, "bucket", None, "")));
        assert_eq!(told("az://container/a"), Some((Service::Azure, "container", None, "a")));
        let abfss = "abfss://container@account.dfs.core.windows.net/a/b";
        assert_eq!(told(abfss), Some((Service::Azure, "container", Some("account"), "a/b")));
        assert_eq!(Place::of(abfss).map(|place| place.root), abfss.strip_suffix("/a/b"));
        assert_eq!((told("/backup"), told("s3:/bucket"), told("backup/s3://x")), (None, None, None));
        for empty in ["s3://", "s3:///prefix", "abfss://container@/x"] {
            assert!(Place::of(empty).unwrap().checked().is_err(), "{empty}");
        }
    }
}
