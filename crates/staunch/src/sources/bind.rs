//! Opening listeners: with the receive buffer that was asked for, and a plain word when the system refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use config::plan::Listen;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::daemon::worker::shown;
use sys::{self, AsFd, OwnedFd, UnixListenerStd, errno};

/// Connections that the kernel keeps for us until we accept them.
pub(super) const BACKLOG: i32 = 1024;

/// A listener that is open.
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
    /// Where it really listens, when `told` was to: port 0 stands for any free port.
    pub fn place(&self, told: &Listen) -> Listen {
        let address = match self {
            Bound::Tcp(listener) => listener.local_addr().ok(),
            Bound::Datagram(fd) => {
                SockRef::from(fd).local_addr().ok().and_then(|address| address.as_socket())
            }
            Bound::Unix(_) => None,
        };
        match (told, address) {
            (Listen::Udp(_), Some(address)) => Listen::Udp(address),
            (Listen::Tcp(_), Some(address)) => Listen::Tcp(address),
            (told, _) => told.clone(),
        }
    }
}

impl Bound {
    /// A bare descriptor of the same socket, for another process.
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

/// What a socket did not get of what it was to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortBuffer {
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes that the kernel granted.
    pub granted: u64,
}

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}: {hint}")]
pub struct BindError {
    listen: String,
    hint: String,
    /// Someone else has the address.
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
/// When the system refuses, with what to do about it.
pub fn bind(listen: &Listen, receive_buffer_bytes: u64) -> Result<(Bound, Option<ShortBuffer>), BindError> {
    let bound = bind_as_told(listen, receive_buffer_bytes);
    match (&bound, without_v6(listen)) {
        // A machine without IPv6: all of its addresses are the IPv4 ones.
        (Err(error), Some(listen)) if error.has_no_v6() => bind_as_told(&listen, receive_buffer_bytes),
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

/// Takes a socket that another process has opened for `listen`, with what the plan here says of it.
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

fn bind_as_told(
    listen: &Listen,
    receive_buffer_bytes: u64,
) -> Result<(Bound, Option<ShortBuffer>), BindError> {
    let failed = |cause| BindError::new(listen, cause);
    match listen {
        Listen::Udp(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::DGRAM, Some(Protocol::UDP));
            let socket = socket.and_then(|socket| {
                if address.is_ipv6() {
                    // Both families where the address allows it, as node's `::` does for TCP.
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

/// A TCP listener that takes a crowd: the standard library's keeps 128 connections that wait, and a client past them tries
/// again after a second.
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

/// The same socket, listening again after somebody has closed it from outside (`ss -K`, shutdown of a copy). It is registered with
/// the runtime anew, for which it would be closed for good.
pub(crate) fn listen_again(listener: &tokio::net::TcpListener) -> io::Result<tokio::net::TcpListener> {
    let socket = SockRef::from(listener);
    socket.listen(BACKLOG)?;
    tokio::net::TcpListener::from_std(socket.try_clone()?.into())
}

fn datagram(socket: Socket, receive_buffer_bytes: u64) -> io::Result<(Bound, Option<ShortBuffer>)> {
    let granted = sys::set_receive_buffer(socket.as_fd(), receive_buffer_bytes)?;
    // Of 1 GiB the last byte is more than any setting of the kernel allows.
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

/// Removes a socket file that nobody listens at any more; one that is alive stays, and binding will say so.
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
    // Another process may have put its own socket there since the look.
    match std::fs::symlink_metadata(path) {
        Ok(now) if sys::file_mark(&now) == sys::file_mark(&found) => std::fs::remove_file(path),
        Ok(_other) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks who is at a socket file. A datagram socket asks: to connect it does nothing to whoever listens there, and the type
/// is compared before anything else is looked at.
fn probe(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&unix_address(path)?)
}

/// Whether somebody has the socket file that was asked. Only a refusal says that nobody does: another error is one of
/// somebody who has a socket of another type (EPROTOTYPE), or takes from a peer of its own only (EPERM).
///
/// # Errors
/// When it could not be asked: then it is not ours to remove.
fn is_alive(asked: &io::Result<()>) -> io::Result<bool> {
    let Err(error) = asked else { return Ok(true) };
    match error.raw_os_error() {
        // Nobody, or nothing at all by now.
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

/// The socket file of a unix listener, as it was when we bound it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    mark: (u64, u64, i64, i64),
}

impl SocketFile {
    /// That of `listen`, which is bound; none where there is no file.
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

    /// Whether it is still there: not deleted, and no other one in its place. A folder that cannot be looked into says nothing.
    pub fn is_there(&self) -> bool {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) => sys::file_mark(&found) == self.mark,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes it at the end, unless somebody has put another one in its place.
    pub fn unlink(&self) {
        let found = std::fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| sys::file_mark(&found) == self.mark) {
            // Already gone is as good.
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
    fn a_socket_that_somebody_has_stays_of_whatever_type_it_is() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("s");
        for kind in [Type::STREAM, Type::DGRAM, Type::SEQPACKET] {
            // Between its bind and its listen a socket is alive as well.
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
    fn what_is_no_socket_stays() {
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
    fn at_the_end_only_our_own_file_goes() {
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
    fn what_cannot_be_asked_is_not_removed() {
        for number in [errno::EMFILE, errno::ENOMEM, errno::EACCES] {
            let asked = Err(io::Error::from_raw_os_error(number));
            assert_eq!(is_alive(&asked).map_err(|error| error.raw_os_error()), Err(Some(number)));
        }
    }
}
