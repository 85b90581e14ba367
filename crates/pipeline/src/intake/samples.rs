//! Turns parsed samples into batches, and settles refused ones.
//!
//! Path of a packet: `Intake` frames it -> `wire::statsd::Parser` -> **[`batches`]** -> `Shard::push`.
//! Not here: framing (`intake`), points (`points`).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{Batches, Now, Receipt, Records, Samples, SourceAccount, SourceId, Span, Tally};
use wire::statsd::Parsed;

use crate::intake::rejects::settle_rejects;

/// What raw routes take, and the number of packets or reads that it came in.
#[derive(Clone, Copy)]
pub(crate) struct Packets<'a> {
    pub(crate) raw: &'a [Span],
    pub(crate) count: usize,
}

/// Which routes use a source.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// Some route takes samples or events.
    pub(crate) parsed: bool,
    /// Raw routes take packets.
    pub(crate) raw: bool,
}

impl<'a> Packets<'a> {
    pub(crate) fn each(packets: &'a [Span]) -> Packets<'a> {
        Packets { raw: packets, count: packets.len() }
    }
}

/// Settles refused samples, and makes batches of the rest.
pub(crate) fn batches<'a>(
    source: SourceId,
    account: &Arc<SourceAccount>,
    wanted: Wanted,
    now: Now,
    bytes: &'a [u8],
    packets: Packets<'a>,
    parsed: &'a Parsed,
) -> Batches<'a> {
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
    if !wanted.parsed {
        // Packets that are only copied: nothing was parsed.
        let mut batches = Batches::new(source);
        if !raw.is_empty() {
            let packets = model::Packets { bytes: Cow::Borrowed(bytes), packets: Cow::Borrowed(raw) };
            batches.push(Records::Packets(packets), Some(Receipt::receive(account, raw.len() as u64)));
        }
        return batches;
    }
    let mut batches = Batches::new(source);
    let receive = |records: usize| (records > 0).then(|| Receipt::receive(account, records as u64));
    if !raw.is_empty() && wanted.raw {
        let packets = model::Packets { bytes: Cow::Borrowed(bytes), packets: Cow::Borrowed(raw) };
        // The receipts of samples and events cover the records in them.
        batches.push(Records::Packets(packets), None);
    }
    let tally = Tally { packets: count as u64, lines: parsed.lines, bad };
    if tally != Tally::default() || !parsed.samples.is_empty() {
        let samples = Samples {
            bytes: Cow::Borrowed(bytes),
            samples: Cow::Borrowed(&parsed.samples),
            extras: Cow::Borrowed(&parsed.extras),
            names: Cow::Borrowed(&parsed.names),
            tally,
        };
        batches.push(Records::Samples(samples), receive(parsed.samples.len()));
    }
    if !parsed.events.is_empty() {
        batches.push(Records::Events(parsed.events.batch()), receive(parsed.events.len()));
    }
    batches
}
