//! From aggregates, packets and events to the bytes of one output, collected in blocks.
//!
//! A block is closed when it has [`BLOCK_BYTES`] or when its flush ends, and the caller then appends it to the output's
//! queue. One encoder per output: outputs differ in their names and encodings, which the aggregation does not know.

mod line_prefix;
pub(crate) mod lines;
mod open_block;
mod puts;
mod requests;
pub(crate) mod room;

use std::sync::Arc;

use config::kinds::RecordKind;
use config::plan::{ConsoleEncoding, Feed, GraphiteEncoding, Link, OutputKind, Plan};
use deliver::queue::{Block, BlockEncoding};
use deliver::shared_queue::{PARTITIONS, partition};
use model::{
    Batches, Dropped, EventRef, FlushInfo, Flushed, Now, OutputAccount, OutputId, Peer, Point, Span,
};
use process::aggregate::FlushEnd;
use std::sync::atomic::Ordering::Relaxed;
use streams::language::host::Level;
use wire::graphite::{Encoder, OwnFigures, PickleReject, pickle_point};
use wire::opentsdb;
use wire::report::{self, Console, DOCUMENT_BYTES_MAX, PerlFile, event_json_line};

use crate::Accounts;
use crate::encode::line_prefix::PrefixText;
use crate::encode::lines::Lines;
use crate::encode::open_block::{OpenBlock, count_lost, drop_points};
use crate::encode::puts::Puts;
use crate::encode::requests::Requests;
use crate::encode::room::{block_memory_bytes, room_for_events, room_verbatim};
use crate::packet_lines::lines;

/// Size at which a block is closed. Small enough for a steady flow, large enough that a lock per block costs little.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// Closed blocks for the outputs' queues.
#[derive(Debug, Default)]
pub struct Routed {
    /// In order; blocks of one output stay in order among themselves.
    pub blocks: Vec<(OutputId, Block)>,
    /// Lines, or their beginnings, that failed a relay's `validate … else log`: some of them, for the log.
    pub invalid: Vec<Vec<u8>>,
    /// Lines for a relay's aggregation rule that have no timestamp, likewise.
    pub untimed: Vec<Vec<u8>>,
    /// Lines for the log that Riemann configs print or log, and what their streams throw.
    pub said: Vec<Said>,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The transform.
    pub transform: String,
    /// How important it is.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// Encoder of one output with its open block.
#[derive(Debug)]
pub(crate) struct OutputEncoder {
    id: OutputId,
    account: Arc<OutputAccount>,
    form: Form,
    /// One for each partition when several connections share the output's queue; otherwise one.
    open: Vec<OpenBlock>,
    /// The text before each line.
    prefix_text: Option<PrefixText>,
    /// Longest line, without its LF.
    line_bytes_max: u32,
    graphite: GraphiteFigures,
    made_of: MadeOf,
}

/// What determines an output's encoding: its kind, and the thresholds that a console shows.
type MadeOf = (OutputKind, Vec<f64>);

fn made_of(plan: &Plan, id: OutputId) -> MadeOf {
    (plan.outputs[id.index()].kind.clone(), percentiles(plan, id))
}

#[derive(Debug)]
enum Form {
    Lines(Encoder),
    Pickle(Encoder),
    /// Lines, each a datagram.
    LineDatagrams(Encoder),
    /// Lines of OpenTSDB.
    Puts(Puts),
    Console {
        console: Console,
        begun: bool,
    },
    PerlFile(PerlFile),
    /// Unchanged packets: their blocks are made elsewhere (`packets`).
    Packets,
    /// Lines of packets, and aggregates as samples.
    Samples(Box<Lines>),
    Events,
    /// Events as records of requests.
    Requests(Box<Requests>),
}

/// The graphiteStats figures of the previous flush (spec statsd §8.5).
#[derive(Debug, Default)]
struct GraphiteFigures {
    last_flush_s: u64,
    flush_ms: u64,
    flush_length: u64,
    /// Payload bytes of the flush in progress.
    length: u64,
}

/// Figures of an output's flushes, for the management port's `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputFigures {
    /// The output.
    pub output: OutputId,
    /// Unix seconds of the last flush; at first those of the start.
    pub last_flush_s: u64,
    /// Its duration in milliseconds.
    pub flush_ms: u64,
    /// Its bytes.
    pub flush_length: u64,
}

