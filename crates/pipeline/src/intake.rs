//! One intake per socket or connection: bytes in, batches of records out.
//!
//! Path of a packet: a reader of `staunch` calls [`Intake::datagrams`] or [`Intake::stream`] with what the socket
//! gave; `wire` frames and parses it; refused lines are settled here, the others leave in a [`Batch`].
//! Not here: sockets, and the decision when a peer must wait (`Exchange`).
//! Invariants: a line is counted as received exactly once, and is either rejected here or in the batch's receipt; between two
//! reads an intake holds the unfinished line or frame, and nothing else of what came ([`Intake::memory_bytes`]).

use std::sync::Arc;

use config::plan::SourcePlan;
use model::{
    AckMark, AckWhen, ConnectionId, Now, Outcome, Peer, Receipt, Reject, SampleView, SourceAccount, SourceId,
    Span, Tally,
};
use std::sync::atomic::Ordering::Relaxed;
use wire::first_line::{FirstLine, Foreign, Opening};
use wire::frame::{LengthFramer, LineFramer};
use wire::statsd::{Parsed, Parser};

use crate::points::{Messages, PointReading, settle_rejects};
use crate::replies::{Replies, Told};
use crate::{Answer, Batch, Scratch, packets};

/// Longest piece of a bad line that a complaint quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 200;

/// Reader of one socket or connection.
pub struct Intake {
    source: SourceId,
    name: String,
    account: Arc<SourceAccount>,
    /// Who sends what comes now.
    peer: Peer,
    /// Some output wants to know who that is.
    wants_peers: bool,
    parser: Arc<Parser>,
    /// False when only raw routes use the source: nothing is looked at.
    parses: bool,
    /// True when raw routes use the source: they take each line of a stream as a packet.
    raw: bool,
    tail_counts: bool,
    framing: Framing,
    /// Asked until it is known that the connection carries lines; none where it need not be asked.
    first_line: Option<FirstLine>,
    /// It does not: nothing of it is read any more.
    foreign: bool,
    /// The source gives points; the parser has nothing to do then.
    points: Option<PointReading>,
    /// Messages that unfold to more than one batch takes.
    messages: Messages,
    complaints: Vec<Complaint>,
    /// A frame could not be followed.
    broken: bool,
    /// The client is told what it need not keep.
    replies: Option<Replies>,
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

/// What the intake of a connection holds between two reads, for another one to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Bytes of the unfinished line, or of the unfinished frame with its length.
    pub bytes: Vec<u8>,
    /// The end of a line that is too long, and counted, is still to come.
    pub discarding: bool,
    /// What the client has been told, where it is told something.
    pub told: Option<Told>,
}

#[derive(Debug)]
enum Framing {
    Lines(LineFramer),
    Frames(LengthFramer),
}

/// Makes the intakes of one source: one for each socket and connection.
#[derive(Clone)]
pub struct IntakeMaker {
    pub(crate) source: SourceId,
    pub(crate) plan: Arc<SourcePlan>,
    pub(crate) account: Arc<SourceAccount>,
    pub(crate) parser: Arc<Parser>,
    pub(crate) parses: bool,
    pub(crate) raw: bool,
    pub(crate) wants_peers: bool,
    pub(crate) points: Option<PointReading>,
}

impl IntakeMaker {
    /// An intake for a datagram socket, or for a connection of lines or, where the source reads them, of messages.
    pub fn make(&self) -> Intake {
        let IntakeMaker { source, plan, account, parser, parses, raw, wants_peers, points } = self;
        let framing = match points {
            None => Framing::Lines(LineFramer::new(plan.line_bytes_max)),
            Some(points) => match points.message_framer() {
                Some(framer) => Framing::Frames(framer),
                None => Framing::Lines(points.line_framer(plan.line_bytes_max)),
            },
        };
        Intake {
            source: *source,
            name: plan.name.clone(),
            account: Arc::clone(account),
            peer: Peer::UNKNOWN,
            wants_peers: *wants_peers,
            parser: Arc::clone(parser),
            parses: *parses,
            raw: *raw,
            tail_counts: plan.tail_counts,
            first_line: matches!(framing, Framing::Lines(_)).then(FirstLine::default),
            foreign: false,
            framing,
            points: points.clone(),
            messages: Messages::default(),
            complaints: Vec::new(),
            broken: false,
            replies: None,
        }
    }

