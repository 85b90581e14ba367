//! Opens listeners: with the requested receive buffer, and with advice when the system rejects them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::plan::Listen;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::daemon::shared::names::shown;
use sys::{self, AsFd, OwnedFd, UnixListenerStd, errno};

/// Pause before the next accept when the process has no descriptors, or the system no memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The kernel's backlog of connections before we accept them.
pub(crate) const BACKLOG: i32 = 1024;

/// An open listener.
#[derive(Debug)]
pub enum Bound {
    /// Datagrams, UDP or unix.
    Datagram(OwnedFd),
    /// TCP connections.
    Tcp(std::net::TcpListener),
    /// Unix connections.
    Unix(UnixListenerStd),
}

impl Bound {
    /// Its actual address, if it was opened as `configured`: port 0 becomes a free port.
    pub fn place(&self, configured: &Listen) -> Listen {
        let address = match self {
            Bound::Tcp(listener) => listener.local_addr().ok(),
            Bound::Datagram(fd) => {
                SockRef::from(fd).local_addr().ok().and_then(|address| address.as_socket())
            }
            Bound::Unix(_) => None,
        };
        match (configured, address) {
            (Listen::Udp(_), Some(address)) => Listen::Udp(address),
            (Listen::Tcp(_), Some(address)) => Listen::Tcp(address),
            (configured, _) => configured.clone(),
        }
    }
}

impl Bound {
    /// A descriptor of the same socket, for another process.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    #[cfg(target_os = "linux")]
    pub fn try_clone_to_owned(&self) -> io::Result<OwnedFd> {
        match self {
            Bound::Datagram(fd) => fd.try_clone(),
            Bound::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Bound::Unix(listener) => listener.as_fd().try_clone_to_owned(),
        }
    }

    /// The same, to be served here.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Bound> {
        Ok(match self {
            Bound::Datagram(fd) => Bound::Datagram(fd.try_clone()?),
            Bound::Tcp(listener) => Bound::Tcp(listener.try_clone()?),
            Bound::Unix(listener) => Bound::Unix(listener.try_clone()?),
        })
    }
}

/// The difference between a requested and a granted buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortBuffer {
    /// Requested bytes.
    pub asked: u64,
    /// Bytes granted by the kernel.
    pub granted: u64,
}

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}: {hint}")]
pub struct BindError {
    listen: String,
    hint: String,
    /// Another process has the address.
    pub taken: bool,
    #[source]
    cause: io::Error,
}

impl BindError {
    fn has_no_v6(&self) -> bool {
        matches!(self.cause.raw_os_error(), Some(errno::EAFNOSUPPORT | errno::EADDRNOTAVAIL))
    }

    fn new(listen: &Listen, cause: io::Error) -> BindError {
        let is_file = !matches!(listen, Listen::Udp(_) | Listen::Tcp(_));
        let listen = shown(listen);
        let hint = match cause.kind() {
            io::ErrorKind::AddrInUse => "the address is in use; stop the program that uses it (see `ss -lntup`), or listen on another port".to_owned(),
            io::ErrorKind::PermissionDenied if is_file => "no permission: this user cannot write to the folder of the socket file".to_owned(),
            io::ErrorKind::PermissionDenied => "no permission; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned(),
            io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
            io::ErrorKind::NotFound => "the folder of the socket file does not exist".to_owned(),
            _ => cause.to_string(),
        };
        BindError { listen, hint, taken: cause.kind() == io::ErrorKind::AddrInUse, cause }
    }
}

/// Opens `listen`.
///
/// # Errors
/// When the system rejects it, with advice.
pub fn bind(listen: &Listen, receive_buffer_bytes: u64) -> Result<(Bound, Option<ShortBuffer>), BindError> {
    let bound = bind_as_configured(listen, receive_buffer_bytes);
    match (&bound, without_v6(listen)) {
        // On a machine without IPv6, all addresses means the IPv4 ones.
        (Err(error), Some(listen)) if error.has_no_v6() => bind_as_configured(&listen, receive_buffer_bytes),
        _ => bound,
    }
}

