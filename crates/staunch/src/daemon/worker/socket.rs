//! A datagram socket of a source: what was read from it goes through its intake into the shard.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::Listen;
use model::{Batches, Dropped, Now, Outcome, Peer, SourceAccount, SourceId, Span};
use pipeline::{Exchange, Intake, Routed, Scratch, Shard};

use super::Complaints;
use super::reading::{Reading, Word};
use super::senders::Senders;
use super::share::Share;
use crate::kernel::SocketGauge;
use sys::clock::Clock;
use sys::{self, AsFd, BorrowedFd, OwnedFd, PacketReader, Wait};

/// Bytes of packets, about, that are read and handed on at once. A call may give 4 MiB of packets, and a byte of a packet
/// may become 32 of samples.
const AT_ONCE_BYTES_MAX: usize = 256 * 1024;

/// One datagram socket of a source.
#[derive(Debug)]
pub struct DatagramSocket {
    /// Source that it belongs to.
    pub source: SourceId,
    /// Where it listens.
    pub listen: Listen,
    /// The socket, UDP or unix.
    pub fd: OwnedFd,
    /// Its intake.
    pub intake: Intake,
    /// The source's account.
    pub account: Arc<SourceAccount>,
    /// What the kernel holds and drops.
    pub gauge: Arc<SocketGauge>,
    /// Whether it can be read.
    pub reading: Reading,
    /// How much it may give.
    pub share: Share,
    /// Who sent bad lines.
    pub senders: Senders,
    /// What was read and is not with the shard yet, because a relay had to search long for its names. Meanwhile the socket is not
    /// read, so it is never more than one call gave.
    pub left: VecDeque<Batches<'static>>,
}

/// Where what was read goes.
pub(super) struct To<'a> {
    pub(super) shard: &'a mut Shard,
    pub(super) routed: &'a mut Routed,
    /// Counts what is left as in flight.
    pub(super) exchange: &'a Exchange,
    pub(super) scratch: &'a mut Scratch,
    /// When long searches end (monotonic).
    pub(super) until_ns: u64,
}

