//! The packets of the generator, made in advance.

use std::fmt::Write;

use model::PacketBatch;

/// Most packets in a ring, unless each name needs one.
const RING_MAX: u64 = 4096;

/// Longest packet: some systems do not send longer ones in one piece.
const PACKET_BYTES_MAX: usize = 8192;

/// Types of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SampleType {
    /// Counters, each with value 1.
    C,
    /// Gauges.
    G,
    /// Timers.
    Ms,
    /// Sets.
    S,
    /// The four in turn.
    Mix,
}

/// The contents of the packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixture {
    /// Distinct names.
    pub names: u64,
    /// Samples in one packet.
    pub pack: u64,
    /// Their type.
    pub kind: SampleType,
    /// Names of exactly [`NAME_BYTES`] bytes; each occurs once before the first is repeated.
    pub every_name: bool,
}

/// Length of the names of a mixture with `every_name`.
pub(crate) const NAME_BYTES: usize = 40;

/// Packets to be sent in a cycle.
#[derive(Debug)]
pub(crate) struct Ring {
    /// The packets.
    pub packets: PacketBatch,
    /// Samples in each packet.
    pub pack: u64,
}

impl Ring {
    /// Makes the ring. Equal mixtures give equal bytes.
    pub(crate) fn new(mixture: Mixture) -> Ring {
        let wanted = if mixture.every_name { mixture.names.div_ceil(mixture.pack) } else { RING_MAX };
        let mut packets = PacketBatch::default();
        let mut packet = String::with_capacity(PACKET_BYTES_MAX);
        let mut at = 0;
        for _ in 0..wanted {
            packet.clear();
            for _ in 0..mixture.pack {
                if !packet.is_empty() {
                    packet.push('\n');
                }
                sample(&mixture, at, &mut packet);
                at += 1;
            }
            packets.push(packet.as_bytes());
        }
        Ring { packets, pack: mixture.pack }
    }

    /// Most samples of the longest text that fit into one packet.
    pub(crate) fn pack_max() -> u64 {
        const SAMPLE_BYTES_MAX: usize = 64;
        (PACKET_BYTES_MAX / SAMPLE_BYTES_MAX) as u64
    }
}

/// Appends sample number `at`.
fn sample(mixture: &Mixture, at: u64, out: &mut String) {
    const TYPES: [&str; 4] = ["c", "g", "ms", "s"];
    // Multiplied by an odd constant, so that samples sent one after another have unrelated names.
    let name =
        if mixture.every_name { at % mixture.names } else { at.wrapping_mul(2_654_435_761) % mixture.names };
    let kind = match mixture.kind {
        SampleType::C => 0,
        SampleType::G => 1,
        SampleType::Ms => 2,
        SampleType::S => 3,
        SampleType::Mix => (at % 4) as usize,
    };
    let value = if kind == 0 { 1 } else { at % 1000 };
    let written = if mixture.every_name {
        let head = "bench.host.service.requests.id";
        write!(out, "{head}{name:0width$}:{value}|{}", TYPES[kind], width = NAME_BYTES - head.len())
    } else {
        write!(out, "bench.web{}.requests.endpoint{name}:{value}|{}", name % 97, TYPES[kind])
    };
    written.expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn ring(names: u64, pack: u64, kind: SampleType, every_name: bool) -> Vec<String> {
        let ring = Ring::new(Mixture { names, pack, kind, every_name });
        ring.packets.iter().map(|packet| String::from_utf8(packet.to_vec()).unwrap()).collect()
    }

    #[test]
    fn every_packet_has_its_samples_and_all_names_occur() {
        let packets = ring(1000, 30, SampleType::C, false);
        assert_eq!(packets.len() as u64, RING_MAX);
        assert!(packets.iter().all(|packet| packet.lines().count() == 30));
        let names: HashSet<&str> = packets
            .iter()
            .flat_map(|packet| packet.lines())
            .filter_map(|line| line.strip_suffix(":1|c"))
            .collect();
        assert_eq!(names.len(), 1000);
    }

    #[test]
    fn names_of_the_series_scenario_are_distinct_and_of_one_length() {
        let packets = ring(10_000, 1, SampleType::C, true);
        let names: HashSet<&str> = packets.iter().filter_map(|packet| packet.strip_suffix(":1|c")).collect();
        assert_eq!((packets.len(), names.len()), (10_000, 10_000));
        assert!(names.iter().all(|name| name.len() == NAME_BYTES));
    }

    #[test]
    fn the_fullest_packet_stays_within_its_limit() {
        for every_name in [false, true] {
            let packets = ring(10_000, Ring::pack_max(), SampleType::Mix, every_name);
            assert!(packets.iter().all(|packet| packet.len() <= PACKET_BYTES_MAX));
            assert!(packets[0].lines().any(|line| line.ends_with("|ms")));
        }
    }
}
