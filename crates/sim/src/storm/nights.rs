//! Sequences of faults that find bugs which a single fault hardly ever finds.
//!
//! Not here: the single faults, and the checks after the next start (`outage`).

use model::OutputId;

use super::Storm;
use super::end::End;
use super::outage::{fault, shortage};
use super::pipeline::{CALM, KEPT};
use crate::world::peer::State;

impl Storm {
    /// An endpoint is down, the disk of its queue fails, and then the process dies.
    pub(super) fn bad_night(&mut self) -> Result<(), String> {
        let on_disk: Vec<OutputId> = self.vaults.keys().copied().collect();
        let kept = self.random.chance(40).then(|| *self.random.pick(KEPT));
        let kept = kept.and_then(|name| self.world.outlet_at(name)).map(|at| OutputId(at as u16));
        let output = kept.unwrap_or(*self.random.pick(&on_disk));
        let now = self.world.now;
        let outlet = &mut self.world.outlets[output.index()];
        if CALM.contains(&outlet.name.as_str()) {
            return Ok(());
        }
        outlet.set_state(State::Down, now)?;
        let name = outlet.name.clone();
        self.story.tell(format!("the endpoint of `{name}` is down"));
        match self.random.below(100) {
            0..=17 => return self.short_morning(&name, kept),
            18..=32 => return self.failed_sync(output, kept),
            _ => {}
        }
        self.traffic_for(kept)?;
        let outlet = &self.world.outlets[output.index()];
        if let (Some(stored), Some(vault)) = (&outlet.stored, self.vaults.get_mut(&output)) {
            let random = &mut self.random;
            let what = if random.chance(10) {
                shortage(stored, random)
            } else {
                vault.disk_failed = true;
                fault(stored, vault, random, KEPT.contains(&outlet.name.as_str()))
            };
            self.story.tell(format!("its disk: {what}"));
        }
        for _ in 0..self.random.between(1, 4) {
            let ms = *self.random.pick(&[1, 5, 50, 200]);
            self.advance(ms)?;
            self.check()?;
            self.traffic_for(kept)?;
        }
        self.check()?;
        match self.random.below(4) {
            0 => Ok(()),
            1 => self.crash(End::Killed),
            _ => self.crash(End::PowerLoss),
        }
    }

    /// The next process starts with a full queue for an endpoint that is down. When the endpoint is up again, nothing
    /// can be opened for a while.
    fn short_morning(&mut self, name: &str, kept: Option<OutputId>) -> Result<(), String> {
        for _ in 0..self.random.between(1, 4) {
            self.traffic_for(kept)?;
            self.advance(50)?;
            self.check()?;
        }
        self.crash(End::Killed)?;
        let now = self.world.now;
        let Some(at) = self.world.outlet_at(name) else { return Ok(()) };
        let outlet = &mut self.world.outlets[at];
        let Some(stored) = &outlet.stored else { return Ok(()) };
        let what = shortage(stored, &mut self.random);
        self.story.tell(format!("the endpoint of `{name}` is up, its disk: {what}"));
        outlet.set_state(State::Up, now)?;
        let ms = self.random.between(100, 20_000);
        self.advance(ms)?;
        self.check()
    }

    /// The next sync of a queue whose endpoint is down fails, and the machine loses power before another sync.
    fn failed_sync(&mut self, output: OutputId, kept: Option<OutputId>) -> Result<(), String> {
        self.traffic_for(kept)?;
        if let (Some(stored), Some(vault)) =
            (&self.world.outlets[output.index()].stored, self.vaults.get_mut(&output))
        {
            vault.disk_failed = true;
            stored.disk.change_faults(|faults| faults.sync_error_in = Some(0));
            self.story.tell("the next sync of its disk fails".to_owned());
        }
        for _ in 0..self.random.between(1, 3) {
            let ms = *self.random.pick(&[5, 50, 200, 6000]);
            self.advance(ms)?;
            self.check()?;
        }
        self.crash(End::PowerLoss)
    }

    /// For any output, or only for outputs with acknowledgements.
    fn traffic_for(&mut self, kept: Option<OutputId>) -> Result<(), String> {
        if kept.is_none() {
            return self.datagrams();
        }
        for _ in 0..self.random.between(1, 5) {
            self.clients()?;
        }
        self.world.turn()
    }
}
