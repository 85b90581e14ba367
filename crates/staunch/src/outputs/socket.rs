//! Sockets of outputs: one type for all datagram sockets, one for all streams.
//!
//! Not here: addresses (`addresses::locator`), the data (`datagram`, `stream`).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpStream, ToSocketAddrs, UdpSocket};

use sys::{AsFd, BorrowedFd, UnixDatagram, UnixStream};

/// A connected datagram socket.
#[derive(Debug)]
pub enum DatagramSocket {
    /// To a host.
    Udp(UdpSocket),
    /// To a path.
    Unix(UnixDatagram),
}

impl DatagramSocket {
    /// A UDP socket connected to `address`.
    ///
    /// # Errors
    /// When there is no route to the address, or the system has no socket left.
    pub fn udp(address: SocketAddr) -> io::Result<DatagramSocket> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.connect(address)?;
        refuse_itself(socket.local_addr()?, socket.peer_addr()?)?;
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket).map(DatagramSocket::Udp)
    }

    /// A unix socket connected to `path`.
    ///
    /// # Errors
    /// When nothing listens there, or the system has no socket left.
    pub fn unix(path: &Path) -> io::Result<DatagramSocket> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(unix_path(path))?;
        Ok(DatagramSocket::Unix(socket))
    }

    /// A pending error of the socket (SO_ERROR).
    pub fn take_error(&self) -> Option<io::Error> {
        let error = match self {
            DatagramSocket::Udp(socket) => socket.take_error(),
            DatagramSocket::Unix(socket) => socket.take_error(),
        };
        error.ok().flatten()
    }

    /// Sends with `send`, which makes the system call. After "would block", [`Self::writable`] waits for room.
    ///
    /// # Errors
    /// Errors of `send`; also "would block" before the system has reported room for the first time.
    pub fn try_send(&self, send: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>) -> io::Result<usize> {
        match self {
            DatagramSocket::Udp(socket) => socket.try_io(Interest::WRITABLE, || send(socket.as_fd())),
            DatagramSocket::Unix(socket) => socket.try_io(Interest::WRITABLE, || send(socket.as_fd())),
        }
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
    /// Connects to the first of `addresses` that accepts. All attempts together have the timeout `at_most`, divided
    /// equally.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn tcp(addresses: &[SocketAddr], at_most: Duration) -> io::Result<StreamSocket> {
        let each = at_most / u32::try_from(addresses.len().max(1)).expect("a name has few addresses");
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            let connected = tokio::time::timeout(each, tcp(address)).await;
            match connected.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(60));
                    socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                    return Ok(StreamSocket::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// The system's error.
    pub async fn unix(path: &Path) -> io::Result<StreamSocket> {
        UnixStream::connect(unix_path(path)).await.map(StreamSocket::Unix)
    }

    /// The peer's address.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            StreamSocket::Tcp(stream) => stream.peer_addr().ok(),
            StreamSocket::Unix(_) => None,
        }
    }

    /// Writes as much as fits.
    ///
    /// # Errors
    /// "Would block", or the connection is broken.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Tcp(stream) => stream.try_write(bytes),
            StreamSocket::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Reads available bytes; 0 at the end.
    ///
    /// # Errors
    /// "Would block", or the connection is broken.
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

    /// Resolves when there may be data to read, or the end.
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

/// A path in the system's form: a name that begins with `@` is abstract, with a NUL instead.
fn unix_path(path: &Path) -> std::path::PathBuf {
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => format!("\0{name}").into(),
        None => path.to_owned(),
    }
}

/// Connects to the first of `addresses` with another process's listener.
///
/// # Errors
/// The error of the last attempt; also when the connection was to itself.
pub async fn tcp(addresses: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses).await?;
    let met_itself = refuse_itself(stream.local_addr()?, stream.peer_addr()?);
    if met_itself.is_err() {
        // Closes it at once, so that the next listener finds the port free.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    met_itself.map(|()| stream)
}

/// While nothing listens on a local port, the system may choose that very port for our end. The connection is then to
/// itself, and returns all written data.
fn refuse_itself(own: SocketAddr, peer: SocketAddr) -> io::Result<()> {
    if own == peer {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody but ourselves is there"));
    }
    Ok(())
}

#[test]
fn a_connection_to_itself_is_rejected() {
    let stream = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    stream.bind(&any.into()).expect("a free port");
    let own = stream.local_addr().expect("it is bound");
    stream.connect(&own).expect("the system lets it");
    let stream = std::net::TcpStream::from(stream);
    let ends = || Ok::<_, io::Error>((stream.local_addr()?, stream.peer_addr()?));
    let (own, peer) = ends().expect("it is connected");
    assert!(refuse_itself(own, peer).is_err());
    assert!(refuse_itself(own, (Ipv4Addr::LOCALHOST, 1).into()).is_ok());
}
