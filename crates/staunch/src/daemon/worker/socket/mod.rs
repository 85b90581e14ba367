//! A datagram socket of a source: what was read from it goes through its intake into the shard, or into a lane to it.

pub(super) mod reading;
pub(super) mod senders;
pub(super) mod share;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::Listen;
use model::{Batches, Dropped, Now, Outcome, SourceAccount, SourceId, Span};
use pipeline::{Exchange, Intake, Routed, Scratch, Shard};

use self::reading::{Reading, Word};
use self::senders::Senders;
use self::share::{Read, Share};
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::names::{peer, shown};
use crate::kernel::SocketGauge;
use sys::clock::Clock;
use sys::{self, AsFd, BorrowedFd, OwnedFd, PacketReader, Wait};

/// Bytes of packets, about, that are read and handed on at once. A call may give 16 MiB of packets, and a byte of a packet
/// may become 32 of samples.
const AT_ONCE_BYTES_MAX: usize = 256 * 1024;

/// One datagram socket of a source.
#[derive(Debug)]
pub struct DatagramSocket {
    /// Source that it belongs to.
    pub source: SourceId,
    /// Where it listens.
    pub listen: Listen,
    /// Which of the sockets that listen there: each reader has one.
    pub number: usize,
    /// The socket, UDP or unix. Shared with the thread that reads the kernel's counts.
    pub fd: Arc<OwnedFd>,
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
pub(in crate::daemon::worker) trait Sink {
    /// It is another thread that settles: what is counted and what is in flight must be seen together, and batches must own their
    /// memory.
    const IS_ELSEWHERE: bool;

    /// Takes a batch. One that there is no time for now is put into `left`.
    fn take(&mut self, batch: Batches<'_>, now: Now, left: &mut VecDeque<Batches<'static>>);
}

/// The shard of this thread.
pub(in crate::daemon::worker) struct To<'a> {
    pub(in crate::daemon::worker) shard: &'a mut Shard,
    pub(in crate::daemon::worker) routed: &'a mut Routed,
    /// Counts what is left as in flight.
    pub(in crate::daemon::worker) exchange: &'a Exchange,
    /// When long searches end (monotonic).
    pub(in crate::daemon::worker) until_ns: u64,
}

impl Sink for To<'_> {
    const IS_ELSEWHERE: bool = false;

    #[inline]
    fn take(&mut self, batch: Batches<'_>, now: Now, left: &mut VecDeque<Batches<'static>>) {
        let To { shard, routed, exchange, until_ns } = self;
        let rest = if left.is_empty() {
            shard.push_while(batch, now, routed, &mut || Clock::mono_ns() < *until_ns)
        } else {
            Some(batch)
        };
        if let Some(rest) = rest {
            exchange.count_outside(rest.source, rest.records());
            left.push_back(rest.into_owned());
        }
    }
}

/// What a read needs for a moment, lent to the sockets of a thread one after the other.
#[derive(Debug, Default)]
pub(in crate::daemon::worker) struct ReadMemory {
    scratch: Scratch,
    dense: Dense,
}

/// Packets without the room between them: batches that cross threads are copied with their arena.
#[derive(Debug, Default)]
struct Dense {
    bytes: Vec<u8>,
    packets: Vec<Span>,
}

impl Dense {
    fn fill(&mut self, bytes: &[u8], packets: &[Span]) {
        self.bytes.clear();
        self.packets.clear();
        for packet in packets {
            self.packets.push(Span::new(self.bytes.len(), packet.len as usize));
            self.bytes.extend_from_slice(packet.of(bytes));
        }
    }

    /// Where the byte at `at` was before.
    fn origin(&self, at: u32, packets: &[Span]) -> u32 {
        let packet = self.packets.partition_point(|packet| packet.at <= at).saturating_sub(1);
        match (self.packets.get(packet), packets.get(packet)) {
            (Some(here), Some(there)) => there.at + (at - here.at),
            _ => at,
        }
    }
}

