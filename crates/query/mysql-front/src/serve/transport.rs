//! The bytes of a connection: plain or over TLS, and in compressed packets once client and server have agreed on that.

use std::io::{self, Cursor};
use std::sync::Arc;

use binlogz_query_server::{QueryServerError, TLS_HANDSHAKE_TIME, Tls};
use binlogz_wire::compressed::{CompressedPackets, ConnectionCompression};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

/// Bytes that are read at once.
const READ_SIZE: usize = 16 << 10;

/// A stream of bytes.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> ByteStream for S {}

/// The bytes of a connection.
pub(super) struct MysqlTransport {
    stream: Option<Box<dyn ByteStream>>,
    is_encrypted: bool,
    compressed: Option<CompressedPackets>,
    received: Vec<u8>,
    plain: Vec<u8>,
    out: Vec<u8>,
}

/// The acceptor of TLS connections, with this certificate.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, QueryServerError> {
    let bad = |error: &dyn std::fmt::Display| QueryServerError::of(&"certificate", error);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(tls.certificate()).collect();
    let chain = chain.map_err(|error| bad(&error))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key()).map_err(|error| bad(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| bad(&error))?)))
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl MysqlTransport {
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static) -> Self {
        MysqlTransport {
            stream: Some(Box::new(stream)),
            is_encrypted: false,
            compressed: None,
            received: vec![0; READ_SIZE],
            plain: Vec::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Switches to TLS; `read` was read already and belongs to it.
    pub(super) async fn start_tls(&mut self, acceptor: &TlsAcceptor, read: Vec<u8>) -> io::Result<()> {
        let stream = self.stream.take().ok_or_else(gone)?;
        let (reader, writer) = tokio::io::split(stream);
        let accepted = acceptor.accept(tokio::io::join(Cursor::new(read).chain(reader), writer));
        let accepted = tokio::time::timeout(TLS_HANDSHAKE_TIME, accepted).await;
        let encrypted = accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.stream = Some(Box::new(encrypted));
        self.is_encrypted = true;
        Ok(())
    }

    /// Compresses all packets from now on, in both directions.
    pub(super) fn compress_with(&mut self, compression: ConnectionCompression) {
        self.compressed = Some(CompressedPackets::serving(compression));
    }

    /// Appends bytes that have come to `input`; false: there will be no more. Given up, it loses nothing.
    pub(super) async fn read(&mut self, input: &mut Vec<u8>) -> io::Result<bool> {
        let stream = self.stream.as_mut().ok_or_else(gone)?;
        let count = match stream.read(&mut self.received).await {
            // Clients often close without a TLS shutdown.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        let mut received = self.received.get(..count).unwrap_or_default();
        match &mut self.compressed {
            None => input.extend_from_slice(received),
            Some(packets) => {
                while packets.expand(&mut received, &mut self.plain).map_err(io::Error::other)? {
                    input.extend_from_slice(&self.plain);
                }
            }
        }
        Ok(count > 0)
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or_else(gone)?;
        match &mut self.compressed {
            None => stream.write_all(bytes).await?,
            Some(packets) => {
                self.out.clear();
                packets.compress(bytes, false, &mut self.out).map_err(io::Error::other)?;
                stream.write_all(&self.out).await?;
            }
        }
        stream.flush().await
    }
}