    /// An intake for a connection of length-prefixed packets.
    pub fn make_framed(&self) -> Intake {
        self.make().framed(self.plan.line_bytes_max)
    }
}

/// The first bad line of a kind, for one message; later ones are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Name of the source.
    pub source: String,
    /// Why it was refused.
    pub reason: Reject,
    /// The line, or its beginning, with everything unprintable escaped.
    pub line: String,
}

impl Intake {
    fn framed(mut self, frame_bytes_max: usize) -> Intake {
        self.framing = Framing::Frames(LengthFramer::new(frame_bytes_max));
        self.first_line = None;
        self
    }

    /// Reads as an intake would that `maker` makes: a reload has changed who takes from the source, or how its names are
    /// read. What is unfinished stays, and so does what a client was promised.
    pub fn follow(&mut self, maker: &IntakeMaker) {
        let IntakeMaker { source, plan, account: _, parser, parses, raw, wants_peers, points } = maker;
        debug_assert_eq!(self.source, *source, "an intake stays with its source");
        self.parser = Arc::clone(parser);
        (self.parses, self.raw, self.tail_counts) = (*parses, *raw, plan.tail_counts);
        self.wants_peers = *wants_peers;
        // How a connection is cut into lines or messages stays: when it should carry the other now, it has to end.
        let before = self.points.as_ref().is_some_and(PointReading::takes_messages);
        self.points.clone_from(points);
        self.broken |= before != self.points.as_ref().is_some_and(PointReading::takes_messages);
    }

    /// Whose records it reads.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// True when its connection carries messages, which may unfold to more than one batch.
    pub fn takes_messages(&self) -> bool {
        self.points.as_ref().is_some_and(PointReading::takes_messages)
    }

    /// True when the datagrams of one call must be of one sender, told by [`Self::set_peer`].
    pub fn wants_peers(&self) -> bool {
        self.wants_peers
    }

    /// Who sends what comes from now on; nobody knows at first.
    pub fn set_peer(&mut self, peer: Peer) {
        self.peer = peer;
    }

