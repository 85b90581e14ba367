//! Safe wrappers of system calls: the only crate with `unsafe` (design §12, invariant 8), and the only file that reads
//! clocks.
//!
//! Path of a packet: **`PacketReader::receive`** -> `pipeline::Intake` -> …; outgoing … -> **`PacketWriter::send`**.
//! Here: calls that std does not offer. Not here: decisions about packets, parsing, retry policy.
//! Invariant: every function may be called with any argument of its type; each `unsafe` block states why it is sound.

#![allow(unsafe_code, reason = "the system-call module; every block states why it is sound")]

#[cfg(target_os = "linux")]
mod background;
pub mod clock;
pub mod data_dir;
pub mod disk;
#[cfg(unix)]
mod filesystem;
mod gather;
mod handle;
mod memory;
#[cfg(target_os = "linux")]
mod packets;
#[cfg(target_os = "linux")]
pub mod pass;
mod place;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code, unreachable_pub, reason = "built here only to be tested"))]
mod portable;
#[cfg(unix)]
mod process;
mod seed;
#[cfg(windows)]
pub mod service;
mod socket;
#[cfg(unix)]
mod time;
pub mod tree;
mod unix_socket;
mod wait;

#[cfg(unix)]
#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub use background::{Background, into_background};
#[cfg(unix)]
pub use filesystem::{drop_from_cache, free_space_at, is_pipe, may_change, open_at_once};
pub use gather::{Gather, Rest};
pub use handle::{AsFd, BorrowedFd, OwnedFd, errno, is_final_for_reading, is_out_of_resources, is_scarce};
pub use memory::release_freed_memory;
#[cfg(target_os = "linux")]
pub use packets::{PacketReader, PacketWriter};
pub use place::{read_exact_at, reserve, write_parts_at};
#[cfg(not(target_os = "linux"))]
pub use portable::{PacketReader, PacketWriter};
#[cfg(not(unix))]
pub use portable::{is_pipe, may_change, open_at_once};
#[cfg(target_os = "linux")]
pub use process::on_core;
#[cfg(unix)]
pub use process::{
    CpuClock, Memory, block_signals, core_now, cores, host_name, ignore_file_size_signal, is_running,
    is_suspended, memory_of, open_file_limit, open_files, pin_to_core, process_cpu_ns, raise_open_file_limit,
    set_umask, suspend, terminate, thread_cpu_ns, unblock_signals,
};
pub use seed::random_seed;
pub use socket::{
    RECEIVE_BUFFER_BYTES_MAX, SocketMemory, new_drops, refuse_more, set_receive_buffer, socket_memory,
    unacked, unread,
};
#[cfg(unix)]
pub use time::{monotonic_ns, realtime_ns, utc_offset_s};
pub use unix_socket::{
    UnixDatagram, UnixListener, UnixListenerStd, UnixStream, file_mark, is_socket, links, set_mode,
    socket_inode, unix_listener, unix_sockets_supported,
};
pub use wait::{Waker, Watch, Writable, wait_readable, wait_writable};

use std::net::{IpAddr, SocketAddr};

use model::Span;

/// Offset of local time from UTC: not read on this system, where logs are in UTC.
#[cfg(not(unix))]
pub fn utc_offset_s(_time_s: u64) -> i64 {
    0
}

/// Default limit of packets of one [`PacketReader::receive`].
pub const PACKETS_DEFAULT: usize = 64;

/// Most packets of one [`PacketReader::receive`] or [`PacketWriter::send`]: the kernel's limit per call.
pub const PACKETS_MAX: usize = 1024;

/// Whether a call may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Return at once, also when no packet can be moved.
    No,
    /// Block until the first packet can be moved, or until the socket's timeout (`set_read_timeout`) or a signal. The
    /// socket must be in blocking mode.
    Yes,
}

/// Packets of one [`PacketReader::receive`], borrowed until the next.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    /// The arena of the spans. Bytes outside of them are from earlier packets.
    pub bytes: &'a [u8],
    /// The packets in order of arrival, empty ones included.
    pub spans: &'a [Span],
    /// Indexes in `spans` of packets that were longer than [`model::limits::DATAGRAM_BYTES_MAX`] and were truncated.
    pub truncated: &'a [u16],
    /// Sender of each packet, `None` on unix sockets; empty unless requested ([`PacketReader::receive_with_peers`]).
    pub peers: &'a [Option<IpAddr>],
    senders: Senders<'a>,
    /// True when every slot was filled: more packets may be queued, so receive again instead of sleeping.
    pub more: bool,
}

impl<'a> Packets<'a> {
    /// The packets, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| span.of(bytes))
    }

    /// True when nothing was received.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Sender of the packet at this index of `spans`; `None` on unix sockets, or when it was not requested
    /// ([`PacketReader::receive_named`]).
    pub fn sender(&self, place: usize) -> Option<SocketAddr> {
        match self.senders {
            Senders::NotNoted => None,
            #[cfg(target_os = "linux")]
            Senders::Names(names) => names.get(place).and_then(packets::sender),
            #[cfg(any(test, not(target_os = "linux")))]
            Senders::Addresses(addresses) => addresses.get(place).copied().flatten(),
        }
    }
}

/// Senders of the packets of a call, as the system returned them.
#[derive(Clone, Copy, Debug)]
enum Senders<'a> {
    NotNoted,
    #[cfg(target_os = "linux")]
    Names(&'a [packets::Name]),
    #[cfg(any(test, not(target_os = "linux")))]
    Addresses(&'a [Option<SocketAddr>]),
}