impl DatagramSocket {
    /// What waits at it, as much as one call gives.
    pub(super) fn receive<'a>(&self, reader: &'a mut PacketReader) -> io::Result<sys::Packets<'a>> {
        reader.take_at_most(self.share.slots());
        if self.intake.wants_peers() {
            reader.receive_with_peers(self.fd.as_fd(), Wait::No)
        } else if self.senders.are_noted(self.share.slots()) {
            reader.receive_named(self.fd.as_fd(), Wait::No)
        } else {
            reader.receive(self.fd.as_fd(), Wait::No)
        }
    }

    pub(super) fn take(&mut self, packets: &sys::Packets<'_>, complaints: Complaints, to: &mut To<'_>) {
        let now = Clock::now();
        let whole;
        let spans = if packets.truncated.is_empty() {
            packets.spans
        } else {
            self.account.packets_truncated.fetch_add(packets.truncated.len() as u64, Relaxed);
            let mut spans = packets.spans.to_vec();
            for place in packets.truncated {
                let span = &mut spans[usize::from(*place)];
                *span = self.intake.whole_lines(packets.bytes, *span);
            }
            whole = spans;
            &whole
        };
        if packets.peers.is_empty() {
            self.push(packets.bytes, spans, now, to);
        } else {
            let mut rest = spans;
            for of_one in packets.peers.chunk_by(|one, next| one == next) {
                let (now_taken, later) = rest.split_at(of_one.len());
                self.intake.set_peer(peer(of_one[0]));
                self.push(packets.bytes, now_taken, now, to);
                rest = later;
            }
        }
        while let Some(complaint) = self.intake.take_complaint() {
            self.senders.tell(complaint, packets, &self.listen, &self.account, complaints);
        }
    }

    /// Makes the complaints that wait for a name.
    pub(super) fn tell_rest(&mut self, complaints: Complaints) {
        self.senders.tell_rest(&self.listen, &self.account, complaints);
    }

    /// Packets of one sender, or of nobody in particular, to the shard: as many at once as may unfold at once.
    fn push(&mut self, bytes: &[u8], spans: &[Span], now: Now, to: &mut To<'_>) {
        let To { shard, routed, exchange, scratch, until_ns } = to;
        let mut rest = spans;
        while !rest.is_empty() {
            let (some, later) = rest.split_at(packets_at_once(rest));
            let batch = self.intake.datagrams(bytes, some, now, scratch);
            let left = if self.left.is_empty() {
                shard.push_while(batch, now, routed, &mut || Clock::mono_ns() < *until_ns)
            } else {
                Some(batch)
            };
            if let Some(left) = left {
                exchange.count_outside(self.source, left.records());
                self.left.push_back(left.into_owned());
            }
            rest = later;
        }
    }

    /// Goes on with what is left, as long as there is time. Says whether there is nothing left.
    pub(super) fn push_left(&mut self, to: &mut To<'_>) -> bool {
        let To { shard, routed, exchange, until_ns, .. } = to;
        let mut go_on = || Clock::mono_ns() < *until_ns;
        while let Some(batch) = self.left.pop_front() {
            exchange.uncount_outside(self.source, batch.records());
            if let Some(left) = shard.push_while(batch, Clock::now(), routed, &mut go_on) {
                exchange.count_outside(self.source, left.records());
                self.left.push_front(left);
            }
            if !go_on() {
                break;
            }
        }
        self.left.is_empty()
    }

    /// Gives what is left its end: what needs no long search goes to the shard, the rest is dropped.
    pub(super) fn finish_left(&mut self, to: &mut To<'_>) {
        for batch in std::mem::take(&mut self.left) {
            to.exchange.uncount_outside(self.source, batch.records());
            let left = to.shard.push_while(batch, Clock::now(), to.routed, &mut || false);
            left.into_iter().for_each(|left| left.settle(Outcome::Dropped(Dropped::Stopped)));
        }
    }

    pub(super) fn note_failure(&mut self, error: &io::Error) {
        self.account.read_errors.fetch_add(1, Relaxed);
        let at = shown(&self.listen);
        match self.reading.failed(error, Clock::mono_ns()) {
            Word::None => {}
            Word::Passing => tracing::warn!("cannot read from {at}: {error}; retrying"),
            Word::Final => {
                self.gauge.set_unreadable();
                tracing::error!("cannot read from {at}: {error}; giving up on this socket");
            }
        }
    }

    /// Lets nothing more in; senders are told.
    pub(super) fn refuse_more(&self) {
        if let Err(error) = sys::refuse_more(self.fd.as_fd()) {
            tracing::debug!("{} stays open until it is closed: {error}", shown(&self.listen));
        }
    }

    /// Adds what the kernel dropped since the last call to the source's account, and reads how full the socket is.
    pub fn count_drops(&self) {
        self.gauge.read(&self.fd);
    }
}

/// How many of the packets are read at once: one at least, and no more behind [`AT_ONCE_BYTES_MAX`].
fn packets_at_once(packets: &[Span]) -> usize {
    let mut bytes = 0;
    let within = packets.iter().take_while(|packet| {
        bytes += packet.len as usize;
        bytes <= AT_ONCE_BYTES_MAX
    });
    within.count().max(1)
}

#[test]
fn packets_are_read_at_once_up_to_a_bound() {
    let packets = |bytes: usize, count: usize| vec![Span::new(0, bytes); count];
    for (packets, at_once) in [
        (packets(1_400, 64), 64),
        (packets(AT_ONCE_BYTES_MAX / 4, 64), 4),
        (packets(AT_ONCE_BYTES_MAX / 4 + 1, 64), 3),
        (packets(AT_ONCE_BYTES_MAX + 1, 64), 1),
        (packets(0, 64), 64),
    ] {
        assert_eq!(packets_at_once(&packets), at_once);
    }
}

/// A client by its address, which a unix socket does not tell.
pub fn peer(address: Option<IpAddr>) -> Peer {
    address.map_or(Peer::UNKNOWN, |address| Peer::cut(address.to_canonical().to_string().as_bytes()))
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A listener as users write it.
pub fn shown(listen: &Listen) -> String {
    match listen {
        Listen::Udp(address) => format!("udp://{address}"),
        Listen::Tcp(address) => format!("tcp://{address}"),
        Listen::UnixStream { path, .. } => format!("unix://{}", path.display()),
        Listen::UnixDatagram { path, .. } => format!("unixgram://{}", path.display()),
        Listen::UnixFrames { path, .. } => format!("unix-frames://{}", path.display()),
    }
}
