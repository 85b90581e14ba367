//! Restores a saved state, block by block. A block with a wrong checksum is skipped.

use model::{Canonical, FlushInfo, Kind, Now, RawKey};

use super::format::{BlockHeader, BlockKind, Header, MARK_ACTIVE, NotRestored};
use crate::aggregate::Aggregator;
use crate::aggregate::clock::Reopening;
use crate::aggregate::counters::Counter;
use crate::aggregate::entry::{self, ACTIVE, BEATS_PER_SECOND, KEPT, SELF_METRIC};
use crate::aggregate::gauges::Gauge;
use crate::aggregate::keys::Known;
use crate::aggregate::plan::SeriesExpiry;
use crate::aggregate::sets::Set;
use crate::aggregate::table::Stored;
use crate::aggregate::timers::Timer;
use crate::bytes::Bytes;

/// The last complete flush before the restore, as far as the caller knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastFlush {
    /// Label of its window.
    pub label_s: Option<u64>,
    /// All saves up to this number belong to that window or an earlier one. If unknown, labels are compared.
    pub number: Option<u64>,
}

/// What restoring did with the window that was open when the state was saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// Its values are in the window that is open now.
    Continued,
    /// It ended while no instance ran, and had a sample: it has just been closed under its own label, and the next
    /// ticks emit it.
    Closed(FlushInfo),
    /// It was emitted before, so its values were left out; or it had no sample.
    LeftOut,
}

/// Result of a restore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Restored {
    /// Series restored.
    pub series: u64,
    /// Restored series that had a sample in the open window.
    pub active: u64,
    /// Series beyond `series_max`: left out.
    pub dropped_series_max: u64,
    /// Damaged series: left out. If `cut_short` is true, the number is a minimum.
    pub damaged: u64,
    /// The end block is missing.
    pub cut_short: bool,
    /// What happened to the window.
    pub window: Window,
    /// When saving began, Unix nanoseconds.
    pub begun_wall_ns: u64,
    /// Label of the last emitted window, as far as is known.
    pub last_flush_s: Option<u64>,
}

/// State of a restore in progress.
struct Restoring {
    /// Beats since saving began.
    away: u64,
    /// True when the values of the window are left out.
    is_emitted: bool,
    restored: Restored,
}