impl OutputEncoder {
    pub(crate) fn figures(&self) -> OutputFigures {
        let GraphiteFigures { last_flush_s, flush_ms, flush_length, .. } = self.graphite;
        OutputFigures { output: self.id, last_flush_s, flush_ms, flush_length }
    }

    /// `seed` is the seed of the hashes of external names.
    pub(crate) fn new(plan: &Plan, id: OutputId, accounts: &Accounts, seed: u64, now: Now) -> OutputEncoder {
        let form = match &plan.outputs[id.index()].kind {
            OutputKind::Graphite {
                form: GraphiteEncoding::Lines | GraphiteEncoding::Syslog,
                namespace,
                ..
            }
            | OutputKind::GraphiteFile { namespace, .. } => Form::Lines(Encoder::new(namespace.clone())),
            OutputKind::Whisper(store) => Form::Lines(Encoder::new(store.namespace.clone())),
            OutputKind::Graphite { form: GraphiteEncoding::Pickle, namespace, .. } => {
                Form::Pickle(Encoder::new(namespace.clone()))
            }
            OutputKind::GraphiteDatagrams { namespace, .. } => {
                Form::LineDatagrams(Encoder::new(namespace.clone()))
            }
            OutputKind::OpenTsdb { namespace, default_tag, .. } => {
                Form::Puts(Puts::new(Encoder::new(namespace.clone()), default_tag))
            }
            OutputKind::Console { form, pretty } => {
                let form = match form {
                    ConsoleEncoding::Node => report::ConsoleEncoding::Node { pretty: *pretty },
                    ConsoleEncoding::Perl => report::ConsoleEncoding::Perl,
                };
                let console = Console::new(form, &percentiles(plan, id), DOCUMENT_BYTES_MAX);
                Form::Console { console, begun: false }
            }
            OutputKind::PerlFile { stats_prefix, .. } => {
                Form::PerlFile(PerlFile::new(stats_prefix, DOCUMENT_BYTES_MAX))
            }
            OutputKind::Packets(packets) => match &packets.lines {
                None => Form::Packets,
                Some(lines) => Form::Samples(Box::new(Lines::new(packets, lines, seed ^ u64::from(id.0)))),
            },
            OutputKind::EventFile { .. } => Form::Events,
            OutputKind::Http(http) => Form::Requests(Box::new(Requests::of_http(http))),
            OutputKind::Email(email) => Form::Requests(Box::new(Requests::of_email(email))),
            OutputKind::Riemann(riemann) => Form::Requests(Box::new(Requests::of_riemann(riemann))),
        };
        let facts = plan.outputs[id.index()].kind.facts();
        let blocks = if facts.link.connections() > 1 { PARTITIONS } else { 1 };
        let line_bytes_max = facts.line_bytes_max;
        let graphite = GraphiteFigures { last_flush_s: now.wall_seconds(), ..Default::default() };
        OutputEncoder {
            id,
            account: Arc::clone(accounts.output(id)),
            form,
            open: (0..blocks).map(|_| OpenBlock::default()).collect(),
            prefix_text: PrefixText::of(&plan.outputs[id.index()].kind),
            line_bytes_max,
            graphite,
            made_of: made_of(plan, id),
        }
    }

    /// One series of a flush.
    #[inline]
    pub(crate) fn flushed(&mut self, info: &FlushInfo, flushed: &Flushed<'_>, now: Now, out: &mut Routed) {
        let at = if self.open.len() > 1 {
            let series = flushed.series();
            usize::from(partition(series.name, series.tags))
        } else {
            0
        };
        let open = &mut self.open[at];
        match &mut self.form {
            Form::Lines(encoder) => {
                let begin = open.bytes.len();
                let encoded = encoder.lines(info, flushed, &mut open.bytes);
                open.copies += encoded.points;
                open.lead_lines(begin, &mut self.prefix_text, now);
                count_lost(&self.account, encoded);
                if open.bytes.len() - begin > self.line_bytes_max as usize {
                    open.drop_long_lines(begin, self.line_bytes_max, &self.account);
                }
            }
            Form::Pickle(encoder) => {
                let encoded = encoder.pickle_points(info, flushed, &mut open.points);
                open.count += encoded.points;
                count_lost(&self.account, encoded);
                if open.points.len() >= BLOCK_BYTES {
                    open.close_pickle();
                }
            }
            Form::Console { console, begun } => {
                if !std::mem::replace(begun, true) {
                    console.begin(info);
                }
                console.add(flushed);
            }
            Form::PerlFile(file) => file.add(flushed),
            Form::Samples(lines) => lines.aggregate(flushed, &self.account, now, open),
            Form::LineDatagrams(encoder) => {
                let begin = open.bytes.len();
                let encoded = encoder.lines(info, flushed, &mut open.bytes);
                open.lead_lines(begin, &mut self.prefix_text, now);
                open.end_line_frames(begin);
                count_lost(&self.account, encoded);
            }
            Form::Puts(puts) => puts.flushed(info, flushed, &self.account, open),
            Form::Packets | Form::Events | Form::Requests(_) => {
                debug_assert!(false, "routes lead no aggregates to output {}", self.id.0);
            }
        }
        if self.open[at].bytes.len() >= BLOCK_BYTES {
            self.close_at(at, now, out);
        }
    }

