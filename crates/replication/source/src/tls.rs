//! TLS as MySQL's clients have it: five modes, the user's own CA, versions and suites by name.
//!
//! `VERIFY_IDENTITY` looks for the host's name in the certificate's subject alternative names. Unlike MySQL's
//! clients it does not fall back to the common name, which no current certificate authority relies on.
//! Certificates older than X.509 version 3 can't be verified.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};

use crate::error::{Error, FileContext, Result};

/// Whether to use TLS, and which servers to trust (`--ssl-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    /// Never.
    Disabled,
    /// TLS is used if the server offers it; any server is trusted.
    #[default]
    Preferred,
    /// Always; any server is trusted.
    Required,
    /// Always; the certificate must come from the given authority.
    VerifyCa,
    /// Always; and it must name the host.
    VerifyIdentity,
}

impl SslMode {
    /// The mode of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "DISABLED" => SslMode::Disabled,
            "PREFERRED" => SslMode::Preferred,
            "REQUIRED" => SslMode::Required,
            "VERIFY_CA" => SslMode::VerifyCa,
            "VERIFY_IDENTITY" => SslMode::VerifyIdentity,
            _ => return None,
        })
    }
}

/// The `--ssl-…` and `--tls-…` options of MySQL's clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `--ssl-mode`. Not given: verify-ca if an authority is given, else preferred.
    pub mode: Option<SslMode>,
    /// `--ssl-ca`: certificates of trusted authorities, in PEM form.
    pub ca: Option<PathBuf>,
    /// `--ssl-capath`: a directory of such files.
    pub ca_path: Option<PathBuf>,
    /// `--ssl-cert`: the client's own certificate.
    pub certificate: Option<PathBuf>,
    /// `--ssl-key`: its private key.
    pub key: Option<PathBuf>,
    /// `--ssl-crl`: revoked certificates.
    pub crl: Option<PathBuf>,
    /// `--ssl-crlpath`: a directory of such files.
    pub crl_path: Option<PathBuf>,
    /// `--ssl-cipher`: suites of TLS 1.2 by OpenSSL's names, separated by colons.
    pub ciphers: Option<String>,
    /// `--tls-ciphersuites`: suites of TLS 1.3, separated by colons.
    pub ciphersuites: Option<String>,
    /// `--tls-version`: TLSv1.2 and TLSv1.3, separated by commas.
    pub versions: Option<String>,
    /// `--tls-sni-servername`: the name to ask for, if not the host's.
    pub sni_server_name: Option<String>,
}

impl TlsOptions {
    /// The mode in force.
    pub fn effective_mode(&self) -> SslMode {
        let trusts_someone = self.ca.is_some() || self.ca_path.is_some();
        self.mode.unwrap_or(if trusts_someone { SslMode::VerifyCa } else { SslMode::Preferred })
    }

    /// Whether an authority is named, and the mode asks for no certificate of it.
    pub fn ignores_authority(&self) -> bool {
        let names_authority = self.ca.is_some() || self.ca_path.is_some();
        names_authority && !matches!(self.effective_mode(), SslMode::VerifyCa | SslMode::VerifyIdentity)
    }

