//! What surrounds the turn of the shard in the daemon: the outlets, the registry of acknowledgements, checkpoints and
//! notes of flushes, the clock.

use std::sync::Arc;

use pipeline::checkpoints::Note;
use pipeline::{Exchange, Host, Taking, Turn};
use sys::clock::Clock;

use super::Worker;
use crate::daemon::checkpoint::Saver;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::outlet::Outlets;
use crate::daemon::shared::acks::AckRegistry;

/// See the module's header.
#[derive(Debug)]
pub(super) struct DaemonHost<'a> {
    outlets: Outlets<'a>,
    acks: &'a Arc<AckRegistry>,
    saver: &'a mut Saver,
    handover: &'a Handover,
}

impl Worker {
    /// The turn, and what it needs.
    pub(super) fn parts(&mut self) -> (&mut Turn, DaemonHost<'_>, &Exchange) {
        let Worker { turn, outlets, acks, saver, handover, exchange, .. } = self;
        (turn, DaemonHost { outlets: Outlets(outlets), acks, saver, handover }, exchange)
    }
}

impl<'a> Host for DaemonHost<'a> {
    type Outputs = Outlets<'a>;
    type Keep = Saver;

    fn outputs(&mut self) -> &mut Outlets<'a> {
        &mut self.outlets
    }

    fn keep(&mut self) -> &mut Saver {
        self.saver
    }

    fn mono_ns(&self) -> u64 {
        Clock::mono_ns()
    }

    fn taken(&mut self, taking: Taking) {
        self.acks.taken(taking, self.outlets.0);
    }

    fn note(&mut self, aggregation: &str, note: Note) {
        self.handover.note(aggregation, note);
    }
}
