//! Hours in which endpoints reject data: their senders retry in simulated time, with a little traffic.
//!
//! The hours cost almost no real time, because windows are long and time advances from one due action to the next. The
//! checks: no more attempts than the backoff allows, no wake-ups without work, and queues within their limits in memory
//! and on disk.

use config::plan::TransformKind;
use deliver::plan::SenderPlan;
use deliver::queue::BLOCK_BYTES_MAX;

use super::outage::all_is_there;
use super::pipeline::{self, CALM};
use super::{MS_NS, Storm};
use crate::world::outlet::Outlet;
use crate::world::peer::State;

/// Length of windows, and time between two checkpoints.
const WINDOW_MS: u64 = 600_000;
const CHECKPOINT_MS: u64 = 60_000;

/// Most wake-ups in a second, on average: two syncs of each queue for each new block.
const WAKES_PER_SECOND_MAX: u64 = 10;

/// Disk space of a queue beyond its limit and one segment: a block, and the records settled since the last cursor.
const OVERHEAD_BYTES_MAX: u64 = 256 * 1024;

/// Percentage of endpoints that reject data.
const BESIEGED_PERCENT: u64 = 30;

/// An output whose endpoint rejects data, and its state before.
#[derive(Debug)]
struct Besieged {
    at: usize,
    attempts: u64,
    held: Held,
}

/// The data that an output holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    waiting: u64,
    on_disk: u64,
}

impl Held {
    fn of(outlet: &Outlet) -> Held {
        let waiting = outlet.account.queued_bytes.load(std::sync::atomic::Ordering::Relaxed);
        Held { waiting, on_disk: outlet.stored.as_ref().map_or(0, |stored| stored.used()) }
    }
}

impl Storm {
    pub(super) fn siege(&mut self) -> Result<(), String> {
        let mut plan = pipeline::plan(&mut self.random, self.disks, &self.moved);
        for transform in &mut plan.transforms {
            let TransformKind::Aggregate(aggregate) = &mut transform.kind else { continue };
            aggregate.plan.window_ms = WINDOW_MS;
            aggregate.checkpoint_ms = aggregate.checkpoint_ms.min(1) * CHECKPOINT_MS;
        }
        self.reload_to(&plan)?;
        let (now, wakes) = (self.world.now, self.world.wakes);
        let mut besieged = Vec::new();
        for (at, outlet) in self.world.outlets.iter_mut().enumerate() {
            if !CALM.contains(&outlet.name.as_str()) && self.random.chance(BESIEGED_PERCENT) {
                outlet.set_state(State::Down, now)?;
                besieged.push(Besieged { at, attempts: outlet.link.attempts(), held: Held::of(outlet) });
            } else {
                // A full socket is polled twenty times a second, which would spoil these checks.
                outlet.set_state(State::Up, now)?;
            }
            // The same for a disk with a shortage, which is polled ten times a second.
            let _message = outlet.stored.as_ref().map(all_is_there);
        }
        let minutes = self.random.between(60, 240);
        self.story.tell(format!("{} endpoints refuse for {minutes} minutes", besieged.len()));
        let mut left = minutes;
        while left > 0 && !self.world.is_dead() {
            let some = self.random.between(1, 30).min(left);
            left -= some;
            self.world.advance(some * 60_000 * MS_NS)?;
            self.check()?;
            besieged.iter().try_for_each(|besieged| self.within_bounds(besieged))?;
            if self.random.chance(50) {
                self.datagrams()?;
            }
        }
        let seconds = (self.world.now.mono_ns - now.mono_ns) / (1000 * MS_NS);
        // A pause is at least half of its maximum, and two calls may count one attempt.
        let SenderPlan { retry_min_ms, retry_max_ms, .. } = SenderPlan::default();
        let growing = u64::from((retry_max_ms / retry_min_ms).ilog2()) + 2;
        let attempts_max = 2 * (growing + seconds * 2000 / retry_max_ms);
        // Outputs that the process did not survive show too little.
        let survived = besieged.into_iter().filter(|_| left == 0);
        for Besieged { at, attempts, .. } in survived {
            let outlet = &self.world.outlets[at];
            let attempts = outlet.link.attempts() - attempts;
            self.tally.attempts += attempts;
            if attempts > attempts_max {
                return Err(format!(
                    "output `{}`: {attempts} attempts within {seconds} s; the backoff allows {attempts_max}",
                    outlet.name
                ));
            }
        }
        self.tally.refused_minutes += seconds / 60;
        let wakes = self.world.wakes - wakes;
        if wakes > (seconds + 60) * WAKES_PER_SECOND_MAX {
            return Err(format!("tasks woke up {wakes} times within {seconds} s, almost without traffic"));
        }
        Ok(())
    }

    /// # Errors
    /// When the output holds more than its limit, and more than before.
    fn within_bounds(&self, Besieged { at, held, .. }: &Besieged) -> Result<(), String> {
        let outlet = &self.world.outlets[*at];
        let holds = Held::of(outlet);
        // An empty queue accepts a block of any size, and sent data counts until it is acknowledged.
        let bytes_max = self.world.plan.outputs[*at].queue.bytes_max + BLOCK_BYTES_MAX as u64;
        if holds.waiting > bytes_max.max(held.waiting) {
            return Err(format!(
                "output `{}`: {} bytes are queued; the limit is {bytes_max}",
                outlet.name, holds.waiting
            ));
        }
        let Some(stored) = &outlet.stored else { return Ok(()) };
        let on_disk_max = bytes_max + stored.overhead_max() + OVERHEAD_BYTES_MAX;
        if holds.on_disk > on_disk_max.max(held.on_disk) {
            return Err(format!(
                "output `{}`: {} bytes are on disk; the limit is {on_disk_max}",
                outlet.name, holds.on_disk
            ));
        }
        Ok(())
    }
}
