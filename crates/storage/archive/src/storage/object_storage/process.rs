//! Credentials that a command prints as JSON (`credential_process` of a profile), asked again before they expire.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::storage::command;

/// Credentials are not used this shortly before they expire.
const SPARE: Duration = Duration::from_secs(300);
/// A command is not asked again sooner than this, even if its credentials have expired already.
const PAUSE: Duration = Duration::from_secs(10);

/// A command, and its last credentials.
pub(super) struct CredentialProcess {
    command: String,
    known: Mutex<Option<(Arc<AwsCredential>, Option<Instant>)>>,
}

/// The output of the command: the AWS command line's format.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PrintedCredentials {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl CredentialProcess {
    pub(super) fn new(command: String) -> Self {
        CredentialProcess { command, known: Mutex::default() }
    }

    fn credential(&self) -> io::Result<Arc<AwsCredential>> {
        let mut known = self.known.lock();
        if let Some((credential, until)) = known.as_ref()
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(Arc::clone(credential));
        }
        let printed = self.printed()?;
        let until = match &printed.expiration {
            None => None,
            Some(text) => {
                let expires: Timestamp = text
                    .parse()
                    .map_err(|_| self.failed(&format!("it printed Expiration {text:?}, expected a time")))?;
                let left = SystemTime::from(expires).duration_since(SystemTime::now()).unwrap_or_default();
                Some(Instant::now() + left.saturating_sub(SPARE).max(PAUSE))
            }
        };
        let credential = Arc::new(AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token.filter(|token| !token.is_empty()),
        });
        *known = Some((Arc::clone(&credential), until));
        Ok(credential)
    }

    fn printed(&self) -> io::Result<PrintedCredentials> {
        let output = command::output(&self.command, command::PATIENCE)
            .map_err(|error| self.failed(&error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(self.failed(&format!("{}: {}", output.status, said.trim())));
        }
        // Not the error's own words: they may quote a secret.
        let printed: PrintedCredentials = serde_json::from_slice(&output.stdout)
            .map_err(|_| self.failed("it printed no JSON with Version, AccessKeyId and SecretAccessKey"))?;
        match printed.version {
            1 => Ok(printed),
            other => Err(self.failed(&format!("it printed Version {other}, expected 1"))),
        }
    }

    fn failed(&self, why: &str) -> io::Error {
        io::Error::other(format!(
            "credential_process {}: {why}",
            self.command.split(' ').next().unwrap_or_default()
        ))
    }
}

impl fmt::Debug for CredentialProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

impl CredentialProvider for CredentialProcess {
    type Credential = AwsCredential;

    // The trait's macro makes this of an async function. The command blocks the one thread that sends requests, and those
    // wait for it.
    fn get_credential<'a, 'b>(
        &'a self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let told = self.credential();
        Box::pin(async {
            told.map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_asked_again_only_once_its_keys_expire_and_its_secret_is_not_told() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        let command = |expiration: &str| {
            let json = format!(
                r#"{{"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","SessionToken":"t"{expiration}}}"#
            );
            CredentialProcess::new(format!("echo x >> {}; echo '{json}'", count.display()))
        };
        let asked = || std::fs::read_to_string(&count).map_or(0, |text| text.lines().count());
        for expiration in ["", r#","Expiration":"2999-01-01T00:00:00Z""#] {
            let _ = std::fs::remove_file(&count);
            let process = command(expiration);
            let credential = process.credential().unwrap();
            process.credential().unwrap();
            assert_eq!(
                (credential.key_id.as_str(), credential.token.as_deref(), asked()),
                ("A", Some("t"), 1)
            );
        }
        let said =
            |command: &str| CredentialProcess::new(command.into()).credential().unwrap_err().to_string();
        let secret = said("echo '{\"Version\":1,\"SecretAccessKey\":\"hush\"}'");
        assert!(secret.contains("printed no JSON") && !secret.contains("hush"), "{secret}");
        let soon = said(
            "echo '{\"Version\":1,\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Expiration\":\"soon\"}'",
        );
        assert!(soon.contains("Expiration \"soon\""), "{soon}");
        assert!(said("echo gone >&2; exit 3").ends_with("exit status: 3: gone"));
        assert!(
            said("echo '{\"Version\":2,\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\"}'")
                .contains("Version 2")
        );
    }
}
