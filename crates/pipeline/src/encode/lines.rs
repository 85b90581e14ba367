//! An output that parses packets: its lines are selected, changed and repacked (spec statsd §14 R4, R5).
//!
//! Path of a line: `Shard::push` -> `OutputEncoder::packets` -> **[`Lines::line`]**: stage -> rewrite -> packer -> a
//! frame of the open block. Aggregates come by [`Lines::aggregate`], as samples. Not here: the rules of the three steps
//! (`process::stage`, `wire::statsd::rewrite`), outputs of unchanged packets (`packets`).
//! Invariant: each line is written, or counted as filtered or dropped in the output's account. A copy is a line as it
//! is sent: one that is split is several.

use std::sync::atomic::Ordering::Relaxed;

use config::plan::{Framing, LinesPlan, PacketsPlan};
use model::{Batches, CopyOutcome, Dropped, Filtered, Flushed, Now, OutputAccount, PacketBatch, SECOND_NS};
use process::stage::{Admit, Stage};
use wire::statsd::rewrite::{AggregateEncoder, Gauges, LeftOut, Packer, Rewrite, parts};

use crate::encode::open_block::OpenBlock;
use crate::encode::room::block_memory_bytes;
use crate::packet_lines::lines;

/// Memory of one rewrite that is kept for the next one: more than most need.
const TEXT_KEPT_BYTES: usize = 256 << 10;

/// The framing of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrap {
    /// None: it is a datagram.
    Datagram,
    /// An LF after it.
    LineFeed,
    /// Its length before it.
    Length,
}

impl Wrap {
    /// Appends a packet of `lines` lines as a frame.
    fn frame(self, packet: &[u8], lines: u32, open: &mut OpenBlock) {
        if self == Wrap::Length {
            // Lines of a packet are limited by the size of a datagram or of a stream's line.
            let length = u32::try_from(packet.len()).expect("a packet is under 4 GiB");
            open.bytes.extend_from_slice(&length.to_le_bytes());
        }
        open.bytes.extend_from_slice(packet);
        if self == Wrap::LineFeed {
            open.bytes.push(b'\n');
        }
        open.end_frame(lines);
    }
}

/// State of one output of lines.
pub(crate) struct Lines {
    stage: Stage,
    rewrite: Rewrite,
    aggregates: AggregateEncoder,
    /// Nothing is selected or changed: lines need not be parsed, and bad ones pass.
    as_they_came: bool,
    /// None: each line is a packet.
    packer: Option<Packer>,
    wrap: Wrap,
    /// Lines of one rewrite.
    text: Vec<u8>,
    /// Packets that the packer has just closed.
    packed: PacketBatch,
    forget_due_ns: u64,
    growth: Growth,
}

/// How much longer the output's changes may make a line.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// By affixes, tags and the rate.
    line_bytes: u64,
    /// By the value of a tag that had none.
    tag_bytes: u64,
    /// A line may become one for each of its values, or two.
    splits: bool,
}

impl Growth {
    /// Bytes before the first of new tags.
    const TAGS_BYTES: usize = 2;

    /// Room for the longest rate.
    const RATE_BYTES: usize = 32;

    fn of(plan: &LinesPlan) -> Growth {
        let samples = plan.stage.sample < 1.0 || !plan.stage.sample_names.is_empty();
        let rate_bytes = if samples { Growth::RATE_BYTES } else { 0 };
        let plan = &plan.rewrite;
        let added = plan.tags_add.iter().map(|tag| tag.len() + 1);
        let renamed = plan.tags_rename.iter().map(|(_, new)| new.len());
        let bytes = plan.prefix.len() + plan.suffix.len() + added.chain(renamed).sum::<usize>();
        Growth {
            line_bytes: (bytes + rate_bytes + Growth::TAGS_BYTES) as u64,
            tag_bytes: plan.bare_tag_value.len() as u64 + 1,
            splits: plan.to.one_value_per_line || plan.to.gauges != Gauges::Keep,
        }
    }