/// Another socket at the address of `first`, a UDP socket that is bound: the kernel deals packets out to all of them by their
/// sender. The first one is bound without that option, so that an address that another process has stays refused.
///
/// # Errors
/// When the system does not let several sockets share an address, or has no descriptor left.
#[cfg(target_os = "linux")]
pub fn sibling(first: &OwnedFd, receive_buffer_bytes: u64) -> io::Result<OwnedFd> {
    let first = SockRef::from(first);
    let address = first.local_addr()?;
    first.set_reuse_port(true)?;
    let socket = Socket::new(address.domain(), Type::DGRAM, Some(Protocol::UDP))?;
    if address.domain() == Domain::IPV6 {
        socket.set_only_v6(first.only_v6()?)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Before it is bound, and so before the first packet. The first socket has the word about a short one.
    sys::set_receive_buffer(socket.as_fd(), receive_buffer_bytes)?;
    socket.bind(&address)?;
    Ok(OwnedFd::from(socket))
}

/// Elsewhere the kernel gives all packets to one of the sockets.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn sibling(_first: &OwnedFd, _receive_buffer_bytes: u64) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Uses a socket that another process has opened for `listen`, with this plan's options.
///
/// # Errors
/// When it is another kind of socket.
#[cfg(target_os = "linux")]
pub fn inherit(
    fd: OwnedFd,
    listen: &Listen,
    receive_buffer_bytes: u64,
) -> io::Result<(Bound, Option<ShortBuffer>)> {
    let socket = Socket::from(fd);
    let (domain, kind) = (socket.local_addr()?.domain(), socket.r#type()?);
    let unix = !matches!(listen, Listen::Udp(_) | Listen::Tcp(_));
    let datagrams = matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
    let wanted = if datagrams { Type::DGRAM } else { Type::STREAM };
    if (domain == Domain::UNIX) != unix || kind != wanted || (!datagrams && !socket.is_listener()?) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the socket is of another kind"));
    }
    if let Listen::UnixStream { path, mode }
    | Listen::UnixFrames { path, mode }
    | Listen::UnixDatagram { path, mode } = listen
    {
        set_mode(path, *mode)?;
    }
    match listen {
        Listen::Udp(_) | Listen::UnixDatagram { .. } => datagram(socket, receive_buffer_bytes),
        Listen::Tcp(_) => {
            socket.set_nonblocking(true)?;
            Ok((Bound::Tcp(socket.into()), None))
        }
        Listen::UnixStream { .. } | Listen::UnixFrames { .. } => {
            socket.set_nonblocking(true)?;
            Ok((Bound::Unix(sys::unix_listener(socket)?), None))
        }
    }
}

fn without_v6(listen: &Listen) -> Option<Listen> {
    let all = |address: &SocketAddr| {
        let v6 = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        v6.then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
    };
    match listen {
        Listen::Udp(address) => all(address).map(Listen::Udp),
        Listen::Tcp(address) => all(address).map(Listen::Tcp),
        _ => None,
    }
}

fn bind_as_configured(
    listen: &Listen,
    receive_buffer_bytes: u64,
) -> Result<(Bound, Option<ShortBuffer>), BindError> {
    let failed = |cause| BindError::new(listen, cause);
    match listen {
        Listen::Udp(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::DGRAM, Some(Protocol::UDP));
            let socket = socket.and_then(|socket| {
                if address.is_ipv6() {
                    // Both families if the address allows it, as with node's `::` for TCP.
                    socket.set_only_v6(!address.ip().is_unspecified())?;
                }
                socket.bind(&SockAddr::from(*address))?;
                Ok(socket)
            });
            datagram(socket.map_err(failed)?, receive_buffer_bytes).map_err(failed)
        }
        Listen::UnixDatagram { path, mode } => {
            let open = || {
                remove_stale(path)?;
                let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
                socket.bind(&unix_address(path)?)?;
                set_mode(path, *mode)?;
                datagram(socket, receive_buffer_bytes)
            };
            open().map_err(failed)
        }
        Listen::Tcp(address) => {
            let opened = listen_tcp(*address).map_err(failed)?;
            Ok((Bound::Tcp(opened), None))
        }
        Listen::UnixStream { path, mode } | Listen::UnixFrames { path, mode } => {
            let open = || {
                remove_stale(path)?;
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.bind(&unix_address(path)?)?;
                set_mode(path, *mode)?;
                socket.listen(BACKLOG)?;
                socket.set_nonblocking(true)?;
                Ok((Bound::Unix(sys::unix_listener(socket)?), None))
            };
            open().map_err(failed)
        }
    }
}

