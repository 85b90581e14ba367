//! Saves and restores the state of aggregation rules, for hot restarts.
//!
//! Each aggregation rule has a key
//! ([`RelayPlan::aggregation_rule_keys`](crate::relay::RelayPlan::aggregation_rule_keys)). Its results continue
//! under the rule with the same key in the new process. The latest time of the old process is saved too, so that no
//! window is emitted twice.
//! Saved bytes are untrusted input. Whatever they are, reading ends, keeps to the limits, and uses memory in
//! proportion to the number of bytes.
//! Invariant: everything is restored, or nothing; the same input gives the same results as without a restart.
//!
//! # Format
//!
//! Magic `STNROL\r
//! ` (8), version 1 (4), a random number (8), then varints: the latest second, the number of keys, each key with
//! its length, and the number of series. A series: index of its key, index of its compute, length of its name,
//! name, first open window, number of windows. A window: its number, count of values, two numbers (8 each), then
//! the number of kept values and the values (8 each). At the end XXH3-64 of everything before (8), with the random
//! number as seed, so that bytes sent by a client are never mistaken for a saved state. Numbers of fixed length are
//! little-endian.

use twox_hash::XxHash3_64;

use super::series::Series;
use super::window::Window;
use super::windows::Windows;
use super::{AggregationRules, Feed};
use crate::bytes::{Bytes, put_varint};

const MAGIC: [u8; 8] = *b"STNROL\r\n";
const VERSION: u32 = 1;

/// Magic, version, random number.
const HEADER_BYTES: usize = 20;
const CHECKSUM_BYTES: usize = 8;

/// Maximum second of a window: some 35,000 years from now.
const SECOND_MAX: u64 = 1 << 40;

/// Why nothing was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// The bytes do not begin as a saved state does.
    NotSavedState,
    /// The format version is unknown.
    Version,
    /// The content is damaged.
    Damaged,
}

impl NotRestored {
    /// The reason as text for logs.
    pub fn why(self) -> &'static str {
        match self {
            NotRestored::NotSavedState => "it does not begin as saved aggregation rules do",
            NotRestored::Version => "it was written in a format that this version does not know",
            NotRestored::Damaged => "it is damaged",
        }
    }
}

/// Result of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Series restored.
    pub series: u64,
    /// Values that were dropped, because their aggregation rule no longer exists or a limit was reached.
    pub values_left: u64,
}

/// For each key of `before` the index of the same key in `now`. Equal keys are matched in order: the first with the
/// first, the second with the second.
pub fn matched(before: &[Vec<u8>], now: &[Vec<u8>]) -> Vec<Option<u16>> {
    let mut taken = vec![false; now.len()];
    let place = |key: &Vec<u8>| {
        let at = (0..now.len()).find(|at| !taken[*at] && now[*at] == *key)?;
        taken[at] = true;
        Some(at as u16)
    };
    before.iter().map(place).collect()
}