    /// Most that the lines of a packet become: (bytes, lines).
    fn packet(&self, packet: &[u8]) -> (u64, u64) {
        let count = |wanted| memchr::memchr_iter(wanted, packet).count() as u64;
        let lines = count(b'\n') + 1;
        let tags = count(b',') + count(b';') + count(b'#');
        let once = packet.len() as u64 + lines * self.line_bytes + tags * self.tag_bytes;
        if !self.splits {
            return (once, lines);
        }
        // At least two for each line, which a negative gauge may become.
        let times = 2 * count(b':').max(1);
        (once.saturating_mul(times), lines.saturating_mul(times))
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("wrap", &self.wrap).finish_non_exhaustive()
    }
}

impl Lines {
    /// State for a checked plan. `seed` is the seed of the hashes of external names, and of random choices.
    pub(crate) fn new(packets: &PacketsPlan, plan: &LinesPlan, seed: u64) -> Lines {
        let delay_ns = plan.flush_delay_ms.saturating_mul(SECOND_NS / 1000);
        let rewrite = Rewrite::new(&plan.rewrite).expect("config has checked prefix, suffix and tags");
        let stage = &plan.stage;
        let wants_all = stage.allow.is_empty()
            && stage.deny.is_empty()
            && stage.sample_names.is_empty()
            && stage.sample >= 1.0
            && stage.series_max == 0;
        Lines {
            as_they_came: wants_all && rewrite.is_identity(),
            stage: Stage::new(stage.clone(), seed).expect("config has checked the shares"),
            rewrite,
            aggregates: AggregateEncoder::new(plan.aggregates.clone()).expect("config has checked the names"),
            packer: (plan.packet_bytes_max > 0).then(|| Packer::new(plan.packet_bytes_max, delay_ns)),
            wrap: match packets.framing {
                _ if packets.to.is_datagram() => Wrap::Datagram,
                Framing::Lines => Wrap::LineFeed,
                Framing::Frames => Wrap::Length,
            },
            text: Vec::new(),
            packed: PacketBatch::default(),
            forget_due_ns: 0,
            growth: Growth::of(plan),
        }
    }

    /// Room that the lines of a read need in the queue, with those that are not appended yet: (bytes, records). As they
    /// may all end up in one block, it is that of one block.
    pub(crate) fn room_for(&self, batches: &Batches<'_>, open: &OpenBlock) -> (u64, u64) {
        let held = self.packer.as_ref().map_or((0, 0), |packer| (packer.bytes_held(), packer.lines_held()));
        let (mut bytes, mut lines) =
            (held.0 as u64 + open.bytes.len() as u64, held.1 + u64::from(open.copies()));
        let packets = batches.packets();
        let of_one = packets.iter().flat_map(|all| all.packets.iter().map(|packet| packet.of(&all.bytes)));
        for packet in of_one {
            let (more_bytes, more_lines) = match self.as_they_came {
                true => (packet.len() as u64, memchr::memchr_iter(b'\n', packet).count() as u64 + 1),
                false => self.growth.packet(packet),
            };
            // An LF between lines, if they are packed.
            bytes = bytes.saturating_add(more_bytes).saturating_add(more_lines);
            lines = lines.saturating_add(more_lines);
        }
        // Two consecutive packets would not have fitted into one; the first and the last may be short.
        let packets = self.packer.as_ref().map(|packer| 2 * bytes / packer.packet_bytes_max() as u64 + 3);
        let packets = packets.map_or(lines, |packets| packets.min(lines));
        // Each has its length, or an LF.
        (block_memory_bytes(bytes.saturating_add(packets * size_of::<u32>() as u64), packets), lines)
    }

    /// Processes one line, without its LF.
    pub(crate) fn line(&mut self, line: &[u8], account: &OutputAccount, now: Now, open: &mut OpenBlock) {
        self.text.clear();
        if self.as_they_came {
            self.text.extend_from_slice(line);
        } else if let Err(lost) = self.changed(line, account) {
            return account.pass(lost, 1, line.len() as u64);
        }
        self.pack(now, open);
    }