impl DatagramSocket {
    /// What waits at it, as much as one call gives.
    fn receive<'a>(&self, reader: &'a mut PacketReader) -> io::Result<sys::Packets<'a>> {
        reader.take_at_most(self.share.slots());
        if self.intake.wants_peers() {
            reader.receive_with_peers(self.fd.as_fd(), Wait::No)
        } else if self.senders.are_noted(self.share.slots()) {
            reader.receive_named(self.fd.as_fd(), Wait::No)
        } else {
            reader.receive(self.fd.as_fd(), Wait::No)
        }
    }

    /// One call: what waits at it goes to `to`.
    pub(in crate::daemon::worker) fn read<S: Sink>(
        &mut self,
        reader: &mut PacketReader,
        complaints: Complaints,
        memory: &mut ReadMemory,
        to: &mut S,
    ) -> Read {
        let packets = match self.receive(reader) {
            Ok(packets) => packets,
            Err(error) => {
                self.note_failure(&error);
                return Read::default();
            }
        };
        self.reading.works();
        if packets.spans.is_empty() {
            return Read::default();
        }
        let bytes = packets.spans.iter().map(|span| span.len as usize).sum();
        let read = Read { packets: packets.spans.len(), bytes, more: packets.more };
        self.gauge.count_batch(read.packets);
        self.take(&packets, complaints, memory, to);
        if self.left.is_empty() { read } else { Read { packets: read.packets, ..Read::spent() } }
    }

    /// True when it is at one of these places.
    pub(in crate::daemon::worker) fn is_at(&self, places: &[(SourceId, Listen)]) -> bool {
        places.iter().any(|(source, listen)| *source == self.source && *listen == self.listen)
    }

    fn take<S: Sink>(
        &mut self,
        packets: &sys::Packets<'_>,
        complaints: Complaints,
        memory: &mut ReadMemory,
        to: &mut S,
    ) {
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
            self.complain(packets, complaints);
            whole = spans;
            &whole
        };
        if packets.peers.is_empty() {
            self.push(packets, spans, now, complaints, memory, to);
        } else {
            let mut rest = spans;
            for of_one in packets.peers.chunk_by(|one, next| one == next) {
                let (now_taken, later) = rest.split_at(of_one.len());
                self.intake.set_peer(peer(of_one[0]));
                self.push(packets, now_taken, now, complaints, memory, to);
                rest = later;
            }
        }
        self.complain(packets, complaints);
    }

    /// Makes the complaints about lines of these packets.
    fn complain(&mut self, packets: &sys::Packets<'_>, complaints: Complaints) {
        while let Some(complaint) = self.intake.take_complaint() {
            self.senders.tell(complaint, packets, &self.listen, &self.account, complaints);
        }
    }

    /// Makes the complaints that wait for a name.
    pub(in crate::daemon::worker) fn tell_rest(&mut self, complaints: Complaints) {
        self.senders.tell_rest(&self.listen, &self.account, complaints);
    }

    /// Packets of one sender, or of nobody in particular, to the shard: as many at once as may unfold at once.
    fn push<S: Sink>(
        &mut self,
        packets: &sys::Packets<'_>,
        spans: &[Span],
        now: Now,
        complaints: Complaints,
        ReadMemory { scratch, dense }: &mut ReadMemory,
        to: &mut S,
    ) {
        let mut rest = spans;
        while !rest.is_empty() {
            let (some, later) = rest.split_at(packets_at_once(rest));
            if S::IS_ELSEWHERE {
                let counting = self.account.counting();
                dense.fill(packets.bytes, some);
                let batch = self.intake.datagrams(&dense.bytes, &dense.packets, now, scratch);
                to.take(batch, now, &mut self.left);
                drop(counting);
                while let Some(mut complaint) = self.intake.take_complaint() {
                    complaint.at = complaint.at.map(|at| dense.origin(at, some));
                    self.senders.tell(complaint, packets, &self.listen, &self.account, complaints);
                }
            } else {
                let batch = self.intake.datagrams(packets.bytes, some, now, scratch);
                to.take(batch, now, &mut self.left);
            }
            rest = later;
        }
    }

    /// Goes on with what is left, as long as there is time. Says whether there is nothing left.
    pub(in crate::daemon::worker) fn push_left(&mut self, to: &mut To<'_>) -> bool {
        let To { shard, routed, exchange, until_ns } = to;
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
    pub(in crate::daemon::worker) fn finish_left(&mut self, to: &mut To<'_>) {
        for batch in std::mem::take(&mut self.left) {
            to.exchange.uncount_outside(self.source, batch.records());
            let left = to.shard.push_while(batch, Clock::now(), to.routed, &mut || false);
            left.into_iter().for_each(|left| left.settle(Outcome::Dropped(Dropped::Stopped)));
        }
    }

    fn note_failure(&mut self, error: &io::Error) {
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

    /// Accepts nothing more; senders get an error.
    pub(in crate::daemon::worker) fn refuse_more(&self) {
        if let Err(error) = sys::refuse_more(self.fd.as_fd()) {
            tracing::debug!("{} stays open until it is closed: {error}", shown(&self.listen));
        }
    }

    /// Adds what the kernel dropped since the last call to the source's account, and reads how full the socket is.
    pub fn count_drops(&self) {
        self.gauge.read(&*self.fd);
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
fn dense_packets_know_where_they_were() {
    let (arena, packets) = (b"..one.....three..", [Span::new(2, 3), Span::new(7, 0), Span::new(10, 5)]);
    let mut dense = Dense::default();
    for _again in 0..2 {
        dense.fill(arena, &packets);
        assert_eq!(dense.bytes, b"onethree");
        let texts: Vec<_> = dense.packets.iter().map(|packet| packet.of(&dense.bytes)).collect();
        assert_eq!(texts, [&b"one"[..], b"", b"three"]);
        assert_eq!([0, 2, 3, 7].map(|at| dense.origin(at, &packets)), [2, 4, 10, 14]);
    }
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

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
