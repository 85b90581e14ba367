//! What should arrive where in a graph of relays, and what has.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, LINES, Route, STATS};
use crate::random::Random;

/// Series of each connection.
const SERIES: u64 = 10;

/// Copies by line.
type Lines = BTreeMap<String, u64>;

#[derive(Debug)]
pub(super) struct Ledger {
    /// Routes of names that have been asked for.
    routes: BTreeMap<(&'static str, String), Route>,
    /// The last number of each series.
    sent: BTreeMap<String, u64>,
    /// By output: copies of lines that should arrive, and those that have.
    wanted: Vec<Lines>,
    arrived: Vec<Lines>,
    /// By output: lines that a killed process may have taken along.
    doubtful: Vec<BTreeSet<String>>,
    /// Visits that lines make along each edge between two relays, since the process began.
    pub(super) visits: BTreeMap<(String, String), u64>,
    /// Points of the aggregation by name and time, with the outputs that they have come to. Not those up to `points_from_s`.
    points: BTreeMap<(String, u64), BTreeMap<usize, u64>>,
    points_from_s: u64,
    pub(super) lines: u64,
    pub(super) copies: u64,
    pub(super) points_seen: u64,
}

impl Ledger {
    pub(super) fn new(outputs: usize) -> Ledger {
        Ledger {
            routes: BTreeMap::new(),
            sent: BTreeMap::new(),
            wanted: vec![Lines::new(); outputs],
            arrived: vec![Lines::new(); outputs],
            doubtful: vec![BTreeSet::new(); outputs],
            visits: BTreeMap::new(),
            points: BTreeMap::new(),
            points_from_s: 0,
            lines: 0,
            copies: 0,
            points_seen: 0,
        }
    }

    fn route(&mut self, graph: &Graph, giver: &'static str, name: &str) -> &Route {
        self.routes.entry((giver, name.to_owned())).or_insert_with(|| graph.route(giver, name))
    }

    /// The next line of some series: each connection has its own.
    pub(super) fn line(&mut self, graph: &Graph, random: &mut Random, connection: &str, text: &mut Vec<u8>) {
        let name = format!("k{}.{connection}.s{}", random.below(3), random.below(SERIES));
        let number = self.sent.entry(name.clone()).or_default();
        *number += 1;
        let rest = format!("{number} 1000080000");
        let route = self.route(graph, LINES, &name).clone();
        for (output, names) in route.copies {
            for (name, copies) in names {
                *self.wanted[output].entry(format!("{name} {rest}")).or_default() += copies;
                self.copies += copies;
            }
        }
        for (edge, visits) in route.visits {
            *self.visits.entry(edge).or_default() += visits;
        }
        self.lines += 1;
        text.extend_from_slice(format!("{name} {rest}\n").as_bytes());
    }

    /// Something has arrived at an endpoint.
    ///
    /// # Errors
    /// When it does not belong there.
    pub(super) fn arrived(&mut self, graph: &Graph, output: usize, line: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(line).into_owned();
        if text.starts_with("stats") {
            return self.point(graph, output, &text);
        }
        if !self.wanted[output].contains_key(&text) {
            return Err(format!("`{text}` arrived, which is not explained"));
        }
        *self.arrived[output].entry(text).or_default() += 1;
        Ok(())
    }

    fn point(&mut self, graph: &Graph, output: usize, text: &str) -> Result<(), String> {
        let mut fields = text.split(' ');
        let (name, time) = (fields.next().unwrap_or_default().to_owned(), fields.nth(1));
        let time: u64 = time.and_then(|time| time.parse().ok()).ok_or_else(|| format!("`{text}` arrived"))?;
        // Outputs write figures of their own besides.
        if name.contains("statsd") {
            return Ok(());
        }
        if !self.route(graph, STATS, &name).copies.contains_key(&output) {
            return Err(format!("`{text}` arrived, which is not explained"));
        }
        self.points_seen += 1;
        if time >= self.points_from_s {
            *self.points.entry((name, time)).or_default().entry(output).or_default() += 1;
        }
        Ok(())
    }

    /// A process died, and another begins; windows that end before `from_s` are those of the one before. `is_safe`: what it had
    /// taken is on disk, and it had taken everything.
    pub(super) fn killed(&mut self, is_safe: bool, from_s: u64) {
        self.visits.clear();
        self.points.clear();
        self.points_from_s = from_s;
        if is_safe {
            return;
        }
        for ((wanted, arrived), doubtful) in self.wanted.iter().zip(&self.arrived).zip(&mut self.doubtful) {
            let is_missing =
                |(line, copies): &(&String, &u64)| arrived.get(*line).is_none_or(|came| came < copies);
            doubtful.extend(wanted.iter().filter(is_missing).map(|(line, _)| line.clone()));
        }
    }

    /// Everything has drained: what is missing at an output must be counted among its `dropped` copies.
    ///
    /// # Errors
    /// When more is missing.
    pub(super) fn check(&mut self, graph: &Graph, dropped: &[u64]) -> Result<(), String> {
        let mut missing = vec![(0, String::new()); dropped.len()];
        let mut miss = |output: usize, copies: u64, what: &str| {
            missing[output].0 += copies;
            if copies > 0 {
                missing[output].1 = what.to_owned();
            }
        };
        for (output, wanted) in self.wanted.iter().enumerate() {
            for (line, copies) in wanted.iter().filter(|(line, _)| !self.doubtful[output].contains(*line)) {
                let came = self.arrived[output].get(line).copied().unwrap_or(0);
                miss(output, copies.saturating_sub(came), line);
            }
        }
        let points: Vec<_> = std::mem::take(&mut self.points).into_iter().collect();
        for ((name, time), came) in points {
            for (output, names) in &self.route(graph, STATS, &name).copies {
                let copies: u64 = names.values().sum();
                let came = came.get(output).copied().unwrap_or(0);
                miss(*output, copies.saturating_sub(came), &format!("{name} of {time}"));
            }
        }
        for ((output, (missing, example)), dropped) in missing.into_iter().enumerate().zip(dropped) {
            if missing > *dropped {
                return Err(format!(
                    "output {output}: {missing} copies that are explained are missing, such as `{example}`, and \
                     {dropped} count as dropped"
                ));
            }
        }
        Ok(())
    }
}
