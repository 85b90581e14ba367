//! The events of a storm of streams, and the index that follows from them.

use crate::world::START_S;

/// Events of a second of their own time.
const EVENTS_PER_S: u64 = 50;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its number, which is its metric.
    pub(super) number: u64,
    pub(super) service: u64,
    pub(super) state: &'static str,
    pub(super) time_s: i64,
}

/// See the module's header.
#[derive(Debug)]
pub(super) struct Ledger {
    services: u64,
    /// Events that were sent, and are not lost.
    pub(super) sent: u64,
    /// Checkpoints that were begun: their numbers, with the events before them.
    begun: Vec<(u64, u64)>,
    /// Events before the last whole one.
    whole: u64,
}

impl Ledger {
    pub(super) fn new(services: u64) -> Ledger {
        Ledger { services, sent: 0, begun: Vec::new(), whole: 0 }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Event {
        let number = self.sent;
        self.sent += 1;
        Event {
            number,
            service: number % self.services,
            state: self.state(number),
            time_s: (START_S + number / EVENTS_PER_S).cast_signed(),
        }
    }

    /// The state changes with every seventh event of a service.
    fn state(&self, number: u64) -> &'static str {
        if (number / self.services / 7).is_multiple_of(2) { "ok" } else { "bad" }
    }

    pub(super) fn save_begins(&mut self, number: u64) {
        self.begun.push((number, self.sent));
    }

    pub(super) fn save_is_whole(&mut self, number: u64) {
        let whole = self.begun.iter().find(|(begun, _)| *begun == number);
        self.whole = whole.map_or(self.whole, |(_, sent)| *sent);
        self.begun.retain(|(begun, _)| *begun > number);
    }

    /// The checkpoints were removed.
    pub(super) fn is_removed(&mut self) {
        self.whole = 0;
    }

    /// A process begins: what its predecessor had begun to save is not finished, or is and nobody knows.
    pub(super) fn begins(&mut self) {
        self.begun.clear();
    }

    /// A process has come back with this index: how many events it lost. They are sent again.
    ///
    /// # Errors
    /// If it is not that of a run of the first so many events, or lacks some that a whole checkpoint had.
    pub(super) fn is_back(&mut self, index: &[(String, u64)]) -> Result<u64, String> {
        let kept = kept(index).ok_or_else(|| format!("what the streams had is lost: {index:?}"))?;
        if kept > self.sent {
            return Err(format!("{kept} of {} events came back", self.sent));
        }
        if kept < self.whole {
            return Err(format!(
                "what the streams had is lost: {kept} events came back, and a whole checkpoint had {}",
                self.whole
            ));
        }
        let lost = self.sent - kept;
        self.sent = kept;
        self.check(index)?;
        Ok(lost)
    }

    /// The index is that of all events.
    ///
    /// # Errors
    /// If not.
    pub(super) fn check(&self, index: &[(String, u64)]) -> Result<(), String> {
        let want = self.expected();
        if index == want {
            return Ok(());
        }
        let differ = |a: &[(String, u64)], b: &[(String, u64)]| {
            let only: Vec<String> =
                a.iter().filter(|row| !b.contains(row)).take(5).map(|row| format!("{row:?}")).collect();
            only.join(" ")
        };
        Err(format!(
            "what the streams had is lost or doubled after {} events: {} and not {}",
            self.sent,
            differ(index, &want),
            differ(&want, index)
        ))
    }

    /// The index after the events that were sent.
    fn expected(&self) -> Vec<(String, u64)> {
        let (count, services) = (self.sent, self.services);
        let sum = |from: u64, to: u64| (from..to).sum::<u64>();
        let mut all = Vec::new();
        let mut add =
            |service: String, metric: Option<u64>| all.extend(metric.map(|metric| (service, metric)));
        add("sum".to_owned(), (count > 0).then(|| sum(0, count)));
        add("last-five".to_owned(), (count > 0).then(|| sum(count.saturating_sub(5), count)));
        let ended = |length: u64, open: u64| {
            let last = (open / length).checked_sub(1)?;
            Some(sum(last * length, (last + 1) * length))
        };
        add("ten".to_owned(), ended(10, count));
        // A second ends with the first event of the next one.
        add("second".to_owned(), ended(EVENTS_PER_S, count.saturating_sub(1)));
        let is_change = |number: &u64| {
            let before = number.checked_sub(services).map_or("ok", |before| self.state(before));
            self.state(*number) != before
        };
        // Each service has a counter of its own; the last change is in the index.
        let last = (0..count).rev().find(is_change);
        add("changes".to_owned(), last.map(|number| number / self.services / 7));
        for fork in 0..services.min(count) {
            add(format!("fork-s{fork}"), Some((fork..count).step_by(services as usize).sum()));
        }
        all.sort();
        all
    }
}

/// How many events there were, by the sum of the numbers under it. None if there is no such number.
fn kept(index: &[(String, u64)]) -> Option<u64> {
    let Some((_, sum)) = index.iter().find(|(service, _)| service == "sum") else {
        return index.is_empty().then_some(0);
    };
    let count = (2.0 * *sum as f64).sqrt() as u64;
    (count.saturating_sub(2)..count + 3).find(|count| *count > 0 && count * (count - 1) / 2 == *sum)
}

#[test]
fn a_wrong_index_is_found() {
    let mut ledger = Ledger::new(3);
    for _ in 0..130 {
        let _event = ledger.next();
    }
    let right = ledger.expected();
    assert_eq!(ledger.check(&right), Ok(()));
    assert_eq!((kept(&right), kept(&[])), (Some(130), Some(0)));
    for at in 0..right.len() {
        let mut wrong = right.clone();
        wrong[at].1 += 1;
        assert!(ledger.check(&wrong).is_err(), "{:?}", wrong[at]);
        wrong.remove(at);
        assert!(ledger.check(&wrong).is_err(), "{:?}", right[at]);
    }
    ledger.whole = 131;
    assert!(ledger.is_back(&right).is_err(), "a checkpoint had one more");
}
