//! What an intake makes of parsed samples: a batch, with what was refused settled.
//!
//! Path of a packet: `Intake` frames it -> `wire::statsd::Parser` -> **[`batch`]** -> `Shard::push`.
//! Not here: framing (`intake`), points (`points`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{Now, Peer, Receipt, SampleView, SourceAccount, SourceId, Span, Tally};
use wire::statsd::Parsed;

use crate::Batch;
use crate::points::settle_rejects;

/// What raw routes take, and how many packets or reads it came in.
#[derive(Clone, Copy)]
pub(crate) struct Packets<'a> {
    pub(crate) raw: &'a [Span],
    pub(crate) count: usize,
}

impl<'a> Packets<'a> {
    pub(crate) fn each(packets: &'a [Span]) -> Packets<'a> {
        Packets { raw: packets, count: packets.len() }
    }
}

/// Settles what was refused, and makes a batch of the rest.
pub(crate) fn batch<'a>(
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
