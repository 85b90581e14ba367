//! The socket of a connection, TCP or unix.

use std::io;
#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(target_os = "linux")]
use config::plan::Listen;
use model::PeerKey;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use sys::UnixStream;

/// How long a client may take to close its side after the last reply. Closing first could discard the reply on its way.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes of one dropped read after the last reply.
const THROWN_BYTES: usize = 16 * 1024;

/// A connection that was accepted.
pub(in crate::sources) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(in crate::sources) async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Unix(stream) => stream.readable().await,
        }
    }

    pub(in crate::sources) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read(buffer),
            Stream::Unix(stream) => stream.try_read(buffer),
        }
    }

    pub(in crate::sources) async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.writable().await,
            Stream::Unix(stream) => stream.writable().await,
        }
    }

    pub(in crate::sources) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Writes as much as the socket accepts, and takes the written part away. False when there is more to write.
    pub(in crate::sources) fn write_some(&self, bytes: &mut &[u8]) -> io::Result<bool> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => *bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Registers it with another runtime, whose tasks read it from now on.
    ///
    /// # Errors
    /// When this process may not open another descriptor, or the runtime cannot register it. It is unchanged then.
    pub(in crate::sources) fn move_to(&mut self, runtime: &Handle) -> io::Result<()> {
        // Registration uses the current context.
        let _context = runtime.enter();
        *self = match self {
            Stream::Tcp(stream) => {
                let socket = socket2::SockRef::from(&*stream).try_clone()?;
                Stream::Tcp(TcpStream::from_std(socket.into())?)
            }
            #[cfg(unix)]
            Stream::Unix(stream) => {
                let socket = socket2::SockRef::from(&*stream).try_clone()?;
                Stream::Unix(UnixStream::from_std(socket.into())?)
            }
            #[cfg(not(unix))]
            Stream::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(())
    }

    /// A connection that another process accepted at `listen`.
    #[cfg(target_os = "linux")]
    pub(in crate::sources) fn adopted(fd: sys::OwnedFd, listen: &Listen) -> io::Result<Stream> {
        Ok(match listen {
            Listen::Tcp(_) => {
                let stream = std::net::TcpStream::from(fd);
                stream.set_nonblocking(true)?;
                Stream::Tcp(TcpStream::from_std(stream)?)
            }
            _ => {
                let stream = std::os::unix::net::UnixStream::from(fd);
                stream.set_nonblocking(true)?;
                Stream::Unix(UnixStream::from_std(stream)?)
            }
        })
    }

    /// Its socket.
    #[cfg(target_os = "linux")]
    pub(in crate::sources) fn as_fd(&self) -> sys::BorrowedFd<'_> {
        use sys::AsFd;
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    /// Address of its client; `None` at a unix socket, or when the client has gone.
    #[cfg(target_os = "linux")]
    pub(in crate::sources) fn peer_ip(&self) -> Option<IpAddr> {
        match self {
            Stream::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
            Stream::Unix(_) => None,
        }
    }

    /// The client's process at a unix socket.
    pub(in crate::sources) fn process_key(&self) -> PeerKey {
        match self {
            Stream::Tcp(_) => PeerKey::Local,
            #[cfg(unix)]
            Stream::Unix(stream) => stream.peer_cred().map_or(PeerKey::Local, |peer| PeerKey::Process {
                uid: peer.uid(),
                pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
            }),
            #[cfg(not(unix))]
            Stream::Unix(_) => PeerKey::Local,
        }
    }

    /// The client for the log; less is known of one that has gone.
    pub(in crate::sources) fn shown_peer(&self, from: PeerKey) -> String {
        let address = match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        };
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        address.map_or_else(|| from.to_string(), |address| canonical(address).to_string())
    }

    /// Sends replies without delay.
    pub(in crate::sources) fn send_at_once(&self) {
        if let Stream::Tcp(stream) = self {
            // Otherwise they arrive a little later.
            let _refused = stream.set_nodelay(true);
        }
    }

    /// Lets the client read the last reply before the connection is closed.
    pub(in crate::sources) async fn linger(&self) {
        self.end_writing();
        let gone = async {
            let mut thrown = vec![0; THROWN_BYTES];
            while self.readable().await.is_ok() {
                match self.try_read(&mut thrown) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_gone) => return,
                }
                // A busy client would keep the thread from all other work, and from this timeout.
                tokio::task::yield_now().await;
            }
        };
        // Cancel-safe: the data is dropped. A client that continues to send is cut off.
        let _elapsed = tokio::time::timeout(LINGER, gone).await;
    }

    /// Makes the client read the end after the last reply. A unix socket needs no such call.
    fn end_writing(&self) {
        if let Stream::Tcp(stream) = self {
            // It fails only when the client is gone.
            let _gone = socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write);
        }
    }
}
