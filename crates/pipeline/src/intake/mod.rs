//! One intake per socket or connection: bytes in, batches of records out.
//!
//! Path of a packet: a reader of `staunch` calls [`Intake::datagrams`] or [`Intake::stream`] with the bytes of a read;
//! `wire` frames and parses them; refused lines are settled here, the others leave in [`Batches`]. Not here: sockets,
//! and the decision when a peer must wait (`Exchange`).
//! Invariants: a line is counted as received exactly once, and is either rejected here or in the batch's receipt;
//! between two reads an intake holds only the unfinished line or frame ([`Intake::memory_bytes`]), and has a claim
//! (`unfinished`) for what exceeds the bytes that each connection may hold.

mod broken;
pub(crate) mod complaints;
mod events;
mod first_line;
mod framing;
pub(crate) mod points;
pub(crate) mod protocol;
mod rejects;
mod replies;
mod samples;
mod scratch;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unfinished;

pub use self::broken::Broken;
pub use self::complaints::Complaint;
pub use self::framing::Unfinished;
pub use self::replies::AckProgress;
pub use self::scratch::Scratch;
pub use self::unfinished::UnfinishedFull;

use std::sync::Arc;

use config::kinds::RecordKind;
use config::plan::{SourceKind, SourcePlan};
use model::limits::QUOTED_BYTES_MAX;
use model::{
    AckMark, AckWhen, Batches, ConnectionId, Now, Outcome, Peer, PeerKey, Reject, SourceAccount, SourceId,
    Span,
};
use std::sync::atomic::Ordering::Relaxed;
use wire::frame::LengthFramer;
use wire::graphite::input::MessageEncoding;
use wire::{graphite, statsd};

use crate::Answer;
use crate::intake::complaints::{Complaints, complain, note_complaint, quote};
use crate::intake::events::Unread;
use crate::intake::first_line::Beginning;
use crate::intake::framing::Framing;
use crate::intake::points::Messages;
pub use crate::intake::protocol::ProtocolReplies;
use crate::intake::protocol::{Found, Protocol};
use crate::intake::replies::Replies;
use crate::intake::samples::{Packets, Wanted, batches};
use crate::intake::unfinished::{Claim, UnfinishedBytes};
use crate::packet_lines;

/// Reads one socket or connection.
pub struct Intake {
    source: SourceId,
    name: String,
    account: Arc<SourceAccount>,
    /// The sender of the next bytes.
    peer: Peer,
    /// Some output needs the sender.
    wants_peers: bool,
    /// The protocol of the input, with its parser.
    protocol: Protocol,
    /// False when only raw routes use the source: no samples are parsed.
    parses: bool,
    /// True when raw routes use the source: they take each line of a stream as a packet.
    raw: bool,
    tail_counts: bool,
    framing: Framing,
    /// The claim on memory for unfinished input, and the limit of all claims together.
    claim: Claim,
    unfinished_bytes_max: u64,
    /// Compressed bytes that the connection's decompressor holds.
    decompressor_bytes: usize,
    beginning: Beginning,
    /// Messages that unfold to more than one batch holds.
    messages: Messages,
    complaints: Complaints,
    /// Nothing more of the connection can be read.
    broken: Option<Broken>,
    /// The client gets acknowledgements.
    replies: Option<Replies>,
    /// The protocol's reply to the last read.
    protocol_replies: ProtocolReplies,
}

impl std::fmt::Debug for Intake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake").field("source", &self.source).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for IntakeMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntakeMaker").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Makes the intakes of one source: one for each socket and connection.
#[derive(Clone)]
pub struct IntakeMaker {
    pub(crate) source: SourceId,
    pub(crate) plan: Arc<SourcePlan>,
    pub(crate) account: Arc<SourceAccount>,
    pub(crate) unfinished: Arc<UnfinishedBytes>,
    pub(crate) unfinished_bytes_max: u64,
    pub(crate) protocol: Protocol,
    pub(crate) parses: bool,
    pub(crate) raw: bool,
    pub(crate) wants_peers: bool,
}

