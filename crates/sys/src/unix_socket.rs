//! Unix sockets. On systems without them the types cannot be constructed, and all calls return an error.

use std::io;
use std::path::Path;

use socket2::Socket;

use super::BorrowedFd;

#[cfg(unix)]
pub use tokio::net::{UnixDatagram, UnixListener, UnixStream};

#[cfg(unix)]
mod on_this_system {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

    use super::*;

    /// A listener that is not registered with a runtime yet.
    pub type UnixListenerStd = std::os::unix::net::UnixListener;

    /// Ok on systems with unix sockets.
    ///
    /// # Errors
    /// On systems without them.
    pub fn unix_sockets_supported() -> io::Result<()> {
        Ok(())
    }

    /// A listener made of a bound socket.
    ///
    /// # Errors
    /// On systems without unix sockets.
    pub fn unix_listener(socket: Socket) -> io::Result<UnixListenerStd> {
        Ok(socket.into())
    }

    /// True when `found` is a socket.
    pub fn is_socket(found: &std::fs::Metadata) -> bool {
        found.file_type().is_socket()
    }

    /// The socket's inode, by which the system's tables (`/proc/net/udp`) list it.
    ///
    /// # Errors
    /// When the process has no descriptor left, or the system has no such tables.
    pub fn socket_inode(socket: BorrowedFd<'_>) -> io::Result<u64> {
        let copy = socket.try_clone_to_owned()?;
        Ok(std::fs::File::from(copy).metadata()?.ino())
    }

    /// Sets the permissions of a file.
    ///
    /// # Errors
    /// When the file belongs to another user, or the system has no such permissions.
    pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
    }

    /// Identifies a state of a file: inode, size, modification time in two parts.
    pub fn file_mark(found: &std::fs::Metadata) -> (u64, u64, i64, i64) {
        (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
    }

    /// Number of names of a file: 0 when it was deleted.
    pub fn links(found: &std::fs::Metadata) -> u64 {
        found.nlink()
    }
}

#[cfg(windows)]
mod on_this_system {
    use super::super::handle::AsFd;
    use super::*;

    fn none() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "unix sockets are not offered on Windows")
    }

    /// Not available on this system.
    #[derive(Debug)]
    pub enum UnixListenerStd {}

    /// Not available on this system.
    #[derive(Debug)]
    pub enum UnixListener {}

    /// Not available on this system.
    #[derive(Debug)]
    pub enum UnixStream {}

    /// Not available on this system.
    #[derive(Debug)]
    pub enum UnixDatagram {}

    pub fn unix_sockets_supported() -> io::Result<()> {
        Err(none())
    }

    pub fn unix_listener(_socket: Socket) -> io::Result<UnixListenerStd> {
        Err(none())
    }

    pub fn is_socket(_found: &std::fs::Metadata) -> bool {
        false
    }

    pub fn socket_inode(_socket: BorrowedFd<'_>) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
        Err(none())
    }

    pub fn file_mark(found: &std::fs::Metadata) -> (u64, u64, i64, i64) {
        use std::os::windows::fs::MetadataExt;
        (found.creation_time(), found.len(), found.last_write_time() as i64, 0)
    }

    pub fn links(_found: &std::fs::Metadata) -> u64 {
        1
    }

    impl UnixListener {
        pub fn from_std(listener: UnixListenerStd) -> io::Result<UnixListener> {
            match listener {}
        }

        pub async fn accept(&self) -> io::Result<(UnixStream, ())> {
            match *self {}
        }
    }

    impl UnixStream {
        pub async fn connect(_path: impl AsRef<Path>) -> io::Result<UnixStream> {
            Err(none())
        }

        pub async fn readable(&self) -> io::Result<()> {
            match *self {}
        }

        pub async fn writable(&self) -> io::Result<()> {
            match *self {}
        }

        pub fn try_read(&self, _into: &mut [u8]) -> io::Result<usize> {
            match *self {}
        }

        pub fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
            match *self {}
        }
    }

    impl UnixDatagram {
        pub fn unbound() -> io::Result<UnixDatagram> {
            Err(none())
        }

        pub fn connect(&self, _path: impl AsRef<Path>) -> io::Result<()> {
            match *self {}
        }

        pub fn take_error(&self) -> io::Result<Option<io::Error>> {
            match *self {}
        }

        pub fn try_io<R>(
            &self,
            _interest: tokio::io::Interest,
            _io: impl FnOnce() -> io::Result<R>,
        ) -> io::Result<R> {
            match *self {}
        }

        pub async fn writable(&self) -> io::Result<()> {
            match *self {}
        }
    }

    impl AsFd for UnixStream {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }

    impl AsFd for UnixDatagram {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }
}

pub use on_this_system::*;
