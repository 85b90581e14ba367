//! Opening listeners: with the receive buffer that was asked for, and a plain word when the system refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use config::plan::Listen;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::daemon::worker::shown;
use crate::sys::{self, AsFd, OwnedFd, UnixListenerStd, errno};

/// Connections that the kernel keeps for us until we accept them.
const BACKLOG: i32 = 1024;

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

    fn new(listen: String, cause: io::Error) -> BindError {
        let hint = match cause.kind() {
            io::ErrorKind::AddrInUse => "the address is in use; stop the program that has it (`ss -lntup` names it), or listen on another port".to_owned(),
            io::ErrorKind::PermissionDenied => "no permission; ports below 1024 need CAP_NET_BIND_SERVICE, a socket file needs a writable folder".to_owned(),
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
    let failed = |cause| BindError::new(shown(listen), cause);
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
            let open = || {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
                if address.is_ipv6() {
                    socket.set_only_v6(!address.ip().is_unspecified())?;
                }
                socket.set_reuse_address(true)?;
                socket.bind(&SockAddr::from(*address))?;
                socket.listen(BACKLOG)?;
                socket.set_nonblocking(true)?;
                Ok((Bound::Tcp(socket.into()), None))
            };
            open().map_err(failed)
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

fn datagram(socket: Socket, receive_buffer_bytes: u64) -> io::Result<(Bound, Option<ShortBuffer>)> {
    let granted = sys::set_receive_buffer(socket.as_fd(), receive_buffer_bytes)?;
    let short =
        (granted < receive_buffer_bytes).then_some(ShortBuffer { asked: receive_buffer_bytes, granted });
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
    sys::unix_offered()?;
    if is_abstract(path) {
        return Ok(());
    }
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !sys::is_socket(&found) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file of another kind at that path",
        ));
    }
    let probe =
        |kind| Socket::new(Domain::UNIX, kind, None).and_then(|socket| socket.connect(&unix_address(path)?));
    let alive = [Type::STREAM, Type::DGRAM].into_iter().any(|kind| probe(kind).is_ok());
    if alive {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    std::fs::remove_file(path)
}

fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    match mode {
        Some(mode) if !is_abstract(path) => sys::set_mode(path, mode),
        _ => Ok(()),
    }
}

/// Removes the socket file of a unix listener at the end.
pub fn unlink(listen: &Listen) {
    let (Listen::UnixStream { path, .. }
    | Listen::UnixDatagram { path, .. }
    | Listen::UnixFrames { path, .. }) = listen
    else {
        return;
    };
    if !is_abstract(path) {
        // Already gone is as good.
        let _gone = std::fs::remove_file(path);
    }
}
