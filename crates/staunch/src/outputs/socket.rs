//! Sockets of outputs: one type for all datagram sockets, one for all streams, made from a destination.
//!
//! Not here: what is sent over them (`datagram`, `stream`).

use std::io;
use std::path::Path;
use std::time::Duration;

use config::plan::Destination;
use tokio::net::{TcpStream, UdpSocket};

use crate::sys::{AsFd, BorrowedFd, UnixDatagram, UnixStream};

/// A connected datagram socket.
#[derive(Debug)]
pub enum DatagramSocket {
    /// To a host.
    Udp(UdpSocket),
    /// To a path.
    Unix(UnixDatagram),
}

impl DatagramSocket {
    /// A socket connected to `to`.
    ///
    /// # Errors
    /// When the name has no address, nobody is there (unix), or the system has no socket.
    pub async fn open(to: &Destination) -> io::Result<DatagramSocket> {
        match to {
            Destination::Udp(host) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in tokio::net::lookup_host((host.host.as_str(), host.port)).await? {
                    let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
                    let opened = async {
                        let socket = UdpSocket::bind(any).await?;
                        socket.connect(address).await?;
                        Ok(socket)
                    };
                    match opened.await {
                        Ok(socket) => return Ok(DatagramSocket::Udp(socket)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Destination::UnixDatagram(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(unix_path(path))?;
                Ok(DatagramSocket::Unix(socket))
            }
            Destination::Tcp(_) | Destination::UnixStream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// An error that the system kept for the next call (SO_ERROR).
    pub fn take_error(&self) -> Option<io::Error> {
        let error = match self {
            DatagramSocket::Udp(socket) => socket.take_error(),
            DatagramSocket::Unix(socket) => socket.take_error(),
        };
        error.ok().flatten()
    }

    /// Resolves when the socket may have room again.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            DatagramSocket::Udp(socket) => socket.writable().await,
            DatagramSocket::Unix(socket) => socket.writable().await,
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            DatagramSocket::Udp(socket) => socket.as_fd(),
            DatagramSocket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// A stream connection.
#[derive(Debug)]
pub enum StreamSocket {
    /// To a host.
    Tcp(TcpStream),
    /// To a path.
    Unix(UnixStream),
}

impl StreamSocket {
    /// Connects to `to`.
    ///
    /// # Errors
    /// What the system says.
    pub async fn connect(to: &Destination) -> io::Result<StreamSocket> {
        match to {
            Destination::Tcp(host) => {
                let stream = TcpStream::connect((host.host.as_str(), host.port)).await?;
                stream.set_nodelay(true)?;
                let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(60));
                socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                Ok(StreamSocket::Tcp(stream))
            }
            Destination::UnixStream(path) => {
                UnixStream::connect(unix_path(path)).await.map(StreamSocket::Unix)
            }
            Destination::Udp(_) | Destination::UnixDatagram(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// Would block, or the connection is broken.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Tcp(stream) => stream.try_write(bytes),
            StreamSocket::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Reads what is there; 0 at the end.
    ///
    /// # Errors
    /// Would block, or the connection is broken.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Tcp(stream) => stream.try_read(into),
            StreamSocket::Unix(stream) => stream.try_read(into),
        }
    }

    /// Resolves when there may be room to write.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            StreamSocket::Tcp(stream) => stream.writable().await,
            StreamSocket::Unix(stream) => stream.writable().await,
        }
    }

    /// Resolves when there may be something to read, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            StreamSocket::Tcp(stream) => stream.readable().await,
            StreamSocket::Unix(stream) => stream.readable().await,
        }
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            StreamSocket::Tcp(stream) => stream.as_fd(),
            StreamSocket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// A path as the system wants it: a name that begins with `@` is an abstract one, with a NUL in that place.
fn unix_path(path: &Path) -> std::path::PathBuf {
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => format!("\0{name}").into(),
        None => path.to_owned(),
    }
}
