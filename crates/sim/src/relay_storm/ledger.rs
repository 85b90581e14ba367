//! Lines that a relay's clients have sent, and the endpoints where they arrived.

use std::collections::{BTreeMap, BTreeSet};

use super::clusters::{CLUSTERS, Kind};
use crate::random::Random;

/// Series of each cluster and connection.
const SERIES: u64 = 20;

/// Series by name, and lines by their number in it.
type Lines = BTreeMap<String, BTreeSet<u64>>;

#[derive(Debug)]
pub(super) struct Ledger {
    /// The index in [`CLUSTERS`] of each output.
    cluster_of: Vec<usize>,
    sent: Lines,
    /// Lines that a killed process may have lost.
    doubtful: Lines,
    /// By output.
    arrived: Vec<Lines>,
    /// By output, the last line of each series since the process started. Lines of the predecessor may arrive again
    /// from disk.
    last: Vec<BTreeMap<String, u64>>,
    /// How often each line has arrived at any endpoint.
    arrivals: BTreeMap<String, BTreeMap<u64, usize>>,
    pub(super) lines: u64,
    pub(super) twice: u64,
    pub(super) doubled: u64,
}

fn cluster(name: &str) -> Option<usize> {
    let (prefix, _) = name.split_once('.')?;
    CLUSTERS.iter().position(|known| known.0 == prefix)
}

/// How many endpoints a line of this cluster is for.
fn copies(at: usize) -> usize {
    match CLUSTERS[at] {
        (_, Kind::Owners(copies) | Kind::Some(copies), _) => copies,
        (_, Kind::All, members) => members.len(),
    }
}

impl Ledger {
    /// For outputs of these names: each begins with the name of its cluster.
    pub(super) fn new(outputs: &[String]) -> Ledger {
        let cluster_of = |output: &String| {
            let name = output.split('/').next();
            CLUSTERS.iter().position(|known| Some(known.0) == name).expect("an output of a cluster")
        };
        Ledger {
            cluster_of: outputs.iter().map(cluster_of).collect(),
            sent: Lines::new(),
            doubtful: Lines::new(),
            arrived: outputs.iter().map(|_| Lines::new()).collect(),
            last: outputs.iter().map(|_| BTreeMap::new()).collect(),
            arrivals: BTreeMap::new(),
            lines: 0,
            twice: 0,
            doubled: 0,
        }
    }

    /// The next line of a random series; series belong to one connection.
    pub(super) fn line(&mut self, random: &mut Random, connection: &str, text: &mut Vec<u8>) {
        let (cluster, ..) = random.pick(CLUSTERS);
        let name = format!("{cluster}.{connection}.s{}", random.below(SERIES));
        let renamed = if random.chance(10) { "old." } else { "" };
        let tags = if random.chance(10) { ";t=v" } else { "" };
        let sent = self.sent.entry(name.clone()).or_default();
        let number = sent.last().map_or(1, |last| last + 1);
        sent.insert(number);
        self.lines += 1;
        text.extend_from_slice(format!("{renamed}{name}{tags} {number} 1000080000\n").as_bytes());
    }

    /// A line has arrived at an endpoint.
    ///
    /// # Errors
    /// When it was not sent, is for another cluster, or arrived before an earlier line of its series.
    pub(super) fn arrived(&mut self, output: usize, line: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(line);
        let parts = || {
            let (name, rest) = text.split_once(' ')?;
            let (number, "1000080000") = rest.split_once(' ')? else { return None };
            Some((name.trim_end_matches(";t=v"), number.parse::<u64>().ok()?))
        };
        let Some((name, number)) = parts() else { return Err(format!("`{text}` arrived")) };
        if !self.sent.get(name).is_some_and(|sent| sent.contains(&number)) {
            return Err(format!("`{text}` arrived, but was never sent"));
        }
        let at = self.cluster_of[output];
        if cluster(name) != Some(at) {
            return Err(format!("`{text}` arrived, but is for another cluster"));
        }
        *self.arrivals.entry(name.to_owned()).or_default().entry(number).or_default() += 1;
        let of_series = self.arrived[output].entry(name.to_owned()).or_default();
        let last = self.last[output].entry(name.to_owned()).or_default();
        let overtaken = number < *last;
        *last = number.max(*last);
        if !of_series.insert(number) {
            self.twice += 1;
        } else if overtaken && !matches!(CLUSTERS[at].1, Kind::Some(_)) {
            return Err(format!("`{text}` arrived after a later line of its series"));
        }
        Ok(())
    }

    /// A process was killed, and another one has started.
    pub(super) fn killed(&mut self) {
        self.last.iter_mut().for_each(BTreeMap::clear);
    }

    /// Lines that have not arrived may be lost with the process.
    pub(super) fn doubt_what_has_not_arrived(&mut self) {
        let Ledger { cluster_of, sent, doubtful, arrived, .. } = self;
        for (name, numbers) in sent {
            let places: Vec<&Lines> = (arrived.iter().zip(&*cluster_of))
                .filter(|(_, at)| cluster(name) == Some(**at))
                .map(|(lines, _)| lines)
                .collect();
            let copies = cluster(name).map_or(0, copies);
            let missing = numbers.iter().filter(|number| {
                let is_there = |lines: &&&Lines| lines.get(name).is_some_and(|of| of.contains(number));
                places.iter().filter(is_there).count() < copies
            });
            let missing: Vec<u64> = missing.copied().collect();
            doubtful.entry(name.clone()).or_default().extend(missing);
        }
    }

    /// All queues are empty: missing lines must be counted among the `dropped` copies.
    ///
    /// # Errors
    /// When more are missing, or a series has arrived at more endpoints than it has owners.
    pub(super) fn check(&mut self, dropped: u64) -> Result<(), String> {
        let (mut missing, mut example) = (0, None);
        for (name, numbers) in &self.sent {
            let at = cluster(name).ok_or("a line of no cluster")?;
            let kind = CLUSTERS[at].1;
            let places = self.arrived.iter().zip(&self.cluster_of).filter(|(_, known)| **known == at);
            let of_series: Vec<_> = places.filter_map(|(lines, _)| lines.get(name)).collect();
            if matches!(kind, Kind::Owners(owners) if of_series.len() > owners) {
                return Err(format!("`{name}` has arrived at {} owners", of_series.len()));
            }
            let doubtful = self.doubtful.get(name);
            for number in numbers.iter().filter(|number| !doubtful.is_some_and(|of| of.contains(number))) {
                let came = of_series.iter().filter(|lines| lines.contains(number)).count();
                let arrivals = self.arrivals.get(name).and_then(|of| of.get(number)).copied().unwrap_or(0);
                // A failover endpoint for two members received the copies of both.
                let is_doubled = matches!(kind, Kind::Some(2..)) && came < copies(at) && arrivals > came;
                self.doubled += u64::from(is_doubled);
                let lacks = copies(at).saturating_sub(if is_doubled { arrivals } else { came }) as u64;
                missing += lacks;
                if lacks > 0 {
                    example.get_or_insert_with(|| format!("{name} {number}"));
                }
            }
        }
        if missing > dropped {
            let example = example.unwrap_or_default();
            return Err(format!(
                "{missing} copies are missing, such as `{example}`, and {dropped} count as dropped"
            ));
        }
        Ok(())
    }
}