    /// The end of a flush: adds our own figures, and closes the document or frame.
    pub(crate) fn end_flush(&mut self, end: &FlushEnd, now: Now, out: &mut Routed) {
        let own = self.own_figures(end, now);
        let open = &mut self.open[0];
        match &mut self.form {
            Form::Lines(encoder) => {
                let begin = open.bytes.len();
                let encoded = encoder.own_lines(&own, &mut open.bytes);
                open.copies += encoded.points;
                open.lead_lines(begin, &mut self.prefix_text, now);
                count_lost(&self.account, encoded);
                open.drop_long_lines(begin, self.line_bytes_max, &self.account);
            }
            Form::Pickle(encoder) => {
                let encoded = encoder.own_pickle_points(&own, &mut open.points);
                open.count += encoded.points;
                count_lost(&self.account, encoded);
            }
            Form::Console { console, begun } => {
                if !std::mem::take(begun) {
                    console.begin(&end.info);
                }
                let documented = console.finish(&mut open.bytes);
                open.document(documented, &self.account);
            }
            Form::PerlFile(file) => {
                let documented = file.finish(&mut open.bytes);
                open.document(documented, &self.account);
            }
            Form::LineDatagrams(encoder) => {
                let begin = open.bytes.len();
                let encoded = encoder.own_lines(&own, &mut open.bytes);
                open.lead_lines(begin, &mut self.prefix_text, now);
                open.end_line_frames(begin);
                count_lost(&self.account, encoded);
            }
            Form::Puts(puts) => puts.own_lines(&own, &self.account, open),
            Form::Packets | Form::Samples(_) | Form::Events | Form::Requests(_) => {}
        }
        self.close(now, out);
        let figures = &mut self.graphite;
        figures.flush_length = std::mem::take(&mut figures.length);
        figures.flush_ms = (now.mono_ns - end.started.mono_ns) / 1_000_000;
        figures.last_flush_s = now.wall_seconds();
    }

    fn own_figures(&self, end: &FlushEnd, now: Now) -> OwnFigures {
        let taken_ms = (now.mono_ns - end.started.mono_ns) / 1_000_000;
        OwnFigures {
            time_s: end.info.time_s,
            connect_time_s: end.info.time_s.max(now.wall_seconds()),
            num_stats: end.series,
            calculation_ms: taken_ms,
            processing_ms: taken_ms,
            last_exception_s: self.account.last_error_s.load(Relaxed),
            last_flush_s: self.graphite.last_flush_s,
            flush_ms: self.graphite.flush_ms,
            flush_length: self.graphite.flush_length,
        }
    }

    /// Points of a source, whose lines are adjacent in `bytes`: they are copied unchanged.
    pub(crate) fn points(&mut self, bytes: &[u8], points: &[Point], now: Now, out: &mut Routed) {
        debug_assert!(self.takes_points(), "config lets points go to outputs of Graphite only");
        let is_long = |point: &Point| point.line.len > self.line_bytes_max;
        if !matches!(self.form, Form::Lines(_)) || self.prefix_text.is_some() || points.iter().any(is_long) {
            return points.iter().for_each(|point| self.point(bytes, *point, now, out));
        }
        if self.open.len() > 1 {
            for point in points {
                let at = usize::from(partition(point.name(bytes), point.tags(bytes)));
                self.line_block(at, bytes, std::slice::from_ref(point), now, out);
            }
            return;
        }
        let mut rest = points;
        while !rest.is_empty() {
            let room = BLOCK_BYTES.saturating_sub(self.open[0].bytes.len());
            let begin = rest[0].line.at as usize;
            // Lines that begin within the room, and at least one.
            let fits = rest.partition_point(|point| (point.line.at as usize - begin) < room).max(1);
            let (now_taken, later) = rest.split_at(fits);
            self.line_block(0, bytes, now_taken, now, out);
            rest = later;
        }
    }

