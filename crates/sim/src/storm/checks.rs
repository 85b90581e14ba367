//! The checks after every step: both balances, arrivals, disks, replies to clients, reasons of drops.

use std::sync::Arc;

use model::{Dropped, OutputId};

use super::Storm;
use super::pipeline::{CALM, CALM_IS_MISSING, KEPT};
use super::watch::{self, Watch, kept};
use crate::world::Given;

impl Storm {
    pub(super) fn check(&mut self) -> Result<(), String> {
        if let Some(broken) = self.world.broken_sums().into_iter().next() {
            return Err(broken);
        }
        self.take_given()?;
        for (output, watch) in &mut self.watches {
            let outlet = &mut self.world.outlets[output.index()];
            watch.look(outlet).map_err(|what| format!("output `{}`: {what}", outlet.name))?;
            if outlet.torn() > 0 {
                return Err(format!("output `{}`: a rotation cut a line in two", outlet.name));
            }
            if let Some(vault) = self.vaults.get_mut(output) {
                vault.look(outlet).map_err(|what| format!("output `{}`: {what}", outlet.name))?;
            }
        }
        let kept: Vec<&Watch> = kept(&self.world, &self.watches);
        if let Some(source) = self.world.sources.iter_mut().find(|source| source.plan.name == "k") {
            self.clients.look(source.take_all_replies(), &source.plan, &kept)?;
        }
        self.check_waiting()?;
        self.check_accounts()
    }

    /// Processes the blocks given to outputs and the checkpoints saved meanwhile, in order.
    pub(super) fn take_given(&mut self) -> Result<(), String> {
        let given = self.world.given.as_mut().map(std::mem::take).unwrap_or_default();
        let events = self.world.keeping.as_mut().map(|keeping| std::mem::take(&mut keeping.events));
        let mut events = events.unwrap_or_default().into_iter().peekable();
        let calm = OutputId(self.world.outlet_at(CALM[0]).ok_or(CALM_IS_MISSING)? as u16);
        for (number, Given { output, block, place }) in given.into_iter().enumerate() {
            while let Some((_, event)) = events.next_if(|(before, _)| *before <= number) {
                self.memory.note(&event, &self.traffic.ledger, &self.watches[&calm]);
            }
            let Some(watch) = self.watches.get_mut(&output) else { continue };
            let units = watch.gave(&block);
            if let (Some((at, kept)), Some(vault)) = (place, self.vaults.get_mut(&output)) {
                vault.gave(at, kept, &block, units);
            }
        }
        events.for_each(|(_, event)| {
            self.memory.note(&event, &self.traffic.ledger, &self.watches[&calm]);
        });
        Ok(())
    }

    fn check_accounts(&self) -> Result<(), String> {
        let outlets = &self.world.outlets;
        let watched = || self.watches.iter().map(|(output, watch)| (watch, &outlets[output.index()]));
        for outlet in outlets {
            let sharing: Vec<_> =
                watched().filter(|(_, other)| Arc::ptr_eq(&other.account, &outlet.account)).collect();
            watch::check_account(&sharing).map_err(|what| format!("output `{}`: {what}", outlet.name))?;
            // A dying process cannot read, either.
            let vaults = self
                .vaults
                .iter()
                .filter(|(output, _)| Arc::ptr_eq(&outlets[output.index()].account, &outlet.account));
            let failed =
                vaults.clone().any(|(output, vault)| vault.disk_failed || outlets[output.index()].is_dead());
            let damaged = outlet.account.dropped(Dropped::Damaged);
            if damaged > 0 && !failed {
                return Err(format!(
                    "output `{}`: {damaged} copies count as damaged, on a disk that is not",
                    outlet.name
                ));
            }
        }
        Ok(())
    }

    /// A source that waits for room must not lose copies to a full queue.
    fn check_waiting(&self) -> Result<(), String> {
        for at in KEPT.iter().filter_map(|name| self.world.outlet_at(name)) {
            let outlet = &self.world.outlets[at];
            let dropped = outlet.account.dropped(Dropped::QueueFull);
            let excused = self.vaults.get(&OutputId(at as u16)).is_some_and(|vault| vault.write_fails);
            if dropped > 0 && !excused && !outlet.is_dead() {
                return Err(format!(
                    "output `{}`: {dropped} copies were dropped by a full queue, although their source waits",
                    outlet.name
                ));
            }
        }
        Ok(())
    }
}
