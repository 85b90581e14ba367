//! Hours in which endpoints refuse: their senders try again and again, in simulated time, while a little traffic goes on.
//!
//! The hours cost next to nothing, because windows are long meanwhile and time goes from one thing that is due to the next.
//! What must hold: no more attempts than the pauses between them allow, nobody who is awake without something to do, and
//! queues within their bounds, in memory and on disk.

use config::plan::TransformKind;
use deliver::plan::SenderPlan;
use deliver::queue::BLOCK_BYTES_MAX;

use super::outage::all_is_there;
use super::{CALM, MS_NS, Storm, pipeline};
use crate::world::outlet::Outlet;
use crate::world::peer::State;

/// Length of windows, and time between two checkpoints.
const WINDOW_MS: u64 = 600_000;
const CHECKPOINT_MS: u64 = 60_000;

/// Times that somebody may wake in a second, on average: two syncs of each queue for each block that comes.
const WAKES_PER_SECOND_MAX: u64 = 10;

/// What a queue on disk takes up beside its bound and a segment: a block, and what was settled since the last cursor.
const ASIDE_BYTES_MAX: u64 = 256 * 1024;

/// Share of the endpoints that refuse, in percent.
const BESIEGED_PERCENT: u64 = 30;

/// One whose endpoint refuses, and what it was like before.
#[derive(Debug)]
struct Besieged {
    at: usize,
    attempts: u64,
    held: Held,
}

/// What an output holds.
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
                // A socket that is full is asked twenty times a second whether it still is: nobody else's hours.
                outlet.set_state(State::Up, now)?;
            }
            // And a disk that is short of something ten times: those are not these hours, either.
            let _told = outlet.stored.as_ref().map(all_is_there);
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
        // A pause is at least half of what it may be, and an attempt may be noticed by two calls.
        let SenderPlan { retry_min_ms, retry_max_ms, .. } = SenderPlan::default();
        let growing = u64::from((retry_max_ms / retry_min_ms).ilog2()) + 2;
        let attempts_max = 2 * (growing + seconds * 2000 / retry_max_ms);
        // One that the process did not live to see the end of says too little.
        let told = besieged.into_iter().filter(|_| left == 0);
        for Besieged { at, attempts, .. } in told {
            let outlet = &self.world.outlets[at];
            let attempts = outlet.link.attempts() - attempts;
            self.tally.attempts += attempts;
            if attempts > attempts_max {
                return Err(format!(
                    "output `{}`: {attempts} attempts within {seconds} s, and the pauses allow {attempts_max}",
                    outlet.name
                ));
            }
        }
        self.tally.refused_minutes += seconds / 60;
        let wakes = self.world.wakes - wakes;
        if wakes > (seconds + 60) * WAKES_PER_SECOND_MAX {
            return Err(format!(
                "somebody was woken {wakes} times within {seconds} s, with next to no traffic"
            ));
        }
        Ok(())
    }

    /// # Errors
    /// When the output holds more than it may, and more than it held before.
    fn within_bounds(&self, Besieged { at, held, .. }: &Besieged) -> Result<(), String> {
        let outlet = &self.world.outlets[*at];
        let holds = Held::of(outlet);
        // An empty queue takes a block of any size, and what was sent is counted until it is proven.
        let bytes_max = self.world.plan.outputs[*at].queue.bytes_max + BLOCK_BYTES_MAX as u64;
        if holds.waiting > bytes_max.max(held.waiting) {
            return Err(format!(
                "output `{}`: {} bytes wait, and {bytes_max} may",
                outlet.name, holds.waiting
            ));
        }
        let Some(stored) = &outlet.stored else { return Ok(()) };
        let on_disk_max = bytes_max + stored.aside_max() + ASIDE_BYTES_MAX;
        if holds.on_disk > on_disk_max.max(held.on_disk) {
            return Err(format!(
                "output `{}`: {} bytes are on disk, and {on_disk_max} may be",
                outlet.name, holds.on_disk
            ));
        }
        Ok(())
    }
}