    /// How to speak TLS with a host.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>> {
        let provider = Arc::new(self.provider()?);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.protocol_versions()?)
            .map_err(|error| Error::Option(format!("TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider)?);
        let config = match (&self.certificate, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), key) => {
                // As with OpenSSL, one file may hold both.
                let key = key.as_ref().unwrap_or(certificate);
                let chain = read_pem::<CertificateDer<'static>>(certificate)?;
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad_pem(key, error))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| Error::Option(format!("ssl-cert and ssl-key: {error}")))?
            }
            (None, Some(_)) => return Err(Error::Option("ssl-key is given without ssl-cert".into())),
        };
        Ok(Arc::new(config))
    }

    /// The name to ask for and, in mode VERIFY_IDENTITY, to find in the certificate.
    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>> {
        let name = match self.effective_mode() {
            // The requested name does not decide which server to trust.
            SslMode::VerifyIdentity => host,
            _ => self.sni_server_name.as_deref().unwrap_or(host),
        };
        ServerName::try_from(name.to_owned())
            .map_err(|_| Error::Option(format!("{name} is no name that TLS could ask for")))
    }

    fn provider(&self) -> Result<CryptoProvider> {
        let mut provider = rustls::crypto::ring::default_provider();
        let mut wanted: Vec<&str> = Vec::new();
        for (option, names, is_tls13) in
            [("ssl-cipher", &self.ciphers, false), ("tls-ciphersuites", &self.ciphersuites, true)]
        {
            let known = SUITES.iter().filter(|suite| suite.is_tls13() == is_tls13);
            match names {
                None => wanted.extend(known.map(|suite| suite.iana)),
                Some(names) => {
                    let named = |suite: &&Suite| names.split(':').any(|name| suite.has_name(name.trim()));
                    let before = wanted.len();
                    wanted.extend(known.filter(named).map(|suite| suite.iana));
                    // An empty list of suites of TLS 1.3 leaves those of 1.2.
                    if wanted.len() == before && !names.is_empty() {
                        return Err(Error::Option(format!("{option}: none of {names} is known")));
                    }
                }
            }
        }
        provider.cipher_suites.retain(|suite| wanted.contains(&iana_name(suite.suite()).as_str()));
        Ok(provider)
    }

    fn protocol_versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>> {
        let Some(names) = &self.versions else { return Ok(vec![&version::TLS12, &version::TLS13]) };
        let versions = names.split(',').map(|name| match name.trim() {
            "TLSv1.2" => Ok(&version::TLS12),
            "TLSv1.3" => Ok(&version::TLS13),
            other => Err(Error::Option(format!("tls-version: {other} is neither TLSv1.2 nor TLSv1.3"))),
        });
        versions.collect()
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
        let mode = self.effective_mode();
        if !matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity) {
            return Ok(Arc::new(TrustAnybody { provider }));
        }
        let mut roots = RootCertStore::empty();
        let mut revoked = Vec::new();
        for file in files(self.ca.as_deref(), self.ca_path.as_deref())? {
            for certificate in read_pem::<CertificateDer<'static>>(&file)? {
                roots.add(certificate).map_err(|error| {
                    Error::Option(format!(
                        "ssl-ca: {} holds a certificate that can't be trusted: {error}",
                        file.display()
                    ))
                })?;
            }
        }
        if roots.is_empty() {
            let name = if mode == SslMode::VerifyCa { "VERIFY_CA" } else { "VERIFY_IDENTITY" };
            return Err(Error::Option(format!(
                "ssl-mode {name} needs the certificate of an authority: ssl-ca or ssl-capath"
            )));
        }
        for file in files(self.crl.as_deref(), self.crl_path.as_deref())? {
            revoked.extend(read_pem::<CertificateRevocationListDer<'static>>(&file)?);
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .with_crls(revoked)
            .build()
            .map_err(|error| Error::Option(format!("ssl-ca, ssl-crl: {error}")))?;
        Ok(if mode == SslMode::VerifyIdentity { inner } else { Arc::new(TrustAuthority { inner }) })
    }
}

/// A suite under both its names.
struct Suite {
    iana: &'static str,
    openssl: &'static str,
}

impl Suite {
    fn is_tls13(&self) -> bool {
        self.openssl == self.iana
    }

    fn has_name(&self, name: &str) -> bool {
        self.openssl == name || self.iana == name
    }
}