impl IntakeMaker {
    /// The source whose connections it makes them for.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// An intake for a datagram socket, or for a connection of lines or, if the source reads them, of messages.
    pub fn make(&self) -> Intake {
        let IntakeMaker {
            source,
            plan,
            account,
            unfinished,
            unfinished_bytes_max,
            protocol,
            parses,
            raw,
            wants_peers,
        } = self;
        let framing = protocol.framing(plan.line_bytes_max);
        Intake {
            source: *source,
            name: plan.name.clone(),
            account: Arc::clone(account),
            peer: Peer::UNKNOWN,
            wants_peers: *wants_peers,
            protocol: protocol.clone(),
            parses: *parses,
            raw: *raw,
            tail_counts: plan.tail_counts,
            beginning: match framing {
                Framing::Lines(_) if !protocol.takes_any_begin() => Beginning::of_lines(),
                Framing::Lines(_) | Framing::Frames(_) => Beginning::Known,
            },
            framing,
            claim: Claim::new(unfinished),
            unfinished_bytes_max: *unfinished_bytes_max,
            decompressor_bytes: 0,
            messages: Messages::default(),
            complaints: Complaints::default(),
            broken: None,
            replies: None,
            protocol_replies: ProtocolReplies::default(),
        }
    }

    /// An intake for the body of a request, which is one message of Graphite points behind its length (four bytes, big-endian). None if
    /// the source has no Graphite points, or only messages.
    pub fn make_message(&self, form: MessageEncoding) -> Option<Intake> {
        let SourceKind::Graphite(source) = &self.plan.kind else { return None };
        let protocol = self.protocol.of_messages(form, source.message_bytes_max)?;
        Some(IntakeMaker { protocol, ..self.clone() }.make())
    }

    /// An intake for a connection of length-prefixed packets.
    pub fn make_framed(&self) -> Intake {
        self.make().framed(self.plan.line_bytes_max)
    }
}

impl Intake {
    fn framed(mut self, frame_bytes_max: usize) -> Intake {
        self.framing = Framing::Frames(LengthFramer::new(frame_bytes_max));
        self.beginning = Beginning::Known;
        self
    }

    /// Reads from now on like an intake that `maker` makes: a reload has changed which routes use the source, or how
    /// its names are read. Unfinished input stays, and so does the condition that a client was promised.
    pub fn follow(&mut self, maker: &IntakeMaker) {
        let IntakeMaker {
            source,
            plan,
            account: _,
            unfinished: _,
            unfinished_bytes_max,
            protocol,
            parses,
            raw,
            wants_peers,
        } = maker;
        debug_assert_eq!(self.source, *source, "an intake stays with its source");
        (self.parses, self.raw, self.tail_counts) = (*parses, *raw, plan.tail_counts);
        self.wants_peers = *wants_peers;
        self.unfinished_bytes_max = *unfinished_bytes_max;
        // A connection keeps being cut into lines or messages as before: if it should carry others now, it has to end.
        if self.protocol.carries() != protocol.carries() {
            self.broken.get_or_insert(Broken::Reloaded);
        }
        self.protocol = protocol.clone();
    }

    /// The source whose records it reads.
    pub fn source(&self) -> SourceId {
        self.source
    }

    fn wanted(&self) -> Wanted {
        Wanted { parsed: self.parses, raw: self.raw }
    }

    /// True when its connection carries messages, which may unfold to much more than a read of lines.
    pub fn takes_messages(&self) -> bool {
        self.protocol.takes_messages()
    }

    /// True when the client of its connection gets a reply to each message.
    pub fn replies_to_messages(&self) -> bool {
        self.takes_messages() && self.protocol.gives() == RecordKind::Events
    }

    /// True when the datagrams of one call must be of one sender, given by [`Self::set_peer`].
    pub fn wants_peers(&self) -> bool {
        self.wants_peers
    }

    /// The sender of all bytes from now on; unknown at first.
    pub fn set_peer(&mut self, peer: Peer) {
        self.peer = peer;
    }

    /// The peer of the connection, for the limit of one client.
    pub fn set_peer_key(&mut self, peer: PeerKey) {
        self.claim.set_peer(peer);
    }

    /// Compressed bytes that are not decompressed yet. They count as unfinished from the next read on.
    pub fn set_decompressor_bytes(&mut self, bytes: usize) {
        self.decompressor_bytes = bytes;
    }

