//! Clients that get acknowledgements: each line has an id, and every reply about it must be true.
//!
//! A line acknowledged as delivered has already arrived at every output. A line acknowledged as safe arrives at every
//! output, despite kills and power losses. Such lines are never sent twice.

use std::collections::BTreeMap;

use config::plan::SourcePlan;
use model::AckWhen;

use super::watch::Watch;
use crate::random::Random;

/// Clients at the same time.
const CLIENTS: u64 = 3;

/// All clients of one source.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Connection -> the lines sent on it, and how many of them were acknowledged.
    sent: BTreeMap<String, (Vec<String>, usize)>,
    /// Makes ids and connection names unique.
    serial: u64,
    current: [u64; CLIENTS as usize],
    /// The acknowledged lines, with their condition.
    acked: Vec<(String, AckWhen)>,
    refused: u64,
}

impl Clients {
    /// One of the clients sends some lines. Returns the connection, the bytes, and whether the client ends afterwards.
    /// If a connection is no longer `open`, the client opens another one.
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

    /// The process that they were connected to has ended.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.current = Default::default();
    }

    /// Checks the new replies.
    ///
    /// # Errors
    /// A false reply, or a missing one.
    pub(super) fn look(
        &mut self,
        replies: BTreeMap<String, Vec<String>>,
        source: &SourcePlan,
        outputs: &[&Watch],
    ) -> Result<(), String> {
        let Some(when) = source.ack_when else { return Ok(()) };
        for (name, lines) in replies {
            for line in lines {
                self.check_reply(&name, &line, when, outputs)?;
            }
        }
        Ok(())
    }

    fn check_reply(
        &mut self,
        name: &str,
        reply: &str,
        when: AckWhen,
        outputs: &[&Watch],
    ) -> Result<(), String> {
        let mut words = reply.split(' ');
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
            return Err(format!("connection {name} got the reply `{reply}` after {} lines", lines.len()));
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

    /// All queues are empty.
    ///
    /// # Errors
    /// A line that was acknowledged but has not arrived.
    pub(super) fn check(&self, outputs: &[&Watch]) -> Result<(), String> {
        for (line, when) in self.acked.iter().filter(|(_, when)| *when != AckWhen::Accepted) {
            if !outputs.iter().all(|watch| watch.has_arrived(line)) {
                return Err(format!("`{line}` was acknowledged as {}, and never arrived", when.word()));
            }
        }
        Ok(())
    }

    /// Acknowledged lines, and connections with the reply that the fate of their lines is unknown.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.acked.len() as u64, self.refused)
    }
}
