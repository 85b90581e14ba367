//! File system calls beyond reading and writing: free space, permissions, and dropping pages from the cache.

use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Free bytes for this process on the file system of `path`.
///
/// # Errors
/// When the path does not exist, or the system does not report it.
pub fn free_space_at(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: plain integers, for which zeros are a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in NUL, and both outlive the call.
    super::handle::checked(unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) })?;
    Ok(free_bytes(&stat))
}

/// The same for the file system of `file`; `None` when it does not report its size.
///
/// # Errors
/// When the system call fails.
pub(crate) fn free_space_of(file: &File) -> io::Result<Option<u64>> {
    use std::os::fd::AsRawFd;
    // SAFETY: plain integers, for which zeros are a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is borrowed for the call, and `stat` outlives it.
    super::handle::checked(unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut stat) })?;
    Ok((stat.f_blocks > 0).then(|| free_bytes(&stat)))
}

fn free_bytes(stat: &libc::statvfs) -> u64 {
    // The fields' sizes differ between systems.
    #[allow(clippy::unnecessary_cast, reason = "they are u64 on this system and not on all")]
    let (blocks, block_bytes) = (stat.f_bavail as u64, stat.f_frsize as u64);
    blocks.saturating_mul(block_bytes)
}

/// Opens a file without blocking, also a pipe without a reader or with a slow one.
///
/// # Errors
/// When it cannot be opened at once.
pub fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(libc::O_NONBLOCK).open(path)
}

/// Whether this process may list the directory `path`, and create and remove files in it.
///
/// # Errors
/// Why it may not.
pub fn may_change(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let all = libc::R_OK | libc::W_OK | libc::X_OK;
    // SAFETY: the path ends in NUL and outlives the call.
    super::handle::checked(unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), all, libc::AT_EACCESS) })?;
    Ok(())
}

/// True for a named pipe, or a pipe of a process.
pub fn is_pipe(about: &Metadata) -> bool {
    about.file_type().is_fifo()
}

/// Drops the file's pages from the system's cache. Pages not written to disk yet are kept.
///
/// # Errors
/// Errors of posix_fadvise.
#[cfg(target_os = "linux")]
pub fn drop_from_cache(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: plain integers; the descriptor is borrowed for the call.
    let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Not supported on other systems: the pages stay in the cache.
///
/// # Errors
/// None here.
#[cfg(not(target_os = "linux"))]
pub fn drop_from_cache(_file: &File) -> io::Result<()> {
    Ok(())
}

#[test]
fn free_space_is_reported_and_the_cache_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(free_space_at(folder.path()).expect("it is there") > 0);
    assert!(free_space_at(&folder.path().join("not there")).is_err());
    let file = File::create(folder.path().join("file")).expect("it can be made");
    drop_from_cache(&file).expect("it is a file");
}

#[test]
fn only_a_directory_may_be_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    may_change(folder.path()).expect("it is ours");
    let gone = may_change(&folder.path().join("gone")).expect_err("there is none");
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("the folder is ours");
    let file = may_change(&file).expect_err("a file is not a directory");
    assert_eq!(file.kind(), io::ErrorKind::PermissionDenied);
}