    /// Takes datagrams that lie in `bytes` at `packets`.
    pub fn datagrams<'a>(
        &mut self,
        bytes: &'a [u8],
        packets: &'a [Span],
        now: Now,
        scratch: &'a mut Scratch,
    ) -> Batch<'a> {
        scratch.clear();
        let Intake { source, name, account, peer, parser, parses, points, complaints, .. } = self;
        let Scratch { parsed, points: found, lines, .. } = scratch;
        account.bytes.fetch_add(packets.iter().map(|packet| u64::from(packet.len)).sum(), Relaxed);
        if let Some(points) = points {
            points.read(bytes, packets, now, found);
            note_complaint(name, bytes, found.first_reject, account, complaints);
            return points.batch((*source, *peer), account, packets.len(), now, (found, lines));
        }
        if *parses {
            for packet in packets {
                parser.packet(bytes, *packet, now.wall_seconds(), parsed);
            }
        }
        note_complaint(name, bytes, parsed.first_reject, account, complaints);
        batch(*source, account, *parses, now, bytes, Packets::each(packets), parsed)
    }

    /// Takes what a connection gave. An unfinished line or frame stays for the next call. Of messages that unfold to more
    /// than one batch should hold, the rest comes with [`Self::more`], which is to be taken before the next call.
    ///
    /// When a length prefix is past the limit the connection cannot be followed any further: that is counted as
    /// one rejected record, [`Self::is_broken`] turns true, and the connection must be closed. What came before it
    /// is in the batch. The same holds for a connection that begins with something else than lines.
    pub fn stream<'a>(&mut self, bytes: &'a [u8], now: Now, scratch: &'a mut Scratch) -> Batch<'a> {
        self.account.bytes.fetch_add(bytes.len() as u64, Relaxed);
        scratch.clear();
        if self.takes_messages() {
            return self.messages(bytes, now, scratch);
        }
        let bytes = if self.first_line.is_some() { self.lines_of(bytes) } else { bytes };
        let Scratch { parsed, points: found, whole, packets, lines } = scratch;
        let (whole, lost) = cut(&mut self.framing, bytes, whole, packets);
        self.lose(lost);
        let Intake {
            source,
            name,
            account,
            peer,
            parser,
            parses,
            framing,
            raw,
            points,
            complaints,
            replies,
            ..
        } = self;
        let _counting = account.counting();
        if let Some(points) = points {
            points.read(whole, packets, now, found);
            note_complaint(name, whole, found.first_reject, account, complaints);
            return points.batch((*source, *peer), account, packets.len(), now, (found, lines));
        }
        if *parses {
            for packet in &*packets {
                parser.packet(whole, *packet, now.wall_seconds(), parsed);
            }
        }
        note_complaint(name, whole, parsed.first_reject, account, complaints);
        let framed = matches!(framing, Framing::Frames(_));
        if let Some(replies) = replies {
            let lines = if framed { packets.len() } else { memchr::memchr_iter(b'\n', bytes).count() };
            replies.received(lines as u64, parsed.rejected());
        }
        let packets = if *raw && !framed {
            lines.extend(packets::lines(whole));
            Packets { raw: lines, count: packets.len() }
        } else {
            Packets::each(packets)
        };
        batch(*source, account, *parses, now, whole, packets, parsed)
    }

    /// True when [`Self::more`] gives something.
    pub fn has_more(&self) -> bool {
        !self.messages.is_empty()
    }

    /// What the last batch had no room for, as far as the next one has.
    pub fn more<'a>(&mut self, now: Now, scratch: &'a mut Scratch) -> Batch<'a> {
        scratch.clear();
        self.messages(&[], now, scratch)
    }

    fn messages<'a>(&mut self, bytes: &[u8], now: Now, scratch: &'a mut Scratch) -> Batch<'a> {
        let Intake { name, account, framing, points, messages, complaints, .. } = self;
        let Scratch { points: found, lines, .. } = scratch;
        let (mut begun, mut lost) = (0, None);
        // A reload may have made lines of them; the connection is ended then.
        if let (Some(points), Framing::Frames(framer)) = (points, framing) {
            let read = messages.read(points, framer, bytes, now, found, |message, first| {
                note_complaint(name, message, Some(first), account, complaints);
            });
            (begun, lost) = (read.begun, read.lost);
        }
        self.lose(lost);
        let _counting = self.account.counting();
        match &self.points {
            Some(points) => points.batch((self.source, self.peer), &self.account, begun, now, (found, lines)),
            None => {
                batch(self.source, &self.account, false, now, &[], Packets::each(&[]), &mut scratch.parsed)
            }
        }
    }

    /// A frame could not be followed, for this reason; counted once.
    fn lose(&mut self, lost: Option<Reject>) {
        let Some(reason) = lost else { return };
        if std::mem::replace(&mut self.broken, true) {
            return;
        }
        let _counting = self.account.counting();
        self.account.receive(1);
        self.account.settle(Outcome::Rejected(reason), 1);
        let bound = if self.points.is_some() { "message_bytes_max" } else { "line_bytes_max" };
        let line = || format!("a frame of more than `{bound}` bytes");
        complain(&self.name, &self.account, reason, &mut self.complaints, line);
    }

    /// Memory that it holds of what came, beside itself.
    pub fn memory_bytes(&self) -> usize {
        let framer = match &self.framing {
            Framing::Lines(framer) => framer.memory_bytes(),
            Framing::Frames(framer) => framer.memory_bytes(),
        };
        framer + self.messages.memory_bytes()
    }

    /// What of `bytes` may be lines: nothing any more once the connection has turned out to carry something else.
    fn lines_of<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let opening = match &mut self.first_line {
            Some(first_line) if !self.foreign => first_line.push(bytes),
            _ => return &[],
        };
        let (reason, what) = match opening {
            Opening::Undecided => return bytes,
            Opening::Lines => {
                self.first_line = None;
                return bytes;
            }
            Opening::Foreign(Foreign::Http) => (Reject::HttpRequest, "an HTTP request"),
            Opening::Foreign(Foreign::Tls) => (Reject::TlsHandshake, "a TLS handshake"),
        };
        self.foreign = true;
        self.broken = true;
        if let Framing::Lines(framer) = &mut self.framing {
            // What came of its first line is the record that is rejected.
            framer.finish();
        }
        self.reject_lines(reason, 1, what);
        &[]
    }

    /// True when a frame could not be followed, or no lines come: the connection must be closed.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// True when the connection began with something else than lines. Whoever is there understands no answer of ours.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Settles the lines that were too long for the stream. Call it after each [`Self::stream`].
    pub fn settle_too_long(&mut self) {
        let Framing::Lines(framer) = &mut self.framing else { return };
        let lines = framer.take_too_long();
        if lines > 0 {
            if let Some(replies) = &mut self.replies {
                // Their line feeds are counted as they come.
                replies.received(0, lines);
            }
            self.reject_lines(Reject::LineTooLong, lines, "a line of more than `line_bytes_max` bytes");
        }
    }

    /// The end of a connection. An orderly one may leave a last line without LF behind.
    pub fn close<'a>(&mut self, orderly: bool, now: Now, scratch: &'a mut Scratch) -> Batch<'a> {
        debug_assert!(!self.has_more(), "what was read is handed on first");
        scratch.clear();
        let Scratch { parsed, points: found, whole, packets, lines } = scratch;
        let (is_cut, counts) = match &mut self.framing {
            Framing::Lines(framer) => {
                *whole = framer.finish();
                (!whole.is_empty(), self.tail_counts && orderly)
            }
            Framing::Frames(framer) => (framer.held() > 0, false),
        };
        if is_cut && counts {
            packets.push(Span::new(0, whole.len()));
        } else if is_cut {
            whole.clear();
            self.reject_lines(Reject::TailLost, 1, "the last line had no end when the connection closed");
        }
        let Intake { source, name, account, peer, parser, parses, points, complaints, replies, .. } = self;
        let _counting = account.counting();
        if let Some(points) = points {
            points.read(whole, packets, now, found);
            note_complaint(name, whole, found.first_reject, account, complaints);
            return points.batch((*source, *peer), account, packets.len(), now, (found, lines));
        }
        if *parses {
            for packet in &*packets {
                parser.packet(whole, *packet, now.wall_seconds(), parsed);
            }
        }
        note_complaint(name, whole, parsed.first_reject, account, complaints);
        if let Some(replies) = replies {
            replies.received(packets.len() as u64, parsed.rejected());
        }
        batch(*source, account, *parses, now, whole, Packets::each(packets), parsed)
    }

    /// From now on the client is told what it need not keep, as `connection`.
    #[must_use]
    pub fn answering(mut self, connection: ConnectionId, when: AckWhen) -> Intake {
        self.replies = Some(Replies::new(connection, when));
        self
    }

    /// What it holds between two reads, with a mark behind every line. None when another one cannot go on: the client was
    /// told of an end, or the stream cannot be followed.
    pub fn unfinished(&self) -> Option<Unfinished> {
        if self.broken {
            return None;
        }
        let told = match &self.replies {
            Some(replies) => Some(replies.told()?),
            None => None,
        };
        let (bytes, discarding) = match &self.framing {
            Framing::Lines(framer) => {
                let (line, discarding) = framer.unfinished();
                (line.to_vec(), discarding)
            }
            Framing::Frames(framer) => (framer.unfinished(), false),
        };
        Some(Unfinished { bytes, discarding, told })
    }

    /// True when the beginning of a line or frame has come, and not its end.
    pub fn has_tail(&self) -> bool {
        match &self.framing {
            Framing::Lines(framer) => !framer.unfinished().0.is_empty(),
            Framing::Frames(framer) => framer.held() > 0,
        }
    }

    /// Goes on, as new, with what another one held; a client that was told something is `connection` from now on.
    #[must_use]
    pub fn going_on(mut self, unfinished: &Unfinished, connection: Option<ConnectionId>) -> Intake {
        match &mut self.framing {
            Framing::Lines(framer) => {
                framer.go_on_with(&unfinished.bytes, unfinished.discarding);
                // It may be the first line, of which nothing was read as a line yet.
                self.first_line.iter_mut().for_each(|first_line| {
                    first_line.push(&unfinished.bytes);
                });
            }
            Framing::Frames(framer) => framer.go_on_with(&unfinished.bytes),
        }
        if let (Some(told), Some(connection)) = (unfinished.told, connection) {
            self.replies = Some(Replies::going_on(connection, told));
        }
        self
    }

    /// What to put into the batch of the last call, after [`Self::settle_too_long`]; none when no line came, or when
    /// the client is told nothing.
    pub fn mark(&mut self) -> Option<AckMark> {
        self.replies.as_mut().and_then(Replies::mark)
    }

    /// Appends the line that is due on this connection, if there is one: see [`Replies::write`]. Gives the lines that
    /// it acknowledges.
    pub fn replies(&mut self, answer: &Answer, out: &mut Vec<u8>) -> u64 {
        self.replies.as_mut().map_or(0, |replies| replies.write(answer, out))
    }

    /// Marks that were given and are not answered.
    pub fn marks_unanswered(&self, answer: &Answer) -> u64 {
        self.replies.as_ref().map_or(0, |replies| replies.marks_unanswered(answer))
    }

    /// Lines that have not been acknowledged.
    pub fn lines_unanswered(&self) -> u64 {
        self.replies.as_ref().map_or(0, Replies::lines_unanswered)
    }

    /// The first bad line of a kind that no complaint was made of yet. Take them after each call.
    pub fn take_complaint(&mut self) -> Option<Complaint> {
        self.complaints.pop()
    }

    /// What is whole of a packet that lost its end: the lines up to its last LF. The line that was cut is rejected as
    /// `packet_truncated`: read as it is, it might pass for another value. A source that nobody looks into keeps all.
    pub fn whole_lines(&mut self, bytes: &[u8], packet: Span) -> Span {
        if !self.parses && self.points.is_none() {
            return packet;
        }
        self.reject_lines(Reject::PacketTruncated, 1, "the last line of a packet of more than 65535 bytes");
        let lines = memchr::memrchr(b'\n', packet.of(bytes)).map_or(0, |last| last + 1);
        Span::new(packet.at as usize, lines)
    }

    /// The packed stream of this connection cannot be unpacked any further, for this reason. One record is rejected for
    /// it: nobody can say how many there were.
    pub fn reject_packing(&mut self, why: &'static str) {
        self.reject_lines(Reject::BadPacking, 1, why);
    }

    fn reject_lines(&mut self, reason: Reject, lines: u64, what: &str) {
        let _counting = self.account.counting();
        self.account.receive(lines);
        self.account.lines.fetch_add(lines, Relaxed);
        self.account.settle(Outcome::Rejected(reason), lines);
        complain(&self.name, &self.account, reason, &mut self.complaints, || what.into());
    }
}