    /// The sender of the next points.
    pub(crate) fn set_peer(&mut self, peer: Peer) {
        if let Some(prefix_text) = &mut self.prefix_text {
            prefix_text.set_peer(peer);
        }
    }

    fn takes_points(&self) -> bool {
        matches!(self.form, Form::Lines(_) | Form::Pickle(_) | Form::LineDatagrams(_) | Form::Puts(_))
    }

    /// One unchanged point.
    #[inline]
    pub(crate) fn point(&mut self, bytes: &[u8], point: Point, now: Now, out: &mut Routed) {
        debug_assert!(self.takes_points(), "config lets points go to outputs of Graphite only");
        let at = if self.open.len() > 1 {
            usize::from(partition(point.name(bytes), point.tags(bytes)))
        } else {
            0
        };
        if matches!(self.form, Form::Pickle(_)) {
            return self.pickled_point(at, point.name(bytes), bytes, point, now, out);
        }
        if matches!(self.form, Form::Puts(_)) {
            return self.put_point(point.name(bytes), bytes, point, now, out);
        }
        if point.line.len > self.line_bytes_max {
            return drop_points(&self.account, Dropped::TooBig, 1);
        }
        self.line_block(at, bytes, &[point], now, out);
    }

    /// One point as opcodes of a pickle, under its own or another name.
    fn pickled_point(
        &mut self,
        at: usize,
        name: &[u8],
        bytes: &[u8],
        point: Point,
        now: Now,
        out: &mut Routed,
    ) {
        let open = &mut self.open[at];
        let numbers = (point.value(bytes), point.time(bytes));
        match pickle_point((name, point.tags(bytes)), numbers, &mut open.points) {
            Ok(()) => open.count += 1,
            Err(PickleReject::NotANumber) => drop_points(&self.account, Dropped::NotANumber, 1),
            Err(PickleReject::UnsafeName) => drop_points(&self.account, Dropped::UnsafeName, 1),
        }
        if open.points.len() >= BLOCK_BYTES {
            self.close_at(at, now, out);
        }
    }

    /// One point as a line of OpenTSDB, under its own or another name.
    fn put_point(&mut self, name: &[u8], bytes: &[u8], point: Point, now: Now, out: &mut Routed) {
        let Form::Puts(puts) = &mut self.form else { return };
        let (value, time) = (point.value(bytes), point.time(bytes));
        let parts = opentsdb::Parts { name, tags: point.tags(bytes), value, time };
        if puts.point(parts, &self.account, &mut self.open[0]) {
            self.end_lines(0, 1, now, out);
        }
    }

    /// One point under another name.
    pub(crate) fn renamed_point(
        &mut self,
        name: &[u8],
        bytes: &[u8],
        point: Point,
        now: Now,
        out: &mut Routed,
    ) {
        let several = self.open.len() > 1;
        let at = if several { usize::from(partition(name, point.tags(bytes))) } else { 0 };
        if matches!(self.form, Form::Pickle(_)) {
            return self.pickled_point(at, name, bytes, point, now, out);
        }
        if matches!(self.form, Form::Puts(_)) {
            return self.put_point(name, bytes, point, now, out);
        }
        let prefix_text = self.prefix_text.as_mut().map_or(&[][..], |prefix_text| prefix_text.text(now));
        let rest = &point.line.of(bytes)[point.name_len as usize..];
        if prefix_text.len() + name.len() + rest.len() > self.line_bytes_max as usize {
            return drop_points(&self.account, Dropped::TooBig, 1);
        }
        let open = &mut self.open[at];
        open.bytes.extend_from_slice(prefix_text);
        open.bytes.extend_from_slice(name);
        open.bytes.extend_from_slice(rest);
        open.bytes.push(b'\n');
        self.end_lines(at, 1, now, out);
    }

    /// This many lines have been appended to an open block: it is closed when it is full.
    #[inline]
    fn end_lines(&mut self, at: usize, lines: u32, now: Now, out: &mut Routed) {
        let open = &mut self.open[at];
        match self.form {
            Form::LineDatagrams(_) => open.end_frame(lines),
            Form::Lines(_)
            | Form::Pickle(_)
            | Form::Puts(_)
            | Form::Console { .. }
            | Form::PerlFile(_)
            | Form::Packets
            | Form::Samples(_)
            | Form::Events
            | Form::Requests(_) => open.copies += lines,
        }
        if open.bytes.len() >= BLOCK_BYTES {
            self.close_at(at, now, out);
        }
    }

