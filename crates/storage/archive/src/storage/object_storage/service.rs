//! The client of each service, made from settings as they are in the environment: `AWS_…` and a profile for S3, `AZURE_…` for Azure,
//! `GOOGLE_…` for Google Cloud.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ClientOptions, ObjectStore};

use super::process::CredentialProcess;
use super::profile::{CredentialProfile, NamedSettings};
use super::{Patience, line};
use crate::error::{Error, Result};
use crate::storage::place::{ObjectPlace, StorageService};

/// A connection on which nothing arrives for this long is abandoned.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that is not there by then is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The setting with the storage class of segments.
pub(crate) const STORAGE_CLASS: &str = "AWS_STORAGE_CLASS";
/// Settings of the service's own encryption.
pub(crate) const SSE: &str = "AWS_SERVER_SIDE_ENCRYPTION";
pub(crate) const SSE_KMS_KEY_ID: &str = "AWS_SSE_KMS_KEY_ID";

/// Settings that name credentials.
const NAMES_WHO: [&str; 5] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];
/// Classes from which an object is only read after it was asked for hours before.
const OFFLINE: [&str; 2] = ["GLACIER", "DEEP_ARCHIVE"];

/// A client, and the facts about its settings.
pub(super) struct ServiceClient {
    pub(super) store: Arc<dyn ObjectStore>,
    /// No setting names credentials.
    pub(super) is_anonymous: bool,
    /// The storage class of segments.
    pub(super) storage_class: Option<String>,
    /// Whether the end of an object can be asked for without its size.
    pub(super) has_suffixes: bool,
}

/// The client for a place.
pub(super) fn client(
    place: &ObjectPlace<'_>,
    settings: NamedSettings,
    patience: Patience,
) -> Result<ServiceClient> {
    // The provider is process-wide; an existing one works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_timeout(patience.request)
        .with_connect_timeout(CONNECT_TIMEOUT.min(patience.request))
        .with_read_timeout(READ_TIMEOUT.min(patience.request));
    match place.service {
        StorageService::S3 => s3(place, settings, patience, options),
        #[cfg(feature = "azure")]
        StorageService::Azure => azure(place, &settings, patience, options),
        #[cfg(feature = "gcs")]
        StorageService::Gcs => gcs(place, &settings, patience, options),
        #[cfg(not(all(feature = "azure", feature = "gcs")))]
        _ => Err(Error::unexpected(
            "place",
            place.root,
            "a folder or s3://BUCKET/PREFIX: this program was built without the features azure and gcs",
        )),
    }
}

fn s3(
    place: &ObjectPlace<'_>,
    mut settings: NamedSettings,
    patience: Patience,
    options: ClientOptions,
) -> Result<ServiceClient> {
    let profile = CredentialProfile::of(&settings)?;
    settings.extend(profile.settings);
    let storage_class = settings.remove(STORAGE_CLASS).filter(|class| !class.is_empty());
    if let Some(class) = storage_class.as_ref().filter(|class| OFFLINE.contains(&class.as_str())) {
        let expected = "one from which objects are read at once, since each is read back: a lifecycle rule can move it later";
        return Err(Error::unexpected("storage class", class, expected));
    }
    let is_anonymous =
        profile.process.is_none() && !NAMES_WHO.iter().any(|name| settings.contains_key(*name));
    let mut builder = AmazonS3Builder::new()
        .with_client_options(options)
        .with_retry(patience.into())
        .with_allow_http(true)
        .with_bucket_name(place.bucket);
    for (name, value) in settings {
        if let Some(key) = aws_key(&name) {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(process) = profile.process {
        builder = builder.with_credentials(Arc::new(CredentialProcess::new(process)));
    }
    let store = built(place, builder.build())?;
    Ok(ServiceClient { store, is_anonymous, storage_class, has_suffixes: true })
}

#[cfg(feature = "azure")]
fn azure(
    place: &ObjectPlace<'_>,
    settings: &NamedSettings,
    patience: Patience,
    options: ClientOptions,
) -> Result<ServiceClient> {
    use object_store::azure::MicrosoftAzureBuilder;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_client_options(options)
        .with_retry(patience.into())
        .with_allow_http(true)
        .with_container_name(place.bucket);
    for (name, value) in settings.iter().filter(|(name, _)| name.starts_with("AZURE_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(account) = place.account {
        builder = builder.with_account(account);
    }
    let store = built(place, builder.build())?;
    Ok(ServiceClient { store, is_anonymous: false, storage_class: None, has_suffixes: false })
}

#[cfg(feature = "gcs")]
fn gcs(
    place: &ObjectPlace<'_>,
    settings: &NamedSettings,
    patience: Patience,
    options: ClientOptions,
) -> Result<ServiceClient> {
    use object_store::gcp::GoogleCloudStorageBuilder;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_client_options(options.with_allow_http(true))
        .with_retry(patience.into())
        .with_bucket_name(place.bucket);
    for (name, value) in settings.iter().filter(|(name, _)| name.starts_with("GOOGLE_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let store = built(place, builder.build())?;
    Ok(ServiceClient { store, is_anonymous: false, storage_class: None, has_suffixes: true })
}

fn built<S: ObjectStore>(
    place: &ObjectPlace<'_>,
    built: object_store::Result<S>,
) -> Result<Arc<dyn ObjectStore>> {
    match built {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(Error::io(place.root)(io::Error::other(line(&error)))),
    }
}

/// The setting for an environment variable.
fn aws_key(name: &str) -> Option<AmazonS3ConfigKey> {
    name.starts_with("AWS_").then(|| name.to_ascii_lowercase().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_names_that_the_ecosystem_knows() {
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AWS_REGION",
            "AWS_TIMEOUT",
            "AWS_CONDITIONAL_PUT",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
            SSE,
            SSE_KMS_KEY_ID,
        ] {
            assert!(aws_key(name).is_some(), "{name}");
        }
        assert!(aws_key("ACCESS_KEY_ID").is_none());
    }
}