    /// Reads datagrams that lie in `bytes` at `packets`.
    pub fn datagrams<'a>(
        &mut self,
        bytes: &'a [u8],
        packets: &'a [Span],
        now: Now,
        scratch: &'a mut Scratch,
    ) -> Batches<'a> {
        scratch.clear();
        let wanted = self.wanted();
        let Intake { source, name, account, peer, protocol, complaints, .. } = self;
        let Scratch { parsed, points, events, lines, .. } = scratch;
        account.bytes.fetch_add(packets.iter().map(|packet| u64::from(packet.len)).sum(), Relaxed);
        let gives = protocol.gives();
        // Packets that are only copied cost nothing here.
        if gives != RecordKind::Samples || wanted.parsed {
            let found = Found { samples: parsed, points, events, replies: None };
            protocol.read(bytes, packets, wanted.parsed, now, found);
            let first_reject = first_reject(gives, parsed, points, events);
            note_complaint(name, bytes, first_reject, account, complaints);
        }
        match gives {
            RecordKind::Points => {
                let whose = (*source, *peer, wanted.raw);
                points::batches(whose, account, packets.len(), now, (points, lines))
            }
            RecordKind::Events => events::batches(*source, account, now, events),
            RecordKind::Samples | RecordKind::Packets | RecordKind::Aggregates => {
                batches(*source, account, wanted, now, bytes, Packets::each(packets), parsed)
            }
        }
    }

    /// Reads bytes of a connection. An unfinished line or frame stays for the next call. If messages unfold to more
    /// than one batch holds, [`Self::more`] returns the rest, and must be called before the next call.
    ///
    /// When a length prefix exceeds the limit the connection cannot be read any further: that is counted as one
    /// rejected record, [`Self::is_broken`] turns true, and the connection must be closed. Everything before it is in
    /// the batch. The same holds for a connection that begins with something other than lines, and for one whose
    /// unfinished message finds no room ([`Broken::NoRoom`]).
    pub fn stream<'a>(&mut self, bytes: &'a [u8], now: Now, scratch: &'a mut Scratch) -> Batches<'a> {
        self.account.bytes.fetch_add(bytes.len() as u64, Relaxed);
        scratch.clear();
        // What comes after a reload was sent for the old protocol, and could pass for something else.
        let bytes = if self.broken == Some(Broken::Reloaded) { &[] } else { bytes };
        if self.takes_messages() {
            return self.messages(bytes, now, scratch);
        }
        let bytes = match self.beginning.lines_of(bytes) {
            Ok(lines) => lines,
            Err((reason, what)) => {
                self.end_foreign(reason, what, bytes);
                &[]
            }
        };
        let Scratch { parsed, points, events, whole, packets, lines } = scratch;
        let (whole, lost) = self.framing.cut(bytes, whole, packets);
        self.lose(lost);
        self.claim_unfinished();
        let wanted = self.wanted();
        let Intake {
            source,
            name,
            account,
            peer,
            protocol,
            framing,
            complaints,
            replies,
            protocol_replies,
            ..
        } = self;
        let _counting = account.counting();
        let found = Found { samples: parsed, points, events, replies: Some(protocol_replies) };
        protocol.read(whole, packets, wanted.parsed, now, found);
        let first_reject = first_reject(protocol.gives(), parsed, points, events);
        note_complaint(name, whole, first_reject, account, complaints);
        if protocol.gives() == RecordKind::Points {
            let whose = (*source, *peer, wanted.raw);
            return points::batches(whose, account, packets.len(), now, (points, lines));
        }
        if protocol.gives() == RecordKind::Events {
            return events::batches(*source, account, now, events);
        }
        let framed = matches!(framing, Framing::Frames(_));
        if let Some(replies) = replies {
            let lines = if framed { packets.len() } else { memchr::memchr_iter(b'\n', bytes).count() };
            replies.received(lines as u64, parsed.rejected());
        }
        let packets = if wanted.raw && !framed {
            lines.extend(packet_lines::lines(whole));
            Packets { raw: lines, count: packets.len() }
        } else {
            Packets::each(packets)
        };
        batches(*source, account, wanted, now, whole, packets, parsed)
    }

    /// True when [`Self::more`] returns something.
    pub fn has_more(&self) -> bool {
        !self.messages.is_empty()
    }

    /// What the last batch had no room for, as much as fits into the next one.
    pub fn more<'a>(&mut self, now: Now, scratch: &'a mut Scratch) -> Batches<'a> {
        scratch.clear();
        self.messages(&[], now, scratch)
    }

    fn messages<'a>(&mut self, bytes: &[u8], now: Now, scratch: &'a mut Scratch) -> Batches<'a> {
        let Scratch { points: found, events, lines, .. } = scratch;
        if self.protocol.gives() == RecordKind::Events {
            return self.event_messages(bytes, now, events);
        }
        let raw = self.raw;
        let Intake { name, account, framing, protocol, messages, complaints, .. } = self;
        let (mut begun, mut lost) = (0, None);
        // A reload may have turned them into lines; the connection is ended then.
        if let (Protocol::GraphiteMessages(reading), Framing::Frames(framer)) = (protocol, framing) {
            let read = messages.read(reading, framer, bytes, now, found, |message, first| {
                note_complaint(name, message, Some(first), account, complaints);
            });
            (begun, lost) = (read.begun, read.lost);
        }
        self.lose(lost);
        self.claim_unfinished();
        let _counting = self.account.counting();
        points::batches((self.source, self.peer, raw), &self.account, begun, now, (found, lines))
    }

    fn event_messages<'a>(&mut self, bytes: &[u8], now: Now, found: &'a mut events::Parsed) -> Batches<'a> {
        let Intake { name, account, framing, complaints, protocol_replies: replies, .. } = self;
        replies.clear();
        // A reload may have turned lines into messages; the connection is ended then.
        if let Framing::Frames(framer) = framing {
            let read = events::read(framer, bytes, now, found, replies, |message, reason| {
                let whole = Span::new(0, message.len());
                note_complaint(name, message, Some((reason, whole)), account, complaints);
            });
            match read {
                Ok(()) => {}
                Err(Unread::Lost(reason)) => self.lose(Some(reason)),
                Err(Unread::Undecodable) => {
                    self.broken.get_or_insert(Broken::Rejected(Reject::BadMessage));
                }
            }
        }
        self.claim_unfinished();
        let _counting = self.account.counting();
        events::batches(self.source, &self.account, now, found)
    }

    /// A frame could not be read, for this reason; counted once.
    fn lose(&mut self, lost: Option<Reject>) {
        let Some(reason) = lost else { return };
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(Broken::Rejected(reason));
        let _counting = self.account.counting();
        self.account.receive(1);
        self.account.settle(Outcome::Rejected(reason), 1);
        let bound = if self.takes_messages() { "max_message_bytes" } else { "max_line_bytes" };
        let line = || match &self.framing {
            Framing::Frames(framer) => {
                format!("a frame of more than `{bound}` bytes that begins with {}", quote(framer.length()))
            }
            Framing::Lines(_) => format!("a frame of more than `{bound}` bytes"),
        };
        complain(&self.name, &self.account, reason, &mut self.complaints, None, line);
    }

    /// Claims memory for the unfinished input, or discards it if there is no room: one rejected record.
    fn claim_unfinished(&mut self) {
        let held = self.framing.memory_bytes() + self.decompressor_bytes;
        let Err(full) = self.claim.hold(held, self.unfinished_bytes_max) else { return };
        self.framing.give_up();
        self.claim.hold_anyway(0);
        if self.broken.replace(Broken::NoRoom(full)).is_none() {
            // The log reports it once a minute, for all connections.
            let _counting = self.account.counting();
            self.account.receive(1);
            self.account.lines.fetch_add(u64::from(!self.takes_messages()), Relaxed);
            self.account.settle(Outcome::Rejected(Reject::UnfinishedFull), 1);
        }
    }

    /// Memory that it holds of the input, without its own size.
    pub fn memory_bytes(&self) -> usize {
        self.framing.memory_bytes() + self.messages.memory_bytes() + self.protocol_replies.memory_bytes()
    }

    /// The connection carries something other than lines.
    fn end_foreign(&mut self, reason: Reject, what: &str, bytes: &[u8]) {
        self.broken = Some(Broken::Rejected(reason));
        let mut begin = Vec::new();
        if let Framing::Lines(framer) = &mut self.framing {
            // Its first line is the record that is rejected, even if it was too long.
            begin = framer.finish();
            let (_lines, too_long) = framer.take_too_long();
            begin.extend(too_long);
        }
        // Only its first line: headers may hold secrets.
        let mut lines = bytes.split(|byte| matches!(byte, b'\r' | b'\n'));
        let first_line = lines.find(|line| !line.is_empty() || !begin.is_empty());
        begin.extend(first_line.unwrap_or_default().iter().take(QUOTED_BYTES_MAX + 1));
        self.reject_lines(reason, 1, None, || format!("{} ({what})", quote(&begin)));
    }

    /// True when a frame could not be read, the input is not lines, or there is no room: the connection must be closed.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// The same, with the reason.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// True when the connection began with something other than lines. Its client understands none of our replies.
    pub fn is_foreign(&self) -> bool {
        self.beginning.is_foreign()
    }

    /// Settles the lines that were too long for the stream. Call it after each [`Self::stream`]. The first one waits
    /// until it is known to be a line.
    pub fn settle_too_long(&mut self) {
        if !self.beginning.is_open() {
            self.reject_too_long();
        }
    }

    fn reject_too_long(&mut self) {
        let Framing::Lines(framer) = &mut self.framing else { return };
        let (lines, begin) = framer.take_too_long();
        if lines > 0 {
            if let Some(replies) = &mut self.replies {
                // Their line feeds are counted as they come.
                replies.received(0, lines);
            }
            let line = || format!("{}... (more than `max_line_bytes` bytes)", quote(&begin));
            self.reject_lines(Reject::LineTooLong, lines, None, line);
        }
    }

    /// The end of a connection. An orderly one may leave a last line without LF.
    pub fn close<'a>(&mut self, orderly: bool, now: Now, scratch: &'a mut Scratch) -> Batches<'a> {
        debug_assert!(!self.has_more(), "what was read is handed on first");
        self.reject_too_long();
        scratch.clear();
        let Scratch { parsed, points, events, whole, packets, lines } = scratch;
        let mut begin = Vec::new();
        let (is_cut, counts) = match &mut self.framing {
            Framing::Lines(framer) => {
                *whole = framer.finish();
                (!whole.is_empty(), self.tail_counts && orderly)
            }
            Framing::Frames(framer) => {
                begin = framer.begin(QUOTED_BYTES_MAX + 1);
                (framer.held() > 0, false)
            }
        };
        // Its client may still wait for replies; the unfinished input is gone.
        self.framing.give_up();
        self.claim.hold_anyway(0);
        if is_cut && counts {
            packets.push(Span::new(0, whole.len()));
        } else if is_cut {
            begin.extend(whole.iter().take(QUOTED_BYTES_MAX + 1));
            whole.clear();
            let line = || format!("{} (it had no end when the connection closed)", quote(&begin));
            self.reject_lines(Reject::TailLost, 1, None, line);
        }
        let wanted = self.wanted();
        let Intake { source, name, account, peer, protocol, complaints, replies, protocol_replies, .. } =
            self;
        let _counting = account.counting();
        let found = Found { samples: parsed, points, events, replies: Some(protocol_replies) };
        protocol.read(whole, packets, wanted.parsed, now, found);
        let first_reject = first_reject(protocol.gives(), parsed, points, events);
        note_complaint(name, whole, first_reject, account, complaints);
        if protocol.gives() == RecordKind::Points {
            let whose = (*source, *peer, wanted.raw);
            return points::batches(whose, account, packets.len(), now, (points, lines));
        }
        if protocol.gives() == RecordKind::Events {
            return events::batches(*source, account, now, events);
        }
        if let Some(replies) = replies {
            replies.received(packets.len() as u64, parsed.rejected());
        }
        batches(*source, account, wanted, now, whole, Packets::each(packets), parsed)
    }

    /// From now on the client gets acknowledgements, as `connection`.
    #[must_use]
    pub fn answering(mut self, connection: ConnectionId, when: AckWhen) -> Intake {
        self.replies = Some(Replies::new(connection, when));
        self
    }

    /// Its state between two reads, with a mark after every line. None when another intake cannot continue from it: the
    /// client got an error, or the stream cannot be read.
    pub fn unfinished(&mut self) -> Option<Unfinished> {
        if self.is_broken() {
            return None;
        }
        self.reject_too_long();
        let acks = match &self.replies {
            Some(replies) => Some(replies.progress()?),
            None => None,
        };
        let (bytes, discarding) = self.framing.unfinished();
        Some(Unfinished { bytes, discarding, acks })
    }

    /// True when the beginning of a line or frame has come, but not its end.
    pub fn has_tail(&self) -> bool {
        match &self.framing {
            Framing::Lines(framer) => !framer.unfinished().0.is_empty(),
            Framing::Frames(framer) => framer.held() > 0,
        }
    }

    /// Continues, as new, from the state of another one; a client with acknowledgements is `connection` from now on.
    #[must_use]
    pub fn going_on(mut self, unfinished: &Unfinished, connection: Option<ConnectionId>) -> Intake {
        if !self.framing.go_on_with(unfinished) {
            self.broken = Some(Broken::Reloaded);
            let _counting = self.account.counting();
            self.account.receive(1);
            self.account.settle(Outcome::Rejected(Reject::TailLost), 1);
        }
        self.claim.hold_anyway(self.framing.memory_bytes());
        self.beginning.go_on_with(&unfinished.bytes);
        if let (Some(progress), Some(connection)) = (unfinished.acks, connection) {
            self.replies = Some(Replies::going_on(connection, progress));
        }
        self
    }

    /// The mark for the batch of the last call, after [`Self::settle_too_long`]; none when no line came, or when the
    /// client gets no acknowledgements.
    pub fn mark(&mut self) -> Option<AckMark> {
        self.replies.as_mut().and_then(Replies::mark)
    }

    /// The reply of the source's protocol to the last read, to be written before the next one: it is not kept.
    pub fn take_protocol_replies(&mut self) -> ProtocolReplies {
        std::mem::take(&mut self.protocol_replies)
    }

    /// Appends the reply that is due on this connection, if there is one: see [`Replies::write`]. Returns the number of
    /// lines that it acknowledges.
    pub fn replies(&mut self, answer: &Answer, out: &mut Vec<u8>) -> u64 {
        self.replies.as_mut().map_or(0, |replies| replies.write(answer, out))
    }

    /// Marks that have no answer yet.
    pub fn marks_unanswered(&self, answer: &Answer) -> u64 {
        self.replies.as_ref().map_or(0, |replies| replies.marks_unanswered(answer))
    }

    /// Lines that have not been acknowledged.
    pub fn lines_unanswered(&self) -> u64 {
        self.replies.as_ref().map_or(0, Replies::lines_unanswered)
    }

    /// The first bad line of a kind that has not been reported yet. Call it after each read.
    pub fn take_complaint(&mut self) -> Option<Complaint> {
        self.complaints.for_the_log.pop()
    }

    /// From now on the first bad line is kept, for the client's answer, whether the source has had others or not.
    pub fn keep_first_complaint(&mut self) {
        self.complaints.keeps_first = true;
    }

    /// The first bad line since [`Self::keep_first_complaint`].
    pub fn first_complaint(&self) -> Option<&Complaint> {
        self.complaints.first.as_ref()
    }

    /// The complete part of a packet that lost its end: the lines up to its last LF. The cut line is rejected as
    /// `packet_truncated`: read as it is, it might pass for another value. Of a message nothing is left. A source that is not parsed
    /// keeps all.
    pub fn whole_lines(&mut self, bytes: &[u8], packet: Span) -> Span {
        let gives = self.protocol.gives();
        if !self.parses && gives == RecordKind::Samples {
            return packet;
        }
        let end = match gives {
            // A message has no lines.
            RecordKind::Events => None,
            RecordKind::Samples | RecordKind::Points | RecordKind::Packets | RecordKind::Aggregates => {
                memchr::memrchr(b'\n', packet.of(bytes))
            }
        };
        let lines = end.map_or(0, |last| last + 1);
        let line = || {
            let cut = quote(&packet.of(bytes)[lines..]);
            format!("{cut} (the last line of a packet of more than 65535 bytes)")
        };
        self.reject_lines(Reject::PacketTruncated, 1, Some(packet.at), line);
        Span::new(packet.at as usize, lines)
    }

    /// The compressed stream of this connection cannot be decompressed any further, for this reason. One record is
    /// rejected for it: the real number is unknown.
    pub fn reject_compression(&mut self, why: &'static str) {
        self.reject_lines(Reject::BadCompression, 1, None, || why.to_owned());
    }

    fn reject_lines(&mut self, reason: Reject, lines: u64, at: Option<u32>, what: impl FnOnce() -> String) {
        let _counting = self.account.counting();
        self.account.receive(lines);
        self.account.lines.fetch_add(lines, Relaxed);
        self.account.settle(Outcome::Rejected(reason), lines);
        complain(&self.name, &self.account, reason, &mut self.complaints, at, what);
    }
}

/// The first rejected record of a read, of a protocol that gives this kind of record.
fn first_reject(
    gives: RecordKind,
    samples: &statsd::Parsed,
    points: &graphite::input::Parsed,
    events: &events::Parsed,
) -> Option<(Reject, Span)> {
    match gives {
        RecordKind::Points => points.first_reject,
        RecordKind::Events => events.first_reject,
        RecordKind::Samples | RecordKind::Packets | RecordKind::Aggregates => samples.first_reject,
    }
}
