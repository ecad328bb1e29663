//! A connection to a client: plain, or TLS above it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::error::{Error, Result};

/// Carries bytes both ways.
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, Behind>>),
}

/// What the relay shows to clients that want TLS.
#[derive(Clone)]
pub(crate) struct ServerTls(Arc<ServerConfig>);

impl ServerTls {
    /// From files in PEM form: a chain of certificates, and the key of the first.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let bad =
            |path: &Path, error: &dyn fmt::Display| Error::Refused(format!("{}: {error}", path.display()));
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(|chain| chain.collect::<Result<Vec<_>, _>>())
            .map_err(|error| bad(certificate, &error))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
        Ok(ServerTls(Arc::new(config.map_err(|error| bad(certificate, &error))?)))
    }
}

impl Transport {
    /// Goes over to TLS; `read` was read already and belongs to it.
    pub(crate) fn start_tls(self, tls: &ServerTls, read: &[u8]) -> Result<Transport> {
        let Transport::Plain(stream) = self else {
            return Err(Error::Refused("the client asked for TLS within TLS".into()));
        };
        let failed =
            |error: rustls::Error| Error::Io { doing: "TLS".into(), source: io::Error::other(error) };
        let connection = ServerConnection::new(Arc::clone(&tls.0)).map_err(failed)?;
        let behind = Behind { read: read.to_vec(), stream };
        Ok(Transport::Tls(Box::new(StreamOwned::new(connection, behind))))
    }

    /// The connection below.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(tls) => &tls.sock.stream,
        }
    }

    /// Reads what is at hand, 0 bytes at the end; `None`: nothing is.
    pub(crate) fn read_at_hand(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        self.socket().set_nonblocking(true)?;
        let read = self.read(bytes);
        self.socket().set_nonblocking(false)?;
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends all of it, now.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => stream.write_all(bytes),
            Transport::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }
}

impl Read for Transport {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.read(bytes),
            Transport::Tls(tls) => match tls.read(bytes) {
                // Clients leave without saying goodbye.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

/// A connection of which some was read too early.
pub(crate) struct Behind {
    read: Vec<u8>,
    stream: TcpStream,
}

impl Read for Behind {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            return self.stream.read(bytes);
        }
        let count = self.read.as_slice().read(bytes)?;
        self.read.drain(..count);
        Ok(count)
    }
}

impl Write for Behind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