/// Cuts what a connection gave: the bytes in which what is whole lies at `packets`, and why the rest cannot be followed.
fn cut<'a>(
    framing: &mut Framing,
    bytes: &'a [u8],
    room: &'a mut Vec<u8>,
    packets: &mut Vec<Span>,
) -> (&'a [u8], Option<Reject>) {
    match framing {
        Framing::Lines(framer) => {
            let whole = framer.push(bytes, room);
            if !whole.is_empty() {
                packets.push(Span::new(0, whole.len()));
            }
            (whole, None)
        }
        Framing::Frames(framer) => {
            let cut = framer.push(bytes, |frame| {
                packets.push(Span::new(room.len(), frame.len()));
                room.extend_from_slice(frame);
            });
            (room, cut.err())
        }
    }
}

/// What raw routes take, and how many packets or reads it came in.
#[derive(Clone, Copy)]
struct Packets<'a> {
    raw: &'a [Span],
    count: usize,
}

impl<'a> Packets<'a> {
    fn each(packets: &'a [Span]) -> Packets<'a> {
        Packets { raw: packets, count: packets.len() }
    }
}

/// Settles what was refused, and makes a batch of the rest.
fn batch<'a>(
    source: SourceId,
    account: &Arc<SourceAccount>,
    parses: bool,
    now: Now,
    bytes: &'a [u8],
    packets: Packets<'a>,
    parsed: &'a mut Parsed,
) -> Batch<'a> {
    let Packets { raw, count } = packets;
    let bad = settle_rejects(account, &parsed.rejects);
    if parsed.glued_tag_fields > 0 {
        account.glued_tag_fields.fetch_add(parsed.glued_tag_fields, Relaxed);
    }
    if parsed.event_fields_ignored > 0 {
        account.event_fields_ignored.fetch_add(parsed.event_fields_ignored, Relaxed);
    }
    let empty = raw.iter().filter(|packet| packet.is_empty()).count() as u64;
    if empty > 0 {
        account.packets_empty.fetch_add(empty, Relaxed);
    }
    if count > 0 {
        account.packets.fetch_add(count as u64, Relaxed);
        account.last_packet_s.store(now.wall_seconds(), Relaxed);
    }
    account.lines.fetch_add(parsed.lines, Relaxed);
    let events = std::mem::take(&mut parsed.events);
    let records = if parses { parsed.samples.len() + events.len() } else { raw.len() };
    Batch {
        view: SampleView { source, bytes, samples: &parsed.samples, extras: &parsed.extras },
        peer: Peer::UNKNOWN,
        packets: raw,
        names: &parsed.names,
        events,
        points: &[],
        tally: Tally { packets: count as u64, lines: parsed.lines, bad },
        receipt: Receipt::receive(account, records as u64),
    }
}

