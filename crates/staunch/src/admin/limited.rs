//! A listener whose connections count towards a share of the descriptors (`daemon::descriptors`).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::daemon::descriptors::{self, Kind, Permit};

/// Accepts as long as there are permits; who comes past them is turned away.
#[derive(Debug)]
pub(super) struct Limited {
    listener: TcpListener,
    kind: Kind,
    told: bool,
}

/// A connection and its permit.
#[derive(Debug)]
pub(super) struct Permitted {
    stream: TcpStream,
    _permit: Permit,
}

impl Limited {
    pub(super) fn new(listener: TcpListener, kind: Kind) -> Limited {
        Limited { listener, kind, told: false }
    }
}

impl axum::serve::Listener for Limited {
    type Io = Permitted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Permitted, SocketAddr) {
        loop {
            // Waits out errors by itself.
            let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
            match descriptors::try_take(self.kind) {
                Some(permit) => return (Permitted { stream, _permit: permit }, peer),
                None if !self.told => {
                    self.told = true;
                    let max = descriptors::max(self.kind);
                    tracing::warn!(
                        "more than {max} connections to the HTTP port at a time: {peer} was turned away"
                    );
                }
                None => tracing::debug!("http: {peer} was turned away"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Permitted {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl AsyncRead for Permitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Permitted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