/// The suites that ring's provider has.
const SUITES: [Suite; 9] = [
    Suite { iana: "TLS_AES_256_GCM_SHA384", openssl: "TLS_AES_256_GCM_SHA384" },
    Suite { iana: "TLS_AES_128_GCM_SHA256", openssl: "TLS_AES_128_GCM_SHA256" },
    Suite { iana: "TLS_CHACHA20_POLY1305_SHA256", openssl: "TLS_CHACHA20_POLY1305_SHA256" },
    Suite { iana: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", openssl: "ECDHE-ECDSA-AES256-GCM-SHA384" },
    Suite { iana: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", openssl: "ECDHE-ECDSA-AES128-GCM-SHA256" },
    Suite { iana: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", openssl: "ECDHE-ECDSA-CHACHA20-POLY1305" },
    Suite { iana: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", openssl: "ECDHE-RSA-AES256-GCM-SHA384" },
    Suite { iana: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", openssl: "ECDHE-RSA-AES128-GCM-SHA256" },
    Suite { iana: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", openssl: "ECDHE-RSA-CHACHA20-POLY1305" },
];

/// rustls calls the suites of 1.3 `TLS13_…`; their registered names begin with `TLS_`.
fn iana_name(suite: rustls::CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

/// Modes PREFERRED and REQUIRED: nobody can listen, but anybody can answer. Signatures are not checked
/// either: they would only prove that the peer holds the key of a certificate that proves nothing.
#[derive(Debug)]
struct TrustAnybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Mode VERIFY_CA: the certificate must be good, whatever host it names.
#[derive(Debug)]
struct TrustAuthority {
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for TrustAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        match self.inner.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: the chain was found good.
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Returns a file and those of a directory.
fn files(file: Option<&Path>, directory: Option<&Path>) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = file.map(Path::to_owned).into_iter().collect();
    if let Some(directory) = directory {
        for entry in std::fs::read_dir(directory).at("read", directory)? {
            let path = entry.at("read", directory)?.path();
            if path.is_file() {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn read_pem<T: PemObject>(path: &Path) -> Result<Vec<T>> {
    let objects = T::pem_file_iter(path).map_err(|error| bad_pem(path, error))?;
    objects.map(|object| object.map_err(|error| bad_pem(path, error))).collect()
}

fn bad_pem(path: &Path, error: rustls::pki_types::pem::Error) -> Error {
    Error::Option(format!("read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_provider_is_known_by_name() {
        let names: Vec<String> =
            rustls::crypto::ring::ALL_CIPHER_SUITES.iter().map(|suite| iana_name(suite.suite())).collect();
        let known: Vec<&str> = SUITES.iter().map(|suite| suite.iana).collect();
        assert_eq!(names.len(), known.len());
        assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
    }

    #[test]
    fn suites_are_chosen_by_either_name() {
        let options = TlsOptions {
            ciphers: Some("ECDHE-RSA-AES128-GCM-SHA256:NO-SUCH".into()),
            ciphersuites: Some("TLS_AES_128_GCM_SHA256".into()),
            ..TlsOptions::default()
        };
        assert_eq!(options.provider().unwrap().cipher_suites.len(), 2);
        let options = TlsOptions { ciphers: Some("NO-SUCH".into()), ..TlsOptions::default() };
        let error = options.provider().unwrap_err().to_string();
        assert_eq!(error, "ssl-cipher: none of NO-SUCH is known");
        assert_eq!(TlsOptions::default().provider().unwrap().cipher_suites.len(), 9);
    }

    #[test]
    fn an_authority_implies_that_it_is_asked() {
        let options = TlsOptions { ca: Some("ca.pem".into()), ..TlsOptions::default() };
        assert_eq!(options.effective_mode(), SslMode::VerifyCa);
        let options = TlsOptions { mode: Some(SslMode::Required), ..options };
        assert_eq!(options.effective_mode(), SslMode::Required);
        assert_eq!(TlsOptions::default().effective_mode(), SslMode::Preferred);
    }

    #[test]
    fn what_can_not_be_followed_is_refused() {
        let verify = TlsOptions { mode: Some(SslMode::VerifyCa), ..TlsOptions::default() };
        let error = verify.config().unwrap_err().to_string();
        assert_eq!(error, "ssl-mode VERIFY_CA needs the certificate of an authority: ssl-ca or ssl-capath");
        let version = TlsOptions { versions: Some("TLSv1.1".into()), ..TlsOptions::default() };
        let error = version.config().unwrap_err().to_string();
        assert_eq!(error, "tls-version: TLSv1.1 is neither TLSv1.2 nor TLSv1.3");
        let key = TlsOptions { key: Some("key.pem".into()), ..TlsOptions::default() };
        assert_eq!(key.config().unwrap_err().to_string(), "ssl-key is given without ssl-cert");
        assert_eq!(SslMode::from_name("verify_identity"), Some(SslMode::VerifyIdentity));
        assert_eq!(SslMode::from_name("yes"), None);
    }
}