/// A TCP listener with a large backlog: the standard library's has 128 connections, and further clients retry after a
/// second.
pub(crate) fn listen_tcp(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The same socket, listening again after it was closed from outside (`ss -K`, shutdown of a copy). It is registered
/// with the runtime again, which otherwise treats it as closed forever.
pub(crate) fn listen_again(listener: &tokio::net::TcpListener) -> io::Result<tokio::net::TcpListener> {
    let socket = SockRef::from(listener);
    socket.listen(BACKLOG)?;
    tokio::net::TcpListener::from_std(socket.try_clone()?.into())
}

fn datagram(socket: Socket, receive_buffer_bytes: u64) -> io::Result<(Bound, Option<ShortBuffer>)> {
    let granted = sys::set_receive_buffer(socket.as_fd(), receive_buffer_bytes)?;
    // The kernel's limit is always below the last byte of 1 GiB.
    let asked = receive_buffer_bytes.min(sys::RECEIVE_BUFFER_BYTES_MAX);
    let short = (granted < asked).then_some(ShortBuffer { asked, granted });
    socket.set_nonblocking(true)?;
    Ok((Bound::Datagram(OwnedFd::from(socket)), short))
}

/// `@name` is a name without a file.
fn unix_address(path: &Path) -> io::Result<SockAddr> {
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => SockAddr::unix(format!("\0{name}")),
        None => SockAddr::unix(path),
    }
}

fn is_abstract(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with('@'))
}

/// Removes a socket file without a listener; a live one is kept, and binding then reports it.
fn remove_stale(path: &Path) -> io::Result<()> {
    sys::unix_sockets_supported()?;
    if is_abstract(path) {
        return Ok(());
    }
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !sys::is_socket(&found) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file of another kind at that path",
        ));
    }
    if is_alive(&probe(path))? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    // Another process may have put its own socket there since the check.
    match std::fs::symlink_metadata(path) {
        Ok(now) if sys::file_mark(&now) == sys::file_mark(&found) => std::fs::remove_file(path),
        Ok(_other) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks for a listener at a socket file. Uses a datagram socket: connecting it has no effect on the listener, and the
/// kernel compares the type before anything else.
fn probe(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&unix_address(path)?)
}

/// Whether a socket file has an owner, by the result of connecting. Only "connection refused" means that it has none:
/// other errors come from a socket of another type (EPROTOTYPE), or one with a peer (EPERM).
///
/// # Errors
/// When it could not be checked: then we must not remove it.
fn is_alive(asked: &io::Result<()>) -> io::Result<bool> {
    let Err(error) = asked else { return Ok(true) };
    match error.raw_os_error() {
        // There is no owner, or no file any more.
        Some(errno::ECONNREFUSED) => Ok(false),
        _ if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Some(errno::EPROTOTYPE | errno::EPERM | errno::EAGAIN) => Ok(true),
        Some(number) => Err(io::Error::from_raw_os_error(number)),
        None => Err(error.kind().into()),
    }
}

fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    match mode {
        Some(mode) if !is_abstract(path) => sys::set_mode(path, mode),
        _ => Ok(()),
    }
}

/// The socket file of a unix listener, as it was after binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    mark: (u64, u64, i64, i64),
}

impl SocketFile {
    /// The file of the bound `listen`; `None` without a file.
    pub fn of(listen: &Listen) -> Option<SocketFile> {
        let (Listen::UnixStream { path, .. }
        | Listen::UnixDatagram { path, .. }
        | Listen::UnixFrames { path, .. }) = listen
        else {
            return None;
        };
        if is_abstract(path) {
            return None;
        }
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(SocketFile { path: path.clone(), mark: sys::file_mark(&found) })
    }