    /// The line in this output's form, in `text`; or why it is not sent.
    ///
    /// A line of several values may become several lines; values that are not sent are counted one by one.
    fn changed(&mut self, line: &[u8], account: &OutputAccount) -> Result<(), CopyOutcome> {
        let Ok(parts) = parts(line) else { return Err(CopyOutcome::Filtered(Filtered::BadLine)) };
        let tags = [parts.name_tags(), parts.tags()];
        let factor = match self.stage.admit(parts.name(), &tags, parts.is_sampled_type()) {
            Admit::Pass => None,
            Admit::PassSampled { share } => Some(share),
            Admit::Filtered => return Err(CopyOutcome::Filtered(Filtered::ByName)),
            Admit::SampledOut => return Err(CopyOutcome::Filtered(Filtered::SampledOut)),
            Admit::SeriesMax => return Err(CopyOutcome::Dropped(Dropped::SeriesMax)),
        };
        let written = self.rewrite.write(&parts, factor, &mut self.text);
        if written.tags_left_out > 0 && written.lines > 0 {
            account.tags_left_out.fetch_add(u64::from(written.tags_left_out), Relaxed);
        }
        let values = [
            (CopyOutcome::Filtered(Filtered::Unwanted), written.values_left_out),
            (CopyOutcome::Dropped(Dropped::TooBig), written.values_dropped),
        ];
        for (lost, count) in values.into_iter().filter(|(_, count)| *count > 0 && written.lines > 0) {
            account.pass(lost, u64::from(count), 0);
        }
        if written.lines == 0 { Err(CopyOutcome::Filtered(Filtered::Unwanted)) } else { Ok(()) }
    }

    /// Processes one series of a flush.
    pub(crate) fn aggregate(
        &mut self,
        flushed: &Flushed<'_>,
        account: &OutputAccount,
        now: Now,
        open: &mut OpenBlock,
    ) {
        self.text.clear();
        let encoded = self.aggregates.encode(flushed, &mut self.text);
        if encoded.tags_left_out > 0 {
            account.tags_left_out.fetch_add(u64::from(encoded.tags_left_out), Relaxed);
        }
        if encoded.dropped > 0 {
            account.pass(CopyOutcome::Dropped(Dropped::TooBig), encoded.dropped, 0);
        }
        match encoded.left_out {
            Some((LeftOut::Estimated, samples)) => {
                account.pass(CopyOutcome::Filtered(Filtered::Unwanted), samples, 0);
            }
            Some((LeftOut::NonFinite, samples)) => {
                account.pass(CopyOutcome::Dropped(Dropped::NonFinitePoint), samples, 0);
            }
            Some((LeftOut::Idle, _)) | None => {}
        }
        self.pack(now, open);
    }

    /// Moves `text` to frames, or to the packer.
    fn pack(&mut self, now: Now, open: &mut OpenBlock) {
        match &mut self.packer {
            Some(packer) => {
                packer.push(&self.text, now.mono_ns, &mut self.packed);
                self.frame(open);
            }
            None => lines(&self.text).for_each(|line| self.wrap.frame(line.of(&self.text), 1, open)),
        }
        self.text.clear();
        self.text.shrink_to(TEXT_KEPT_BYTES);
    }

    /// Turns closed packets into frames.
    fn frame(&mut self, open: &mut OpenBlock) {
        for packet in self.packed.iter() {
            let lines = memchr::memchr_iter(b'\n', packet).count() + 1;
            self.wrap.frame(packet, u32::try_from(lines).expect("a packet is under 4 GiB"), open);
        }
        self.packed.clear();
        self.packed.bytes.shrink_to(TEXT_KEPT_BYTES);
    }

    /// When a line has waited long enough for others; none when none waits.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.packer.as_ref().and_then(Packer::due_ns)
    }

    /// Closes the packet that is due at `now`, and forgets series that are idle.
    pub(crate) fn close_due(&mut self, now: Now, open: &mut OpenBlock) {
        if now.mono_ns >= self.forget_due_ns {
            self.forget_due_ns = now.mono_ns + SECOND_NS;
            self.stage.forget(now.mono_ns);
        }
        if let Some(packer) = &mut self.packer {
            packer.close_due(now.mono_ns, &mut self.packed);
            self.frame(open);
        }
    }

    /// Closes the open packet: nothing more comes.
    pub(crate) fn close(&mut self, open: &mut OpenBlock) {
        if let Some(packer) = &mut self.packer {
            packer.close(&mut self.packed);
            self.frame(open);
        }
    }
}
