//! Positional file I/O (pread, pwritev) with several parts per call, and space reservation.

use std::fs::File;
use std::io;

use model::Reserved;

/// Most parts of one call: accepted by every system (`IOV_MAX` is at least 1024 where it is set).
#[cfg(unix)]
const PARTS_MAX: usize = 1024;

/// Writes all `parts`, one after the other, from `offset` on.
///
/// # Errors
/// Errors of pwritev; any part of the bytes may have been written then.
#[cfg(unix)]
pub fn write_parts_at(file: &File, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
    let mut parts: Vec<io::IoSlice<'_>> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
    let mut left = &mut parts[..];
    let mut offset = offset;
    // This removes empty parts: a call without bytes would look like a disk that accepts nothing.
    io::IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match write_some_at(file, offset, left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                io::IoSlice::advance_slices(&mut left, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn write_some_at(file: &File, offset: u64, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let offset = libc::off_t::try_from(offset).map_err(|_past| io::ErrorKind::FileTooLarge)?;
    let count = parts.len().min(PARTS_MAX) as libc::c_int;
    // SAFETY: an `IoSlice` has the layout of an `iovec`, as std promises on unix; the parts are borrowed for the call,
    // which gets their number and only reads them.
    let written = unsafe { libc::pwritev(file.as_raw_fd(), parts.as_ptr().cast(), count, offset) };
    usize::try_from(written).map_err(|_negative| io::Error::last_os_error())
}

/// Space that must stay free in addition to the request when it cannot be reserved: the file system needs some itself.
#[cfg(unix)]
const SPARE_BYTES: u64 = 256 * 1024;

/// Number of concurrent requests to allow for when space cannot be reserved.
#[cfg(unix)]
const CONCURRENT_REQUESTS: u64 = 8;

/// Reserves blocks for `bytes` from `offset` on. The file's size does not change. For a file system without support
/// (ext2, NFS before 4.2) the free space is checked.
///
/// # Errors
/// When there is not enough space.
#[cfg(target_os = "linux")]
pub fn reserve(file: &File, offset: u64, bytes: u64) -> io::Result<Reserved> {
    use std::os::fd::AsRawFd;
    let place = |value| libc::off_t::try_from(value).map_err(|_past| io::ErrorKind::FileTooLarge);
    let (at, len) = (place(offset)?, place(bytes)?);
    // SAFETY: plain integers; the descriptor is borrowed for the call.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, at, len) };
    match super::handle::checked(done) {
        Ok(_) => Ok(Reserved::Allocated),
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => check_free_space(file, bytes),
            // Other errors will show up at the write.
            Some(libc::EINTR) => Ok(Reserved::FreeNow),
            _ => Err(error),
        },
    }
}

/// Checks the file system's free space: this system has no call to reserve some.
///
/// # Errors
/// When there is not enough space.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn reserve(file: &File, _offset: u64, bytes: u64) -> io::Result<Reserved> {
    check_free_space(file, bytes)
}

/// Does nothing: errors will show up at the write.
///
/// # Errors
/// None; other systems have some.
#[cfg(not(unix))]
pub fn reserve(_file: &File, _offset: u64, _bytes: u64) -> io::Result<Reserved> {
    Ok(Reserved::FreeNow)
}

#[cfg(unix)]
fn check_free_space(file: &File, bytes: u64) -> io::Result<Reserved> {
    let wanted = bytes.saturating_mul(CONCURRENT_REQUESTS).saturating_add(SPARE_BYTES);
    match super::filesystem::free_space_of(file)? {
        Some(room) if room < wanted => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        Some(_) | None => Ok(Reserved::FreeNow),
    }
}

/// Fills `bytes` from `offset` on.
///
/// # Errors
/// `UnexpectedEof` when the file ends before, and errors of pread.
#[cfg(unix)]
pub fn read_exact_at(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Writes all `parts`, one after the other, from `offset` on.
///
/// # Errors
/// Errors of the system; any part of the bytes may have been written then.
#[cfg(windows)]
pub fn write_parts_at(file: &File, mut offset: u64, parts: &[&[u8]]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    for part in parts {
        let mut left = *part;
        while !left.is_empty() {
            let written = file.seek_write(left, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            offset += written as u64;
            left = &left[written..];
        }
    }
    Ok(())
}

/// Fills `bytes` from `offset` on.
///
/// # Errors
/// `UnexpectedEof` when the file ends before, and errors of the system.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut left = bytes;
    while !left.is_empty() {
        let read = file.seek_read(left, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        offset += read as u64;
        left = &mut left[read..];
    }
    Ok(())
}
