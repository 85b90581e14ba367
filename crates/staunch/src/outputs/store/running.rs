//! What the two threads of a store share, and how it reports errors.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::plan::WhisperPlan;
use deliver::Failure;
use deliver::store::StoreSender;

use crate::daemon::outlet::Outlet;
use crate::daemon::shared::stores::OpenStore;
use crate::outputs::progress::publish;
use crate::outputs::telling::Teller;
use sys::clock::Clock;

/// What the two threads of a store share.
pub(super) struct Running<'a> {
    pub(super) plan: &'a WhisperPlan,
    pub(super) outlet: &'a Outlet,
    pub(super) open: &'a OpenStore,
    pub(super) sender: Mutex<StoreSender>,
    /// No more points come: write what is in memory, and end.
    pub(super) ends: AtomicBool,
    /// The writing thread has ended.
    pub(super) has_written: AtomicBool,
    /// A sync of the tree failed: what was written since the last one may be lost, and is written again from the queue.
    pub(super) sync_failed: AtomicBool,
}

impl Running<'_> {
    pub(super) fn sender(&self) -> MutexGuard<'_, StoreSender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes what the sender holds.
    pub(super) fn publish(&self) {
        let sender = self.sender();
        publish(self.outlet, 0, sender.waiting_copies(), sender.queued_bytes(), sender.state());
    }

    pub(super) fn failed(&self, failure: Failure, words: &str, teller: &mut Teller) {
        self.sender().on_error(failure, Clock::now());
        let words = Some(words.to_owned());
        report(&mut self.sender(), self.outlet, teller, words);
    }
}

/// Logs changes of the state of the store.
pub(super) fn report(sender: &mut StoreSender, outlet: &Outlet, teller: &mut Teller, words: Option<String>) {
    teller.look(outlet, sender.state(), |_failure| words);
    while let Some(change) = sender.take_state_change() {
        teller.tell(outlet, change);
    }
}
