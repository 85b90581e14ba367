//! The lines for a relay, made in advance, and the endpoint that each belongs to.

use std::io::{self, Write};

use process::sharding::{Cluster, Sharding};

/// Endpoints behind the relay, by their instances in the hash ring; as in `bench/relay.conf`.
pub(super) const ENDPOINTS: usize = 3;
const LABELS: [&str; ENDPOINTS] = ["127.0.0.1:22003=a", "127.0.0.1:22004=b", "127.0.0.1:22005=c"];

/// Fewest lines of a ring: enough for different values and for several writes.
const RING_LINES_MIN: u64 = 50_000;

/// Bytes of one write, as large as the buffers of most busy clients.
const WRITE_BYTES: usize = 128 * 1024;

/// Lines and bytes: sent, or arrived at one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Whole lines.
    pub lines: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    /// What was added since `before`.
    pub(super) fn since(self, before: Tally) -> Tally {
        Tally { lines: self.lines - before.lines, bytes: self.bytes - before.bytes }
    }
}

/// Lines to be sent in a cycle. Each name occurs once before the first is repeated.
#[derive(Debug)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// The end of each line, after its line feed, and its endpoint.
    lines: Vec<(u32, u8)>,
}

impl Lines {
    /// Lines of `names` names. Equal numbers give equal bytes.
    pub(super) fn new(names: u64) -> Lines {
        let cluster = Cluster::new(&Sharding::CarbonCh, &LABELS).expect("three endpoints with instances");
        let wanted = names * RING_LINES_MIN.div_ceil(names);
        let mut ring = Lines { bytes: Vec::with_capacity(wanted as usize * 52), lines: Vec::new() };
        for at in 0..wanted {
            // Multiplied by a large prime, so that lines sent one after another have unrelated names.
            let name = at.wrapping_mul(2_654_435_761) % names;
            let start = ring.bytes.len();
            write!(ring.bytes, "servers.dc{}.host{}.cpu.{name}.user", name % 3, name % 997)
                .expect("writing to memory cannot fail");
            let owner = cluster.owner(&ring.bytes[start..]).expect("all endpoints are live");
            writeln!(ring.bytes, " {}.5 1700000000", at % 100).expect("writing to memory cannot fail");
            let end = u32::try_from(ring.bytes.len()).expect("NAMES_MAX lines are fewer bytes");
            ring.lines.push((end, owner as u8));
        }
        ring
    }

    /// Sends `count` lines from the beginning of the ring, as fast as they are accepted.
    ///
    /// # Errors
    /// When the connection ends.
    pub(super) fn send(&self, count: u64, to: &mut impl Write) -> io::Result<()> {
        let (rounds, rest) = self.rounds(count);
        for _round in 0..rounds {
            self.bytes.chunks(WRITE_BYTES).try_for_each(|part| to.write_all(part))?;
        }
        let end = rest.checked_sub(1).map_or(0, |last| self.lines[last].0 as usize);
        self.bytes[..end].chunks(WRITE_BYTES).try_for_each(|part| to.write_all(part))
    }

    /// The lines of the first `count` that belong to each endpoint.
    pub(super) fn shares(&self, count: u64) -> [Tally; ENDPOINTS] {
        let (rounds, rest) = self.rounds(count);
        let mut shares = [Tally::default(); ENDPOINTS];
        let mut start = 0;
        for (at, (end, owner)) in self.lines.iter().enumerate() {
            let times = rounds + u64::from(at < rest);
            let share = &mut shares[usize::from(*owner)];
            share.lines += times;
            share.bytes += times * u64::from(end - start);
            start = *end;
        }
        shares
    }

    /// Mean length of a line in bytes.
    pub(super) fn mean_bytes(&self) -> f64 {
        self.bytes.len() as f64 / self.lines.len() as f64
    }

    /// Whole cycles of the ring, and the lines of the unfinished one.
    fn rounds(&self, count: u64) -> (u64, usize) {
        let ring = self.lines.len() as u64;
        (count / ring, (count % ring) as usize)
    }
}

/// Lines that are lost, duplicated or at another endpoint. A line with changed bytes counts as one.
pub(super) fn astray(shares: &[Tally; ENDPOINTS], arrived: &[Tally; ENDPOINTS]) -> u64 {
    let off = |(share, came): (&Tally, &Tally)| {
        let bytes_differ = u64::from(share.bytes != came.bytes);
        share.lines.abs_diff(came.lines).max(bytes_differ)
    };
    shares.iter().zip(arrived).map(off).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_are_sent_equally_often_and_the_shares_match_the_sent_lines() {
        for (names, count) in [(10_000, 120_000), (7, 3), (7, 50_008), (60_000, 60_000)] {
            let ring = Lines::new(names);
            let mut sent = Vec::new();
            ring.send(count, &mut sent).unwrap();
            let lines: Vec<&[u8]> = sent.split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(lines.len() as u64, count);
            let mut times: BTreeMap<&[u8], u64> = BTreeMap::new();
            for line in &lines {
                *times.entry(line.split(|byte| *byte == b' ').next().unwrap()).or_default() += 1;
            }
            assert_eq!(times.len() as u64, names.min(count));
            let least = times.values().min().unwrap();
            assert!(times.values().all(|times| times - least <= 1), "{names} names, {count} lines");
            let shares = ring.shares(count);
            assert_eq!(shares.iter().map(|share| share.lines).sum::<u64>(), count);
            assert_eq!(shares.iter().map(|share| share.bytes).sum::<u64>(), sent.len() as u64);
        }
        let mean = Lines::new(10_000).mean_bytes();
        assert!((47.0..50.0).contains(&mean), "{mean}");
    }

    #[test]
    fn lost_and_misdirected_lines_are_counted() {
        let tally = |lines, bytes| Tally { lines, bytes };
        let shares = [tally(10, 480), tally(20, 970), tally(0, 0)];
        for (arrived, want) in [
            ([tally(10, 480), tally(20, 970), tally(0, 0)], 0),
            ([tally(9, 432), tally(20, 970), tally(0, 0)], 1),
            ([tally(11, 528), tally(19, 922), tally(0, 0)], 2),
            ([tally(10, 480), tally(20, 970), tally(5, 240)], 5),
            ([tally(10, 481), tally(20, 970), tally(0, 0)], 1),
        ] {
            assert_eq!(astray(&shares, &arrived), want, "{arrived:?}");
        }
    }
}