fn note_complaint(
    name: &str,
    bytes: &[u8],
    first_reject: Option<(Reject, Span)>,
    account: &SourceAccount,
    complaints: &mut Vec<Complaint>,
) {
    let Some((reason, line)) = first_reject else { return };
    complain(name, account, reason, complaints, || {
        let line = line.of(bytes);
        line[..line.len().min(QUOTED_BYTES_MAX)].escape_ascii().to_string()
    });
}

/// Notes a complaint, if it is the source's first for this reason: at most one for each, so few wait at any time.
fn complain(
    source: &str,
    account: &SourceAccount,
    reason: Reject,
    complaints: &mut Vec<Complaint>,
    line: impl FnOnce() -> String,
) {
    if account.first_complaint(reason) {
        complaints.push(Complaint { source: source.to_owned(), reason, line: line() });
    }
}

/// The accounts of a config, and what makes the intakes of its first source.
#[cfg(test)]
fn first_source(text: &str) -> (crate::Accounts, IntakeMaker) {
    let (plan, wrong) = config::check(config::diagnostic::Source { name: "t", text }, config::Format::Toml);
    let plan = plan.unwrap_or_else(|| panic!("{wrong:?}"));
    let accounts = crate::Accounts::default().carried_to(&plan);
    let shard = crate::Shard::new(&plan, &accounts, 1, Now::default());
    let maker = shard.intakes(&plan, SourceId(0), &accounts);
    (accounts, maker)
}

