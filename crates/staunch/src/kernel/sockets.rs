//! Our own datagram sockets: the bytes in the receive buffer, its size, and the kernel's drops.
//!
//! Invariant: a drop is added to the source's account once, whether it is seen in the socket's counters or in the
//! table.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use model::{SourceAccount, SourceId};
use socket2::SockRef;

use super::batches::{BatchCounts, BatchSizes};
use super::table::SocketRow;
use sys::{self, AsFd};

/// An opened socket.
#[derive(Debug)]
pub struct SocketOpened {
    /// Its source.
    pub source: SourceId,
    /// Its listen address (`udp://127.0.0.1:8125`).
    pub listen: String,
    /// The source's account.
    pub account: Arc<SourceAccount>,
    /// The configured receive buffer.
    pub buffer_wanted_bytes: u64,
    /// Whether the kernel limits and drops by the socket's receive buffer. For unix datagrams it limits the sender,
    /// which waits.
    pub measured: bool,
    /// Drops already counted by another process that passed on the socket.
    pub before: Drops,
}

/// Packets that the kernel dropped at a socket, as counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The kernel's counter at the last read. It wraps around, and begins with the socket.
    pub seen: u32,
    /// Packets added to an account.
    pub counted: u64,
}

/// The figures of one socket. Written by the socket's thread, read by any.
#[derive(Debug)]
pub struct SocketGauge {
    opened: SocketOpened,
    inode: u64,
    batches: Arc<BatchSizes>,
    rx_queue_bytes: AtomicU64,
    buffer_bytes: AtomicU64,
    dropped: AtomicU64,
    /// The kernel's counter at the last read.
    dropped_raw: AtomicU32,
    /// The socket's counters cannot be read: the tables are needed.
    blind: AtomicBool,
    /// It is no longer read.
    unreadable: AtomicBool,
}

/// The figures of one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFigures {
    /// Its source.
    pub source: SourceId,
    /// Its listen address.
    pub listen: String,
    /// Bytes in the receive buffer, as the kernel counts them: a small packet counts 768 or more.
    pub rx_queue_bytes: u64,
    /// Size of the receive buffer, counted in the same way: twice the size granted.
    pub buffer_bytes: u64,
    /// The value of `buffer_bytes` if the kernel had granted everything.
    pub buffer_wanted_bytes: u64,
    /// Packets that the kernel dropped here since the socket was opened.
    pub kernel_dropped: u64,
}

impl SocketFigures {
    fn add(&mut self, more: &SocketFigures) {
        self.rx_queue_bytes += more.rx_queue_bytes;
        self.buffer_bytes += more.buffer_bytes;
        self.buffer_wanted_bytes += more.buffer_wanted_bytes;
        self.kernel_dropped += more.kernel_dropped;
    }
}

impl SocketGauge {
    /// Counts a call with `packets` packets.
    #[inline]
    pub fn count_batch(&self, packets: usize) {
        self.batches.count(packets);
    }

    /// Notes that its socket is no longer read: it is closed, or not a socket.
    pub fn set_unreadable(&self) {
        self.unreadable.store(true, Relaxed);
    }

    /// Reads the kernel's counters of `socket`, which must be the one that it was opened with.
    pub fn read(&self, socket: impl AsFd) {
        match sys::socket_memory(socket.as_fd()) {
            Ok(memory) => {
                self.buffer_bytes.store(u64::from(memory.receive_bytes_max), Relaxed);
                self.take(u64::from(memory.receive_bytes), memory.drops);
            }
            Err(_unsupported) => self.read_blind(socket),
        }
    }

    /// Leaves buffer and drops to the tables.
    fn read_blind(&self, socket: impl AsFd) {
        self.blind.store(true, Relaxed);
        if let Ok(bytes) = SockRef::from(&socket).recv_buffer_size() {
            self.buffer_bytes.store(bytes as u64, Relaxed);
        }
    }

    /// The counted drops, for another process that continues with the socket.
    pub fn drops(&self) -> Drops {
        Drops { seen: self.dropped_raw.load(Relaxed), counted: self.dropped.load(Relaxed) }
    }

    fn take(&self, rx_queue_bytes: u64, drops: u32) {
        self.rx_queue_bytes.store(rx_queue_bytes, Relaxed);
        let new = sys::new_drops(self.dropped_raw.swap(drops, Relaxed), drops);
        if new > 0 {
            self.dropped.fetch_add(new, Relaxed);
            self.opened.account.kernel_dropped.fetch_add(new, Relaxed);
        }
    }

    fn figures(&self) -> SocketFigures {
        SocketFigures {
            source: self.opened.source,
            listen: self.opened.listen.clone(),
            rx_queue_bytes: self.rx_queue_bytes.load(Relaxed),
            buffer_bytes: self.buffer_bytes.load(Relaxed),
            buffer_wanted_bytes: self.opened.buffer_wanted_bytes.min(sys::RECEIVE_BUFFER_BYTES_MAX) * 2,
            kernel_dropped: self.dropped.load(Relaxed),
        }
    }
}