    /// Whether it still exists: not deleted or replaced. If the folder cannot be read, it counts as existing.
    pub fn is_there(&self) -> bool {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) => sys::file_mark(&found) == self.mark,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes it at the end, unless it was replaced.
    pub fn unlink(&self) {
        let found = std::fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| sys::file_mark(&found) == self.mark) {
            // It may already be removed.
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    fn taken(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::AddrInUse
    }

    #[test]
    fn a_socket_file_with_an_owner_is_kept_for_any_socket_type() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("s");
        for kind in [Type::STREAM, Type::DGRAM, Type::SEQPACKET] {
            // Between its bind and its listen, a socket also has an owner.
            for listens in [false, true] {
                let socket = Socket::new(Domain::UNIX, kind, None).expect("a socket");
                socket.bind(&SockAddr::unix(&path).expect("a short path")).expect("a free path");
                if listens && kind != Type::DGRAM {
                    socket.listen(1).expect("it can");
                }
                let refused = remove_stale(&path).expect_err("it is alive");
                assert!(taken(&refused), "{kind:?}: {refused}");
                drop(socket);
                remove_stale(&path).expect("nobody has it any more");
                assert!(!path.exists(), "{kind:?}");
            }
        }
    }

    #[test]
    fn a_socket_with_a_peer_or_a_full_backlog_is_alive() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (path, other) = (folder.path().join("s"), folder.path().join("o"));
        let (one, two) =
            (UnixDatagram::bind(&path).expect("free"), UnixDatagram::bind(&other).expect("free"));
        one.connect(&other).expect("it is there");
        assert!(taken(&remove_stale(&path).expect_err("it is alive")));
        drop((one, two));
        remove_stale(&path).expect("nobody has it any more");
        let listener = UnixListener::bind(&path).expect("free");
        assert!(taken(&remove_stale(&path).expect_err("it is alive")));
        assert!(
            listener.set_nonblocking(true).is_ok_and(|()| listener.accept().is_err()),
            "nobody came to it"
        );
    }

    #[test]
    fn a_file_that_is_no_socket_is_kept() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("f");
        std::fs::write(&file, "mine").expect("it can be written");
        let link = folder.path().join("l");
        std::os::unix::fs::symlink(folder.path().join("s"), &link).expect("a link can be made");
        for path in [file.as_path(), folder.path(), &link] {
            let refused = remove_stale(path).expect_err("it is no socket");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{}", path.display());
        }
        assert_eq!(std::fs::read(&file).expect("it is there"), b"mine");
        remove_stale(&folder.path().join("none")).expect("there is nothing");
    }

    #[test]
    fn at_the_end_only_our_own_file_is_removed() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("s");
        let listen = Listen::UnixStream { path: path.clone(), mode: None };
        let (bound, _) = bind(&listen, 0).expect("a free path");
        let file = SocketFile::of(&listen).expect("it has a file");
        std::fs::remove_file(&path).expect("it is there");
        let _other = UnixListener::bind(&path).expect("free again");
        file.unlink();
        assert!(path.exists(), "somebody else listens there");
        let others = SocketFile::of(&listen).expect("it has a file");
        others.unlink();
        assert!(!path.exists());
        others.unlink();
        drop(bound);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn siblings_share_an_address_that_stays_refused_to_others() {
        use std::net::UdpSocket;
        let listen = Listen::Udp("127.0.0.1:0".parse().expect("an address"));
        let (bound, _) = bind(&listen, 1 << 20).expect("a free port");
        let at = bound.place(&listen);
        let Bound::Datagram(first) = bound else { panic!("a datagram socket") };
        let siblings = [(), ()].map(|()| sibling(&first, 1 << 20).expect("the kernel can"));
        let error = bind(&at, 1 << 20).expect_err("another daemon asks for the address as we did");
        assert!(error.taken, "{error}");
        let Listen::Udp(address) = at else { panic!("a UDP address") };
        let senders: Vec<UdpSocket> =
            (0..64).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port")).collect();
        senders.iter().for_each(|sender| _ = sender.send_to(b"x", address).expect("loopback takes it"));
        let sockets: Vec<UdpSocket> = [first].into_iter().chain(siblings).map(UdpSocket::from).collect();
        let got = sockets.iter().map(|socket| std::iter::from_fn(|| socket.recv(&mut [0; 8]).ok()).count());
        let got: Vec<usize> = got.collect();
        assert_eq!(got.iter().sum::<usize>(), 64);
        assert!(got.iter().all(|packets| *packets > 0), "dealt out by their senders: {got:?}");
    }

    #[test]
    fn a_socket_file_that_cannot_be_checked_is_kept() {
        for number in [errno::EMFILE, errno::ENOMEM, errno::EACCES] {
            let asked = Err(io::Error::from_raw_os_error(number));
            assert_eq!(is_alive(&asked).map_err(|error| error.raw_os_error()), Err(Some(number)));
        }
    }
}