#[test]
fn frames_are_bounded_by_the_sources_own_limit() {
    let text = "
        data_dir = \"data\"
        [sources.s]
        type = \"statsd\"
        listen = [\"unix-frames://@x\"]
        line_bytes_max = \"64B\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
    let (accounts, maker) = first_source(text);
    let now = Now::default();
    for (bytes, broken) in [(64_u32, false), (65, true)] {
        let mut intake = maker.make_framed();
        let mut frame = bytes.to_le_bytes().to_vec();
        frame.resize(4 + bytes as usize, b'x');
        intake.stream(&frame, now, &mut Scratch::default()).receipt.settle(Outcome::Filtered);
        assert_eq!(intake.is_broken(), broken, "a frame of {bytes} bytes");
    }
    assert_eq!(accounts.source(SourceId(0)).rejected(Reject::BadFrame), 1);
}

#[test]
fn a_mark_counts_the_same_lines_wherever_the_reads_cut() {
    let text = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\", \"unix-frames://@y\"]
        line_bytes_max = \"64B\"
        ack_when = \"accepted\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
    let (_, maker) = first_source(text);
    let now = Now::default();
    let long = "x".repeat(200);
    let lines = format!("a:1|c\n\nnonsense\n{long}\nb:1|c:2|c\nrest:1|c");
    let frames = b"\x05\0\0\0a:1|c\0\0\0\0\x0b\0\0\0b:1|c\nworse".to_vec();
    // (intake, its bytes, lines or frames, records rejected)
    type Case = (fn(&IntakeMaker) -> Intake, Vec<u8>, u64, u64);
    let cases: [Case; 2] =
        [(IntakeMaker::make, lines.into_bytes(), 6, 2), (IntakeMaker::make_framed, frames, 3, 1)];
    for (make, bytes, lines, rejected) in cases {
        for step in 1..=bytes.len() {
            let mut intake = make(&maker).answering(ConnectionId(3), AckWhen::Accepted);
            let mut scratch = Scratch::default();
            let mut last = (0, 0);
            for read in bytes.chunks(step) {
                intake.stream(read, now, &mut scratch).receipt.settle(Outcome::Filtered);
                intake.settle_too_long();
                if let Some(mark) = intake.mark() {
                    assert!(mark.up_to > last.0 && mark.rejected >= last.1, "{mark:?} after {last:?}");
                    last = (mark.up_to, mark.rejected);
                }
            }
            intake.close(true, now, &mut scratch).receipt.settle(Outcome::Filtered);
            let mark = intake.mark().map_or(last, |mark| (mark.up_to, mark.rejected));
            assert_eq!(mark, (lines, rejected), "reads of {step} bytes");
        }
    }
}

#[test]
fn a_request_is_one_bad_record_wherever_the_reads_cut_and_its_body_is_none() {
    let statsd = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\"]
        line_bytes_max = \"64B\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
    let graphite = |personality: &str| {
        format!(
            "[sources.s]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nline_bytes_max = \"64B\"\n\
             personality = \"{personality}\"\n\
             [outputs.o]\ntype = \"graphite\"\nfrom = [\"s\"]\nto = [\"tcp://127.0.0.1:9\"]\n"
        )
    };
    // A target that makes the line longer than the limit changes nothing.
    let request = format!("POST /{} HTTP/1.1\r\nHost: a\r\n\r\na:1|c\na 1 1700000000\n", "x".repeat(100));
    let now = Now::default();
    let mut scratch = Scratch::default();
    for text in [statsd.to_owned(), graphite("strict"), graphite("c-relay")] {
        for (step, read_on) in [(1, false), (7, true), (40, true), (4096, true)] {
            let (accounts, maker) = first_source(&text);
            let mut intake = maker.make();
            let mut records = 0;
            for read in request.as_bytes().chunks(step) {
                // A stop reads what has come without a look at what was found.
                if intake.is_broken() && !read_on {
                    break;
                }
                let batch = intake.stream(read, now, &mut scratch);
                records += batch.receipt.records();
                batch.receipt.settle(Outcome::Filtered);
                intake.settle_too_long();
            }
            intake.close(true, now, &mut scratch).receipt.settle(Outcome::Filtered);
            assert!(intake.is_broken() && intake.is_foreign() && records == 0, "{text}");
            let account = accounts.source(SourceId(0));
            assert_eq!(account.rejected(Reject::HttpRequest), 1, "reads of {step} bytes");
            let long = account.rejected(Reject::LineTooLong);
            let sum = account.sum(0);
            assert!(sum.holds() && sum.received == 1 + long && long <= 1, "{sum:?}");
        }
        let (accounts, maker) = first_source(&text);
        let mut intake = maker.make();
        intake
            .stream(b"GET 1 1700000000\nGET / HTTP/1.1\n", now, &mut scratch)
            .receipt
            .settle(Outcome::Filtered);
        assert!(!intake.is_broken());
        assert_eq!(accounts.source(SourceId(0)).rejected(Reject::HttpRequest), 0);
    }
}

#[test]
fn a_first_line_that_another_process_began_to_read_is_still_the_first() {
    let text = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\"]
        [outputs.o]
        type = \"tcp\"
        from = [\"s\"]
        to = [\"tcp://127.0.0.1:9\"]
    ";
    let (_, maker) = first_source(text);
    let now = Now::default();
    let mut scratch = Scratch::default();
    for (begun, foreign) in [("GET / HT", true), ("", true), ("a:1|c\nGET / HT", true), ("GET /:1|c", false)]
    {
        let mut before = maker.make();
        before.stream(begun.as_bytes(), now, &mut scratch).receipt.settle(Outcome::Filtered);
        let unfinished = before.unfinished().expect("it can be gone on with");
        let mut after = maker.make().going_on(&unfinished, None);
        let rest = if begun.is_empty() { "GET / HTTP/1.1\n" } else { "TP/1.1\n" };
        after.stream(rest.as_bytes(), now, &mut scratch).receipt.settle(Outcome::Filtered);
        assert_eq!(after.is_foreign(), foreign, "{begun:?}");
    }
}