/// The gauges of all open sockets, and the batch sizes of all sources that ever had one.
#[derive(Debug, Default)]
pub struct Kernel {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By source, in the order of opening. A gauge ends with its socket.
    sockets: Vec<Vec<Weak<SocketGauge>>>,
    /// By source, so that they outlive closed sockets. As many as the plan has sources.
    batches: Vec<Option<Arc<BatchSizes>>>,
}

impl Kernel {
    /// A gauge for `socket`, which is shown until it is dropped.
    pub fn open(&self, opened: SocketOpened, socket: impl AsFd) -> Arc<SocketGauge> {
        let mut state = self.state();
        let at = opened.source.index();
        if state.batches.len() <= at {
            state.batches.resize(at + 1, None);
            state.sockets.resize(at + 1, Vec::new());
        }
        let batches = Arc::clone(state.batches[at].get_or_insert_default());
        let gauge = Arc::new(SocketGauge {
            inode: sys::socket_inode(socket.as_fd()).unwrap_or(0),
            dropped: AtomicU64::new(opened.before.counted),
            dropped_raw: AtomicU32::new(opened.before.seen),
            opened,
            batches,
            rx_queue_bytes: AtomicU64::new(0),
            buffer_bytes: AtomicU64::new(0),
            blind: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        });
        gauge.read(socket);
        let sockets = &mut state.sockets[at];
        sockets.retain(|known| known.strong_count() > 0);
        sockets.push(Arc::downgrade(&gauge));
        gauge
    }

    /// The figures of all measurable sockets, by source and then in the order of opening.
    pub fn figures(&self) -> Vec<SocketFigures> {
        measured(self.gauges())
    }

    /// The same for the sockets of `source`. The cost does not depend on other sources.
    pub fn figures_of(&self, source: SourceId) -> Vec<SocketFigures> {
        let open = |sockets: &Vec<Weak<SocketGauge>>| sockets.iter().filter_map(Weak::upgrade).collect();
        let gauges: Vec<_> = self.state().sockets.get(source.index()).map(open).unwrap_or_default();
        measured(gauges.into_iter())
    }

    /// The addresses of open sockets that can no longer be read, with their sources.
    pub fn unreadable(&self) -> Vec<(SourceId, String)> {
        let broken = self.gauges().filter(|gauge| gauge.unreadable.load(Relaxed));
        let mut broken: Vec<_> =
            broken.map(|gauge| (gauge.opened.source, gauge.opened.listen.clone())).collect();
        broken.dedup();
        broken
    }

    /// Batch sizes of a source; `None` when it never had a datagram socket.
    pub fn batches(&self, source: SourceId) -> Option<BatchCounts> {
        self.state().batches.get(source.index())?.as_ref().map(|batches| batches.counts())
    }

    /// True while the counters of some socket cannot be read directly.
    pub fn is_blind(&self) -> bool {
        self.gauges().any(|gauge| gauge.blind.load(Relaxed))
    }

    /// Uses the tables for sockets whose counters cannot be read directly.
    pub fn take_rows(&self, rows: &[SocketRow]) {
        for gauge in self.gauges().filter(|gauge| gauge.blind.load(Relaxed)) {
            if let Some(row) = rows.iter().find(|row| row.inode == gauge.inode) {
                gauge.take(row.rx_queue_bytes, row.drops);
            }
        }
    }

