//! Connections as gRPC takes them: each request knows the one that it came by.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use binlogz_query_server::{GuardedBytes, QueryConnection, QueryListener};
use futures_util::{Stream, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// Connections, as they come.
pub(crate) fn accepted(listener: QueryListener) -> impl Stream<Item = io::Result<FlightBytes>> {
    stream::unfold(listener, |mut listener| async move {
        let accepted = FlightBytes(listener.next().await);
        Some((Ok(accepted), listener))
    })
}

/// The bytes of a connection.
pub(crate) struct FlightBytes(GuardedBytes);

impl Connected for FlightBytes {
    type ConnectInfo = Arc<QueryConnection>;

    fn connect_info(&self) -> Arc<QueryConnection> {
        Arc::clone(self.0.connection())
    }
}

impl AsyncRead for FlightBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for FlightBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