    /// Copies neighbouring lines into an open block, and closes it when it is full.
    fn line_block(&mut self, at: usize, bytes: &[u8], points: &[Point], now: Now, out: &mut Routed) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let end = (last.line.at + last.line.len) as usize + 1;
        debug_assert_eq!(bytes[end - 1], b'\n', "each line has its LF behind it");
        let open = &mut self.open[at];
        if let Some(prefix_text) = &mut self.prefix_text {
            debug_assert_eq!(points.len(), 1, "each line has its own text before it");
            let prefix_text = prefix_text.text(now);
            if prefix_text.len() + first.line.len as usize > self.line_bytes_max as usize {
                return drop_points(&self.account, Dropped::TooBig, 1);
            }
            open.bytes.extend_from_slice(prefix_text);
        }
        open.bytes.extend_from_slice(&bytes[first.line.at as usize..end]);
        self.end_lines(at, points.len() as u32, now, out);
    }

    /// Whether lines that wait for this output can be sent to the other one unchanged.
    pub(crate) fn writes_lines_as(&self, other: &OutputEncoder) -> bool {
        let line_prefix = |output: &OutputEncoder| output.prefix_text.as_ref().map(PrefixText::form);
        let lines = |output: &OutputEncoder| matches!(output.form, Form::Lines(_));
        lines(self) && lines(other) && line_prefix(self) == line_prefix(other)
    }

    /// A line of this output without the text before it.
    pub(crate) fn without_lead<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        self.prefix_text.as_ref().map_or(line, |prefix_text| prefix_text.form().behind(line))
    }

    /// Packets whose lines this output parses.
    pub(crate) fn packets(&mut self, bytes: &[u8], packets: &[Span], now: Now, out: &mut Routed) {
        for packet in packets {
            let packet = packet.of(bytes);
            lines(packet).for_each(|line| self.line(line.of(packet), now, out));
        }
    }

    /// One line, which may fill the block: lines may unfold.
    pub(crate) fn line(&mut self, line: &[u8], now: Now, out: &mut Routed) {
        let Form::Samples(lines) = &mut self.form else { return };
        lines.line(line, &self.account, now, &mut self.open[0]);
        if self.open[0].bytes.len() >= BLOCK_BYTES {
            self.close_at(0, now, out);
        }
    }

    /// Most room that the lines of a read need in the queue, with those of the open block: (bytes, records).
    pub(crate) fn room_for(&self, batches: &Batches<'_>) -> (u64, u64) {
        match &self.form {
            Form::Samples(lines) => lines.room_for(batches, &self.open[0]),
            Form::Lines(_) | Form::Pickle(_) | Form::Puts(_) => {
                let (mut bytes, records) = room_verbatim(batches);
                if let Form::Puts(puts) = &self.form {
                    bytes += puts.more_bytes() * records;
                }
                if matches!(self.form, Form::Pickle(_)) {
                    // An escaped byte takes two, and each point has a few bytes around it.
                    bytes = 2 * bytes + 32 * records;
                }
                let of_block = |open: &OpenBlock| open.bytes.len() + open.points.len();
                let open_bytes: usize = self.open.iter().map(of_block).sum();
                let in_block = |open: &OpenBlock| u64::from(open.copies) + u64::from(open.count);
                let open_copies: u64 = self.open.iter().map(in_block).sum();
                // A batch may be spread over all of them.
                let blocks = self.open.len() as u64 * block_memory_bytes(0, 0);
                (bytes + block_memory_bytes(open_bytes as u64, 0) + blocks, records + open_copies)
            }
            Form::Events | Form::Requests(_) => {
                let (bytes, records) = room_for_events(batches);
                let open_bytes: usize = self.open.iter().map(|open| open.bytes.len()).sum();
                let open_copies: u64 = self.open.iter().map(|open| u64::from(open.copies)).sum();
                (bytes + block_memory_bytes(open_bytes as u64, 0), records + open_copies)
            }
            Form::LineDatagrams(_) | Form::Console { .. } | Form::PerlFile(_) | Form::Packets => {
                room_verbatim(batches)
            }
        }
    }

    /// True when it sends points on connections.
    pub(crate) fn has_connections(&self) -> bool {
        let facts = self.made_of.0.facts();
        matches!(facts.link, Link::Stream(_)) && facts.takes.contains(&RecordKind::Points)
    }

    /// The output's account.
    pub(crate) fn account(&self) -> &OutputAccount {
        &self.account
    }

    /// Forwards lines that have waited long enough for others. Returns the monotonic nanosecond at which the rest has.
    pub(crate) fn close_due(&mut self, now: Now, out: &mut Routed) -> Option<u64> {
        let Form::Samples(lines) = &mut self.form else { return None };
        lines.close_due(now, &mut self.open[0]);
        let due_ns = lines.due_ns();
        self.close(now, out);
        due_ns
    }

    /// One event.
    pub(crate) fn event(&mut self, event: EventRef<'_>, now: Now, out: &mut Routed) {
        let open = &mut self.open[0];
        if let Form::Requests(requests) = &mut self.form {
            requests.event(event, &self.account, open);
        } else {
            event_json_line(event, &mut open.bytes);
            open.copies += 1;
        }
        if self.open[0].bytes.len() >= BLOCK_BYTES {
            self.close_at(0, now, out);
        }
    }

    /// An event cannot be written: it has more tags or attributes than an event may have.
    pub(crate) fn lose_event(&self) {
        self.account.route(1, 0);
        self.account.settle(model::CopyOutcome::Dropped(Dropped::TooBig), 1, 0);
    }

    /// True when an encoder made for the output `id` of `plan` would do the same as this one.
    pub(crate) fn fits(&self, plan: &Plan, id: OutputId) -> bool {
        self.made_of == made_of(plan, id)
    }

    /// Ends an unfinished flush, for an encoder that another one replaces.
    pub(crate) fn finish(&mut self, now: Now, out: &mut Routed) {
        let open = &mut self.open[0];
        let documented = match &mut self.form {
            Form::Console { console, begun: true } => Some(console.finish(&mut open.bytes)),
            Form::PerlFile(file) => Some(file.finish(&mut open.bytes)),
            Form::Console { begun: false, .. }
            | Form::Lines(_)
            | Form::Pickle(_)
            | Form::Puts(_)
            | Form::LineDatagrams(_)
            | Form::Packets
            | Form::Samples(_)
            | Form::Events
            | Form::Requests(_) => None,
        };
        if let Some(documented) = documented {
            open.document(documented, &self.account);
        }
        self.close_lines(now, out);
    }

    /// Closes the open block, with the lines that wait for others.
    pub(crate) fn close_lines(&mut self, now: Now, out: &mut Routed) {
        if let Form::Samples(lines) = &mut self.form {
            lines.close(&mut self.open[0]);
        }
        self.close(now, out);
    }

    /// Closes the non-empty open blocks.
    pub(crate) fn close(&mut self, now: Now, out: &mut Routed) {
        for at in 0..self.open.len() {
            self.close_at(at, now, out);
        }
    }

    fn close_at(&mut self, at: usize, now: Now, out: &mut Routed) {
        let partition = (self.open.len() > 1).then_some(at as u8);
        let open = &mut self.open[at];
        open.close_pickle();
        if open.copies == 0 {
            open.bytes.clear();
            return;
        }
        let OpenBlock { bytes, copies, frames, .. } = std::mem::take(open);
        self.graphite.length += bytes.len() as u64;
        let encoding = match self.form {
            Form::Lines(_) | Form::Puts(_) | Form::Events | Form::Requests(_) => BlockEncoding::Lines,
            Form::Pickle(_)
            | Form::LineDatagrams(_)
            | Form::Console { .. }
            | Form::PerlFile(_)
            | Form::Packets
            | Form::Samples(_) => BlockEncoding::Frames(frames),
        };
        let block = Block { bytes: Arc::new(bytes), copies, encoding, at_ns: now.mono_ns, partition };
        out.blocks.push((self.id, block));
    }
}

/// Thresholds of the first aggregation that feeds the output, for a console's `pctThreshold`.
fn percentiles(plan: &Plan, id: OutputId) -> Vec<f64> {
    let fed_by = plan.outputs[id.index()].from.iter().find_map(|feed| match feed {
        Feed::Transform(transform) => Some(*transform),
        Feed::Source(_) => None,
    });
    let Some(transform) = fed_by else { return Vec::new() };
    let aggregate = plan.transforms[transform.index()].kind.as_aggregate();
    aggregate
        .iter()
        .flat_map(|aggregate| &aggregate.plan.percentiles)
        .map(|(threshold, _)| *threshold)
        .collect()
}