impl AggregationRules {
    /// Saves the whole state for [`AggregationRules::restore`]. `keys` are those of the aggregation rules, `id` a
    /// number unknown to outsiders.
    pub fn save(&self, keys: &[Vec<u8>], id: u64) -> Vec<u8> {
        assert_eq!(keys.len(), self.plans.len(), "each aggregation rule has a key");
        let mut to = MAGIC.to_vec();
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&id.to_le_bytes());
        debug_assert_eq!(to.len(), HEADER_BYTES);
        put_varint(self.clock.now_s, &mut to);
        put_varint(keys.len() as u64, &mut to);
        keys.iter().for_each(|key| put_text(key, &mut to));
        put_varint(self.index.len() as u64, &mut to);
        for series in self.series.iter().flatten() {
            put_varint(u64::from(series.aggregation_rule), &mut to);
            put_varint(u64::from(series.compute), &mut to);
            put_text(&series.name, &mut to);
            put_varint(series.open, &mut to);
            put_varint(series.windows.len() as u64, &mut to);
            for (number, window) in series.windows.iter() {
                put_varint(number, &mut to);
                window.save(&mut to);
            }
        }
        let checksum = XxHash3_64::oneshot_with_seed(id, &to);
        to.extend_from_slice(&checksum.to_le_bytes());
        to
    }

    /// Restores a saved state into new aggregation rules, whose keys are `keys`.
    ///
    /// # Errors
    /// Why nothing was restored.
    pub fn restore(&mut self, keys: &[Vec<u8>], bytes: &[u8]) -> Result<Restored, NotRestored> {
        assert_eq!(keys.len(), self.plans.len(), "each aggregation rule has a key");
        assert!(self.index.is_empty(), "nothing has been fed yet");
        if bytes.first_chunk() != Some(&MAGIC) {
            return Err(NotRestored::NotSavedState);
        }
        let (mut version, now_s) = (Bytes::new(&bytes[MAGIC.len()..]), self.clock.now_s);
        if version.u32().is_some_and(|version| version != VERSION) {
            return Err(NotRestored::Version);
        }
        let restored = body(bytes).and_then(|mut from| self.read(keys, &mut from));
        restored.ok_or_else(|| {
            self.clear();
            self.clock.now_s = now_s;
            NotRestored::Damaged
        })
    }

    fn read(&mut self, keys: &[Vec<u8>], from: &mut Bytes<'_>) -> Option<Restored> {
        self.clock.now_s = self.clock.now_s.max(from.varint().filter(|second| *second <= SECOND_MAX)?);
        let mut before = Vec::new();
        for _key in 0..from.len_of(1)? {
            before.push(text(from)?.to_vec());
        }
        let to = matched(&before, keys);
        let mut restored = Restored::default();
        for _series in 0..from.len_of(1)? {
            let aggregation_rule = to.get(usize::try_from(from.varint()?).ok()?)?;
            let compute = u16::try_from(from.varint()?).ok()?;
            let name = text(from)?;
            let open = from.varint()?;
            let mut windows: Vec<(u64, Window)> = Vec::new();
            for _window in 0..from.len_of(1)? {
                let number = from.varint()?;
                let last = windows.last().map_or(open.checked_sub(1), |(number, _)| Some(*number));
                if last.is_some_and(|last| number <= last) {
                    return None;
                }
                windows.push((number, Window::read(from)?));
            }
            let Some(aggregation_rule) = *aggregation_rule else {
                restored.values_left += windows.iter().map(|(_, window)| window.count).sum::<u64>();
                continue;
            };
            self.restore_series((aggregation_rule, compute, name), open, windows, &mut restored)?;
        }
        from.is_empty().then_some(restored)
    }

    /// A series from a saved state; None when it is invalid.
    fn restore_series(
        &mut self,
        (aggregation_rule, compute, name): (u16, u16, &[u8]),
        open: u64,
        windows: Vec<(u64, Window)>,
        restored: &mut Restored,
    ) -> Option<()> {
        let plan = &self.plans[usize::from(aggregation_rule)];
        let of = plan.computes.get(usize::from(compute))?.compute;
        let last = windows.last().map_or(open, |(number, _)| *number);
        if last > SECOND_MAX / u64::from(plan.every_s) || !windows.iter().all(|(_, window)| window.is_of(of))
        {
            return None;
        }
        let feed = Feed { aggregation_rule, compute, name, value: 0.0, timestamp: 0 };
        let hash = self.hash(aggregation_rule, compute, name);
        if self.find(hash, &feed).is_some() {
            return None;
        }
        let splay_s = self.splay_s(aggregation_rule, name);
        let windows = Windows::of(windows);
        let series = Series { hash, name: name.into(), aggregation_rule, compute, splay_s, open, windows };
        let more = self.bytes_of_one_more(name) + series.windows_bytes();
        if self.index.len() >= self.limits.series_max as usize || !self.has_room(more) {
            restored.values_left += series.values();
            return Some(());
        }
        self.put(series);
        restored.series += 1;
        Some(())
    }
}

/// The bytes between header and checksum, when the checksum is right.
fn body(bytes: &[u8]) -> Option<Bytes<'_>> {
    let (before, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    let id = Bytes::new(before.get(HEADER_BYTES - 8..HEADER_BYTES)?).u64()?;
    let right = Bytes::new(checksum).u64()? == XxHash3_64::oneshot_with_seed(id, before);
    right.then(|| Bytes::new(&before[HEADER_BYTES..]))
}

fn put_text(text: &[u8], to: &mut Vec<u8>) {
    put_varint(text.len() as u64, to);
    to.extend_from_slice(text);
}

fn text<'a>(from: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = from.len_of(1)?;
    from.take(len)
}