    fn gauges(&self) -> impl Iterator<Item = Arc<SocketGauge>> + use<> {
        let gauges: Vec<_> = self.state().sockets.iter().flatten().filter_map(Weak::upgrade).collect();
        gauges.into_iter()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Figures of the measurable sockets. Sockets that share an address, one for each reader, are one row.
fn measured(gauges: impl Iterator<Item = Arc<SocketGauge>>) -> Vec<SocketFigures> {
    let mut rows: Vec<SocketFigures> = Vec::new();
    for figures in gauges.filter(|gauge| gauge.opened.measured).map(|gauge| gauge.figures()) {
        match rows.iter_mut().find(|row| row.source == figures.source && row.listen == figures.listen) {
            Some(row) => row.add(&figures),
            None => rows.push(figures),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn opened(source: u16, account: &Arc<SourceAccount>) -> SocketOpened {
        SocketOpened {
            source: SourceId(source),
            listen: format!("udp://{source}"),
            account: Arc::clone(account),
            buffer_wanted_bytes: 1 << 20,
            measured: true,
            before: Drops::default(),
        }
    }

    /// A socket with an overflowed small buffer, and the number of packets sent to it.
    fn overflowed() -> (UdpSocket, u64) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        sys::set_receive_buffer(socket.as_fd(), 4096).expect("a socket has a buffer");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let to = socket.local_addr().expect("it is bound");
        for _ in 0..100 {
            sender.send_to(b"hits:1|c", to).expect("loopback takes it");
        }
        (socket, 100)
    }

    fn waiting(socket: &UdpSocket) -> u64 {
        socket.set_nonblocking(true).expect("a socket can be so");
        let mut packets = 0;
        while socket.recv(&mut [0; 64]).is_ok() {
            packets += 1;
        }
        packets
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_socket_counts_and_so_do_the_tables() {
        let (socket, sent) = overflowed();
        let kernel = Kernel::default();
        let (asked, looked_up) = (Arc::default(), Arc::default());
        let by_itself = kernel.open(opened(0, &asked), &socket);
        let blind = kernel.open(opened(1, &looked_up), &socket);
        assert!(!kernel.is_blind());
        // As with a kernel before 4.12, from the beginning.
        for count in [&blind.rx_queue_bytes, &blind.dropped, &looked_up.kernel_dropped] {
            count.store(0, Relaxed);
        }
        blind.dropped_raw.store(0, Relaxed);
        blind.read_blind(&socket);
        assert!(kernel.is_blind());
        kernel.take_rows(&crate::kernel::read_tables());
        kernel.take_rows(&crate::kernel::read_tables());
        by_itself.read(&socket);
        let figures = kernel.figures();
        let [first, second] = figures.as_slice() else { panic!("two sockets: {figures:?}") };
        let same = SocketFigures { source: SourceId(1), listen: "udp://1".into(), ..first.clone() };
        assert_eq!(*second, same);
        assert!(first.rx_queue_bytes > 0 && first.rx_queue_bytes <= first.buffer_bytes + 4096, "{first:?}");
        assert_eq!((first.buffer_bytes, first.buffer_wanted_bytes), (8192, 2 << 20));
        assert!(first.kernel_dropped > 0, "{first:?}");
        assert_eq!(asked.kernel_dropped.load(Relaxed), first.kernel_dropped);
        assert_eq!(looked_up.kernel_dropped.load(Relaxed), first.kernel_dropped, "counted once");
        assert_eq!(waiting(&socket) + first.kernel_dropped, sent);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_that_came_from_another_process_counts_on() {
        let (socket, _) = overflowed();
        let kernel = Kernel::default();
        let (first, second) = (Arc::default(), Arc::default());
        let before = kernel.open(opened(0, &first), &socket);
        assert!(before.drops().counted > 0 && u64::from(before.drops().seen) == before.drops().counted);
        let after = SocketOpened { before: before.drops(), ..opened(0, &second) };
        let after = kernel.open(after, &socket);
        assert_eq!((after.drops(), second.kernel_dropped.load(Relaxed)), (before.drops(), 0));
    }

    #[test]
    fn figures_end_with_the_socket_and_batches_do_not() {
        let kernel = Kernel::default();
        let account = Arc::default();
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let at =
            |source, listen: &str| SocketOpened { listen: listen.to_owned(), ..opened(source, &account) };
        let gauges =
            [(2, "a"), (0, "a"), (2, "b")].map(|(source, listen)| kernel.open(at(source, listen), &socket));
        let unmeasured = SocketOpened { measured: false, ..opened(1, &account) };
        let unmeasured = kernel.open(unmeasured, &socket);
        let sources = || kernel.figures().iter().map(|figures| figures.source.index()).collect::<Vec<_>>();
        assert_eq!(sources(), [0, 2, 2]);
        let all = kernel.figures();
        let figures = [0, 1, 2, 3].map(|source| kernel.figures_of(SourceId(source)));
        assert_eq!(
            figures,
            [&all[..1], &[], &all[1..], &[]],
            "each has its own, and the unmeasured are left out"
        );
        gauges[0].count_batch(3);
        gauges[2].count_batch(4);
        unmeasured.count_batch(1);
        let packets = |source| kernel.batches(SourceId(source)).map(|counts| counts.packets);
        assert_eq!([packets(0), packets(1), packets(2), packets(3)], [Some(0), Some(1), Some(7), None]);
        let sibling = kernel.open(at(2, "b"), &socket);
        let last = kernel.figures_of(SourceId(2)).pop().expect("there are two");
        let bytes = (2 * all[2].buffer_bytes, 2 * all[2].buffer_wanted_bytes);
        assert_eq!((sources().len(), last.buffer_bytes, last.buffer_wanted_bytes), (3, bytes.0, bytes.1));
        drop((gauges, sibling));
        assert_eq!(sources(), [0; 0]);
        assert_eq!(kernel.figures_of(SourceId(2)), []);
        assert_eq!(packets(2), Some(7));
        let _again = kernel.open(opened(2, &account), &socket);
        assert_eq!(packets(2), Some(7));
    }
}
