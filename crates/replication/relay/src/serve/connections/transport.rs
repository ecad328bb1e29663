//! A connection to a client: plain, or over TLS; its packets may be compressed.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use binlogz_atomic_file::open_secret;
use binlogz_wire::compressed::{CompressedPackets, ConnectionCompression};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The operations that a dump needs from a connection.
pub(crate) trait DumpConnection {
    /// Reads the bytes that have arrived, 0 bytes at the end of the stream; `None` if none have.
    fn read_at_hand(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends all bytes at once.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Restarts the numbers of compressed packets: after an event that is to be acknowledged, as the server does it.
    fn restart_numbering(&mut self) {}
}

/// Bytes of compressed packets to read at a time.
const READ_SIZE: usize = 16 << 10;

/// The socket is the one that others may shut down: shared, so that a connection has one descriptor.
pub(crate) enum Transport {
    Plain(Arc<TcpStream>),
    Tls(Box<StreamOwned<ServerConnection, BufferedConnection>>),
    /// Compressed packets over one of the others.
    Compressed(Box<CompressedLayer>),
}

/// The layer between a session and a connection with compressed packets.
pub(crate) struct CompressedLayer {
    below: Transport,
    packets: CompressedPackets,
    /// Received bytes: `begin..` was not expanded yet.
    received: Vec<u8>,
    begin: usize,
    /// Expanded bytes: `taken..` was not given on yet.
    plain: Vec<u8>,
    taken: usize,
    out: Vec<u8>,
    /// Bytes that come in belong to the middle of our exchange.
    is_beside: bool,
}

impl CompressedLayer {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut left = self.plain.get(self.taken..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.read(bytes)?;
                self.taken += count;
                return Ok(count);
            }
            let mut rest = self.received.get(self.begin..).unwrap_or_default();
            let before = rest.len();
            let expanded = match self.is_beside {
                true => self.packets.expand_beside(&mut rest, &mut self.plain),
                false => self.packets.expand(&mut rest, &mut self.plain),
            };
            self.begin += before - rest.len();
            self.taken = 0;
            if !expanded.map_err(io::Error::other)? {
                self.begin = 0;
                self.received.resize(READ_SIZE, 0);
                let read = self.below.read(&mut self.received);
                self.received.truncate(*read.as_ref().unwrap_or(&0));
                if read? == 0 {
                    return Ok(0);
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.clear();
        self.packets.compress(bytes, false, &mut self.out).map_err(io::Error::other)?;
        self.below.send(&self.out)
    }
}

/// The certificate that the relay presents to TLS clients.
#[derive(Clone)]
pub(crate) struct ServerTls {
    config: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    fingerprint: [u8; 32],
}

impl ServerTls {
    /// Reads PEM files: a certificate chain, and the key of the first certificate, which only its owner may use.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let bad =
            |path: &Path, error: &dyn fmt::Display| Error::Refused(format!("{}: {error}", path.display()));
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(|chain| chain.collect::<Result<Vec<_>, _>>())
            .map_err(|error| bad(certificate, &error))?;
        let first = chain.first().ok_or_else(|| bad(certificate, &"holds no certificate"))?;
        let fingerprint = Sha256::digest(first).into();
        let private = open_secret(key).map_err(|error| bad(key, &error))?;
        let private = PrivateKeyDer::from_pem_reader(private).map_err(|error| bad(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
        let config = Arc::new(config.map_err(|error| bad(certificate, &error))?);
        Ok(ServerTls { config, fingerprint })
    }

    /// SHA-256 of the certificate.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// The certificate's SHA-256 as `openssl x509 -fingerprint -sha256` prints it.
    pub(crate) fn shown_fingerprint(&self) -> String {
        self.fingerprint.map(|byte| format!("{byte:02X}")).join(":")
    }
}

impl Transport {
    /// Switches to TLS; `read` holds bytes that were already read and belong to it.
    pub(crate) fn start_tls(self, tls: &ServerTls, read: &[u8]) -> Result<Transport> {
        let Transport::Plain(stream) = self else {
            return Err(Error::Refused("the client asked for TLS within TLS".into()));
        };
        let failed =
            |error: rustls::Error| Error::Connection { doing: "TLS".into(), source: io::Error::other(error) };
        let connection = ServerConnection::new(Arc::clone(&tls.config)).map_err(failed)?;
        let behind = BufferedConnection { read: read.to_vec(), stream };
        Ok(Transport::Tls(Box::new(StreamOwned::new(connection, behind))))
    }

    /// Compresses all packets from now on; `read` holds bytes that were already read and are compressed.
    pub(crate) fn compress_with(self, compression: ConnectionCompression, read: &[u8]) -> Transport {
        Transport::Compressed(Box::new(CompressedLayer {
            below: self,
            packets: CompressedPackets::serving(compression),
            received: read.to_vec(),
            begin: 0,
            plain: Vec::new(),
            taken: 0,
            out: Vec::new(),
            is_beside: false,
        }))
    }

    /// Whether it goes over TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(_) => true,
            Transport::Compressed(compressed) => compressed.below.is_encrypted(),
        }
    }

    /// The host name that a TLS client asked for, if it did.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match self {
            Transport::Plain(_) => None,
            Transport::Tls(tls) => tls.conn.server_name(),
            Transport::Compressed(compressed) => compressed.below.server_name(),
        }
    }

    /// Bytes held of compressed packets.
    pub(crate) fn held(&self) -> usize {
        match self {
            Transport::Compressed(compressed) => compressed.packets.held() + compressed.plain.len(),
            _ => 0,
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(tls) => &tls.sock.stream,
            Transport::Compressed(compressed) => compressed.below.socket(),
        }
    }
}

impl DumpConnection for Transport {
    fn read_at_hand(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        self.socket().set_nonblocking(true)?;
        if let Transport::Compressed(compressed) = self {
            compressed.is_beside = true;
        }
        let read = self.read(bytes);
        self.socket().set_nonblocking(false)?;
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => (&**stream).write_all(bytes),
            Transport::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
            Transport::Compressed(compressed) => compressed.send(bytes),
        }
    }

    fn restart_numbering(&mut self) {
        if let Transport::Compressed(compressed) = self {
            compressed.packets.expect_sequence(0);
        }
    }
}

impl Read for Transport {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => (&**stream).read(bytes),
            Transport::Tls(tls) => match tls.read(bytes) {
                // Clients often close without a TLS shutdown.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
            Transport::Compressed(compressed) => compressed.read(bytes),
        }
    }
}

/// A connection, some of whose bytes were read too early.
pub(crate) struct BufferedConnection {
    read: Vec<u8>,
    stream: Arc<TcpStream>,
}

impl Read for BufferedConnection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            return (&*self.stream).read(bytes);
        }
        let count = self.read.as_slice().read(bytes)?;
        self.read.drain(..count);
        Ok(count)
    }
}

impl Write for BufferedConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.stream).flush()
    }
}
