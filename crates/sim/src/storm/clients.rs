//! Clients that are answered: each line they send has an id, and what they were told about it must be true.
//!
//! A line that was acknowledged as delivered has arrived at every output by then; one that was acknowledged as safe
//! arrives at every one, whatever happens to processes and power. Nobody sends such a line a second time.

use std::collections::BTreeMap;

use config::plan::SourcePlan;
use model::AckWhen;

use super::watch::Watch;
use crate::random::Random;

/// Clients at one time.
const CLIENTS: u64 = 3;

/// All clients of one source.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Connection -> the lines that were sent on it, and how many of them were acknowledged.
    sent: BTreeMap<String, (Vec<String>, usize)>,
    /// Makes ids and names of connections unique.
    serial: u64,
    current: [u64; CLIENTS as usize],
    /// What was acknowledged, under which condition.
    acked: Vec<(String, AckWhen)>,
    refused: u64,
}

impl Clients {
    /// One of the clients sends some lines: the connection, the bytes, and whether it is done afterwards. A connection
    /// that is not `open` any more is followed by another one.
    pub(super) fn lines(
        &mut self,
        random: &mut Random,
        open: impl Fn(&str) -> bool,
    ) -> (String, Vec<u8>, bool) {
        let client = random.below(CLIENTS) as usize;
        if !open(&format!("k{}", self.current[client])) {
            self.serial += 1;
            self.current[client] = self.serial;
        }
        let name = format!("k{}", self.current[client]);
        let lines = &mut self.sent.entry(name.clone()).or_default().0;
        let mut bytes = Vec::new();
        for _ in 0..random.between(1, 12) {
            self.serial += 1;
            let line = format!("kept.{}:1|c", self.serial);
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
            lines.push(line);
        }
        let done = random.chance(10);
        if done {
            self.current[client] = 0;
        }
        (name, bytes, done)
    }

    /// The process that they were connected to is gone.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.current = Default::default();
    }

    /// Takes in what clients were told.
    ///
    /// # Errors
    /// What is not true, or no answer at all.
    pub(super) fn look(
        &mut self,
        told: BTreeMap<String, Vec<String>>,
        source: &SourcePlan,
        outputs: &[&Watch],
    ) -> Result<(), String> {
        let Some(when) = source.ack_when else { return Ok(()) };
        for (name, lines) in told {
            for line in lines {
                self.told(&name, &line, when, outputs)?;
            }
        }
        Ok(())
    }

    fn told(&mut self, name: &str, told: &str, when: AckWhen, outputs: &[&Watch]) -> Result<(), String> {
        let mut words = told.split(' ');
        let (word, number) = (words.next(), words.next().and_then(|number| number.parse::<usize>().ok()));
        if word == Some("err") {
            self.refused += 1;
            self.sent.remove(name);
            self.current
                .iter_mut()
                .filter(|client| format!("k{client}") == name)
                .for_each(|client| *client = 0);
            return Ok(());
        }
        let Some((lines, acked)) = self.sent.get_mut(name) else { return Ok(()) };
        let number = number.filter(|number| word == Some("ack") && (*acked..=lines.len()).contains(number));
        let Some(number) = number else {
            return Err(format!("connection {name} was told `{told}` after {} lines", lines.len()));
        };
        let new = &lines[*acked..number];
        if when == AckWhen::Delivered
            && let Some(line) = new.iter().find(|line| !outputs.iter().all(|watch| watch.has_arrived(line)))
        {
            return Err(format!("`{line}` was acknowledged as delivered, and has not arrived"));
        }
        self.acked.extend(new.iter().map(|line| (line.clone(), when)));
        *acked = number;
        Ok(())
    }

    /// Everything has drained.
    ///
    /// # Errors
    /// A line that was acknowledged and has not arrived.
    pub(super) fn check(&self, outputs: &[&Watch]) -> Result<(), String> {
        for (line, when) in self.acked.iter().filter(|(_, when)| *when != AckWhen::Accepted) {
            if !outputs.iter().all(|watch| watch.has_arrived(line)) {
                return Err(format!("`{line}` was acknowledged as {}, and never arrived", when.word()));
            }
        }
        Ok(())
    }

    /// Lines that were acknowledged, and connections that were told that nobody knows.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.acked.len() as u64, self.refused)
    }
}