impl Aggregator {
    /// Restores a saved state, before the first sample. Series that exist already get the saved values.
    ///
    /// `canonical` is that of [`Aggregator::add`]. A series whose name the current dialect would canonicalize
    /// differently is kept as it is; as after a reload, no sample reaches it any more.
    ///
    /// # Errors
    /// When the bytes are not a valid saved state. Nothing has changed then.
    pub fn restore(
        &mut self,
        bytes: &[u8],
        last: LastFlush,
        now: Now,
        mut canonical: impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> Result<Restored, NotRestored> {
        debug_assert!(self.closing.is_none(), "before the first window's end");
        let header = Header::decode(bytes)?;
        self.beat = entry::beat(now);
        let is_emitted = last.number.map(|number| header.number <= number);
        let reopening = self.clock.reopening(&header.window, is_emitted, last.label_s, now);
        let away_ns = now.wall_ns.saturating_sub(header.begun_wall_ns);
        let mut restoring = Restoring {
            away: away_ns / (model::SECOND_NS / BEATS_PER_SECOND),
            is_emitted: reopening == Reopening::Emitted,
            restored: Restored {
                series: 0,
                active: 0,
                dropped_series_max: 0,
                damaged: 0,
                cut_short: true,
                window: Window::LeftOut,
                begun_wall_ns: header.begun_wall_ns,
                last_flush_s: None,
            },
        };
        self.restore_blocks(Header::blocks(bytes), header.id, &mut restoring, &mut canonical);
        let mut restored = restoring.restored;
        restored.window = match reopening {
            Reopening::Continue => {
                self.clock.continue_window(&header.window, now);
                Window::Continued
            }
            Reopening::Overdue if restored.active > 0 => {
                let info = self.clock.close_overdue(&header.window, now);
                self.begin_sweep(info, now);
                Window::Closed(info)
            }
            Reopening::Unusable => Window::Continued,
            Reopening::Overdue | Reopening::Emitted => Window::LeftOut,
        };
        if !matches!(restored.window, Window::Closed(_)) && reopening != Reopening::Continue {
            // Of the two labels, the one used last. If unknown, the later one.
            let mut known_s = match is_emitted {
                Some(true) => [None, last.label_s],
                Some(false) => [None, header.window.labelled_s],
                None => [last.label_s, header.window.labelled_s],
            };
            known_s.sort_unstable();
            if self.clock.was_set_back_since(header.window.opened_wall_ns, now) {
                known_s.iter().flatten().take(1).for_each(|_| self.clock.drop_label());
            } else {
                known_s.into_iter().flatten().for_each(|label_s| self.clock.resume(label_s, now));
            }
        }
        restored.last_flush_s = self.clock.labelled_s();
        self.changed = true;
        Ok(restored)
    }

    fn restore_blocks(
        &mut self,
        mut bytes: &[u8],
        id: u64,
        restoring: &mut Restoring,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) {
        let (mut seen, mut damaged) = (0u64, 0u64);
        while let Some((header, behind)) = BlockHeader::find(bytes, id) {
            let body = behind.get(..header.body_bytes).filter(|body| header.is_of(body, id));
            // After a damaged body the search for the next block starts at that body: its length may be wrong.
            bytes = if body.is_some() { &behind[header.body_bytes..] } else { behind };
            match (header.kind, body) {
                (BlockKind::Series, body) => {
                    let mut from = Bytes::new(body.unwrap_or(&[]));
                    let read = (0..header.count)
                        .take_while(|_| self.restore_series(&mut from, restoring, canonical).is_some())
                        .count();
                    seen += read as u64;
                    damaged += u64::from(header.count) - read as u64;
                }
                (BlockKind::BusyNames, Some(body)) => self.busy.restore(Bytes::new(body), header.count),
                (BlockKind::End, Some(body)) => {
                    if let Some(total) = Bytes::new(body).u64() {
                        restoring.restored.cut_short = false;
                        damaged = total.saturating_sub(seen);
                        break;
                    }
                }
                (BlockKind::BusyNames | BlockKind::End, None) => {}
            }
        }
        restoring.restored.damaged = damaged;
    }

    /// Reads one record. None when it is invalid.
    fn restore_series(
        &mut self,
        from: &mut Bytes<'_>,
        restoring: &mut Restoring,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> Option<()> {
        let mark = from.u8()?;
        let age = from.varint()?;
        let (name_len, tags_len) = (from.len_of(1)?, from.len_of(1)?);
        let key = RawKey { name: from.take(name_len)?, tags: from.take(tags_len)? };
        let record = Record { key, active: mark & MARK_ACTIVE != 0, age };
        const COUNTER: u8 = Kind::Counter as u8;
        const GAUGE: u8 = Kind::Gauge as u8;
        const TIMER: u8 = Kind::Timer as u8;
        const SET: u8 = Kind::Set as u8;
        match mark & !MARK_ACTIVE {
            COUNTER => self.restore_state::<Counter>(record, from, restoring, canonical),
            GAUGE => self.restore_state::<Gauge>(record, from, restoring, canonical),
            TIMER => self.restore_state::<Timer>(record, from, restoring, canonical),
            SET => self.restore_state::<Set>(record, from, restoring, canonical),
            _ => None,
        }
    }

    fn restore_state<S: Stored>(
        &mut self,
        record: Record<'_>,
        from: &mut Bytes<'_>,
        restoring: &mut Restoring,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> Option<()> {
        let Some(id) = self.restored_id::<S>(record.key, canonical) else {
            restoring.restored.dropped_series_max += 1;
            // The state is read in any case: the next record begins after it.
            let (mut state, before) = (S::default(), self.context.tally);
            state.load(from, 0, &mut self.context)?;
            self.context.tally = before;
            return Some(());
        };
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        entry.state.reset(&mut self.context.tally);
        if entry.state.load(from, entry.hash, &mut self.context).is_none() {
            self.remove::<S>(id);
            return None;
        }
        entry.unset(ACTIVE);
        if record.active && !restoring.is_emitted {
            entry.set(ACTIVE);
        }
        let age = record.age.saturating_add(restoring.away).min(i32::MAX as u64);
        entry.seen = self.beat.wrapping_sub(age as u32);
        if restoring.is_emitted {
            // The state as its flush would have left it.
            entry.state.clear(&mut self.context.tally);
            let exempt = entry.has(KEPT) || (S::KIND == Kind::Gauge && entry.has(SELF_METRIC));
            if let SeriesExpiry::Delete { ttl_windows } = S::idle(&self.plan.idle)
                && !exempt
                && !entry.state.outlives(ttl_windows.max(1), record.active)
            {
                self.remove::<S>(id);
                return Some(());
            }
        }
        restoring.restored.series += 1;
        restoring.restored.active += u64::from(record.active);
        Some(())
    }

    /// The series of a saved key; creates it if needed. None when the series limit is reached.
    fn restored_id<S: Stored>(
        &mut self,
        key: RawKey<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> Option<u32> {
        let mut buffer = std::mem::take(&mut self.canonical);
        buffer.clear();
        let form = canonical(S::KIND, key, &mut buffer);
        let (name, tags) = buffer.split_at(form.name_len.min(buffer.len()));
        let is_canonical = RawKey { name, tags } == key;
        self.canonical = buffer;
        if !is_canonical {
            return self.has_room().then(|| self.create_entry::<S>(key, false))?;
        }
        match self.keys.find::<S>(&self.tables, form.hash, key) {
            Known::Series(id) => Some(id),
            _ => self
                .adopt::<S>(form.hash, key)
                .or_else(|| self.create_indexed::<S>(form.hash, key, form.clean)),
        }
    }
}

/// A saved series without its state.
#[derive(Clone, Copy)]
struct Record<'a> {
    key: RawKey<'a>,
    active: bool,
    /// Beats between its last sample and the save.
    age: u64,
}
